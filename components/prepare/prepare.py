"""The `prepare` step: images in, a dataset of records out."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def prepare(
    source: str,
    image_size: int,
    max_examples: int,
    max_bad_fraction: float,
    dataset: dsl.Output[dsl.Dataset],
    report: dsl.Output[dsl.HTML],
    changes: dsl.Output[dsl.HTML],
    change_metrics: dsl.Output[dsl.Metrics],
    strict: str = "",
    prepare_engine: str = "local",
    project: str = "",
    region: str = "",
    image: str = "",
    dataflow: dict[str, str] = {},  # noqa: B006 - kfp reads it once, as the default
    pipeline_root: str = "",
    reread: bool = False,
    recipe: str = "",
    settings: dict[str, str] = {},  # noqa: B006
) -> None:
    """Read the images of the source, resize them once and write them as ArrayRecord shards with their statistics.

    Args:
        source: `digits`, a folder with one sub-folder per class, Vertex AI's import files (.csv, .jsonl), or
            `tfds:NAME`.
        image_size: Height and width of the stored images, in pixels.
        max_examples: Maximum number of images, for a trial; 0 uses all.
        max_bad_fraction: Share of unreadable images (0 to 1) above which the step fails.
        dataset: The dataset; its metadata has the fingerprint, the classes and the counts.
        report: Page with the statistics, sample images, warnings and bad files.
        changes: Page on what changed since the previous dataset.
        change_metrics: Figures of that page; none without a previous dataset.
        strict: Comma-separated names of warnings that count as errors, such as `leaks,label-conflicts`.
        prepare_engine: `local` reads the images in this step, `dataflow` on the workers of a Dataflow job.
        project: Project of the Dataflow job.
        region: Region of the training job and of the Dataflow job.
        image: Container image of this step, and of the Dataflow workers.
        dataflow: Machine type, number, disk, subnetwork and service account of the Dataflow workers.
        pipeline_root: Folder or gs:// prefix; in its `prepared/`, the next run finds this dataset and reads only new
            images.
        reread: Read all images, including those that have not changed.
        recipe: Recipe of the training; an input of its own, because quotes in a structure may not survive.
        settings: Values of other steps by name, and the training job's `image`; wrong ones, and machines that Vertex AI
            would refuse, end this step before it reads an image.
    """
    from components.prepare.dataset import prepare as prepare_dataset, report_errors

    dataset.metadata.update(
        report_errors(prepare_dataset)(
            settings=settings | {"recipe": recipe},
            dataflow={
                "project": project,
                "region": region,
                "image": image,
                "folder": pipeline_root.rstrip("/"),
                **dataflow,
            },
            source=source,
            output_directory=dataset.path,
            report_path=report.path,
            image_size=image_size,
            max_examples=max_examples,
            max_bad_fraction=max_bad_fraction,
            changes_path=changes.path,
            change_metrics=change_metrics.metadata,
            strict=strict,
            prepare_engine=prepare_engine,
            pipeline_root=pipeline_root,
            reread=reread,
        )
    )
