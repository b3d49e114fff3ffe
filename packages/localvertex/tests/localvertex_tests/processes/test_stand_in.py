"""What a process adds to the work folder behind the mask is there afterwards, as without it."""

import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl

from localvertex.processes.masks.mask import Mask
from localvertex.processes.masks.stand_in import StandInFolder
from vertex_testing.runs import STEP, Execute, FindTask

pytestmark = pytest.mark.skipif(bool(Mask().warning), reason="there is no mask here")


@dsl.component(**STEP)
def meet(root: str, number: int) -> None:
    import time
    from pathlib import Path

    folder, own = Path(root.removeprefix("in "), "shared"), Path(root.removeprefix("in "), "training", str(number))
    folder.joinpath("deep").mkdir(parents=True, exist_ok=True)
    folder.joinpath("deep", str(number)).touch()
    folder.joinpath("last").write_text(str(number))
    # Folders that exist before the step are the same for all steps.
    own.touch()
    while not own.with_name(str(1 - number)).exists():
        time.sleep(0.01)


@dsl.pipeline(name="meets")
def meets(root: str) -> None:
    with dsl.ParallelFor([0, 1]) as number:
        meet(root=root, number=number)


@dsl.component(**STEP)
def call(program: str, argument: str) -> str:
    space: dict = {"argument": argument}
    exec(program, space)
    return str(space.get("result"))


@dsl.pipeline(name="calls")
def calls(program: str, argument: str) -> None:
    call(program="result = argument", argument=call(program=program, argument=argument).output)


@dsl.pipeline(name="passes-on")
def passes_on(first: str, second: str) -> None:
    call(program=second, argument=call(program=first, argument="").output)


def test_steps_in_parallel_fill_the_same_new_folder(execute: Execute, work_dir: Path) -> None:
    (work_dir / "training").mkdir(parents=True)
    # Not as a path, for which the folder is made before.
    record = execute(meets, {"root": f"in {work_dir}/"})
    assert (record["state"], record["error"]) == ("SUCCEEDED", None)
    assert sorted(each.name for each in (work_dir / "shared" / "deep").iterdir()) == ["0", "1"]
    assert (work_dir / "shared" / "last").read_text() in "01"
    assert [each for each in record["warnings"] if "discarded" in each] == []


REPLACE = """
import os
with open(f"{argument}/part", "w") as file:
    file.write(result := open(f"{argument}/state").read() + "x")
os.replace(f"{argument}/part", f"{argument}/state")
os.remove(f"{argument}/done")
os.symlink("/etc", f"{argument}/link")
"""


def test_files_of_the_work_folder_are_replaced_and_removed_and_what_is_discarded_is_reported(
    execute: Execute, work_dir: Path
) -> None:
    work_dir.mkdir(exist_ok=True)
    (work_dir / "state").write_text("")
    (work_dir / "done").touch()
    record = execute(calls, {"program": REPLACE, "argument": str(work_dir)})
    assert (record["state"], record["error"]) == ("SUCCEEDED", None)
    assert (work_dir / "state").read_text() == "x"
    assert not (work_dir / "done").exists()
    assert len([each for each in record["warnings"] if "discarded" in each and "link" in each]) == 1


def test_a_killed_program_leaves_what_its_processes_have_written(tmp_path: Path) -> None:
    for name in ("file", "again"):
        (tmp_path / name).write_text("old")
    program = """\
import os, signal, sys
from localvertex.processes.masks.stand_in import StandInFolder
made = StandInFolder.new(sys.argv[1])
made.link("file")
os.mkdir(f"{made.content}/new")
for name in ("new/checkpoint", "again"):
    open(f"{made.content}/{name}", "w").close()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program, tmp_path], check=False)
    assert not (tmp_path / "new").exists()
    others = StandInFolder.new(str(tmp_path)), StandInFolder.new(str(tmp_path))
    assert (tmp_path / "new" / "checkpoint").exists()
    assert {(tmp_path / name).read_text() for name in ("file", "again")} == {"old"}
    # Those of living programs stay.
    assert sum(1 for _ in (tmp_path / ".localvertex" / "masks").iterdir()) == len(others)
    for each in others:
        assert each.collect() == []


def test_temporary_files_may_be_in_the_work_folder(
    execute: Execute, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = work_dir / "temporary"
    folder.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    record = execute(calls, {"program": "import tempfile; result = len(tempfile.mkdtemp()) > 0", "argument": ""})
    assert (record["state"], record["error"]) == ("SUCCEEDED", None)


def test_a_step_cannot_write_to_another_run_that_a_step_before_names(
    execute: Execute, task: FindTask, work_dir: Path
) -> None:
    other = work_dir / "other" / "train" / "model"
    other.mkdir(parents=True)
    (work_dir / "other" / "run.json").write_text("{}")
    (other / "weights").write_text("own")
    # In two parts: what the user gives may be written.
    first = f"result = {str(work_dir / 'other')!r} + '/train/model/weights'"
    second = "result = open(argument).read(); open(argument, 'w').write('foreign')"
    record = execute(passes_on, {"first": first, "second": second})
    assert (record["state"], task(record, "call-2")["state"]) == ("FAILED", "FAILED")
    assert (other / "weights").read_text() == "own"
    record = execute(calls, {"program": second, "argument": str(other / "weights")})
    assert (record["state"], record["error"]) == ("SUCCEEDED", None)
