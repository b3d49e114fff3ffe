"""The `plan` step on a real dataset: the training job that it plans, and what it refuses."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from trainer import task
from trainer.checkpoints.outcome import note_registration
from trainer.config import TrainConfig
from trainer.prepare import prepare
from training_job.container_image import PLACEHOLDER_IMAGE
from training_job.plan import TrainingPlan, plan
from vertex_gpu_training.userinput.errors import UserError

HYPERPARAMETERS = TrainConfig(epochs=2, global_batch_size=32).to_dict()
MACHINES = {
    "machine_type": "n1-standard-8",
    "accelerator_type": "NVIDIA_TESLA_T4",
    "accelerator_count": 1,
    "replica_count": 1,
    "parameter_server_count": 0,
    "scheduling_strategy": "STANDARD",
    "timeout_seconds": 3600,
}


NAMES = {
    "model_name": "digits",
    "serving_image": "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
    "service_account": "",
    "network": "",
    "tensorboard": "",
    "kms_key": "",
}


Make = Callable[..., TrainingPlan]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200 of the handwritten digits, prepared."""
    directory = tmp_path_factory.mktemp("data")
    prepare(
        source="digits",
        output_directory=str(directory / "dataset"),
        report_path=str(directory / "report.html"),
        image_size=16,
        max_examples=200,
        max_bad_fraction=0.1,
    )
    return str(directory / "dataset")


@pytest.fixture
def make(dataset: str, tmp_path: pathlib.Path) -> Make:
    """Plan a run, with changes to a small job that is valid."""

    def make_plan(
        hyperparameters: dict[str, Any] | None = None,
        machines: dict[str, Any] | None = None,
        names: dict[str, str] | None = None,
        **changes: Any,
    ) -> TrainingPlan:
        arguments = {
            "dataset_directory": dataset,
            "report_path": str(tmp_path / "plan.html"),
            "image": PLACEHOLDER_IMAGE,
            "region": "us-central1",
            "pipeline_root": str(tmp_path / "root") + "/",
            "run_label": "",
            "exact": False,
            "profile_steps": "",
            "minimum_accuracy": 0.9,
            **changes,
        }
        return plan(
            hyperparameters={**HYPERPARAMETERS, **(hyperparameters or {})},
            machines={**MACHINES, **(machines or {})},
            names={**NAMES, **(names or {})},
            **arguments,
        )

    return make_plan


def test_the_run_id_depends_on_the_computation_and_not_on_the_machines(make: Make) -> None:
    first = make()
    assert make(machines={"replica_count": 4, "scheduling_strategy": "SPOT"}).run_id == first.run_id
    assert make(image="us-docker.pkg.dev/p/r/other@sha256:1").run_id == first.run_id
    others = {
        make(hyperparameters={"learning_rate": 0.003}).run_id,
        make(hyperparameters={"seed": 1}).run_id,
        make(run_label="once more").run_id,
    }
    assert len(others | {first.run_id}) == 4


def test_the_run_id_is_in_the_path_of_the_checkpoints(make: Make, tmp_path: pathlib.Path) -> None:
    made = make()
    assert made.base_output_directory == f"{tmp_path}/root/training/{made.run_id}"
    assert made.checkpoint_directory == f"{made.base_output_directory}/checkpoints/"
    assert made.is_finished is False
    assert made.timeout == "3600s"


def test_the_arguments_give_the_trainer_the_same_run(make: Make, dataset: str) -> None:
    from trainer.checkpoints.identity import run_id
    from trainer.config import from_namespace
    from trainer.data.dataset import load

    made = make(run_label="a label")
    container = made.worker_pool_specs[0]["container_spec"]
    options = task.parser().parse_args(container["args"])
    assert options.dataset == dataset
    assert run_id(from_namespace(options), load(dataset).fingerprint, options.run_label) == made.run_id


def test_an_exact_run_has_the_same_run_id_and_another_flag(make: Make) -> None:
    quick, exact = make(), make(exact=True)
    assert exact.run_id == quick.run_id
    for made, wanted in ((quick, False), (exact, True)):
        options = task.parser().parse_args(made.worker_pool_specs[0]["container_spec"]["args"])
        assert options.exact is wanted


def test_profiled_steps_change_neither_the_run_id_nor_other_flags(make: Make) -> None:
    plain, profiled = make(), make(profile_steps="100-109")
    assert profiled.run_id == plain.run_id
    before, after = (made.worker_pool_specs[0]["container_spec"]["args"] for made in (plain, profiled))
    assert after == [*before, "--profile-steps=100-109"]
    with pytest.raises(UserError, match="profile_steps is '109-100'"):
        make(profile_steps="109-100")


