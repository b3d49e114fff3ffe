"""The arguments of Google's launchers, above all `--payload`: JSON in a string, with placeholders in it."""

import json
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from localvertex._base.compiled.parameters import restore_integers
from localvertex._base.compiled.spec import Container, Importer
from localvertex._base.json_object import JsonObject
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.store import executor_files
from localvertex.values.placeholders import Unresolvable, resolve_json_template, resolve_structure

_OPTIONS = (
    "type",
    "project",
    "location",
    "payload",
    "gcp_resources",
    "executor_input",
    "parent_model_name",
    "model_name",
    "dataset_resource_name",
)
"""Options of the launchers that run here; the first letters of each are enough."""


def launcher_options(arguments: list[str]) -> dict[str, str]:
    """Return the options of a Google Cloud launcher by their full names, placeholders unresolved.

    The launchers read them with argparse: a name may be abbreviated, and `--name=value` is one word.
    """
    words = [(word, word.removeprefix("--").partition("=")) for word in arguments if word.startswith("--")]
    joined = {_full_name(name): value for _, (name, separator, value) in words if separator}
    apart = {_full_name(word.removeprefix("--")): value for word, value in pairwise(arguments) if word.startswith("--")}
    return {name: value for name, value in apart.items() if "=" not in name} | joined


def _full_name(name: str) -> str:
    """Return the option that a name abbreviates; a name that no option starts with as it is."""
    found = [each for each in _OPTIONS if each.startswith(name)]
    return found[0] if len(found) == 1 and name else name


def target(options: dict[str, str], attempt: Attempt) -> tuple[str, str]:
    """Return the project and the location of a launcher's resource, by default the run's."""
    project = attempt.resolve(options.get("project", "")) or attempt.context.project
    return project, attempt.resolve(options.get("location", "")) or attempt.context.region


def warn_of_location(location: str, attempt: Attempt, *, done: str, operation: str) -> None:
    """Warn of a resource in another location than the run.

    Args:
        location: The location of the resource.
        attempt: The step.
        done: Beginning of the message, e.g. `the model is uploaded to`.
        operation: Name of the operation, whose location can be set.
    """
    region = attempt.context.region
    if location != region:
        text = f"{done} {location}, but the pipeline runs in {region}; set the location of {operation}"
        attempt.warn(text)


def vertex_uri(name: str, location: str) -> str:
    """Return the address that a resource has on Vertex AI."""
    return f"https://{location}-aiplatform.googleapis.com/v1/{name}"


def write_resource(attempt: Attempt, options: dict[str, str], kind: str, name: str, location: str) -> None:
    """Write the GcpResources message of one resource to the path that the launcher would use."""
    resource = {"resourceType": kind, "resourceUri": vertex_uri(name, location)}
    path = Path(attempt.resolve(options["gcp_resources"]))
    path.write_text(json.dumps({"resources": [resource]}, indent=2))


def write_artifact(attempt: Attempt, output: str, name: str, location: str) -> None:
    """Write the output artifact of a resource, if the step has this output."""
    if planned := attempt.executor_input["outputs"]["artifacts"].get(output):
        artifact = planned["artifacts"][0] | {"uri": vertex_uri(name, location), "metadata": {"resourceName": name}}
        executor_files.write_output(attempt.executor_input, {output: artifact})


class LauncherExecutor:
    """Accepts and checks one of Google's launchers by its module; a subclass executes it."""

    modules: ClassVar[frozenset[str]]
    required: ClassVar[tuple[str, ...]] = ("payload", "gcp_resources")
    """Its required options."""

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a container that runs one of Google's modules."""
        return isinstance(executor, Container) and not self.modules.isdisjoint(executor.command)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse a launcher without its required options."""
        options = launcher_options(list(executor.args)) if isinstance(executor, Container) else {}
        return [f"{executor.path}.args: the launcher has no --{name}" for name in self.required if name not in options]


def launcher_payload(template: str, attempt: Attempt) -> JsonObject:
    """Return the payload as the launcher decodes it, with integers restored.

    Raises:
        TaskFailed: It is not a JSON object.
    """

    def warn(placeholder: str) -> None:
        attempt.context.warnings.add(
            f"{attempt.label}: the value of {placeholder.removeprefix('.')} contains a quote or a backslash; "
            "Vertex AI inserts it into the payload unescaped, and the launcher there cannot read it"
        )

    try:
        text = resolve_json_template(template, attempt.scope, warn)
        # The launchers read with strict=False: line feeds inside strings are accepted.
        payload = json.loads(text, strict=False)
        payload = resolve_structure(payload, attempt.scope)
    except json.JSONDecodeError as error:
        raise TaskFailed(f"the payload is not JSON: {error}", is_retryable=False) from None
    except Unresolvable as error:
        raise TaskFailed(str(error), is_retryable=False) from None
    if not isinstance(payload, dict):
        raise TaskFailed("the payload is not a JSON object", is_retryable=False)
    return {key: restore_integers(value) for key, value in payload.items()}
