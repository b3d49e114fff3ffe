"""The `prepare` step: images in, a dataset of records out."""

from kfp import dsl

from training_job.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def prepare(
    source: str,
    image_size: int,
    max_examples: int,
    max_bad_fraction: float,
    dataset: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.HTML],
    prepare_engine: str = "local",
    beam_runner: str = "",
    pipeline_root: str = "",
    reread: bool = False,
    settings: dict[str, str] = {},  # noqa: B006 - kfp reads it once, as the default
) -> None:
    """Read the images of the source, resize them once and write them as ArrayRecord shards with their statistics.

    Args:
        source: `digits`, a folder with one sub-folder per class, Vertex AI's import files (.csv, .jsonl), or
            `tfds:NAME`.
        image_size: Height and width of the stored images, in pixels.
        max_examples: Maximum number of images, for a trial; 0 uses all.
        max_bad_fraction: Share of unreadable images (0 to 1) above which the step fails.
        dataset: The dataset; its metadata has the fingerprint, the classes and the counts.
        report: Page with the statistics, sample images and skipped files.
        prepare_engine: `local` reads the images in this step, `dataflow` on the workers of a Dataflow job.
        beam_runner: `FnApiRunner` uses two processes of this step instead of Dataflow, for tests.
        pipeline_root: Folder or gs:// prefix; by its `prepared/`, the next run finds this dataset and reads only images
            that are new.
        reread: Read all images, also those that the previous dataset has.
        settings: Values of other steps by name; wrong ones end this step before it reads an image.
    """
    from training_job.prepare import prepare as prepare_dataset, reported

    dataset.metadata.update(
        reported(prepare_dataset)(
            settings=settings,
            source=source,
            output_directory=dataset.path,
            report_path=report.path,
            image_size=image_size,
            max_examples=max_examples,
            max_bad_fraction=max_bad_fraction,
            prepare_engine=prepare_engine,
            beam_runner=beam_runner,
            pipeline_root=pipeline_root,
            reread=reread,
        )
    )
