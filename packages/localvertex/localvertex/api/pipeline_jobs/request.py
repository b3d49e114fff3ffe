"""A PipelineJob as a request sends it: its checks, its stored part, and the file from which it is run."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import ApiError, Status, invalid
from localvertex.errors import Refused
from localvertex.store import record, run_folder

INPUT_FIELDS = (
    "displayName",
    "pipelineSpec",
    "labels",
    "runtimeConfig",
    "encryptionSpec",
    "serviceAccount",
    "network",
    "reservedIpRanges",
    "templateUri",
    "templateMetadata",
    "pscInterfaceConfig",
    "preflightValidations",
)
"""Fields that a user may set; the service sets the others."""

DIGEST = "sha256:"
"""Begins the version of a template that is the digest of its file, as in Artifact Registry."""

NUM_RESUMES = "numResumes"
"""Field of the stored part: how often the run had been resumed when a server last started it; 0 if missing."""


RECORD = {
    **dict.fromkeys(("createTime!", "scheduleName", "state"), str),
    "error": {"message!": str},
    NUM_RESUMES: int,
    **dict.fromkeys(("pipelineSpec!", "labels", "runtimeConfig"), dict),
}
"""The shape of a stored part that is not damaged."""


def new_resource(name: str, body: JsonObject, schedule_name: str) -> JsonObject:
    """Build the stored part of a PipelineJob."""
    now, given = record.now(), {key: body[key] for key in INPUT_FIELDS if key in body}
    job = {"name": name, "displayName": name.rpartition("/")[2], "createTime": now, "updateTime": now}
    return job | ({"scheduleName": schedule_name} if schedule_name else {}) | given


@contextmanager
def file_of(body: JsonObject) -> Iterator[Path]:
    """Write a PipelineJob to a file, whose settings are read as in any other file.

    Raises:
        ApiError: The pipeline cannot run here, or its parameters are wrong.
        OSError: The work folder cannot be written to.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.json"
        path.write_text(json.dumps({name: body[name] for name in INPUT_FIELDS if name in body}))
        try:
            yield path
        except run_folder.NotBegun as error:
            raise error.reason from None
        except UserError as error:
            reasons = error.reasons if isinstance(error, Refused) else [str(error)]
            reasons = [each.replace(f"{path}: ", "") for each in reasons]
            if isinstance(error, Refused) and error.way_on:
                reasons.append(error.way_on)
            raise ApiError(
                Status.INVALID_ARGUMENT, "; ".join(reasons), [{"message": each} for each in reasons]
            ) from None


def check_runtime_config(body: JsonObject) -> None:
    """Refuse a setting that a PipelineJob file may have, but a request may not.

    Raises:
        ApiError: It has that setting.
    """
    config = body.get("runtimeConfig", {})
    if config.get("parameters"):
        raise invalid("runtimeConfig.parameters belongs to schema version 2.0.0; use parameterValues")
