"""The values of a run that can be refused without any image: hyperparameters, machines, names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from components.compare.criteria import Criteria
from components.names import check_names
from components.release.serving_machines import ServingMachines, check_deployment
from components.train.machines import Machines, check
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding
from trainer.checkpoints.identity import check_run_label
from trainer.config import TrainConfig
from trainer.data.preparing.dataflow.settings import LOCAL, check_engine

_TYPES = {"int": int, "float": float}


def check_values(given: Mapping[str, Any], *, image: str, region: str) -> list[Finding]:
    """Refuse what the steps or Vertex AI would refuse after hours, and return the warnings about machines.

    Args:
        given: Values by the names of the pipeline's parameters; others are ignored. A value inside of a structure may
            arrive as text, and with its placeholder where the service does not fill it in: that one is not checked.
        image: Container image of the training job.
        region: Vertex AI region, e.g. us-central1.

    Raises:
        UserError: A value is wrong, or Vertex AI would refuse the machines of the training job or of the deployment.
    """
    values = _is_known(given)
    config, machines = TrainConfig(**fields_of(TrainConfig, values)), machines_in(values)
    if machines and machines.parameter_server_count:
        config.check_for_parameter_servers(exact=str(values.get("exact", "")).lower() == "true")
    if "minimum_score" in values:
        _check_score(_number("minimum_score", values["minimum_score"], float))
    Criteria(**fields_of(Criteria, values))
    if "model_name" in values:
        check_names(model_name=str(values["model_name"]))
    check_run_label(str(values.get("run_label", "")))
    check_engine(str(values.get("prepare_engine", LOCAL)))
    findings = check_deployment(str(values.get("deploy_endpoint", "")), replicas_in(values), region=region)
    return (check(machines, image=image, region=region) if machines else []) + findings


def machines_in(values: Mapping[str, Any]) -> Machines | None:
    """Return the machines of the training job, None without a machine type; the parameters that are missing may be new.

    Raises:
        UserError: A value is wrong on any machine.
    """
    fields = fields_of(Machines, _is_known(values))
    return Machines(**fields) if "machine_type" in fields else None


def replicas_in(values: Mapping[str, Any]) -> ServingMachines:
    """Return the machines of the deployed version; parameters that are missing have their defaults.

    Raises:
        UserError: A value is wrong on any machine.
    """
    return ServingMachines(**fields_of(ServingMachines, values))


def _check_score(minimum_score: Any) -> None:
    """Refuse a minimum score that is not a number from 0 to 1.

    Raises:
        UserError: It is not a number from 0 to 1.
    """
    if not isinstance(minimum_score, int | float) or not 0 <= minimum_score <= 1:
        raise UserError(f"minimum_score is {minimum_score}; expected a number from 0 to 1, e.g. 0.9")


def _is_known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not (isinstance(value, str) and "{{$" in value)}


def fields_of(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass that have a value, with the types that they need."""
    fields = {field.name: str(getattr(field.type, "__name__", field.type)) for field in dataclasses.fields(kind)}
    return {
        name: _number(name, values[name], _TYPES[kind_name]) if kind_name in _TYPES else values[name]
        for name, kind_name in fields.items()
        if name in values
    }


def _number(field: str, value: Any, kind: type[Any]) -> Any:
    """Return text as the number that it is; the service may write 2 as "2.0". Another value is returned as it is.

    Raises:
        UserError: The text is no such number.
    """
    if isinstance(value, float) and kind is int and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
        return int(number) if kind is int and number.is_integer() else kind(value)
    except (ValueError, OverflowError):
        raise UserError(f"{field} is {value!r}; expected a number") from None
