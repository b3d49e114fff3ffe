"""Balanced accuracy of the trainer, compared with the better of two Keras recipes on equal data and the same network.

Run it as `python -m benchmarks.recipes`. A pair is a generator seed and a training seed of a task. On each pair the
sides train in turn, in processes of their own: `fit`, `careful-fit` (see keras_recipes.py) and the trainer, once for
each `--ours`. The better Keras recipe of a task is the one with the higher mean over the task's pairs. The interval is
that of Student's t over the differences of the pairs, at 95%.

Each training that has ended is a line of OUTPUT_DIR/trainings.jsonl, so a run that was stopped resumes: a training with
equal settings and code is not repeated. The table is printed and written to OUTPUT_DIR/DATE.md.

Defaults are chosen on generator seeds 0 to 4, those of `--seeds` here; 5 to 9 are for a single report at the end.
"""

import argparse
import dataclasses
import datetime
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy import stats

from benchmarks.measuring import Clock, load, machine, parse
from benchmarks.recipes import generators
from trainer.data import dataset
from trainer.prepare import prepare

_ROOT = Path(__file__).parents[2]
_KERAS = ("fit", "careful-fit")
_CODE = {
    "data": ("benchmarks/recipes/generators.py", "trainer/data/**/*.py"),
    "keras": (
        "benchmarks/recipes/keras_recipes.py",
        "trainer/models/small_networks.py",
        "trainer/models/weights.py",
    ),
    "ours": ("trainer/*.py", "trainer/[!rs]*/**/*.py"),
}
"""The files on which a prepared dataset, a Keras recipe and the trainer depend, besides their settings.

A training that has ended stays so when the code that prepares datasets changes and their fingerprint does not.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Case:
    """How all sides train on a task."""

    model: str = "small-resnet"
    image_size: int = 48
    epochs: int = 20
    batch_size: int = 32


_CASES = {
    "digits": _Case(model="convnet", image_size=32, epochs=10, batch_size=64),
    "shapes": _Case(),
    "textures": _Case(),
    "glyphs": _Case(),
    "photographs": _Case(),
}


class Difference(NamedTuple):
    """Mean of the paired differences, and its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return percentage points."""
        return f"{100 * self.mean:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


def difference(ours: Sequence[float], other: Sequence[float]) -> Difference:
    """Return the mean of the paired differences with its 95% t interval, which is infinite for a single pair."""
    differences = [first - second for first, second in zip(ours, other, strict=True)]
    mean, half = statistics.mean(differences), float("inf")
    if len(differences) > 1:
        error = statistics.stdev(differences) / len(differences) ** 0.5
        half = float(stats.t.ppf(0.975, len(differences) - 1)) * error
    return Difference(mean, mean - half, mean + half)


class Record:
    """The trainings that have ended, a line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        # A kill may have torn the last line.
        whole = [line for line in (path.read_text() if path.exists() else "").splitlines(keepends=True) if "\n" in line]
        path.write_text("".join(whole))
        self._lines = {json.dumps(line["key"]): line for line in map(json.loads, whole)}

    def find(self, key: dict[str, Any]) -> dict[str, Any] | None:
        """Return the line of a training, or None if it has not ended yet."""
        return self._lines.get(json.dumps(key))

    def add(self, key: dict[str, Any], **found: Any) -> dict[str, Any]:
        """Write and return the line of a training."""
        line = self._lines[json.dumps(key)] = {"key": key, **found}
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return line


def _code(kind: str) -> str:
    """Return a short hash of the code that a kind of result depends on."""
    digest = hashlib.sha256()
    for pattern in _CODE[kind]:
        for path in sorted(_ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def _data(options: argparse.Namespace, task: str, seed: int) -> tuple[str, Path]:
    """Return the fingerprint of a task's images and the folder of the prepared dataset, made if it is missing."""
    size = options.image_size or _CASES[task].image_size
    settings: dict[str, Any] = {"task": task, "image_size": size}
    if task != "digits":
        given = {name: getattr(options, name) for name in ("num_images", "imbalance", "label_noise")}
        settings |= {"seed": seed, **{name: value for name, value in given.items() if value is not None}}
    key = hashlib.sha256(json.dumps([settings, _code("data")]).encode()).hexdigest()[:8]
    name = f"{task}-{seed}-{key}"
    folder = options.output_dir / "data" / name
    if not folder.exists():
        images = folder.with_name(f"{name}-images")
        shutil.rmtree(images, ignore_errors=True)
        if task != "digits":
            generators.write(generators.Settings(**settings), images)
        source = "digits" if task == "digits" else str(images)
        report = str(folder.with_suffix(".html"))
        prepare(source=source, output_directory=str(folder), report_path=report, image_size=size)
        shutil.rmtree(images, ignore_errors=True)
    return dataset.load(str(folder)).fingerprint[:8], folder


def _trainings(options: argparse.Namespace, record: Record) -> Iterator[dict[str, Any]]:
    """Yield the line of each training, after doing it if it is not in the record."""
    for task in options.tasks:
        case = _CASES[task]
        shared = {
            "model": options.model or case.model,
            "epochs": options.epochs or case.epochs,
            "batch_size": options.batch_size or case.batch_size,
        }
        for seed in options.seeds:
            data_key, folder = _data(options, task, seed)
            for training_seed in options.training_seeds:
                for side in (*_KERAS, *options.ours):
                    code = _code("keras" if side in _KERAS else "ours")
                    # The digits have no generator, so that each of their pairs is another training seed.
                    order = {"side": side, **shared, "seed": 1000 * seed + training_seed}
                    key = {"task": task, "data": data_key, "code": code, **order}
                    yield record.find(key) or record.add(key, **_train({**order, "dataset": str(folder)}))


def _train(order: dict[str, Any]) -> dict[str, Any]:
    began, clock = datetime.datetime.now(datetime.UTC), Clock()
    command = [sys.executable, "-m", "benchmarks.recipes.side", json.dumps(order)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{order} ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-3000:]}")
    took = clock.took()
    return {
        "score": float(done.stdout.splitlines()[-1]),
        "began": began.isoformat(timespec="seconds"),
        "seconds": round(took.seconds, 1),
        "cpu_seconds": round(took.cpu_seconds, 1),
        "load": load(),
    }


