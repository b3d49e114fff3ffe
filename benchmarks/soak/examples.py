"""Interrupts the examples of exact_resume: `python -m benchmarks.soak.examples --num-faults 75 --seed 1`.

Each part is a run of one example. It is killed or frozen at a time that is drawn, from its first moment on, or before
or after a part of a save; it gets SIGTERM; between two starts its newest checkpoint may be torn, or a bit of it
flipped. In the end the weights are those of an undisturbed run, each step had the same examples however often it was
repeated, none is missing, and the run counts as finished.
"""

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.soak.record import Fault, Soak, options
from exact_resume.checkpoints import checkpoints, manifest, result_file
from vertex_testing import kill_point

_ROOT = Path(__file__).parents[2]
_EXAMPLES = sorted((_ROOT / "packages" / "exact_resume" / "examples").glob("*.py"))
_NUM_FAULTS, _FAULTS_PER_RUN = 25, 5
"""Of an example, and of one of its runs."""
_POINTS = (
    ("exact_resume.checkpoints.checkpoints", "save"),
    ("exact_resume.checkpoints.checkpoints", "prune"),
    ("exact_resume.checkpoints.manifest", "write"),
    ("exact_resume.files.publication", "Fence.write"),
)
"""Module and name of parts of a save."""


class _Ended(NamedTuple):
    weights: str
    """Last line of the program."""
    examples: Mapping[int, str]
    """Of each step."""


def main() -> int:
    """Interrupt runs; return 1 if one of them ended otherwise."""
    given = options("examples", __doc__, num_faults=_NUM_FAULTS * len(_EXAMPLES), smoke_values={"num_faults": 3})
    # Sums in another order would give other bits.
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3")
    soak = Soak("examples", given)

    @functools.cache
    def undisturbed(example: Path) -> tuple[_Ended, float]:
        folder, started = soak.folder / f"undisturbed-{example.stem}", time.monotonic()
        process = _start(example, folder)
        return _ended(process, folder), time.monotonic() - started

    def interrupt(number: int) -> list[Fault]:
        example, draw = _EXAMPLES[number % len(_EXAMPLES)], random.Random(f"{given.seed}-{number}")
        expected, seconds = undisturbed(example)
        folder = soak.folder / f"run-{number}"
        folder.mkdir()
        try:
            faults = [_fault(example, folder, draw, seconds) for _ in range(min(_FAULTS_PER_RUN, given.num_faults))]
            found = _ended(_start(example, folder), folder)
            assert found == expected, f"{found} instead of {expected}"
            assert result_file.is_finished(str(folder / "run"))
        except Exception:
            soak.keep(folder, number)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return [Fault(f"{kind}, {example.stem}", outcome) for kind, outcome in faults]

    return soak.run(interrupt)


def _start(example: Path, folder: Path, *, path: str = "") -> "subprocess.Popen[str]":
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"EXAMPLES_SEEN": str(folder / "seen")} | ({"PYTHONPATH": path} if path else {})
    words = [sys.executable, str(example), str(folder / "run")]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(process: "subprocess.Popen[str]", folder: Path) -> _Ended:
    """Wait for a run to its end."""
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr[-3000:]
    examples: dict[int, str] = {}
    for line in (folder / "seen").read_text().splitlines():
        step, _, found = line.partition(" ")
        assert examples.setdefault(int(step), found) == found, f"step {step} was repeated with other examples"
    assert sorted(examples) == list(range(len(examples)))
    return _Ended(stdout.splitlines()[-1], examples)


def _fault(example: Path, folder: Path, draw: random.Random, seconds: float) -> tuple[str, str]:
    """Start the program, disturb it, and wait until it has ended; return the kind of fault and the outcome."""
    kind = draw.choice(("SIGKILL", "SIGKILL", "SIGTERM", "frozen", "killed in a save", "torn", "bit flipped"))
    path = ""
    if kind == "killed in a save":
        code = folder / "code"
        code.mkdir(exist_ok=True)
        shutil.copy(Path(*kill_point.__path__) / "sitecustomize.py", code)
        module, name = draw.choice(_POINTS)
        point = {"module": module, "name": name, "when": draw.choice(("before", "after")), "is_run": False}
        (folder / "point.json").write_text(json.dumps(point))
        path = str(code)
    process = _start(example, folder, path=path)
    if kind != "killed in a save":
        time.sleep(draw.random() * seconds * 0.8)
    if kind == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    elif kind == "frozen":
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.kill()
    elif kind != "killed in a save":
        process.kill()
    process.communicate(timeout=600)
    outcome = f"exit code {process.returncode}"
    if kind in ("torn", "bit flipped"):
        outcome = _damage(folder / "run", draw, is_torn=kind == "torn")
    (folder / "point.json").unlink(missing_ok=True)
    return kind, outcome


def _damage(folder: Path, draw: random.Random, *, is_torn: bool) -> str:
    """Damage a file of the newest checkpoint."""
    steps = checkpoints.steps(str(folder))
    if not steps:
        return "no checkpoint yet"
    path = folder / manifest.name(steps[0]) / draw.choice((manifest.MANIFEST_FILE, checkpoints.VARIABLES_FILE))
    content = bytearray(path.read_bytes())
    position = draw.randrange(len(content))
    if is_torn:
        del content[position:]
    else:
        content[position] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
    return f"{path.name} of the newest checkpoint"


if __name__ == "__main__":
    sys.exit(main())
