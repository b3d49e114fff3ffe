"""The images of manifests: labels, splits and names; bad lines are counted and named; wrong manifests are one line."""

import json
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from localvertex._base.userinput.errors import UserError
from trainer.data.sources.factory import open_source
from trainer.data.sources.manifests import source as manifests
from trainer.data.sources.source import Source

ML_USE = "aiplatform.googleapis.com/ml_use"


def opened(path: Path, *lines: str) -> Source:
    path.write_text("".join(f"{line}\n" for line in lines))
    return open_source(str(path), "")


def as_json(address: str, label: str, **more: object) -> str:
    return json.dumps({"imageGcsUri": address, "classificationAnnotation": {"displayName": label}, **more})


def rows(source: Source) -> list[tuple[str, str, str]]:
    return [(image.name, source.class_names[image.label], image.split) for image in source.images()]


def test_csv_and_json_lines_give_the_same_images(tmp_path: Path) -> None:
    uses = {"": "train", "training": "train", "test": "test", "validation": "validation"}
    in_csv = opened(
        tmp_path / "training-1.csv",
        *(f"{use},gs://images/{use}{label}.jpg,{label}" for use in uses for label in ("dog", "cat")),
    )
    in_json = opened(
        tmp_path / "training-1.jsonl",
        *(
            as_json(
                f"gs://images/{use}{label}.jpg", label, **({"dataItemResourceLabels": {ML_USE: use}} if use else {})
            )
            for use in uses
            for label in ("dog", "cat")
        ),
    )
    assert in_csv.class_names == in_json.class_names == ["cat", "dog"]
    expected = [(f"{use}{label}.jpg", label, split) for use, split in uses.items() for label in ("dog", "cat")]
    assert rows(in_csv) == rows(in_json) == expected


def test_one_label_in_two_spellings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"classes 'big cat' and 'big_cat' of .*m\.csv' are the same name in two"):
        opened(tmp_path / "m.csv", "1.jpg,big cat", "2.jpg,big_cat", "3.jpg,dog")


def test_names_are_unique(tmp_path: Path) -> None:
    source = opened(
        tmp_path / "m.csv",
        *("gs://one/1.jpg,a", "gs://two/1.jpg,b", "1.jpg,a", "gs://one//1.jpg,b", f"{tmp_path}/1.jpg,a"),
    )
    names = [name for name, _, _ in rows(source)]
    assert names[0] == "1.jpg"
    assert len(set(names)) == len(names) == 4
    assert all(name.endswith("/1.jpg") for name in names[1:])
    assert source.remarks.to_list()[0] == (manifests.REPEATED, 1, ["m.csv:5"])


def test_an_image_of_two_splits_is_in_the_one_that_prepare_prefers(tmp_path: Path) -> None:
    lines = ["training,1.jpg,a", "test,1.jpg,a", "validation,1.jpg,a", "training,2.jpg,a", "training,3.jpg,b"]
    source = opened(tmp_path / "m.csv", *lines)
    assert rows(source) == [("1.jpg", "a", "test"), ("2.jpg", "a", "train"), ("3.jpg", "b", "train")]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "no line of '{}' can be used (it is empty); expected gs://BUCKET/NAME,LABEL in .csv"),
        (["http://x/1.jpg,a"], "no line of '{}' can be used (m.csv:1: http: is not read"),
        (["1.jpg,a"], "only one label in '{}': 'a'; expected two or more"),
        (
            ["1.jpg,a", "2.jpg", "gs://b"],
            "only one label in '{}': 'a', and 2 lines were refused (m.csv:2: no label, m.csv:3: no label)",
        ),
        (["1.jpg;a", "2.jpg;b"], "no line of '{}' can be used (m.csv:1: separated by semicolons; save the file with"),
        (
            ["1.jpg,a", "2.jpg,b", "", "1.jpg,b"],
            "m.csv:4 gives '1.jpg' the label 'b' after 'a' in m.csv:1; multi-label",
        ),
        (["1.jpg,a", "2.jpg,a,b"], "m.csv:2 is of a manifest for multi-label classification, which is not supported"),
        (["1.jpg,a", "2.jpg,a,0,0,,,1,1"], "m.csv:2 is of a manifest for object detection"),
        (["training,1.jpg,a", "validation,2.jpg,b"], "none of its lines is in test"),
        (["test,1.jpg,a", "validation,2.jpg,b"], "none of its lines is in train"),
        (["training,1.jpg,a", "test,2.jpg,b", "3.jpg,a"], "label 'b' of '{}' has no images in train"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_one_line(tmp_path: Path, lines: list[str], expected: str) -> None:
    with pytest.raises(UserError) as caught:
        opened(tmp_path / "m.csv", *lines)
    assert expected.format(tmp_path / "m.csv") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "m.csv") not in [each.path for each in psutil.Process().open_files()]


def test_manifests_that_are_all_bad_take_no_endless_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_MAX_BAD_LINES", 1000)
    with pytest.raises(UserError, match=r"more than 1,000 lines of '.*' are bad \(m.csv:1: no label, .* 998 more\)"):
        opened(tmp_path / "m.csv", *(f"{i}.jpg" for i in range(5000)))


def test_missing_images_name_their_line(tmp_path: Path) -> None:
    source = opened(tmp_path / "m.csv", "missing.jpg,a", "2.jpg,b")
    with pytest.raises(OSError, match=r"^No such file or directory \(m.csv:1\)$"):
        next(source.images()).read()


