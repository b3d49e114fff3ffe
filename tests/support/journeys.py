"""Trainings over several machines with shortages, preemptions and kills, whose end is written before they run."""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from exact_resume.checkpoints import result_file
from exact_resume.events import log as event_log
from exact_resume.files import storage

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
        time.sleep(0.05)
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
NOTHING, KILLED_STEP, CANCELLED_RUN, KILLED_RUN = "nothing", "SIGKILL of the step", "SIGINT of the run", "SIGKILL of the run"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What happens to a journey, and how it must end."""

    troubles: tuple[str, ...]
    """Of each candidate: a shortage, preemptions, or empty for none."""
    disturbance: str
    after_seconds: float
    """When the disturbance happens, from the start of the run."""

    @classmethod
    def of(cls, seed: str) -> "Plan":
        """Draw a plan."""
        draw = random.Random(seed)
        troubles = []
        for candidate in CANDIDATES:
            possible = [*SHORTAGES, "", "", *([PREEMPTED] * 2 if candidate["scheduling_strategy"] == "SPOT" else [])]
            troubles.append(draw.choice(possible))
        disturbance = draw.choice([NOTHING, NOTHING, KILLED_STEP, CANCELLED_RUN, KILLED_RUN])
        return cls(troubles=tuple(troubles), disturbance=disturbance, after_seconds=draw.uniform(1.5, 8))

    @property
    def faults(self) -> list[str]:
        """The options of the run."""
        text = {"queue": "queue candidate {} for 600s", PREEMPTED: "preempt workerpool0-0 every 1s grace 0.2s"}
        given = [text.get(each, each + " candidate {}").format(index) for index, each in enumerate(self.troubles) if each]
        return list(dict.fromkeys(given))

    @property
    def whys(self) -> list[str]:
        """Why each job ends, without a disturbance."""
        found = []
        # Preemptions happen to every Spot job of the run.
        is_preempting = PREEMPTED in self.troubles
        for candidate, trouble in zip(CANDIDATES, self.troubles, strict=True):
            is_preempted = is_preempting and candidate["scheduling_strategy"] == "SPOT"
            found.append(trouble if trouble in SHORTAGES else PREEMPTED if is_preempted else "finished")
            if found[-1] == "finished":
                break
        return found

    @property
    def is_finished(self) -> bool:
        """Whether a candidate trains to the end."""
        return self.whys[-1] == "finished"


class Journeys:
    """Journeys in a folder; each has a work folder of its own.

    Args:
        folder: Where.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "code").mkdir(parents=True)
        (folder / "code" / "train_a_while.py").write_text(PROGRAM)
        settings: dict[str, Any] = {
            "machine_type": "n1-standard-4",
            "accelerator_type": "",
            "accelerator_count": 0,
            "scheduling_strategy": "SPOT",
            "timeout_seconds": 600,
            "max_wait_seconds": 1,
            "max_preemptions": 1,
            "fallbacks": list(CANDIDATES[1:]),
        }
        (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
        words = [sys.executable, "compile.py", "training", "--settings", str(folder / "settings.yaml")]
        subprocess.run([*words, "--output-dir", str(folder)], cwd=ROOT, check=True, capture_output=True)
        self.undisturbed = self._undisturbed()

    def _undisturbed(self) -> bytes:
        journey = self.start("undisturbed", [])
        assert journey.wait(timeout=300) == 0, self.output("undisturbed")
        return self.weights("undisturbed")

    def start(self, name: str, faults: list[str]) -> subprocess.Popen[bytes]:
        """Start a run of a journey."""
        work_dir = self.folder / name
        words = [sys.executable, "-m", "localvertex", "run", str(self.folder / "training.json"), "--work-dir", str(work_dir)]
        words += ["--parameter", 'command=["python", "-m", "train_a_while"]', "--no-cache", "--max-backoff", "1"]
        words += ["--parameter", "direction=maximize"]
        for fault in faults:
            words += ["--fault", fault]
        work_dir.mkdir(exist_ok=True)
        with (work_dir / "output.txt").open("ab") as output:
            environment = {"PYTHONPATH": f"{ROOT}:{self.folder / 'code'}"}
            return subprocess.Popen(words, cwd=self.folder, stdout=output, stderr=output, env={**_environment(), **environment})

    def output(self, name: str) -> str:
        """Return what the runs of a journey have printed."""
        return (self.folder / name / "output.txt").read_text(errors="replace")

    def run_folder(self, name: str) -> Path:
        """Return the folder of the training run of a journey."""
        (found,) = (self.folder / name / "training").iterdir()
        return found

    def weights(self, name: str) -> bytes:
        """Return the last checkpoint's content."""
        checkpoints = self.run_folder(name) / "checkpoints"
        result = result_file.read_result(str(checkpoints))
        assert result is not None
        return b"".join(path.read_bytes() for path in sorted((checkpoints / result["best_checkpoint"]).glob("*.np*")))

    def legs(self, name: str) -> list[dict[str, Any]]:
        """Return the journey's file."""
        return list(storage.read_json(self.run_folder(name) / "journey.json")["legs"])
