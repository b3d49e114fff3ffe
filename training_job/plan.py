"""The training plan: what is computed, on which machines, and whether that has been done already."""

import pathlib
from typing import Any, NamedTuple

from trainer.checkpoints.identity import is_finished, run_id
from trainer.checkpoints.outcome import conclusion
from trainer.command_line import reported as reported
from trainer.config import TrainConfig
from trainer.data import dataset as datasets
from training_job import report as plan_report
from training_job.image import check_image
from training_job.machines import Machines, check
from userinput.errors import UserError

# Both stand inside a JSON string that Google's components glue together, where a quote would end the string.
UNSAFE_IN_NAMES = '"\\\n\r\t'


class TrainingPlan(NamedTuple):
    """What the training job is made from; the fields are the outputs of the `plan` step."""

    worker_pool_specs: list[dict[str, Any]]
    restart_job_on_worker_restart: bool
    timeout: str
    display_name: str
    run_id: str
    base_output_directory: str
    checkpoint_directory: str
    is_finished: bool
    has_nothing_new: bool
    """The run is finished, and its model registered or found not good enough."""


def plan(
    *,
    dataset_directory: str,
    report_path: str,
    image: str,
    region: str,
    pipeline_root: str,
    run_label: str,
    exact: bool,
    minimum_accuracy: float,
    names: dict[str, str],
    hyperparameters: dict[str, Any],
    machines: dict[str, Any],
) -> TrainingPlan:
    """Check the machines, name the run by what it computes, and write the report.

    Args:
        dataset_directory: Folder made by `prepare`.
        report_path: HTML file to write.
        image: Container image of the training job.
        region: Vertex AI region, e.g. us-central1.
        pipeline_root: Folder or gs:// prefix; what outlives the run lies in its `training/<run id>`.
        run_label: Part of the run's identity, otherwise without meaning.
        exact: The trainer's `--exact`: how it runs, and so no part of the identity.
        minimum_accuracy: What the model has to reach on the test split, 0 to 1.
        names: What Google's components are given later: model_name, serving_image, service_account, network,
            tensorboard, kms_key.
        hyperparameters: Fields of `TrainConfig`.
        machines: Fields of `Machines`.

    Raises:
        UserError: A value is wrong, or Vertex would refuse the machines.
    """
    _check_names(names)
    if not 0 <= minimum_accuracy <= 1:
        raise UserError(f"minimum_accuracy is {minimum_accuracy}; expected a share from 0 to 1, e.g. 0.9")
    config = TrainConfig(**hyperparameters)
    pools = Machines(**machines)
    findings = check(pools, image=image, region=region)
    data = datasets.load(dataset_directory)
    _check_batch_size(config, num_train=data.num_examples["train"])
    identity = run_id(config, data.fingerprint, run_label)
    base = f"{pipeline_root.rstrip('/')}/training/{identity}"
    args = [f"--dataset={dataset_directory}", f"--run-label={run_label}", *config.to_flags()]
    args += ["--exact"] if exact else []
    directory = f"{base}/checkpoints/"
    finished = is_finished(directory, expected_run_id=identity)
    concluded = ""
    if finished:
        concluded = conclusion(
            directory,
            minimum_accuracy=minimum_accuracy,
            model_name=names["model_name"],
            serving_image=names["serving_image"],
            region=region,
        )
    made = TrainingPlan(
        worker_pool_specs=pools.worker_pool_specs(image=image, args=args),
        restart_job_on_worker_restart=pools.restart_job_on_worker_restart,
        timeout=f"{pools.timeout_seconds}s",
        display_name=f"{names['model_name']}-{identity}",
        run_id=identity,
        base_output_directory=base,
        checkpoint_directory=directory,
        is_finished=finished,
        has_nothing_new=bool(concluded),
    )
    state = _state(finished=finished, concluded=concluded)
    page = plan_report.page(
        machines=pools,
        region=region,
        worker_pool_specs=made.worker_pool_specs,
        findings=findings,
        run_id=identity,
        state=state,
        configuration=config.to_dict() | {"dataset": data.fingerprint, "run label": run_label or "(none)"},
    )
    pathlib.Path(report_path).write_text(page, encoding="utf-8")
    print(f"run {identity}: {state}")
    for finding in findings:
        print(f"warning: {finding.message}")
    return made


def _state(*, finished: bool, concluded: str) -> str:
    if concluded:
        return f"nothing new, the same data and configuration are finished ({concluded}); run_label trains them again"
    if finished:
        return "finished already, nothing is trained again; its test or registration is left"
    return "to be trained"


def _check_batch_size(config: TrainConfig, *, num_train: int) -> None:
    if config.global_batch_size > num_train:
        raise UserError(
            f"global_batch_size is {config.global_batch_size}, but the training split has {num_train} pictures; "
            f"give {num_train} or less"
        )


def _check_names(names: dict[str, str]) -> None:
    if not names["model_name"] or len(names["model_name"]) > 100:
        raise UserError(f"model_name is {names['model_name']!r}; expected 1 to 100 characters")
    check_image("serving_image", names["serving_image"])
    for field, value in names.items():
        if any(character in value for character in UNSAFE_IN_NAMES):
            raise UserError(f"{field} is {value!r}; it must have no quotes, backslashes or line breaks")
