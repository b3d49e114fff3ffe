"""The `plan` step: the machines, the training job's arguments, and whether anything is left to do."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


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
    patience: int,
    minimum_accuracy_gain: float,
    metric: str,
    global_batch_size: int,
    learning_rate: float,
    learning_rate_schedule: str,
    warmup_fraction: float,
    optimizer: str,
    augment: str,
    shuffle: str,
    seed: int,
    run_label: str,
    machine_type: str,
    accelerator_type: str,
    accelerator_count: int,
    replica_count: int,
    parameter_server_count: int,
    scheduling_strategy: str,
    timeout_seconds: int,
    max_wait_seconds: int,
    boot_disk_type: str,
    boot_disk_size_gb: int,
    reservation: str,
    persistent_resource_id: str,
    default_persistent_resource_id: str,
    exact: bool,
    profile_steps: str,
    minimum_score: float,
    serving_image: str,
    max_regression: float,
    must_improve: bool,
    min_compared_images: int,
    force_promotion: bool,
    deploy_endpoint: str,
    deploy_machine_type: str,
    deploy_min_replicas: int,
    deploy_max_replicas: int,
    deploy_accelerator_type: str,
    deploy_accelerator_count: int,
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
        ("max_wait_duration", str),
        ("persistent_resource_id", str),
        ("display_name", str),
        ("run_id", str),
        ("base_output_directory", str),
        ("checkpoint_directory", str),
        ("is_finished", bool),
        ("has_nothing_new", bool),
    ],
):
    """Check the machines right before they are requested, and identify the run by what it computes.

    `dataset` was written by `prepare`; its fingerprint is part of the run's identity. `report` is a page with the
    machines, the configuration and the findings of the machine check. `image` is the container image of the training
    job, and `region` where it runs. What has to outlive this run is in `training/<run id>` under `pipeline_root`. The
    pipeline's own steps run on `default_persistent_resource_id`, if it is not empty. All other inputs are parameters
    of the pipeline and described there.

    Returns:
        Fields of the training job, whether the run is finished, and whether nothing is left to do.
    """
    from components.plan.training_plan import plan as plan_training, reported

    return reported(plan_training)(
        dataset_directory=dataset.path,
        report_path=report.path,
        image=image,
        region=region,
        pipeline_root=pipeline_root,
        run_label=run_label,
        exact=exact,
        profile_steps=profile_steps,
        minimum_score=minimum_score,
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
            "patience": patience,
            "minimum_accuracy_gain": minimum_accuracy_gain,
            "metric": metric,
            "global_batch_size": global_batch_size,
            "learning_rate": learning_rate,
            "learning_rate_schedule": learning_rate_schedule,
            "warmup_fraction": warmup_fraction,
            "optimizer": optimizer,
            "augment": augment,
            "shuffle": shuffle,
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
            "max_wait_seconds": max_wait_seconds,
            "boot_disk_type": boot_disk_type,
            "boot_disk_size_gb": boot_disk_size_gb,
            "reservation": reservation,
            "persistent_resource_id": persistent_resource_id,
        },
        criteria={
            "max_regression": max_regression,
            "must_improve": must_improve,
            "min_compared_images": min_compared_images,
            "force_promotion": force_promotion,
        },
        deploy_endpoint=deploy_endpoint,
        replicas={
            "deploy_machine_type": deploy_machine_type,
            "deploy_min_replicas": deploy_min_replicas,
            "deploy_max_replicas": deploy_max_replicas,
            "deploy_accelerator_type": deploy_accelerator_type,
            "deploy_accelerator_count": deploy_accelerator_count,
        },
        default_persistent_resource_id=default_persistent_resource_id,
    )
