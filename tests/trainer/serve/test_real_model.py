"""The server with an exported model: the probabilities of evaluate, a model from a bucket, and trials that fail."""

import base64
import io
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.modules import start_module
from tests.test_docs import commands
from trainer.checkpoints import best, restored
from trainer.command_line import TrainingError
from trainer.data import staging
from trainer.data.dataset import Dataset
from trainer.export import export
from trainer.results import calibration, predictions, saved_model
from trainer.serve import trial
from vertex_testing.cloud_storage.server import CloudStorage

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[3] / "docs" / "serving.md"
PREDICT = """
import hashlib, sys
import numpy as np
if sys.argv[2] == "begun":
    import tensorflow as tf
    tf.constant(0)
from trainer.serve import model
loaded, draw = model.load(sys.argv[1]), np.random.default_rng(0)
import tensorflow as tf
print(tf.config.threading.get_intra_op_parallelism_threads())
for num_images in (1, 2, 3, 16, 33, 64):
    images = draw.integers(0, 256, (num_images, loaded.image_size, loaded.image_size, 3), np.uint8)
    print(hashlib.sha256(loaded.predict(images).tobytes()).hexdigest())
"""


class Served:
    """A running server."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.process = start_module("trainer.serve", *words, **environment)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1].replace("0.0.0.0", "127.0.0.1")

    def ask(self, path: str, content: Any = None) -> tuple[int, Any]:
        body = None if content is None else json.dumps(content).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, body), timeout=120) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def wait(self, route: str = "/health") -> None:
        while self.ask(route)[0] != 200:
            assert self.process.poll() is None
            time.sleep(0.05)


@pytest.fixture(scope="module")
def served(exported: Path) -> Iterator[Served]:
    """The server of the exported model, started as the documentation does it."""
    (line,) = commands(PAGE)
    words = [{"MODEL": str(exported), "8080": "0"}.get(word, word) for word in shlex.split(line)]
    assert words[:3] == ["python", "-m", "trainer.serve"]
    server = Served(*words[3:])
    server.wait()
    yield server
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(300) == 0
    server.process.communicate()


def instance(data: bytes) -> dict[str, str]:
    """A file as the service sends it."""
    return {"b64": base64.b64encode(data).decode()}


def png(mode: str = "RGB", size: tuple[int, int] = (30, 20), kind: str = "PNG") -> bytes:
    """A file of noise."""
    buffer = io.BytesIO()
    pixels = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def test_served_probabilities_are_those_of_evaluate_on_the_whole_test_split(
    served: Served, digits: Dataset, trained_directory: Path
) -> None:
    model = restored.model_of(best.find(str(trained_directory), digits), digits).model
    found = [predictions.predict(model, staging.stage(digits, split), split) for split in ("validation", "test")]
    expected = calibration.apply(found[1].probabilities, calibration.fit(found[0]))
    files = [record.image_bytes for record in digits.records("test")]
    parts = [[instance(data) for data in files[start : start + 50]] for start in range(0, len(files), 50)]
    answers = [served.ask("/predict", {"instances": part}) for part in parts]
    assert {status for status, _ in answers} == {200}
    rows = [each for _, content in answers for each in content["predictions"]]
    assert np.abs(np.asarray([each["probabilities"] for each in rows]) - expected).max() <= 1e-4
    assert [each["label"] for each in rows] == [digits.class_names[k] for k in expected.argmax(axis=1)]


def test_keys_and_values_are_those_of_the_signature(served: Served, exported: Path) -> None:
    files = [png(), png("L"), png(kind="BMP")]
    loaded = saved_model.load(str(exported)).loaded
    wanted = {name: value.numpy() for name, value in loaded.signatures["serving_default"](image_bytes=files).items()}
    status, content = served.ask("/predict", {"instances": [instance(data) for data in files], "parameters": None})
    assert (status, list(content)) == (200, ["predictions"])
    for index, found in enumerate(content["predictions"]):
        assert found.keys() == wanted.keys()
        assert found["label"] == wanted["label"][index].decode()
        assert np.abs(np.asarray(found["probabilities"]) - wanted["probabilities"][index]).max() <= 1e-3
    # The form of Google's prebuilt container.
    other = served.ask("/predict", {"instances": [{"image_bytes": instance(files[0])}]})
    assert other[1]["predictions"][0]["label"] == content["predictions"][0]["label"]


def test_a_small_model_runs_in_one_thread_with_the_same_bits(exported: Path, repository: Path) -> None:
    found = [
        subprocess.run(
            [sys.executable, "-c", PREDICT, str(exported), state],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=repository,
        ).stdout.split()
        for state in ("new", "begun")
    ]
    assert [threads for threads, *_ in found] == ["1", "0"]
    assert found[0][1:] == found[1][1:]
    assert len(set(found[0])) == 7


def test_a_damaged_image_is_named_and_others_in_the_same_batch_are_answered(served: Served) -> None:
    damaged = bytearray(png())
    damaged[60:80] = b"x" * 20
    for data in (bytes(damaged), png(kind="JPEG")[:-200]):
        status, content = served.ask("/predict", {"instances": [instance(png()), instance(data)]})
        assert status == 400
        assert content["error"].startswith("instance 1: ")
        assert "\n" not in content["error"]
    assert served.ask("/predict", {"instances": [instance(png())]})[0] == 200


def test_a_model_in_a_bucket_is_served_by_the_contract_of_the_service(
    exported: Path, cloud_storage: CloudStorage
) -> None:
    cloud_storage.buckets.create("models")
    for path in exported.rglob("*"):
        if path.is_file():
            cloud_storage.buckets.put("models", f"one/{path.relative_to(exported)}", path.read_bytes())
    routes = {"AIP_HEALTH_ROUTE": "/v1/health", "AIP_PREDICT_ROUTE": "/v1/endpoints/1/deployedModels/2:predict"}
    place = {"AIP_HTTP_PORT": "0", "AIP_STORAGE_URI": "gs://models/one"}
    server = Served(**routes, **place, **cloud_storage.environment)
    server.wait(routes["AIP_HEALTH_ROUTE"])
    status, content = server.ask(routes["AIP_PREDICT_ROUTE"], {"instances": [instance(png())]})
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(300) == 0
    server.process.communicate()
    assert (status, len(content["predictions"])) == (200, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "error: no model; give MODEL_DIR, or set AIP_STORAGE_URI"),
        (["no-such-folder"], "error: no exported model at 'no-such-folder'"),
        (["damaged"], "is damaged"),
        (["damaged", "--port=99999"], "error: port 99999 is out of range"),
    ],
)
def test_without_a_usable_model_the_server_ends(exported: Path, tmp_path: Path, words: list[str], message: str) -> None:
    shutil.copytree(exported, tmp_path / "damaged")
    (tmp_path / "damaged/saved_model.pb").write_bytes(b"text")
    words = [str(tmp_path / word) if word == "damaged" else word for word in words]
    process = start_module("trainer.serve", *words, *([] if "--port=99999" in words else ["--port=0"]))
    stderr = process.communicate(timeout=300)[1]
    assert process.returncode == 2
    assert message in stderr
    assert "Traceback" not in stderr


def tried(digits_directory: Path, trained_directory: Path, folder: Path) -> None:
    """An export that must fail in the trial, and leave nothing."""
    with pytest.raises(TrainingError, match="the model was not exported"):
        export(
            checkpoint_directory=str(trained_directory),
            dataset_directory=str(digits_directory),
            output_directory=str(folder / "model"),
        )
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("code", ["import sys; sys.exit('broken')", "input(); import os; os.kill(os.getpid(), 9)"])
def test_a_model_whose_server_ends_is_not_exported(
    digits_directory: Path, trained_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(trial, "_COMMAND", (sys.executable, "-c", code))
    tried(digits_directory, trained_directory, tmp_path)


def test_a_model_whose_server_never_answers_is_not_exported(
    digits_directory: Path, trained_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import time; print('listening on http://127.0.0.1:9', flush=True); time.sleep(1000)"
    monkeypatch.setattr(trial, "_COMMAND", (sys.executable, "-c", code))
    monkeypatch.setattr(trial, "_LIMIT_SECONDS", 3.0)
    tried(digits_directory, trained_directory, tmp_path)
