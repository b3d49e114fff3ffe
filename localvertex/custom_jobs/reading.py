"""A CustomJob as somebody wrote it, checked before a process starts: twice for its spelling, then for its machines."""

from collections.abc import Callable, Mapping
from typing import Any

from accelerators import Finding, check_custom_job, custom_job_fields
from localvertex.custom_jobs.job import CustomJob
from localvertex.errors import TaskFailed

EXIT_USER_ERROR = 2

QUIET_RULES = {"placeholder-image", "pool-gap"}
"""No image is used here, and what a gap does is told by whoever drops it."""


def read(
    message: dict[str, Any],
    *,
    region: str,
    warn: Callable[[str], None],
    through_launcher: bool = False,
    images: Mapping[str, tuple[str, ...]] | None = None,
) -> CustomJob:
    """The job of a CustomJob message.

    The service reads leniently: camelCase, "1" for 1. The launcher of Google's components is strict. What only the
    launcher refuses is warned of.

    Args:
        message: Fields in camelCase or snake_case.
        region: Where it would run.
        warn: Is told what differs, and what the machines' check remarks.
        through_launcher: Whether Google's launcher sends it, and not the user's own program.
        images: What stands before the command of containers with these images.

    Raises:
        TaskFailed: the service would refuse it; every reason is named.
    """
    findings = check_custom_job(message, region=region)
    if errors := [sentence(finding) for finding in findings if finding.severity == "error"]:
        text = f"Vertex would refuse this job: {'; '.join(errors)}"
        raise TaskFailed(text, exit_code=EXIT_USER_ERROR, is_retryable=False)
    for finding in findings:
        if finding.rule not in QUIET_RULES:
            warn(sentence(finding))
    if through_launcher:
        known = {(finding.rule, finding.where) for finding in findings}
        for finding in check_custom_job(message, region=region, lenient=False):
            if finding.severity == "error" and (finding.rule, finding.where) not in known:
                warn(f"the service takes it, but Google's launcher refuses it: {sentence(finding)}")
    return CustomJob.of(custom_job_fields(message), images or {})


def sentence(finding: Finding) -> str:
    """A finding with its place and the nearest valid choices."""
    nearest = f" (nearest: {', '.join(finding.alternatives)})" if finding.alternatives else ""
    return f"{finding.where}: {finding.message}{nearest}"
