"""The inputs of a run, as far as they are known before it starts."""

from pathlib import Path

from localvertex._base.compiled import platforms
from localvertex._base.compiled.load import PipelineFile
from localvertex._base.compiled.parameters import convert
from localvertex._base.compiled.spec import TaskSpec
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import doubles
from localvertex.runner.options import Options
from localvertex.store.task import Values
from localvertex.values.buckets import Buckets


def tasks_of_file(file: PipelineFile) -> list[TaskSpec]:
    """Return the tasks of all dags of a file."""
    dags = [each.dag for each in (file.pipeline.root, *file.pipeline.components.values())]
    return [task for dag in dags if dag for task in dag.tasks.values()]


def file_values(file: PipelineFile) -> JsonObject:
    """Return the values that a file has for the parameters of its pipeline."""
    declared = file.pipeline.root.input_parameters
    return {name: each.default for name, each in declared.items()} | dict(file.pipeline.job.parameters)


def inputs_of(file: PipelineFile, given: Values) -> Values:
    """Return the inputs of the pipeline with the numbers that its steps see."""
    declared = file.pipeline.root.input_parameters
    parameters = {name: convert(value, declared[name].type) for name, value in given.parameters.items()}
    return Values(parameters=parameters, artifacts=given.artifacts)


def buckets_of(options: Options, earlier: JsonObject) -> Buckets:
    """Return the folders of the buckets, from the options or from the run that is resumed."""
    root = options.gcs_root.absolute() if options.gcs_root else Buckets.of_record(earlier).root
    files = options.configuration.buckets.get("files", {})
    return Buckets(root=root, files={address: Path(path) for address, path in files.items()})


def notes_of(file: PipelineFile, inputs: Values, buckets: Buckets) -> list[str]:
    """Return what differs from the service and is known before the run, one warning each."""
    rounded = [doubles.rounding_warning(f"parameter {name!r}", value) for name, value in inputs.parameters.items()]
    settings = [f"{path} has no effect locally" for path in platforms.harmless(file.pipeline.platforms)]
    settings += file.pipeline.job.without_effect
    settings += [
        f"{task.path}: the retries of a nested pipeline have no effect here; call set_retry on its steps"
        for task in tasks_of_file(file)
        if task.retry.max_retries and (component := file.pipeline.components.get(task.component)) and component.dag
    ]
    directory = file.pipeline.job.output_directory
    if directory and buckets.root is None:
        text = "outputs go to the work folder instead; --gcs-root DIR keeps them in DIR/BUCKET"
        settings.append(f"runtimeConfig.gcsOutputDirectory {directory}: {text}")
    return [*settings, *filter(None, rounded)]
