"""Container components: run their command in its image or a sandbox, or a local command given by `--image`."""

import os
from pathlib import Path
from typing import ClassVar

from localvertex._base.compiled.launchers import launcher_of
from localvertex._base.compiled.spec import Container, Importer
from localvertex.containers import leftovers
from localvertex.containers.call import ContainerCommand, Prepared
from localvertex.containers.gpus import visible_gpus
from localvertex.containers.mounts import artifact_paths, mentioned_paths
from localvertex.containers.options import ENGINES
from localvertex.containers.programs import with_bash
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.processes import logs


class ContainerCommandExecutor:
    """Executes `@dsl.container_component` steps and all other containers with a command."""

    name: ClassVar[str] = "container command"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept any container; this executor comes last."""
        return isinstance(executor, Container)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse life-cycle hooks; `checks.container_commands` checks the command."""
        if isinstance(executor, Container) and executor.has_lifecycle:
            return [f"{executor.path}.lifecycle: life-cycle hooks do not run locally"]
        return []

    def execute(self, attempt: Attempt) -> None:
        """Run the command."""
        words, arguments = (
            [attempt.resolve_word(each) for each in part] for part in (attempt.command(), attempt.arguments())
        )
        # The check before the run does not know what placeholders in the command become.
        if module := launcher_of(words, arguments):
            raise TaskFailed(f"the command would start Google's {module}, which does not run here", is_retryable=False)
        context, env = attempt.context, attempt.environment()
        base = attempt.stand_in.environment(
            context.private_dir, context.processes, attempt.folder, env, attempt.log, attempt.warn
        )
        env = attempt.add_own(env, base)
        if attempt.container.replacement:
            # Who names a container engine gives what `--engine` gives.
            has_mask = os.path.basename(attempt.container.replacement[0]) not in ENGINES
            command = [*attempt.container.replacement, *words, *arguments]
            command = context.buckets.mount(command) if has_mask else command
            code = attempt.run(Prepared(command=command, env=env, has_mask=has_mask))
        else:
            code = _run(attempt, words, arguments, env)
        attempt.report_exit(code)
        if code != 0:
            raise TaskFailed(logs.failure_text(code, attempt.log), exit_code=code)


def _run(attempt: Attempt, words: list[str], arguments: list[str], env: dict[str, str]) -> int:
    """Run the container's own command as the user has chosen."""
    context, containers = attempt.context, attempt.context.containers.how
    if not containers.runs_images:
        words, arguments = with_bash([*words, *arguments]), []
        if not words:
            raise TaskFailed("the command is empty after its placeholders were resolved", is_retryable=False)
    inputs = artifact_paths(attempt.executor_input, work_dir=context.work_dir)
    inputs += mentioned_paths([*words, *arguments], work_dir=context.work_dir)
    accelerators = int(attempt.container.resources.get("accelerator", {}).get("count", 0) or 0)
    call = ContainerCommand(
        image=attempt.container.image,
        command=words,
        arguments=arguments,
        env=attempt.step_file.sandbox_variables(env) if containers.confines else env,
        declared=frozenset(attempt.container.env),
        folder=attempt.folder,
        temporary=attempt.temporary,
        work_dir=context.work_dir,
        credentials=context.credentials.files,
        readable=(
            context.run_dir,
            *context.given_paths,
            *inputs,
            *attempt.step_file.readable,
            *attempt.stand_in.readable,
            *map(Path, attempt.component.bigquery.values()),
        ),
        gcs_root=context.buckets.root,
        known_links=leftovers.links_out(context.buckets.root),
        gpus=",".join(visible_gpus()[:accelerators]) if accelerators else "",
    )
    prepared = containers.prepared(call)
    try:
        return attempt.run(prepared)
    finally:
        if containers.confines:
            leftovers.check(call, Path(attempt.executor_input["outputs"]["outputFile"]))
