"""A folder with one sub-folder per class: what counts as an image, as a class and as a split."""

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from localvertex._base.userinput.errors import UserError
from trainer.data.sources import remarks
from trainer.data.sources.folder import list_folder
from trainer.data.sources.layout import ListedSource
from trainer.data.sources.source import Source


def write_image(path: Path) -> None:
    """Write a small image, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (5, 5)).save(path)


def opened(directory: str) -> ListedSource:
    """Open a folder as a source."""
    return ListedSource(list_folder(directory))


def names(source: Source) -> list[str]:
    """The names of a source's images, in order."""
    return [image.name for image in source.images()]


def test_a_folder_per_class_is_read_sorted_and_hidden_files_are_skipped(tmp_path: Path) -> None:
    write_image(tmp_path / "dog" / "b.PNG")
    write_image(tmp_path / "dog" / "deeper" / "a.jpg")
    write_image(tmp_path / "Katze mit 'Hut' ü" / 'mein "Bild" ß.jpeg')
    write_image(tmp_path / "dog" / ".hidden.png")
    write_image(tmp_path / ".cache" / "x.png")
    write_image(tmp_path / "beside.png")
    (tmp_path / "dog" / ".DS_Store").write_bytes(b"x")
    (tmp_path / "dog" / "notes.txt").write_text("x")
    source = opened(str(tmp_path))
    assert source.class_names == ["Katze mit 'Hut' ü", "dog"]
    assert names(source) == ["Katze mit 'Hut' ü/mein \"Bild\" ß.jpeg", "dog/b.PNG", "dog/deeper/a.jpg"]
    assert [image.label for image in source.images()] == [0, 1, 1]
    assert source.remarks.to_list() == [
        (remarks.SYSTEM, 3, [".cache", "dog/.DS_Store", "dog/.hidden.png"]),
        (remarks.OTHER, 1, ["dog/notes.txt"]),
        (remarks.OUTSIDE, 1, ["beside.png"]),
    ]


def test_links_are_followed_but_not_in_cycles(tmp_path: Path) -> None:
    write_image(tmp_path / "elsewhere" / "x.png")
    write_image(tmp_path / "data" / "a" / "1.png")
    write_image(tmp_path / "data" / "b" / "1.png")
    os.symlink(tmp_path / "elsewhere", tmp_path / "data" / "b" / "linked")
    os.symlink(tmp_path / "data" / "a", tmp_path / "data" / "a" / "again")
    assert names(opened(str(tmp_path / "data"))) == ["a/1.png", "b/1.png", "b/linked/x.png"]


def test_a_link_to_a_folder_above_does_not_bring_other_classes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_image(tmp_path / name / "1.png")
    os.symlink(tmp_path, tmp_path / "a" / "up")
    os.symlink("itself", tmp_path / "a" / "itself")
    os.symlink("itself", tmp_path / "itself")
    source = opened(str(tmp_path))
    assert names(source) == ["a/1.png", "b/1.png"]
    assert source.remarks.counts[remarks.LOOPS] == 1
    assert source.remarks.counts[remarks.IRREGULAR] == 2
    os.symlink(tmp_path, tmp_path / "c")
    with pytest.raises(UserError, match=r"class folder 'c' .* has no image that can be read"):
        opened(str(tmp_path))


