"""The sentence in which the exit handler reports the end of a run."""

from kfp.dsl import PipelineTaskFinalStatus

from components.summary.report import report_end


def status(state: str, message: str | None) -> PipelineTaskFinalStatus:
    return PipelineTaskFinalStatus(
        state=state,
        pipeline_job_resource_name="projects/p/locations/l/pipelineJobs/image-training-1",
        pipeline_task_name="run",
        error_code=None,
        error_message=message,
    )


def test_success_is_short() -> None:
    assert report_end(status("SUCCEEDED", None), secret="") == "image-training-1: SUCCEEDED"


def test_failure_names_the_cause_in_one_line() -> None:
    assert (
        report_end(status("FAILED", "prepare:\n  no images"), secret="")
        == "image-training-1: FAILED: prepare: no images"
    )
