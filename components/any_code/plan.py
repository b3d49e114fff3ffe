"""The `plan` step: the training job of any code, checked before anything costs money."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def plan(
    report: dsl.Output[dsl.HTML],
    image: str,
    command: list,  # type: ignore[type-arg]  # kfp knows no list of texts or numbers
    arguments: list,  # type: ignore[type-arg]
    inputs: dict,  # type: ignore[type-arg]
    environment: dict,  # type: ignore[type-arg]
    secrets: dict,  # type: ignore[type-arg]
    labels: dict,  # type: ignore[type-arg]
    metric: str,
    direction: str,
    minimum_metric: str,
    run_label: str,
    model_name: str,
    serving_image: str,
    deploy_endpoint: str,
    machine_type: str,
    accelerator_type: str,
    accelerator_count: int,
    replica_count: int,
    parameter_server_count: int,
    scheduling_strategy: str,
    persistent_resource_id: str,
    region: str,
    pipeline_root: str,
    settings: dict[str, str],
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "CodePlan",
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
        ("labels", dict),
        ("inputs_sha256", str),
    ],
):
    """Refuse wrong values of all steps, and identify the run by what decides its result.

    `report` is a page with the machines and the configuration. Files that outlive this run are in `training/<run id>`
    under `pipeline_root`. `settings` are the values of machines, comparison and deployment that are fixed for the
    project. All other inputs are parameters of the pipeline and described there.

    Returns:
        Fields of the training job, and whether this very run is finished.
    """
    given = dict(locals())
    from components.any_code.planning import plan as plan_code, report_errors

    return report_errors(plan_code)(**settings | given | {"report": report.path})
