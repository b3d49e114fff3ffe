"""The `plan` step on a real dataset: the training job that it plans, and what it refuses."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from components.container_image import PLACEHOLDER_IMAGE
from components.plan.training_plan import TrainingPlan, plan
from components.registry.labels import CHECKPOINT, PROJECT_LABEL, label_value
from localvertex._base.userinput.errors import UserError
from tests.support import tiny_base
from trainer import task
from trainer.config import TrainConfig
from trainer.prepare import prepare
from trainer.results.outcome import best_digest, note_registration
from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.server import Server

HYPERPARAMETERS = TrainConfig(epochs=2, global_batch_size=32).to_dict()
SERVING_IMAGE = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
VALUES = HYPERPARAMETERS | {
    "model_name": "digits",
    "serving_image": SERVING_IMAGE,
    "machine_type": "n1-standard-8",
    "accelerator_type": "NVIDIA_TESLA_T4",
    "accelerator_count": 1,
    "replica_count": 1,
    "parameter_server_count": 0,
    "scheduling_strategy": "STANDARD",
    "timeout_seconds": 3600,
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

    def make_plan(**changes: Any) -> TrainingPlan:
        arguments = VALUES | {
            "dataset": dataset,
            "report": str(tmp_path / "plan.html"),
            "image": PLACEHOLDER_IMAGE,
            "region": "us-central1",
            "pipeline_root": str(tmp_path / "root") + "/",
            "run_label": "",
            "exact": False,
            "minimum_score": 0.9,
        }
        return plan(**arguments | changes)

    return make_plan


def arguments_of(planned: TrainingPlan) -> list[str]:
    """The flags of the trainer."""
    found: list[str] = planned.worker_pool_specs[0]["container_spec"]["args"]
    return found


def test_the_run_id_depends_on_the_computation_and_not_on_the_machines(make: Make) -> None:
    first = make()
    assert make(replica_count=4, scheduling_strategy="SPOT").run_id == first.run_id
    assert make(image="us-docker.pkg.dev/p/r/other@sha256:1").run_id == first.run_id
    others = {
        make(learning_rate=0.003).run_id,
        make(seed=1).run_id,
        make(run_label="once more").run_id,
    }
    assert len(others | {first.run_id}) == 4


def test_new_parameters_of_the_machines_keep_the_run_id(make: Make) -> None:
    given = {"boot_disk_size_gb": 500, "reservation": "ANY", "boot_disk_type": "pd-ssd"}
    assert make(**given).run_id == make(persistent_resource_id="r").run_id == make().run_id


def test_the_wait_and_the_persistent_resource_are_outputs(make: Make) -> None:
    flex = {"scheduling_strategy": "FLEX_START", "machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4"}
    assert make(**flex, max_wait_seconds=60).max_wait_duration == "60s"
    assert (make().persistent_resource_id, make(persistent_resource_id="own").persistent_resource_id) == ("", "own")
    # A service that does not know the placeholder leaves it as it is.
    assert make(persistent_resource_id="{{$.pipeline_persistent_resource_id}}").persistent_resource_id == ""


@pytest.fixture
def large(dataset: str, cloud_storage: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> str:
    """The dataset in a bucket, with 70 GB more of training data."""
    for name, value in cloud_storage.environment.items():
        monkeypatch.setenv(name, value)
    cloud_storage.buckets.create("data")
    for path in pathlib.Path(dataset).iterdir():
        cloud_storage.buckets.put("data", f"large/{path.name}", path.read_bytes())
    shard = next(name for name in cloud_storage.buckets.names("data") if "train" in name)
    cloud_storage.buckets.enlarge("data", shard, 70 * 10**9)
    return "gs://data/large"


def test_a_boot_disk_that_is_too_small_for_the_dataset_is_refused(
    make: Make, large: str, dataset: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(UserError) as caught:
        make(dataset=large)
    assert str(caught.value) == (
        "boot_disk_size_gb is 100, but the dataset has 70.0 GB, which each machine copies to its boot disk, and 40 GB "
        "are kept free; use 111 or more"
    )
    assert not (tmp_path / "plan.html").exists()
    (pool,) = make(dataset=large, boot_disk_size_gb=111).worker_pool_specs
    assert pool["disk_spec"] == {"boot_disk_size_gb": 111}
    # Nothing is copied from a folder of the machine.
    shutil.copytree(dataset, tmp_path / "large")
    shard = next((tmp_path / "large").glob("*train*"))
    os.truncate(shard, shard.stat().st_size + 70 * 10**9)
    assert "disk_spec" not in make(dataset=str(tmp_path / "large")).worker_pool_specs[0]


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


def test_an_exact_run_is_another_run_with_another_flag(make: Make) -> None:
    quick, exact = make(), make(exact=True)
    assert exact.run_id != quick.run_id
    for made, wanted in ((quick, False), (exact, True)):
        options = task.parser().parse_args(made.worker_pool_specs[0]["container_spec"]["args"])
        assert options.exact is wanted


def finish(made: TrainingPlan, config: TrainConfig, dataset: str, *starts: bool, **changes: Any) -> None:
    """Write a finished run that is known to be not good enough.

    Args:
        made: Its plan.
        config: Its configuration.
        dataset: Its dataset.
        *starts: Per start, whether it was exact.
        **changes: Other values of its identity.
    """
    from exact_resume.events.log import EventLog
    from tests.support.finished import note_evaluation, write_finished_run
    from trainer.checkpoints import identity
    from trainer.data.dataset import load

    log = EventLog(made.checkpoint_directory, "workerpool0-0")
    for exact in starts:
        log.write("start", run_id=made.run_id, exact=exact)
    content = identity.identity(config, load(dataset).fingerprint, "") | changes
    write_finished_run(made.checkpoint_directory, run_id=made.run_id, identity=content, accuracy=0.1)
    note_evaluation(made.checkpoint_directory, 0.1)


def test_exact_after_an_inexact_run_is_not_nothing_new(make: Make, dataset: str) -> None:
    config = TrainConfig(**HYPERPARAMETERS)
    quick = make()
    finish(quick, config, dataset, False, True)
    assert (make().run_id, make().has_nothing_new) == (quick.run_id, True)
    exact = make(exact=True)
    assert (exact.is_finished, exact.has_nothing_new) == (False, False)
    finish(exact, config, dataset, True, exact=True)
    assert make(exact=True) == exact._replace(is_finished=True, has_nothing_new=True)
    assert make().run_id == quick.run_id


@pytest.mark.slow
def test_a_finished_run_has_something_left_to_do_until_it_is_evaluated_and_registered(
    make: Make,
    dataset: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    server: Server,
    reachable: None,
) -> None:
    from exact_resume.checkpoints import checkpoints, seal
    from tests.support.finished import note_evaluation
    from trainer.checkpoints import identity
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
    # A few steps teach it nothing, which another minimum does not change.
    assert make(minimum_score=0.0).has_nothing_new is True
    assert "not registered: not better than a constant answer" in capsys.readouterr().out
    assert make(minimum_score=0.0, force_promotion=True).has_nothing_new is False
    best = checkpoints.best(made.checkpoint_directory).step
    note_evaluation(made.checkpoint_directory, accuracy, step=best)
    # Not good enough for one minimum, but still to be registered for the other.
    assert make(minimum_score=1.0).has_nothing_new is True
    assert f"test accuracy {accuracy:.4f}, below minimum_score 1: not registered" in capsys.readouterr().out
    assert make(minimum_score=accuracy).has_nothing_new is False
    of_checkpoint = {CHECKPOINT: label_value(best_digest(made.checkpoint_directory))}
    body = {"model": {"displayName": VALUES["model_name"], "labels": dict([PROJECT_LABEL]) | of_checkpoint}}
    name = f"{server.call('POST', 'models:upload', body).json()['response']['model']}@1"
    given = {"model_name": VALUES["model_name"], "serving_image": SERVING_IMAGE}
    note_registration(made.checkpoint_directory, resource_name=name, **given)
    assert make(minimum_score=accuracy).has_nothing_new is True
    outcome = f"test accuracy {accuracy:.4f}, registered as {name}"
    assert f"nothing new: data and configuration are unchanged ({outcome});" in capsys.readouterr().out
    assert "nothing new" in (tmp_path / "plan.html").read_text()
    # With another name, serving image, region, label or trainer, something is left to do.
    assert make(region="europe-west4", minimum_score=0.0).has_nothing_new is False
    assert make(model_name="other", minimum_score=0.0).has_nothing_new is False
    assert make(serving_image="us-docker.pkg.dev/p/r/other:1", minimum_score=0.0).has_nothing_new is False
    assert make(run_label="once more").has_nothing_new is False
    monkeypatch.setattr(identity, "TRAINER_VERSION", "another")
    assert make().has_nothing_new is False
    monkeypatch.undo()
    # A record about a checkpoint that has been written again since does not count.
    result = json.loads((pathlib.Path(made.checkpoint_directory) / "result.json").read_text())
    manifest = pathlib.Path(made.checkpoint_directory) / result["best_checkpoint"] / "manifest.json"
    manifest.write_text(
        json.dumps(seal.add_seal(seal.without(json.loads(manifest.read_text())) | {"is_validated": False}))
    )
    assert (make().is_finished, make().has_nothing_new) == (True, False)


def test_outputs_are_plain_values_that_survive_json(make: Make) -> None:
    made = make(replica_count=2)
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
        ({"accelerator_count": 3}, "3 x NVIDIA_TESLA_T4"),
        ({"global_batch_size": 1000}, "global_batch_size=1000 is more than the "),
        ({"epochs": 0}, "epochs is 0"),
        ({"model": "resnet5000"}, "resnet5000"),
        (
            {"patience": 2, "parameter_server_count": 1, "replica_count": 2},
            "patience=2 does not work with parameter servers",
        ),
        ({"exact": True, "parameter_server_count": 1, "replica_count": 2}, "exact does not work with"),
        ({"model_name": 'my "model"'}, "model_name"),
        ({"model_name": ""}, "model_name"),
        ({"max_wait_seconds": 0, "scheduling_strategy": "FLEX_START"}, "wait forever"),
        ({"reservation": "ANY", "persistent_resource_id": "own"}, "exclude each other"),
        ({"minimum_score": 2}, "minimum_score is 2"),
        (
            {"deploy_endpoint": "live", "deploy_machine_type": "n1-standard-64"},
            "deployment to 'live': 'n1-standard-64' is not a machine type for prediction",
        ),
        ({"region": "mars-east1"}, "mars-east1"),
        ({"dataset": "/nowhere"}, "/nowhere"),
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


def test_classes_of_very_different_sizes_have_weights_unless_the_recipe_says_none(
    make: Make, tmp_path: pathlib.Path
) -> None:
    images = tmp_path / "images"
    for name, count in {"circle": 90, "square": 30}.items():
        (images / name).mkdir(parents=True)
        for number in range(count):
            Image.new("L", (8, 8), number + 100 * (name == "square")).save(images / name / f"{number}.png")
    report = str(tmp_path / "report.html")
    prepare(source=str(images), output_directory=str(tmp_path / "own"), report_path=report, image_size=8)
    small = {"dataset": str(tmp_path / "own"), "global_batch_size": 8}
    weighted = make(**small)
    assert any('--recipe={"class_weights": "auto"}' in arg for arg in arguments_of(weighted))
    ignored = make(**small, recipe='{"class_weights": "none"}')
    assert ignored.run_id != weighted.run_id
    assert make(**small, recipe='{"class_weights": "auto"}').run_id == weighted.run_id
    servers = {"replica_count": 2, "parameter_server_count": 1}
    assert not any("class_weights" in arg for arg in arguments_of(make(**small, **servers)))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"optimizer": {"class_name": "Adamw"}}, "class_name is 'Adamw'; expected one of: Adam, AdamW"),
        ({"augmentation": [{"class_name": "Rescaling", "config": {"scale": "a"}}]}, "augmentation: a layer fails"),
        ({"class_weights": {"ten": 2}}, "recipe.class_weights has the unknown key 'ten'"),
        ({"optimizer": {"class_name": "Lion", "config": {"beta_1": 0}}}, "recipe: Argument `beta_1`"),
        (
            {"optimizer": {"class_name": "SGD", "config": {"gradient_accumulation_steps": 2}}},
            "gradient_accumulation_steps does not work on 2 devices",
        ),
        (
            {"optimizer": {"class_name": "SGD", "config": {"gradient_accumulation_steps": 99}}},
            "gradient_accumulation_steps=99, but the run has 8 steps",
        ),
    ],
)
def test_a_wrong_recipe_is_refused_before_machines_are_requested(
    make: Make, recipe: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        make(recipe=json.dumps(recipe), replica_count=2)
    assert message in str(caught.value)


def test_more_layers_than_the_base_has_are_refused_before_machines_are_requested(
    make: Make,
) -> None:
    tiny_base.install()
    try:
        recipe = {"fine_tuning": {"layers": tiny_base.NUM_LAYERS}}
        assert make(recipe=json.dumps(recipe), model=tiny_base.NAME).run_id
        recipe = {"fine_tuning": {"layers": 99}}
        with pytest.raises(UserError, match=r"fine_tuning.layers is 99, but the base has 8 layers"):
            make(recipe=json.dumps(recipe), model=tiny_base.NAME)
    finally:
        tiny_base.uninstall()
