"""The record of a run is its snapshot with the journal's changes: readable at any moment, never wrong when damaged."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kfp import dsl

import localvertex
from localvertex.errors import RecordNotWritten
from localvertex.runner import run_record
from localvertex.show.display import Display
from localvertex.state import executor_files, record
from localvertex.state.task import State, Task
from tests.support.runs import STEP, Command, Compile, Record


@dsl.component(**STEP)
def double(number: int) -> int:
    return 2 * number


@dsl.component(**STEP)
def wait_for(there: str, result: int) -> int:
    import os
    import time

    while not os.path.exists(there):
        time.sleep(0.01)
    return result


@dsl.pipeline(name="journaled")
def journaled(there: str, numbers: list) -> int:
    with dsl.ParallelFor(numbers) as number:
        done = double(number=number)
    return wait_for(there=there, result=7).after(done).output


class Listener(Display):
    """Calls a function at each change of a step."""

    def __init__(self, changed: Callable[[Task], None]) -> None:
        self._changed = changed

    def changed(self, task: Task) -> None:
        """Call it."""
        if task.is_step:
            self._changed(task)


@pytest.fixture
def file(compiled: Compile) -> Path:
    return compiled(journaled)


@pytest.fixture
def killed(file: Path, tmp_path: Path) -> Path:
    """Return the folder of a run that was killed while its last step waited, long after the snapshot."""
    run_dir = tmp_path / "runs" / "killed"
    words = [sys.executable, "-m", "localvertex", "run", str(file), "--run-id", "killed", "--grace", "0.2"]
    words += ["--parameter", f"there={tmp_path / 'there'}", "--parameter", "numbers=[1, 2, 3]"]
    # Only the first snapshot is written, so that all the rest is in the journal.
    code = f"import sys; sys.argv[1:] = {words[3:]!r}; from localvertex.runner import run_record; "
    code += "run_record._SNAPSHOT_SECONDS = 3600; from localvertex.__main__ import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.DEVNULL)
    while not (run_dir / record.FILE).exists() or states(record.read(run_dir)).get("wait-for") != "RUNNING":
        assert process.poll() is None
        time.sleep(0.02)
    # By this file `clean` knows the folder of a step when it cannot read the record.
    while not (run_dir / "wait-for" / executor_files.INPUT).exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    while record.is_running(run_dir):
        time.sleep(0.02)
    return run_dir


def states(content: Record) -> dict[str, str]:
    return {each["path"]: each["state"] for each in content["tasks"]}


def journal_of(run_dir: Path) -> Path:
    (path,) = run_dir.glob("journal-*.jsonl")
    return path


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


def test_a_killed_run_is_resumed_from_its_journal(killed: Path, tmp_path: Path, work_dir: Path) -> None:
    journal = journal_of(killed)
    journal.write_bytes(journal.read_bytes() + b'{"crc": "torn')
    (tmp_path / "there").touch()
    content = localvertex.resume("killed", options=localvertex.Options(work_dir=work_dir))
    assert (content["state"], content["outputs"]["parameters"]) == ("SUCCEEDED", {"Output": 7})
    assert {each["path"] for each in content["tasks"] if each["restored"]} == {
        f"for-loop-1/{number}/double" for number in range(3)
    }
    assert not [*killed.glob("journal*")]


def test_a_resumed_run_that_is_killed_again_still_knows_its_finished_steps(
    killed: Path, tmp_path: Path, work_dir: Path
) -> None:
    """At each change of the resumed run, the finished steps are either restored or known as unrestored."""
    (tmp_path / "there").touch()
    finished = {f"for-loop-1/{number}/double" for number in range(3)}

    def look(_: Task) -> None:
        content = record.read(killed)
        restored = {each["path"] for each in content["tasks"] if each["restored"]}
        waiting = {each["path"] for each in content["unrestored"]}
        assert finished == (restored | waiting) & finished
        assert not restored & waiting
        seen.append(len(waiting))

    seen: list[int] = []
    localvertex.resume("killed", options=localvertex.Options(work_dir=work_dir), display=Listener(look))
    assert seen[0] == 2
    assert seen[-1] == 0


def test_a_step_after_a_repeated_step_is_repeated_by_a_later_resume_too(
    compiled: Compile, tmp_path: Path, work_dir: Path
) -> None:
    """`last` has finished after the failure of `check`; a resume that repairs it is killed before `last` runs again."""

    @dsl.pipeline(name="followed")
    def followed(there: str) -> None:
        check = fail_unless(there=there).set_caching_options(False)
        double(number=1).after(check).ignore_upstream_failure().set_caching_options(False)

    options = localvertex.Options(work_dir=work_dir, run_id="followed")
    parameters = {"there": str(tmp_path / "there")}
    assert localvertex.run(compiled(followed), parameters=parameters, options=options)["state"] == "FAILED"
    (tmp_path / "there").touch()

    def kill(task: Task) -> None:
        if (task.name, task.state) == ("fail-unless", State.SUCCEEDED):
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if not child:
        try:
            localvertex.resume("followed", options=localvertex.Options(work_dir=work_dir), display=Listener(kill))
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    content = localvertex.resume("followed", options=localvertex.Options(work_dir=work_dir))
    restored = {each["path"]: (each["restored"], each["num_resumes"]) for each in content["tasks"]}
    assert restored == {"fail-unless": (True, 1), "double": (False, 2)}


@dsl.component(**STEP)
def fail_unless(there: str) -> None:
    import os

    assert os.path.exists(there)


@pytest.fixture
def small_files(file: Path) -> Iterator[None]:
    """Let no file of this process grow beyond 12 kB: as on a full disk, a write ends in the middle of a line."""
    file.touch()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, previous)


def test_a_full_disk_stops_the_run_in_one_line_and_loses_nothing_that_was_reported(
    file: Path, work_dir: Path, tmp_path: Path, small_files: None
) -> None:
    (tmp_path / "there").touch()
    reported: dict[str, str] = {}
    parameters = {"there": str(tmp_path / "there"), "numbers": [*range(12)]}
    options = localvertex.Options(work_dir=work_dir, run_id="full")
    with pytest.raises(RecordNotWritten, match=r"cannot write to .*/full: File too large; .* --resume full resumes it"):
        localvertex.run(
            file,
            parameters=parameters,
            options=options,
            display=Listener(lambda task: reported.update({task.label: str(task.state)})),
        )
    assert not record.is_running(work_dir / "full")
    content = record.read(work_dir / "full")
    assert content["state"] == "FAILED"
    assert reported.items() <= states(content).items()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resumed = localvertex.resume("full", options=localvertex.Options(work_dir=work_dir))
    assert resumed["state"] == "SUCCEEDED"
    done = {path for path, state in reported.items() if state == "SUCCEEDED"}
    assert done <= {each["path"] for each in resumed["tasks"] if each["restored"]}


def test_the_command_reports_a_full_disk_in_one_line(
    file: Path, command: Command, tmp_path: Path, small_files: None
) -> None:
    numbers = json.dumps([*range(12)])
    parameters = ("--parameter", f"there={tmp_path}", "--parameter", f"numbers={numbers}")
    done = command("run", file, "--run-id", "full", *parameters)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: cannot write to {tmp_path}/runs/full: File too large; ")


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
