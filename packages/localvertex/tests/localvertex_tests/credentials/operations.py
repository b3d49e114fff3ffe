"""Compiles every operation of google-cloud-pipeline-components to a pipeline of one step; run as a program.

`python operations.py FOLDER [NAME...]` writes one file per operation whose name contains one of the words, or all.
"""

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_cloud_pipeline_components as package
from google.protobuf import json_format
from kfp import compiler, dsl
from kfp.dsl import base_component

CONSTANTS = {
    "STRING": "planted",
    "NUMBER_INTEGER": 1,
    "NUMBER_DOUBLE": 1.0,
    "BOOLEAN": False,
    "LIST": [],
    "STRUCT": {},
}
"""By type, for required parameters."""
NAMED = {
    "location": "us-central1",
    "region": "us-central1",
    "machine_type": "n1-standard-4",
    "accelerator_type": "NVIDIA_TESLA_T4",
    "study_spec_metrics": [{"metric_id": "loss", "goal": "MINIMIZE"}],
    "study_spec_parameters": [{"parameter_id": "units", "integer_value_spec": {"min_value": 1, "max_value": 2}}],
    "base_output_directory": "",
}
"""By name, so that a job is not refused for its machine before it could do harm."""
POOL = {
    "machine_spec": {"machine_type": "n1-standard-4"},
    "replica_count": 1,
    "container_spec": {"image_uri": "python:3.11", "command": ["python3", "-c", "print('ran')"]},
}


def operations() -> Iterator[tuple[str, Any]]:
    """Yield every operation once, with its name below the package."""
    seen = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.name.startswith(f"{package.__name__}.container"):
            continue
        try:
            members = vars(importlib.import_module(module.name))
        except Exception:  # two modules of 2.22 cannot be imported
            continue
        for name, value in list(members.items()):
            if isinstance(value, base_component.BaseComponent) and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.name}.{name}".removeprefix(f"{package.__name__}."), value


def constants(operation: Any) -> tuple[dict[str, Any], list[str]]:
    """Return a constant for each required parameter, and the names of the required artifacts."""
    root = json_format.MessageToDict(operation.pipeline_spec)["root"]
    definitions = root.get("inputDefinitions", {})
    values = {
        name: NAMED.get(name, CONSTANTS[spec["parameterType"]])
        for name, spec in definitions.get("parameters", {}).items()
        if not spec.get("isOptional") and "defaultValue" not in spec
    }
    if "worker_pool_specs" in definitions.get("parameters", {}):
        values["worker_pool_specs"] = [POOL]
    return values, [n for n, spec in definitions.get("artifacts", {}).items() if not spec.get("isOptional")]


def compile_operation(operation: Any, path: Path) -> None:
    """Write a pipeline whose only step is the operation; its artifacts come from importers."""
    values, artifacts = constants(operation)

    @dsl.pipeline(name="one")
    def one() -> None:
        given = {
            name: dsl.importer(artifact_uri="planted", artifact_class=artifact_class(operation, name)).output
            for name in artifacts
        }
        operation(**values, **given)

    compiler.Compiler().compile(one, str(path))


def artifact_class(operation: Any, name: str) -> Any:
    """Return an artifact class with the schema title that an input declares."""
    definitions = json_format.MessageToDict(operation.pipeline_spec)["root"]["inputDefinitions"]
    title = definitions["artifacts"][name]["artifactType"]["schemaTitle"]
    return type("Given", (dsl.Artifact,), {"schema_title": title, "schema_version": "0.0.1"})


def main(folder: Path, words: list[str]) -> None:
    """Compile the operations; print one line for each that does not compile."""
    warnings.simplefilter("ignore")
    for name, operation in operations():
        if words and not any(word in name for word in words):
            continue
        try:
            compile_operation(operation, folder / f"{name}.json")
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
