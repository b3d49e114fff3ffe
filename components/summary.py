"""The `summary` step: the exit handler, which prints how the run ended."""

from kfp import dsl

from training_job.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def summary(status: dsl.PipelineTaskFinalStatus) -> str:
    """Print the final state of the run and, after a failure, its cause.

    Args:
        status: Final state, filled in by the service when all other steps have ended.

    Returns:
        The printed line.
    """
    from training_job.report import one_line

    line = one_line(status)
    print(line)
    return line
