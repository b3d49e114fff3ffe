"""Short trainings of every kind, and what they come to: `python -m tests.support.trainings FILE` writes the file.

It was written by the code before the loop became exact_resume's: ids, order of the batches, scores and weights stay.
"""

import hashlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.job import Job
from tests.support.killed_recipe import KINDS

FILE = Path(__file__).parent.parent / "data" / "trainings_before.json"
_FINE_TUNING = "fine-tuning"
_COMMON = ("--exact", "--epochs=2", "--global-batch-size=32", "--checkpoint-every-seconds=0")
TRAININGS: dict[str, tuple[int, tuple[str, ...]]] = {
    "one device": (1, ()),
    "two workers": (2, ()),
    "two workers, recipe": (2, (f"--recipe={json.dumps(KINDS['balanced sampling'])}", "--augment=shift")),
    "stopped early": (1, ("--epochs=30", "--patience=2", "--learning-rate=0.01")),
    "stopped early, two workers": (2, ("--epochs=30", "--patience=2", "--learning-rate=0.01")),
    "another metric": (1, ("--metric=macro-f1", "--epochs=3")),
    "in blocks of the order": (1, ("--shuffle=blocks",)),
    "augmented": (1, ("--augment=flip-and-shift", "--checkpoint-every-steps=3")),
    _FINE_TUNING: (
        1,
        (
            "--model=tiny-base",
            f"--recipe={json.dumps({'fine_tuning': {'start': 0.5, 'layers': 5, 'learning_rate_multiplier': 0.1}})}",
        ),
    ),
    **{kind: (1, (f"--recipe={json.dumps(recipe)}",)) for kind, recipe in KINDS.items() if "optimizer" not in kind},
}
"""Name -> number of workers and arguments of `trainer.task`."""


def train(name: str, dataset: Path, folder: Path) -> dict[str, Any]:
    """Train, and return what the training came to."""
    num_workers, arguments = TRAININGS[name]
    job = Job(folder, [f"--dataset={dataset}", f"--checkpoint-directory={folder}", *_COMMON, *arguments], num_workers)
    job.forks = name != _FINE_TUNING
    job.script = [] if job.forks else [str(FILE.parent.parent / "support" / "tiny_base.py")]
    job.run(max_attempts=1)
    result = json.loads((folder / "result.json").read_text())
    order = hashlib.sha256(json.dumps(result["batch_digests"]).encode()).hexdigest()
    scores = {key: round(result[key], 3) for key in ("validation_accuracy", "score") if key in result}
    ends = {key: result[key] for key in ("run_id", "final_step", "best_step", "stop_reason")}
    return {**ends, **scores, "order": order, "weights": result["weights_sha256"]}


def processor() -> str:
    """Return what decides the last bits of a convolution: the instructions that TensorFlow can use."""
    lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features"))]
    found = {word for line in lines[:1] for word in line.split() if word.startswith(("avx", "amx", "fma", "asimd"))}
    return " ".join([platform.machine(), str(os.cpu_count()), *sorted(found)])


def main() -> None:
    """Write the file again."""
    from trainer.prepare import prepare

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data, report = folder / "dataset", folder / "report.html"
        prepare(source="digits", output_directory=str(data), report_path=str(report), image_size=16, max_examples=300)
        found = {each: train(each, data, folder / f"run-{number}") for number, each in enumerate(TRAININGS)}
    Path(sys.argv[1]).write_text(json.dumps({"processor": processor(), "trainings": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
