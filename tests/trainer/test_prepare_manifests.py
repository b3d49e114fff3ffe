"""Preparing what manifests name: the fingerprint of a folder, bad lines, hostile paths, and manifests in a bucket."""

import json
import os
import random
from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from tests.trainer.test_prepare import noise, run
from trainer.data import dataset
from trainer.data.sources.factory import open_source
from vertex_testing.cloud_storage.server import CloudStorage

ML_USE = "aiplatform.googleapis.com/ml_use"
WORDS = {"train": "training", "validation": "validation", "test": "test"}


def folder(root: Path, num_images: int = 4) -> list[tuple[str, str, str]]:
    """Write a folder with splits, and return word of Vertex AI, path and label of each image."""
    rows = []
    for seed, (split, word) in enumerate(WORDS.items()):
        for label in ("cat", 'dog, "big"'):
            for number in range(num_images):
                path = root / split / label / f"{number}.png"
                noise(path, seed=1000 * seed + 10 * number + len(label))
                rows.append((word, str(path.relative_to(root)), label))
    random.Random(0).shuffle(rows)
    return rows


def csv_line(word: str, address: str, label: str) -> str:
    prefix = f"{word}," if word else ""
    quoted = label.replace('"', '""')
    return f'{prefix}"{address.replace(chr(34), chr(34) * 2)}","{quoted}"\n'


def json_line(word: str, address: str, label: str) -> str:
    line = {"imageGcsUri": address, "classificationAnnotation": {"displayName": label}}
    return json.dumps(line | ({"dataItemResourceLabels": {ML_USE: word}} if word else {})) + "\n"


def test_manifests_give_the_fingerprint_of_the_folder(tmp_path: Path) -> None:
    rows = folder(tmp_path / "images")
    expected = run(tmp_path / "images", tmp_path / "out")
    (tmp_path / "images" / "all.csv").write_text("".join(csv_line(*row) for row in rows))
    (tmp_path / "all.jsonl").write_text("".join(json_line(use, f"images/{path}", lb) for use, path, lb in rows))
    (tmp_path / "shards").mkdir()
    for index, (word, path, label) in enumerate(rows):
        with open(tmp_path / "shards" / f"{word}-{index % 2:05}-of-00002.jsonl", "a") as file:
            file.write(json_line("", f"../images/{path}" if index % 3 else f"{tmp_path}/images/{path}", label))
    sources = ["images/all.csv", "all.jsonl", "shards"]
    made = [run(tmp_path / source, tmp_path / f"out{number}") for number, source in enumerate(sources)]
    assert made == [expected] * 3
    names = {record.file_name for record in dataset.load(str(tmp_path / "out0")).records("test")}
    assert names == {path for word, path, _ in rows if word == "test"}


def test_unassigned_images_are_divided_as_those_of_a_folder(tmp_path: Path) -> None:
    for label in ("a", "b"):
        for number in range(8):
            noise(tmp_path / "images" / label / f"{number}.png", seed=100 * number + ord(label))
    lines = [csv_line("UNASSIGNED", f"images/{label}/{number}.png", label) for label in "ab" for number in range(8)]
    (tmp_path / "m.csv").write_text("".join(lines))
    assert run(tmp_path / "m.csv", tmp_path / "one") == run(tmp_path / "images", tmp_path / "two")


def test_bad_lines_and_missing_images_count_as_bad_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = folder(tmp_path)
    lines = [json_line(*row) for row in rows]
    bad = ["{\n", "\x00\n", json_line("", "http://x/1.jpg", "cat"), json_line("", "missing <b>.png", "cat")]
    (tmp_path / "m.jsonl").write_text("".join([*lines[:5], *bad, *lines[5:], "\n"]))
    with pytest.raises(UserError, match=r"3 of 28 images .* are bad, .*max_bad_fraction=0.1 .*\(m.jsonl:6: not JSON"):
        run(tmp_path / "m.jsonl", tmp_path / "out")
    with pytest.raises(UserError, match="4 of 28 images"):
        run(tmp_path / "m.jsonl", tmp_path / "out", max_bad_fraction=0.12)
    assert not (tmp_path / "out").exists()
    made = run(tmp_path / "m.jsonl", tmp_path / "out", max_bad_fraction=0.15)
    assert made["num_bad_files"] == 4
    assert made["num_examples"] == 24
    found = dataset.load(str(tmp_path / "out")).statistics["bad_files"]
    assert [name for name, _ in found] == ["m.jsonl:6", "m.jsonl:7", "m.jsonl:8", "missing <b>.png"]
    assert found[-1][1] == "No such file or directory (m.jsonl:9)"
    (note,) = capsys.readouterr().err.splitlines()
    assert "m.jsonl:6: not JSON" in note
    report = (tmp_path / "out.html").read_text()
    for text in (note, report):
        assert "few-images" not in text
        assert "blank lines, ignored" in text
    assert "missing &lt;b&gt;.png" in report


