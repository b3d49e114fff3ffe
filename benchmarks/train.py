"""Steps per second of the trainer, compared with Keras' `fit` and a bare loop: same network, data, batch and machine.

Run it as `python -m benchmarks.train`. On one device the baseline is Keras 3's `fit`. With two workers on this machine
it is tf-keras' `fit` under MultiWorkerMirroredStrategy, because Keras 3's does not work there. That needs
`python -m pip install --no-deps tf-keras==2.21.0` (it depends on tensorflow, but works with tensorflow-cpu).

The bare loop is the limit: a `tf.function` on data in memory that does nothing but train, with two workers under
MultiWorkerMirroredStrategy, and with XLA if that is faster. See benchmarks/baselines.py for both baselines. Two workers
on two cores also share them with the checkpoints that are written in the background: the side `saving` is the bare loop
whose chief writes one after each epoch.

`--recipes` compares `fit` and the trainer with each option of a recipe instead: `fit` uses Keras' own means, and
RandAugment in the map of `tf.data` beside the augmentation `standard`.

The sides take turns in separate processes, and the figures are medians. The trainer's figure is from the event log of
`python -m trainer.task` after the warm-up, without XLA.
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

from benchmarks.measuring import Clock, Took, load, median, parse
from trainer.prepare import prepare


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """The workload of all sides, and the ratio that the trainer has to reach."""

    model: str
    image_size: int
    steps_per_epoch: int
    """Steps per epoch of `fit`, and per graph call of the bare loop."""
    target: float
    """Lowest accepted ratio of steps per second, trainer to `fit`."""
    batch_size: int = 64
    num_workers: int = 1
    num_calls: int = 0
    """Epochs or graph calls of the baselines with several workers, none of which may stop by its own clock."""
    saves_every: int = 0
    """Steps after which the side `saving` saves, as many as an epoch of the trainer has; 0: no such side."""

    @property
    def sides(self) -> tuple[str, ...]:
        """Names of the sides."""
        return (*_SIDES, *([_SAVING] * bool(self.saves_every)))

    @property
    def title(self) -> str:
        """Name of the case in the table."""
        several = f", {self.num_workers} workers" if self.num_workers > 1 else ""
        return f"{self.model} {self.image_size}x{self.image_size}, batch {self.batch_size}{several}"


_CASES = {
    "convnet": Case(model="convnet", image_size=32, steps_per_epoch=100, target=1.5),
    "mnist-cnn": Case(model="mnist-cnn", image_size=28, steps_per_epoch=10, target=0.97),
    "resnet50": Case(model="resnet50", image_size=96, batch_size=16, steps_per_epoch=4, target=0.97),
    "two-workers": Case(
        model="convnet", image_size=16, steps_per_epoch=50, num_workers=2, num_calls=12, target=2.0, saves_every=22
    ),
}
_RECIPES: dict[str, dict[str, Any]] = {
    "none": {},
    "AdamW with clipping": {
        "optimizer": {"class_name": "AdamW", "config": {"weight_decay": 0.01, "global_clipnorm": 1.0}}
    },
    "EMA": {"optimizer": {"class_name": "Adam", "config": {"use_ema": True}}},
    "label smoothing": {"loss": {"class_name": "CategoricalCrossentropy", "config": {"label_smoothing": 0.1}}},
    "class weights": {"class_weights": "balanced"},
    "augmentation": {"augmentation": "standard"},
}
_SIDES = ("fit", "trainer", "bare")
_SAVING = "saving"
"""The bare loop that saves, only with several workers."""
_TRAINER = "-m trainer.task --weights=none --augment=none --epochs=100000 --checkpoint-every-seconds=0"
_MAX_SECONDS = 600.0


def start(arguments: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    """Start a Python process whose output goes to the log."""
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    kept = {name: value for name, value in os.environ.items() if name not in ("TF_CONFIG", "CLUSTER_SPEC")}
    with log.open("a") as file:
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=kept | environment | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )


def _clusters(num_workers: int) -> list[dict[str, str]]:
    """Return TF_CONFIG for each worker on this machine; empty for a single one."""
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
    """Measure the steps per second of `trainer.task`, and stop it by SIGTERM."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            *_TRAINER.split(),
            f"--dataset={dataset}",
            f"--checkpoint-directory={folder}/run",
            f"--model={name}",
            f"--global-batch-size={batch_size}",
            *flags,
        ]
        logs = [Path(folder) / f"log-{index}" for index in range(num_workers)]
        processes = [start(arguments, *pair) for pair in zip(_clusters(num_workers), logs, strict=True)]
        try:
            return _watch(Path(folder) / "run" / "events" / "workerpool0-0.jsonl", processes, seconds)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {[log.read_text()[-1000:] for log in logs]}") from error
        finally:
            for process in processes:
                process.send_signal(signal.SIGTERM)
            for process in processes:
                process.wait(timeout=_MAX_SECONDS)


def _watch(log: Path, processes: "list[subprocess.Popen[bytes]]", seconds: float) -> float:
    end = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < end and all(process.poll() is None for process in processes):
        lines = log.read_text().splitlines() if log.exists() else []
        events: list[dict[str, Any]] = [json.loads(line) for line in lines if line.endswith("}")]
        calls = _calls_at_full_speed(events)
        if (measured := sum(event["seconds"] for event in calls)) > seconds:
            return float(sum(event["last_step"] - event["first_step"] + 1 for event in calls) / measured)
        time.sleep(0.5)
    raise RuntimeError("the trainer did not train")


