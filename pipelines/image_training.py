"""The image classification pipeline: prepare, plan, train, evaluate, export and register."""

from typing import Any

from google_cloud_pipeline_components.v1.vertex_notification_email import VertexNotificationEmailOp
from kfp import dsl

from components.evaluate import evaluate
from components.plan.plan import plan
from components.prepare.prepare import prepare
from components.summary.summary import summary
from pipelines import release, signature, training
from pipelines.settings import Settings
from pipelines.steps import sized, step, with_gpus

_NAME = "image-training"
_JOB_FIELDS = (
    "is_finished",
    "worker_pool_specs",
    "restart_job_on_worker_restart",
    "timeout",
    "display_name",
    "base_output_directory",
    "max_wait_duration",
    "persistent_resource_id",
)
"""Outputs of `plan` that the training job takes as they are."""


def image_training(settings: Settings) -> Any:
    """Return the pipeline to compile, with the images and default values of the settings."""
    machines = settings.machines

    def graph(
        source: str = "digits",
        model: str = "convnet",
        weights: str = "default",
        trainable: str = "default",
        image_size: int = 32,
        epochs: int = 20,
        max_steps: int = 0,
        patience: int = 0,
        minimum_accuracy_gain: float = 0.0,
        metric: str = "accuracy",
        max_examples: int = 0,
        max_bad_fraction: float = 0.1,
        strict: str = "",
        prepare_engine: str = "local",
        beam_runner: str = "",
        dataflow_machine_type: str = "e2-standard-4",
        dataflow_max_workers: int = 10,
        dataflow_disk_size_gb: int = 50,
        dataflow_subnetwork: str = "",
        dataflow_service_account: str = "",
        reread: bool = False,
        global_batch_size: int = 64,
        learning_rate: float = 0.002,
        learning_rate_schedule: str = "cosine",
        warmup_fraction: float = 0.05,
        optimizer: str = "adam",
        augment: str = "shift",
        shuffle: str = "default",
        seed: int = 0,
        machine_type: str = machines.machine_type,
        accelerator_type: str = machines.accelerator_type,
        accelerator_count: int = machines.accelerator_count,
        replica_count: int = machines.replica_count,
        parameter_server_count: int = machines.parameter_server_count,
        scheduling_strategy: str = machines.scheduling_strategy,
        timeout_seconds: int = machines.timeout_seconds,
        max_wait_seconds: int = machines.max_wait_seconds,
        boot_disk_type: str = machines.boot_disk_type,
        boot_disk_size_gb: int = machines.boot_disk_size_gb,
        reservation: str = machines.reservation,
        persistent_resource_id: str = machines.persistent_resource_id,
        exact: bool = False,
        profile_steps: str = "",
        minimum_score: float = 0.8,
        max_regression: float = 0.0,
        must_improve: bool = False,
        min_compared_images: int = 100,
        force_promotion: bool = False,
        model_name: str = _NAME,
        serving_image: str = settings.serving_image,
        deploy_endpoint: str = "",
        deploy_machine_type: str = "n1-standard-2",
        deploy_min_replicas: int = 1,
        deploy_max_replicas: int = 1,
        deploy_accelerator_type: str = "",
        deploy_accelerator_count: int = 0,
        run_label: str = "",
        service_account: str = "",
        network: str = "",
        tensorboard: str = "",
        kms_key: str = "",
        recipients: list[str] = list(settings.recipients or ()),  # noqa: B006 - kfp reads it once, as the default
    ) -> None:
        """Train an image classifier and register it if it is accurate enough.

        Args:
            source: `digits`, a folder (gs://, or an absolute path) with one sub-folder per class, manifests such as
                `gs://BUCKET/export/*.jsonl`, or `tfds:NAME`.
            model: `convnet` (small), `resnet50`, `efficientnetv2-b0` etc., or your own as `package.module:function`.
            weights: `default` (imagenet, or none), `imagenet`, `none`, a file, `run:ID` or `model:NAME@ALIAS`.
            trainable: `head` (freeze a pretrained base), `all` (fine-tune), or `default` (`head` if pretrained).
            image_size: Height and width of the images, in pixels; 224 or 300 for resnet50.
            epochs: Passes over the training split.
            max_steps: Maximum number of training steps, for a trial; 0 for no limit.
            patience: Stop early after this many validations (one per epoch) without an improvement; 0 for never.
            minimum_accuracy_gain: Smallest gain of `metric` (0 to 1) that counts as an improvement; 0 for any.
            metric: Metric that judges models: `accuracy`, `balanced-accuracy` (mean recall of classes) or `macro-f1`.
            max_examples: Maximum number of images, for a trial; 0 uses all.
            max_bad_fraction: Fraction of unreadable images (0 to 1) above which the run fails.
            strict: Warnings about the images that are errors: comma-separated names, such as `leaks,label-conflicts`.
            prepare_engine: `local` reads the images in the `prepare` step, `dataflow` on many machines.
            beam_runner: `FnApiRunner` for a trial of `dataflow` without Dataflow; empty otherwise.
            dataflow_machine_type: Machine type of each Dataflow worker.
            dataflow_max_workers: Maximum number of Dataflow workers, 1 to 4000.
            dataflow_disk_size_gb: Disk of each Dataflow worker, 30 to 65536.
            dataflow_subnetwork: Subnetwork of the workers, which have no public address: regions/R/subnetworks/NAME.
            dataflow_service_account: Service account of the workers; empty for the project's default one.
            reread: Read all images again, also those that have not changed since the previous run.
            global_batch_size: Examples per step over all devices of all machines.
            learning_rate: Peak learning rate.
            learning_rate_schedule: Learning rate after the warm-up: `cosine` (decays to zero) or `constant`.
            warmup_fraction: Fraction of all steps (0 to 0.9) in which the learning rate rises linearly from zero.
            optimizer: `adam`, `rmsprop`, or `sgd` (with momentum 0.9).
            augment: Random changes to training images: `none`, `shift`, `flip-and-shift` or `crop-and-flip`.
            shuffle: `whole`, `blocks` (for data much larger than memory), or `default` (`blocks` above 32 GiB).
            seed: Seed of initial weights, example order, augmentation and dropout.
            machine_type: Machine type of each training replica, e.g. g2-standard-8, n1-standard-8, a2-highgpu-1g.
            accelerator_type: GPU type, e.g. NVIDIA_L4, NVIDIA_TESLA_T4, NVIDIA_TESLA_A100; empty to train on CPUs.
            accelerator_count: GPUs per machine.
            replica_count: Number of machines that train: the chief and the workers.
            parameter_server_count: Parameter servers for asynchronous training; 0 trains synchronously.
            scheduling_strategy: STANDARD, SPOT (cheaper, may be preempted) or FLEX_START (waits for capacity).
            timeout_seconds: Maximum duration of the training job, in seconds.
            max_wait_seconds: Maximum wait for the machines with FLEX_START, in seconds; it has no effect otherwise.
            boot_disk_type: Boot disk type: pd-ssd, pd-standard or hyperdisk-balanced; empty for the machine's default.
            boot_disk_size_gb: Boot disk of each machine that trains, 100 to 64000; a dataset in a bucket must fit.
            reservation: ANY, or projects/P/zones/Z/reservations/R; empty for none.
            persistent_resource_id: Id of a persistent resource to train on; empty for the pipeline's own, if any.
            exact: Bit-identical weights on every run and after every restart, at some cost in speed.
            profile_steps: Training steps to profile for TensorBoard, e.g. 100-109; empty for none.
            minimum_score: Register the model only at this test score (0 to 1) or above (formerly minimum_accuracy).
            max_regression: Largest accepted loss of test score (0 to 1) against the champion.
            must_improve: Replace the champion only by a significantly better model (p < 0.05).
            min_compared_images: Fewest test images that neither model has seen and that are enough for a comparison.
            force_promotion: Promote the model even if a constant answer or the champion is as good, or better.
            model_name: Display name in the Model Registry; each registered model is a version of it.
            serving_image: Prediction container image with a server of its own; empty for this project's own server.
            deploy_endpoint: Display name of the endpoint to deploy a new champion to; empty for none.
            deploy_machine_type: Machine type of each replica of the endpoint.
            deploy_min_replicas: Fewest replicas of the endpoint, 1 or more.
            deploy_max_replicas: Most replicas of the endpoint.
            deploy_accelerator_type: GPU type of each replica, e.g. NVIDIA_TESLA_T4; empty for CPUs.
            deploy_accelerator_count: GPUs of each replica.
            run_label: Any text; a new one trains an unchanged configuration again.
            service_account: Service account of the training job; empty for the default one. TensorBoard needs one.
            network: VPC network to peer with: projects/NUMBER/global/networks/NAME.
            tensorboard: TensorBoard instance: projects/NUMBER/locations/REGION/tensorboards/ID.
            kms_key: Encryption key of the job and the model: projects/P/locations/REGION/keyRings/R/cryptoKeys/K.
            recipients: E-mail addresses to notify when the run has ended.
        """
        parameters = dict(locals())
        # What `plan` needs of the pipeline's parameters has the same name there.
        of_plan = {name: value for name, value in parameters.items() if name in plan.component_spec.inputs}
        at_the_end = (
            step(summary(webhook_secret=settings.targets.secret, topic=settings.targets.topic), settings.step_image)
            if settings.recipients is None
            else VertexNotificationEmailOp(recipients=recipients).set_caching_options(False)
        )
        with dsl.ExitHandler(at_the_end, name="run"):
            prepared = prepare(
                source=source,
                image_size=image_size,
                max_examples=max_examples,
                max_bad_fraction=max_bad_fraction,
                strict=strict,
                prepare_engine=prepare_engine,
                beam_runner=beam_runner,
                project=training.PROJECT,
                region=training.LOCATION,
                image=settings.step_image,
                dataflow_machine_type=dataflow_machine_type,
                dataflow_max_workers=dataflow_max_workers,
                dataflow_disk_size_gb=dataflow_disk_size_gb,
                dataflow_subnetwork=dataflow_subnetwork,
                dataflow_service_account=dataflow_service_account,
                settings=of_plan,
                pipeline_root=dsl.PIPELINE_ROOT_PLACEHOLDER,
                reread=reread,
            )
            dataset = sized(step(prepared, settings.step_image), settings.steps).outputs["dataset"]
            planned = plan(
                dataset=dataset,
                image=settings.image,
                region=training.LOCATION,
                pipeline_root=dsl.PIPELINE_ROOT_PLACEHOLDER,
                default_persistent_resource_id=training.PERSISTENT_RESOURCE,
                **of_plan,
            )
            plan_outputs = step(planned, settings.step_image).outputs
            with dsl.If(plan_outputs["has_nothing_new"] == False, name="something-new"):  # noqa: E712
                trained = training.train_unless_finished(
                    **{name: plan_outputs[name] for name in _JOB_FIELDS},
                    scheduling_strategy=scheduling_strategy,
                    service_account=service_account,
                    network=network,
                    tensorboard=tensorboard,
                    kms_key=kms_key,
                )
                checkpoints = plan_outputs["checkpoint_directory"]
                evaluated = step(
                    evaluate(checkpoint_directory=checkpoints, dataset=dataset).after(trained), settings.image
                )
                with_gpus(evaluated, settings.steps)
                with dsl.If(evaluated.outputs["Output"] >= minimum_score, name="good-enough"):
                    release.release(checkpoints, dataset, settings, evaluated=evaluated.outputs, parameters=parameters)

    if settings.recipients is None:
        signature.drop(graph, "recipients")
    elif not settings.recipients:
        signature.require(graph, "recipients")
    return dsl.pipeline(name=_NAME, display_name="Image training")(graph)


pipeline = image_training(Settings())
"""The only pipeline of this module, for `kfp dsl compile --py pipelines/image_training.py`."""
