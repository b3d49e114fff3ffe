"""A training that moves to other machines: the time that a move takes, and the steps that are trained twice.

    python -m benchmarks.fallbacks [--epochs 40]

The image pipeline loses a Spot machine twice, and moves to the next machines of its list. The move, from the last line
of the old job to the first step of the new one, is compared with the restart on the same machine, which imports, builds
and restores as well. The steps trained twice are compared with Keras' `BackupAndRestore` after each epoch, preempted at
the same steps and started again.
"""

import argparse
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

import yaml

from benchmarks.measuring import Clock, parse
from exact_resume.events import log as event_log

_ROOT = pathlib.Path(__file__).parents[1]
_SETTINGS = {
    "machine_type": "n1-standard-4",
    "accelerator_type": "",
    "accelerator_count": 0,
    "scheduling_strategy": "SPOT",
    "timeout_seconds": 3600,
    "max_preemptions": 1,
    "fallbacks": [{"scheduling_strategy": "STANDARD"}],
    "min_compared_images": 10,
}
_PERCENTAGES = (30, 60)
"""Of the steps, at which the machine is lost; within an epoch."""

_KERAS = """
import os, pathlib, signal, sys
import keras
from sklearn.datasets import load_digits
x, y = load_digits(return_X_y=True)
folder, epochs, last = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
class Note(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch
    def on_train_batch_end(self, step, logs=None):
        done = self.epoch * self.params["steps"] + step + 1
        with (folder / "steps").open("a") as file:
            print(done, file=file)
        if done == last:
            os.kill(os.getpid(), signal.SIGTERM)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
backup = keras.callbacks.BackupAndRestore(str(folder / "backup"))
model.fit(x[:1344], y[:1344], epochs=epochs, batch_size=64, callbacks=[backup, Note()], verbose=0)
"""

_KERAS_STEPS_PER_EPOCH = 1344 // 64


def _moved(folder: pathlib.Path, epochs: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Run the pipeline, and return its legs and the events of the primary replica."""
    (folder / "settings.yaml").write_text(yaml.safe_dump(_SETTINGS))
    words = [sys.executable, "compile.py", "image_training", "--settings", str(folder / "settings.yaml")]
    subprocess.run([*words, "--output-dir", str(folder)], cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    run = ["-m", "localvertex", "run", str(folder / "image_training.json"), "--work-dir", str(folder / "runs")]
    faults = [word for at in _PERCENTAGES for word in ("--fault", f"preempt workerpool0-0 at {at}% grace 10s")]
    given = ["--parameter", f"epochs={epochs}", "--parameter", "minimum_score=0"]
    subprocess.run([sys.executable, *run, *faults, *given], cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    (journey,) = (folder / "runs" / "training").glob("*/journey/*.json")
    legs = json.loads(journey.read_text())["legs"]
    events = event_log.read(str(journey.parent.with_name("checkpoints")))
    return legs, [each for each in events if each["replica"] == event_log.PRIMARY]


def _gaps(events: list[dict[str, Any]]) -> list[float]:
    """Return the seconds from the last line of each process to the first step of the next one."""
    starts = [index for index, event in enumerate(events) if event["event"] == "start"]
    gaps = []
    for begin, end in itertools.pairwise([*starts, len(events)]):
        steps = [event for event in events[begin:end] if event["event"] == "steps"]
        if begin and steps:
            gaps.append(steps[0]["time"] - steps[0]["seconds"] - events[begin - 1]["time"])
    return gaps


def _num_twice(events: list[dict[str, Any]]) -> int:
    steps = [
        step for each in events if each["event"] == "steps" for step in range(each["first_step"], each["last_step"] + 1)
    ]
    return len(steps) - len(set(steps))


def _keras_num_twice(folder: pathlib.Path, epochs: int) -> int:
    """Return how many steps Keras trains twice when its process is terminated at the same parts of its training."""
    folder.mkdir()
    environment = os.environ | {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    for last in (*(at * _KERAS_STEPS_PER_EPOCH * epochs // 100 for at in _PERCENTAGES), 0):
        command = [sys.executable, "-c", _KERAS, str(folder), str(epochs), str(last)]
        code = subprocess.run(command, env=environment, stderr=subprocess.DEVNULL).returncode
        if code != (-signal.SIGTERM if last else 0):
            raise RuntimeError(f"Keras' training ended with exit code {code} instead of after step {last or 'all'}")
    steps = [*map(int, (folder / "steps").read_text().split())]
    return len(steps) - len(set(steps))


def main() -> None:
    """Print the times and the steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=40)
    options = parse(parser, epochs=8)
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        legs, events = _moved(pathlib.Path(scratch), options.epochs)
        num_steps = max(event["last_step"] for event in events if event["event"] == "steps")
        twice = _num_twice(events)
        keras = _keras_num_twice(pathlib.Path(scratch, "keras"), options.epochs)
    print("jobs:", *(f"{leg['machines']}: {leg['why']}" for leg in legs), sep="\n  ")
    gaps = _gaps(events)
    restart, move = gaps[0], gaps[-1]
    print(f"restart on the same machine {restart:6.2f} s   import, build and restore, by Vertex AI's rules")
    print(f"move to the next machines   {move:6.2f} s   {move / restart:.2f} times")
    print(
        f"steps trained twice, of {num_steps}: {twice}; Keras' BackupAndRestore after each epoch, "
        f"of {_KERAS_STEPS_PER_EPOCH * options.epochs}: {keras}"
    )
    print(f"all{clock.took()}")


if __name__ == "__main__":
    main()
