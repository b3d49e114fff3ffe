"""`run.html`: the console's view of a run with its data inside, written even if the run fails.

It needs no server: the console's scripts, which are in the page too, read what the routes would answer.
"""

import base64
import hashlib
import html
import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.json_text import encode
from localvertex._base.userinput import atomic_write
from localvertex.processes.sinks import MASK
from localvertex.show import bundle
from localvertex.show.terminal import resume_command, wrong_input
from localvertex.show.view import fields, graph, logs, mistakes
from localvertex.show.view.artifacts import ShownArtifact
from localvertex.show.view.live import LiveJob
from localvertex.store import record
from localvertex.store.task import State
from localvertex.values.buckets import Buckets

_MAX_LOG_BYTES, _MAX_LOGS_BYTES = 64 << 10, 4 << 20
"""Limits of one log, and of all logs; the page links the files."""

_MAX_VALUES_BYTES = 4 << 20
"""Limit of the inputs and outputs of all steps; further steps have only their state."""

_MAX_ARTIFACTS = 50
"""Limit of one list of artifacts."""

_NO_VALUES: JsonObject = {"parameters": {}, "artifacts": {}}

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><noscript>{title}. This report needs JavaScript; {file} has the same data.</noscript></div>
<script type="application/json" id="report">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def write(run_dir: Path, content: JsonObject, pipeline: Pipeline, without_secrets: Callable[[Any], Any]) -> Path:
    """Write the page by one rename and return its path.

    Args:
        run_dir: Folder of the run.
        content: The record.
        pipeline: The pipeline, for the drawing of its graph.
        without_secrets: Removes secrets from texts in the data; the script around it may contain the same words.
    """
    page = document(
        "report.js",
        title=f"{content['run_id']}: {content['state']}",
        file=record.FILE,
        data=without_secrets(_data(run_dir, content, pipeline)),
    )
    atomic_write.write_all({run_dir / record.PAGE: page})
    return run_dir / record.PAGE


def document(entry: str, *, title: str, file: str, data: Any) -> bytes:
    """Return a page whose script shows the data in it.

    Its content security policy allows only this script, by its hash, and nothing from elsewhere. The pages of steps
    have styles of their own; their frames have the policy of the page around.

    Args:
        entry: The script, in the folder of the console's scripts.
        title: Plain text.
        file: The name of the file with the same data.
        data: Values for JSON, without secrets; the script may contain the same words.
    """
    script = bundle.script(entry)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "frame-src blob:; base-uri 'none'; form-action 'none'"
    )
    page = _PAGE.format(
        policy=policy,
        title=html.escape(title),
        file=file,
        style=bundle.style(),
        # No text can end the element: JSON needs no "<" outside its texts.
        data=encode(data).decode().replace("<", "\\u003c"),
        script=script,
    )
    return page.encode(errors="replace")


def _data(run_dir: Path, content: JsonObject, pipeline: Pipeline) -> JsonObject:
    """Return the answers of the routes of a run, and the events of its stream."""
    tasks = _with_artifacts(run_dir, content)
    try:
        folded = graph.not_taken(content["tasks"])
        drawing, problem = asdict(graph.draw(pipeline, folded, folded)), ""
    except graph.NotDrawn as error:
        drawing, problem = None, str(error)
    run = fields.of_run(run_dir, content, state=content["state"], error=content["error"])
    is_masked = MASK.encode() in encode(content["parameters"])
    wrong, program = wrong_input.parameter_of(content), ["python", "-m", "localvertex"]
    again = shlex.join(wrong_input.command(content, wrong, program)) if wrong else ""
    return {
        "run": run | fields.of_file(pipeline),
        "resume": "" if is_masked else again or resume_command.command(content, program),
        "wrong_parameter": wrong,
        "mistakes": {
            each["path"]: mistakes.of_step(run_dir, content, each["path"])
            for each in content["tasks"]
            if mistakes.OUTPUT in each["outputs"]["artifacts"]
        },
        "graph": drawing,
        "problem": problem,
        "events": [
            ("run", {"run": run, "tasks": tasks, "is_first": True}),
            *_jobs(content),
            *_logs(run_dir, content),
        ],
    }


def _with_artifacts(run_dir: Path, content: JsonObject) -> list[JsonObject]:
    """Return the entries of the record, each artifact with what the page shows of it, as long as there is room."""
    buckets, left = Buckets.of_record(content), _MAX_VALUES_BYTES
    found = {}
    for task in _failed_first(content["tasks"]):
        without = {"inputs": _NO_VALUES, "outputs": _NO_VALUES, "custom_job": None}
        found[task["path"]] = task | without | {"note": f"its values are in {record.FILE}"}
        # Without room for all, the pages of the step are left out first.
        for most_bytes in (left, 0):
            entry = dict(task)
            for side in ("inputs", "outputs"):
                artifacts = {
                    name: [
                        each | {"view": ShownArtifact(run_dir, buckets, name, each).embedded(most_bytes)}
                        for each in every[:_MAX_ARTIFACTS]
                    ]
                    for name, every in task[side]["artifacts"].items()
                }
                entry[side] = task[side] | {"artifacts": artifacts}
            if (size := len(encode(entry))) <= left:
                found[task["path"]] = entry
                left -= size
                break
    return [found[task["path"]] for task in content["tasks"]]


def _failed_first(tasks: list[JsonObject]) -> list[JsonObject]:
    return sorted(tasks, key=lambda each: each["state"] != State.FAILED)


def _jobs(content: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    for task in content["tasks"]:
        yield from LiveJob(task["path"]).poll(task.get("custom_job"), is_running=False)


def _logs(run_dir: Path, content: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield the last lines of each log, failed steps first."""
    left = _MAX_LOGS_BYTES
    for task in _failed_first([each for each in content["tasks"] if each["kind"] == "step"]):
        names = logs.files(run_dir, task["path"])
        for name in names:
            found = logs.piece(run_dir / task["path"] / name, most_bytes=max(1, min(left, _MAX_LOG_BYTES)))
            if found is not None:
                left -= found.end - found.offset
                yield "log", {"task": task["path"], "file": name, "files": names, **asdict(found)}
