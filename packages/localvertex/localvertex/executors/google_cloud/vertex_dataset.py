"""GetVertexDatasetOp: the files of this machine that `datasets.json` gives for a dataset of Vertex AI."""

from pathlib import Path
from typing import ClassVar

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import LauncherExecutor, launcher_options
from localvertex.processes import logs
from localvertex.store import datasets, executor_files
from localvertex_base.compiled.spec import Container, Importer
from localvertex_base.userinput.errors import UserError

_FUNCTION = "def get_vertex_dataset(executor_input_json"
"""Part of the operation's program (v1/dataset/get_vertex_dataset/component.py of GCPC 2.22)."""


class VertexDatasetExecutor(LauncherExecutor):
    """Writes an artifact with the dataset's name, whose URI is the local path.

    On Vertex AI the URI is the name: the operation makes no call and does not check that the dataset exists.
    """

    name: ClassVar[str] = "Vertex dataset"
    required = ("dataset_resource_name", "executor_input")

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a container with the operation's program."""
        return isinstance(executor, Container) and any(_FUNCTION in word for word in executor.command)

    def execute(self, attempt: Attempt) -> None:
        """Find the dataset, and write the artifact."""
        name = attempt.resolve(launcher_options(attempt.arguments())["dataset_resource_name"])
        try:
            path: Path = datasets.find(attempt.context.work_dir, name)
        except UserError as error:
            raise TaskFailed(str(error), exit_code=2, is_retryable=False) from None
        planned = attempt.executor_input["outputs"]["artifacts"]["dataset"]["artifacts"][0]
        artifact = planned | {"uri": str(path), "metadata": {"resourceName": name}}
        executor_files.write_output(attempt.executor_input, {"dataset": artifact})
        logs.add(attempt.log, f"{name} is {path}")
        attempt.report_exit(0)
