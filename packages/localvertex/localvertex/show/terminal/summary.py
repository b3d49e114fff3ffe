"""The summary of a run on the terminal: steps, metrics, models, error and report."""

import signal
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from localvertex._base.json_object import JsonObject
from localvertex.containers import memory
from localvertex.show import results
from localvertex.show.terminal.rows import align, between_words
from localvertex.store import outcome, record, registry
from localvertex.store.models.reading import FILES
from localvertex.store.steps import failure
from localvertex.store.task import State

_COLOURS = {
    State.SUCCEEDED: "green",
    State.SKIPPED: "cyan",
    State.GIVEN: "magenta",
    State.FAILED: "bold red",
    State.CANCELLED: "yellow",
    State.RUNNING: "blue",
    State.NOT_TRIGGERED: "dim",
    State.PENDING: "dim",
}


_STOPPED_BY = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}

_MAX_FAILURES = 10
"""Failed steps whose errors are printed; the record has all."""


def console() -> Console:
    """Return standard output; without a terminal, wide enough not to break paths."""
    return Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 200)


def state_text(state: str) -> Text:
    """Return a state in its colour."""
    return Text(state, style=_COLOURS.get(State(state), ""))


def show(content: JsonObject) -> None:
    """Print the summary of a record: its steps, what they computed, what failed, and how the run ended."""
    out = console()
    run_dir = Path(content["work_dir"]) / content["run_id"]
    width = out.width if out.is_terminal else None
    if State(content["state"]).is_final:
        # Unbroken, so that its command can be pasted.
        out.print(Text(outcome.of(content)["sentence"], style="bold"))
    for line in _lines_of_steps(content, width):
        out.print(line)
    for task in content["tasks"]:
        if (stalled := (task.get("custom_job") or {}).get("stalled")) and content["state"] == State.RUNNING:
            out.print(Text(between_words(f"  {task['title']}: {stalled}", width), style="yellow"))
        if goodput := (task.get("custom_job") or {}).get("goodput"):
            out.print(between_words(f"  {task['title']}: {_goodput_sentence(goodput)}", width), markup=False)
    for metric in content["metrics"]:
        out.print(f"  {metric['name']} = {results.figure(metric['value'])}", markup=False)
    for model in content["models"]:
        out.print(f"  model: {_location_of_model(content, model)}", markup=False)
    if content.get("failed_task") or (content.get("error") and not _was_killed(content)):
        _show_failures(content, run_dir, out)
    for text in content.get("unused_faults", []):
        out.print(Text(between_words(text, width), style="yellow"))
    out.print(Text(_end_sentence(content), style=_COLOURS[State(content["state"])]))
    if (run_dir / record.PAGE).is_file():
        out.print(f"report: {run_dir / record.PAGE}", markup=False)


def seconds_of(content: JsonObject) -> float:
    """Return how long a run took, or has taken until now if it is running."""
    started = record.seconds_of(content.get("start_time"))
    if content["state"] == State.RUNNING and started is not None:
        return max(time.time() - started - float(content["idle_seconds"]), 0.0)
    return float(content["seconds"])


def duration(seconds: float) -> str:
    """Return seconds in a readable form: `45 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _goodput_sentence(goodput: JsonObject) -> str:
    """Describe how a custom job spent its time."""
    total = f"{goodput['total_seconds']:.1f} s"
    if goodput["fraction"] is None:
        return f"{total}. No replica logged steps (docs/faults.md), so there is no goodput."
    steps = f"{goodput['num_steps']} step{'' if goodput['num_steps'] == 1 else 's'}"
    productive = f"{goodput['seconds']['productive']:.1f} s"
    return f"Goodput {goodput['fraction']:.0%}: {productive} of {total} were spent on the {steps} that count."


def _end_sentence(content: JsonObject) -> str:
    """Return the sentence about the state of a run."""
    text = f"{content['run_id']}: {content['state']}"
    if content["state"] == State.RUNNING:
        return f"{text} for {duration(seconds_of(content))}"
    num_resumes = len(content["resume_times"])
    if _was_killed(content) and not num_resumes:
        text += ", the process that ran it was killed"
    else:
        text += f" after {content['seconds']:.1f} s"
    if num_resumes:
        text += f" in all, resumed {'once' if num_resumes == 1 else f'{num_resumes} times'}"
    if num_given := sum(task["state"] == State.GIVEN for task in content["tasks"] if task["kind"] == "step"):
        text += f", with given outputs in place of {num_given} step{'s' * (num_given > 1)}"
    stopped_by = content.get("stopped_by_signal")
    return text + (f", stopped by {_STOPPED_BY.get(stopped_by, f'signal {stopped_by}')}" if stopped_by else "")


def _was_killed(content: JsonObject) -> bool:
    """Return whether the run never came to its end."""
    return State(content["state"]).is_final and not content.get("end_time")


def _location_of_model(content: JsonObject, model: JsonObject) -> str:
    """Return the URI of a model, for a registered one the resource name and its files in the local registry."""
    if not model["resource_name"]:
        return str(model["uri"])
    folder = registry.folder_of(Path(content["work_dir"]), model["resource_name"])
    files = folder / FILES if folder and (folder / FILES).exists() else folder
    return f"{model['resource_name']} ({files})" if files else str(model["resource_name"])


def _lines_of_steps(content: JsonObject, width: int | None) -> list[Text]:
    """Return the table of steps, and of dags that were not triggered, with state, seconds and notes."""
    tasks = [task for task in content["tasks"] if task["kind"] == "step" or task["state"] == State.NOT_TRIGGERED]
    rows = [(Text("step"), Text("state"), Text("seconds"))]
    rows += [
        (Text(task["title"]), state_text(task["state"]), Text(f"{task['seconds']:.1f}" if task["start_time"] else ""))
        for task in tasks
    ]
    blocks = align(rows, width=width, right=2)
    for task, block in zip(tasks, blocks[1:], strict=True):
        if note := _note(task, content):
            block[-1] += Text(f"  {note}", style="dim")
    return [line for block in blocks for line in block]


def _note(task: JsonObject, content: JsonObject) -> str:
    """Return why a step has its state."""
    if _was_killed(content) and task["state"] == State.RUNNING:
        return "when the run was killed"
    if task.get("restored"):
        return "before the run was resumed"
    if task["state"] == State.GIVEN:
        return "not run"
    found = memory.of_task(task)
    return "cached" if task["cache_hit"] else task["note"] or (found["text"] if found else "")


def _show_failures(content: JsonObject, run_dir: Path, out: Console) -> None:
    """Print the error of each failed step; of the first one also the end of its log, and the path of the log."""
    width = out.width if out.is_terminal else None
    out.print(Text(between_words(f"failed: {content['error']}", width), style="bold red"))
    log, lines = failure.log_of(content, run_dir)
    for line in lines:
        out.print(f"  | {line}", markup=False)
    if log is not None:
        out.print(f"log: {log}", markup=False)
    others = [
        task
        for task in content["tasks"]
        if task["kind"] == "step" and task["state"] == State.FAILED and task["path"] != content.get("failed_task")
    ]
    for task in others[:_MAX_FAILURES]:
        out.print(Text(between_words(f"failed: {task['title']}: {task['error']}", width), style="bold red"))
    if len(others) > _MAX_FAILURES:
        out.print(f"{len(others) - _MAX_FAILURES} more steps failed", markup=False)
