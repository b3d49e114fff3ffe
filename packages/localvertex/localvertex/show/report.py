"""`run.html`: the page of a run, written also when the run failed."""

from pathlib import Path
from typing import Any

from localvertex.show import job_report, results
from localvertex.show.jinja import templates
from localvertex.show.page import graph, models, steps
from localvertex.show.page.artifacts import Artifacts
from localvertex.show.terminal import resume_command
from localvertex.store import record
from localvertex.store.steps import failure
from localvertex.store.task import State
from localvertex.values.buckets import Buckets
from localvertex_base.compiled.spec import Pipeline
from localvertex_base.userinput import atomic_write

FILE, _TEMPLATE = record.PAGE, "run.html.j2"

_MAX_FAILED = 10
"""Steps that the failure box links to, beyond the first."""


def write(run_dir: Path, content: dict[str, Any], pipeline: Pipeline) -> Path:
    """Write the page by one rename and return its path.

    Args:
        run_dir: Folder of the run.
        content: The record.
        pipeline: The pipeline, for the drawing of its graph.
    """
    artifacts = Artifacts(run_dir=run_dir, buckets=Buckets.of_record(content))
    same = results.nothing_new(content)
    tree = steps.tree(content, artifacts)
    page = templates.render(
        _TEMPLATE,
        run=content,
        tree=tree,
        graph=graph.draw(pipeline, content["tasks"], shown=tree.shown),
        custom_jobs=job_report.sections(content["tasks"]),
        frames=artifacts.frames,
        failure=_failure(run_dir, content, tree.shown),
        models=models.of_record(content, run_dir),
        resume=resume_command.command(content, ["python", "-m", "localvertex"]),
        nothing_new=same,
    )
    atomic_write.write_all({run_dir / FILE: page.encode(errors="replace")})
    return run_dir / FILE


def _failure(run_dir: Path, content: dict[str, Any], shown: set[int]) -> dict[str, Any] | None:
    """Return the error of a run, the end of the log that explains it, and the steps that failed."""
    if not content["error"]:
        return None
    log, lines = failure.log_of(content, run_dir)
    failed = [
        (index, task["path"])
        for index, task in enumerate(content["tasks"])
        if task["kind"] == "step" and task["state"] == State.FAILED and index in shown
    ]
    return {
        "text": content["error"],
        "lines": lines,
        "log": str(log.relative_to(run_dir)) if log else None,
        "steps": failed[:_MAX_FAILED],
        "num_more": max(len(failed) - _MAX_FAILED, 0),
    }