@pytest.mark.parametrize(
    ("written", "on_disk"),
    [
        ("Cafe\u0301/1.jpg", "Caf\u00e9/1.jpg"),
        ("Caf\u00e9/1.jpg", "Cafe\u0301/1.jpg"),
        ("IMG/Photo.jpg", "img/photo.JPG"),
        ("img\\photo.jpg", "img/photo.jpg"),
        ("a%20b/1%20.jpg", "a b/1 .jpg"),
        ("a b.jpg", "a%20b.jpg"),
        ("Bilder\\STRASSE%20Caf\u00e9.jpg", "bilder/stra\u00dfe cafe\u0301.jpg"),
    ],
)
def test_a_missing_image_names_the_file_that_is_probably_meant(tmp_path: Path, written: str, on_disk: str) -> None:
    (tmp_path / on_disk).parent.mkdir(exist_ok=True)
    (tmp_path / on_disk).write_bytes(b"x")
    source = opened(tmp_path / "m.csv", f"{written},a", "2.jpg,b")
    image = next(source.images())
    for look in (image.read, image.identity):
        with pytest.raises(OSError, match=r"\(m.csv:1\)$") as caught:
            look()
        assert repr(str(tmp_path / on_disk)) in str(caught.value)


def test_a_missing_image_is_not_searched_outside_its_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.jpg").write_bytes(b"x")
    (tmp_path / "data").mkdir()
    source = opened(tmp_path / "data" / "m.csv", "%2e%2e/Secret.jpg,a", "x/%2e%2e%2fsecret.jpg,b")
    for image in source.images():
        with pytest.raises(OSError, match=r"^No such file or directory \(m.csv:\d\)$"):
            image.read()


BAD: dict[str, Callable[[int], bytes]] = {
    "not JSON": lambda i: f'{{"imageGcsUri": "gs://images/{i}.jpg"'.encode(),
    "nested too deeply": lambda i: b"[" * 10_000,
    "a key is repeated": lambda i: b'{"a": 1, "a": 1}',
    "no imageGcsUri": lambda i: b'{"classificationAnnotation": {"displayName": "a"}}',
    "no label": lambda i: f'{{"imageGcsUri": "gs://images/{i}.jpg"}}'.encode(),
    "not UTF-8": lambda i: as_json("gs://images/1.jpg", "x").replace("x", "\xe4").encode("latin-1"),
    "a null character": lambda i: as_json("gs://images/1.jpg", "a").encode("utf-16-le"),
    "longer than 65,536 bytes": lambda i: as_json("gs://images/1.jpg", "a" * 70_000).encode(),
    "a control character": lambda i: as_json(f"gs://images/{i}.jpg", "a\u0007\ud800").encode(),
    "longer than 128 characters": lambda i: as_json(f"gs://images/{i}.jpg", "\U0001f600" * 129).encode(),
    "names no object": lambda i: as_json("gs://images/", "a").encode(),
    "names no bucket": lambda i: as_json("gs://", "a").encode(),
    "http: is not read": lambda i: as_json(f"http://example.com/{i}.jpg", "a").encode(),
    "file: is not read": lambda i: as_json("file:///etc/passwd", "a").encode(),
    "the operating system": lambda i: as_json("../../../../../../../../proc/self/mem", "a").encode(),
    "ml_use": lambda i: as_json(f"{i}.jpg", "a", dataItemResourceLabels={ML_USE: "TRAIN\n"}).encode(),
}


@pytest.mark.parametrize("num_lines", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_every_kind_of_bad_line_is_counted_and_named(tmp_path: Path, num_lines: int) -> None:
    """1% of each kind, shuffled, beside lines that are blank or repeated; images are looked for when they are read."""
    each = num_lines // 100
    good = [as_json(f"{i}.jpg", f"label {i % 7}").encode() for i in range(num_lines - each * (len(BAD) + 2))]
    content = [(kind, make(i)) for kind, make in BAD.items() for i in range(each)]
    content += [("blank", b" \t")] * each + [("repeated", good[i]) for i in range(each)]
    random.Random(15).shuffle(content)
    lines = [("", line) for line in good] + content
    (tmp_path / "m.jsonl").write_bytes(b"\n".join(line for _, line in lines))
    source = open_source(str(tmp_path / "m.jsonl"), "")
    assert [name for name, _, _ in rows(source)] == [f"{i}.jpg" for i in range(len(good))]
    found = dict(source.unreadable)
    for number, (kind, _) in enumerate(lines, 1):
        name = f"m.jsonl:{number}"
        assert kind in found.pop(name) if kind in BAD else name not in found
    assert not found
    assert [(kind, count) for kind, count, _ in source.remarks.to_list()[:2]] in (
        [(manifests.BLANK, each), (manifests.REPEATED, each)],
        [(manifests.REPEATED, each), (manifests.BLANK, each)],
    )


def test_memory_does_not_grow_with_the_length_of_lines(tmp_path: Path) -> None:
    """Reasons are short, whatever they quote."""
    path = tmp_path / "m.csv"
    bad = [f"{'x' * 60_000},{'a' * 5000}", f"training,{'y' * 60_000},b", f"http://{'z' * 60_000},b"]
    path.write_text("1.jpg,a\n2.jpg,b\n" + "".join(f"{line}\n" for line in bad * 20))
    tracemalloc.start()
    source = open_source(str(path), "")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(source.unreadable) == 60
    assert peak < 2**20


def test_images_of_a_folder_whose_name_is_not_utf_8_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    os.mkdir(folder)
    for name in ("1.jpg", "2.jpg"):
        Path(folder, name).write_bytes(name.encode())
    Path(folder, "m.csv").write_text("1.jpg,a\n2.jpg,b\n1.jpg,a\n")
    # Only a relative source can be in such a folder.
    monkeypatch.chdir(folder)
    images = list(open_source("m.csv", "").images())
    assert [(image.name, image.read()) for image in images] == [("1.jpg", b"1.jpg"), ("2.jpg", b"2.jpg")]
    assert os.fsencode(images[0].location) == os.fsencode(folder) + b"/1.jpg"
