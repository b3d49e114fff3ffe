"""Runs that were killed are resumed from their journal, even more than once."""

import os
import signal
from pathlib import Path

from kfp import dsl
from localvertex_tests.support.journal import Listener, double, journal_of

import localvertex
from localvertex.store import record
from localvertex.store.task import State, Task
from vertex_testing.runs import STEP, Compile


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
