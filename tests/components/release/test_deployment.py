"""Deployments on a real `localvertex serve`: a version serves only after right answers, and one always serves."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from components.registry.labels import ALIASES, PROJECT_LABEL
from components.registry.registry import Registry
from components.release import deployment
from components.release.endpoints import Deployed, Endpoints
from components.release.live_prediction import Expected, WrongAnswerError, check
from components.release.serving_machines import ServingMachines
from localvertex._base.userinput.errors import UserError
from tests.support import answering
from tests.support.finished import write_finished_run
from trainer.command_line import TrainingError
from trainer.data import dataset
from trainer.results import outcome
from vertex_testing.server import Server

NAME, REGION, PROBABILITY = "live", "us-central1", 0.75


class Killed(BaseException):
    """Ends a deployment as SIGKILL does: no `except Exception` sees it."""


class Release:
    """Versions with stored answers, and their deployment."""

    def __init__(self, server: Server, registry: Registry, folder: Path, dataset_directory: Path) -> None:
        self.server, self.registry, self._folder = server, registry, folder
        self.endpoints = Endpoints(region=REGION, pipeline_root=str(server.work_dir))
        self.dataset_directory = str(dataset_directory)
        self.checkpoints = str(folder / "checkpoints")
        identity = {"global_batch_size": 8, "dataset_fingerprint": "d" * 64}
        write_finished_run(self.checkpoints, run_id="0123456789abcdef", identity=identity, accuracy=0.9)
        self.predictions = folder / "predictions.jsonl"
        data = dataset.load(self.dataset_directory)
        self._records, self._names = list(data.records("test", [*range(8)])), data.class_names
        lines = [
            {"file_name": each.file_name, "predicted": self._names[each.label], "probability": PROBABILITY}
            for each in self._records
        ]
        self.predictions.write_text("".join(json.dumps(each | {"split": "test"}) + "\n" for each in lines))

    def upload(self, *words: str, wrong_by: float = 0.0, name: str = "pets") -> str:
        """Register a version whose answers differ from the expected ones, and return its resource name."""
        files = self._folder / f"files-{len(list(self._folder.iterdir()))}"
        files.mkdir()
        rest = (1 - PROBABILITY) / (len(self._names) - 1)
        stored = {}
        for each in self._records:
            probabilities = [rest] * len(self._names)
            probabilities[each.label] = PROBABILITY - wrong_by
            stored[base64.b64encode(each.image_bytes).decode()] = probabilities
        content = {"class_names": self._names, "probabilities": stored, "other": [rest] * len(self._names)}
        (files / "answers.json").write_text(json.dumps(content))
        container = {
            "imageUri": "serving:1",
            "command": ["python", "-P", answering.__file__],
            "args": [*words],
            "healthRoute": "/health",
            "predictRoute": "/predict",
        }
        model = {"displayName": name, "labels": dict([PROJECT_LABEL]), "versionAliases": list(ALIASES)}
        model |= {"containerSpec": container, "artifactUri": str(files)}
        parent = self.registry.find(name)
        answer = self.server.call(
            "POST", "models:upload", {"model": model} | ({"parentModel": parent} if parent else {})
        )
        answer.raise_for_status()
        response = answer.json()["response"]
        return f"{response['model']}@{response['modelVersionId']}"

    def deploy(self, version: str, **machines: Any) -> str:
        """Run the step's function."""
        return deployment.deploy(
            registered_version=version,
            checkpoint_directory=self.checkpoints,
            dataset=self.dataset_directory,
            predictions=str(self.predictions),
            region=REGION,
            pipeline_root=str(self.server.work_dir),
            deploy_endpoint=NAME,
            **{f"deploy_{name}": value for name, value in machines.items()},
        )

    def deployed(self) -> list[Deployed]:
        """Return what is on the endpoint."""
        endpoint = self.endpoints.find(NAME)
        return self.endpoints.deployed_models(endpoint) if endpoint else []

    def serving(self) -> list[tuple[str, int]]:
        """Return the deployed versions with their traffic; the one with all traffic must answer."""
        found = self.deployed()
        for each in found:
            if each.traffic == 100:
                answered_by, _ = self.endpoints.predict(self.endpoints.find(NAME), [{"b64": ""}])
                assert answered_by == each.id
        return [(each.version, each.traffic) for each in found]

    def champion(self) -> str:
        """Return the version with both aliases."""
        versions = self.registry.versions(self.registry.find("pets"))
        (found,) = [each.name for each in versions if set(ALIASES) <= set(each.aliases)]
        assert sum(bool(set(ALIASES) & set(each.aliases)) for each in versions) == 1
        return found

    @property
    def live(self) -> str:
        """The version that the run has noted as live."""
        noted = outcome.notes(self.checkpoints).deployment
        return str(noted["resource_name"]) if noted.get("is_live") is True else ""


