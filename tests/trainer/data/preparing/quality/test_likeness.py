"""Near-duplicates: copies of photographs are found, and other images are not, as docs/releasing.md has measured."""

import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageOps
from sklearn.datasets import load_sample_images

from trainer.data import images
from trainer.data.preparing.quality import likeness, signatures
from trainer.data.preparing.read import Examined, examine

SIZE = 96
PAGE = Path(__file__).parents[5] / "docs" / "releasing.md"


def encoded(image: Image.Image, kind: str = "PNG", **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def jpeg(image: Image.Image, quality: int) -> Image.Image:
    return Image.open(io.BytesIO(encoded(image, "JPEG", quality=quality))).convert("RGB")


def signed(shown: Iterable[Image.Image]) -> signatures.Bytes:
    """Return the signatures as `prepare` stores them."""
    found = [examine(encoded(image), SIZE) for image in shown]
    lines = [{**vars(f.figures), "appearance": f.appearance} for f in found if isinstance(f, Examined)]
    return signatures.unpacked(map(signatures.signature_of, lines))


def tiles(size: int, step: int) -> list[Image.Image]:
    """Return parts of two photographs, without those that show nothing."""
    wholes = [Image.fromarray(each) for each in load_sample_images().images]
    found = [
        whole.crop((x, y, x + size, y + size))
        for whole in wholes
        for x in range(0, whole.width - size + 1, step)
        for y in range(0, whole.height - size + 1, step)
    ]
    return [each for each in found if np.asarray(each.convert("L")).std() > 8]


def cropped(image: Image.Image, left: float, top: float, right: float, bottom: float) -> Image.Image:
    width, height = image.size
    return image.crop((int(left * width), int(top * height), int((1 - right) * width), int((1 - bottom) * height)))


def shifted(image: Image.Image, share: float) -> Image.Image:
    """Return an image moved to the right and up; the last pixels are repeated."""
    pixels, number = np.asarray(image), int(share * image.width)
    return Image.fromarray(np.pad(pixels[number:, :-number], [(0, number), (number, 0), (0, 0)], mode="edge"))


COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "saved again as PNG": lambda image: image,
    "saved again as JPEG of quality 92": lambda image: jpeg(image, 92),
    "saved again as JPEG of quality 75": lambda image: jpeg(image, 75),
    "saved again as JPEG of quality 40": lambda image: jpeg(image, 40),
    "half size": lambda image: image.resize((image.width // 2, image.height // 2)),
    "mirrored": ImageOps.mirror,
    "turned by 90°": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "cropped by 2%": lambda image: cropped(image, *[0.01] * 4),
    "cropped by 5%": lambda image: cropped(image, *[0.025] * 4),
    "cropped by 10%": lambda image: cropped(image, *[0.05] * 4),
    "cropped by 10% at one corner": lambda image: cropped(image, 0.1, 0.1, 0, 0),
    "shifted by 5%": lambda image: shifted(image, 0.05),
    "shifted by 10%": lambda image: shifted(image, 0.1),
}


def shot(number: int, *, is_scratched: bool) -> Image.Image:
    """Return what a fixed camera sees: one background, noise of its own, and maybe a small scratch."""
    random = np.random.default_rng(number)
    background = np.asarray(tiles(SIZE, 200)[0], np.float64)
    image = Image.fromarray((background + random.normal(0, 4, background.shape)).clip(0, 255).astype(np.uint8))
    if is_scratched:
        x, y, angle, length = *random.integers(5, SIZE - 15, 2), random.uniform(0, np.pi), random.integers(6, 14)
        end = (x + length * np.cos(angle), y + length * np.sin(angle))
        ImageDraw.Draw(image).line((int(x), int(y), *map(int, end)), fill=(230, 220, 210))
    return image


def screenshot(number: int) -> Image.Image:
    """Return a window with a title, a menu and other lines of text for each number."""
    random = np.random.default_rng(number)
    image = Image.new("RGB", (320, 240), "white")
    drawing = ImageDraw.Draw(image)
    drawing.rectangle((0, 0, 320, 24), fill=(50, 80, 160))
    drawing.rectangle((0, 24, 60, 240), fill=(230, 230, 235))
    for line in range(12):
        drawing.text((6, 30 + 16 * line), f"menu {line}", fill="black")
        words = "".join(random.choice([*"abcdefghij klmnop"], int(random.integers(15, 38))))
        drawing.text((70, 30 + 16 * line), words, fill="black")
    return image


def share_of(known: signatures.Bytes, asked: signatures.Bytes) -> float:
    """Return the share of images that have a near-duplicate among the known ones."""
    both = np.concatenate([asked, known])
    pairs = likeness.find(both, np.arange(len(both)) < len(asked), are_others_paired=False).pairs
    return len(set(pairs[pairs[:, 1] >= len(asked), 0].tolist())) / len(asked)


def test_copies_are_found_and_other_parts_of_the_photographs_are_not() -> None:
    originals = tiles(128, 150)
    known = signed(originals)
    for name in ("saved again as JPEG of quality 92", "mirrored", "cropped by 5%"):
        assert share_of(known, signed(map(COPIES[name], originals))) >= 0.8, name
    assert len(likeness.find(known, np.ones(len(known), bool)).pairs) == 0


def test_shots_of_a_fixed_camera_are_other_images_and_their_copies_are_not() -> None:
    shots = [shot(number, is_scratched=bool(number % 2)) for number in range(60)]
    known, later = signed(shots[:45]), signed(shots[45:])
    assert share_of(known, later) == 0
    assert share_of(known, signed(jpeg(each, 92) for each in shots[:15])) >= 0.9


def test_screenshots_of_one_layout_are_other_images() -> None:
    known = signed(map(screenshot, range(40)))
    assert share_of(known, signed(map(screenshot, range(40, 55)))) == 0


def measured() -> dict[str, float]:
    """Return the table of docs/releasing.md: the share of images that count as seen."""
    originals = tiles(130, 60)[:120]
    known = signed(originals)
    found = {name: share_of(known, signed(map(copy, originals))) for name, copy in COPIES.items()}
    for name, is_scratched in (("every second with a small scratch", False), ("all with a small scratch", True)):
        shots = [shot(number, is_scratched=is_scratched or bool(number % 2)) for number in range(300)]
        found[f"shots of a fixed camera, {name}"] = share_of(signed(shots[:225]), signed(shots[225:]))
    shots = [shot(number, is_scratched=bool(number % 2)) for number in range(300)]
    again = signed(jpeg(each, 92) for each in shots[:75])
    found["these shots, saved again as JPEG of quality 92"] = share_of(signed(shots[:225]), again)
    screens = signed(map(screenshot, range(372)))
    found["screenshots of one layout"] = share_of(screens[:279], screens[279:])
    others = signed(
        images.stretch(each, SIZE) for size, step in ((40, 18), (80, 60), (128, 100)) for each in tiles(size, step)
    )
    others = others[:2000]
    pairs = likeness.find(others, np.arange(len(others)) % 5 == 0).pairs
    found[f"other parts of photographs ({len(others):,}, the next ones half the same)"] = len(pairs) / len(others)
    return found


@pytest.mark.slow
@pytest.mark.soak
def test_the_table_of_the_page_is_what_is_measured() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| (\d+)% \|$", PAGE.read_text(), re.MULTILINE))
    found = measured()
    assert list(rows) == list(found)
    for name, share in found.items():
        assert abs(share - int(rows[name]) / 100) <= 0.02, name
        is_copy = name in COPIES or "saved again" in name
        assert share >= 0.8 if is_copy else share == 0, name


if __name__ == "__main__":
    for row, value in measured().items():
        print(f"| {row} | {value:.0%} |")
