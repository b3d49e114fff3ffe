"""The training plan: what to compute on which machines, and whether that was done already."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

from components.compare.criteria import Criteria
from components.plan.outcomes import Release, conclusion
from components.plan.report import report_plan
from components.registry.registry import Registry
from components.train import starting_weights
from components.train.machines import Machines
from components.values import check_values
from exact_resume.checkpoints.result_file import is_finished
from exact_resume.files import storage
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.checkpoints.identity import run_id
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset, load
from trainer.learner import libraries
from trainer.models import recipes
from trainer.settings import from_values

_RESERVED_GB = 40
"""Room for the system, the container image (about 15 GB with CUDA) and logs; a generous estimate."""
_COPIED = ("train", "validation")
"""The splits that `trainer.data.staging` copies in a training job."""


class TrainingPlan(NamedTuple):
    """The fields of the training job; they are the outputs of the `plan` step."""

    worker_pool_specs: list[dict[str, Any]]
    restart_job_on_worker_restart: bool
    timeout: str
    max_wait_duration: str
    persistent_resource_id: str
    display_name: str
    run_id: str
    base_output_directory: str
    checkpoint_directory: str
    is_finished: bool
    has_nothing_new: bool
    """Whether the run is finished, and its model registered (and deployed if requested) or refused."""


def plan(
    *,
    dataset: str,
    report: str,
    image: str,
    region: str,
    pipeline_root: str,
    run_label: str,
    exact: bool,
    minimum_score: float,
    model_name: str,
    serving_image: str,
    deploy_endpoint: str = "",
    **values: Any,
) -> TrainingPlan:
    """Check the machines, derive the run id from what is computed, and write the report.

    Args:
        dataset: Folder written by `prepare`.
        report: Path of the HTML file to write.
        image: Container image of the training job.
        region: Vertex AI region, e.g. us-central1.
        pipeline_root: Folder or gs:// prefix; its `training/<run id>` outlives this run.
        run_label: Part of the run's identity, without any other meaning.
        exact: The trainer's `--exact`; an inexact run does not count as this one.
        minimum_score: Score on the test split that the model has to reach, 0 to 1.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image of the registered model; empty for this project's own server.
        deploy_endpoint: Display name of the endpoint; empty for no deployment.
        **values: Fields of `TrainConfig`, `Machines`, `Criteria` and `ServingMachines`.

    Returns:
        The fields of the training job, and whether anything is left to do.

    Raises:
        UserError: A value is wrong, or Vertex AI would refuse the machines.
    """
    given = {"run_label": run_label, "exact": exact, "minimum_score": minimum_score, "model_name": model_name}
    findings = check_values(values | given | {"deploy_endpoint": deploy_endpoint}, image=image, region=region)
    release = Release(
        model_name=model_name,
        serving_image=serving_image,
        region=region,
        minimum_score=minimum_score,
        criteria=from_values(Criteria, values),
        endpoint=deploy_endpoint,
    )
    # Where the service does not fill in the placeholder of its persistent resource, none is meant.
    if "{{$" in values.get("persistent_resource_id", ""):
        values["persistent_resource_id"] = ""
    config, pools = from_values(TrainConfig, values), from_values(Machines, values)
    data = load(dataset)
    if not pools.parameter_server_count:
        config = config.for_data(data.counts("train"))
    config.num_steps(data.num_examples["train"])
    _check_boot_disk(pools, data)
    _check_recipe(config, data, num_devices=pools.replica_count * max(1, pools.accelerator_count))
    training = f"{paths.check('pipeline_root', pipeline_root).rstrip('/')}/training"
    config, start = starting_weights.resolve(config, data, training=training, region=region)
    identity = run_id(config, data.fingerprint, run_label, exact=exact)
    flags = [f"--dataset={dataset}", f"--run-label={run_label}", *config.to_flags(), *start.flags]
    flags += ["--exact"] * exact
    job = pools.job(training=training, run_id=identity, name=model_name, image=image, args=flags)
    checkpoints = job["checkpoint_directory"]
    finished = is_finished(checkpoints, expected_run_id=identity)
    # The registry is queried only for a finished run: a first one makes no call.
    registry = functools.partial(Registry, region=region, pipeline_root=pipeline_root)
    outcome = conclusion(checkpoints, release, registry) if finished else ""
    configuration = config.to_dict() | {"dataset": data.fingerprint, "run label": run_label or "(none)"}
    configuration |= {"exact": exact} | ({"starts from": start.description} if start.description else {})
    report_plan(
        report,
        machines=pools,
        region=region,
        findings=findings,
        run_id=identity,
        state=_state(finished=finished, outcome=outcome),
        configuration=configuration,
        notes=filter(None, [start.description]),
    )
    return TrainingPlan(**job, is_finished=finished, has_nothing_new=bool(outcome))


def _state(*, finished: bool, outcome: str) -> str:
    if outcome:
        return f"nothing new: data and configuration are unchanged ({outcome}); set another run_label to train again"
    if finished:
        return "already finished, not trained again; its evaluation, comparison, registration or deployment is missing"
    return "to be trained"


def _check_recipe(config: TrainConfig, data: Dataset, *, num_devices: int) -> None:
    """Refuse settings that the trainer would refuse.

    Raises:
        UserError: The recipe does not fit the dataset or the machines, or Keras refuses it.
    """
    recipe = recipes.parse(config.recipe)
    recipe.weights_of(data.counts("train"), data.class_names)
    recipe.check_devices(num_devices)
    if dataclasses.replace(recipe, class_weights=None, sampling=None) != recipes.Recipe():
        command_line.set_environment()
        libraries.load()
        from trainer.data.augmentation.layers import Augmentation
        from trainer.learner import optimizers
        from trainer.models import applications, models

        optimizers.build(config, 1)
        if recipe.fine_tuning and (layers := recipe.fine_tuning.get("layers")):
            network = models.build(config.model, image_size=data.image_size, num_classes=data.num_classes)
            applications.train_base(network, layers)
        augmentation = Augmentation(recipe.augmentation, image_size=data.image_size, num_classes=data.num_classes)
        augmentation.check(data.image_size)


def _check_boot_disk(machines: Machines, dataset: Dataset) -> None:
    """Refuse a boot disk that the dataset does not fit on, before a machine is requested.

    Raises:
        UserError: The disk is too small, or a shard is missing.
    """
    if not storage.is_object_store(dataset.directory):
        return  # the records are read where they are
    dataset_gb = sum(size for split in _COPIED for size in dataset.shard_sizes(split).values()) / 1e9
    needed_gb = math.ceil(dataset_gb + _RESERVED_GB)
    if needed_gb > machines.boot_disk_size_gb:
        raise UserError(
            f"boot_disk_size_gb is {machines.boot_disk_size_gb}, but the dataset has {dataset_gb:.1f} GB, which each "
            f"machine copies to its boot disk, and {_RESERVED_GB} GB are kept free; use {needed_gb} or more"
        )
