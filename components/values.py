"""The values of a run that can be refused without any image: hyperparameters, machines, names."""

from collections.abc import Mapping
from typing import Any

from components.compare.criteria import Criteria
from components.names import check_names
from components.release.serving_machines import ServingMachines, check_deployment
from components.train import fallbacks
from components.train.machines import Machines, check
from localvertex.machines import Finding
from trainer.checkpoints.identity import check_run_label
from trainer.config import TrainConfig
from trainer.data.preparing.dataflow.settings import ENGINES, LOCAL
from trainer.settings import FRACTION, check as check_setting, from_values


def check_values(given: Mapping[str, Any], *, image: str, region: str) -> list[Finding]:
    """Refuse values that the steps or Vertex AI would refuse after hours; return the warnings about machines.

    Args:
        given: Values by the names of the pipeline's parameters; others are ignored. A value inside of a structure may
            arrive as text, and with its placeholder where the service does not fill it in: that one is not checked.
        image: Container image of the training job.
        region: Vertex AI region, e.g. us-central1.

    Raises:
        UserError: A value is wrong, or Vertex AI would refuse the machines of the training job or of the deployment.
    """
    values = _is_known(given)
    config, machines = from_values(TrainConfig, values), machines_in(values)
    if machines and machines.parameter_server_count:
        config.check_for_parameter_servers(exact=str(values.get("exact", "")).lower() == "true")
    if "minimum_score" in values:
        check_setting("minimum_score", values["minimum_score"], FRACTION)
    from_values(Criteria, values)
    if "model_name" in values:
        check_names(model_name=str(values["model_name"]))
    check_run_label(str(values.get("run_label", "")))
    check_setting("prepare_engine", values.get("prepare_engine", LOCAL), ENGINES)
    findings = check_deployment(str(values.get("deploy_endpoint", "")), replicas_in(values), region=region)
    if machines:
        findings += check(machines, image=image, region=region)
        findings += fallbacks.check(values, image=image, region=region, check_machines=check)
    return findings


def machines_in(values: Mapping[str, Any]) -> Machines | None:
    """Return the machines of the training job, None without a machine type; the parameters that are missing may be new.

    Raises:
        UserError: A value is wrong on any machine.
    """
    known = _is_known(values)
    return from_values(Machines, known) if "machine_type" in known else None


def replicas_in(values: Mapping[str, Any]) -> ServingMachines:
    """Return the machines of the deployed version; parameters that are missing have their defaults.

    Raises:
        UserError: A value is wrong on any machine.
    """
    return from_values(ServingMachines, values)


def _is_known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not (isinstance(value, str) and "{{$" in value)}
