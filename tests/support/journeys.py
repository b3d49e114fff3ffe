"""Trainings over several machines with shortages, preemptions and kills, whose end is written before they run."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml

from exact_resume.checkpoints import result_file
from exact_resume.files import storage
from vertex_testing.processes import has_ended, working_in

ROOT = Path(__file__).parents[2]

NUM_STEPS = 60

PROGRAM = f"""
import os, time
import numpy as np
import exact_resume
weights, noise = np.zeros(8), np.random.default_rng(0)
with exact_resume.run(
    os.environ["AIP_CHECKPOINT_DIR"], steps={NUM_STEPS}, state={{"weights": weights, "noise": noise}},
    code=[__file__], save_every_steps=20,
) as run:
    for step in run:
        weights += noise.normal(size=8)
        time.sleep(0.1)
    run.result(metrics={{"accuracy": 0.5}})
"""

CANDIDATES = (
    {"scheduling_strategy": "SPOT"},
    {"region": "europe-west4", "scheduling_strategy": "STANDARD"},
    {"region": "us-east1", "scheduling_strategy": "SPOT"},
)
"""The first one by parameters, the others as fallbacks."""

SHORTAGES = ("stockout", "quota", "queue")
PREEMPTED = "preempted"
STEP, CANCEL, RUN = "SIGKILL of the step", "SIGINT of the run", "SIGKILL of the run"
"""Disturbances."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What happens to a journey, and how it must end."""

    troubles: tuple[str, ...]
    """The shortage of each candidate, empty for none."""
    is_preempted: bool
    """Whether the first job that trains is preempted twice, once more than is allowed."""
    disturbance: str
    """Empty for none."""
    after_seconds: float
    """When the disturbance happens, after the first job was asked for."""

    @classmethod
    def of(cls, seed: str) -> "Plan":
        """Draw a plan."""
        draw = random.Random(seed)
        troubles = tuple(draw.choice([*SHORTAGES, "", ""]) for _ in CANDIDATES)
        is_preempted, disturbance = draw.random() < 0.4, draw.choice(["", "", STEP, CANCEL, RUN])
        return cls(
            troubles=troubles,
            is_preempted=is_preempted,
            disturbance=disturbance,
            after_seconds=draw.uniform(0, 8),
        )

    @property
    def faults(self) -> list[str]:
        """The faults of the run."""
        times = {"queue": " for 600s"}
        found = [f"{kind} candidate {index}{times.get(kind, '')}" for index, kind in enumerate(self.troubles) if kind]
        preemptions = [f"preempt workerpool0-0 at step {step} grace 5s" for step in (15, 35)]
        return found + preemptions * self.is_preempted

    @property
    def whys(self) -> list[str]:
        """Why each job must end, without a disturbance."""
        found, is_preempted = list[str](), self.is_preempted
        for candidate, trouble in zip(CANDIDATES, self.troubles, strict=True):
            if not trouble and is_preempted and candidate["scheduling_strategy"] == "SPOT":
                found.append("preempted")
            else:
                found.append(trouble or "finished")
            is_preempted &= bool(trouble)
            if found[-1] == "finished":
                break
        return found

    def __str__(self) -> str:
        """Format it for a log."""
        when = f", {self.disturbance} after {self.after_seconds:.1f} s" if self.disturbance else ""
        return f"{', '.join(self.faults) or 'no fault'}{when}: {', '.join(self.whys)}"


