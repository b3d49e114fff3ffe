"""Images that were saved again have other bytes, and are noticed by their perceptual hashes; others are not."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.trainer.data.preparing.quality.test_quality import folder, run, scene
from trainer.data.preparing import image_list
from trainer.data.preparing.quality import resaved

SIZE = 48


def lines(source: Path, output: Path) -> dict[str, dict[str, Any]]:
    """Prepare a source and return the lines of its images by name."""
    run(source, output)
    return {line["name"]: line for line in image_list.read(output)}


def test_images_that_were_saved_again_are_noticed_and_no_others(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    for number in range(12):
        scene(number).save(source / "b" / f"again{number}.jpg", quality=80)
        scene(number).resize((60, 45)).save(source / "b" / f"small{number}.png")
    found = lines(source, tmp_path / "out")
    hashes = {name: resaved.hash_of(line, SIZE) for name, line in found.items()}
    known = b"".join(value for name, value in hashes.items() if name.startswith("a/"))
    assert len(known) == 12 * 64
    asked = {name: value for name, value in hashes.items() if name.startswith("b/")}
    noticed = dict(zip(asked, resaved.is_resaved(list(asked.values()), known).tolist(), strict=True))
    assert {name for name, is_known in noticed.items() if is_known} == {f"b/again{number}.jpg" for number in range(12)}
    assert found["a/1.png"]["content_hash"] != found["b/again1.jpg"]["content_hash"]
    # Images with a side below 64 pixels are never compared.
    assert not any(hashes[f"b/small{number}.png"] for number in range(12))


def test_flat_images_are_not_compared(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    for label, level in (("a", 90), ("b", 91)):
        Image.new("RGB", (99, 99), (level, level, level)).save(source / label / "flat.png")
    found = lines(source, tmp_path / "out")
    assert resaved.hash_of(found["a/flat.png"], SIZE) == b""
    assert resaved.is_resaved([b"", b""], b"").tolist() == [False, False]


def test_many_hashes_are_compared_in_parts(monkeypatch: Any) -> None:
    known = np.random.default_rng(0).integers(-100, 100, (50, 64)).astype(np.int8)
    asked = [b"", *(each.tobytes() for each in known[::5]), (-known[1]).tobytes()]
    expected = [False, *[True] * 10, False]
    for size in (1, 7, 50, 1024):
        monkeypatch.setattr(resaved, "_BATCH_SIZE", size)
        assert resaved.is_resaved(asked, known.tobytes()).tolist() == expected
