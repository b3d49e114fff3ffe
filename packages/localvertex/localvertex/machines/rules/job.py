"""A custom job as the rules see it: snake_case fields, plain values, and the path of each pool."""

from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex.machines.catalogue.catalogue import Catalogue, load_catalogue
from localvertex.machines.catalogue.nearest import Demand, combinations
from localvertex.machines.job.finding import Finding, Findings
from localvertex.machines.job.schema import OLD_STRATEGIES
from localvertex.machines.job.values import mapping


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolSpec:
    """One worker pool."""

    job: "Job"
    """The job that it belongs to, which gets the findings."""
    index: int
    """0 primary, 1 workers, 2 parameter servers or Reduction Server, 3 evaluators."""
    path: str
    """Path in the file, e.g. "worker_pool_specs[0]"."""
    fields: JsonObject

    @cached_property
    def machine(self) -> JsonObject:
        """The machine_spec; empty when it is missing."""
        return mapping(self.fields.get("machine_spec"))

    @cached_property
    def machine_type(self) -> str:
        """The machine_type; empty when there is none or it is only known at run time."""
        name = self.machine.get("machine_type")
        return name if isinstance(name, str) else ""

    @cached_property
    def kind(self) -> str:
        """The kind of the machine in the catalogue, e.g. "gpu-only"; empty when it is not listed there."""
        machine = self.job.catalogue.machines.get(self.machine_type)
        return machine.kind if machine else ""

    @property
    def replica_count(self) -> Any:
        """The number of replicas as given; None when it is missing."""
        return self.fields.get("replica_count")

    @cached_property
    def accelerator(self) -> str:
        """The accelerator_type; empty when there is none or it is only known at run time."""
        name = self.machine.get("accelerator_type")
        return name if isinstance(name, str) and name != "ACCELERATOR_TYPE_UNSPECIFIED" else ""

    @property
    def image(self) -> Any:
        """The container image as given; None when it is missing."""
        return mapping(self.fields.get("container_spec")).get("image_uri")

    def near(self, *, machine_type: str = "", accelerator_type: str = "") -> tuple[str, ...]:
        """Return valid choices near this machine, or near it with another machine type or accelerator."""
        count = self.machine.get("accelerator_count")
        demand = Demand(
            machine_type=machine_type or self.machine_type,
            accelerator_type=accelerator_type or self.accelerator,
            accelerator_count=count if isinstance(count, int) and count > 0 else 1,
            region=self.job.region,
            scheduling_strategy=self.job.scheduling_strategy,
            today=self.job.today,
        )
        return combinations(self.job.catalogue, demand)

    def error(self, rule: str, part: str, message: str, alternatives: tuple[str, ...] = ()) -> None:
        """Add an error about a part of the pool, e.g. "machine_spec.machine_type"."""
        self.job.error(rule, f"{self.path}.{part}", message, alternatives)

    def warning(self, rule: str, part: str, message: str, alternatives: tuple[str, ...] = ()) -> None:
        """Add a warning about a part of the pool."""
        self.job.warning(rule, f"{self.path}.{part}", message, alternatives)


@dataclass(frozen=True, kw_only=True, eq=False)
class Job(Findings):
    """A CustomJobSpec with what the rules need to know about it, and their findings."""

    spec: JsonObject
    prefix: str = ""
    """Path of the spec in the file: "job_spec." in a CustomJob, "" in a CustomJobSpec."""
    names: str = ""
    """Display name and labels, as a hint to what the author meant."""
    purpose: str = "custom training"
    """Purpose of the machines: `custom training` or `prediction`."""
    component: bool = False
    """Whether the launcher of a Google Cloud component creates the job; it drops empty pools."""
    catalogue: Catalogue = field(default_factory=load_catalogue)
    region: str = ""
    """Empty when not known."""
    today: date
    findings: list[Finding] = field(default_factory=list)

    @cached_property
    def pools(self) -> list[PoolSpec]:
        """The pools that are neither empty nor only known at run time."""
        listed = self.spec.get("worker_pool_specs")
        return [
            PoolSpec(job=self, index=index, path=f"{self.prefix}worker_pool_specs[{index}]", fields=fields)
            for index, fields in enumerate(listed if isinstance(listed, list) else ())
            if isinstance(fields, dict) and fields
        ]

    @property
    def table(self) -> str:
        """The command that prints the machines for this purpose."""
        return f"python -m localvertex machines table{' --prediction' * (self.purpose == 'prediction')}"

    @cached_property
    def scheduling(self) -> JsonObject:
        """The scheduling fields; empty when they are missing."""
        return mapping(self.spec.get("scheduling"))

    @cached_property
    def scheduling_strategy(self) -> str:
        """The strategy under its current name; STANDARD when it is missing or only known at run time."""
        name = self.scheduling.get("strategy")
        if not isinstance(name, str) or name == "STRATEGY_UNSPECIFIED":
            return "STANDARD"
        return OLD_STRATEGIES.get(name, name)