@pytest.fixture
def release(server: Server, registry: Registry, tmp_path: Path, digits_directory: Path) -> Iterator[Release]:
    """A registry without models, and no endpoints afterwards."""
    made = Release(server, registry, tmp_path, digits_directory)
    yield made
    for each in server.call("GET", "endpoints").json()["endpoints"]:
        name = each["name"]
        for deployed in made.endpoints.deployed_models(name):
            made.endpoints.undeploy(name, deployed, {})
        server.call("DELETE", f"endpoints/{name.rpartition('/')[2]}").raise_for_status()


def test_a_new_version_takes_the_place_of_the_old_one(release: Release, capsys: pytest.CaptureFixture[str]) -> None:
    first = release.upload()
    endpoint = release.deploy(first)
    assert release.serving() == [(first, 100)]
    assert release.live == first
    second = release.upload()
    assert release.deploy(second, max_replicas=3) == endpoint
    assert release.serving() == [(second, 100)]
    assert (release.champion(), release.live) == (second, second)
    assert "1 to 3 x n1-standard-2" in capsys.readouterr().out
    (before,) = release.deployed()
    # A resubmitted step finds everything done.
    assert release.deploy(second) == endpoint
    assert release.deployed() == [before]
    assert "8 live predictions differ from evaluate's by at most 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "wrong_by", "reason"),
    [
        pytest.param((), 0.01, "evaluate's probability was 0.75", id="wrong-answers"),
        pytest.param(("broken",), 0.0, "cannot be deployed", id="not-healthy", marks=pytest.mark.slow),
    ],
)
def test_after_a_failure_the_old_version_serves_and_has_the_aliases(
    release: Release, words: tuple[str, ...], wrong_by: float, reason: str
) -> None:
    first = release.upload()
    release.deploy(first)
    second = release.upload(*words, wrong_by=wrong_by)
    assert release.champion() == second
    with pytest.raises((UserError, TrainingError), match=reason):
        release.deploy(second)
    assert release.serving() == [(first, 100)]
    assert (release.champion(), release.live) == (first, "")


def test_a_right_probability_of_a_wrong_class_is_a_wrong_answer() -> None:
    wanted = Expected(file_name="a", image_bytes=b"", label="cat", probability=0.9, class_index=1)
    assert check([wanted], [{"label": "cat", "probabilities": [0.1, 0.9]}]) == 0
    with pytest.raises(WrongAnswerError, match="answers 'dog', with"):
        check([wanted], [{"label": "dog", "probabilities": [0.1, 0.9]}])


