"""A custom job as the rules see it: snake_case fields, plain values, and where each pool stands."""

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from accelerators.catalogue.catalogue import Catalogue
from accelerators.catalogue.nearest import Demand
from accelerators.job.finding import Finding, Severity
from accelerators.job.run_time import known
from userinput.spelling import quoted


@dataclass(frozen=True, kw_only=True)
class Pool:
    """One worker pool."""

    index: int
    """0 primary, 1 workers, 2 parameter servers or Reduction Server, 3 evaluators."""
    where: str
    """Path, e.g. "worker_pool_specs[0]"."""
    fields: dict[str, Any]

    @property
    def machine(self) -> dict[str, Any]:
        """The machine_spec; empty when there is none."""
        spec = self.fields.get("machine_spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def replica_count(self) -> Any:
        """Replicas as given; None when not given."""
        return self.fields.get("replica_count")

    @property
    def accelerator(self) -> str:
        """The accelerator_type if one is asked for and known; empty otherwise."""
        name = self.machine.get("accelerator_type")
        return name if isinstance(name, str) and name != "ACCELERATOR_TYPE_UNSPECIFIED" else ""

    @property
    def image(self) -> Any:
        """The container image as given; None when there is none."""
        container = self.fields.get("container_spec")
        return container.get("image_uri") if isinstance(container, dict) else None


@dataclass(frozen=True, kw_only=True)
class Job:
    """A CustomJobSpec with what is needed to judge it."""

    spec: dict[str, Any]
    prefix: str = ""
    """Path of the spec in what was given: "job_spec." in a CustomJob, "" in a CustomJobSpec."""
    names: str = ""
    """Display name and labels, to guess what the author had in mind."""
    component: bool = False
    """The job goes through the launcher of a Google Cloud component, which drops empty pools."""
    catalogue: Catalogue
    region: str = ""
    """Empty when not known."""
    today: date
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def pools(self) -> list[Pool]:
        """The pools that are not empty; those that are only known at run time are left out."""
        listed = self.spec.get("worker_pool_specs")
        return [
            Pool(index=index, where=f"{self.prefix}worker_pool_specs[{index}]", fields=fields)
            for index, fields in enumerate(listed if isinstance(listed, list) else ())
            if isinstance(fields, dict) and fields
        ]

    @property
    def scheduling(self) -> dict[str, Any]:
        """The scheduling fields; empty when there are none."""
        fields = self.spec.get("scheduling")
        return fields if isinstance(fields, dict) else {}

    @property
    def scheduling_strategy(self) -> str:
        """STANDARD where none is given or known; the deprecated names under their new ones."""
        name = self.scheduling.get("strategy")
        new_names = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT", "STRATEGY_UNSPECIFIED": "STANDARD"}
        return new_names.get(name, name) if isinstance(name, str) and known(name) else "STANDARD"

    def demand(self, machine_type: str, accelerator_type: str, accelerator_count: int) -> Demand:
        """Return what is asked for, in this job's region and with its scheduling strategy."""
        return Demand(
            machine_type=machine_type,
            accelerator_type=accelerator_type,
            accelerator_count=accelerator_count,
            region=self.region,
            scheduling_strategy=self.scheduling_strategy,
            today=self.today,
        )

    def note(self, rule: str, severity: Severity, where: str, message: str, alternatives: tuple[str, ...] = ()) -> None:
        """Add a finding."""
        # A name out of the file may hold line breaks; a message is one line.
        text = message if message.isprintable() else quoted(message, 400)
        self.findings.append(
            Finding(rule=rule, severity=severity, where=where, message=text, alternatives=alternatives)
        )
