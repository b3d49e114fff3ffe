"""The PipelineJob that is submitted for a compiled pipeline, built and checked without any call."""

import dataclasses
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from components.any_code import planning
from components.container_image import PLACEHOLDER_IMAGE
from components.values import check_values
from localvertex._base.compiled.parameters import ParameterSpec, convert_all, require_all
from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Container
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import read
from localvertex.machines import Finding
from localvertex.machines.job.finding import refuse
from localvertex.machines.job.values import mapping
from localvertex.machines.pipeline.check import examine_pipeline
from localvertex.machines.pipeline.graph import Graph
from pipelines.vertex import Location

DEFAULT_FILE = "build/image_training.json"
JOB_SETTINGS = ("pipeline_root", "service_account", "network", "kms_key")
"""Fields of `JobSettings` that options of `submit` and keys of schedules set."""
_LABEL = re.compile(r"[a-z0-9_-]{0,63}")
"""A key or value of a label; keys also begin with a letter and are not empty."""

_REFUSED_BY_VERTEX = {"placeholder-image", "no-pipeline-root"}
"""Rules whose warnings are errors for a pipeline that is about to run on Vertex AI."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSettings:
    """The fields of a pipeline job besides its pipeline and parameters, for `submit` and for schedules."""

    pipeline_root: str = ""
    """gs:// folder; empty for the one that the file was compiled with."""
    service_account: str = ""
    network: str = ""
    """projects/NUMBER/global/networks/NAME; empty for none."""
    kms_key: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse values that Google's API would refuse later.

        Raises:
            UserError: A value is not valid.
        """
        if self.pipeline_root and not paths.BUCKET_FOLDER.fullmatch(self.pipeline_root):
            found = paths.display(self.pipeline_root)
            raise UserError(f"the pipeline root is {found}; expected e.g. gs://my-bucket/pipelines")
        if self.service_account and not re.fullmatch(r"[^@\s]+@[^@\s]+", self.service_account):
            raise UserError(
                f"the service account is {self.service_account!r}; expected e.g. "
                "training@my-project.iam.gserviceaccount.com"
            )
        for key, value in self.labels.items():
            if not _LABEL.fullmatch(value) or not _LABEL.fullmatch(key) or not key[:1].isalpha():
                raise UserError(
                    f"label {key}={value} is not valid: use up to 63 of a-z, 0-9, - and _; keys begin with a letter"
                )


def read_spec(path: str | Path) -> dict[str, Any]:
    """Return the pipeline spec of a compiled file or of a PipelineJob.

    Raises:
        UserError: The file cannot be read or is not a compiled pipeline of kfp 2.
    """
    if not os.path.exists(path) and str(path) == DEFAULT_FILE:
        raise UserError(f"{path} does not exist; run `python compile.py --image NAME@sha256:...` first, or give a file")
    document = read(path)
    spec = document.get("pipelineSpec", document) if isinstance(document, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("root"), dict) or "deploymentSpec" not in spec:
        raise UserError(
            f"{path} is not a compiled pipeline; expected output of `python compile.py` or of kfp's compiler"
        )
    if str(spec.get("schemaVersion", "")) < "2.1":
        raise UserError(f"{path} has schemaVersion {spec.get('schemaVersion')!r}; compile it with kfp 2 (2.1.0)")
    return spec


def declared_parameters(spec: Mapping[str, Any]) -> dict[str, ParameterSpec]:
    """Return the parameters of a compiled pipeline by name."""
    return read_pipeline(spec).root.input_parameters


def job_id(spec: Mapping[str, Any]) -> str:
    """Return a new job id in the console's format, e.g. image-training-20261121093000."""
    name = re.sub(r"[^a-z0-9-]+", "-", (read_pipeline(spec).name or "pipeline").lower()).strip("-")
    return f"{name[:100]}-{datetime.now(UTC):%Y%m%d%H%M%S}".lstrip("-0123456789")


def pipeline_job(
    spec: Mapping[str, Any], *, display_name: str, parameters: Mapping[str, Any], settings: JobSettings
) -> dict[str, Any]:
    """Return the PipelineJob in the format of the REST API.

    Args:
        spec: The compiled pipeline.
        display_name: Name in the console.
        parameters: Values by name; the others keep the pipeline's defaults.
        settings: The other fields of the job.

    Raises:
        UserError: A parameter is unknown, missing, or has the wrong type.
    """
    pipeline = read_pipeline(spec)
    values = convert_all(pipeline.root.input_parameters, parameters)
    require_all(pipeline.root.input_parameters, values)
    root = settings.pipeline_root or pipeline.default_root
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


def compiled_settings(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a file of `compile.py` gives its step `plan` as a constant; none of another file."""
    pipeline = read_pipeline(job["pipelineSpec"])
    for step in Graph(pipeline=pipeline, parameters=job["runtimeConfig"]["parameterValues"]).steps():
        if step.name == "plan" and "settings" in step.inputs:
            return mapping(step.inputs["settings"].value)
    return {}


def _check_own(job: dict[str, Any], region: str) -> list[Finding]:
    """Check the values of this project's own pipelines, which a step would refuse only on Google's machines.

    Raises:
        UserError: A value is wrong.
    """
    pipeline = read_pipeline(job["pipelineSpec"])
    declared = pipeline.root.input_parameters
    settings = compiled_settings(job)
    if not settings:
        return []
    defaults = {name: spec.default for name, spec in declared.items() if spec.default is not None}
    values = defaults | job["runtimeConfig"]["parameterValues"] | settings
    if "command" in declared:
        return planning.check(values, region=region)[-1]
    plan = pipeline.executors.get("exec-plan")
    image = plan.image if isinstance(plan, Container) else PLACEHOLDER_IMAGE
    return check_values(values, image=image, region=region)


def check(job: dict[str, Any], location: Location) -> list[Finding]:
    """Check the machines, container images and locations of a job, and return the warnings.

    Raises:
        UserError: The service would refuse the job; the message has the reasons and the nearest valid choices.
    """
    examined = examine_pipeline(job, region=location.region, today=None)
    # Locally no container image is used, and the server has its own pipeline root.
    refuse(examined.findings, rules=() if location.is_local else _REFUSED_BY_VERTEX)
    seen = {finding.rule for finding in examined.findings}
    own = [finding for finding in _check_own(job, location.region) if finding.rule not in seen]
    return [
        finding
        for finding in (*examined.findings, *own)
        if not location.is_local or finding.rule not in _REFUSED_BY_VERTEX
    ]