def test_a_finished_run_has_something_left_to_do_until_it_is_evaluated_and_registered(
    make: Make,
    dataset: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from trainer.checkpoints import identity, seal
    from trainer.evaluate import evaluate

    made = make()
    assert (made.is_finished, made.has_nothing_new) == (False, False)
    container = made.worker_pool_specs[0]["container_spec"]
    environment = os.environ | {"AIP_CHECKPOINT_DIR": made.checkpoint_directory}
    words = [sys.executable, *container["command"][1:], *container["args"]]
    subprocess.run(words, env=environment, check=True, capture_output=True)
    assert (make().is_finished, make().has_nothing_new) == (True, False)
    accuracy = evaluate(
        dataset_directory=dataset,
        checkpoint_directory=made.checkpoint_directory,
        report_path=str(tmp_path / "e.html"),
        is_noted=True,
    ).accuracy
    # Not good enough for one minimum, but still to be registered for the other.
    assert make(minimum_accuracy=1.0).has_nothing_new is True
    assert f"test accuracy {accuracy:.4f}, below minimum_accuracy 1: not registered" in capsys.readouterr().out
    assert make(minimum_accuracy=accuracy).has_nothing_new is False
    name = "projects/p/locations/us-central1/models/digits@1"
    given = {"model_name": NAMES["model_name"], "serving_image": NAMES["serving_image"]}
    note_registration(made.checkpoint_directory, resource_name=name, **given)
    assert make(minimum_accuracy=accuracy).has_nothing_new is True
    outcome = f"test accuracy {accuracy:.4f}, registered as {name}"
    assert f"nothing new: data and configuration are unchanged ({outcome});" in capsys.readouterr().out
    assert "nothing new" in (tmp_path / "plan.html").read_text()
    # With another name, serving image, region, label or trainer, something is left to do.
    assert make(region="europe-west4", minimum_accuracy=0.0).has_nothing_new is False
    assert make(names={"model_name": "other"}, minimum_accuracy=0.0).has_nothing_new is False
    assert make(names={"serving_image": "us-docker.pkg.dev/p/r/other:1"}, minimum_accuracy=0.0).has_nothing_new is False
    assert make(run_label="once more").has_nothing_new is False
    monkeypatch.setattr(identity, "TRAINER_VERSION", "another")
    assert make().has_nothing_new is False
    monkeypatch.undo()
    # A record about a checkpoint that has been written again since does not count.
    result = json.loads((pathlib.Path(made.checkpoint_directory) / "result.json").read_text())
    manifest = pathlib.Path(made.checkpoint_directory) / result["best_checkpoint"] / "manifest.json"
    manifest.write_text(
        json.dumps(seal.sealed(seal.without(json.loads(manifest.read_text())) | {"is_validated": False}))
    )
    assert (make().is_finished, make().has_nothing_new) == (True, False)


def test_outputs_are_plain_values_that_survive_json(make: Make) -> None:
    made = make(machines={"replica_count": 2})
    assert json.loads(json.dumps(made)) == list(made)
    assert made.restart_job_on_worker_restart is True


def test_the_page_shows_machines_and_configuration(make: Make, tmp_path: pathlib.Path) -> None:
    made = make()
    page = (tmp_path / "plan.html").read_text()
    for text in ("n1-standard-8", "NVIDIA_TESLA_T4", "us-central1", made.run_id, "learning_rate", "convnet"):
        assert text in page
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert "https://" not in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machines": {"accelerator_count": 3}}, "3 x NVIDIA_TESLA_T4"),
        ({"hyperparameters": {"global_batch_size": 1000}}, "global_batch_size is 1000"),
        ({"hyperparameters": {"epochs": 0}}, "epochs=0"),
        ({"hyperparameters": {"model": "resnet5000"}}, "resnet5000"),
        ({"names": {"model_name": 'my "model"'}}, "model_name"),
        ({"names": {"model_name": ""}}, "model_name"),
        ({"names": {"serving_image": ""}}, "serving_image"),
        ({"names": {"kms_key": 'a"b'}}, "kms_key"),
        ({"minimum_accuracy": 2}, "minimum_accuracy is 2"),
        ({"region": "mars-east1"}, "mars-east1"),
        ({"dataset_directory": "/nowhere"}, "/nowhere"),
    ],
)
def test_wrong_input_is_one_line_and_no_page(
    make: Make, tmp_path: pathlib.Path, changes: dict[str, Any], message: str
) -> None:

    with pytest.raises(UserError) as caught:
        make(**changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "plan.html").exists()
