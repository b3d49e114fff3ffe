"""What `record` leaves in the registry, even when it is repeated after a kill."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components import vertex_clients
from components.compare.criteria import Criteria
from components.compare.promotion import Result
from components.registry.labels import ALIASES, PROJECT_LABEL, VERSION_KEYS
from components.registry.registry import Registry, Version
from components.release.registration import complete, description, in_google_schema, labels_at_upload
from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import StepEndpoint
from tests.support.unreliable import unreliable
from trainer.command_line import TrainingError
from trainer.results import outcome
from vertex_testing.server import PARENT, Server

METRICS = {
    "accuracy": 0.9,
    "baseline_accuracy": 0.5,
    "baseline_class": "cat",
    "loss": 0.25,
    "balanced_accuracy": 0.9,
    "macro_f1": 0.875,
    "num_test_examples": 20.0,
}
MATRIX = {
    "confusionMatrix": {
        "annotationSpecs": [{"displayName": "cat"}, {"displayName": "dog"}],
        "rows": [{"row": [9.0, 1.0]}, {"row": [1.0, 9.0]}],
    }
}


@pytest.fixture
def upload(server: Server, registry: Registry) -> Callable[..., str]:
    """Upload a version as ModelUploadOp does, and return its resource name."""

    def next_version(labels: dict[str, str], aliases: tuple[str, ...] = ALIASES) -> str:
        model = {"displayName": "pets", "labels": dict([PROJECT_LABEL]) | labels, "versionAliases": list(aliases)}
        parent = registry.find("pets")
        answer = server.call("POST", "models:upload", {"model": model} | ({"parentModel": parent} if parent else {}))
        answer.raise_for_status()
        response = answer.json()["response"]
        return f"{response['model']}@{response['modelVersionId']}"

    return next_version


def recorded(
    server: Server, run: str, name: str, *, is_promoted: bool = True, champion: str = "", is_better: bool = False
) -> str:
    """Complete a registration; another champion is compared as `is_better` has it."""

    def against(other: Version, criteria: Criteria) -> Result:
        promotion = "forced" if criteria.force_promotion else "better"
        return Result(is_promoted=is_better, reason="compared", promotion=promotion, champion=other.name)

    return complete(
        registered_version=name,
        metrics=METRICS,
        confusion_matrix=MATRIX,
        decision={},
        is_promoted=is_promoted,
        champion=champion,
        against=against,
        checkpoint_directory=run,
        model_name="pets",
        serving_image="",
        region="us-central1",
        pipeline_root=str(server.work_dir),
    ).registered_version


def get(server: Server, name: str) -> dict[str, Any]:
    answer = server.call("GET", name.removeprefix(f"{PARENT}/"))
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def test_a_version_gets_everything_and_a_repetition_changes_nothing(
    server: Server, registry: Registry, run: str, upload: Callable[..., str]
) -> None:
    outcome.note_comparison(run, champion="", is_promoted=True, reason="", criteria={}, promotion="better")
    name = upload(labels_at_upload(run))
    model = name.partition("@")[0]
    assert recorded(server, run, name) == name
    once = get(server, name)
    assert once["versionAliases"] == list(ALIASES)
    described = "accuracy 0.9000 (0.5000 by always answering 'cat'), loss 0.2500, macro_f1 0.8750 (20 test images)"
    assert once["versionDescription"] == described
    assert {key: once["labels"][key] for key in VERSION_KEYS} == {
        "run-id": "0123456789abcdef",
        "checkpoint": outcome.best_digest(run)[:32],
        "dataset": "d" * 32,
        "promotion": "better",
    }
    assert all(len(value) <= 63 for value in once["labels"].values())
    (evaluation,) = registry.evaluations(name)
    metrics = get(server, evaluation)["metrics"]
    assert metrics == in_google_schema(METRICS, MATRIX)
    assert registry.find("pets") == model
    assert outcome.notes(run).registration["resource_name"] == name
    # A version without a run, which a user adds by hand, does not get that of the first version.
    second = upload({}, aliases=("candidate",))
    assert VERSION_KEYS[0] not in get(server, second)["labels"]
    assert recorded(server, run, name) == name
    again = get(server, name)
    assert {**again, "versionUpdateTime": "", "updateTime": ""} == {**once, "versionUpdateTime": "", "updateTime": ""}
    assert registry.evaluations(name) == [evaluation]
    found = registry.version_of_run(model, "0123456789abcdef", outcome.best_digest(run))
    assert found
    assert found.name == name


def test_a_description_has_the_baseline_of_the_chosen_metric_and_none_without_it() -> None:
    chosen = description(METRICS | {"baseline_balanced_accuracy": 0.25})
    assert ", balanced_accuracy 0.9000 (0.2500 by always answering 'cat'), loss" in chosen
    without = {name: value for name, value in METRICS.items() if not name.startswith("b")}
    assert description(without) == "accuracy 0.9000, loss 0.2500, macro_f1 0.8750 (20 test images)"


@pytest.mark.slow
@pytest.mark.parametrize("is_after", [False, True], ids=["before the call", "after the call"])
def test_a_registry_that_fails_from_any_call_on_is_one_line_and_the_next_attempt_completes_it(
    server: Server,
    registry: Registry,
    run: str,
    upload: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    is_after: bool,
) -> None:
    monkeypatch.setattr(vertex_clients, "_PAUSES_SECONDS", (0.0,))
    name = upload(labels_at_upload(run), aliases=())
    path = Path(os.environ[step_endpoint.VARIABLE])
    direct, token = path.read_bytes(), server.headers["Authorization"].removeprefix("Bearer ")
    errors: list[str] = []
    while not outcome.notes(run).registration:
        with unreliable(server.url, first_failure=len(errors) + 1, is_made=is_after) as service:
            path.unlink()
            step_endpoint.write(path, StepEndpoint(address=service.url, token=token))
            try:
                recorded(server, run, name)
            except TrainingError as error:
                errors.append(str(error))
    assert len(errors) > 8
    assert all(each.endswith("the service is not available (no); run the pipeline again later") for each in errors)
    assert "\n" not in "".join(errors)
    path.write_bytes(direct)
    assert len(registry.evaluations(name)) == 1
    assert set(get(server, name)["versionAliases"]) == set(ALIASES)
    assert outcome.notes(run).registration["resource_name"] == name


class Killed(BaseException):
    """Nothing of the step runs after this, as after kill -9; all state is the server's, or a file."""


