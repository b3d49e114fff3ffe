"""A run that a test can assert on: its state, and the outputs, metrics and logs of each step by name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.store.steps import failure, logs as step_logs
from localvertex.store.task import State
from localvertex.values.buckets import Buckets
from localvertex_base.userinput.cli import one_line
from localvertex_base.userinput.spelling import did_you_mean, quote


class PipelineFailed(AssertionError):
    """A run of a test did not end as the test expects; the text has the error and the end of the failed step's log."""


class BySteps(dict[str, Any]):
    """Values by the path of a step; its name alone is enough where no other step has it."""

    def __missing__(self, name: str) -> Any:
        """Return the value of the only step with this name.

        Raises:
            KeyError: There is none, or there are several; the text has the steps of the run.
        """
        paths = [path for path in self if path.rpartition("/")[2] == name]
        if len(paths) == 1:
            return self[paths[0]]
        hint = f"; give one of {', '.join(paths)}" if paths else did_you_mean(str(name), self)
        raise KeyError(f"{len(paths) or 'no'} steps are called {quote(name)}{hint}; the run has {', '.join(self)}")


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run that has ended. Steps are named by their path in the graph, or by their name where it is unique."""

    state: str
    """SUCCEEDED, FAILED or CANCELLED."""
    error: str
    """Why it failed, one line; empty when it succeeded."""
    outputs: Mapping[str, Mapping[str, Any]]
    """By step, the values of its output parameters and the paths of its artifacts; a list has a list of paths."""
    pipeline_outputs: Mapping[str, Any]
    """The outputs of the pipeline itself, in the same form."""
    metrics: Mapping[str, Mapping[str, Any]]
    """By step, the values of its scalar metrics."""
    logs: Mapping[str, str]
    """By step, its log, followed by those of the replicas of its custom job."""
    tasks: Mapping[str, Mapping[str, Any]]
    """By step, its entry in run.json, for example `tasks["train"]["custom_job"]["num_restarts"]`."""
    models: tuple[Mapping[str, Any], ...]
    """The models of the run, as in run.json."""
    given: frozenset[str]
    """The paths of the steps that did not run, because the test or localvertex.toml gave their outputs."""
    run_dir: Path
    """The folder of the run."""


def finished_run(record: Mapping[str, Any]) -> FinishedRun:
    """Return the run with this record, whose files exist."""
    run_dir = Path(record["work_dir"], record["run_id"])
    steps = {task["path"]: task for task in record["tasks"] if task["kind"] == "step"}
    buckets = Buckets.of_record(dict(record))
    metrics: dict[str, dict[str, Any]] = {path: {} for path in steps}
    for each in record["metrics"]:
        metrics.setdefault(each["task"], {})[each["name"]] = each["value"]
    return FinishedRun(
        state=record["state"],
        error=one_line(record["error"] or ""),
        outputs=BySteps({path: _values(task["outputs"], buckets) for path, task in steps.items()}),
        pipeline_outputs=_values(record["outputs"], buckets),
        metrics=BySteps(metrics),
        logs=BySteps({path: _text(step_logs.of_step(run_dir / path)) for path in steps}),
        tasks=BySteps(steps),
        models=tuple(record["models"]),
        given=frozenset(path for path, task in steps.items() if task["state"] == "GIVEN"),
        run_dir=run_dir,
    )


def problem(record: Mapping[str, Any], *, expects_failure: bool) -> str:
    """Return in what the end of a run differs from what is expected; empty when it does not.

    A fault that did not happen counts, too: the test would show nothing.
    """
    name, state = record["pipeline_name"], record["state"]
    run_dir = Path(record["work_dir"], record["run_id"])
    found = ""
    if expects_failure and state == State.SUCCEEDED:
        found = f"pipeline {name} succeeded; expected a failure"
    elif state != State.SUCCEEDED and not expects_failure:
        found = f"pipeline {name} {state}: {record['error']}"
    elif record["unused_faults"]:
        found = f"pipeline {name} {state}: {record['unused_faults'][0]}"
    if not found:
        return ""
    log, lines = failure.log_of(dict(record), run_dir)
    more = [*(f"  | {line}" for line in lines), *([f"log: {log}"] if log else [])]
    return "\n".join(one_line(line) for line in [found, *more, f"run: {run_dir}"])


def _values(outputs: Mapping[str, Any], buckets: Buckets) -> dict[str, Any]:
    """Return the values of the parameters and the paths of the artifacts of a record's `outputs`."""
    found: dict[str, Any] = dict(outputs["parameters"])
    for name, group in outputs["artifacts"].items():
        paths = [Path(buckets.path_of(each["uri"])) for each in group]
        found[name] = paths[0] if len(paths) == 1 else paths
    return found


def _text(files: Iterable[Path]) -> str:
    return "".join(each.read_text(errors="replace") for each in files)
