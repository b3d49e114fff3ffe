"""What a checkpoint costs, and how soon training resumes after a kill: `python benchmarks/checkpoint.py [MODEL]`.

1. How long a save pauses training, compared with `tf.train.Checkpoint` (synchronous, and with enable_async): same
   variables, same disk, taking turns. Also the share of training time at the default interval, at most 1%.
2. The time from SIGKILL of a training process to the end of its successor's first graph call, compared with importing
   TensorFlow and Keras and building the same model. At most 2 times.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

_ROUNDS = 3
_BUILD = """
import tensorflow as tf
import keras
from trainer.models import models
with tf.device("CPU:0"):
    models.build({model!r}, image_size=32, num_classes=10, weights="none")
"""


def main() -> None:
    """Print the figures."""
    model = sys.argv[1] if len(sys.argv) > 1 else "convnet"
    os.environ.update(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
    with tempfile.TemporaryDirectory() as folder:
        _saves(model, pathlib.Path(folder))
        _restart(model, pathlib.Path(folder))


def _saves(model: str, folder: pathlib.Path) -> None:
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
    pauses: dict[str, list[float]] = {"trainer": [], "tf.train.Checkpoint": [], "with enable_async": []}
    for step in range(1, _ROUNDS + 2):
        started = time.monotonic()
        checkpoint = Checkpoint(step=step, best=Best(), identity={}, run_id="", arrays=variables.values(held))
        seconds = time.monotonic() - started
        pauses["trainer"].append(seconds)
        writer.write(checkpoint, pause_seconds=seconds)
        writer.settle(wait=True)
        for name, options in (("tf.train.Checkpoint", None), ("with enable_async", asynchronous)):
            started = time.monotonic()
            baseline.write(str(folder / f"baseline-{options is not None}-{step}"), options=options)
            pauses[name].append(time.monotonic() - started)
            baseline.sync()
    # The first of each warms up.
    seconds_by_name = {name: statistics.median(found[1:]) for name, found in pauses.items()}
    own = seconds_by_name["trainer"]
    interval = best_interval(own)
    num_bytes = sum(array.nbytes for array in variables.values(held))
    print(f"{model}: {len(held)} variables, {num_bytes / 1e6:.0f} MB")
    for name, seconds in seconds_by_name.items():
        print(f"  a save pauses training for {seconds:.3f} s, {seconds / own:.1f} times the trainer's: {name}")
    print(f"  at the default interval of {interval:.0f} s: {own / interval:.2%} of training time (1% allowed)")


def _restart(model: str, folder: pathlib.Path) -> None:
    prepare = [sys.executable, "-m", "trainer.prepare", "digits", str(folder / "data"), "--image-size=32"]
    subprocess.run(prepare, check=True, capture_output=True)
    build, again = [], []
    for number in range(_ROUNDS):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", _BUILD.format(model=model)], check=True)
        build.append(time.monotonic() - started)
        again.append(_restart_after_kill(model, folder / "data", folder / f"run-{number}"))
    restart, baseline = statistics.median(again), statistics.median(build)
    print("after a SIGKILL:")
    print(f"  import tensorflow and keras, build {model}: {baseline:.1f} s")
    print(
        f"  from the kill to the end of the next graph call: {restart:.1f} s,"
        f" {restart / baseline:.2f} times (2 allowed)"
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
