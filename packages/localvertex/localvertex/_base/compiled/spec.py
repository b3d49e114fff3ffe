"""The compiled pipeline as typed, frozen objects, one per message of kubeflow's pipeline_spec.proto.

No two of them are compared; without `eq` they add 3 instead of 4 ms to the start of every program.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from localvertex._base.compiled.job import JobSettings
from localvertex._base.compiled.parameters import ParameterSpec
from localvertex._base.json_object import JsonObject


@dataclass(frozen=True, kw_only=True, eq=False)
class ArtifactSpec:
    """A declared input or output artifact."""

    schema_title: str
    schema_version: str = "0.0.1"
    is_list: bool = False
    is_optional: bool = False
    metadata: JsonObject = field(default_factory=dict)
    """Metadata with which an output begins."""

    @property
    def type(self) -> dict[str, str]:
        """The ArtifactTypeSchema of the executor input."""
        return {"schemaTitle": self.schema_title, "schemaVersion": self.schema_version}


@dataclass(frozen=True, kw_only=True, eq=False)
class ParameterSource:
    """The source of a task's parameter; only one of the kinds is set."""

    constant: Any = None
    is_null: bool = False
    """The constant is null, which is a value; otherwise None means that there is no constant."""
    is_old: bool = False
    """The constant is a Value message of kfp 1.8."""
    input: str | None = None
    """Name of an input parameter of the surrounding dag."""
    producer: str | None = None
    output: str | None = None
    """Output parameter of the task `producer`."""
    final_status_of: str | None = None
    selector: str | None = None
    """CEL expression over the value, e.g. `parseJson(string_value)["a"]`."""
    path: str = ""
    """Path in the file of the value, or of what refers to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ArtifactSource:
    """The source of a task's artifact."""

    input: str | None = None
    producer: str | None = None
    output: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class RetryPolicy:
    """Retries of a failed task; durations in seconds."""

    max_retries: int = 0
    backoff_seconds: float = 0.0
    backoff_factor: float = 2.0
    max_backoff_seconds: float = 3600.0

    def delay_seconds(self, attempts: int, *, longest_seconds: float) -> float:
        """Return how long to wait after this number of attempts."""
        longest = min(self.max_backoff_seconds, longest_seconds)
        delay = min(self.backoff_seconds, longest)
        for _ in range(attempts - 1):
            delay = min(delay * self.backoff_factor, longest)
        return delay


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterator:
    """A ParallelFor over literal `items`, an input parameter or an input artifact list."""

    item_input: str
    items: tuple[Any, ...] | None = None
    input_parameter: str | None = None
    input_artifact: str | None = None
    max_parallel: int = 0
    """0 for no limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskSpec:
    """One node of a dag."""

    name: str
    component: str
    parameters: dict[str, ParameterSource] = field(default_factory=dict)
    artifacts: dict[str, ArtifactSource] = field(default_factory=dict)
    dependencies: tuple[str, ...] = ()
    """Names of sibling tasks: `dependentTasks` and the producers of the inputs."""
    condition: str = ""
    runs_after_failure: bool = False
    """Trigger strategy ALL_UPSTREAM_TASKS_COMPLETED."""
    enable_cache: bool = False
    cache_key: str = ""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    iterator: Iterator | None = None
    display_name: str = ""
    path: str = ""
    """Path in the file, e.g. "root.dag.tasks.train"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputSource:
    """A dag's output: the output `key` of the sub-task `producer`."""

    producer: str
    key: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Dag:
    """Tasks and outputs; an output has the value of its first source that ran."""

    tasks: dict[str, TaskSpec]
    parameters: dict[str, tuple[OutputSource, ...]] = field(default_factory=dict)
    artifacts: dict[str, tuple[OutputSource, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """A signature with an implementation: a dag, the label of an executor, or outputs that the user gives."""

    name: str
    input_parameters: dict[str, ParameterSpec] = field(default_factory=dict)
    input_artifacts: dict[str, ArtifactSpec] = field(default_factory=dict)
    output_parameters: dict[str, ParameterSpec] = field(default_factory=dict)
    output_artifacts: dict[str, ArtifactSpec] = field(default_factory=dict)
    dag: Dag | None = None
    executor: str = ""
    given: JsonObject | None = None
    """The executor output that the user gives; None: it runs."""
    keeps_addresses: bool = False
    """Whether its program gets gs:// as it is, even where buckets are folders (localvertex.toml)."""
    bigquery: dict[str, str] = field(default_factory=dict)
    """Files with the rows of queries and tables, by their text or name (localvertex.toml)."""
    path: str = ""
    """Path in the file, e.g. "components.comp-train"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Container:
    """A PipelineContainerSpec. `command` and `args` still hold placeholders."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    resources: JsonObject = field(default_factory=dict)
    has_lifecycle: bool = False
    replacement: tuple[str, ...] = ()
    """Command prefix that replaces the image (`--image`, or localvertex.toml)."""
    code: str = ""
    """Digest of what is on this machine in place of the image (localvertex.toml)."""
    path: str = ""
    """Path in the file, e.g. "deploymentSpec.executors.exec-train.container"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Importer:
    """An ImporterSpec; `uri` is a constant, or the input parameter named `uri` when None."""

    uri: str | None
    schema_title: str
    schema_version: str
    metadata: JsonObject
    download_to_workspace: bool = False
    path: str = ""
    """Path in the file, e.g. "deploymentSpec.executors.exec-data.importer"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline:
    """A whole compiled file."""

    name: str
    description: str
    schema_version: str
    default_root: str
    """Pipeline root that it was compiled with; empty for none."""
    root: Component
    components: dict[str, Component]
    executors: dict[str, Container | Importer]
    job: JobSettings
    """Settings of the PipelineJob around the pipeline."""
    platforms: JsonObject
    """The second YAML document, empty when there is none."""
    unsupported: dict[str, str]
    """Label of an executor that never runs locally -> the line that explains it, with its path."""
    problems: list[str]
    """Errors of the file, each with its path; the model has the rest."""

    @cached_property
    def reachable(self) -> tuple[Component, ...]:
        """The components that can run, root first."""
        found: dict[str, Component] = {}
        waiting = [self.root]
        while waiting:
            component = waiting.pop()
            if component.name not in found:
                found[component.name] = component
                names = [task.component for task in component.dag.tasks.values()] if component.dag else []
                waiting += [self.components[name] for name in names if name in self.components]
        return tuple(found.values())

    @property
    def dags(self) -> list[Dag]:
        """The dags that can run, root first."""
        return [each.dag for each in self.reachable if each.dag]

    @property
    def tasks(self) -> list[TaskSpec]:
        """The tasks of these dags."""
        return [task for dag in self.dags for task in dag.tasks.values()]

    @property
    def containers(self) -> list[Container]:
        """The containers that can run."""
        found = [self.executors.get(each.executor) for each in self.reachable]
        return [each for each in found if isinstance(each, Container)]

    def executor_of(self, task: TaskSpec) -> Container | Importer | None:
        """Return the executor of a task; None for a nested dag, a given step, and an executor that the file lacks."""
        component = self.components.get(task.component)
        return self.executors.get(component.executor) if component else None