@pytest.mark.parametrize(
    "point",
    ["label_version", "label_model", "describe", "import_evaluation", "versions", "merge_aliases", "note_registration"],
)
def test_a_step_killed_before_any_call_is_repeated_without_a_trace(
    server: Server,
    registry: Registry,
    run: str,
    upload: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    first = upload({})
    registry.label_version(first, {"run-id": "other"})
    name = upload(labels_at_upload(run), aliases=())
    owner = outcome if point == "note_registration" else Registry

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(owner, point, killed)
        with pytest.raises(Killed):
            recorded(server, run, name, champion=first)
    assert recorded(server, run, name, champion=first) == name
    assert [each.number for each in registry.versions(name.partition("@")[0])] == ["1", "2"]
    assert len(registry.evaluations(name)) == 1
    assert get(server, name)["versionAliases"] == list(ALIASES)
    assert get(server, first)["labels"]["run-id"] == "other"
    assert outcome.notes(run).registration["resource_name"] == name


def test_the_aliases_are_moved_from_the_champion_that_was_compared(
    server: Server, registry: Registry, run: str, upload: Callable[..., str]
) -> None:
    first = upload(labels_at_upload(run))
    second = upload(labels_at_upload(run), aliases=())
    recorded(server, run, second, champion=first)
    champion = registry.champion(first.partition("@")[0])
    assert champion
    assert (champion.name, champion.aliases) == (second, ALIASES)
    assert get(server, first).get("versionAliases", []) == []


def test_a_newer_champion_of_another_run_stays(
    server: Server, registry: Registry, run: str, upload: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless this model is better."""
    first = upload(labels_at_upload(run), aliases=())
    newer = upload({"run-id": "other"})
    recorded(server, run, first)
    champion = registry.champion(first.partition("@")[0])
    assert champion
    assert (champion.name, champion.aliases) == (newer, ALIASES)
    assert capsys.readouterr().out.endswith(f"registered as {first}; the champion is {newer}\n")
    assert outcome.notes(run).registration == {}
    recorded(server, run, first, is_better=True)
    champion = registry.champion(first.partition("@")[0])
    assert champion
    assert (champion.name, champion.aliases) == (first, ALIASES)
    assert outcome.notes(run).registration["resource_name"] == first


def test_the_evaluation_has_the_names_of_googles_schema() -> None:
    found = in_google_schema(METRICS, MATRIX)
    assert found["logLoss"] == 0.25
    assert found["confidenceMetrics"][0]["precision"] == found["confidenceMetrics"][0]["recall"] == 0.9
    matrix = found["confusionMatrix"]
    assert matrix["annotationSpecs"] == [{"id": "0", "displayName": "cat"}, {"id": "1", "displayName": "dog"}]
    assert matrix["rows"] == [[9, 1], [1, 9]]


def undecided(run: str) -> dict[str, str]:
    """Note that there were too few test images; return the labels of the upload."""
    outcome.note_comparison(run, champion="", is_promoted=False, reason="too few", criteria={}, promotion="undecided")
    return labels_at_upload(run)


def test_an_undecided_version_gets_no_alias_later(
    server: Server, run: str, registry: Registry, upload: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    first = upload(undecided(run), ())
    recorded(server, run, first, is_promoted=False)
    recorded(server, run, first, is_promoted=False)
    version = registry.get(first)
    # The service makes the first version of a model its default.
    assert (version.aliases, version.labels["promotion"]) == (("default",), "undecided")
    assert registry.champion(version.model) is None
    assert f"registered as {first}; the champion is none" in capsys.readouterr().out
    second = upload(undecided(run), ())
    recorded(server, run, second, is_promoted=False)
    assert registry.get(second).aliases == ()
    # Promoted by force_promotion, after the registration.
    outcome.note_comparison(run, champion="", is_promoted=True, reason="", criteria={}, promotion="forced")
    recorded(server, run, second)
    assert sorted(registry.get(second).aliases) == ["champion", "default"]
    assert registry.get(second).labels["promotion"] == "forced"
