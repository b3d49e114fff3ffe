"""The training plan: what is computed, on which machines, and whether that has been done already."""

import pathlib
from typing import Any, NamedTuple

from trainer.checkpoints.identity import is_finished, run_id
from trainer.checkpoints.outcome import conclusion
from trainer.command_line import reported as reported  # a component imports `reported` from here
from trainer.config import TrainConfig
from trainer.data import dataset
from trainer.loop.board import profile
from training_job import report
from training_job.machines import Machines, check
from training_job.values import check_accuracy, check_names
from vertex_gpu_training.userinput.errors import UserError


class TrainingPlan(NamedTuple):
    """The fields of the training job; they are the outputs of the `plan` step."""

    worker_pool_specs: list[dict[str, Any]]
    restart_job_on_worker_restart: bool
    timeout: str
    display_name: str
    run_id: str
    base_output_directory: str
    checkpoint_directory: str
    is_finished: bool
    has_nothing_new: bool
    """Whether the run is finished and its model registered or found not good enough."""


def plan(
    *,
    dataset_directory: str,
    report_path: str,
    image: str,
    region: str,
    pipeline_root: str,
    run_label: str,
    exact: bool,
    profile_steps: str,
    minimum_accuracy: float,
    names: dict[str, str],
    hyperparameters: dict[str, Any],
    machines: dict[str, Any],
) -> TrainingPlan:
    """Check the machines, derive the run id from what is computed, and write the report.

    Args:
        dataset_directory: Folder written by `prepare`.
        report_path: Path of the HTML file to write.
        image: Container image of the training job.
        region: Vertex AI region, e.g. us-central1.
        pipeline_root: Folder or gs:// prefix; its `training/<run id>` outlives this run.
        run_label: Part of the run's identity, without any other meaning.
        exact: The trainer's `--exact`, which is not part of the identity.
        profile_steps: The trainer's `--profile-steps`, which is not part of the identity either.
        minimum_accuracy: Test accuracy that the model has to reach, 0 to 1.
        names: Values that Google's components receive later: model_name, serving_image, service_account, network,
            tensorboard, kms_key.
        hyperparameters: Fields of `TrainConfig`.
        machines: Fields of `Machines`.

    Returns:
        The fields of the training job, and whether anything is left to do.

    Raises:
        UserError: A value is wrong, or Vertex AI would refuse the machines.
    """
    check_names(names)
    check_accuracy(minimum_accuracy)
    profile.parse(profile_steps)
    config, pools = TrainConfig(**hyperparameters), Machines(**machines)
    findings = check(pools, image=image, region=region)
    data = dataset.load(dataset_directory)
    _check_batch_size(config, num_train=data.num_examples["train"])
    identity = run_id(config, data.fingerprint, run_label)
    base = f"{pipeline_root.rstrip('/')}/training/{identity}"
    checkpoints = f"{base}/checkpoints/"
    flags = [f"--dataset={dataset_directory}", f"--run-label={run_label}", *config.to_flags()]
    flags += ["--exact"] * exact + [f"--profile-steps={profile_steps}"] * bool(profile_steps)
    finished = is_finished(checkpoints, expected_run_id=identity)
    outcome = _outcome(checkpoints, names, region=region, minimum_accuracy=minimum_accuracy) if finished else ""
    planned = TrainingPlan(
        worker_pool_specs=pools.worker_pool_specs(image=image, args=flags),
        restart_job_on_worker_restart=pools.restart_job_on_worker_restart,
        timeout=f"{pools.timeout_seconds}s",
        display_name=f"{names['model_name']}-{identity}",
        run_id=identity,
        base_output_directory=base,
        checkpoint_directory=checkpoints,
        is_finished=finished,
        has_nothing_new=bool(outcome),
    )
    state = _state(finished=finished, outcome=outcome)
    configuration = config.to_dict() | {"dataset": data.fingerprint, "run label": run_label or "(none)"}
    page = report.plan_page(
        machines=pools,
        region=region,
        worker_pool_specs=planned.worker_pool_specs,
        findings=findings,
        run_id=identity,
        state=state,
        configuration=configuration,
    )
    pathlib.Path(report_path).write_text(page, encoding="utf-8")
    print(f"run {identity}: {state}", *(f"warning: {finding.message}" for finding in findings), sep="\n")
    return planned


def _outcome(checkpoint_directory: str, names: dict[str, str], *, region: str, minimum_accuracy: float) -> str:
    return conclusion(
        checkpoint_directory,
        minimum_accuracy=minimum_accuracy,
        model_name=names["model_name"],
        serving_image=names["serving_image"],
        region=region,
    )


def _state(*, finished: bool, outcome: str) -> str:
    if outcome:
        return f"nothing new: data and configuration are unchanged ({outcome}); set another run_label to train again"
    if finished:
        return "already finished, not trained again; only its evaluation or registration is missing"
    return "to be trained"


def _check_batch_size(config: TrainConfig, *, num_train: int) -> None:
    if config.global_batch_size > num_train:
        raise UserError(
            f"global_batch_size is {config.global_batch_size}, but the training split has {num_train} images; "
            f"give {num_train} or less"
        )
