"""The PipelineJob that is sent for a compiled pipeline, made and checked without any call."""

import dataclasses
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accelerators import Finding, load_catalogue
from accelerators.pipeline.check import examine_pipeline
from pipelines.jobs.parameters import require_all, typed
from pipelines.vertex import Place
from userinput.errors import UserError
from userinput.reading import read

DEFAULT_FILE = "build/image_training.json"
BUCKET_FOLDER = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/.*)?")
LABEL = re.compile(r"[a-z0-9_-]{0,63}")
"""Keys and values of labels; keys begin with a letter and are not empty."""

REFUSED_BY_VERTEX = {"placeholder-image", "no-pipeline-root"}
"""Warnings of the check that are errors where the pipeline is about to run at Google."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSettings:
    """What a pipeline job is given beside its pipeline and parameters; the same for `submit` and for schedules."""

    pipeline_root: str = ""
    """gs:// folder; empty for the one the file was compiled with."""
    service_account: str = ""
    network: str = ""
    """projects/NUMBER/global/networks/NAME; empty for none."""
    kms_key: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what Google's API would refuse later."""
        if self.pipeline_root and not BUCKET_FOLDER.fullmatch(self.pipeline_root):
            raise UserError(f"the pipeline root is {self.pipeline_root!r}; expected e.g. gs://my-bucket/pipelines")
        if self.service_account and not re.fullmatch(r"[^@\s]+@[^@\s]+", self.service_account):
            raise UserError(
                f"the service account is {self.service_account!r}; expected e.g. "
                "training@my-project.iam.gserviceaccount.com"
            )
        for key, value in self.labels.items():
            if not LABEL.fullmatch(value) or not LABEL.fullmatch(key) or not key[:1].isalpha():
                raise UserError(
                    f"label {key}={value} is none; expected up to 63 of a-z, 0-9, - and _, a letter first in keys"
                )


def read_pipeline(path: str | Path) -> dict[str, Any]:
    """Return the pipeline spec of a compiled file, or of a PipelineJob that holds one.

    Raises:
        UserError: The file cannot be read or is not a compiled pipeline of kfp 2.
    """
    if not Path(path).exists() and str(path) == DEFAULT_FILE:
        raise UserError(f"{path} is not there; run `python compile.py --image NAME@sha256:...` first, or name a file")
    document = read(path)
    spec = document.get("pipelineSpec", document) if isinstance(document, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("root"), dict) or "deploymentSpec" not in spec:
        raise UserError(f"{path} is no compiled pipeline; expected what `python compile.py` or kfp's compiler writes")
    if str(spec.get("schemaVersion", "")) < "2.1":
        raise UserError(f"{path} has schemaVersion {spec.get('schemaVersion')!r}; compile it with kfp 2 (2.1.0)")
    return spec


def definitions(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definitions of the pipeline's parameters: name -> parameterType, defaultValue, isOptional."""
    inputs = spec["root"].get("inputDefinitions") or {}
    found: dict[str, Any] = inputs.get("parameters") or {}
    return found


def pipeline_name(spec: Mapping[str, Any]) -> str:
    """Return the name the pipeline was compiled with."""
    return str((spec.get("pipelineInfo") or {}).get("name") or "pipeline")


def job_id(spec: Mapping[str, Any]) -> str:
    """Return an id for a job of now, e.g. image-training-20261121093000, as the console makes them."""
    name = re.sub(r"[^a-z0-9-]+", "-", pipeline_name(spec).lower()).strip("-")
    return f"{name[:100]}-{datetime.now(UTC):%Y%m%d%H%M%S}".lstrip("-0123456789")


def pipeline_job(
    spec: Mapping[str, Any], *, display_name: str, parameters: Mapping[str, Any], settings: JobSettings
) -> dict[str, Any]:
    """Return the PipelineJob as the REST API takes it.

    Args:
        spec: The compiled pipeline.
        display_name: Name in the console.
        parameters: Values by name; the pipeline's defaults stand for the rest.
        settings: Everything else.

    Raises:
        UserError: A parameter is unknown, of another type, or missing.
    """
    known = definitions(spec)
    values = typed(known, parameters)
    require_all(known, values)
    root = settings.pipeline_root or spec.get("defaultPipelineRoot") or ""
    job: dict[str, Any] = {
        "displayName": display_name,
        "pipelineSpec": dict(spec),
        "runtimeConfig": {"parameterValues": values, **({"gcsOutputDirectory": root} if root else {})},
        "labels": dict(settings.labels),
        "serviceAccount": settings.service_account,
        "network": settings.network,
        "encryptionSpec": {"kmsKeyName": settings.kms_key} if settings.kms_key else {},
    }
    return {key: value for key, value in job.items() if value}


def check(job: dict[str, Any], place: Place) -> list[Finding]:
    """Check machines, images and locations of a job for its region; return the warnings.

    Raises:
        UserError: The service would refuse it; the message has the reasons and the nearest valid choices.
    """
    seen = examine_pipeline(job, region=place.region, catalogue=load_catalogue(), today=None)
    # No image is used on this machine, and the server has a root of its own.
    rules = set() if place.is_local else REFUSED_BY_VERTEX
    errors = [finding for finding in seen.findings if finding.severity == "error" or finding.rule in rules]
    if errors:
        raise UserError("; ".join(dict.fromkeys(map(_sentence, errors))))
    return [finding for finding in seen.findings if not place.is_local or finding.rule not in REFUSED_BY_VERTEX]


def _sentence(finding: Finding) -> str:
    nearest = f" (nearest: {', '.join(finding.alternatives)})" if finding.alternatives else ""
    return f"{finding.message}{nearest}"
