"""Steps per second of the trainer beside Keras' `fit`: same network, data, batch and machine, in one run.

Run it as `python benchmarks/train.py`. On one device the other side is Keras 3's `fit`; with two workers on this
machine it is tf-keras' `fit` under MultiWorkerMirroredStrategy, since Keras 3's does not work there. It takes
`python -m pip install --no-deps tf-keras==2.21.0` (its dependency is named tensorflow, and tensorflow-cpu serves).

The sides take turns in processes of their own; the figures are medians. Ours is what `python -m trainer.task` writes
into its diary, after the warm-up and with what it chose itself (XLA after a timing).
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trainer.prepare import prepare


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """What is trained on both sides, and what the trainer shall reach against `fit`."""

    model: str
    image_size: int
    steps_per_epoch: int
    """Of `fit`."""
    wanted: float
    batch_size: int = 64
    num_workers: int = 1
    num_epochs: int = 0
    """Of `fit` on several workers, none of which may stop by its own clock; 0 on one device."""

    @property
    def title(self) -> str:
        """In a line of the table."""
        several = f", {self.num_workers} workers" if self.num_workers > 1 else ""
        return f"{self.model} {self.image_size}x{self.image_size}, batch {self.batch_size}{several}"


CASES = {
    "convnet": Case(model="convnet", image_size=32, steps_per_epoch=100, wanted=1.5),
    "mnist-cnn": Case(model="mnist-cnn", image_size=28, steps_per_epoch=10, wanted=0.97),
    "resnet50": Case(model="resnet50", image_size=96, batch_size=16, steps_per_epoch=4, wanted=0.97),
    "two-workers": Case(model="convnet", image_size=16, steps_per_epoch=50, num_workers=2, num_epochs=12, wanted=2.0),
}
TRAINER = "-m trainer.task --weights=none --augment=none --epochs=100000 --checkpoint-every-seconds=0"
LONGEST_SECONDS = 600.0


def start(arguments: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """A Python process; what it says goes to the log."""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "CLUSTER_SPEC")}
    with log.open("a") as file:
        return subprocess.Popen(
            [sys.executable, *arguments], env=kept | environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip


def clusters(num_workers: int) -> list[dict[str, str]]:
    """TF_CONFIG of each worker on this machine; nothing for a single one."""
    if num_workers == 1:
        return [{}]
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(num_workers)]
    addresses = [f"127.0.0.1:{probe.getsockname()[1]}" for probe in probes]
    for probe in probes:
        probe.close()
    return [
        {"TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})}
        for index in range(num_workers)
    ]


def trainer_rate(dataset: Path, name: str, batch_size: int, seconds: float, num_workers: int, *flags: str) -> float:
    """Steps per second of `trainer.task`, which is stopped by SIGTERM when enough has been seen."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            *TRAINER.split(), f"--dataset={dataset}", f"--checkpoint-directory={folder}/run", f"--model={name}",
            f"--global-batch-size={batch_size}", *flags,
        ]  # fmt: skip
        logs = [Path(folder) / f"log-{index}" for index in range(num_workers)]
        processes = [start(arguments, *pair) for pair in zip(clusters(num_workers), logs, strict=True)]
        try:
            return _watch(Path(folder) / "run" / "events" / "workerpool0-0.jsonl", processes, seconds)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {[log.read_text()[-1000:] for log in logs]}") from error
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(timeout=LONGEST_SECONDS)


def _watch(diary: Path, processes: "list[subprocess.Popen[bytes]]", seconds: float) -> float:
    end = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < end and all(process.poll() is None for process in processes):
        lines = diary.read_text().splitlines() if diary.exists() else []
        events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]
        settled = settled_calls(events)
        if (measured := sum(event["seconds"] for event in settled)) > seconds:
            return float(sum(event["last_step"] - event["first_step"] + 1 for event in settled) / measured)
        time.sleep(0.5)
    raise RuntimeError("the trainer did not train")


def settled_calls(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The `steps` events after the warm-up: behind the last notice, without the two calls that may trace again."""
    last_notice = max((i for i, event in enumerate(events) if event["event"] == "notice"), default=None)
    if last_notice is None:
        return []
    return [event for event in events[last_notice:] if event["event"] == "steps"][2:]


def fit_rate(dataset: Path, name: str, batch_size: int, steps_per_epoch: int, amount: float, num_workers: int) -> float:
    """Steps per second of `fit`; the amount is in seconds on one device and in epochs on several workers."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(dataset), name, str(batch_size), str(steps_per_epoch), str(amount)]
        script = str(Path(__file__).parent / "keras_fit.py")
        logs = [Path(folder) / f"log-{index}" for index in range(num_workers)]
        processes = [start([script, *words], *pair) for pair in zip(clusters(num_workers), logs, strict=True)]
        if any([process.wait(timeout=LONGEST_SECONDS) for process in processes]):
            raise RuntimeError(f"fit failed: {[log.read_text()[-1000:] for log in logs]}")
        return float(json.loads(logs[0].read_text().splitlines()[-1])["steps_per_second"])


def made(directory: Path, image_size: int) -> Path:
    """The handwritten digits as a dataset of pictures of that size."""
    report = str(directory.with_suffix(".html"))
    prepare(source="digits", output_directory=str(directory), report_path=report, image_size=image_size)
    return directory


def turn(case: Case, data: Path, seconds: float) -> tuple[float, float]:
    """Steps per second of the trainer and of `fit`."""
    ours = trainer_rate(data, case.model, case.batch_size, seconds, case.num_workers)
    amount = case.num_epochs or seconds
    return ours, fit_rate(data, case.model, case.batch_size, case.steps_per_epoch, amount, case.num_workers)


def compare(title: str, turns: list[tuple[float, float]], wanted: float) -> bool:
    """Prints a line for turns of (trainer, fit); whether the trainer is as fast as it shall be."""
    here, there = (statistics.median(side) for side in zip(*turns, strict=True))
    ratio = here / there
    verdict = "reached" if ratio >= wanted else "NOT REACHED"
    print(f"{title:<34} {there:8.2f} {here:8.2f}   {ratio:5.2f} times; at least {wanted:g}: {verdict}", flush=True)
    return bool(ratio >= wanted)


def main() -> int:
    """Prints the ratios; 1 if one is not reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement, without warm-up")
    parser.add_argument("--only", default="", help="one of: " + ", ".join(CASES))
    options = parser.parse_args()
    if options.only in ("", "two-workers") and importlib.util.find_spec("tf_keras") is None:
        parser.error("tf-keras is missing: python -m pip install --no-deps tf-keras==2.21.0, or give --only")
    print(f"steps/s, medians of {options.repeats} turns{'':<10} {'fit':>8} {'trainer':>8}", flush=True)
    reached = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if options.only in ("", name):
                data = made(Path(folder) / name, case.image_size)
                turns = [turn(case, data, options.seconds) for _ in range(options.repeats)]
                reached.append(compare(case.title, turns, case.wanted))
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