def test_googles_advice_is_a_warning_and_on_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = folder(tmp_path, num_images=3)
    (tmp_path / "m.csv").write_text("".join(csv_line(*row) for row in rows))
    run(tmp_path / "m.csv", tmp_path / "out")
    advice = "few-images: classes with fewer than 10 images (minimum recommended by Google)"
    assert f"warning: {advice}: 2 (cat: 9, " in capsys.readouterr().err
    assert advice in (tmp_path / "out.html").read_text()


def test_hostile_paths_read_nothing_of_the_system_and_write_only_the_output(tmp_path: Path) -> None:
    work = tmp_path / "work"
    rows = [(word, f"images/{path}", label) for word, path, label in folder(work / "images", num_images=12)]
    os.mkfifo(work / "pipe.png")
    (work / "link.png").symlink_to("/proc/self/environ")
    noise(tmp_path / "beside.png", seed=7)
    hostile = [
        *("/proc/self/environ", "/dev/zero", "//dev/zero", "../" * 20 + "proc/self/mem", "file:///etc/passwd"),
        *("/etc/passwd", "pipe.png", "link.png", ".", "/", "../beside.png\x00.png", "~/x.png"),
    ]
    lines = [csv_line(*row) for row in rows] + [csv_line("training", address, "cat") for address in hostile]
    # A file that the user may mean: its name stays inside of any folder that it is written to.
    lines.append(csv_line("training", "../beside.png", "cat"))
    (work / "m.csv").write_text("".join(lines))
    before = {path for path in tmp_path.rglob("*")}
    made = run(work / "m.csv", work / "out", max_bad_fraction=0.2)
    assert made["num_bad_files"] == len(hostile)
    assert made["num_examples"] == len(rows) + 1
    written = {path for path in tmp_path.rglob("*")} - before
    assert {path.relative_to(work).parts[0] for path in written} == {"out", "out.html"}
    made_names = {r.file_name for split in WORDS for r in dataset.load(str(work / "out")).records(split)}
    assert str(tmp_path / "beside.png").lstrip("/") in made_names
    assert not [name for name in made_names if name.startswith("/") or ".." in name.split("/")]


def test_manifests_in_a_bucket(server: CloudStorage, tmp_path: Path) -> None:
    server.buckets.create("manifests")
    rows = folder(tmp_path / "images", num_images=1)
    expected = run(tmp_path / "images", tmp_path / "out")
    for _, path, _ in rows:
        server.buckets.put("manifests", f"data/{path}", (tmp_path / "images" / path).read_bytes())
    for word in WORDS.values():
        lines = [json_line("", f"gs://manifests/data/{path}", label) for use, path, label in rows if use == word]
        server.buckets.put("manifests", f"export/{word}-00000-of-00001", "".join(lines).encode())
    in_csv = [csv_line(word, f"data/{path}", label) for word, path, label in rows]
    hostile = [csv_line("", address, "cat") for address in ("/etc/passwd", "../x.png")]
    server.buckets.put("manifests", "all.csv", "".join([*in_csv, *hostile]).encode())
    images = {f"data/{path}": next(split for split in WORDS if WORDS[split] == word) for word, path, _ in rows}
    for source in ("export", "export/", "all.csv"):
        listed = open_source(f"gs://manifests/{source}", "").images()
        assert {image.name: image.split for image in listed} == images, source
    made = run("gs://manifests/all.csv", tmp_path / "from bucket", max_bad_fraction=0.3)
    assert made == expected | {"num_bad_files": 2}
    for source, message in (("*.jsonl", "not found"), ("none.csv", "not found"), ("none", "not found")):
        with pytest.raises(UserError, match=message):
            open_source(f"gs://manifests/{source}", "")
    # A manifest that cannot be read now is neither missing nor empty.
    server.faults.fail(1000, 403)
    for source in ("all.csv", "export", "export/*"):
        with pytest.raises(PermissionError):
            open_source(f"gs://manifests/{source}", "")
