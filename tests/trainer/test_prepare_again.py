"""An incremental run makes the same bytes as a full run."""

import contextlib
import dataclasses
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import features

from localvertex._base.userinput.errors import UserError
from tests.support.growing import InBucket, Local, Place, change, content, fill, png, run
from trainer.data.dataset import load
from trainer.data.preparing import attempt, dataset_files, image_list, parts, prefixes, versions
from trainer.data.preparing.previous import rows as previous_rows
from trainer.data.preparing.previous.dataset import PreviousDataset
from trainer.data.preparing.previous.history import HistoryEntry, Unusable
from trainer.data.preparing.previous.rows import gather
from trainer.data.preparing.rows import from_values
from trainer.data.sources import opening
from trainer.data.splits import SPLITS
from trainer.data.stored.records import parse
from vertex_testing.cloud_storage.server import CloudStorage

NOTHING_READ = "note: 0 images read"


@pytest.fixture(autouse=True)
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards per split; files count as unchanged at once, because no test changes one twice in a moment."""
    monkeypatch.setattr(prefixes, "TARGET_BYTES", 5000)
    monkeypatch.setattr(previous_rows, "SETTLING_NS", 0)


@pytest.fixture
def local(tmp_path: Path) -> Local:
    place = Local(tmp_path)
    fill(place)
    return place


@pytest.fixture
def in_bucket(server: CloudStorage) -> InBucket:
    place = InBucket(server)
    fill(place)
    return place


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The locations of the images that were read."""
    found: list[str] = []

    def counted(look: Callable[[str], bytes]) -> Callable[[str], bytes]:
        def look_and_count(location: str) -> bytes:
            found.append(location)
            return look(location)

        return look_and_count

    monkeypatch.setattr(opening, "read", counted(opening.read))
    return found


def check_sequence(place: Place, seed: int, num_steps: int) -> None:
    """After each change, the next dataset has the bytes of one that was made by reading all images."""
    rng = random.Random(seed)
    run(place, "0")
    for step in range(1, num_steps + 1):
        kinds = [change(place, rng) for _ in range(rng.randrange(5))]
        place.copy_tree("root", f"full-root{step}")
        run(place, str(step))
        full = {"pipeline_root": f"{place.address}/full-root{step}", "reread": True}
        run(place, f"full{step}", **full)
        assert content(place, str(step)) == content(place, f"full{step}"), (seed, step, kinds)


def test_changed_sources_give_the_bytes_of_a_full_run(local: Local) -> None:
    check_sequence(local, seed=1, num_steps=1)


@pytest.mark.slow
def test_changed_sources_in_a_bucket_give_the_bytes_of_a_full_run(in_bucket: InBucket) -> None:
    check_sequence(in_bucket, seed=2, num_steps=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(100, 106), *(pytest.param(n, marks=pytest.mark.soak) for n in range(106, 116))]
)
def test_random_changes(local: Local, seed: int) -> None:
    check_sequence(local, seed, num_steps=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [200, *(pytest.param(n, marks=pytest.mark.soak) for n in range(201, 204))])
def test_random_changes_in_a_bucket(in_bucket: InBucket, server: CloudStorage, seed: int) -> None:
    server.faults.num_rewrite_calls = 3
    check_sequence(in_bucket, seed, num_steps=2)


def test_a_folder_that_grows_from_20_to_2000_images_moves_none_to_another_split(tmp_path: Path) -> None:
    local, before = Local(tmp_path), dict[str, str]()
    for number, size in enumerate((10, 12, 30, 75, 150, 1000)):
        fill(local, size)
        run(local, str(number))
        after = {line["name"]: line["split"] for line in image_list.read(str(local.folder / str(number)))}
        assert after.items() >= before.items()
        assert all(list(after.values()).count(split) >= 2 * round(size / 10 * 0.8) for split in SPLITS)
        before = after
    assert len(before) == 2000


