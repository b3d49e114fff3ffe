"""The step `deploy`: give a version the traffic of an endpoint, and keep it there if its predictions are right."""

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

from components.registry.labels import ALIASES, CHAMPION, NOT_PROMOTED, PROMOTION
from components.registry.registry import Registry
from components.release import live_prediction
from components.release.endpoints import Deployed, Endpoints
from components.release.live_prediction import Trial, WrongAnswerError
from components.release.serving_machines import ServingMachines, check_deployment
from components.release.succession import in_turn
from exact_resume.errors import InputError, RunError
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError, report_errors as report_errors  # a component imports it from here
from trainer.results import outcome

_ALL = 100
_PAUSES_SECONDS = (1.0, 4.0, 16.0, 60.0)
"""Pauses between live predictions while the old version still answers: a new traffic split takes a moment."""


def deploy(*, dataset: str, predictions: str, **options: Any) -> str:
    """Deploy a version, and try it with test images; see `put_live`.

    Args:
        dataset: The dataset that the version was evaluated on.
        predictions: Predictions of `evaluate`.
        **options: The other arguments of `put_live`.
    """

    def trial() -> Trial:
        expected = live_prediction.expected_answers(dataset, predictions)
        return Trial(
            instances=[each.instance for each in expected], check=functools.partial(live_prediction.check, expected)
        )

    return put_live(trial=trial, **options)


def put_live(
    *,
    registered_version: str,
    checkpoint_directory: str,
    trial: Callable[[], Trial],
    region: str,
    pipeline_root: str,
    deploy_endpoint: str,
    service_account: str = "",
    **machines: Any,
) -> str:
    """Deploy a version with all traffic, try it, and undeploy what was there; a second call finds what is done.

    Args:
        registered_version: Resource name of the version, projects/P/locations/R/models/ID@NUMBER.
        checkpoint_directory: Checkpoint folder of the run.
        trial: Returns the live prediction.
        region: Region of the model and the endpoint.
        pipeline_root: Pipeline root of the run.
        deploy_endpoint: Display name of the endpoint.
        service_account: Service account of the replicas; empty for the default one.
        **machines: Fields of `ServingMachines`.

    Returns:
        Resource name of the endpoint.

    Raises:
        UserError: The machines are not valid, the endpoint is not the pipeline's, or a newer version is the champion.
        TrainingError: The deployment or the live prediction failed; the version that served before serves again.
    """
    replicas = ServingMachines(**machines)
    for finding in check_deployment(deploy_endpoint, replicas, region=region):
        print(f"warning: {finding.message}")
    tried = trial()
    service = Endpoints(region=region, pipeline_root=pipeline_root)
    registry = Registry(region=region, pipeline_root=pipeline_root)
    version = registry.get(registered_version)
    if version.labels.get(PROMOTION) in NOT_PROMOTED and CHAMPION not in version.aliases:
        raise UserError(f"{version.name} is not deployed: it is not promoted; force_promotion=true promotes it")
    _refuse_replaced(registry, version.name, checkpoint_directory)
    endpoint = service.find_or_create(deploy_endpoint)
    before = service.deployed_models(endpoint)
    if strangers := [each for each in before if not each.is_of(version.model)]:
        raise UserError(
            f"{endpoint} serves {strangers[0].version}, which is not a version of {version.model}; give another"
            " deploy_endpoint, or undeploy it"
        )

    def note(*, is_live: bool) -> None:
        outcome.note_deployment(
            checkpoint_directory, endpoint=deploy_endpoint, resource_name=version.name, is_live=is_live
        )

    note(is_live=False)
    try:
        if not _find(before, version.name):
            print(f"deploying {version.name} to {endpoint}: {replicas}")
            resources = replicas.dedicated_resources()
            # It has at most 128 characters, as the endpoint's.
            name = f"{deploy_endpoint[:100]}-{version.number}"
            service.deploy(endpoint, version.name, name=name, resources=resources, service_account=service_account)
        new = _with_all_traffic(service, endpoint, version.name)
        difference = _smoke_test(service, endpoint, new, tried)
        with in_turn(registry, version.name):
            _refuse_replaced(registry, version.name, checkpoint_directory)
            registry.merge_aliases(version.name, ALIASES)
    except Exception as error:
        _roll_back(
            service, registry, endpoint, version.name, before=before, error=error, directory=checkpoint_directory
        )
        raise
    for old in service.deployed_models(endpoint):
        if old.id != new.id:
            service.undeploy(endpoint, old, {new.id: _ALL})
    note(is_live=True)
    print(
        f"{version.name} answers all requests of {endpoint}; {len(tried.instances)} live predictions differ from"
        f" evaluate's by at most {difference:.1g}"
    )
    if storage.is_object_store(pipeline_root):
        print("it costs money until it is undeployed")
    return endpoint


