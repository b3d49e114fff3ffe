"""A converted job as gcloud takes it: the spec in camelCase, the rest as flags."""

import shlex
from typing import Any

from userinput.spelling import camel

# Their keys are names of the user's own, not fields.
_MAPS = ("labels",)


def for_gcloud(job: dict[str, Any], region: str) -> tuple[dict[str, Any], str]:
    """Return what goes into the file for --config, and the command that sends it.

    Args:
        job: What `vertex_job` returned.
        region: Region of the job; empty when none is named.
    """
    place = shlex.quote(region) if region else "REGION"
    if "trial_job_spec" in job:
        config = {"studySpec": _camel(job["study_spec"]), "trialJobSpec": _camel(job["trial_job_spec"])}
        flags = ["gcloud ai hp-tuning-jobs create", f"--max-trial-count={job['max_trial_count']}"]
        flags.append(f"--parallel-trial-count={job['parallel_trial_count']}")
    else:
        config, flags = _camel(job["job_spec"]), ["gcloud ai custom-jobs create"]
    flags += [f"--region={place}", f"--display-name={shlex.quote(job['display_name'])}", "--config=FILE"]
    if "labels" in job:
        flags.append(shlex.quote("--labels=" + ",".join(f"{key}={value}" for key, value in job["labels"].items())))
    if "encryption_spec" in job:
        flags.append(f"--kms-key={shlex.quote(job['encryption_spec']['kms_key_name'])}")
    return config, "send it with: " + " ".join(flags)


def _camel(value: Any) -> Any:
    if isinstance(value, dict):
        return {camel(key): inner if key in _MAPS else _camel(inner) for key, inner in value.items()}
    return [_camel(item) for item in value] if isinstance(value, list) else value