def _calls_at_full_speed(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the `steps` events after the first evaluation, without the first two, which may trace again."""
    first = next((i for i, event in enumerate(events) if event["event"] == "evaluate"), len(events))
    return [event for event in events[first:] if event["event"] == "steps"][2:]


def baseline_rate(num_workers: int, **order: Any) -> float:
    """Measure the steps per second of a baseline; the fields are described in `benchmarks.baselines.Order`."""
    with tempfile.TemporaryDirectory() as folder:
        if order["side"] == _SAVING:
            order |= {"side": "bare", "is_saving": True}
        arguments = ["-m", "benchmarks.baselines", json.dumps(order)]
        logs = [Path(folder) / f"log-{index}" for index in range(num_workers)]
        processes = [start(arguments, *pair) for pair in zip(_clusters(num_workers), logs, strict=True)]
        if any([process.wait(timeout=_MAX_SECONDS) for process in processes]):
            raise RuntimeError(f"{order['side']} failed: {[log.read_text()[-1000:] for log in logs]}")
        return float(json.loads(logs[0].read_text().splitlines()[-1])["steps_per_second"])


def _prepared(directory: Path, image_size: int) -> Path:
    """Prepare the handwritten digits at an image size in pixels."""
    report = str(directory.with_suffix(".html"))
    prepare(source="digits", output_directory=str(directory), report_path=report, image_size=image_size)
    return directory


def _measure(
    side: str, case: Case, data: Path, seconds: float, recipe: dict[str, Any] | None = None
) -> tuple[float, Took]:
    """Return the steps per second of a side, and the cost of its processes."""
    clock, recipe = Clock(), recipe or {}
    if side == "trainer":
        # The flag of the cases excludes the key.
        flags = [f"--recipe={json.dumps(recipe)}"] + ["--augment=shift"] * ("augmentation" in recipe)
        rate = trainer_rate(data, case.model, case.batch_size, seconds, case.num_workers, *flags)
    else:
        rate = baseline_rate(
            case.num_workers,
            side=side,
            dataset=str(data),
            model=case.model,
            batch_size=case.batch_size,
            steps_per_call=case.saves_every if side == _SAVING else case.steps_per_epoch,
            seconds=seconds,
            num_calls=case.num_calls * case.steps_per_epoch // case.saves_every if side == _SAVING else case.num_calls,
            recipe=recipe,
        )
    return rate, clock.took()


def _compare(case: Case, turns: list[dict[str, tuple[float, Took]]]) -> bool:
    """Print the lines of a case; return whether the trainer reaches the target."""
    rates = {side: statistics.median(turn[side][0] for turn in turns) for side in case.sides}
    ratio, share = rates["trainer"] / rates["fit"], rates["trainer"] / rates["bare"]
    verdict = "reached" if ratio >= case.target else "NOT REACHED"
    columns = " ".join(f"{rates[side]:8.2f}" for side in _SIDES)
    print(f"{case.title:<34} {columns} {ratio:6.2f} {share:7.0%}   at least {case.target:g} times fit: {verdict}")
    if case.saves_every:
        share = rates["trainer"] / rates[_SAVING]
        print(f"  bare loop that saves after each {case.saves_every}: {rates[_SAVING]:.2f}, of which {share:.0%}")
    print(f"  load average {load()}; processes, imports included:")
    for side in case.sides:
        print(f"  {side:<8} {median(turn[side][1] for turn in turns)}", flush=True)
    return ratio >= case.target


def _compare_recipes(data: Path, case: Case, repeats: int, seconds: float) -> None:
    """Print a row for each option of a recipe."""
    print(f"{case.title}, medians of {repeats} rounds\n")
    columns = (
        "option",
        "`fit`, steps/s",
        "trainer, steps/s",
        "ratio",
        "processor s of a process: `fit`, trainer",
        "load",
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|", flush=True)
    for name, recipe in _RECIPES.items():
        found: dict[str, list[tuple[float, Took]]] = {"fit": [], "trainer": []}
        for _ in range(repeats):
            for side, turns in found.items():
                turns.append(_measure(side, case, data, seconds, recipe))
        fit, ours = (statistics.median(rate for rate, _ in turns) for turns in found.values())
        cpu = ", ".join(f"{median(took for _, took in turns).cpu_seconds:.0f}" for turns in found.values())
        print(f"| {name} | {fit:.1f} | {ours:.1f} | {ours / fit:.2f} | {cpu} | {load()} |", flush=True)


def main() -> int:
    """Print the ratios; return 1 if one misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="duration of each measurement, without warm-up")
    parser.add_argument("--only", default="", help="one of: " + ", ".join(_CASES))
    parser.add_argument("--recipes", action="store_true", help="each option of a recipe, on the first case")
    options = parse(parser, repeats=1, seconds=0.1, only="convnet")
    if options.recipes:
        case = next(iter(_CASES.values()))
        with tempfile.TemporaryDirectory() as folder:
            data = _prepared(Path(folder) / "data", case.image_size)
            _compare_recipes(data, case, options.repeats, options.seconds)
        return 0
    if options.only in ("", "two-workers") and importlib.util.find_spec("tf_keras") is None:
        parser.error("tf-keras is missing: python -m pip install --no-deps tf-keras==2.21.0, or give --only")
    columns = " ".join(f"{side:>8}" for side in _SIDES)
    print(f"steps/s, medians of {options.repeats} rounds{'':<10} {columns} {'to fit':>6} {'of bare':>7}", flush=True)
    reached = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in _CASES.items():
            if options.only in ("", name):
                if options.smoke:
                    case = dataclasses.replace(case, steps_per_epoch=5)
                data = _prepared(Path(folder) / name, case.image_size)
                turns = [
                    {side: _measure(side, case, data, options.seconds) for side in case.sides}
                    for _ in range(options.repeats)
                ]
                reached.append(_compare(case, turns))
    return 0 if options.smoke or all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
