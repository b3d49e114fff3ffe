"""Step `prepare`: pictures in, a dataset of records out."""

from kfp import dsl

from training_job.image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def prepare(
    source: str,
    image_size: int,
    max_examples: int,
    max_bad_fraction: float,
    seed: int,
    dataset: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.HTML],
) -> None:
    """Read the source's pictures, resize them once and write them as ArrayRecord shards with their statistics.

    Args:
        source: `digits`, a folder with one sub-folder per class, or `tfds:NAME`.
        image_size: Side of the square pictures that the model will see, in pixels.
        max_examples: Use at most this many pictures, for a trial; 0 uses all.
        max_bad_fraction: Share of unreadable pictures (0 to 1) above which the step fails.
        seed: Decides which pictures a trial (`max_examples`) takes.
        dataset: The dataset; its metadata has fingerprint, classes and counts.
        report: Page with the statistics, sample pictures and what was left out.
    """
    from trainer.command_line import reported
    from trainer.prepare import prepare as prepare_dataset

    dataset.metadata.update(
        reported(prepare_dataset)(
            source=source,
            output_directory=dataset.path,
            report_path=report.path,
            image_size=image_size,
            max_examples=max_examples,
            max_bad_fraction=max_bad_fraction,
            seed=seed,
        )
    )
