"""Step `plan`: which machines train what, and whether anything is left to do at all."""

from typing import NamedTuple

from kfp import dsl

from training_job.image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def plan(
    dataset: dsl.Input[dsl.Dataset],
    report: dsl.Output[dsl.HTML],
    image: str,
    region: str,
    pipeline_root: str,
    model_name: str,
    model: str,
    weights: str,
    trainable: str,
    epochs: int,
    max_steps: int,
    global_batch_size: int,
    learning_rate: float,
    augment: str,
    seed: int,
    run_label: str,
    machine_type: str,
    accelerator_type: str,
    accelerator_count: int,
    replica_count: int,
    parameter_server_count: int,
    scheduling_strategy: str,
    timeout_seconds: int,
    exact: bool,
    minimum_accuracy: float,
    serving_image: str,
    service_account: str,
    network: str,
    tensorboard: str,
    kms_key: str,
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "TrainingPlan",
    [
        ("worker_pool_specs", list),
        ("restart_job_on_worker_restart", bool),
        ("timeout", str),
        ("display_name", str),
        ("run_id", str),
        ("base_output_directory", str),
        ("checkpoint_directory", str),
        ("is_finished", bool),
        ("has_nothing_new", bool),
    ],
):
    """Check the machines seconds before they are requested, and name the run by what it computes.

    Args:
        dataset: The dataset made by `prepare`; its fingerprint is part of the run's identity.
        report: Page with the machines, the hyperparameters and the findings.
        image: Container image of the training job.
        region: Vertex AI region the pipeline runs in.
        pipeline_root: Folder under which `training/<run id>` holds what has to outlive this run.
        model_name: Name in the Model Registry, also used for the job.
        model: Architecture, e.g. `convnet` or `resnet50`, or `package.module:function`.
        weights: `default`, `imagenet`, `none`, or a path.
        trainable: `default`, `head` or `all`.
        epochs: Passes over the training split.
        max_steps: Stop after this many steps, for a trial; 0 does all epochs.
        global_batch_size: Examples per step over all devices.
        learning_rate: Peak learning rate.
        augment: `none`, `shift`, `flip-and-shift` or `crop-and-flip`.
        seed: Order of examples, augmentation and initial weights follow from it.
        run_label: Another text makes another run of the same configuration.
        machine_type: Compute Engine machine type of each replica.
        accelerator_type: Vertex's GPU name; empty for none.
        accelerator_count: GPUs per machine.
        replica_count: Machines that train.
        parameter_server_count: Machines that hold the variables instead; 0 for synchronous training.
        scheduling_strategy: STANDARD, SPOT or FLEX_START.
        timeout_seconds: Longest time the job may run.
        exact: Same bits on every run and after every restart; not part of the run's identity.
        minimum_accuracy: A finished run below it has nothing left to do; a mistake is found before GPUs are paid for.
        serving_image: Prediction container of the registered model.
        service_account: Account of the training job.
        network: VPC network of the training job.
        tensorboard: TensorBoard instance of the training job.
        kms_key: Customer-managed key.

    Returns:
        The worker pools, the job's settings, whether a committed result exists already, and whether that has been
        registered, too, or found not good enough.
    """
    from trainer.command_line import reported
    from training_job.plan import plan as plan_training

    return reported(plan_training)(
        dataset_directory=dataset.path,
        report_path=report.path,
        image=image,
        region=region,
        pipeline_root=pipeline_root,
        run_label=run_label,
        exact=exact,
        minimum_accuracy=minimum_accuracy,
        names={
            "model_name": model_name,
            "serving_image": serving_image,
            "service_account": service_account,
            "network": network,
            "tensorboard": tensorboard,
            "kms_key": kms_key,
        },
        hyperparameters={
            "model": model,
            "weights": weights,
            "trainable": trainable,
            "epochs": epochs,
            "max_steps": max_steps,
            "global_batch_size": global_batch_size,
            "learning_rate": learning_rate,
            "augment": augment,
            "seed": seed,
        },
        machines={
            "machine_type": machine_type,
            "accelerator_type": accelerator_type,
            "accelerator_count": accelerator_count,
            "replica_count": replica_count,
            "parameter_server_count": parameter_server_count,
            "scheduling_strategy": scheduling_strategy,
            "timeout_seconds": timeout_seconds,
        },
    )
