"""Parts come back as they were; what is incomplete, edited or not a part is not believed, and nothing else goes."""

import dataclasses
import functools
import json
import pathlib
import pickle
import time
from pathlib import Path

import pytest
from PIL import Image

from trainer.data.preparing import parts
from trainer.data.preparing.parts import DamagedPart, Part
from trainer.data.sources import opening
from trainer.data.sources.source import SourceImage


def images(tmp_path: Path) -> list[SourceImage]:
    """Write images of which the last is bad, and list them."""
    for number in range(6):
        (tmp_path / "source").mkdir(exist_ok=True)
        Image.new("L", (9, 9), number).save(tmp_path / "source" / f"{number}.png")
    (tmp_path / "source" / "5.png").write_bytes(b"bad")
    return listed(tmp_path)


def listed(tmp_path: Path) -> list[SourceImage]:
    return [
        SourceImage(
            name=path.name,
            label=number % 2,
            split="",
            read=functools.partial(opening.read, str(path)),
            identity=functools.partial(opening.identity, str(path)),
            location=str(path),
        )
        for number, path in enumerate(sorted((tmp_path / "source").iterdir()))
    ]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "parts")


@pytest.fixture
def part(tmp_path: Path, folder: str) -> Part:
    return parts.make(images(tmp_path), 8, folder)


def test_rows_and_bytes_come_back(part: Part, folder: str, tmp_path: Path) -> None:
    assert parts.names(folder) == [part.name]
    found, rows = parts.load(folder, part.name)
    assert found == part
    assert [row.name for row in rows] == [f"{number}.png" for number in range(6)]
    assert rows[-1].reason
    assert rows[-1].identity
    with parts.open_bytes(folder, part) as file:
        for row in rows[:-1]:
            assert row.identity == opening.identity(str(tmp_path / "source" / row.name))
            file.seek(row.offset)
            assert file.read(row.num_stored_bytes).startswith(b"\x89PNG")
        assert file.read() == b""


def test_every_worker_writes_the_same(part: Part, folder: str, tmp_path: Path) -> None:
    before = content(folder)
    copied = pickle.loads(pickle.dumps(listed(tmp_path)))
    again = parts.make(copied, 8, folder)
    assert dataclasses.replace(again, began_ns=part.began_ns) == part
    assert content(folder).keys() == before.keys()
    assert parts.make(copied[:2], 8, folder).name != part.name
    assert parts.make(copied, 16, folder).name != part.name


def test_an_image_that_cannot_be_read_has_no_identity(folder: str, tmp_path: Path) -> None:
    found = images(tmp_path)
    (tmp_path / "source" / "0.png").unlink()
    part = parts.make(found, 8, folder)
    first, *others = parts.load(folder, part.name)[1]
    assert (first.identity, first.reason) == ({}, f"[Errno 2] No such file or directory: '{found[0].location}'")
    assert all(row.identity for row in others)


@pytest.mark.parametrize("ending", ["rows", "bytes"])
@pytest.mark.parametrize("change", ["cut", "edit", "empty", "remove"])
def test_what_is_torn_or_edited_is_not_believed(part: Part, folder: str, ending: str, change: str) -> None:
    path = Path(folder, f"{part.name}.{ending}")
    data = path.read_bytes()
    edited = data.replace(b'"1.png"', b'"7.png"') if ending == "rows" else bytes([data[0] ^ 1]) + data[1:]
    changed = {"cut": data[:-1], "edit": edited, "empty": b"", "remove": None}[change]
    path.unlink()
    if changed is not None:
        path.write_bytes(changed)
    with pytest.raises(DamagedPart, match=part.name), parts.open_bytes(folder, part):
        parts.load(folder, part.name)


@pytest.mark.parametrize("header", ["[]", "{}", "null", '{"name": 1, "name": 2}', "[" * 10**5, "\x00"])
def test_other_files_with_such_a_name_are_not_believed(part: Part, folder: str, header: str) -> None:
    path = Path(folder, f"{part.name}.rows")
    path.write_text(header + "\n" + path.read_text().partition("\n")[2])
    with pytest.raises(DamagedPart):
        parts.load(folder, part.name)


def test_a_part_under_the_name_of_another_is_not_believed(part: Part, folder: str) -> None:
    name = "0" * 64
    for ending in ("rows", "bytes"):
        Path(folder, f"{part.name}.{ending}").rename(Path(folder, f"{name}.{ending}"))
    with pytest.raises(DamagedPart):
        parts.load(folder, name)


def test_only_parts_are_removed(part: Part, folder: str) -> None:
    left = f".{part.name}.bytes.0123abcd.partial"
    for name in ("mine.rows", f"{part.name}.txt", "notes", ".notes.0123abcd.partial", left):
        Path(folder, name).write_text("x")
    parts.remove(folder)
    assert content(folder).keys() == {"mine.rows", f"{part.name}.txt", "notes", ".notes.0123abcd.partial"}
    for path in Path(folder).iterdir():
        path.unlink()
    parts.remove(folder)
    parts.remove(folder)
    assert not Path(folder).exists()


def test_the_rows_name_the_time_before_the_first_image_was_read(folder: str, tmp_path: Path) -> None:
    times = list[int]()

    def read(path: str) -> bytes:
        times.append(time.time_ns())
        return opening.read(path)

    timed = [dataclasses.replace(each, read=functools.partial(read, each.location)) for each in images(tmp_path)]
    part = parts.make(timed, 8, folder)
    header = json.loads(Path(folder, f"{part.name}.rows").read_text().partition("\n")[0])
    assert header["began_ns"] == part.began_ns <= min(times)


def content(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
