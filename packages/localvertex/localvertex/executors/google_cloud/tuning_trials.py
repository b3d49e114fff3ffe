"""GetTrialsOp of google-cloud-pipeline-components 1.x: the trials of a tuning job that ran here.

It is a Python step that requests the job from Vertex AI (experimental/hyperparameter_tuning_job/utils.py of 1.0.44).
The package removed it in version 2, and pipelines contain copies of it. The components that follow only calculate.
"""

import json
import re
from pathlib import Path
from typing import ClassVar

from localvertex._base.compiled.spec import Container, Importer
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json
from localvertex._base.userinput.spelling import quote
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.python_step import PythonStepExecutor
from localvertex.jobs.tuning import run
from localvertex.jobs.tuning.trial import as_client_json
from localvertex.processes import logs
from localvertex.store.steps import folders as step_folders

_SIGNATURE = re.compile(r"^def \w+\(\s*gcp_resources\s*:\s*str,?\s*\)", re.MULTILINE)

_RESULT = "return [study.Trial.to_json(trial) for trial in response.trials]"

_OUTPUT = "Output"


class TuningTrialsExecutor:
    """Returns the trials from the folder of the step that ran the job, as the function's code would."""

    name: ClassVar[str] = "trials of a tuning job"

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a Python step with the function's signature and return statement."""
        if not isinstance(executor, Container) or not PythonStepExecutor().accepts(executor):
            return False
        return any(_RESULT in word and _SIGNATURE.search(word) for word in executor.command)

    def refusals(self, executor: Container | Importer) -> list[str]:
        """Refuse nothing: the run decides."""
        return []

    def execute(self, attempt: Attempt) -> None:
        """Write the output parameter."""
        resource = _single_resource(str(attempt.executor_input["inputs"]["parameterValues"].get("gcp_resources", "")))
        folders = step_folders.with_resource(attempt.context.work_dir, resource["resourceUri"])
        folder = next((each for each in folders if (each / run.FILE).is_file()), None)
        if folder is None:
            raise TaskFailed(
                f"{resource['resourceUri']} is not a tuning job that ran in {attempt.context.work_dir}",
                is_retryable=False,
            )
        job: JsonObject = json.loads((folder / run.FILE).read_text())
        trials = [as_client_json(each) for each in job["trials"]]
        Path(attempt.executor_input["outputs"]["parameters"][_OUTPUT]["outputFile"]).write_text(json.dumps(trials))
        logs.add(attempt.log, f"{len(trials)} trials of {job['name']}, from {folder}")
        attempt.report_exit(0)


def _single_resource(text: str) -> dict[str, str]:
    """Return the `resourceType` and the `resourceUri` of the only resource.

    Raises:
        TaskFailed: The text does not name exactly one resource.
    """
    try:
        content = parse_json(text, "gcp_resources")
    except UserError as error:
        raise TaskFailed(str(error), is_retryable=False) from None
    resources = content.get("resources") if isinstance(content, dict) else None
    if not isinstance(resources, list) or len(resources) != 1 or not isinstance(resources[0], dict):
        raise TaskFailed(f"gcp_resources {quote(text, 200)}: expected exactly one resource", is_retryable=False)
    return {name: str(resources[0].get(name, "")) for name in ("resourceType", "resourceUri")}
