"""The training curves of runs in one chart per custom job, from the event logs of its replicas."""

from typing import Any

from localvertex.show.view.live import LiveJob
from localvertex.store.task import State


def compare(contents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return for each task with a custom job the curve of each run; None where a run has none.

    Args:
        contents: The records of the runs.
    """
    found = [_curves(content) for content in contents]
    paths = dict.fromkeys(path for each in found for path in each)
    return {"curves": [{"task": path, "series": [each.get(path) for each in found]} for path in paths]}


def _curves(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the curve of each custom job of a run by the path of its task."""
    is_running, found = not State(content["state"]).is_final, {}
    for task in content["tasks"]:
        messages = LiveJob(task["path"]).poll(task.get("custom_job"), is_running=is_running)
        curves = [message for name, message in messages if name == "steps"]
        # All workers of a job log the same loss; of replicas that train on their own the longest curve is shown.
        if longest := max(curves, key=lambda each: len(each["points"]), default=None):
            found[task["path"]] = {name: longest[name] for name in ("replica", "points", "resumes")}
    return found
