"""What a stream sends: changed entries only, a damaged record in words, and a log whatever happens to its file."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records

from localvertex.api.rest.store import Store
from localvertex.console.events.changes import LogChanges, RunChanges
from localvertex.console.runs.record import WatchedRuns
from localvertex.console.runs.routes import log_of_step
from localvertex.show.view import logs
from localvertex.store import record, run_folder
from localvertex.store.journal import Journal

NAME = "run-00001"


def rewrite(work_dir: Path, **fields: Any) -> dict[str, Any]:
    """Replace the record of the run."""
    content = run_records.run_record(work_dir, NAME, "2026-01-01T00:01:00.000Z", **fields)
    run_records.write(work_dir / NAME / "run.json", content)
    return content


def changes_of(work_dir: Path) -> RunChanges:
    """Watch the run."""
    return RunChanges(WatchedRuns(Store(work_dir)), work_dir / NAME)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of the log of the step `train`."""
    rewrite(tmp_path)
    (tmp_path / NAME / "train").mkdir()
    return tmp_path / NAME / "train" / "log.txt"


def test_the_first_event_has_everything_and_later_ones_what_has_changed(tmp_path: Path) -> None:
    steps = [run_records.TASK | {"path": name, "name": name, "state": "RUNNING"} for name in ("a", "b")]
    run_dir = tmp_path / NAME
    rewrite(tmp_path, state="RUNNING", tasks=steps)
    hold = run_folder.lock(run_dir)
    journal = Journal(run_dir, 0)
    content = rewrite(tmp_path, state="RUNNING", tasks=steps) | {"journal": journal.position.as_json()}
    run_records.write(run_dir / "run.json", content)
    changes = changes_of(tmp_path)
    ((name, first),) = changes()
    assert (name, first["is_first"]) == ("run", True)
    assert [each["path"] for each in first["tasks"]] == ["a", "b"]
    assert first["run"] | {"is_own": False, "resource": None, "state": "RUNNING", "name": NAME} == first["run"]
    assert "tasks" not in first["run"]
    assert list(changes()) == []
    journal.append([{"time": record.now(), "task": steps[1] | {"state": "SUCCEEDED", "seconds": 3.0}}])
    ((_, second),) = changes()
    states = {each["path"]: each["state"] for each in second["tasks"]}
    assert (second["is_first"], states["b"]) == (False, "SUCCEEDED")
    hold.close()
    rewrite(tmp_path, tasks=[each | {"state": "SUCCEEDED", "seconds": 3.0} for each in steps])
    ((_, last),) = changes()
    assert last["run"]["state"] == "SUCCEEDED"
    assert [each["path"] for each in last["tasks"]] == ["a"]
    assert list(changes()) == []


def test_a_run_whose_process_was_killed_is_shown_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localvertex.console.runs.record._LOCK_SECONDS", 0.0)
    rewrite(tmp_path, state="RUNNING")
    hold = run_folder.lock(tmp_path / NAME)
    changes = changes_of(tmp_path)
    assert next(changes())[1]["run"]["state"] == "RUNNING"
    hold.close()
    assert next(changes())[1]["run"]["state"] == "FAILED"


def test_the_page_of_a_run_is_a_change_although_it_comes_after_the_last_record(tmp_path: Path) -> None:
    rewrite(tmp_path)
    changes = changes_of(tmp_path)
    assert next(changes())[1]["run"]["has_page"] is False
    (tmp_path / NAME / record.PAGE).write_text("<p>the run</p>")
    ((name, content),) = changes()
    assert (name, content["run"]["has_page"], content["tasks"]) == ("run", True, [])
    assert list(changes()) == []


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"state": "ODD"}', "\0" * 100])
def test_a_damaged_record_is_reported_in_words_until_it_is_whole(tmp_path: Path, damage: str) -> None:
    rewrite(tmp_path)
    changes = changes_of(tmp_path)
    assert next(changes())[0] == "run"
    run_records.write(tmp_path / NAME / "run.json", damage)
    ((name, content),) = changes()
    assert (name, f"the record of {NAME} cannot be read" in content["text"]) == ("problem", True)
    assert list(changes()) == []
    rewrite(tmp_path, state="CANCELLED")
    ((name, content),) = changes()
    assert (name, content["is_first"], len(content["tasks"])) == ("run", True, 1)


def test_entries_without_a_field_are_a_problem_and_no_defect(tmp_path: Path) -> None:
    rewrite(tmp_path, tasks=[{}], state="FAILED")
    assert [name for name, _ in changes_of(tmp_path)()] == ["problem"]


def test_a_run_that_is_deleted_ends_the_stream(tmp_path: Path) -> None:
    rewrite(tmp_path)
    changes = changes_of(tmp_path)
    list(changes())
    shutil.rmtree(tmp_path / NAME)
    assert [(name, each["text"]) for name, each in changes()] == [
        (name, f"the run {NAME} was deleted") for name in ("problem", "end")
    ]


