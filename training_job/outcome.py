"""The sentence in which a run's end is told."""

from kfp.dsl import PipelineTaskFinalStatus


def one_line(status: PipelineTaskFinalStatus) -> str:
    """Return e.g. `image-training-20260101: SUCCEEDED`, with the cause when there is one."""
    job = status.pipeline_job_resource_name.rpartition("/")[2]
    cause = " ".join((status.error_message or "").split())
    return f"{job}: {status.state}" + (f": {cause}" if cause else "")
