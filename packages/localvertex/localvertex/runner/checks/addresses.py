"""gs:// addresses in a pipeline: refused if a run can neither map them to folders nor use credentials."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from localvertex.credentials.emulator import has_emulator
from localvertex.executors.python_step import PythonStepExecutor
from localvertex.values.buckets import Buckets, OutsideBucket, addresses, is_mounted
from localvertex_base.compiled.spec import Component, Container, Importer, Pipeline


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    buckets: Buckets,
    has_credentials: bool,
) -> list[str]:
    """Return one reason for each address that the run cannot reach.

    Args:
        pipeline: The pipeline.
        values: The values of its parameters.
        buckets: The folders of the buckets.
        has_credentials: Whether steps may read the buckets themselves.
    """
    found = [(f"parameter {name}", address) for name, value in values.items() for address in addresses(value)]
    found += [pair for component in pipeline.reachable for pair in _in_dag(component, pipeline)]
    found += [pair for component in pipeline.reachable for pair in _in_executor(component, pipeline)]
    if buckets.root is not None:
        reasons = [(where, _problem(address, buckets)) for where, address in found]
        return [f"{where}: {problem}" for where, problem in reasons if problem]
    if has_credentials or has_emulator(os.environ):
        return []
    return [
        f"{where}: {address} is in Cloud Storage, which a local run does not access; add --gcs-root DIR, "
        "with one folder per bucket, or --with-credentials"
        for where, address in found
        if not is_mounted(address)
    ]


def _in_dag(component: Component, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield the addresses in the constants and defaults of a dag's tasks."""
    for task in component.dag.tasks.values() if component.dag else ():
        used = pipeline.components.get(task.component)
        executor = pipeline.executors.get(used.executor) if used else None
        if used is None or (isinstance(executor, Importer) and executor.uri is not None):
            continue  # kfp also writes the URI of an importer as a constant of its task.
        constants = {name: source.constant for name, source in task.parameters.items()}
        defaults = {name: each.default for name, each in used.input_parameters.items() if name not in constants}
        for name, value in (constants | defaults).items():
            for address in addresses(value):
                yield f"{task.path}.inputs.parameters.{name}", address


def _in_executor(component: Component, pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield the addresses in a step's own definition: an importer's URI, a container's command and variables."""
    executor = pipeline.executors.get(component.executor)
    if isinstance(executor, Importer):
        yield from ((executor.path, address) for address in addresses(executor.uri))
    elif isinstance(executor, Container):
        words = [] if PythonStepExecutor().accepts(executor) else [*executor.command, *executor.args]
        for value in (words, executor.env):
            yield from ((executor.path, address) for address in addresses(value))


def _problem(address: str, buckets: Buckets) -> str:
    """Return why an address has no path in the folders of the buckets; empty if it has one."""
    try:
        buckets.to_local_paths(address)
    except OutsideBucket as error:
        return str(error)
    missing = buckets.missing_bucket(address)
    return f"{address}: there is no folder {str(missing)!r} for this bucket; create it" if missing else ""