def test_a_version_that_is_replaced_during_its_deployment_is_given_back(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = release.upload()
    release.deploy(first)
    second = release.upload()
    uploaded = []
    predict = Endpoints.predict

    def slow(*arguments: Any) -> Any:
        uploaded.append(release.upload())
        return predict(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Endpoints, "predict", slow)
        with pytest.raises(UserError, match="version 3 has replaced it"):
            release.deploy(second)
    assert release.serving() == [(first, 100)]
    assert [release.champion()] == uploaded
    assert release.live == ""


def test_a_first_version_that_fails_leaves_no_replicas(release: Release) -> None:
    version = release.upload(wrong_by=0.001)
    with pytest.raises(TrainingError):
        release.deploy(version)
    assert release.deployed() == []
    assert release.champion() == version


@pytest.mark.slow
def test_an_endpoint_that_does_not_answer_is_given_back(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    first = release.upload()
    release.deploy(first)
    second = release.upload()

    def unavailable(*_: object) -> Any:
        raise TrainingError("the service is not available")

    with monkeypatch.context() as patch:
        patch.setattr(Endpoints, "predict", unavailable)
        with pytest.raises(TrainingError, match="not available"):
            release.deploy(second)
        assert release.champion() == first
        # A version that is alone because it answered rightly before stays.
        with pytest.raises(TrainingError, match="not available"):
            release.deploy(first)
    assert release.serving() == [(first, 100)]
    assert release.deploy(second)
    assert release.serving() == [(second, 100)]
    assert (release.champion(), release.live) == (second, second)


POINTS: list[tuple[Any, str]] = [
    (Endpoints, "find_or_create"),
    (Endpoints, "deploy"),
    (Endpoints, "predict"),
    (Registry, "merge_aliases"),
    (Endpoints, "undeploy"),
    (outcome, "note_deployment"),
]


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), POINTS, ids=[name for _, name in POINTS])
def test_a_killed_deployment_leaves_a_healthy_version_and_is_completed(
    release: Release, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, is_after: bool
) -> None:
    first = release.upload()
    release.deploy(first)
    second = release.upload()
    original: Callable[..., Any] = getattr(owner, name)

    def killed(*arguments: Any, **named: Any) -> Any:
        if named.get("is_live") is False:
            return original(*arguments, **named)
        if is_after:
            original(*arguments, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            release.deploy(second)
    serving = release.serving()
    assert sum(traffic for _, traffic in serving) == 100
    assert release.champion() == second
    assert (release.live == second) is (name == "note_deployment" and is_after)
    release.deploy(second)
    assert release.serving() == [(second, 100)]
    assert (release.champion(), release.live) == (second, second)


@pytest.mark.slow
def test_a_giving_back_that_is_killed_is_completed_by_the_next_attempt(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = release.upload()
    release.deploy(first)
    wrong = release.upload(wrong_by=0.1)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Endpoints, "undeploy", killed)
        with pytest.raises(Killed):
            release.deploy(wrong)
    assert dict(release.serving())[wrong] == 100
    with pytest.raises(TrainingError, match="evaluate's probability"):
        release.deploy(wrong)
    assert release.serving() == [(first, 100)]
    assert release.champion() == first


def test_endpoints_of_others_are_left_alone(release: Release, server: Server) -> None:
    version = release.upload()
    key, value = PROJECT_LABEL
    server.call("POST", "endpoints", {"displayName": NAME}).raise_for_status()
    with pytest.raises(UserError, match=f"without the label {key}={value}.*give another deploy_endpoint"):
        release.deploy(version)
    for _ in range(2):
        server.call("POST", "endpoints", {"displayName": NAME, "labels": {key: value}}).raise_for_status()
    with pytest.raises(UserError, match=r"2 endpoints.*remove the label from all but one"):
        release.deploy(version)
    assert all("deployedModels" not in each for each in server.call("GET", "endpoints").json()["endpoints"])


def test_an_endpoint_with_another_model_is_left_alone(release: Release) -> None:
    other = release.upload(name="cars")
    release.deploy(other)
    with pytest.raises(UserError, match=r"is not a version of .*another deploy_endpoint"):
        release.deploy(release.upload())
    assert release.serving() == [(other, 100)]


def test_an_older_run_does_not_take_the_place_of_a_newer_champion(release: Release) -> None:
    """It was stopped before its deployment, and is resumed after a later run has registered a version."""
    old = release.upload()
    newer = release.upload()
    with pytest.raises(UserError, match=f"^{old} is not deployed: version 2 has replaced it.*the alias"):
        release.deploy(old)
    assert (release.champion(), release.deployed(), release.endpoints.find(NAME)) == (newer, [], "")
    release.registry.merge_aliases(old, ALIASES)
    release.deploy(old)
    assert (release.champion(), release.serving()) == (old, [(old, 100)])


def test_a_version_that_an_older_one_has_beaten_since_is_not_deployed(release: Release) -> None:
    former, better, version = (release.upload() for _ in range(3))
    outcome.note_comparison(
        release.checkpoints, champion=former, is_promoted=True, reason="", criteria={}, promotion="better"
    )
    release.registry.merge_aliases(better, ALIASES)
    with pytest.raises(UserError, match=f"^{version} is not deployed: version 2 has replaced it"):
        release.deploy(version)
    assert (release.champion(), release.deployed()) == (better, [])


def test_an_endpoint_that_was_renamed_keeps_its_version(release: Release, server: Server) -> None:
    """Its id follows from its first name, so that it is found when another one is to be created."""
    first = release.upload()
    path = f"endpoints/{release.deploy(first).rpartition('/')[2]}"
    server.call("PATCH", f"{path}?updateMask=displayName", {"displayName": "kept"}).raise_for_status()
    with pytest.raises(UserError, match=r"was made for 'live', and is 'kept' now.*another deploy_endpoint"):
        release.deploy(release.upload())
    server.call("PATCH", f"{path}?updateMask=displayName", {"displayName": NAME}).raise_for_status()
    assert release.serving() == [(first, 100)]


def test_a_deleted_version_is_one_line_and_creates_nothing(release: Release, server: Server) -> None:
    version = release.upload()
    server.call("DELETE", f"models/{version.rpartition('/')[2].partition('@')[0]}").raise_for_status()
    with pytest.raises(UserError, match=r"not found"):
        release.deploy(version)
    assert server.call("GET", "endpoints").json()["endpoints"] == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"deploy_min_replicas": 0}, "deploy_min_replicas is 0; expected a whole number from 1"),
        ({"deploy_max_replicas": 0}, "deploy_max_replicas is 0; expected a whole number from 1"),
        ({"deploy_accelerator_count": -1}, "expected a whole number from 0"),
    ],
)
def test_numbers_that_no_machine_has_are_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        ServingMachines(**fields)


