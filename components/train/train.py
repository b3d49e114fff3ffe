"""The `train` step of a pipeline with fallbacks: creates the custom jobs of a training itself, one after another."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def train(
    journey: dsl.Output[dsl.HTML],
    machines: dsl.Output[dsl.Metrics],
    gcp_resources: dsl.OutputPath(str),  # type: ignore[valid-type]
    is_finished: bool,
    worker_pool_specs: list,  # type: ignore[type-arg]  # kfp knows no list of objects
    candidates: list,  # type: ignore[type-arg]
    labels: dict,  # type: ignore[type-arg]
    display_name: str,
    run_id: str,
    base_output_directory: str,
    service_account: str,
    network: str,
    tensorboard: str,
    kms_key: str,
    task: str,
    region: str,
    pipeline_root: str,
    settings: dict,  # type: ignore[type-arg]
) -> None:
    """Train on the first candidate that has machines, and continue on the next one where they are lost.

    `journey` is a page with what each candidate took, and `machines` has it in a line each; `gcp_resources` names the
    present job. `worker_pool_specs` has
    the program, as `plan` outputs it. `candidates` are all machines in the order in which they are tried. `labels` are
    labels of the jobs. `task` is the id of this task. `settings` are the values that are fixed for the project. All
    other inputs are fields of the training job.
    """
    inputs = dict(locals())
    from components.train.on_candidates import report_errors, train as train_on_candidates

    report_errors(train_on_candidates)(**inputs | {"journey": journey.path, "machines": machines.metadata})
