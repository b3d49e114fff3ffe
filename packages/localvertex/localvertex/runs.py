"""A whole run with its page and an endpoint for its steps, as the command line and Python callers use it.

`run` does everything. A caller that must stop a run, or know its id before it starts, takes two steps: `prepare`, and
`execute` of what it returns (runner/engine.py).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localvertex._base.compiled.load import PipelineFile
from localvertex._base.json_object import JsonObject
from localvertex.api.steps.reach import with_api
from localvertex.runner import engine
from localvertex.runner.display import Display
from localvertex.runner.input_artifacts import Given
from localvertex.runner.options import Options
from localvertex.runner.pipeline_run import PipelineRun
from localvertex.store.runs import find_readable
from localvertex.store.task import State


def run(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    artifacts: Given | None = None,
    options: Options | None = None,
    display: Display | None = None,
) -> JsonObject:
    """Run a pipeline and return its record, the content of run.json.

    Args:
        file: The compiled file; in a PipelineJob, its runtimeConfig has values for what is not given here.
        parameters: Values of parameters by name.
        artifacts: Files and folders of this machine by the name of an input artifact of the pipeline.
        options: How it is run.
        display: Receives the changes of the run.

    Raises:
        UserError: The input is invalid; nothing has run and nothing was written.
    """
    return prepare(file, parameters=parameters, artifacts=artifacts, options=options, display=display).execute()


def prepare(
    file: PipelineFile | Path | str,
    *,
    parameters: Mapping[str, Any] | None = None,
    artifacts: Given | None = None,
    options: Options | None = None,
    display: Display | None = None,
) -> PipelineRun:
    """Check everything and create the run's folder and first record; nothing runs before `execute`.

    Raises:
        UserError: The input is invalid; nothing was written.
    """
    options = with_api(options)
    return engine.prepare(
        file, parameters=parameters, artifacts=artifacts, options=options, display=display, write_page=_write_page
    )


def resume(name: str, *, options: Options | None = None, display: Display | None = None) -> JsonObject:
    """Resume a run that was killed, stopped or failed, and return its record.

    Raises:
        UserError: There is no such run, it is still running, or its record is damaged.
    """
    options = with_api(options)
    found = find_readable(options.work_dir, name)
    if found.content["state"] == State.SUCCEEDED:
        return found.content
    return engine.prepare_resume(name, options=options, display=display, write_page=_write_page).execute()


def _write_page(*given: Any) -> None:
    # Imported late, because no check before a run needs it.
    from localvertex.show import report

    report.write(*given)
