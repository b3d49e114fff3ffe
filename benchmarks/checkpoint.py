"""Measure the cost of a checkpoint and the time to resume after a kill: `python -m benchmarks.checkpoint [MODEL]`.

1. How long a save pauses training, compared with `tf.train.Checkpoint` (synchronous, and with enable_async): same
   variables, same disk, taking turns. Also the share of training time at the default interval, at most 1%.
2. The time from SIGKILL of a training process to the end of its successor's first graph call, compared with importing
   TensorFlow and Keras and building the same model. At most 2 times.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.measuring import Clock, Took, median, parse, took

_BUILD = """
import tensorflow as tf
import keras
from trainer.models import models
with tf.device("CPU:0"):
    models.build({model!r}, image_size=32, num_classes=10, weights="none")
"""


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="convnet")
    parser.add_argument("--repeats", type=int, default=3)
    options = parse(parser, repeats=1)
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    with tempfile.TemporaryDirectory() as folder:
        _saves(options.model, pathlib.Path(folder), options.repeats)
        _restart(options.model, pathlib.Path(folder), options.repeats)


def _saves(model: str, folder: pathlib.Path, num_repeats: int) -> None:
    import tensorflow as tf

    from exact_resume.checkpoints.async_writer import CheckpointWriter, best_interval
    from exact_resume.checkpoints.checkpoints import Best, Checkpoint
    from exact_resume.checkpoints.lease import Lease
    from trainer.checkpoints import variables
    from trainer.config import TrainConfig
    from trainer.learner.learner import Learner

    config = TrainConfig(model=model, weights="none")
    learner = Learner(config, tf.distribute.get_strategy(), image_size=32, num_classes=10, num_steps=10)
    held = learner.variables()
    named = {f"v{index:05d}": variable.value for index, variable in enumerate(held)}
    baseline = tf.train.Checkpoint(**named)
    asynchronous = tf.train.CheckpointOptions(enable_async=True)
    lease = Lease(str(folder / "trainer"))
    lease.take({})
    writer = CheckpointWriter(
        str(folder / "trainer"),
        lease,
        keep=1,
        best=Best(),
        saved_step=0,
        log_event=lambda event, **fields: None,
    )
    pauses: dict[str, list[Took]] = {"trainer": [], "tf.train.Checkpoint": [], "with enable_async": []}
    for step in range(1, num_repeats + 2):
        clock = Clock()
        checkpoint = Checkpoint(step=step, best=Best(), identity={}, run_id="", arrays=variables.values(held))
        pauses["trainer"].append(clock.took())
        writer.write(checkpoint, pause_seconds=pauses["trainer"][-1].seconds)
        writer.settle(wait=True)
        for name, options in (("tf.train.Checkpoint", None), ("with enable_async", asynchronous)):
            clock = Clock()
            baseline.write(str(folder / f"baseline-{options is not None}-{step}"), options=options)
            pauses[name].append(clock.took())
            baseline.sync()
    # The first of each warms up.
    medians = {name: median(found[1:]) for name, found in pauses.items()}
    own = medians["trainer"].seconds
    interval = best_interval(own)
    num_bytes = sum(array.nbytes for array in variables.values(held))
    print(f"{model}: {len(held)} variables, {num_bytes / 1e6:.0f} MB")
    for name, pause in medians.items():
        print(f"  a save pauses training for {pause}, {pause.seconds / own:.1f} times the trainer's: {name}")
    print(f"  at the default interval of {interval:.0f} s: {own / interval:.2%} of training time (1% allowed)")


def _restart(model: str, folder: pathlib.Path, num_repeats: int) -> None:
    prepare = [sys.executable, "-m", "trainer.prepare", "digits", str(folder / "data"), "--image-size=32"]
    subprocess.run(prepare, check=True, capture_output=True)
    build, again = [], []
    for number in range(num_repeats):
        build.append(took(subprocess.check_call, [sys.executable, "-c", _BUILD.format(model=model)]))
        again.append(_restart_after_kill(model, folder / "data", folder / f"run-{number}"))
    restart, baseline = statistics.median(again), median(build)
    print("after a SIGKILL:")
    print(f"  import tensorflow and keras, build {model}: {baseline}")
    print(
        f"  from the kill to the end of the next graph call: {restart:.1f} s,"
        f" {restart / baseline.seconds:.2f} times (2 allowed)"
    )


def _restart_after_kill(model: str, data: pathlib.Path, run: pathlib.Path) -> float:
    command = [
        *(sys.executable, "-m", "trainer.task", f"--dataset={data}", f"--checkpoint-directory={run}"),
        *(f"--model={model}", "--weights=none", "--epochs=1000", "--checkpoint-every-steps=2"),
        "--global-batch-size=16",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not _events(run, "save"):
        assert process.poll() is None, "the training ended early"
        time.sleep(0.02)
    num_calls = len(_events(run, "steps"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(_events(run, "steps")) <= num_calls:
        assert process.poll() is None, "the training ended early"
        time.sleep(0.02)
    seconds = time.monotonic() - killed
    process.kill()
    process.wait()
    return seconds


def _events(run: pathlib.Path, kind: str) -> list[dict[str, object]]:
    path = run / "events" / "workerpool0-0.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return [event for event in events if event["event"] == kind]


if __name__ == "__main__":
    main()
