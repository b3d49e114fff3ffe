"""Lines of manifests: what Vertex AI's formats allow, what is bad, and what belongs to another task."""

import io
import json
import posixpath
import random
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from trainer.data.sources.manifests import addresses, lines
from trainer.data.sources.manifests.lines import BadLine, Entry, OtherTask

ML_USE = "aiplatform.googleapis.com/ml_use"


def as_json(**fields: object) -> str:
    return json.dumps({"imageGcsUri": "gs://images/1.jpg", "classificationAnnotation": {"displayName": "cat"}} | fields)


def reason(parse: Callable[[str], Entry], text: str) -> str:
    with pytest.raises(BadLine) as caught:
        parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gs://images/1.jpg,cat", ("gs://images/1.jpg", "cat", None)),
        ("training,gs://images/1.jpg,cat", ("gs://images/1.jpg", "cat", "train")),
        ("VALIDATION,gs://images/1.jpg,cat", ("gs://images/1.jpg", "cat", "validation")),
        ("test, gs://images/1.jpg , cat ,,", ("gs://images/1.jpg", "cat", "test")),
        ("UNASSIGNED,gs://images/1.jpg,cat", ("gs://images/1.jpg", "cat", "")),
        (",gs://images/1.jpg,cat", ("gs://images/1.jpg", "cat", None)),
        ('"a, b/ü 1.jpg","salt, ""pepper"""', ("a, b/ü 1.jpg", 'salt, "pepper"', None)),
        ("training/1.jpg,test", ("training/1.jpg", "test", None)),
    ],
)
def test_a_csv_line(text: str, expected: tuple[str, str, str | None]) -> None:
    entry = lines.parse_csv(text)
    assert (entry.address, entry.label, entry.split) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gs://images/1.jpg", "no label"),
        ("training,gs://images/1.jpg", "no label"),
        ("gs://images/1;2.jpg", "no label"),
        ("gs://images/1.jpg;cat", "separated by semicolons; save the file with commas"),
        ("training\tgs://images/1.jpg\tcat", "separated by tabs; save the file with commas"),
        ("training,", "'training' is not a path with a folder or an ending"),
        (",,", "no image"),
        ("ml_use,image,label", "'ml_use' is not a path with a folder or an ending; the format has no header"),
        ("I like it,positive", "the format has no header"),
        ("train set,gs://images/1.jpg,cat", "ml_use 'train set'; expected training, validation, test or UNASSIGNED"),
        ('gs://images/1.jpg,"cat', "not CSV on one line: unexpected end of data"),
        ('gs://images/1.jpg,"cat"x', "not CSV on one line: ',' expected after"),
        ("gs://images/1.jpg,c\rat", "not CSV on one line"),
        ("gs://images/1.jpg,c\x07at", r"label 'c\x07at' has a control character"),
        ("gs://images/1.jpg,c\u2028at", r"label 'c\u2028at' has a control character"),
        (f"gs://images/1.jpg,{'x' * 129}", "is longer than 128 characters"),
        ("gs://texts/1.txt,happy", "a file of a manifest for text"),
        ("gs://videos/1.mp4,run,0,10", "a file of a manifest for video"),
    ],
)
def test_a_bad_csv_line(text: str, expected: str) -> None:
    assert expected in reason(lines.parse_csv, text)


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("gs://images/1.jpg,cat,dog", "multi-label classification"),
        ("training,gs://images/1.jpg,cat,2,dog", "multi-label classification"),
        ("training,gs://images/1.jpg,cat,0.1,0.1,,,0.5,0.5,,", "object detection"),
    ],
)
def test_a_csv_line_of_another_task(text: str, task: str) -> None:
    with pytest.raises(OtherTask, match=task):
        lines.parse_csv(text)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("cat", None)),
        ({"dataItemResourceLabels": {"team": "a"}}, ("cat", None)),
        ({"dataItemResourceLabels": {ML_USE: "training"}}, ("cat", "train")),
        ({"dataItemResourceLabels": {ML_USE: "unassigned"}}, ("cat", "")),
        # What Vertex AI hands to jobs.
        ({"classificationAnnotation": None, "classificationAnnotations": [{"displayName": " dog"}]}, ("dog", None)),
        ({"classificationAnnotations": [{"displayName": "cat"}]}, ("cat", None)),
    ],
)
def test_a_json_line(fields: dict[str, object], expected: tuple[str, str | None]) -> None:
    entry = lines.parse_json(as_json(**fields))
    assert entry.address == "gs://images/1.jpg"
    assert (entry.label, entry.split) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON: Expecting property name"),
        ("gs://images/1.jpg,cat", "not JSON: Expecting value, column 1"),
        ("[" * 10_000, "not JSON: nested too deeply"),
        ('{"a":' * 10_000, "not JSON: nested too deeply"),
        ('{"a": 1, "a": 2}', "not JSON: a key is repeated"),
        ('{"a": NaN}', "not JSON: NaN is not a number in JSON"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("{}", "no imageGcsUri"),
        (as_json(imageGcsUri=" "), "no imageGcsUri"),
        (as_json(imageGcsUri=["gs://images/1.jpg"]), "no imageGcsUri"),
        (as_json(classificationAnnotation=None), "no label"),
        (as_json(classificationAnnotation="cat"), "an annotation without the text displayName"),
        (as_json(classificationAnnotation={"displayName": 3}), "an annotation without the text displayName"),
        (as_json(classificationAnnotation={"displayName": " "}), "no label"),
        (as_json(classificationAnnotation={"displayName": "\ud800"}), r"label '\ud800' has a control character"),
        (as_json(classificationAnnotations={}), "classificationAnnotations is not a list"),
        (as_json(dataItemResourceLabels=[1]), "dataItemResourceLabels is not a JSON object"),
        (as_json(dataItemResourceLabels={ML_USE: 1}), "ml_use is not text"),
        (as_json(dataItemResourceLabels={ML_USE: "\ud800" * 999}), "ml_use '"),
    ],
)
def test_a_bad_json_line(text: str, expected: str) -> None:
    if expected.startswith("classificationAnnotations is"):
        text = as_json(classificationAnnotations={"displayName": "cat"})
    assert expected in reason(lines.parse_json, text)


