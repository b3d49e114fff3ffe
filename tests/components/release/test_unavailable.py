"""A service that refuses calls: one line that says what to do, and no call that changes something."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from components import vertex_clients
from components.compare import promotion
from components.compare.criteria import Criteria
from components.plan.outcomes import Release, conclusion
from components.registry.registry import Registry
from components.release import deployment, endpoints, registration
from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import StepEndpoint
from localvertex._base.userinput.errors import UserError
from tests.support.finished import note_evaluation, write_finished_run
from tests.support.unreliable import Answering, Received, refusal
from trainer.checkpoints.identity import identity
from trainer.command_line import TrainingError
from trainer.config import TrainConfig
from trainer.data import dataset
from trainer.results import outcome

VERSION = "projects/p/locations/us-central1/models/1@2"
ENDPOINT = "projects/p/locations/us-central1/endpoints/1"


@pytest.fixture
def reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Answering], Answering]:
    """Make a service the one that the steps of this process reach."""

    def reach(service: Answering) -> Answering:
        step_endpoint.write(tmp_path / "own.json", StepEndpoint(address=service.url, token="t" * 40))
        monkeypatch.setenv(step_endpoint.VARIABLE, str(tmp_path / "own.json"))
        monkeypatch.setattr(vertex_clients, "_PAUSES_SECONDS", (0.0, 0.0))
        return service

    return reach


@pytest.fixture
def refusing(request: pytest.FixtureRequest, reached: Callable[[Answering], Answering]) -> Iterator[Answering]:
    """A service that answers every call with the same error."""
    with Answering(lambda _: refusal(request.param)) as service:
        yield reached(service)


class Steps:
    """The steps that reach the registry, of a finished run."""

    def __init__(self, folder: Path, dataset_directory: Path) -> None:
        data = dataset.load(str(dataset_directory))
        self.checkpoints, self._folder = str(folder / "checkpoints"), folder
        write_finished_run(
            self.checkpoints,
            run_id="0123456789abcdef",
            identity=identity(TrainConfig(global_batch_size=8), data.fingerprint, ""),
            accuracy=0.9,
        )
        (first,) = data.records("test", [0])
        line = {"file_name": first.file_name, "predicted": "0", "probability": 0.5, "split": "test"}
        (folder / "predictions.jsonl").write_text(json.dumps(line) + "\n")
        note_evaluation(self.checkpoints, 0.9)
        self._common = {"checkpoint_directory": self.checkpoints, "region": "us-central1", "pipeline_root": str(folder)}
        self._dataset = {"dataset": str(dataset_directory)}

    def compare(self) -> None:
        """Call `compare`."""
        promotion.compare(
            comparison=str(self._folder / "page.html"),
            metrics={},
            source="digits",
            model_name="pets",
            serving_image="",
            **self._dataset,
            **self._common,
        )

    def record(self) -> None:
        """Call `record`."""
        registration.record(
            registered_version=VERSION,
            metrics={"accuracy": 0.9, "loss": 0.25},
            confusion_matrix={},
            decision={},
            is_promoted=True,
            champion="",
            source="digits",
            model_name="pets",
            serving_image="",
            **self._dataset,
            **self._common,
        )

    def deploy(self) -> None:
        """Call `deploy`."""
        deployment.deploy(
            registered_version=VERSION,
            predictions=str(self._folder / "predictions.jsonl"),
            deploy_endpoint="live",
            **self._dataset,
            **self._common,
        )

    def plan(self) -> None:
        """Read the outcome, as `plan` does, of a run that is registered."""
        outcome.note_registration(self.checkpoints, model_name="pets", serving_image="", resource_name=VERSION)
        release = Release(
            model_name="pets", serving_image="", region="us-central1", minimum_score=0.0, criteria=Criteria()
        )
        note_evaluation(self.checkpoints, 0.9)
        conclusion(self.checkpoints, release, lambda: Registry(region="us-central1", pipeline_root=str(self._folder)))


@pytest.mark.parametrize("step", ["compare", "record", "deploy", "plan"])
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
    refusing: Answering,
    tmp_path: Path,
    digits_directory: Path,
    step: str,
    kind: type[Exception],
    message: str,
    num_calls: int,
) -> None:
    steps = Steps(tmp_path, digits_directory)
    with pytest.raises(kind, match=message) as caught:
        getattr(steps, step)()
    assert "\n" not in str(caught.value)
    assert refusing.methods == ["GET"] * num_calls
    notes = {"comparison", "deployment"} | ({"registration"} if step != "plan" else set())
    assert not [name for name in notes if (Path(steps.checkpoints) / f"{name}.json").exists()]


@pytest.mark.parametrize("step", ["record", "deploy"])
@pytest.mark.parametrize("refusing", [404], indirect=True)
def test_a_version_that_was_deleted_by_hand_is_one_line_and_comes_back_with_a_new_run(
    refusing: Answering, tmp_path: Path, digits_directory: Path, step: str
) -> None:
    steps = Steps(tmp_path, digits_directory)
    message = rf"the model {VERSION} cannot be read: not found .*; a new run of the pipeline registers it again$"
    with pytest.raises(UserError, match=message) as caught:
        getattr(steps, step)()
    assert "\n" not in str(caught.value)
    assert refusing.methods == ["GET"]


def test_a_deployment_that_is_not_waited_for_is_cancelled(
    reached: Callable[[Answering], Answering], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would get all traffic without a live prediction, and its replicas cost money."""
    operation = json.dumps({"name": f"{ENDPOINT}/operations/7"}).encode()
    is_cancelled = threading.Event()

    def answer(request: Received) -> tuple[int, bytes]:
        if request.path.partition("?")[0].endswith("operations/7:cancel"):
            is_cancelled.set()
            return 200, b"{}"
        return 200, operation

    monkeypatch.setattr(endpoints, "_DEPLOY_SECONDS", 0.2)
    with Answering(answer) as service:
        reached(service)
        client = endpoints.Endpoints(region="us-central1", pipeline_root="/runs")
        with pytest.raises(TrainingError, match="takes longer"):
            client.deploy(ENDPOINT, VERSION, name="v", resources={}, service_account="")
    assert is_cancelled.is_set()