def test_streams_of_one_run_share_its_record_and_nothing_is_kept_after_them(tmp_path: Path) -> None:
    rewrite(tmp_path)
    records = WatchedRuns(Store(tmp_path))
    first, second = (records.watch(tmp_path / NAME) for _ in range(2))
    assert first.read() is second.read()
    del first, second
    assert not records._watched


def texts(changes: LogChanges) -> list[tuple[int, str]]:
    """Return offset and text of the next events."""
    return [(each["offset"], each["text"]) for _, each in changes()]


def test_a_log_is_followed_from_its_first_line_through_truncation_and_replacement(log: Path) -> None:
    changes = LogChanges(log.parents[1], "train", "")
    assert texts(changes) == []
    log.write_text("first\n")
    assert texts(changes) == [(0, "first\n")]
    assert texts(changes) == []
    with log.open("ab") as file:
        file.write("höher\n".encode()[:2])
    assert texts(changes) == [(6, "h")]
    with log.open("ab") as file:
        file.write("höher\n".encode()[2:])
    assert texts(changes) == [(7, "öher\n")]
    os.truncate(log, 0)
    assert texts(changes) == [(0, "")]
    log.write_text("new\n")
    assert texts(changes) == [(0, "new\n")]
    log.with_name("aside").write_text("another, which is longer\n")
    log.with_name("aside").replace(log)
    assert texts(changes) == [(0, "another, which is longer\n")]
    log.unlink()
    assert [each["files"] for _, each in changes()] == [[]]


def test_a_log_that_grows_faster_than_it_is_read_continues_at_its_end(log: Path) -> None:
    log.write_text("first\n")
    changes = LogChanges(log.parents[1], "train", "")
    list(changes())
    with log.open("a") as file:
        file.write("a line\n" * 100_000 + "last\n")
    ((offset, text),) = texts(changes)
    assert offset > 6
    assert len(text) <= logs.MOST_BYTES
    assert (text.startswith("a line\n"), text.endswith("last\n")) == (True, True)
    assert texts(changes) == []


def piece(log: Path, **place: int) -> logs.Piece:
    """Return a piece of a log that exists."""
    found = logs.piece(log, **place)
    assert found is not None
    return found


def test_any_bytes_are_a_log_of_2_gb_without_a_line_end(log: Path) -> None:
    log.write_bytes(b"\xff\xfeA" * 10)
    # Invalid bytes are one character each, which the page shows as a replacement character: offsets stay right.
    text = piece(log).text
    assert text == "\x1a\x1aA" * 10
    with log.open("r+b") as file:
        file.truncate(2 << 30)
        file.seek(0, 2)
        file.write("ö".encode() * 200_000)
    last = piece(log)
    assert (last.end, last.size) == ((2 << 30) + 400_000, (2 << 30) + 400_000)
    assert set(last.text) == {"ö"}
    before = piece(log, before=last.offset)
    assert (before.end, before.end - before.offset) == (last.offset, logs.MOST_BYTES)
    assert piece(log, offset=1, before=7).text == "\x1aA\x1a\x1aA\x1a"
    assert piece(log, offset=5 << 30).text == ""


def test_earlier_pieces_join_without_a_gap(log: Path) -> None:
    text = "".join(f"line {number} ä\n" for number in range(60_000))
    log.write_text(text)
    found = piece(log)
    parts = [found.text]
    while found.offset:
        found = piece(log, before=found.offset)
        parts.insert(0, found.text)
    assert len(parts) > 3
    assert all(each.startswith("line ") for each in parts)
    assert "".join(parts) == text


def test_no_path_of_a_log_leads_out_of_its_run(log: Path, tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "log.txt").write_text("secret")
    (log.parent / "workerpool0-0.log").symlink_to(tmp_path / "api" / "log.txt")
    (log.parents[1] / "outside").symlink_to(tmp_path / "api")
    os.mkfifo(log.parent / "workerpool1-0.log")
    log.write_text("own")
    run_dir = log.parents[1]
    assert logs.files(run_dir, "train") == ["log.txt"]
    for name in ("workerpool0-0.log", "workerpool1-0.log", "../../api/log.txt", "/etc/passwd", "log.txt/../log.txt"):
        assert log_of_step(run_dir, "train", {"file": name})["text"] == ""
    for task in ("", "..", "../../api", "outside", "train/../..", "/etc", ".hidden", "a\0b"):
        with pytest.raises(Exception, match="is not found"):
            log_of_step(run_dir, task, {})
    with pytest.raises(Exception, match="expected a number of bytes"):
        log_of_step(run_dir, "train", {"offset": "-1"})
    assert json.dumps(log_of_step(run_dir, "train", {"offset": "1"}))
