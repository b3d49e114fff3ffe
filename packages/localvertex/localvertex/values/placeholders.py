r"""Resolution of `{{$...}}` placeholders: in commands, in constants of the spec, and in JSON inside a string.

Names follow kfp 2.17 (`kfp.dsl`, `kfp.dsl.placeholders`) and google-cloud-pipeline-components 2.22 (`_placeholders`).
Values are substituted once: a placeholder inside a value is never resolved again.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.compiled.payload import PLACEHOLDER, pieces
from localvertex._base.json_object import JsonObject
from localvertex._base.nested import changed
from localvertex.values.buckets import Buckets, OutsideBucket

_KEYED = re.compile(
    r"""\.(?P<side>inputs|outputs)\.(?P<kind>parameters|artifacts)\[(?P<quote>['"])(?P<name>.*?)(?P=quote)\]"""
    r"""(?P<rest>(?:\.[A-Za-z_]+|\[(?:['"].*?['"])\])*)"""
)
_ESCAPE = re.compile(r"\.json_escape\[([01])\]$")

JOB_FIELDS = (
    "pipeline_root",
    "pipeline_job_name",
    "pipeline_job_uuid",
    "pipeline_job_resource_name",
    "pipeline_job_create_time_utc",
    "pipeline_job_schedule_time_utc",
    "pipeline_google_cloud_project_id",
    "pipeline_google_cloud_location",
    "pipeline_service_account",
    "pipeline_network",
    "pipeline_persistent_resource_id",
    "pipeline_encryption_key_name",
)
_TASK_FIELDS = ("pipeline_task_name", "pipeline_task_uuid")
_OUTPUT_FILES = ("outputs.output_file", "outputMetadataUri")


class Unresolvable(Exception):
    """A placeholder has no value; the text names it and gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Values that placeholders can refer to: the job, the task, and its executor input (empty until it exists)."""

    job: dict[str, str]
    """Values of JOB_FIELDS."""
    task: dict[str, str] = field(default_factory=dict)
    """Values of TASK_FIELDS."""
    executor_input: JsonObject = field(default_factory=dict)
    buckets: Buckets = field(default_factory=Buckets)


def resolve_text(template: str, scope: Scope) -> str:
    """Return the string with its placeholders replaced.

    Raises:
        Unresolvable: A placeholder has no value.
    """
    return PLACEHOLDER.sub(lambda match: as_text(_value_of(match[1], scope)), template)


def resolve_json_template(template: str, scope: Scope, on_escape: Callable[[str], None] = lambda _: None) -> str:
    """Replace the placeholders in a string of JSON so that it stays valid JSON.

    Inside a JSON string the value is escaped; elsewhere it is written as JSON. `on_escape` receives the names of the
    placeholders for which the escaping matters: the service inserts the text unescaped.
    """
    parts: list[str] = []
    for literal, placeholder, is_in_string in pieces(template):
        parts.append(literal)
        if placeholder is None:
            continue
        text = as_text(_value_of(placeholder, scope))
        if is_in_string and not _ESCAPE.search(placeholder):
            escaped = json.dumps(text, ensure_ascii=False)[1:-1]
            # A line feed is accepted: the launchers parse with `strict=False`.
            if escaped.replace("\\n", "\n") != text:
                on_escape(placeholder)
            text = escaped
        parts.append(text)
    return "".join(parts)


def resolve_structure(value: Any, scope: Scope, *, is_final: bool = True) -> Any:
    """Replace the placeholders in all strings of lists and objects, keys included.

    With `is_final` off, placeholders for the whole executor input or an output's path are kept: a component wrapped as
    a custom job has them in its worker pools, for the job's own command.
    """

    def resolved(part: Any) -> Any:
        if not isinstance(part, str):
            return part
        return PLACEHOLDER.sub(lambda match: _late_or_text(match, scope, is_final), part)

    return changed(value, resolved, resolved)


def _late_or_text(match: re.Match[str], scope: Scope, is_final: bool) -> str:
    """Return the value of one placeholder of a structure; the placeholder itself when it is resolved later."""
    body = _ESCAPE.sub("", match[1])
    if not is_final and (body == "" or body != match[1] or body.startswith(".output")):
        return match[0]
    # In a structure the text is already a JSON string; json.dumps does the escaping of `json_escape`.
    return as_text(_value_of(body, scope))


def _value_of(body: str, scope: Scope) -> Any:
    """Return the value of the placeholder `{{$<body>}}`."""
    escape = _ESCAPE.search(body)
    if escape:
        text = as_text(_value_of(body[: escape.start()], scope))
        return json.dumps(text, ensure_ascii=False)[1:-1] if escape[1] == "1" else text
    if body == "":
        return scope.executor_input
    name = body.removeprefix(".")
    if name in scope.job:
        return scope.job[name]
    if name in scope.task:
        return scope.task[name]
    if name in _OUTPUT_FILES:
        return scope.executor_input["outputs"]["outputFile"]
    keyed = _KEYED.fullmatch(body)
    if not keyed:
        raise Unresolvable(f"the placeholder {{{{${body}}}}} is unknown")
    return _keyed_value(keyed, scope)


def _keyed_value(match: re.Match[str], scope: Scope) -> Any:
    """Return the value of an `inputs` or `outputs` placeholder."""
    side, kind, name, rest = match["side"], match["kind"], match["name"], match["rest"]
    here = scope.executor_input.get(side, {})
    if kind == "artifacts":
        return _artifact_value(here.get("artifacts", {}).get(name, {}).get("artifacts", []), name, rest, scope.buckets)
    if side == "outputs":
        if name not in here.get("parameters", {}) or rest != ".output_file":
            raise Unresolvable(f"the placeholder {{{{${match[0]}}}}} does not name a declared output")
        return here["parameters"][name]["outputFile"]
    return here.get("parameterValues", {}).get(name)


def _artifact_value(artifacts: list[JsonObject], name: str, rest: str, buckets: Buckets) -> Any:
    """Return `uri`, `path`, `name`, `metadata` or one key of `metadata` of an artifact; by default the whole list."""
    if not artifacts:
        raise Unresolvable(f"a placeholder needs the artifact {name!r}, which is missing")
    artifact = artifacts[0]
    if rest == "":
        return artifacts
    if rest == ".uri":
        return artifact["uri"]
    if rest == ".path":
        try:
            return buckets.path_of(artifact["uri"])
        except OutsideBucket as error:
            raise Unresolvable(str(error)) from None
    if rest == ".name":
        return artifact["name"]
    value: Any = artifact.get("metadata", {})
    for key in re.findall(r"""\[['"](.*?)['"]\]""", rest):
        value = value.get(key) if isinstance(value, dict) else None
        if value is None:
            raise Unresolvable(f"the artifact {name!r} has no metadata {key!r}")
    return value


def as_text(value: Any) -> str:
    """Return a value as it appears in a command: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def references(template: str) -> Iterator[tuple[str, str, str]]:
    """Yield what a template refers to by name: `inputs` or `outputs`, `parameters` or `artifacts`, the name."""
    for match in PLACEHOLDER.finditer(template):
        if keyed := _KEYED.fullmatch(_ESCAPE.sub("", match[1])):
            yield keyed["side"], keyed["kind"], keyed["name"]


def unknown_placeholders(text: str) -> list[str]:
    """Return the placeholders of a template that this module does not know, for the check before a run."""
    unknown = []
    for match in PLACEHOLDER.finditer(text):
        body = _ESCAPE.sub("", match[1])
        name = body.removeprefix(".")
        is_known = body == "" or name in (*JOB_FIELDS, *_TASK_FIELDS, *_OUTPUT_FILES) or _KEYED.fullmatch(body)
        if not is_known:
            unknown.append(match[0])
    return unknown
