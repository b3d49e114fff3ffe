"""The image classification pipeline: prepare, plan, train, evaluate, export, register."""

import inspect
from collections.abc import Callable
from typing import Any

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from google_cloud_pipeline_components.v1.vertex_notification_email import VertexNotificationEmailOp
from kfp import dsl

from components.evaluate import evaluate
from components.export import export
from components.plan import plan
from components.prepare import prepare
from components.record import record
from components.summary import summary
from pipelines.settings import Settings

NAME = "image-training"
LOCATION = "{{$.pipeline_google_cloud_location}}"
"""Resolved at run time to the region the pipeline was submitted to; ModelUploadOp would default to us-central1."""


@dsl.pipeline(
    name="train-unless-finished", description="Requests the machines, unless this very training has been done."
)
def train_unless_finished(
    is_finished: bool,
    worker_pool_specs: list[dict[str, str]],
    restart_job_on_worker_restart: bool,
    timeout: str,
    display_name: str,
    base_output_directory: str,
    scheduling_strategy: str,
    service_account: str,
    network: str,
    tensorboard: str,
    kms_key: str,
) -> None:
    """A graph of its own: what follows depends on it whether or not the job inside it was needed."""
    with dsl.If(is_finished == False, name="not-finished"):  # noqa: E712 - this builds an expression
        CustomTrainingJobOp(
            display_name=display_name,
            location=LOCATION,
            worker_pool_specs=worker_pool_specs,
            timeout=timeout,
            restart_job_on_worker_restart=restart_job_on_worker_restart,
            base_output_directory=base_output_directory,
            strategy=scheduling_strategy,
            service_account=service_account,
            network=network,
            tensorboard=tensorboard,
            encryption_spec_key_name=kms_key,
        ).set_display_name("train").set_caching_options(False)


