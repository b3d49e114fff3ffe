"""Writes what the maintainer of a training needs to see its defect without this package.

The folder has the program, the outputs of the undisturbed and the disturbed run, a script that makes them again with
Python alone, and a text.
"""

import shlex
import shutil
from pathlib import Path

from localvertex._base.userinput import outputs
from localvertex.jobs import CustomJob
from localvertex.jobs.job import PRIMARY
from localvertex.prove.faults import RESIDUES, FaultKind
from localvertex.prove.numbers import is_start
from localvertex.prove.prove import Result
from localvertex.prove.report import lines

_TEXT = """\
# {name}: {verdict} after {fault}

    {command}

was run undisturbed and once with the fault `{fault}`; Python's exit codes of the disturbed run: {exit_codes}. A
training that resumes exactly prints and leaves the same in both.

{lines}

- `undisturbed/` and `disturbed/`: what the two runs have printed (`folder/*.log`) and left (`output/`)
- `program/`: the files that the command names
- `python reproduce.py` runs both again in `again/` and prints how their logs differ{remark}
"""
_REMARK = "; it only kills the program at the\n  same line, because this fault needs more: {fault}"


def write(target: Path, job: CustomJob, result: Result, undisturbed: Path) -> None:
    """Write a new folder for a run that ended differently.

    Args:
        target: The folder, which does not exist.
        job: What was proved.
        result: What came of it.
        undisturbed: The folder of an undisturbed run.
    """
    for name, root in (("undisturbed", undisturbed), ("disturbed", result.root)):
        shutil.copytree(root, target / name, symlinks=True)
    words: list[str] = []
    for each in job.pools[0].command:
        is_program = words and Path(each).is_file()
        if is_program:
            (target / "program").mkdir(exist_ok=True)
            shutil.copyfile(each, target / "program" / Path(each).name)
        words.append(f"{{here}}/program/{Path(each).name}" if is_program else each)
    starts = [0]
    for line in (result.root / "folder" / f"{PRIMARY}.log").read_text(errors="replace").splitlines():
        if is_start(line):
            starts.append(0)
        else:
            starts[-1] += 1
    script = '''\
"""Train undisturbed, and once with the fault; compare the logs. Needs nothing but Python and what the program needs."""

import difflib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

COMMAND = {command}
KILLED_AFTER = {lines}
"""Lines of the log, of one process after the other."""
HERE = pathlib.Path(__file__).resolve().parent


def run(name, killed_after):
    base = HERE / "again" / name
    env = {{**os.environ, "AIP_CHECKPOINT_DIR": f"{{base}}/checkpoints/", "AIP_MODEL_DIR": f"{{base}}/model/"}}
    checkpoints = f"{{base}}/checkpoints"
    words = [each.replace("{{checkpoints}}", checkpoints).replace("{{here}}", str(HERE)) for each in COMMAND]
    log = base / "log.txt"
    # On a busy machine, a short training can be far beyond the line before it is seen; then it begins again.
    for _ in range(50):
        shutil.rmtree(base, ignore_errors=True)
        for folder in ("checkpoints", "work"):
            (base / folder).mkdir(parents=True)
        log.touch()
        num_faults = 0
        for number in (*killed_after, None):
            before = log.read_bytes().count(b"\\n")
            with log.open("ab") as output:
                process = subprocess.Popen(words, cwd=base / "work", env=env, stdout=output, stderr=subprocess.STDOUT)
                while number is not None and process.poll() is None:
                    if log.read_bytes().count(b"\\n") - before >= number:
                        process.send_signal(signal.{signal})
                        process.wait()
                        num_faults += log.read_bytes().count(b"\\n") - before <= number + max(5, number // 10)
                        break
                    time.sleep(0.001)
                process.wait()
        if num_faults == len(killed_after):
            return log.read_text(errors="replace").splitlines()
    sys.exit("the training was too fast for its fault, 50 times; try again on an idle machine")


undisturbed, disturbed = run("undisturbed", ()), run("disturbed", KILLED_AFTER)
print(*difflib.unified_diff(undisturbed, disturbed, "undisturbed", "disturbed"), sep="\\n")
'''.format(command=words, lines=starts[:-1], signal="SIGTERM" if result.fault is FaultKind.SIGTERM else "SIGKILL")
    text = _TEXT.format(
        name=job.display_name,
        fault=result.fault,
        verdict=result.verdict,
        command=shlex.join(job.pools[0].command),
        exit_codes=result.exit_codes,
        lines="\n".join(f"    {each}" for each in lines(result)),
        remark="" if result.fault in {*RESIDUES, FaultKind.SIGTERM} else _REMARK.format(fault=result.fault),
    )
    outputs.write({target / "reproduce.py": script.encode(), target / "README.md": text.encode()})
