"""The record of a run is its snapshot with the journal's changes: readable at any moment, never wrong when damaged."""

import json
from pathlib import Path

import pytest
from kfp import dsl
from localvertex_tests.support.journal import Listener, double, journal_of, states

import localvertex
from localvertex.runner import run_record
from localvertex.store import record
from localvertex.store.task import State, Task
from vertex_testing.runs import Command, Compile, Record


def without_times(content: Record) -> Record:
    """Return a record without what changes while a step runs: its seconds, and whether it has a log."""
    running = {"seconds", "log"}
    tasks = [
        each if State(each["state"]).is_final else {name: value for name, value in each.items() if name not in running}
        for each in content["tasks"]
    ]
    return content | {"tasks": tasks}


def test_at_each_change_the_record_is_what_a_snapshot_at_that_moment_would_be(
    file: Path, work_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare with a run that writes no snapshot between."""
    monkeypatch.setattr(run_record, "_SNAPSHOT_SECONDS", 3600)
    (tmp_path / "there").touch()
    compared = 0

    def compare(task: Task) -> None:
        nonlocal compared
        found = record.read(work_dir / "compared")
        assert states(found)[task.label] == task.state
        # Fields of the run follow when the scheduler has settled everything.
        names = ("tasks", "metrics", "models", "unrestored", "run_id", "parameters", "resume_times")
        expected = json.loads(json.dumps(run._record.content()))
        found, expected = without_times(found), without_times(expected)
        assert {name: found[name] for name in names} == {name: expected[name] for name in names}
        compared += 1

    parameters = {"there": str(tmp_path / "there"), "numbers": [1, 2, 3]}
    options = localvertex.Options(work_dir=work_dir, run_id="compared", max_parallel=2)
    run = localvertex.prepare(file, parameters=parameters, options=options, display=Listener(compare))
    content = run.execute()
    assert compared == 8
    assert content["state"] == "SUCCEEDED"
    # At the end there is only the snapshot, which is complete.
    assert not [*(work_dir / "compared").glob("journal*")]
    assert json.loads((work_dir / "compared" / "run.json").read_text()) == json.loads(json.dumps(content))
    assert record.read(work_dir / "compared") == json.loads(json.dumps(content))


def test_what_was_reported_is_in_the_record_of_a_killed_run(killed: Path, command: Command) -> None:
    snapshot = json.loads((killed / "run.json").read_text())
    assert snapshot["tasks"] == []
    content = record.read(killed)
    assert (content["state"], content["error"]) == ("FAILED", "the process that ran it was killed")
    assert states(content) == {
        "for-loop-1": "SUCCEEDED",
        **{f"for-loop-1/{number}": "SUCCEEDED" for number in range(3)},
        **{f"for-loop-1/{number}/double": "SUCCEEDED" for number in range(3)},
        "wait-for": "RUNNING",
    }
    assert [each["path"] for each in content["tasks"]] == [
        "for-loop-1",
        *[f"for-loop-1/{number}{step}" for number in range(3) for step in ("", "/double")],
        "wait-for",
    ]
    assert "1/double" in command("show", "killed").stdout
    assert "killed  FAILED" in command("list").stdout


def test_each_line_is_one_change_with_its_time(killed: Path) -> None:
    lines = [json.loads(line) for line in journal_of(killed).read_text().splitlines()]
    assert all(set(line) in ({"crc", "time", "task"}, {"crc", "time", "run"}) for line in lines)
    changes = [(line["task"]["path"], line["task"]["state"]) for line in lines if "task" in line]
    assert [state for path, state in changes if path == "for-loop-1/1/double"] == ["PENDING", "RUNNING", "SUCCEEDED"]
    times = [line["time"] for line in lines]
    assert times == sorted(times)


def test_a_torn_last_line_is_ignored(killed: Path) -> None:
    journal = journal_of(killed)
    data, content = journal.read_bytes(), record.read(killed)
    for size in (1, 20, len(data.splitlines()[-1])):
        journal.write_bytes(data + data.splitlines()[-1][:size])
        assert record.read(killed) == content
    # Without its end, the last line does not count: the change before it is the last one.
    journal.write_bytes(data[:-1])
    assert states(record.read(killed))["wait-for"] == "PENDING"
    journal.write_bytes(data[:-1] + b"\0" * 4096)
    assert states(record.read(killed))["wait-for"] == "PENDING"


def garbage_in_the_middle(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:4], b"\x00\xff garbage\n", *lines[4:]])


def an_edited_state(data: bytes) -> bytes:
    assert data.count(b'"state": "RUNNING"') > 0
    return data.replace(b'"state": "RUNNING"', b'"state": "SUCCEEDED"', 1)


def a_removed_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:3] + lines[4:])


def a_moved_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:3], lines[4], lines[3], *lines[5:]])


def a_zeroed_block(data: bytes) -> bytes:
    return data[:100] + b"\0" * 200 + data[300:]


def another_end(data: bytes) -> bytes:
    return data + b'{"run": {"state": "SUCCEEDED"}}\n'


DAMAGES = (garbage_in_the_middle, an_edited_state, a_removed_line, a_moved_line, a_zeroed_block, another_end)


def test_a_damaged_journal_is_one_line_and_never_a_state(killed: Path, command: Command) -> None:
    journal = journal_of(killed)
    intact = journal.read_bytes()
    for damage in DAMAGES:
        journal.write_bytes(damage(intact))
        for words in (("show", "killed"), ("logs", "killed"), ("run", "--resume", "killed")):
            done = command(*words)
            assert (done.returncode, done.stdout) == (2, ""), damage
            assert len(done.stderr.splitlines()) == 1
            assert "journal-0.jsonl is damaged at byte" in done.stderr
            assert "`localvertex clean killed` removes the run" in done.stderr
        listed = command("list")
        assert listed.returncode == 0
        assert "killed  UNREADABLE" in listed.stdout
        # Nothing is repaired or written, which could make it worse.
        assert journal.read_bytes() == damage(intact)
    assert command("clean", "killed", "--yes").returncode == 0
    assert not killed.exists()


def test_a_missing_journal_or_a_false_position_is_one_line(killed: Path, command: Command) -> None:
    snapshot = json.loads((killed / "run.json").read_text())
    for position in ([], {"file": "../x", "size": 0, "crc": 0}, {"file": "journal-0.jsonl", "size": -1, "crc": 0}):
        (killed / "run.json").write_text(json.dumps(snapshot | {"journal": position}))
        done = command("show", "killed")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "'journal'" in done.stderr
    (killed / "run.json").write_text(json.dumps(snapshot))
    journal_of(killed).unlink()
    done = command("show", "killed")
    assert done.returncode == 2
    assert "journal-0.jsonl is missing" in done.stderr


def test_the_items_of_a_loop_are_in_its_record_once(
    compiled: Compile, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the record grows with the square of the number of iterations."""

    @dsl.pipeline(name="many")
    def many(numbers: list) -> None:
        with dsl.ParallelFor(numbers) as number:
            double(number=number)

    options = localvertex.Options(work_dir=work_dir)
    content = localvertex.run(compiled(many), parameters={"numbers": [1001, 1002, 1003]}, options=options)
    iterations = [each for each in content["tasks"] if each["kind"] == "iteration"]
    assert [len(each["inputs"]["parameters"]) for each in iterations] == [1, 1, 1]
    assert json.dumps(content["tasks"]).count("1001, 1002, 1003") == 1
