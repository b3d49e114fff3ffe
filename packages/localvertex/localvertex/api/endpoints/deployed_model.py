"""A DeployedModel of an endpoint: which version of a model, on which machines."""

from dataclasses import dataclass
from uuid import uuid4

from localvertex.api.endpoints.records import EndpointRecords
from localvertex.api.models.registered import Registered
from localvertex.api.rest.call import Location
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import ID
from localvertex.machines.job.finding import sentences
from localvertex.machines.job.shape import Reading
from localvertex.machines.rules.prediction import check_resources
from localvertex.store import record

_RESOURCES = ("dedicatedResources", "automaticResources", "sharedResources")


@dataclass(frozen=True, kw_only=True)
class NewDeployedModel:
    """A model as a request deploys it."""

    message: Resource
    """The DeployedModel."""
    content: Resource
    """The version of the model, as the registry has it."""
    warnings: list[str]
    """Warnings about the machines."""


def new_deployed_model(records: EndpointRecords, wanted: Resource, location: Location) -> NewDeployedModel:
    """Check the DeployedModel of a request.

    Raises:
        ApiError: The model does not exist, or the service would refuse the machines.
    """
    name = str(wanted.get("model", ""))
    model_id, number, content = Registered(records.work_dir).named(location, name, "deployedModel.model")
    if wanted.get("id") and not ID.fullmatch(str(wanted["id"])):
        raise invalid(f"deployedModel.id {str(wanted['id'])[:100]!r}: expected letters, digits and '-'")
    warnings = _check_machines(wanted, location.region)
    message = wanted | {
        "id": wanted.get("id") or str(uuid4().int >> 66),
        "model": location.child("models", model_id),
        "modelVersionId": number,
        "displayName": wanted.get("displayName") or str(content.get("display_name", "")),
        "createTime": record.now(),
    }
    return NewDeployedModel(message=message, content=content, warnings=warnings)


def _check_machines(wanted: Resource, region: str) -> list[str]:
    """Check the machines of a deployment, and return warnings.

    Raises:
        ApiError: The service would refuse them.
    """
    given = [name for name in _RESOURCES if name in wanted]
    if len(given) != 1 or given == ["sharedResources"]:
        found = " and ".join(given) or "none"
        raise invalid(f"deployedModel: expected dedicatedResources or automaticResources, found {found}")
    if "dedicatedResources" not in wanted:
        return []
    machine = wanted["dedicatedResources"].get("machineSpec", {})
    if not machine.get("machineType"):
        raise invalid("deployedModel.dedicatedResources.machineSpec.machineType is missing")
    fewest, most = (wanted["dedicatedResources"].get(f"{which}ReplicaCount", 0) for which in ("min", "max"))
    if fewest < 1:
        # "Must be greater than or equal to 1" (DedicatedResources of v1); only v1beta1 scales to zero.
        raise invalid(f"deployedModel.dedicatedResources.minReplicaCount: expected at least 1, as v1, found {fewest}")
    if most and most < fewest:
        raise invalid(f"deployedModel.dedicatedResources.maxReplicaCount: expected at least {fewest}, found {most}")
    findings = check_resources(wanted["dedicatedResources"], Reading(), region=region)
    if errors := [each for each in findings if each.severity == "error"]:
        raise invalid(f"deployedModel.dedicatedResources: {sentences(errors)}")
    return [sentences([each]) for each in findings]
