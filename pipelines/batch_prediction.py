"""The batch prediction pipeline: the champion predicts the classes of all images of a folder or manifest."""

from typing import Any

from google_cloud_pipeline_components.v1.batch_predict_job import ModelBatchPredictOp
from kfp import dsl

from components.batch_prediction.batch_report import batch_report
from components.batch_prediction.find_champion import find_champion
from components.batch_prediction.write_instances import write_instances
from pipelines import training_job
from pipelines.release import HERE
from pipelines.settings import Settings
from pipelines.steps import step

_NAME = "batch-prediction"
_KEY_FIELD = "file_name"
"""The same as in `trainer.results.batch.instances`, which a pipeline does not import."""


def batch_prediction(settings: Settings) -> Any:
    """Return the pipeline to compile, with the images of the settings."""

    def graph(
        source: str,
        model_name: str = "image-training",
        max_bad_fraction: float = settings.preparing.max_bad_fraction,
        machine_type: str = "n1-standard-4",
        accelerator_type: str = "",
        accelerator_count: int = 0,
        starting_replica_count: int = 1,
        max_replica_count: int = 1,
        batch_size: int = 64,
    ) -> None:
        """Predict the classes of images with the champion.

        Args:
            source: A folder (gs://, or an absolute path) with images at any depth, manifests such as
                `gs://BUCKET/new.jsonl`, or `tfds:NAME`; labels are ignored.
            model_name: Display name in the Model Registry; its version with the alias `champion` predicts.
            max_bad_fraction: Fraction of images (0 to 1) that cannot be read, or get no prediction, above which the run
                fails.
            machine_type: Machine type of each replica that predicts, e.g. n1-standard-4.
            accelerator_type: GPU type of each replica, e.g. NVIDIA_TESLA_T4; empty for CPUs.
            accelerator_count: GPUs per replica.
            starting_replica_count: Replicas at the start.
            max_replica_count: Maximum number of replicas.
            batch_size: Images in one request to a replica.
        """
        champion = step(find_champion(model_name=model_name, **HERE), settings.step_image).outputs
        written = step(
            write_instances(source=source, image_size=champion["image_size"], max_bad_fraction=max_bad_fraction),
            settings.step_image,
        ).outputs
        predicted = ModelBatchPredictOp(
            job_display_name=f"{_NAME}-{dsl.PIPELINE_JOB_ID_PLACEHOLDER}",
            location=training_job.LOCATION,
            model=champion["champion"],
            instances_format="jsonl",
            predictions_format="jsonl",
            key_field=_KEY_FIELD,
            gcs_source_uris=written["uris"],
            gcs_destination_output_uri_prefix=written["destination"],
            machine_type=machine_type,
            accelerator_type=accelerator_type,
            accelerator_count=accelerator_count,
            starting_replica_count=starting_replica_count,
            max_replica_count=max_replica_count,
            manual_batch_tuning_parameters_batch_size=batch_size,
            service_account=settings.resources.service_account,
            encryption_spec_key_name=settings.resources.kms_key,
        )
        predicted.set_display_name("predict").set_caching_options(False)
        reported = batch_report(
            predictions=predicted.outputs["gcs_output_directory"],
            bad_images=written["bad_images"],
            num_images=written["num_images"],
            model=champion["version"],
            max_bad_fraction=max_bad_fraction,
        )
        step(reported, settings.step_image).set_display_name("report")

    return dsl.pipeline(name=_NAME, display_name="Batch prediction")(graph)


pipeline = batch_prediction(Settings())
"""The only pipeline of this module, for `kfp dsl compile --py pipelines/batch_prediction.py`."""
