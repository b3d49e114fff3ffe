"""Wrong values of any step are refused before the first image is read, and before a request is sent."""

from pathlib import Path
from typing import Any

import pytest

from components.container_image import PLACEHOLDER_IMAGE
from components.prepare.dataset import prepare
from components.values import check_values
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding
from trainer.config import TrainConfig

SOUND = {
    **TrainConfig().to_dict(),
    "machine_type": "n1-standard-8",
    "accelerator_type": "NVIDIA_TESLA_T4",
    "accelerator_count": 1,
    "replica_count": 2,
    "timeout_seconds": 3600,
    "minimum_score": 0.9,
    "model_name": "digits",
}

WRONG = [
    ({"model": "resnet51"}, "did you mean resnet50"),
    ({"learning_rate": -1}, "learning_rate is -1; expected a number from 1e-12"),
    ({"learning_rate": "fast"}, "learning_rate"),
    ({"epochs": "0"}, "epochs is 0; expected a whole number from 1"),
    ({"patience": "-1"}, "patience is -1; expected a whole number from 0"),
    ({"metric": "auc"}, "metric is 'auc'; expected one of: accuracy, balanced-accuracy, macro-f1"),
    ({"metric": ""}, "metric is ''; expected one of:"),
    ({"minimum_accuracy_gain": 0.1}, "has no effect without patience"),
    ({"patience": 2, "parameter_server_count": "1"}, "patience=2 does not work with parameter servers"),
    ({"exact": "true", "parameter_server_count": "1"}, "exact does not work with parameter servers"),
    ({"exact": True, "parameter_server_count": 1}, "exact does not work with parameter servers"),
    ({"minimum_score": 95}, "minimum_score is 95"),
    ({"minimum_score": "high"}, "minimum_score is 'high'"),
    ({"max_regression": -0.1}, "max_regression is -0.1; expected a number from 0 to 1"),
    ({"max_regression": "lots"}, "max_regression is 'lots'; expected a number"),
    ({"min_compared_images": "0"}, "min_compared_images is 0; expected a whole number from 1"),
    ({"min_compared_images": 2.5}, "min_compared_images is 2.5; expected a whole number from 1"),
    ({"replica_count": 0}, "replica_count is 0"),
    ({"replica_count": "two"}, "replica_count is 'two'; expected a whole number"),
    ({"timeout_seconds": "2.5"}, "timeout_seconds is 2.5; expected a whole number"),
    ({"epochs": "inf"}, "epochs is inf; expected a whole number"),
    ({"model_name": ""}, "model_name is ''"),
    ({"prepare_engine": "spark"}, "prepare_engine is 'spark'; expected one of: local, dataflow"),
    ({"deploy_endpoint": 'my "endpoint"'}, "deploy_endpoint is 'my \"endpoint\"'; expected the display name"),
    ({"deploy_endpoint": "x" * 129}, "of at most 128 characters"),
    ({"deploy_min_replicas": "0"}, "deploy_min_replicas is 0; expected a whole number from 1"),
    ({"deploy_min_replicas": 3, "deploy_max_replicas": 2}, "expected at least deploy_min_replicas, 3"),
    ({"deploy_accelerator_count": "many"}, "deploy_accelerator_count is 'many'; expected a whole number"),
    (
        {"accelerator_count": 3},
        "nearest: n1-standard-8 with 4 x NVIDIA_TESLA_T4",
    ),
    ({"accelerator_count": "3.0"}, "3 x NVIDIA_TESLA_T4 on n1-standard-8"),
    ({"machine_type": "n1-standard-9"}, "'n1-standard-9' is not a machine type"),
    ({"deploy_endpoint": "cats", "deploy_machine_type": "n9"}, "deployment to 'cats': 'n9' is not a machine type"),
]


def check(values: dict[str, Any]) -> list[Finding]:
    return check_values(values, image=PLACEHOLDER_IMAGE, region="us-central1")


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_a_wrong_value_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check(SOUND | changes)


def test_sound_values_pass_also_as_text() -> None:
    assert check(SOUND) == []
    check({name: str(value) for name, value in SOUND.items()})
    check({name: f"{value}.0" if type(value) is int else value for name, value in SOUND.items()})
    check({})
    check(dict.fromkeys(SOUND, "{{$.inputs.parameters['pipelinechannel--model']}}"))


def prepare_in(folder: Path, *, region: str = "us-central1", **changes: Any) -> dict[str, Any]:
    """Call the step `prepare` with the digits and changes to sound values."""
    return prepare(
        settings=SOUND | {"image": PLACEHOLDER_IMAGE} | changes.pop("settings", {}),
        dataflow={"region": region},
        output_directory=str(folder / "dataset"),
        report_path=str(folder / "report.html"),
        **{"source": "digits", "image_size": 16, "max_examples": 60, "max_bad_fraction": 0.1} | changes,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"minimum_score": 95}, "minimum_score is 95"),
        ({"accelerator_count": "3"}, "3 x NVIDIA_TESLA_T4 on n1-standard-8"),
        ({"deploy_endpoint": "cats", "deploy_machine_type": "n9"}, "deployment to 'cats'"),
    ],
)
def test_the_first_step_refuses_before_it_reads_the_source(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    """The source does not exist, and the error is about the value."""
    with pytest.raises(UserError, match=message):
        prepare_in(tmp_path, source=str(tmp_path / "none"), settings=settings)
    assert list(tmp_path.iterdir()) == []


def test_the_first_step_checks_the_machines_for_the_region_of_the_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"NVIDIA_TESLA_T4.*europe-west6"):
        prepare_in(tmp_path, region="europe-west6")
    assert list(tmp_path.iterdir()) == []


def test_the_dataset_does_not_depend_on_the_machines(tmp_path: Path) -> None:
    other = {"machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4", "replica_count": 4}
    assert prepare_in(tmp_path / "first") == prepare_in(tmp_path / "second", settings=other)
