"""The `summary` step: the exit handler, which prints how the run ended and, when asked, sends it."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def summary(status: dsl.PipelineTaskFinalStatus, notify_webhook: str = "") -> str:
    """Print the final state of the run and, after a failure, its cause; send both when asked.

    Args:
        status: Final state, filled in by the service when all other steps have ended.
        notify_webhook: Resource name of the secret with a webhook's address; empty for none.

    Returns:
        The printed line.
    """
    from components.summary.report import report_end

    return report_end(status, secret=notify_webhook)
