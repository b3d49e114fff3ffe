"""The PipelineJob that starts a run, made from a compiled file and the form."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.compiled.parameters import ParameterType
from localvertex._base.json_object import JsonObject
from localvertex.api.pipeline_jobs.request import DIGEST, INPUT_FIELDS
from localvertex.api.rest import messages
from localvertex.console.creating.form import Details, as_text
from localvertex.console.creating.source import Source

_FAIL_FAST = "PIPELINE_FAILURE_POLICY_FAIL_FAST"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The fields of the form besides the values."""

    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    fail_fast: bool = False
    use_cache: bool = True
    """False: every step runs, even if its result is cached; True: as set in the file."""


_OWN_LABELS = "vertex-ai-pipelines-"
"""Labels that the service adds to each run."""

_TYPES: dict[str, type] = {"display_name": str, "labels": dict, "fail_fast": bool, "use_cache": bool}


def settings_of(source: Source) -> JsonObject:
    """Return the settings that the file has itself, with which the form begins."""
    document = source.documents[0] if source.is_job else {}
    given = document.get("labels")
    labels = given if isinstance(given, dict) else {}
    return {
        "display_name": "",
        "labels": {
            name: as_text(each, ParameterType.STRING)
            for name, each in labels.items()
            if each is not None and not name.startswith(_OWN_LABELS)
        },
        "fail_fast": source.pipeline.job.fail_fast,
        "use_cache": True,
    }


def read_settings(body: Mapping[str, Any]) -> tuple[Settings, Details]:
    """Return the settings in a request, and their problems."""
    given = {name: body[name] for name in _TYPES if name in body}
    wrong = [
        {"field": name, "message": f"expected {_TYPES[name].__name__}, found {type(each).__name__}"}
        for name, each in given.items()
        if not isinstance(each, _TYPES[name])
    ]
    labels = given.get("labels", {})
    if not wrong and not all(isinstance(each, str) for each in labels.values()):
        wrong.append({"field": "labels", "message": "expected texts"})
    if wrong:
        return Settings(), wrong
    names = {"displayName": given.get("display_name", ""), "labels": labels}
    for name, problem in messages.problems_of_names(names):
        wrong.append({"field": "labels" if name == "labels" else "display_name", "message": problem})
    return Settings(**given), wrong


def pipeline_job(source: Source, values: Mapping[str, Any], settings: Settings) -> JsonObject:
    """Return the body of Vertex AI's create request.

    Args:
        source: The compiled file.
        values: The values of the run; parameters without a value get their defaults.
        settings: The rest of the form.
    """
    document = source.documents[0]
    job: JsonObject = {"templateUri": source.file, "templateMetadata": {"version": DIGEST + source.sha256}}
    job |= {name: document[name] for name in INPUT_FIELDS if name in document} if source.is_job else {}
    job["pipelineSpec"] = spec = document["pipelineSpec"] if source.is_job else document
    config = {name: each for name, each in (job.get("runtimeConfig") or {}).items() if name != "parameters"}
    config["parameterValues"] = dict(values)
    artifacts = config.get("inputArtifacts") or {}
    config["inputArtifacts"] = {
        name: {"artifactId": str(each.get("artifactId", ""))}
        for name, each in artifacts.items()
        if isinstance(each, dict)
    }
    config.pop("failurePolicy", None)
    config |= {"failurePolicy": _FAIL_FAST} if settings.fail_fast else {}
    job["runtimeConfig"] = {name: each for name, each in config.items() if each}
    job["labels"] = dict(settings.labels)
    job["displayName"] = settings.display_name
    if not settings.use_cache:
        job["pipelineSpec"] = _without_cache(spec)
    return {name: each for name, each in job.items() if each}


def _without_cache(spec: JsonObject) -> JsonObject:
    """Return the pipeline with caching off in each task, which is what the SDK sends for `enable_caching=False`."""
    spec = copy.deepcopy(spec)
    # A null in the file counts as absent.
    for component in [spec["root"], *(spec.get("components") or {}).values()]:
        for task in ((component.get("dag") or {}).get("tasks") or {}).values():
            task["cachingOptions"] = {"enableCache": False}
    return spec