def rows(lines: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield a row of the table for each task and configuration of ours, from the lines of its pairs."""
    tasks: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in lines:
        tasks.setdefault(line["key"]["task"], {}).setdefault(line["key"]["side"], []).append(line)
    for task, sides in tasks.items():
        scores = {side: [line["score"] for line in found] for side, found in sides.items()}
        cpu = {side: statistics.mean(line["cpu_seconds"] for line in found) for side, found in sides.items()}
        better = max(_KERAS, key=lambda side: statistics.mean(scores[side]))
        for ours in (side for side in scores if side not in _KERAS):
            means = (f"{100 * statistics.mean(scores[side]):.1f}" for side in (ours, *_KERAS))
            seconds = ", ".join(f"{cpu[side]:.0f}" for side in (ours, *_KERAS))
            key = sides[ours][0]["key"]
            about = f"{task} | {key['model']}, {key['epochs']} epochs | `{ours}` | {len(scores[ours])}"
            yield f"| {about} | {' | '.join(means)} | {difference(scores[ours], scores[better])} | {seconds} |"


def _ours(text: str) -> str:
    """Return a JSON object in one spelling."""
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object with fields of the configuration")
    return json.dumps(fields, sort_keys=True)


def main() -> int:
    """Train what is missing, and print and write the table."""
    parser = argparse.ArgumentParser("python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=_CASES, default=[*_CASES])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4], help="of the generators")
    parser.add_argument("--training-seeds", nargs="+", type=int, default=[0, 1])
    configuration = "JSON object with fields of the trainer's configuration; may be repeated [{}, its defaults]"
    parser.add_argument("--ours", action="append", type=_ours, metavar="JSON", help=configuration)
    parser.add_argument("--model", help="network of all sides [the task's]")
    parser.add_argument("--epochs", type=int, help="[the task's]")
    parser.add_argument("--batch-size", type=int, help="[the task's]")
    parser.add_argument("--image-size", type=int, metavar="PIXELS", help="[the task's]")
    parser.add_argument("--num-images", type=int, help="synthetic images, besides test images [1500]")
    parser.add_argument("--imbalance", type=float, help="largest to smallest class [5]")
    parser.add_argument("--label-noise", type=float, metavar="FRACTION", help="wrong training labels [0.1]")
    parser.add_argument("--output-dir", type=Path, default=_ROOT / "build" / "recipes")
    tiny = {"tasks": ["shapes"], "seeds": [0], "training_seeds": [0], "num_images": 120, "image_size": 32, "epochs": 1}
    options = parse(parser, **tiny, batch_size=32, output_dir=_ROOT / "build" / "recipes-smoke")
    options.ours, options.output_dir = options.ours or ["{}"], options.output_dir.absolute()
    lines = []
    for line in _trainings(options, Record(options.output_dir / "trainings.jsonl")):
        lines.append(line)
        key = line["key"]
        print(
            f"{key['task']} seed {key['seed']} {key['side']}: {line['score']:.3f},"
            f" {line['seconds']:.0f} s (processor {line['cpu_seconds']:.0f} s)",
            flush=True,
        )
    columns = ("task", "network", "ours", "pairs", "ours, %", *(f"{side}, %" for side in _KERAS))
    columns += ("ours to the better, points [95% t interval]", "processor s per training, in this order")
    table = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *rows(lines)]
    today = datetime.datetime.now(datetime.UTC).date()
    smoke = " (smoke: the figures mean nothing)" if options.smoke else ""
    title = f"# Recipes, {today}{smoke}\n\n{machine()}; load average {load()}\n"
    seeds = (
        f"Generator seeds {options.seeds}, training seeds {options.training_seeds}; balanced accuracy, test split.\n"
    )
    text = "\n".join([title, seeds, *table, ""])
    (options.output_dir / f"{today}.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
