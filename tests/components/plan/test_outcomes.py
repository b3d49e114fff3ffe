"""Conclusions of `plan` about a finished run, from its notes and from the registry."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.compare.criteria import Criteria
from components.plan import outcomes
from components.plan.outcomes import Release
from components.registry.labels import ALIASES, CHECKPOINT, PROJECT_LABEL, label_value
from components.registry.registry import Registry
from tests.support.finished import note_evaluation, write_finished_run
from trainer.results import outcome
from vertex_testing.server import PARENT, Server

NAME, IMAGE = "pets", "example-docker.pkg.dev/p/serving:1"
RELEASE = Release(model_name=NAME, serving_image=IMAGE, region="us-central1", minimum_score=0.8, criteria=Criteria())


@pytest.fixture
def upload(server: Server, registry: Registry, run: str) -> Callable[..., str]:
    """Register the next version of the model and return its resource name."""

    def next_version(aliases: tuple[str, ...] = ALIASES) -> str:
        parent = registry.find(NAME)
        labels = dict([PROJECT_LABEL]) | {CHECKPOINT: label_value(outcome.best_digest(run))}
        model = {"displayName": NAME, "versionAliases": aliases, "labels": labels}
        body = {"model": model} | ({"parentModel": parent} if parent else {})
        answer = server.call("POST", "models:upload", body)
        answer.raise_for_status()
        response = answer.json()["response"]
        return f"{response['model']}@{response['modelVersionId']}"

    return next_version


@pytest.fixture
def concluded(run: str, registry: Registry) -> Callable[..., str]:
    """Return what `plan` concludes, with changes to what is asked for."""

    def conclude(**changes: Any) -> str:
        return outcomes.conclusion(run, dataclasses.replace(RELEASE, **changes), lambda: registry)

    return conclude


def no_call() -> Registry:
    raise AssertionError("the registry was asked")


def register(run: str, name: Any) -> None:
    outcome.note_registration(run, model_name=NAME, serving_image=IMAGE, resource_name=name)


def refuse(run: str, champion: str, criteria: Criteria | None = None) -> None:
    noted, reason = dataclasses.asdict(criteria or Criteria()), "worse than version 1"
    outcome.note_comparison(run, champion=champion, is_promoted=False, reason=reason, criteria=noted, promotion="")


def test_without_a_registration_or_a_comparison_the_registry_is_not_asked(run: str) -> None:
    assert outcomes.conclusion(run, RELEASE, no_call) == ""
    strict = dataclasses.replace(RELEASE, minimum_score=0.95)
    expected = "test accuracy 0.9000, below minimum_score 0.95: not registered"
    assert outcomes.conclusion(run, strict, no_call) == expected
    noted = Path(run) / "evaluation.json"
    noted.unlink()
    assert outcomes.conclusion(run, strict, no_call) == ""


def test_a_registered_version_is_nothing_new_until_it_is_deleted(
    run: str,
    upload: Callable[..., str],
    concluded: Callable[..., str],
    server: Server,
    registry: Registry,
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, second = upload(), upload()
    register(run, second)
    assert concluded() == f"test accuracy 0.9000, registered as {second}"
    # Also if another version was promoted by hand, or the minimum is higher by now.
    registered = concluded(minimum_score=0.99)
    assert registered.endswith(second)
    assert concluded(model_name="other") == concluded(serving_image="") == concluded(region="europe-west4") == ""
    model = first.removeprefix(f"{PARENT}/").partition("@")[0]
    server.call("POST", f"{model}@1:mergeVersionAliases", {"versionAliases": list(ALIASES)}).raise_for_status()
    assert concluded() == registered
    server.call("DELETE", f"{model}@2:deleteVersion").raise_for_status()
    assert concluded() == ""
    assert f"{second} is no longer in the registry" in capsys.readouterr().out
    server.call("DELETE", model).raise_for_status()
    assert concluded() == ""
    again = upload()
    register(run, again)
    assert concluded() == f"test accuracy 0.9000, registered as {again}"
    registry.label_version(again, {"checkpoint": "of-another-run"})
    assert concluded() == ""


@pytest.mark.parametrize(
    "name", ["/locations/us-central1/", "projects/p/locations/us-central1/models/../x@z", ["x"], 5]
)
def test_a_note_that_names_no_version_is_no_registration(run: str, name: Any) -> None:
    register(run, name)
    assert outcomes.conclusion(run, RELEASE, no_call) == ""


def test_a_refused_model_is_compared_again_only_when_the_champion_or_the_criteria_change(
    run: str, upload: Callable[..., str], concluded: Callable[..., str], registry: Registry
) -> None:
    first = upload()
    refuse(run, first)
    refused = "test accuracy 0.9000, not registered: worse than version 1"
    assert concluded() == refused
    assert concluded(criteria=Criteria(max_regression=0.1)) == ""
    assert concluded(criteria=Criteria(force_promotion=True)) == ""
    second = upload()
    assert concluded() == ""
    # By hand.
    registry.merge_aliases(first, ALIASES)
    assert concluded() == refused
    registry.merge_aliases(second, ALIASES)
    assert concluded() == ""
    assert concluded(model_name="other") == ""
    refuse(run, "")
    assert concluded() == ""


def test_a_refusal_does_not_outlive_the_model(
    run: str, upload: Callable[..., str], concluded: Callable[..., str], server: Server
) -> None:
    first = upload()
    refuse(run, first)
    server.call("DELETE", first.removeprefix(f"{PARENT}/").partition("@")[0]).raise_for_status()
    assert concluded() == ""


def test_a_registered_version_that_is_not_deployed_resumes_at_its_deployment(
    run: str, upload: Callable[..., str], concluded: Callable[..., str], registry: Registry
) -> None:
    first, second = upload(), upload()
    register(run, second)
    assert concluded(endpoint="pets") == ""
    # A failed deployment gave the aliases back; it began, so it is tried again.
    outcome.note_deployment(run, endpoint="pets", resource_name=second, is_live=False)
    registry.merge_aliases(first, ALIASES)
    assert concluded(endpoint="pets") == ""
    outcome.note_deployment(run, endpoint="pets", resource_name=second, is_live=True)
    live = f"test accuracy 0.9000, registered as {second}"
    assert concluded(endpoint="pets") == concluded() == live
    # Another endpoint gets the champion only, which a user has promoted by hand.
    expected = f"{live}, not deployed: the champion is version 1"
    assert concluded(endpoint="others") == expected


def test_notes_about_another_checkpoint_do_not_count(run: str, upload: Callable[..., str], registry: Registry) -> None:
    first = upload()
    register(run, first)
    refuse(run, first)
    outcome.note_deployment(run, endpoint="pets", resource_name=first, is_live=True)
    found = outcome.notes(run)
    assert (found.evaluation["score"], found.registration["resource_name"]) == (0.9, first)
    identity = {"global_batch_size": 8, "dataset_fingerprint": "e" * 64}
    write_finished_run(run, run_id="fedcba9876543210", identity=identity, accuracy=0.9)
    assert outcome.notes(run) == outcome.Notes(evaluation={}, comparison={}, registration={}, deployment={})


def test_a_model_that_is_not_better_than_a_constant_answer_is_not_evaluated_again(run: str) -> None:
    note_evaluation(run, 0.9, metric="macro-f1", verdict="not-better")
    expected = "test macro-f1 0.9000, not registered: not-better, says the test"
    assert outcomes.conclusion(run, RELEASE, no_call) == expected
    lower = dataclasses.replace(RELEASE, minimum_score=0.0)
    assert outcomes.conclusion(run, lower, no_call) == expected
    forced = dataclasses.replace(RELEASE, criteria=Criteria(force_promotion=True))
    assert outcomes.conclusion(run, forced, no_call) == ""


def test_an_undecided_version_is_not_deployed_until_it_is_promoted(
    run: str, upload: Callable[..., str], concluded: Callable[..., str], registry: Registry
) -> None:
    note_evaluation(run, 0.9, verdict="undecided")
    noted = {"champion": "", "is_promoted": False, "reason": "too few", "criteria": {}, "promotion": "undecided"}
    outcome.note_comparison(run, **noted)
    assert concluded() == concluded(endpoint="pets") == ""
    first = upload()
    registry.merge_aliases(first, ["-champion"])
    register(run, first)
    assert concluded() == f"test accuracy 0.9000, registered as {first}"
    assert concluded(endpoint="pets") == f"test accuracy 0.9000, registered as {first}, not deployed: too few"
    assert concluded(criteria=Criteria(force_promotion=True)) == ""
    # A user promotes it by hand.
    registry.merge_aliases(first, ALIASES)
    assert concluded(endpoint="pets") == ""