def test_only_new_images_are_read(local: Local, read: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    metadata = run(local, "one")
    assert metadata["num_read"] == len(read) == 24
    before = content(local, "one")
    read.clear()
    local.write("source/a/new.png", png(9999))
    metadata = run(local, "two")
    assert read == [f"{local.address}/source/a/new.png"]
    assert metadata["num_read"] == 1
    assert "note: 1 images read" in capsys.readouterr().err
    assert content(local, "one") == before


def test_a_class_before_all_others_gives_every_record_another_label(local: Local) -> None:
    run(local, "one")
    for number in range(4):
        local.write(f"source/0/{number}.png", png(5000 + number))
    assert run(local, "two")["num_read"] == 4
    run(local, "full", reread=True)
    assert content(local, "two") == content(local, "full")


def test_labels_that_a_manifest_exchanges_change_the_records_of_equal_images_too(local: Local) -> None:
    for number in range(3):
        local.write(f"source/b/copy{number}.png", local.read("source/a/0.png"))
    paths = local.paths("source")

    def manifest(labels: dict[str, str]) -> bytes:
        return "".join(f"{local.address}/source/{path},{labels[path[0]]}\n" for path in paths).encode()

    options = {"source": f"{local.address}/all.csv"}
    local.write("all.csv", manifest({"a": "a", "b": "b"}))
    assert run(local, "one", **options)["num_read"] == len(paths) == 27
    local.write("all.csv", manifest({"a": "b", "b": "a"}))
    assert run(local, "two", **options)["num_read"] == 0
    run(local, "full", reread=True, **options)
    assert content(local, "two") == content(local, "full")
    labels = {split: [record.label for record in load(f"{local.address}/two").records(split)] for split in SPLITS}
    assert labels != {
        split: [record.label for record in load(f"{local.address}/one").records(split)] for split in SPLITS
    }


def test_a_record_of_another_image_is_never_taken(local: Local, tmp_path: Path) -> None:
    run(local, "one")
    (history_file,) = (local.folder / "root").rglob("latest.json")
    (entry,) = json.loads(history_file.read_text())
    (tmp_path / "scratch").mkdir()
    with contextlib.closing(PreviousDataset(HistoryEntry(**entry), tmp_path / "scratch", image_size=16)) as previous:
        rows = sorted((from_values(values) for values, _ in previous.rows()), key=lambda row: row.content_hash or "")
        for split in SPLITS:
            own = [
                dataclasses.replace(row, offset=number)
                for number, row in enumerate(r for r in rows if r.origin == split)
            ]
            taken = list(previous.records(own))
            assert [parse(each).file_name for each in taken] == [row.name for row in own]
            # In any order, as the next dataset may have other splits.
            assert list(previous.records(own[::-1])) == taken[::-1]
            for wrong in ({"offset": own[1].offset}, {"name": own[1].name}, {"content_hash": own[1].content_hash}):
                with pytest.raises(Unusable, match=r"has another image for"):
                    list(previous.records([dataclasses.replace(own[0], **wrong)]))


@pytest.mark.slow
def test_a_run_that_reads_all_images_says_so_in_its_figures(local: Local, read: list[str]) -> None:
    run(local, "one")
    read.clear()
    assert run(local, "two")["num_read"] == 0
    assert read == []
    metadata = run(local, "three", reread=True)
    assert metadata["num_read"] == len(read) == 24
    assert content(local, "one") == content(local, "two") == content(local, "three")


@pytest.mark.slow
def test_what_cannot_be_used_is_said_in_one_line_and_all_images_are_read(
    local: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    run(local, "one")
    one = local.folder / "one"
    shard = sorted(one.glob("*.array_record*"))[0]
    (history_file,) = (local.folder / "root").rglob("latest.json")
    damages: dict[Path, Callable[[bytes], bytes | None]] = {
        shard: lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        one / "dataset.json": lambda data: data.replace(b'"format_version": 2', b'"format_version": 1'),
        one / "images.jsonl.gz": lambda data: data[:-9],
        sorted(one.glob("*.array_record*"))[1]: lambda data: None,
        history_file: lambda data: data[:-20],
    }
    state = history_file.read_bytes()
    for number, (path, damage) in enumerate(damages.items()):
        data = path.read_bytes()
        changed = damage(data)
        path.unlink()
        if changed is not None:
            path.write_bytes(changed)
        capsys.readouterr()
        metadata = run(local, f"after{number}")
        lines = [line for line in capsys.readouterr().err.splitlines() if "previous dataset" in line]
        assert len(lines) == 1, (path, lines)
        assert str(path) in lines[0] or "shard" in lines[0]
        assert "all images are read again" in lines[0]
        assert metadata["num_read"] == 24
        path.write_bytes(data)
        history_file.write_bytes(state)
        assert content(local, f"after{number}") == content(local, "one")
    shutil.rmtree(one)
    assert run(local, "last")["num_read"] == 24
    assert f"{one}/dataset.json is missing" in capsys.readouterr().err


def test_a_previous_dataset_that_is_deleted_meanwhile_is_no_failure(
    local: Local, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(local, "one")
    expected = content(local, "one")

    def gather_and_delete(*arguments: Any, **options: Any) -> int:
        found = gather(*arguments, **options)
        shutil.rmtree(local.folder / "one", ignore_errors=True)
        return found

    monkeypatch.setattr(attempt, "gather", gather_and_delete)
    capsys.readouterr()
    assert run(local, "two")["num_read"] == 24
    assert capsys.readouterr().err.count("the previous dataset cannot be used") == 1
    assert content(local, "two") == expected


@pytest.mark.slow
def test_images_that_may_have_changed_without_a_trace_are_read(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    run(local, "one")
    monkeypatch.setattr(previous_rows, "SETTLING_NS", 10**18)
    assert run(local, "two")["num_read"] == 24


@pytest.mark.slow
def test_other_decoders_and_another_format_read_all_images(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    run(local, "one")
    assert run(local, "two", image_size=17)["num_read"] == 24
    with monkeypatch.context() as patch:
        version = features.version
        patch.setattr(features, "version", lambda name: "13.0" if name == "pil" else version(name))
        assert run(local, "three")["num_read"] == 24
    monkeypatch.setattr(versions, "FORMAT", versions.FORMAT + 1)
    assert run(local, "four")["num_read"] == 24


@pytest.mark.slow
def test_folders_that_change_their_names_have_their_own_images(local: Local) -> None:
    for name in "ab":
        for number in range(12):
            path = local.folder / "source" / name / f"{number}.png"
            path.write_bytes(png(10 * number + (name == "a"))[:-12].ljust(600, b"\0"))
            os.utime(path, (10**9, 10**9))
    run(local, "one")
    source = local.folder / "source"
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        (source / old).rename(source / new)
    assert run(local, "two")["num_read"] == 24
    run(local, "full", reread=True)
    assert content(local, "two") == content(local, "full")
    assert content(local, "two") != content(local, "one")


@pytest.mark.slow
def test_an_image_that_could_not_be_read_is_tried_again(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(location: str) -> bytes:
        if location.endswith("a/3.png"):
            raise OSError("Input/output error")
        return look(location)

    look = opening.read
    with monkeypatch.context() as patch:
        patch.setattr(opening, "read", refuse)
        assert run(local, "one")["num_bad_files"] == 1
    metadata = run(local, "two")
    assert (metadata["num_bad_files"], metadata["num_read"]) == (0, 1)


def test_a_failed_attempt_is_continued_and_torn_parts_are_made_again(
    local: Local, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "MAX_IMAGES", 5)
    with monkeypatch.context() as patch:
        patch.setattr(dataset_files, "write", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(local, "one")
    (state,) = (local.folder / "root" / "prepared").iterdir()
    assert [path.name for path in state.iterdir()] == ["parts"]
    assert len(list((state / "parts").iterdir())) == 10
    (state / "parts" / "notes.rows").write_text("mine")
    first, second = sorted((state / "parts").glob("*[0-9a-f].bytes"))[:2]
    first.write_bytes(first.read_bytes()[:-1])
    second.with_suffix(".rows").write_bytes(b"{}\n")
    read.clear()
    metadata = run(local, "one")
    assert len(read) == len(set(read)) == metadata["num_read"]
    assert 6 <= metadata["num_read"] <= 10
    assert sorted(path.relative_to(state).as_posix() for path in state.rglob("*")) == [
        "latest.json",
        "parts",
        "parts/notes.rows",
    ]
    run(local, "full", reread=True)
    assert content(local, "one") == content(local, "full")


def test_two_attempts_at_once_do_not_disturb_each_other(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    run(local, "one")
    local.write("source/a/new.png", png(9999))
    write = dataset_files.write

    def another_first(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(dataset_files, "write", write)
        # Starts with the same previous dataset, and ends with the removal of all parts.
        run(local, "two")
        write(*arguments, **options)

    monkeypatch.setattr(dataset_files, "write", another_first)
    run(local, "three")
    assert content(local, "two") == content(local, "three")
    assert run(local, "four")["num_read"] == 0
    assert content(local, "four") == content(local, "three")


def test_in_a_bucket_known_images_cost_a_listing(
    in_bucket: InBucket, server: CloudStorage, capsys: pytest.CaptureFixture[str]
) -> None:
    run(in_bucket, "one")
    in_bucket.write("source/a/new.png", png(9999))
    server.faults.requests.clear()
    metadata = run(in_bucket, "two")
    asked = [f"{request.method} {request.target}" for request in server.faults.requests]
    assert [line for line in asked if "/source/" in line.replace("%2F", "/")] == [
        line for line in asked if "new.png" in line
    ]
    assert metadata["num_read"] == sum("new.png" in line for line in asked) == 1
    # Another object under the name of a shard.
    shard = next(path for path in in_bucket.paths("two") if "array_record" in path)
    in_bucket.write(f"two/{shard}", b"x")
    capsys.readouterr()
    # The dataset before is intact.
    assert run(in_bucket, "three")["num_read"] == 1
    assert "a shard of gs://growing/two is missing or was changed" in capsys.readouterr().err
    assert {**content(in_bucket, "two"), shard: b"x"} == {**content(in_bucket, "three"), shard: b"x"}


@pytest.mark.slow
def test_objects_that_a_manifest_names_are_asked_for_but_not_read(in_bucket: InBucket, server: CloudStorage) -> None:
    paths = in_bucket.paths("source")
    in_bucket.write("all.csv", "".join(f"{in_bucket.address}/source/{path},{path[0]}\n" for path in paths).encode())
    options = {"source": "gs://growing/all.csv"}
    assert run(in_bucket, "one", **options)["num_read"] == 24
    in_bucket.write("source/a/3.png", png(9999))
    server.faults.requests.clear()
    assert run(in_bucket, "two", **options)["num_read"] == 1
    asked = [request.target for request in server.faults.requests if "source%2F" in request.target]
    assert len(asked) == 25
    run(in_bucket, "full", reread=True, **options)
    assert content(in_bucket, "two") == content(in_bucket, "full")


@pytest.mark.slow
def test_an_attempt_that_ended_after_publishing_is_finished_unless_the_source_changed(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise ZeroDivisionError

    for name in ("one", "two"):
        with monkeypatch.context() as patch:
            patch.setattr(parts, "remove", fail)
            with pytest.raises(ZeroDivisionError):
                run(local, name)
    before = content(local, "two")
    assert run(local, "two")["num_read"] == 0
    assert content(local, "two") == before
    # It is finished, so that the folder belongs to the user.
    with pytest.raises(UserError, match="exists and is not empty"):
        run(local, "two")
    with monkeypatch.context() as patch:
        patch.setattr(parts, "remove", fail)
        with pytest.raises(ZeroDivisionError):
            run(local, "three")
    local.write("source/a/new.png", png(9999))
    with pytest.raises(UserError, match="exists and is not empty"):
        run(local, "three")
    assert content(local, "three") == before
    assert run(local, "four")["num_read"] == 1
