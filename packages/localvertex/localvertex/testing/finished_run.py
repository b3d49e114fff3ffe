"""A run that a test can assert on: its state, and the outputs, metrics and logs of each step by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.cli import one_line
from localvertex._base.userinput.spelling import did_you_mean, quote
from localvertex.store.steps import failure, logs as step_logs
from localvertex.store.task import State
from localvertex.values.buckets import Buckets


class PipelineFailed(AssertionError):
    """A run of a test did not end as the test expects; the text has the error and the end of the failed step's log."""


class BySteps(JsonObject):
    """Values by the path of a step; its name alone is enough where no other step has it."""

    def __missing__(self, name: str) -> Any:
        """Return the value of the only step with this name.

        Raises:
            KeyError: No step matches, or several do; the text has the steps of the run.
        """
        paths = [path for path in self if path.rpartition("/")[2] == name]
        if len(paths) != 1:
            text = f"{len(paths) or 'no'} steps are called {quote(name)}{did_you_mean(name, self)}"
            raise KeyError(f"{text}; the run has {', '.join(self)}")
        return self[paths[0]]


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run that has ended. Steps are named by their path in the graph, or by their name where it is unique."""

    state: str
    """SUCCEEDED, FAILED or CANCELLED."""
    error: str
    """Why it failed, one line; empty when it succeeded."""
    outputs: BySteps
    """Step -> the values of its output parameters and the paths of its artifacts; a list has a list of paths."""
    pipeline_outputs: Mapping[str, Any]
    """The outputs of the pipeline itself, in the same form."""
    metrics: BySteps
    """Step -> the values of its scalar metrics."""
    logs: BySteps
    """Step -> its log, followed by those of the replicas of its custom job."""
    tasks: BySteps
    """Step -> its entry in run.json, for example `tasks["train"]["custom_job"]["num_restarts"]`."""
    given: set[str]
    """The paths of the steps that did not run, because the test or localvertex.toml gave their outputs."""
    run_dir: Path
    """The folder of the run."""


def finished_run(record: JsonObject, *, expects_failure: bool) -> FinishedRun:
    """Return the run with this record, whose files exist.

    A fault that did not happen is also a failure: the test would show nothing.

    Raises:
        PipelineFailed: The run did not end as expected.
    """
    __tracebackhide__ = True
    run_dir, buckets = Path(record["work_dir"], record["run_id"]), Buckets.of_record(record)
    has_failed, unused = record["state"] != State.SUCCEEDED, record["unused_faults"]
    if has_failed != expects_failure or unused:
        why = record["error"] if has_failed != expects_failure else unused[0]
        head = f"pipeline {record['pipeline_name']} {record['state']}: {why or 'expected a failure'}"
        text = [head, *(f"  | {line}" for line in failure.log_of(record, run_dir)[1]), f"run: {run_dir}"]
        raise PipelineFailed("\n".join(map(one_line, text)))
    steps = BySteps({task["path"]: task for task in record["tasks"] if task["kind"] == "step"})
    metrics = BySteps({path: {} for path in steps})
    for each in record["metrics"]:
        metrics[each["task"]][each["name"]] = each["value"]
    logs = {
        path: "".join(log.read_text(errors="replace") for log in step_logs.of_step(run_dir / path)) for path in steps
    }
    return FinishedRun(
        state=record["state"],
        error=one_line(record["error"] or ""),
        outputs=BySteps({path: _values(task["outputs"], buckets) for path, task in steps.items()}),
        pipeline_outputs=_values(record["outputs"], buckets),
        metrics=metrics,
        logs=BySteps(logs),
        tasks=steps,
        given={path for path, task in steps.items() if task["state"] == State.GIVEN},
        run_dir=run_dir,
    )


def _values(outputs: Mapping[str, Any], buckets: Buckets) -> JsonObject:
    """Return the values of the parameters and the paths of the artifacts of a record's `outputs`."""
    found = dict(outputs["parameters"])
    for name, group in outputs["artifacts"].items():
        paths = [Path(buckets.path_of(each["uri"])) for each in group]
        found[name] = paths[0] if len(paths) == 1 else paths
    return found
