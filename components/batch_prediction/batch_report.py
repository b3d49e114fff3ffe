"""The `report` step of the batch prediction: counts per class and one list of all answers."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def batch_report(
    predictions: dsl.Input[dsl.Artifact],
    bad_images: dsl.Input[dsl.Artifact],
    num_images: int,
    model: str,
    max_bad_fraction: float,
    report: dsl.Output[dsl.HTML],
    results: dsl.Output[dsl.Artifact],
    metrics: dsl.Output[dsl.Metrics],
) -> None:
    """Read the predictions, and write a page and one list of them.

    Args:
        predictions: Folder that the batch prediction made.
        bad_images: Images that could not be read.
        num_images: Number of instances.
        model: Resource name of the version that predicted.
        max_bad_fraction: Fraction of images without a prediction (0 to 1) above which the step fails.
        report: Page with the counts per class.
        results: File name, label and probability of each image, JSON Lines.
        metrics: Numbers of predictions and of images without one.
    """
    from trainer.results.batch.report import report as write_report, report_errors

    metrics.metadata.update(
        report_errors(write_report)(
            predictions_directory=predictions.path,
            bad_images_path=bad_images.path,
            num_images=num_images,
            model=model,
            max_bad_fraction=max_bad_fraction,
            report_path=report.path,
            results_path=results.path,
        )
    )