def _refuse_replaced(registry: Registry, version: str, checkpoint_directory: str) -> None:
    """Refuse a version that is not the champion, unless its own failed deployment gave the aliases back.

    Raises:
        UserError: The champion is neither this version nor the one that it has replaced.
    """
    model, _, number = version.partition("@")
    found, former = registry.champion(model), outcome.notes(checkpoint_directory).comparison.get("champion")
    if found is None or found.name in (version, former) or (not former and int(found.number) < int(number)):
        return
    raise UserError(
        f"{version} is not deployed: version {found.number} has replaced it as the champion; to deploy it, give it the"
        " alias champion, and run the step again"
    )


def _find(deployed: Sequence[Deployed], version: str) -> Deployed | None:
    model, _, number = version.partition("@")
    return next((each for each in deployed if each.is_of(model) and each.number == number), None)


def _with_all_traffic(service: Endpoints, endpoint: str, version: str) -> Deployed:
    """Return the deployed version, which has all traffic: a killed attempt may have left it without."""
    new = _find(service.deployed_models(endpoint), version)
    if new is None:
        raise TrainingError(f"{version} is not on {endpoint} after its deployment; run the pipeline again")
    if new.traffic != _ALL:
        service.route(endpoint, {new.id: _ALL})
    return new


def _smoke_test(service: Endpoints, endpoint: str, new: Deployed, trial: Trial) -> float:
    """Compare live answers with the expected ones; return the largest difference of a number."""
    if not trial.instances:
        return 0.0
    for pause in (*_PAUSES_SECONDS, None):
        answered_by, answers = service.predict(endpoint, trial.instances)
        if answered_by == new.id:
            return trial.check(answers)
        if pause is not None:
            time.sleep(pause)
    raise TrainingError(
        f"{endpoint} is still answered by the deployed model {answered_by}, not by {new.id}; run the pipeline again"
    )


def _roll_back(
    service: Endpoints,
    registry: Registry,
    endpoint: str,
    version: str,
    *,
    before: list[Deployed],
    error: Exception,
    directory: str,
) -> None:
    """Give traffic and aliases to the version that served before, and undeploy the new one, which would cost money."""
    print(f"the deployment of {version} failed; giving the traffic back")
    try:
        now = service.deployed_models(endpoint)
        new = _find(now, version)
        others = [each for each in now if new is None or each.id != new.id]
        # The old version was undeployed after the new one had answered correctly: the service may be unavailable now.
        if new and not others and _find(before, version) and not isinstance(error, WrongAnswerError):
            print(f"{version} is the only version on {endpoint} and stays there; run the pipeline again")
            return
        traffic = _traffic_before(before, others)
        if new:
            service.undeploy(endpoint, new, traffic)
        if others:
            serving = max(others, key=lambda each: (traffic[each.id], each.created))
            with in_turn(registry, version):
                champion = registry.champion(version.partition("@")[0])
                is_own = champion is None or champion.name == version
                if is_own and (former := _champion_before(registry, serving.version, directory)):
                    registry.merge_aliases(former, ALIASES)
    except (UserError, TrainingError, InputError, RunError) as second:
        print(f"restoring the traffic failed: {second}; check {endpoint}, whose replicas cost money")


def _champion_before(registry: Registry, serving: str, checkpoint_directory: str) -> str:
    """Return the version that gets the aliases back; empty for none.

    A user may have deployed a version other than the champion by hand, even one that was never promoted.
    """
    versions = {each.name: each for each in registry.versions(serving.partition("@")[0])}
    compared = str(outcome.notes(checkpoint_directory).comparison.get("champion"))
    if compared in versions:
        return compared
    return serving if versions[serving].labels.get(PROMOTION) not in NOT_PROMOTED else ""


def _traffic_before(before: Sequence[Deployed], others: Sequence[Deployed]) -> dict[str, int]:
    """Return the traffic of the other versions before this attempt, or all for the newest: the new one had it."""
    split = {each.id: each.traffic for each in before}
    if sum(split.get(each.id, 0) for each in others) == _ALL:
        return {each.id: split.get(each.id, 0) for each in others}
    return {each.id: _ALL * (each is others[-1]) for each in others}
