"""Step `evaluate`: how good the best checkpoint is on pictures it has never seen."""

from kfp import dsl

from training_job.image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def evaluate(
    checkpoint_directory: str,
    dataset: dsl.Input[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    confusion_matrix: dsl.Output[dsl.ClassificationMetrics],
    report: dsl.Output[dsl.HTML],
) -> float:
    """Measure the checkpoint that was best on the validation split on the test split.

    Args:
        checkpoint_directory: Where the training step left its checkpoints.
        dataset: The dataset made by `prepare`.
        metrics: Accuracy, loss and the number of examples.
        confusion_matrix: Rows are the true classes, columns the predicted ones.
        report: Page with curves, confusion matrix and the most wrongly classified pictures.

    Returns:
        Accuracy on the test split, 0 to 1.
    """
    from trainer.command_line import reported
    from trainer.evaluate import evaluate as measure

    result = reported(measure)(
        dataset_directory=dataset.path,
        checkpoint_directory=checkpoint_directory,
        report_path=report.path,
        is_noted=True,
    )
    metrics.metadata.update(result.metrics)
    confusion_matrix.log_confusion_matrix(list(result.class_names), result.confusion_matrix)
    return result.accuracy
