"""The machines of a deployed version: dedicated resources in Vertex AI's format, checked before any is requested."""

import dataclasses
import re
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding, check_deployment as deployment_findings
from localvertex.machines.job.finding import refuse
from trainer.settings import COUNT, POSITIVE, check_all, setting

_MAX_NAME = 128
_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f]')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingMachines:
    """The replicas of a deployed version."""

    deploy_machine_type: str = setting("Machine type of each replica of the endpoint.", default="n1-standard-2")
    deploy_min_replicas: int = setting("Replicas that always run.", POSITIVE, default=1)
    deploy_max_replicas: int = setting("Maximum number of replicas under load.", POSITIVE, default=1)
    deploy_accelerator_type: str = setting("GPU type of each replica; empty for CPUs.", default="")
    deploy_accelerator_count: int = setting("GPUs of each replica.", COUNT, default=0)

    def __post_init__(self) -> None:
        """Refuse values that are wrong on any machine.

        Raises:
            UserError: A number is out of its range.
        """
        check_all(self)
        if self.deploy_max_replicas < self.deploy_min_replicas:
            raise UserError(
                f"deploy_max_replicas is {self.deploy_max_replicas}; expected at least deploy_min_replicas,"
                f" {self.deploy_min_replicas}"
            )

    def dedicated_resources(self) -> dict[str, Any]:
        """Return the field `dedicated_resources` of a deployed model."""
        machine: dict[str, Any] = {"machine_type": self.deploy_machine_type}
        if self.deploy_accelerator_type or self.deploy_accelerator_count:
            machine |= {
                "accelerator_type": self.deploy_accelerator_type,
                "accelerator_count": self.deploy_accelerator_count,
            }
        return {
            "machine_spec": machine,
            "min_replica_count": self.deploy_min_replicas,
            "max_replica_count": self.deploy_max_replicas,
        }

    def __str__(self) -> str:
        """Return e.g. `1 to 3 x g2-standard-8 with 1 x NVIDIA_L4 each`."""
        count = str(self.deploy_min_replicas)
        if self.deploy_max_replicas > self.deploy_min_replicas:
            count += f" to {self.deploy_max_replicas}"
        gpus = f" with {self.deploy_accelerator_count} x {self.deploy_accelerator_type}"
        return f"{count} x {self.deploy_machine_type}{gpus if self.deploy_accelerator_type else ''}"


def check_deployment(endpoint_name: str, machines: ServingMachines, *, region: str) -> list[Finding]:
    """Check a deployment for a region and return the warnings; without an endpoint, nothing is deployed.

    Raises:
        UserError: The name cannot be used, or Vertex AI would refuse the machines; the message has the reasons and the
            nearest valid choices.
    """
    if len(endpoint_name) > _MAX_NAME or _UNSAFE.search(endpoint_name) or endpoint_name != endpoint_name.strip():
        raise UserError(
            f"deploy_endpoint is {endpoint_name!r}; expected the display name of an endpoint, of at most {_MAX_NAME}"
            " characters without quotes, backslashes, line breaks and spaces at its ends"
        )
    if not endpoint_name:
        return []
    findings = deployment_findings(machines.dedicated_resources(), region=region)
    try:
        refuse(findings)
    except UserError as error:
        raise UserError(f"deployment to {endpoint_name!r}: {error}") from None
    return findings