@pytest.mark.parametrize(
    ("fields", "task"),
    [
        ({"multiLabelClassificationAnnotations": []}, "multi-label classification"),
        ({"classificationAnnotations": [{"displayName": "dog"}]}, "multi-label classification"),
        ({"boundingBoxAnnotations": []}, "object detection"),
        ({"polygonAnnotations": []}, "image segmentation"),
        ({"textContent": "I like it"}, "text"),
        ({"videoGcsUri": "gs://videos/1.mp4"}, "video"),
    ],
)
def test_a_json_line_of_another_task(fields: dict[str, object], task: str) -> None:
    with pytest.raises(OtherTask, match=task):
        lines.parse_json(as_json(**fields))


def test_the_examples_of_the_manifests_page(repository: Path) -> None:
    in_csv, in_json = re.findall(r"^```\n(.*?)^```$", (repository / "docs" / "manifests.md").read_text(), re.M | re.S)
    entries = [lines.parse_csv(line) for line in in_csv.splitlines()]
    assert [entry.split for entry in entries] == ["train", "validation", "test", "", None]
    assert entries[2].label == "tulip, red"
    assert lines.parse_json(in_json) == entries[0]


def test_whatever_a_line_contains_it_is_an_entry_bad_or_of_another_task() -> None:
    """Lines that were damaged at random places, as text and as bytes."""
    chosen = random.Random(15)
    good = {lines.parse_csv: 'training,gs://images/1.jpg,"cat"', lines.parse_json: as_json(x={ML_USE: ["test", 1.5]})}
    pieces = [*'",{}[]:\\/.~\r\t\0é', "\ud800", "null", "1e999", "gs://", "..", "test,", '"imageGcsUri":', "x" * 9999]
    kinds = set()
    for parse, line in good.items():
        for _ in range(3000):
            text = line
            for _ in range(chosen.randint(1, 4)):
                at = chosen.randrange(len(text) + 1)
                text = text[:at] + chosen.choice(pieces) + text[at + chosen.randint(0, 3) :]
            base = chosen.choice(["/data", "gs://images/a"])
            try:
                location, name = addresses.resolve(parse(text).address, base)
            except (BadLine, OtherTask) as error:
                kinds.add(type(error).__name__)
                continue
            kinds.add("good")
            assert location.startswith(("gs://", "/" if base == "/data" else "gs://"))
            assert posixpath.normpath(posixpath.join("/out", name)).startswith("/out/")
            assert name.encode()
    assert kinds == {"good", "BadLine", "OtherTask"}


def test_lines_are_numbered_whatever_ends_them() -> None:
    long = b"x" * lines.MAX_LINE_BYTES
    data = b"\xef\xbb\xbfa\r\n\n" + long + long + b"\nb\n" + long + b"\n \t\nlast"
    assert list(lines.number_lines(io.BytesIO(data))) == [
        *((1, b"a"), (2, b""), (3, None), (4, b"b")),
        *((5, None), (6, b""), (7, b"last")),
    ]


def test_the_longest_line_is_a_byte_shorter_than_the_limit() -> None:
    data = b"x" * (lines.MAX_LINE_BYTES - 1)
    assert [line for _, line in lines.number_lines(io.BytesIO(data))] == [data]
    assert [line for _, line in lines.number_lines(io.BytesIO(data + b"\n"))] == [data]


@pytest.mark.parametrize(
    ("line", "expected"),
    [(None, "longer than 65,536 bytes"), (b"a\0b", "a null character"), ("café".encode("latin-1"), "not UTF-8")],
)
def test_bytes_that_are_not_text(line: bytes | None, expected: str) -> None:
    with pytest.raises(BadLine, match=expected):
        lines.text_of(line)


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    with open(tmp_path / "huge.csv", "wb+") as file:
        file.truncate(2**25)
        tracemalloc.start()
        assert [number for number, _ in lines.number_lines(file)] == [1]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2**20
