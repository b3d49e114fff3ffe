"""One attempt at one step, from its inputs to its outcome; each attempt runs in its own thread."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from localvertex._base.compiled.spec import Container, Importer
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.temporary import temporary_folder
from localvertex.containers.memory import Memory, largest
from localvertex.credentials.secrets import is_masked
from localvertex.credentials.step_file import StepFile
from localvertex.errors import Cancelled, TaskFailed
from localvertex.executors import find_executor, has_replicas
from localvertex.executors.attempt import Attempt
from localvertex.executors.context import Context
from localvertex.executors.launcher import vertex_uri
from localvertex.executors.step_jobs import StepJobs, creates_jobs
from localvertex.store import executor_files, registry
from localvertex.store.models.reading import UPLOADED_BY
from localvertex.store.steps import cache as step_cache
from localvertex.store.task import State, Task, Values
from localvertex.values.buckets import Buckets
from localvertex.values.placeholders import Scope, Unresolvable, resolve_text


@dataclass(frozen=True, kw_only=True)
class AttemptOutcome:
    """The outcome of an attempt."""

    task: Task
    state: State
    outputs: Values
    error: str = ""
    exit_code: int | None = None
    memory: Memory | None = None
    """The peak memory of its process."""
    is_retryable: bool = False


@dataclass(frozen=True, kw_only=True)
class AttemptProgress:
    """A new status of the custom job of an attempt."""

    task: Task
    custom_job: JsonObject


Observe = Callable[[AttemptProgress], None]


def run_attempt(
    task: Task,
    executor: Container | Importer | None,
    context: Context,
    observe: Observe,
    step_jobs: dict[Task, StepJobs],
) -> AttemptOutcome:
    """Run a step, or take its outputs from the cache. Never raises: every failure becomes the outcome.

    Without an executor, the user gives the outputs; they are never in the cache. The jobs that the step creates are
    added to `step_jobs`; they may outlive the attempt.
    """
    exit_codes, memories = list[int](), list[Memory | None]()
    try:
        if executor is None:
            return AttemptOutcome(task=task, state=State.GIVEN, outputs=_give(task, context))
        if task.component.keeps_addresses:
            context = replace(context, buckets=replace(context.buckets, keeps_addresses=True))
        _learn_secrets(task, executor, context)
        key = _cache_key(task, executor, context)
        if key and (cached := _find_cached(task, key, context)) is not None:
            return AttemptOutcome(task=task, state=State.SKIPPED, outputs=cached)
        outputs = execute(task, executor, context, exit_codes, memories, observe, step_jobs)
        if key:
            origin, secrets = f"{context.run_id}/{task.label}", context.credentials.secrets
            step_cache.keep(context.work_dir, key, outputs, origin, secrets, context.buckets)
        return AttemptOutcome(
            task=task,
            state=State.SUCCEEDED,
            outputs=outputs,
            exit_code=exit_codes[-1] if exit_codes else None,
            memory=largest(memories),
        )
    except TaskFailed as error:
        code = error.exit_code if error.exit_code is not None else (exit_codes[-1] if exit_codes else None)
        failure, is_retryable = str(error), error.is_retryable
    except Cancelled:
        stopped, memory = "the run was stopped", largest(memories)
        return AttemptOutcome(task=task, state=State.CANCELLED, outputs=Values(), error=stopped, memory=memory)
    except OSError as error:
        code, failure, is_retryable = None, f"{type(error).__name__}: {error}", True
    except Exception as error:  # a defect of localvertex must end the task, not hang the run
        code, failure, is_retryable = None, f"localvertex failed: {type(error).__name__}: {error}", False
    failure = context.credentials.secrets.remove(failure)
    return AttemptOutcome(
        task=task,
        state=State.FAILED,
        outputs=Values(),
        error=failure,
        exit_code=code,
        memory=largest(memories),
        is_retryable=is_retryable,
    )


def _give(task: Task, context: Context) -> Values:
    """Return the outputs that the user gives, with copies of the files: a later step may change its inputs.

    Raises:
        TaskFailed: A file cannot be copied, or a model not registered.
    """
    given = task.component.given or {}
    artifacts = {
        name: {"artifacts": [_registered(each, task, context) if executor_files.UPLOAD in each else each]}
        for name, outputs in given["artifacts"].items()
        for each in outputs["artifacts"]
    }
    executor_input = executor_files.prepare(
        task.component,
        task.inputs,
        task.folder,
        executor_files.artifact_parent(context.project, context.region),
        outputs_at=str(task.folder),
        buckets=context.buckets,
    )
    Path(executor_input["outputs"]["outputFile"]).write_text(json.dumps(given | {"artifacts": artifacts}))
    return executor_files.read_outputs(task.component, executor_input, context.warnings.add, context.buckets)


def _registered(artifact: JsonObject, task: Task, context: Context) -> JsonObject:
    """Return a model that the user gives by its files, which becomes a version of the registry: it can be deployed."""
    step = f"{context.job['pipeline_job_uuid']}/{task.label}"
    model = {"display_name": f"given {task.label}", UPLOADED_BY: step, **artifact[executor_files.UPLOAD]}
    try:
        version = registry.add(context.work_dir, model, check_stopped=context.processes.check_stopped)
    except ValueError as error:
        raise TaskFailed(f"cannot register the model: {error}", is_retryable=False) from None
    name = f"projects/{context.project}/locations/{context.region}/models/{version.model_id}@{version.number}"
    return {"uri": vertex_uri(name, context.region), "metadata": {"resourceName": name}}


def _find_cached(task: Task, key: str, context: Context) -> Values | None:
    def warn(text: str) -> None:
        context.warnings.add(f"{task.label}: {text}")

    return step_cache.look_up(context.work_dir, key, context.buckets, warn)


def _learn_secrets(task: Task, executor: Container | Importer, context: Context) -> None:
    """Note the secrets among a step's own variables, whether it runs or is taken from the cache."""
    scope = Scope(
        job=context.job,
        task=task.placeholders,
        executor_input={"inputs": {"parameterValues": task.inputs.parameters}},
    )
    for name, template in executor.env.items() if isinstance(executor, Container) else ():
        if is_masked(name):
            # A step whose variables cannot be resolved fails when it starts.
            with suppress(Unresolvable):
                context.credentials.secrets.learn({name: resolve_text(template, scope)})


