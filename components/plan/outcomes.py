"""Read from notes and registry how a finished run ended, and whether anything is left to do."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

from components.compare.criteria import Criteria
from components.registry.labels import CHAMPION, CHECKPOINT, NOT_PROMOTED, REFUSED, UNDECIDED, label_value
from components.registry.registry import Registry, Version
from components.vertex_clients import NotFoundError
from trainer.results import outcome
from trainer.results.baseline import Verdict
from trainer.results.outcome import Notes

_VERSION = re.compile(r"projects/[^/]+/locations/(?P<region>[^/]+)/models/[^/@]+(@[0-9]+)?")
"""A damaged note may have any text, which the service's client would not take."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """Steps after the training that the pipeline's parameters request."""

    model_name: str
    """Display name in the Model Registry."""
    serving_image: str
    """The value of the parameter."""
    region: str
    minimum_score: float
    """Minimum of the metric on the test split, 0 to 1."""
    criteria: Criteria
    endpoint: str = ""
    """Display name of the endpoint; empty for no deployment."""


def conclusion(checkpoint_directory: str, release: Release, registry: Callable[[], Registry]) -> str:
    """Describe the outcome of a finished run; empty while something is left to do.

    Args:
        checkpoint_directory: Checkpoint folder of a run that `result_file.is_finished`.
        release: Requested steps.
        registry: Connects to the registry; called only if a note is about one of its versions.

    Raises:
        UserError: The registry cannot be queried.
    """
    noted = outcome.notes(checkpoint_directory)
    if not noted.evaluation:
        return ""
    value, is_forced = noted.evaluation["score"], release.criteria.force_promotion
    score = f"test {noted.evaluation['metric']} {value:.4f}"
    if _is_of(noted.registration, release):
        if is_forced and noted.comparison.get("promotion") in NOT_PROMOTED:
            return ""
        found = _registration_state(noted, release, registry(), label_value(outcome.best_digest(checkpoint_directory)))
        return f"{score}, {found}" if found else ""
    if value < release.minimum_score:
        return f"{score}, below minimum_score {release.minimum_score:g}: not registered"
    if noted.evaluation["verdict"] == Verdict.NOT_BETTER and not is_forced:
        return f"{score}, not registered: {noted.evaluation['reason']}"
    refused = _refusal(noted.comparison, release, registry)
    return f"{score}, {refused}" if refused else ""


def _is_of(registration: Any, release: Release) -> bool:
    names = (registration.get("model_name"), registration.get("serving_image"))
    found = _VERSION.fullmatch(str(registration.get("resource_name")))
    return (
        found is not None and found["region"] == release.region and names == (release.model_name, release.serving_image)
    )


def _registration_state(noted: Notes, release: Release, registry: Registry, checkpoint: str) -> str:
    """Return the state of a registered version; empty if it was deleted or has yet to be deployed.

    After the deletion of a whole model, another model may have its name, so the label of the checkpoint must match.
    """
    name = str(noted.registration["resource_name"])
    model, _, number = name.partition("@")
    try:
        versions = registry.versions(model)
    except NotFoundError:
        versions = []
    found = [each for each in versions if each.number == number and each.labels.get(CHECKPOINT) == checkpoint]
    if not found:
        print(f"notice: {name} is no longer in the registry; the model is compared and registered again")
        return ""
    is_live = _began(noted, release.endpoint, name) and noted.deployment.get("is_live") is True
    if is_live or not release.endpoint:
        return f"registered as {name}"
    return _not_deployed(noted, release.endpoint, found[0], versions)


def _began(noted: Notes, endpoint: str, name: str) -> bool:
    return (noted.deployment.get("endpoint"), noted.deployment.get("resource_name")) == (endpoint, name)


def _not_deployed(noted: Notes, endpoint: str, version: Version, versions: list[Version]) -> str:
    """Return why a version is not deployed; empty if its deployment resumes.

    A version that is not the champion is deployed only if its own failed deployment gave the aliases back: a user who
    promoted another version by hand wants that version.
    """
    if noted.comparison.get("promotion") == UNDECIDED and CHAMPION not in version.aliases:
        return f"registered as {version.name}, not deployed: {noted.comparison.get('reason')}"
    champions = [each for each in versions if CHAMPION in each.aliases]
    if version in champions or not champions:
        return ""
    current = champions[0]
    if not _began(noted, endpoint, version.name):
        return f"registered as {version.name}, not deployed: the champion is version {current.number}"
    if noted.comparison.get("is_promoted") is False and noted.comparison.get("champion") == current.name:
        return f"registered as {version.name}, not deployed: {noted.comparison.get('reason')}"
    return ""


def _refusal(comparison: Any, release: Release, registry: Callable[[], Registry]) -> str:
    """Return why the model is not registered; empty if a comparison is due."""
    if comparison.get("is_promoted") is not False or comparison.get("criteria") != dataclasses.asdict(release.criteria):
        return ""
    champion = str(comparison.get("champion"))
    if not champion:
        # A file was missing, which may be there again.
        return ""
    model = champion.partition("@")[0]
    client = registry()
    if client.find(release.model_name) != model:
        return ""
    current = client.champion(model)
    if current is None or current.name != champion:
        print(f"notice: {champion} is no longer the champion; the model is compared again")
        return ""
    state = "registered, not promoted" if comparison.get("promotion") == REFUSED else "not registered"
    return f"{state}: {comparison.get('reason')}"
