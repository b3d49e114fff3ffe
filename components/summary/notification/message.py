"""The message about the end of a run: fields for programs and a text for people."""

from dataclasses import dataclass, field
from typing import Any

_LONGEST_ERROR = 1500
_LONGEST_TEXT = 3500
"""Chat services refuse or cut longer texts; Google Chat's limit was 4,096 characters."""


@dataclass(frozen=True, kw_only=True)
class FailedStep:
    """A step that failed, and why."""

    step: str
    """Its path in the compiled pipeline."""
    error: str
    custom_jobs: dict[str, str] = field(default_factory=dict)
    """Resource name -> error of each custom job of the step."""


def message_of(*, job: str, state: str, error: str, steps: list[FailedStep], is_local: bool) -> dict[str, Any]:
    """Return the message.

    Args:
        job: Resource name of the pipeline job.
        state: Its final state.
        error: The error in it; empty for none.
        steps: The failed steps, if their errors are known.
        is_local: Whether the run has no page in the console.
    """
    _, project, _, region, _, job_id = job.split("/")
    page = "" if is_local else run_page(project, region, job_id)
    lines = [f"{job_id}: {state}"]
    for each in steps:
        lines.append(f"{each.step} failed: {_cut(each.error)}")
        lines += [f"  {name}: {_cut(text)}" for name, text in each.custom_jobs.items() if text]
    if error and not steps:
        lines.append(_cut(error))
    # The page comes after the errors, which may be long.
    text = "\n".join(lines)[:_LONGEST_TEXT] + (f"\n{page}" if page else "")
    failed = [{"step": each.step, "error": each.error, "custom_jobs": each.custom_jobs} for each in steps]
    return {
        "text": text,
        "version": 1,
        "pipeline_job": job,
        "state": state,
        "error": error,
        "failed_steps": failed,
        "page": page,
    }


def _cut(text: str) -> str:
    """Return a text without its middle if it is long: the cause of a Python error is at its end."""
    half = _LONGEST_ERROR // 2
    return text if len(text) <= _LONGEST_ERROR else f"{text[:half]} [...] {text[-half:]}"


def run_page(project: str, region: str, job_id: str) -> str:
    """Return the URL of the console's page that shows a pipeline job."""
    base = f"https://console.cloud.google.com/vertex-ai/locations/{region}/pipelines/runs"
    return f"{base}/{job_id}?project={project}"
