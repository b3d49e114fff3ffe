"""What is a split, what is a class and what is neither: the same for a local folder and for one in a bucket."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from localvertex._base.userinput.errors import UserError
from tests.trainer.data.sources.test_folder import write_image
from trainer.data import images
from trainer.data.sources import factory, remarks
from trainer.data.sources.folder import list_folder
from trainer.data.sources.layout import ListedSource

NO_IMAGES = (
    ".pdf .mpg .mpeg .ps .h5 .hdf .grib .bufr .fit .fits .iim .fli .flc .gbr .palm .pcd .pxr .ras .msp .im .ftc .ftu "
    ".blp .cur .dcx .bw .rgb .rgba .icb .vda .vst .xbm .xpm"
).split()
"""Endings in Pillow's list of documents, films, measurements and formats that no program writes any more."""
Opener = Callable[[list[str]], ListedSource]
SPLITS = [f"{split}/{name}/1.png" for split in ("train", "validation", "test") for name in ("a", "b")]
SYSTEM = [
    *("__MACOSX", "lost+found", "@eaDir", "$RECYCLE.BIN", "System Volume Information", "#recycle"),
    *(".git", ".Trashes", ".ipynb_checkpoints", ".Spotlight-V100", ".fseventsd", ".venv"),
]


@pytest.fixture(params=["folder", "bucket"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """A function that opens a source of files with these names."""

    def in_folder(names: list[str]) -> ListedSource:
        for name in names:
            write_image(tmp_path / name) if name.endswith(".png") else _write(tmp_path / name)
        return ListedSource(list_folder(str(tmp_path)))

    def in_bucket(names: list[str]) -> ListedSource:
        buckets = request.getfixturevalue("server").buckets
        for name in names:
            buckets.put("b", f"data/{name}", b"")
        return ListedSource(factory.list_objects("gs://b/data"))

    return in_folder if request.param == "folder" else in_bucket


def _write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")


def splits(source: ListedSource) -> set[str]:
    return {image.split for image in source.images()}


@pytest.mark.parametrize("system", SYSTEM)
def test_folders_of_the_system_beside_splits_are_ignored_and_remarked(opened: Opener, system: str) -> None:
    source = opened([*SPLITS, f"{system}/train/a/2.png", f"{system}/3.png", f"train/a/{system}/4.png"])
    assert source.class_names == ["a", "b"]
    assert sorted(image.name for image in source.images()) == sorted(SPLITS)
    assert splits(source) == {"train", "validation", "test"}
    assert source.remarks.to_list() == [(remarks.SYSTEM, 2, [system, f"train/a/{system}"])]


def test_folders_of_the_system_beside_classes_are_no_classes(opened: Opener) -> None:
    source = opened(["a/1.png", "b/1.png", *(f"{system}/1.png" for system in SYSTEM)])
    assert source.class_names == ["a", "b"]
    assert source.remarks.counts[remarks.SYSTEM] == len(SYSTEM)


def test_files_of_the_system_are_ignored(opened: Opener) -> None:
    names = [".DS_Store", "Thumbs.db", "a/Thumbs.db", "a/._1.png", "b/desktop.ini"]
    source = opened(["a/1.png", "b/1.png", *names])
    assert source.remarks.to_list() == [(remarks.SYSTEM, 5, sorted(names))]


@pytest.mark.parametrize("spelling", ["TRAIN VAL TEST", "Training Valid Testing", "train dev test", "train val"])
def test_spellings_of_splits(opened: Opener, spelling: str) -> None:
    source = opened([f"{split}/{name}/1.png" for split in spelling.split() for name in ("a", "b")])
    assert source.class_names == ["a", "b"]
    assert splits(source) == {"train", "validation", "test"} - ({"test"} if spelling == "train val" else set())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([*SPLITS, "labels/1.png"], r"split folders \('test', 'train', 'validation'\) beside other folders \(labels\)"),
        ([*SPLITS, "labels/list.txt"], r"beside other folders \(labels\)"),
        ([*SPLITS, "extra/a/1.png", "more/1.png"], r"beside other folders \(extra, more\); move the others"),
        (["train/a/1.png", "train/b/1.png", "cat/1.png"], r"split folders \('train'\) beside other folders \(cat\)"),
        (["train/1.png", "train/b/1.png", "cat/1.png"], r"split folders \('train'\) beside other folders \(cat\)"),
        (["test/a/1.png", "val/a/1.png", "cat/1.png"], r"split folders \('test', 'val'\) beside other folders \(cat\)"),
        (["test/a/1.png", "val/b/1.png"], r"split folders \('test', 'val'\) but no train"),
        (["train/1.png", "test/2.png"], r"no images in .*images outside a class folder, ignored: 2 "),
        (
            ["a/1.png", "b/1.png", "c/1.heic", "c/2.HEIF"],
            r"class folder 'c' .*unreadable images: 2 \(c/1.heic: HEIC",
        ),
        (["a/1.png", "b/1.png", "c/notes.txt"], r"class folder 'c' .*it is empty or has only other files\); add"),
        (["train/a/1.png", "train/b/1.png", "train/c/1.avif"], r"class folder 'train/c' .*AVIF is not read; convert"),
        (
            ["a/1.heic", "b/2.heic"],
            r"no images in .*unreadable images: 2 \(a/1.heic: HEIC is not read; conv",
        ),
        ([*SPLITS[:2], "test/1.png", "test/2.png"], r"folder 'test' of .* has images, but no class folders; sort its"),
        (["a/train/1.png", "a/test/2.png", "b/3.png"], r"class 'a' of .* has split folders, but other images are in"),
        (["a/Train/1.png", "a/val/2.png", "b/train/3.png", "b/more/4.png"], r"class 'a' of .* has split folders, but"),
        (["a/train/1.png", "a/test/2.png", "b/test/3.png"], r"class 'b' of .* has no images in train"),
        (["a/train/1.png", "a/test/2.png", "b/train/1.heic"], r"class folder 'b' of .*b/train/1.heic: HEIC is"),
        (["caf\u00e9/1.png", "cafe\u0301/2.png"], r"classes 'cafe\\u0301' and 'caf\\xe9' of .* the same name in two"),
        (
            ["big cat/1.png", "big_cat/2.png"],
            r"classes 'big cat' and 'big_cat' of .* are the same name in two spellings",
        ),
        (["__MACOSX/a/1.png", ".git/b/2.png"], r"no images in .*system or hidden files and folders, ignored: 2 "),
    ],
)
def test_ambiguous_folders_and_vanishing_classes_are_one_line(opened: Opener, names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        opened(names)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "class_names"),
    [
        (["train/1.png", "car/1.png", "bus/1.png"], ["bus", "car", "train"]),
        (["test/1.png", "dev/1.png", "production/1.png"], ["dev", "production", "test"]),
        (["test/monday/1.png", "production/monday/1.png"], ["production", "test"]),
    ],
)
def test_a_class_may_have_the_name_of_a_split(opened: Opener, names: list[str], class_names: list[str]) -> None:
    source = opened(names)
    assert source.class_names == class_names
    assert splits(source) == {""}