class Journeys:
    """Journeys, each in a work folder of its own.

    Args:
        folder: Where; it does not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "code").mkdir(parents=True)
        (folder / "code" / "train_a_while.py").write_text(PROGRAM)
        settings = {
            "machine_type": "n1-standard-4",
            "accelerator_type": "",
            "accelerator_count": 0,
            **CANDIDATES[0],
            "timeout_seconds": 600,
            "max_wait_seconds": 4,
            "max_preemptions": 1,
            "fallbacks": list(CANDIDATES[1:]),
        }
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
        words = [sys.executable, "compile.py", "training", "--settings", str(folder / "settings.yaml")]
        subprocess.run([*words, "--output-dir", str(folder)], cwd=ROOT, check=True, capture_output=True)
        self._start("undisturbed", []).wait(timeout=600)
        self.weights = self._weights("undisturbed")
        """The end of every journey that finishes."""

    def check(self, name: str, plan: Plan) -> None:
        """Run a journey, and check that it ends as its plan says.

        Raises:
            AssertionError: It ends otherwise, or leaves a process.
        """
        run = self._start(name, plan.faults)
        is_stopped = bool(plan.disturbance) and self._disturb(run, name, plan)
        code = run.wait(timeout=600)
        self.check_nothing_left(name)
        if is_stopped:
            # Preemptions are not repeated: their steps are trained.
            plan = replace(plan, is_preempted=False)
            num_legs = len(self.legs(name))
            code = self._start(name, plan.faults).wait(timeout=600)
            self.check_nothing_left(name)
        else:
            num_legs = 0
        output = self.output(name)
        assert "Traceback" not in output, output
        found = [leg["why"] for leg in self.legs(name)[num_legs:]]
        assert found == plan.whys, (found, plan.whys, output)
        assert code == (0 if plan.whys[-1] == "finished" else 1), output
        if code == 0:
            assert self._weights(name) == self.weights
            result = result_file.read_result(str(self._run_folder(name) / "checkpoints"))
            assert result is not None
            assert [leg["why"] for leg in result["journey"]] == [leg["why"] for leg in self.legs(name)]
        else:
            assert "there are no machines for this training" in output

    def check_nothing_left(self, name: str) -> None:
        """Check that no process of a journey runs, and that no job of it is said to run.

        Raises:
            AssertionError: There is one.
        """
        deadline = time.monotonic() + 30
        while left := self._processes(name):
            assert time.monotonic() < deadline, [each.cmdline() for each in left]
            time.sleep(0.1)

    def output(self, name: str) -> str:
        """Return what the runs of a journey have printed."""
        return (self.folder / name / "output.txt").read_text(errors="replace")

    def legs(self, name: str) -> list[dict[str, Any]]:
        """Return the legs in the journey's file."""
        paths = (self._run_folder(name) / "journey").glob("*.json")
        found = [leg for path in paths for leg in storage.read_json(path)["legs"]]
        return sorted(found, key=lambda leg: float(leg["submitted"]))

    def _start(self, name: str, faults: list[str]) -> subprocess.Popen[bytes]:
        work_dir = self.folder / name
        words = [sys.executable, "-m", "localvertex", "run", str(self.folder / "training.json"), "--no-cache"]
        words += ["--work-dir", str(work_dir), "--max-backoff", "0.1", "--parameter", "metric=accuracy"]
        words += ["--parameter", 'command=["python", "-m", "train_a_while"]']
        for fault in faults:
            words += ["--fault", fault]
        work_dir.mkdir(exist_ok=True)
        env = os.environ | {"PYTHONPATH": f"{ROOT}:{self.folder / 'code'}"}
        with (work_dir / "output.txt").open("ab") as output:
            return subprocess.Popen(words, cwd=self.folder, stdout=output, stderr=output, env=env)

    def _disturb(self, run: subprocess.Popen[bytes], name: str, plan: Plan) -> bool:
        """Disturb a run, and return whether it was stopped before its end."""
        training = self.folder / name / "training"
        while run.poll() is None and not (training.exists() and [*training.glob("*/journey/*.json")]):
            time.sleep(0.05)
        deadline = time.monotonic() + plan.after_seconds
        while run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        if run.poll() is not None or "train: SUCCEEDED" in self.output(name) or "train: FAILED" in self.output(name):
            return False
        if plan.disturbance != STEP:
            run.send_signal(signal.SIGINT if plan.disturbance == CANCEL else signal.SIGKILL)
            return True
        for each in self._processes(name):
            with suppress(psutil.Error):
                # Only the step calls the endpoint of the run.
                if each.cwd().endswith("/train") and each.net_connections("tcp"):
                    each.kill()
        return False

    def _processes(self, name: str) -> list[psutil.Process]:
        """Return the processes that work in the folder of a journey."""
        return [each for each in working_in(self.folder / name) if not has_ended(each)]

    def _run_folder(self, name: str) -> Path:
        (found,) = (self.folder / name / "training").iterdir()
        return found

    def _weights(self, name: str) -> bytes:
        checkpoints = self._run_folder(name) / "checkpoints"
        result = result_file.read_result(str(checkpoints))
        assert result is not None, self.output(name)
        # The others are the states of generators that the program does not seed.
        content = np.load(checkpoints / result["best_checkpoint"] / "variables.npz")["v00000"]
        return bytes(content.tobytes())
