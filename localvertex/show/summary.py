"""The summary of a run on the terminal: steps, metrics, models, error and report."""

import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from localvertex.show import failure
from localvertex.show.job_report import sentences
from localvertex.state.task import State

_COLOURS = {
    State.SUCCEEDED: "green",
    State.SKIPPED: "cyan",
    State.FAILED: "bold red",
    State.CANCELLED: "yellow",
    State.RUNNING: "blue",
    State.NOT_TRIGGERED: "dim",
    State.PENDING: "dim",
}


def _console() -> Console:
    """Return standard output; without a terminal, wide enough not to break paths."""
    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 200)


def state_text(state: str, note: str | None = None) -> Text:
    """Return a state in its colour."""
    return Text(state + (f" ({note})" if note else ""), style=_COLOURS.get(State(state), ""))


def show(content: dict[str, Any]) -> None:
    """Print the summary of a record."""
    out = _console()
    run_dir = Path(content["work_dir"]) / content["run_id"]
    out.print(_table_of_steps(content))
    for task in content["tasks"]:
        # Runs of an earlier version do not have this field.
        if (task.get("custom_job") or {}).get("goodput"):
            out.print(f"  {task['title']}: {sentences(task['custom_job'])[0]}", markup=False)
    for metric in content["metrics"]:
        value = metric["value"]
        out.print(
            f"  {metric['name']} = {value:.6g}" if isinstance(value, float) else f"  {metric['name']} = {value}",
            markup=False,
        )
    for model in content["models"]:
        out.print(f"  model: {_location_of_model(content, model)}", markup=False)
    if content["state"] == State.FAILED:
        _show_failure(content, run_dir, out)
    text = f"{content['run_id']}: {content['state']} after {content['seconds']:.1f} s"
    out.print(Text(text, style=_COLOURS[State(content["state"])]))
    if (run_dir / "run.html").is_file():
        out.print(f"report: {run_dir / 'run.html'}", markup=False)


def _location_of_model(content: dict[str, Any], model: dict[str, Any]) -> str:
    """Return the URI of a model, for a registered one the resource name and its folder in the local registry."""
    if not model["resource_name"]:
        return str(model["uri"])
    model_id, _, version = model["resource_name"].rpartition("/")[2].partition("@")
    folder = Path(content["work_dir"]) / "models" / model_id / version
    return f"{model['resource_name']} ({folder})" if folder.is_dir() else str(model["resource_name"])


def _table_of_steps(content: dict[str, Any]) -> Table:
    """Return the table of steps, and of dags that were not triggered, with state and seconds."""
    table = Table(box=None, pad_edge=False)
    table.add_column("step")
    table.add_column("state")
    table.add_column("seconds", justify="right")
    for task in content["tasks"]:
        is_dag = task["kind"] != "step"
        if is_dag and task["state"] != State.NOT_TRIGGERED:
            continue
        note = "cached" if task["cache_hit"] else task["note"]
        seconds = f"{task['seconds']:.1f}" if task["start_time"] else ""
        table.add_row(task["title"], state_text(task["state"], note), seconds)
    return table


def _show_failure(content: dict[str, Any], run_dir: Path, out: Console) -> None:
    """Print the error of the failed task, the end of its log, and the path of the log."""
    out.print(Text(f"failed: {content['error']}", style="bold red"))
    log, lines = failure.log_of(content, run_dir)
    if log is None:
        return
    for line in lines[:-1]:
        out.print(f"  | {line}", markup=False)
    for line in lines[-1:]:
        out.print(Text(f"  | {line}", style="bold"))
    out.print(f"log: {log}", markup=False)


def table_of_runs(records: list[dict[str, Any]]) -> None:
    """Print one line per run."""
    table = Table(box=None, pad_edge=False)
    for name in ("run", "state", "seconds", "started", "pipeline"):
        table.add_column(name, justify="right" if name == "seconds" else "left")
    for content in records:
        started = str(content["create_time"])[:19].replace("T", " ")
        table.add_row(
            content["run_id"],
            state_text(content["state"]),
            f"{content['seconds']:.1f}",
            started,
            content["pipeline_name"],
        )
    _console().print(table)