@pytest.mark.parametrize("spelling", ["train val test", "Training Testing", "train dev"])
def test_splits_may_be_folders_in_the_class_folders(opened: Opener, spelling: str) -> None:
    names = spelling.split()
    source = opened([f"{name}/{split}/more/1.png" for split in names for name in ("a", "b")])
    assert source.class_names == ["a", "b"]
    assert source.num_images == 2 * len(names)
    found = {(image.name.split("/")[1], image.split) for image in source.images()}
    expected = {"train": "train", "training": "train", "test": "test", "testing": "test"}
    assert found == {(name, expected.get(name.lower(), "validation")) for name in names}


@pytest.mark.parametrize(
    "names",
    [["a/train/1.png", "b/train/2.png"], ["a/test/1.png", "b/2.png"], ["a/dev/1.png", "a/test/1.png", "b/2.png"]],
)
def test_other_folders_in_classes_are_not_splits(opened: Opener, names: list[str]) -> None:
    """A class may have folders of any names; those of a split without train are no splits."""
    assert splits(opened(names)) == {""}


def test_an_empty_folder_of_one_split_is_fine_where_the_class_is_in_train(opened: Opener) -> None:
    source = opened(["train/a/1.png", "train/b/1.png", "test/a/1.png", "test/b/notes.txt"])
    assert source.class_names == ["a", "b"]


def test_an_empty_class_folder_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_image(tmp_path / name / "1.png")
    (tmp_path / "c").mkdir()
    with pytest.raises(UserError, match=r"class folder 'c' .*it is empty .* remove the folder"):
        ListedSource(list_folder(str(tmp_path)))


def test_images_in_formats_that_are_not_read_are_named_and_left_out(opened: Opener) -> None:
    source = opened(["a/1.png", "a/2.HEIC", "b/1.png", "b/2.jp2", "b/3.jxl", "c.heic"])
    assert source.unreadable == [
        ("a/2.HEIC", "HEIC is not read; convert it to JPEG"),
        ("b/2.jp2", "JPEG 2000 is not read; convert it to JPEG"),
        ("b/3.jxl", "JPEG XL is not read; convert it to JPEG"),
    ]
    assert [image.name for image in source.images()] == ["a/1.png", "b/1.png"]


@pytest.mark.parametrize("ending", [*Image.registered_extensions(), ".dng", ".svg"])
def test_a_file_that_pillow_knows_as_an_image_is_read_or_named(opened: Opener, ending: str) -> None:
    if ending in NO_IMAGES:
        return
    source = opened(["a/1.png", "b/1.png", f"a/2{ending.upper()}"])
    assert "2" in [name[2:3] for name in [*(each.name for each in source.images()), *dict(source.unreadable)]]


def test_formats_of_other_names_are_read(tmp_path: Path) -> None:
    for name in ("a/1.jpe", "a/2.mpo", "a/3.apng", "b/1.dib", "b/2.ico", "b/3.tga"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (16, 16), "red").save(tmp_path / name, "JPEG" if name.endswith("mpo") else None)
    found = [images.decode(image.read()) for image in ListedSource(list_folder(str(tmp_path))).images()]
    assert [each.getpixel((4, 4))[0] > 250 for each in found] == [True] * 6


def test_names_in_a_remark_are_bounded_and_have_no_line_breaks(opened: Opener) -> None:
    source = opened(["a/1.png", "b/1.png", *(f"a/{number:03d}\n.txt" for number in range(50))])
    (phrase,) = source.remarks.describe()
    assert phrase == f"{remarks.OTHER}: 50 (a/000\ufffd.txt, a/001\ufffd.txt, a/002\ufffd.txt and 47 more)"
    assert len(source.remarks.to_list()[0][2]) == 10