def test_machines_are_checked_before_anything_is_created(release: Release, server: Server) -> None:
    version = release.upload()
    with pytest.raises(UserError, match="'n1-standard-64' is not a machine type for prediction"):
        release.deploy(version, machine_type="n1-standard-64")
    with pytest.raises(UserError, match="3 x NVIDIA_TESLA_T4 on n1-standard-2; this machine type supports 1, 2 or 4"):
        release.deploy(version, accelerator_type="NVIDIA_TESLA_T4", accelerator_count=3)
    assert server.call("GET", "endpoints").json()["endpoints"] == []


def test_a_version_that_is_not_promoted_is_not_deployed(release: Release) -> None:
    version = release.upload()
    release.registry.label_version(version, {"promotion": "undecided"})
    release.registry.merge_aliases(version, ["-champion"])
    with pytest.raises(UserError, match=f"{version} is not deployed: it is not promoted; force_promotion=true"):
        release.deploy(version)
    assert (release.deployed(), release.endpoints.find(NAME)) == ([], "")
    # A user has promoted it by hand.
    release.registry.merge_aliases(version, ["champion"])
    release.deploy(version)
    assert release.serving() == [(version, 100)]


@pytest.mark.parametrize("was_champion", [False, True])
def test_a_failed_deployment_makes_no_champion_of_a_version_that_never_was_one(
    release: Release, was_champion: bool
) -> None:
    """A user has deployed an undecided version by hand, with or without promoting it."""
    first = release.upload()
    release.registry.label_version(first, {"promotion": "undecided"})
    release.deploy(first)
    if not was_champion:
        release.registry.merge_aliases(first, ["-champion"])
    wrong = release.upload(wrong_by=0.1)
    compared = {"champion": first if was_champion else "", "is_promoted": True, "reason": "", "criteria": {}}
    outcome.note_comparison(release.checkpoints, **compared, promotion="better")
    with pytest.raises(TrainingError, match="evaluate's probability"):
        release.deploy(wrong)
    assert release.serving() == [(first, 100)]
    assert (release.champion() == first) is was_champion


def test_a_failed_deployment_gives_the_aliases_to_the_champion_and_not_to_an_older_version_that_serves(
    release: Release,
) -> None:
    """The champion was registered by a run without an endpoint."""
    first = release.upload()
    release.deploy(first)
    champion = release.upload()
    wrong = release.upload(wrong_by=0.1)
    compared = {"champion": champion, "is_promoted": True, "reason": "", "criteria": {}}
    outcome.note_comparison(release.checkpoints, **compared, promotion="better")
    with pytest.raises(TrainingError, match="evaluate's probability"):
        release.deploy(wrong)
    assert (release.serving(), release.champion()) == ([(first, 100)], champion)
