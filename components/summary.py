"""Step `summary`: the exit handler, which says how the run ended whatever happened."""

from kfp import dsl

from training_job.image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def summary(status: dsl.PipelineTaskFinalStatus) -> str:
    """Print the state of the run and, after a failure, what failed.

    Args:
        status: Filled in by the service when everything else has ended.

    Returns:
        The line that was printed.
    """
    from training_job.outcome import one_line

    line = one_line(status)
    print(line)
    return line
