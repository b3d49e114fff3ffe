"""An error after a stop request, in every training loop: with exit code 1, the job would not be restarted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.events import log as event_log
from tests.support.modules import variables

pytestmark = pytest.mark.slow
LOADER = """
import os, subprocess

class Loader:
    '''Data from a process of its own; the fourth batch comes after a stop request has ended that process, too.'''
    def __init__(self):
        self.process, self.number = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE), 0

    def batch(self):
        self.number += 1
        if self.number == 4 and not os.path.exists("ready"):
            open("ready", "w").close()
            self.process.wait()
        self.process.stdin.write(b"1\\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())
"""
RUN = """
import exact_resume, loader, numpy as np

weights, data = np.zeros(3), loader.Loader()
with exact_resume.run("run", steps=9, state={"weights": weights}, save_every_steps=2) as run:
    for step in run:
        weights += data.batch()
"""
KERAS_FIT = """
import exact_resume, keras, loader, numpy as np

class Data(loader.Loader):
    def __len__(self):
        return 8
    def __getitem__(self, rows):
        value = np.full((len(rows), 1), self.batch(), np.float32)
        return value, value

model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
sampler = exact_resume.Sampler(num_examples=8, global_batch_size=4)
with exact_resume.keras_fit.run("run", model=model, data=Data(), sampler=sampler, epochs=4) as (run, arguments):
    model.fit(**arguments, verbose=0)
"""
WRAPPED = """
import loader, os, signal

data = loader.Loader()
signal.signal(signal.SIGTERM, lambda *_: data.process.kill())
os.makedirs("own", exist_ok=True)
for step in range(1, 9):
    with open("own/.new", "w") as file:
        file.write(str(data.batch()))
    os.rename("own/.new", f"own/step-{step}")
"""
NETWORK = """
import keras, loader, tensorflow as tf

data = loader.Loader()

class Loading(keras.layers.Layer):
    def call(self, values):
        factor = tf.ensure_shape(tf.py_function(data.batch, [], tf.int64), [])
        return values * tf.cast(factor, values.dtype)

def build(*, image_size, num_classes, weights):
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    values = keras.layers.GlobalAveragePooling2D()(Loading()(keras.layers.Rescaling(1 / 255)(images)))
    return keras.Model(images, keras.layers.Dense(num_classes, "softmax", dtype="float32")(values))
"""
WRAPPER = ("-m", "exact_resume", "--checkpoint-directory=run", "--watch=own", "--whole=rename:step-*", "--")
TRAINER = ("-m", "trainer.task", "--checkpoint-directory=run", "--model=program:build", "--epochs=2", "--dataset")
UNSAVED = """
import errno, os, signal, sys
from pathlib import Path
from exact_resume.files import publication
from trainer import command_line, task

flush = publication._flush_to_disk

def flush_or_fail(directory):
    if Path("saved").exists():
        os.kill(os.getpid(), signal.SIGTERM)
        raise OSError(errno.EIO, "Input/output error")
    flush(directory)
    Path("saved").touch()

publication._flush_to_disk = flush_or_fail
sys.exit(command_line.run(task.main))
"""
"""A disk that fails after the first save, and with it the machine."""


@pytest.mark.parametrize("kind", ["run", "keras_fit", "wrapper", "trainer"])
def test_an_error_after_a_stop_request_is_the_stop(
    kind: str, tmp_path: Path, repository: Path, digits_directory: Path
) -> None:
    programs = {"run": RUN, "keras_fit": KERAS_FIT, "wrapper": WRAPPED, "trainer": NETWORK}
    (tmp_path / "loader.py").write_text(LOADER)
    (tmp_path / "program.py").write_text(programs[kind])
    words = {"wrapper": [*WRAPPER, sys.executable, "program.py"], "trainer": [*TRAINER, str(digits_directory)]}
    environment = variables() | {
        "PYTHONPATH": f"{tmp_path}:{repository}",
        "NO_GCE_CHECK": "1",
        "KERAS_BACKEND": "tensorflow",
    }

    def start() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, *words.get(kind, ["program.py"])],
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
        )

    with start() as process:
        while not (tmp_path / "ready").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        # As a container's runtime may do: all processes get it.
        os.killpg(process.pid, signal.SIGTERM)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 143, stderr
    events = event_log.read(str(tmp_path / "run"))
    assert [event["code"] for event in events if event["event"] == "exit"] == [143]
    notices = [event["message"] for event in events if event["event"] == "notice"]
    assert any("SIGTERM: stopped by an error" in each or "the exit code is 143" in each for each in notices)
    with start() as process:
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert result_file.is_finished(str(tmp_path / "run"))


def test_a_last_save_that_fails_after_a_stop_request_is_the_stop(
    tmp_path: Path, repository: Path, digits_directory: Path
) -> None:
    words = [f"--dataset={digits_directory}", "--checkpoint-directory=run", "--epochs=9", "--checkpoint-every-steps=2"]
    environment = variables() | {"PYTHONPATH": str(repository), "NO_GCE_CHECK": "1"}
    done = subprocess.run(
        [sys.executable, "-c", UNSAVED, *words], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 143, done.stderr
    (step,) = checkpoints.steps(str(tmp_path / "run"))
    assert f"the checkpoint of step {step} is saved" in done.stdout