def test_two_classes_may_link_to_the_same_images(tmp_path: Path) -> None:
    write_image(tmp_path / "elsewhere" / "1.png")
    for name in ("a", "b"):
        (tmp_path / "data").mkdir(exist_ok=True)
        os.symlink(tmp_path / "elsewhere", tmp_path / "data" / name)
    assert names(opened(str(tmp_path / "data"))) == ["a/1.png", "b/1.png"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_image(tmp_path / name / "1.png")
    os.mkfifo(tmp_path / "a" / "fifo.png")
    os.mkfifo(tmp_path / "a" / "pipe")
    os.symlink("/dev/zero", tmp_path / "a" / "zero.png")
    os.symlink("nowhere", tmp_path / "a" / "lost.png")
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryDirectory() as short:
        listener.bind(f"{short}/s")
        os.rename(f"{short}/s", tmp_path / "a" / "socket.png")
    source = opened(str(tmp_path))
    assert names(source) == ["a/1.png", "b/1.png"]
    assert source.unreadable == [
        ("a/fifo.png", "not a regular file"),
        ("a/lost.png", "a broken link"),
        ("a/socket.png", "not a regular file"),
        ("a/zero.png", "not a regular file"),
    ]
    assert source.remarks.to_list() == [(remarks.IRREGULAR, 1, ["a/pipe"])]


def test_a_file_that_becomes_a_fifo_or_has_no_end_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_image(tmp_path / name / "1.png")
    os.symlink("/proc/self/mountinfo", tmp_path / "a" / "2.png")
    listed = {image.name: image for image in opened(str(tmp_path)).images()}
    with pytest.raises(OSError, match="a file of the operating system"):
        listed["a/2.png"].read()
    (tmp_path / "b" / "1.png").unlink()
    os.mkfifo(tmp_path / "b" / "1.png")
    with pytest.raises(OSError, match="not a regular file"):
        listed["b/1.png"].read()
    (tmp_path / "a" / "1.png").write_bytes(b"")
    os.truncate(tmp_path / "a" / "1.png", 2**30 + 1)
    with pytest.raises(OSError, match="1,073,741,825 bytes are more than"):
        listed["a/1.png"].read()


@pytest.mark.parametrize("directory", ["/proc", "/sys/class", "/dev", "/", "link"])
def test_folders_of_the_operating_system_are_refused(tmp_path: Path, directory: str) -> None:
    os.symlink("/proc/self", tmp_path / "link")
    with pytest.raises(UserError, match="belongs to the operating system"):
        opened(os.path.join(tmp_path, directory))


def test_a_link_into_the_operating_system_is_not_followed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_image(tmp_path / name / "1.png")
    os.symlink("/proc/self", tmp_path / "a" / "process")
    assert opened(str(tmp_path)).remarks.to_list() == [(remarks.KERNEL, 1, ["a/process"])]


def test_a_ram_disk_is_an_ordinary_folder() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        for name in ("a", "b"):
            write_image(Path(directory) / name / "1.png")
        assert names(opened(directory)) == ["a/1.png", "b/1.png"]


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Act as nobody if this is root, which may read everything."""
    root = os.geteuid() == 0
    try:
        os.seteuid(65534 if root else os.geteuid())
    except OSError:
        pytest.skip("root cannot act as another user here")
    try:
        yield
    finally:
        os.seteuid(0 if root else os.geteuid())


def test_a_folder_without_permission_is_refused_and_such_a_file_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    # The folder of temporary files, which has the list of the images, may belong to root alone.
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        os.chmod(directory, 0o755)
        for name in ("a", "b", "b/deep"):
            write_image(Path(directory) / name / "1.png")
        os.chmod(f"{directory}/b/deep", 0)
        with without_privileges(), pytest.raises(UserError, match=r"/b/deep: Permission denied; allow this user"):
            opened(directory)
        os.chmod(f"{directory}/b/deep", 0o755)
        os.chmod(f"{directory}/b/1.png", 0)
        with without_privileges(), pytest.raises(PermissionError, match="Permission denied"):
            [image.read() for image in opened(directory).images()]


def test_top_level_split_folders_are_kept(tmp_path: Path) -> None:
    for split in ("Train", "val", "test"):
        for name in ("a", "b"):
            write_image(tmp_path / split / name / "1.png")
    source = opened(str(tmp_path))
    assert source.class_names == ["a", "b"]
    assert [image.split for image in source.images()] == ["train", "train", "test", "test", "validation", "validation"]


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    write_image(tmp_path / "test" / "1.png")
    write_image(tmp_path / "production" / "1.png")
    source = opened(str(tmp_path))
    assert source.class_names == ["production", "test"]
    assert {image.split for image in source.images()} == {""}


def test_a_class_without_training_images_is_refused(tmp_path: Path) -> None:
    write_image(tmp_path / "train" / "a" / "1.png")
    write_image(tmp_path / "train" / "b" / "1.png")
    write_image(tmp_path / "test" / "c" / "1.png")
    with pytest.raises(UserError, match=r"class 'c' .* has no images in train"):
        opened(str(tmp_path))


def test_class_names_that_are_equal_in_utf8_are_refused(tmp_path: Path) -> None:
    for number, name in enumerate((b"caf\xe9", b"caf\xe8")):
        write_image(tmp_path / f"{number}" / "1.png")
        os.rename(tmp_path / f"{number}", os.fsencode(tmp_path) + b"/" + name)
    with pytest.raises(UserError, match=r"two folders in .* are both 'caf�' in UTF-8"):
        opened(str(tmp_path))


def test_file_names_that_are_not_utf8_are_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_image(tmp_path / "b" / "1.png")
    write_image(tmp_path / "plain.png")
    os.rename(os.fsencode(tmp_path / "plain.png"), os.fsencode(tmp_path / "a") + b"/caf\xe9.png")
    source = opened(str(tmp_path))
    image = next(source.images())
    assert image.name == "a/caf�.png"
    assert image.read().startswith(b"\x89PNG")
