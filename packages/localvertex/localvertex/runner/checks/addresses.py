"""gs:// addresses in a pipeline: refused if a run can neither map them to folders nor use credentials."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from localvertex._base.compiled.spec import Importer, Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.credentials.emulator import has_emulator
from localvertex.errors import Refusal
from localvertex.executors.python_step import PythonStepExecutor
from localvertex.values.buckets import Buckets, OutsideBucket, addresses, is_mounted

BUCKETS = {"root": "buckets", "create": True}
"""The table of localvertex.toml with which buckets are folders."""

_Used = tuple[str, str, bool]
"""The location of an address, the address, and whether it is imported, so that its file must exist."""


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    buckets: Buckets,
    has_credentials: bool,
    creates_buckets: bool = False,
) -> list[str]:
    """Return one reason for each address that the run cannot reach.

    Args:
        pipeline: The pipeline.
        values: The values of its parameters.
        buckets: The folders of the buckets.
        has_credentials: Whether steps may read the buckets themselves.
        creates_buckets: Whether missing folders of buckets are created before the run.
    """
    found = _used(pipeline, values)
    if buckets.root is not None:
        # The folder of this bucket is created.
        output = ("runtimeConfig.gcsOutputDirectory", pipeline.job.output_directory, False)
        reasons = [_problem(output, buckets, True), *(_problem(each, buckets, creates_buckets) for each in found)]
        return [*filter(None, reasons)]
    reasons = [reason for each in found if (reason := _missing_file(each, buckets))]
    if has_credentials or has_emulator(os.environ):
        return reasons
    text = (
        "is in Cloud Storage, which a local run does not access; add --gcs-root DIR, with one folder per bucket, or "
        "--with-credentials"
    )
    return reasons + [
        _way_on(f"{where}: {address} {text}", address if is_import else "", BUCKETS)
        for where, address, is_import in found
        if not (is_mounted(address) or buckets.is_given(address))
    ]


def create_buckets(pipeline: Pipeline, values: Mapping[str, Any], buckets: Buckets) -> None:
    """Create the missing folders of the buckets that a pipeline names, after its check.

    Raises:
        UserError: One cannot be created.
    """
    try:
        buckets.create_named([address for _, address, _ in _used(pipeline, values)])
    except OSError as error:
        text = f"cannot create the folder {error.filename} for a bucket: {error.strerror}"
        raise UserError(text) from None


def _used(pipeline: Pipeline, values: Mapping[str, Any]) -> list[_Used]:
    found = [(f"parameter {name}", address, False) for name, value in values.items() for address in addresses(value)]
    return [*found, *_in_tasks(pipeline), *_in_executors(pipeline)]


def _in_tasks(pipeline: Pipeline) -> Iterator[_Used]:
    """Yield the addresses in the constants and defaults of the tasks."""
    for task in pipeline.tasks:
        used, executor = pipeline.components.get(task.component), pipeline.executor_of(task)
        if used is None or (isinstance(executor, Importer) and executor.uri is not None):
            continue  # kfp also writes the URI of an importer as a constant of its task.
        constants = {name: source.constant for name, source in task.parameters.items()}
        defaults = {name: each.default for name, each in used.input_parameters.items() if name not in constants}
        for name, value in (constants | defaults).items():
            for address in addresses(value):
                is_import = isinstance(executor, Importer) and name == "uri"
                yield f"{task.path}.inputs.parameters.{name}", address, is_import


def _in_executors(pipeline: Pipeline) -> Iterator[_Used]:
    """Yield the addresses in the definitions of steps: an importer's URI, a container's command and variables."""
    for component in pipeline.reachable:
        executor = pipeline.executors.get(component.executor)
        if isinstance(executor, Importer):
            yield from ((executor.path, address, True) for address in addresses(executor.uri))
        elif executor:
            words = [] if PythonStepExecutor().accepts(executor) else [*executor.command, *executor.args]
            yield from ((executor.path, address, False) for address in addresses([words, executor.env]))


def _problem(used: _Used, buckets: Buckets, creates_buckets: bool) -> str:
    """Return why an address has no path in the folders of the buckets; empty if it has one."""
    where, address, is_import = used
    try:
        buckets.to_local_paths(address)
    except OutsideBucket as error:
        return f"{where}: {error}"
    missing = buckets.missing_bucket(address)
    if not missing or creates_buckets:
        return _missing_file(used, buckets)
    text = f"{where}: {address}: there is no folder {str(missing)!r} for this bucket; create it"
    return _way_on(f"{text}, or add --create-buckets", address if is_import else "", {"create": True})


def _way_on(text: str, imported: str, folders: JsonObject) -> Refusal:
    """Return the refusal of an address: what is imported needs a file, all else the folder of its bucket."""
    if imported:
        return Refusal(text, table=("buckets", "files"), content={imported: "path/to/file"})
    return Refusal(text, table=("buckets",), content=folders)


def _missing_file(used: _Used, buckets: Buckets) -> str:
    """Return why the file that the user gives for an address cannot be used; empty if it can."""
    file = buckets.given_file(used[1])
    text = f"{used[0]}: there is no file or folder {str(file)!r}, which is given for {used[1]}"
    return text if file and not file.exists() else ""
