"""The `evaluate` step: the accuracy of the best checkpoint on images it has never seen."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def evaluate(
    checkpoint_directory: str,
    dataset: dsl.Input[dsl.Dataset],
    metrics: dsl.Output[dsl.Metrics],
    confusion_matrix: dsl.Output[dsl.ClassificationMetrics],
    report: dsl.Output[dsl.HTML],
    predictions: dsl.Output[dsl.Artifact],
    minimum_score: float,
) -> float:
    """Evaluate the best checkpoint (by validation) on the test split.

    Args:
        checkpoint_directory: Folder with the checkpoints of the training job.
        dataset: The dataset written by `prepare`.
        metrics: Accuracy, loss and the number of examples.
        confusion_matrix: Rows are true classes, columns are predicted classes.
        report: Page with curves, the confusion matrix and the worst errors.
        predictions: Predictions on validation and test images, JSON Lines (docs/evaluation.md).
        minimum_score: Score that the model has to reach; below it, the metrics have the reason why none is made.

    Returns:
        Score of the run's metric on the test split, 0 to 1.
    """
    from trainer.evaluate import evaluate as measure, report_errors

    result = report_errors(measure)(
        dataset_directory=dataset.path,
        checkpoint_directory=checkpoint_directory,
        report_path=report.path,
        predictions_path=predictions.path,
        is_noted=True,
        minimum_score=minimum_score,
    )
    metrics.metadata.update(result.metrics)
    confusion_matrix.log_confusion_matrix(list(result.class_names), result.confusion_matrix)
    return result.score