def image_training(settings: Settings) -> Any:
    """Return the pipeline, ready to be compiled, with the settings as its images and default values."""
    machines = settings.machines

    def graph(
        source: str = "digits",
        model: str = "convnet",
        weights: str = "default",
        trainable: str = "default",
        image_size: int = 32,
        epochs: int = 20,
        max_steps: int = 0,
        max_examples: int = 0,
        max_bad_fraction: float = 0.1,
        global_batch_size: int = 64,
        learning_rate: float = 0.002,
        augment: str = "shift",
        seed: int = 0,
        machine_type: str = machines.machine_type,
        accelerator_type: str = machines.accelerator_type,
        accelerator_count: int = machines.accelerator_count,
        replica_count: int = machines.replica_count,
        parameter_server_count: int = machines.parameter_server_count,
        scheduling_strategy: str = machines.scheduling_strategy,
        timeout_seconds: int = machines.timeout_seconds,
        exact: bool = False,
        minimum_accuracy: float = 0.8,
        model_name: str = NAME,
        serving_image: str = settings.serving_image,
        run_label: str = "",
        service_account: str = "",
        network: str = "",
        tensorboard: str = "",
        kms_key: str = "",
        recipients: list[str] = list(settings.recipients or ()),  # noqa: B006 - kfp reads it once, as the default
    ) -> None:
        """Train an image classifier on your pictures and register it when it is good enough.

        Args:
            source: `digits`, a folder (gs://, or an absolute path) with one sub-folder per class, or `tfds:NAME`.
            model: `convnet` (small), `resnet50`, `efficientnetv2-b0` and the like, or `package.module:function`.
            weights: `default` (imagenet where the model has them), `imagenet`, `none`, or the path of a weights file.
            trainable: `head` (a pretrained base stays frozen), `all` (fine-tuning), or `default` (head if pretrained).
            image_size: Side of the square pictures the model sees, in pixels; 224 or 300 for resnet50.
            epochs: Passes over the training split.
            max_steps: Stop after this many steps, for a trial; 0 does all epochs.
            max_examples: Use at most this many pictures, for a trial; 0 uses all.
            max_bad_fraction: Share of unreadable pictures (0 to 1) above which the run fails.
            global_batch_size: Examples per step over all devices together.
            learning_rate: Peak learning rate.
            augment: Random changes of training pictures: `none`, `shift`, `flip-and-shift` or `crop-and-flip`.
            seed: Order of examples, augmentation and initial weights follow from it.
            machine_type: Machine type of each training replica, e.g. n1-standard-8, g2-standard-12, a2-highgpu-1g.
            accelerator_type: GPU, e.g. NVIDIA_TESLA_T4, NVIDIA_L4, NVIDIA_TESLA_A100; empty trains on CPUs.
            accelerator_count: GPUs per machine.
            replica_count: Machines that train together.
            parameter_server_count: Machines that hold the variables, for asynchronous training; 0 trains synchronously.
            scheduling_strategy: STANDARD, SPOT (cheaper, may be taken away) or FLEX_START (waits for capacity).
            timeout_seconds: Longest time the training job may run.
            exact: Same bits of the weights on every run and after every restart, at some cost in speed.
            minimum_accuracy: Export and register only at this test accuracy (0 to 1) or more.
            model_name: Name in the Model Registry.
            serving_image: Prediction container the registered model is served with.
            run_label: Another text trains the same configuration once more.
            service_account: Account the training job runs as; empty for Vertex AI's own. TensorBoard needs one.
            network: VPC network to peer with: projects/NUMBER/global/networks/NAME.
            tensorboard: TensorBoard instance: projects/NUMBER/locations/REGION/tensorboards/ID.
            kms_key: Customer-managed key for job and model: projects/P/locations/REGION/keyRings/R/cryptoKeys/K.
            recipients: E-mail addresses that are told how the run ended.
        """
        with dsl.ExitHandler(
            _ours(summary(), settings)
            if settings.recipients is None
            else VertexNotificationEmailOp(recipients=recipients),
            name="run",
        ):
            data = _ours(
                prepare(
                    source=source,
                    image_size=image_size,
                    max_examples=max_examples,
                    max_bad_fraction=max_bad_fraction,
                    seed=seed,
                ),
                settings,
            )
            planned = _ours(
                plan(
                    dataset=data.outputs["dataset"],
                    image=settings.image,
                    region=LOCATION,
                    pipeline_root=dsl.PIPELINE_ROOT_PLACEHOLDER,
                    model_name=model_name,
                    model=model,
                    weights=weights,
                    trainable=trainable,
                    epochs=epochs,
                    max_steps=max_steps,
                    global_batch_size=global_batch_size,
                    learning_rate=learning_rate,
                    augment=augment,
                    seed=seed,
                    run_label=run_label,
                    machine_type=machine_type,
                    accelerator_type=accelerator_type,
                    accelerator_count=accelerator_count,
                    replica_count=replica_count,
                    parameter_server_count=parameter_server_count,
                    scheduling_strategy=scheduling_strategy,
                    timeout_seconds=timeout_seconds,
                    exact=exact,
                    minimum_accuracy=minimum_accuracy,
                    serving_image=serving_image,
                    service_account=service_account,
                    network=network,
                    tensorboard=tensorboard,
                    kms_key=kms_key,
                ),
                settings,
            )
            with dsl.If(planned.outputs["has_nothing_new"] == False, name="something-new"):  # noqa: E712
                job = (
                    "is_finished",
                    "worker_pool_specs",
                    "restart_job_on_worker_restart",
                    "timeout",
                    "display_name",
                    "base_output_directory",
                )
                trained = train_unless_finished(
                    **{name: planned.outputs[name] for name in job},
                    scheduling_strategy=scheduling_strategy,
                    service_account=service_account,
                    network=network,
                    tensorboard=tensorboard,
                    kms_key=kms_key,
                )
                evaluated = _ours(
                    evaluate(
                        checkpoint_directory=planned.outputs["checkpoint_directory"], dataset=data.outputs["dataset"]
                    ).after(trained),
                    settings,
                )
                with dsl.If(evaluated.outputs["Output"] >= minimum_accuracy, name="good-enough"):
                    _register(
                        planned.outputs["checkpoint_directory"],
                        data.outputs["dataset"],
                        settings,
                        model_name=model_name,
                        serving_image=serving_image,
                        kms_key=kms_key,
                    )

    if settings.recipients is None:
        _drop_parameter(graph, "recipients")
    return dsl.pipeline(name=NAME, display_name="Image training")(graph)


def _register(
    checkpoint_directory: Any, dataset: Any, settings: Settings, *, model_name: str, serving_image: str, kms_key: str
) -> None:
    exported = _ours(export(checkpoint_directory=checkpoint_directory, dataset=dataset), settings)
    servable = dsl.importer(
        artifact_uri=exported.outputs["Output"],
        artifact_class=UnmanagedContainerModel,
        metadata={"containerSpec": {"imageUri": serving_image}},
    )
    registered = ModelUploadOp(
        display_name=model_name,
        location=LOCATION,
        unmanaged_container_model=servable.output,
        encryption_spec_key_name=kms_key,
    )
    registered.set_display_name("register").set_caching_options(False)
    noted = record(
        checkpoint_directory=checkpoint_directory,
        model_name=model_name,
        serving_image=serving_image,
        registered_model=registered.outputs["model"],
    )
    _ours(noted, settings)


def _drop_parameter(graph: Callable[..., Any], name: str) -> None:
    # kfp reads the signature: what it does not see does not become a field of the console's form.
    signature = inspect.signature(graph)
    graph.__signature__ = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != name])  # type: ignore[attr-defined]


def _ours(task: Any, settings: Settings) -> Any:
    # Caching keys on the folder's name, not on what is in it: no step may answer from an earlier run.
    return task.set_container_image(settings.image).set_caching_options(False)
