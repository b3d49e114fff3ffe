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
    recipe: str,
    shuffle: str,
    seed: int,
    run_label: str,
    machine_type: str,
    accelerator_type: str,
    accelerator_count: int,
    replica_count: int,
    parameter_server_count: int,
    scheduling_strategy: str,
    persistent_resource_id: str,
    exact: bool,
    minimum_score: float,
    force_promotion: bool,
    deploy_endpoint: str,
    settings: dict[str, str],
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
    job, and `region` where it runs. Files that outlive this run are in `training/<run id>` under `pipeline_root`.
    `settings` are the values of machines, comparison and deployment that are fixed for the project, and the names of
    its resources: constants of the compiled file. All other inputs are parameters of the pipeline and described there.

    Returns:
        Fields of the training job, whether the run is finished, and whether nothing is left to do.
    """
    inputs = dict(locals())
    from components.plan.training_plan import plan as plan_training, report_errors

    return report_errors(plan_training)(**settings | inputs | {"dataset": dataset.path, "report": report.path})
