"""A service that refuses calls: one line that says what to do, and no call that changes something."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.finished import write_finished_run
from trainer.command_line import TrainingError
from trainer.data import dataset
from training_job.release import deployment, vertex_clients
from vertex_gpu_training.userinput import step_endpoint
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.step_endpoint import StepEndpoint

STATUSES = {403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


class Refusing:
    """A service that answers every call with the same error."""

    def __init__(self, code: int) -> None:
        self.methods: list[str] = []
        body = json.dumps({"error": {"code": code, "message": "no", "status": STATUSES[code]}}).encode()
        methods = self.methods

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                methods.append(self.command)
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def refusing(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Refusing]:
    """The service that the steps of this process reach."""
    service = Refusing(request.param)
    step_endpoint.write(tmp_path / "own.json", StepEndpoint(address=service.url, token="t" * 40))
    monkeypatch.setenv(step_endpoint.VARIABLE, str(tmp_path / "own.json"))
    monkeypatch.setattr(vertex_clients, "_PAUSES_SECONDS", (0.0, 0.0))
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.mark.parametrize(
    ("refusing", "kind", "message", "num_calls"),
    [
        (403, UserError, "permission denied .*roles/aiplatform.user", 1),
        (429, TrainingError, "quota exceeded .*request more quota", 3),
        (503, TrainingError, "not available .*run the pipeline again later", 3),
    ],
    indirect=["refusing"],
)
def test_a_refused_call_is_one_line_and_changes_nothing(
    refusing: Refusing, tmp_path: Path, digits_directory: Path, kind: type[Exception], message: str, num_calls: int
) -> None:
    data = dataset.load(str(digits_directory))
    (first,) = data.records("test", [0])
    line = {"file_name": first.file_name, "predicted": "0", "probability": 0.5, "split": "test"}
    (tmp_path / "predictions.jsonl").write_text(json.dumps(line) + "\n")
    checkpoints = str(tmp_path / "checkpoints")
    write_finished_run(checkpoints, run_id="0123456789abcdef", identity={"global_batch_size": 8}, accuracy=0.9)
    with pytest.raises(kind, match=message) as caught:
        deployment.deploy(
            registered_version="projects/p/locations/us-central1/models/1@2",
            checkpoint_directory=checkpoints,
            dataset_directory=str(digits_directory),
            predictions_path=str(tmp_path / "predictions.jsonl"),
            region="us-central1",
            pipeline_root=str(tmp_path),
            endpoint_name="live",
            machines={},
        )
    assert "\n" not in str(caught.value)
    assert refusing.methods == ["GET"] * num_calls
    assert not (Path(checkpoints) / "deployment.json").exists()
