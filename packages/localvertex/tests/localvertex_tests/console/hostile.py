"""A work folder whose names, values, logs and files try to become part of the console."""

import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.server import PARENT, Server, wait_until

_RUN = "window.__xss=1;top.__xss=1;alert(1)"

NAMES = [
    f"<script>{_RUN}</script>",
    f"<img src=x onerror={_RUN}>",
    f'"><svg onload={_RUN}>',
    f"'><iframe srcdoc='<script>{_RUN}</script>'>",
    f"javascript:{_RUN}",
    f"</script></style></title><script>{_RUN}</script>",
    f"${{{_RUN}}}`+{_RUN}+`",
    f"{{{{constructor.constructor('{_RUN}')()}}}}",
    f'<a href="javascript:{_RUN}">click</a>',
    f'" onmouseover="{_RUN}" onfocus="{_RUN}" autofocus x="',
    "<style>*{display:none}</style><link rel=stylesheet href=//x.example/a>",
    f"<math><mtext></table><mglyph><style><img src onerror={_RUN}>",
    f'<!--<img src="--><img src=x onerror={_RUN}//">',
    f"safe\u202etxt.exe\u2066\x1b[31m<b>{_RUN}</b>",
    f"data:text/html,<script>{_RUN}</script>",
    f"../../../../etc/passwd%00<object data='javascript:{_RUN}'>",
    f"%3Cscript%3E{_RUN}%3C/script%3E",
    f"&lt;img src=x onerror={_RUN}&gt;&#60;script&#62;",
    f"<template><base href=//x.example/><meta http-equiv=refresh content='0;url=javascript:{_RUN}'>",
    "__proto__",
    "constructor",
    "<form action=//x.example><button formaction=javascript:alert(1)>" + "x" * 40,
]

_SHORT = 128
"""Characters of a display name, as on the service."""

_KEPT = {"state", "name", "path", "parent", "kind", "type", "schemaTitle", "project", "region", "run_id"}
"""Fields of a record that refer to others, or have fixed values."""


def fill(server: Server, compiled: dict[str, Any], light: dict[str, Any]) -> list[str]:
    """Run the hostile pipeline, write resources with each of the names, and return the ids of the runs.

    Args:
        server: A server without runs.
        compiled: The pipeline `hostile`.
        light: A pipeline for schedules.
    """
    body = {
        "displayName": NAMES[0],
        "pipelineSpec": compiled,
        "runtimeConfig": {
            "gcsOutputDirectory": "/unused",
            "parameterValues": {"texts": [*NAMES[:4], *NAMES], "items": NAMES[1:2]},
        },
    }
    server.call("POST", "pipelineJobs?pipelineJobId=hostile", body).raise_for_status()
    _models(server.work_dir)
    _endpoints_and_schedules(server, light)
    run = server.work_dir / "hostile"
    wait_until(lambda: (run / "run.html").is_file())
    record = json.loads((run / "run.json").read_text())
    assert record["state"] == "FAILED", record["error"]
    _custom_jobs(server)
    return ["hostile", *_copies(server.work_dir, record)]


def with_names(compiled: dict[str, Any]) -> dict[str, Any]:
    """Return a pipeline with the names as descriptions, defaults and choices of parameters."""
    content: dict[str, Any] = json.loads(json.dumps(compiled))
    content["pipelineInfo"]["description"] = NAMES[0]
    for number, name in enumerate(NAMES):
        parameter = {"parameterType": "STRING", "description": name, "defaultValue": name, "isOptional": True}
        choices = {"literals": [name, NAMES[number - 1]]} if number % 3 == 0 else {}
        content["root"]["inputDefinitions"]["parameters"][f"value_{number}"] = parameter | choices
    return content


def _models(work_dir: Path) -> None:
    for number, name in enumerate(NAMES):
        values = {"display_name": name[:_SHORT], "description": name, "labels": {name: name}}
        version = registry.add(work_dir, values | {"metadata": {name: name}, "artifact_uri": name})
        if number % 7 == 0:
            evaluation = {"display_name": name, "metrics": {name: name, "accuracy": 0.5}}
            ModelVersions(version.folder.parent).evaluate("1", evaluation)


def _endpoints_and_schedules(server: Server, spec: dict[str, Any]) -> None:
    for name in NAMES:
        server.call("POST", "endpoints", {"displayName": name[:_SHORT], "description": name}).raise_for_status()
        job = {"displayName": name[:_SHORT], "pipelineSpec": spec}
        request = {"parent": PARENT, "pipelineJob": job | {"runtimeConfig": {"gcsOutputDirectory": "/unused"}}}
        schedule = {"displayName": name[:_SHORT], "cron": "0 3 1 1 *", "maxConcurrentRunCount": "1"}
        server.call("POST", "schedules", schedule | {"createPipelineJobRequest": request}).raise_for_status()


def _copies(work_dir: Path, record: dict[str, Any]) -> Iterator[str]:
    """Copy the run, with the names in every field of its record that is text."""
    for shift in range(3):
        run = work_dir / f"copied-{shift}"
        shutil.copytree(work_dir / "hostile", run)
        content = _replaced(json.loads(json.dumps(record)), shift)
        dataset = {"name": NAMES[shift], "type": {"schemaTitle": "system.Dataset"}, "uri": NAMES[shift + 3]}
        values = {name: name for name in NAMES} | {"fingerprint": NAMES[shift]}
        content["tasks"][0]["outputs"]["artifacts"] = {NAMES[shift + 1]: [dataset | {"metadata": values}]}
        (run / "run.json").write_text(json.dumps(content | {"run_id": run.name}))
        yield run.name


def _replaced(value: Any, shift: int, field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _replaced(item, shift, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, shift, field) for item in value]
    if not isinstance(value, str) or field in _KEPT or field.endswith(("_time", "_dir")):
        return value
    return NAMES[(zlib.crc32(field.encode()) + shift) % len(NAMES)]


def _custom_jobs(server: Server) -> None:
    """Run a custom job that prints the names, and write the records of others."""
    text = "".join(f"{name}\n" for name in NAMES)
    container = {"imageUri": "x", "command": ["echo", text], "args": NAMES}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": container}
    job = {"displayName": NAMES[0], "jobSpec": {"workerPoolSpecs": [pool]}}
    answer = server.call("POST", "customJobs", job)
    assert answer.status_code == 200, answer.text
    name = answer.json()["name"].rpartition("/")[2]
    done = wait_until(lambda: (each := server.call("GET", f"customJobs/{name}").json()).get("endTime") and each)
    for number, hostile_name in enumerate(NAMES):
        other = done | {"name": f"{PARENT}/customJobs/{number + 1}", "displayName": hostile_name}
        error = {"state": "JOB_STATE_FAILED", "error": {"code": 3, "message": hostile_name}}
        (server.work_dir / "api" / "customJobs" / f"{number + 1}.json").write_text(json.dumps(other | error))