def _cache_key(task: Task, executor: Container | Importer, context: Context) -> str:
    """Return the step's cache key, empty when caching is off for it."""
    if not (context.use_cache and task.spec.enable_cache and isinstance(executor, Container)):
        return ""
    # A file of rows may change.
    if task.component.bigquery:
        return ""
    # A cached job would not have the requested faults.
    has_jobs = has_replicas(executor) or creates_jobs(task.inputs.parameters)
    if has_jobs and (context.faults or context.fault_ledger.shortages.given):
        return ""
    # The user's files, and not the copies of one run.
    buckets = replace(context.buckets, copies=None)
    inputs = _localise_inputs(task, executor, buckets)
    return step_cache.key_of(context.pipeline_name, task.component, executor, inputs, task.spec.cache_key, buckets)


def _localise_inputs(task: Task, executor: Container | Importer, buckets: Buckets) -> Values:
    """Return the inputs as the step's program receives them: with paths of this machine in place of addresses."""
    if not isinstance(executor, Container):
        return task.inputs
    parameters = buckets.to_local_paths(task.inputs.parameters)
    # kfp computes the paths of artifacts without a check.
    for each in [each for group in task.inputs.artifacts.values() for each in group]:
        buckets.path_of(str(each.get("uri", "")))
    return Values(parameters=parameters, artifacts=task.inputs.artifacts)


def _outputs_at(task: Task, executor: Container | Importer, context: Context) -> str:
    """Return where the output artifacts of a step are: its folder, or one of its own in the bucket of the run."""
    if not context.output_directory or not isinstance(executor, Container):
        return str(task.folder)
    return f"{context.output_directory}/{context.run_id}/{task.label}_{task.uuid}"


def execute(
    task: Task,
    executor: Container | Importer,
    context: Context,
    exit_codes: list[int],
    memories: list[Memory | None],
    observe: Observe,
    step_jobs: dict[Task, StepJobs],
) -> Values:
    """Run the step and read its outputs.

    Raises:
        TaskFailed: It failed, or an output is missing.
        Cancelled: The run was stopped.
    """
    parent = executor_files.artifact_parent(context.project, context.region)
    executor_input = executor_files.prepare(
        task.component,
        _localise_inputs(task, executor, context.buckets),
        task.folder,
        parent,
        outputs_at=_outputs_at(task, executor, context),
        buckets=context.buckets,
    )
    runner = find_executor(executor)
    if runner is None:
        raise TypeError(f"no executor for {task.component.executor}, although the check before the run accepted it")
    # Its outputs may be at a custom path in the temporary folder, which is removed afterwards.
    with temporary_folder() as temporary:
        attempt = Attempt(
            label=task.label,
            component=task.component,
            executor=executor,
            executor_input=executor_input,
            scope=Scope(
                job=context.job, task=task.placeholders, executor_input=executor_input, buckets=context.buckets
            ),
            folder=task.folder,
            temporary=Path(temporary),
            log=task.folder / executor_files.LOG,
            context=context,
            has_open_others=task.has_open_others,
            report_exit=exit_codes.append,
            report_memory=memories.append,
            report_custom_job=lambda status: observe(AttemptProgress(task=task, custom_job=status.as_json())),
        )
        try:
            with _own_jobs(task, attempt, step_jobs) as own:
                runner.execute(replace(attempt, own_endpoint=own))
            values = executor_files.read_outputs(
                task.component, executor_input, attempt.warn, context.buckets, attempt.hides
            )
            return _without_link(values, attempt)
        finally:
            remove_secrets(task, context)


@contextmanager
def _own_jobs(task: Task, attempt: Attempt, step_jobs: dict[Task, StepJobs]) -> Iterator[StepFile | None]:
    """Let a step with such inputs create jobs; a further attempt finds those of the first one."""
    jobs, api = step_jobs.get(task) or StepJobs.of(attempt), attempt.context.api
    if jobs is None or api is None:
        yield None
        return
    step_jobs[task] = jobs
    with api.grant(jobs, attempt.context.machine) as own:
        yield own


def remove_secrets(task: Task, context: Context) -> None:
    """Take the secrets out of the files of a step that has ended; its outputs have been read.

    A value may become a secret later: when a step hands it to a secret variable of another step.
    """
    names = (
        executor_files.INPUT,
        executor_files.OUTPUT,
        executor_files.LOG,
        executor_files.BIGQUERY,
        *task.component.output_parameters,
    )
    names_below = ("*.log", executor_files.REFUSED)
    files = [task.folder / name for name in names]
    files += [path for name in names_below for path in task.folder.rglob(name)]
    context.credentials.secrets.remove_from(path for path in files if path.is_file())


def _without_link(values: Values, attempt: Attempt) -> Values:
    """Return outputs with the paths that remain in place of those through the link of the attempt."""
    link, work_dir = (json.dumps(str(each))[1:-1] for each in (attempt.link, attempt.context.work_dir))
    text = json.dumps([values.parameters, values.artifacts])
    if link not in text:
        return values
    parameters, artifacts = json.loads(text.replace(link, work_dir))
    return Values(parameters=parameters, artifacts=artifacts)
