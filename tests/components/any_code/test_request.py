"""What the pipeline for any training code refuses, by name, and what reaches the replicas."""

import json
import pathlib
import re
from typing import Any

import pytest

from components.any_code.planning import CodePlan, plan
from components.container_image import PLACEHOLDER_IMAGE
from components.registry.registry import Registry
from components.train.machines import Machines
from exact_resume.files import bucket, storage
from localvertex._base import step_endpoint
from localvertex._base.userinput.errors import UserError
from tests.support.any_code_run import NAME, SERVING, AnyCodeRun
from trainer.results import outcome
from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.server import Server

IMAGE = "us-docker.pkg.dev/project/images/mine@sha256:" + "b" * 64
SECRET = "projects/my-project/secrets/hub/versions/3"
VALUES: dict[str, Any] = {
    "image": IMAGE,
    "command": ["python", "train.py"],
    "arguments": [],
    **{name: {} for name in ("inputs", "environment", "secrets", "labels")},
    "metric": "accuracy",
    "direction": "maximize",
    "minimum_metric": "",
    "run_label": "",
    "model_name": "",
    "serving_image": "",
    "deploy_endpoint": "",
    "machine_type": "n1-standard-8",
}


@pytest.fixture(autouse=True)
def in_the_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (step_endpoint.VARIABLE, step_endpoint.MARKER):
        monkeypatch.delenv(name, raising=False)


def planned(folder: pathlib.Path, **changes: Any) -> CodePlan:
    values = VALUES | changes
    return plan(report=str(folder / "plan.html"), region="us-central1", pipeline_root=str(folder), **values)


def container(made: CodePlan) -> dict[str, Any]:
    found: dict[str, Any] = made.worker_pool_specs[0]["container_spec"]
    return found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"command": "python train.py"}, "command is 'python train.py'; expected a list of words"),
        ({"command": []}, "command is empty; expected a list of words"),
        ({"command": [""]}, "command is empty"),
        (
            {"command": ["python", ["train.py"]]},
            "command[1] is not a text that a program can receive, or a number up to 2**53",
        ),
        ({"command": ["python", "a\0b"]}, "command[1] is not a text that a program can receive"),
        ({"command": ["python", "\ud800"]}, "command[1] is not a text that a program can receive"),
        ({"arguments": [True]}, "arguments[0] is not a text"),
        ({"arguments": [float("nan")]}, "arguments[0] is not a text"),
        (
            {"arguments": [2.0**53 * 2]},
            "arguments[0] is not a text that a program can receive, or a number up to 2**53",
        ),
        ({"arguments": [10**400]}, "arguments[0] is not a text"),
        ({"environment": {"A": float("inf")}}, "environment.A is not a text"),
        ({"arguments": {"a": 1}}, "arguments is {'a': 1}; expected a list"),
        (
            {"inputs": {"train": "gs://bucket/train.csv"}},
            "inputs.train is not valid; expected a name of a-z, 0-9 and _, and ADDRESS#VERSION",
        ),
        ({"inputs": {"My data": "gs://b/x#1"}}, "inputs.My data is not valid"),
        ({"inputs": ["gs://b/x#1"]}, "inputs is not a mapping"),
        ({"environment": {"A-B": "1"}}, "environment.A-B is not valid; expected a variable"),
        (
            {"environment": {"AIP_MODEL_DIR": "/tmp"}},
            "environment.AIP_MODEL_DIR is not valid; expected a variable that the service does not set",
        ),
        ({"environment": {"A": None}}, "environment.A is not a text"),
        ({"environment": {"HUB": "1"}, "secrets": {"HUB": SECRET}}, "environment.HUB is in secrets as well"),
        (
            {"labels": {"Team": "vision"}},
            "labels.Team is not valid; expected a key that the pipeline does not set; up to 63",
        ),
        ({"labels": {"run-id": "1"}}, "labels.run-id is not valid"),
        ({"metric": " "}, "metric is ' '"),
        ({"direction": "up"}, "direction is 'up'; expected maximize or minimize"),
        ({"minimum_metric": "high"}, "minimum_metric is 'high'; expected a number"),
        ({"minimum_metric": "-inf"}, "minimum_metric is infinite; expected a number"),
        ({"image": "Mine"}, "image is 'Mine', which is not an image name"),
        ({"model_name": "m"}, "serving_image is '', which is not an image name"),
        ({"model_name": 'a "b"', "serving_image": IMAGE}, "model_name is"),
        ({"deploy_endpoint": "live"}, "deploy_endpoint is set, but model_name is empty"),
        ({"accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 3}, "3 x NVIDIA_TESLA_T4"),
        ({"scheduling_strategy": ""}, "scheduling_strategy is empty"),
        ({"run_label": "a\nb"}, "run_label is 'a\\nb'"),
    ],
)
def test_a_wrong_value_is_refused_by_name_in_one_line(
    tmp_path: pathlib.Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        planned(tmp_path, **changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [
        {"secrets": {"HUB": "the-very-secret-value"}},
        {"secrets": {"HUB": "projects/p/secrets/the-very-secret-value"}},
        {"secrets": {"HUB": "projects/p/secrets/the-very-secret-value/versions/latest"}},
        {"secrets": ["the-very-secret-value"]},
        {"secrets": {"HUB": ["the-very-secret-value"]}},
        {"environment": {"HUB_TOKEN": "the-very-secret-value"}},
        {"environment": {"wandb_api_key": "the-very-secret-value"}},
        {"environment": "the-very-secret-value"},
    ],
)
def test_what_may_be_a_secret_is_refused_and_not_shown(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], given: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match=r"secrets|environment") as caught:
        planned(tmp_path, **given)
    assert "the-very-secret-value" not in str(caught.value) + "".join(capsys.readouterr())


def test_numbers_that_became_doubles_are_the_words_that_the_user_wrote(tmp_path: pathlib.Path) -> None:
    made = planned(
        tmp_path,
        command=["python", "train.py", 7.0],
        arguments=["--epochs", 3.0, "--rate", 0.1, 2],
        environment={"WORKERS": 4.0, "RATE": 1e-05},
        labels={"cost-center": 42.0},
    )
    assert container(made)["command"] == ["python", "train.py", "7"]
    assert container(made)["args"] == ["--epochs", "3", "--rate", "0.1", "2"]
    assert container(made)["env"] == [{"name": "WORKERS", "value": "4"}, {"name": "RATE", "value": "1e-05"}]
    assert made.labels == {"cost-center": "42"}
    same = planned(
        tmp_path,
        command=["python", "train.py", "7"],
        arguments=["--epochs", 3, "--rate", 0.1, "2"],
        environment={"WORKERS": 4, "RATE": 0.00001},
    )
    assert same.run_id == made.run_id


def test_the_run_id_is_what_decides_the_result_and_not_the_machines(tmp_path: pathlib.Path) -> None:
    first = planned(tmp_path)
    for same in (
        {"replica_count": 2, "scheduling_strategy": "SPOT"},
        {"machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4", "accelerator_count": 1},
        {"image": IMAGE.replace("images/mine", "copies/other")},
        {"secrets": {"HUB": SECRET}, "labels": {"a": "b"}},
        {"metric": "loss", "direction": "minimize", "minimum_metric": "3"},
    ):
        assert planned(tmp_path, **same).run_id == first.run_id, same
    others = [
        {"image": IMAGE.replace("b", "c")},
        {"command": ["python", "other.py"]},
        {"arguments": ["1"]},
        {"inputs": {"a": "gs://b/x#1"}},
        {"inputs": {"a": "gs://b/x#2"}},
        {"environment": {"A": "1"}},
        {"run_label": "again"},
    ]
    assert len({first.run_id, *(planned(tmp_path, **other).run_id for other in others)}) == len(others) + 1
    assert first.base_output_directory == f"{tmp_path}/training/{first.run_id}"
    assert first.checkpoint_directory == f"{first.base_output_directory}/checkpoints/"


def test_the_champion_is_given_by_variables_and_does_not_identify_the_run(
    tmp_path: pathlib.Path, server: Server, registry: Registry
) -> None:
    named = {"model_name": NAME, "serving_image": SERVING}
    before = planned(tmp_path, **named)
    assert before.run_id == planned(tmp_path).run_id
    assert "env" not in container(before)
    lines = [{"id": number, "label": number % 2, "prediction": number % 2} for number in range(150)]
    run = AnyCodeRun(folder=tmp_path, server=server, registry=registry, name="1")
    run.write({"accuracy": 1}, [*lines, {"id": "seen", "split": "train"}, {"id": 3, "split": "train"}])
    run.register(run.compare())
    after = planned(tmp_path, **named)
    assert after.run_id == before.run_id
    variables = {each["name"]: each["value"] for each in container(after)["env"]}
    champion = registry.champion(registry.find(NAME))
    assert champion is not None
    assert variables["CHAMPION_MODEL"] == champion.artifact_uri
    ids = [json.loads(line) for line in pathlib.Path(variables["CHAMPION_TEST_IDS"]).read_text().splitlines()]
    assert ids == [{"id": number} for number in range(150) if number != 3]
    # A run that is not trained needs neither.
    storage.write_json(storage.join(after.checkpoint_directory, "result.json"), {"metrics": {"accuracy": 0.5}})
    outcome.note_completion(after.checkpoint_directory, run_id=after.run_id, inputs_sha256=after.inputs_sha256)
    finished = planned(tmp_path, **named)
    assert (finished.is_finished, "env" in container(finished)) == (True, False)
    with pytest.raises(UserError, match=r"environment\.CHAMPION_MODEL is not valid"):
        planned(tmp_path, environment={"CHAMPION_MODEL": "x"})


def test_an_input_is_a_variable_with_its_address(tmp_path: pathlib.Path) -> None:
    given = {
        "inputs": {"train": "gs://bucket/train.csv#1712345678"},
        "environment": {"TOKENIZERS_PARALLELISM": "false"},
    }
    assert container(planned(tmp_path, **given))["env"] == [
        {"name": "INPUT_TRAIN", "value": "gs://bucket/train.csv"},
        {"name": "TOKENIZERS_PARALLELISM", "value": "false"},
    ]


def test_an_object_with_another_checksum_is_refused_before_a_machine_is_requested(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CloudStorage(tmp_path) as cloud:
        cloud.buckets.create("b")
        for name, value in cloud.environment.items():
            monkeypatch.setenv(name, value)
        storage.write_text("gs://b/train.csv", "1,2\n")
        crc32c = f"crc32c:{bucket.identity('gs://b/train.csv')['crc32c']}"
        given = {"inputs": {"train": f"gs://b/train.csv#{crc32c}", "other": "gs://b/none#1"}}
        assert planned(tmp_path, **given).run_id
        storage.write_text("gs://b/train.csv", "1,3\n")
        with pytest.raises(UserError, match=rf"^inputs\.train is .*#{re.escape(crc32c)}, but the object is crc32c:"):
            planned(tmp_path, **given)
        with pytest.raises(UserError, match="but the object is missing now"):
            planned(tmp_path, inputs={"train": f"gs://b/none#{crc32c}"})
        # A local run reads no bucket.
        monkeypatch.setenv(step_endpoint.MARKER, "1")
        assert planned(tmp_path, **given).run_id


def test_secrets_are_read_by_a_program_in_the_replica(tmp_path: pathlib.Path) -> None:
    command = container(planned(tmp_path, secrets={"HUB_TOKEN": SECRET}))["command"]
    assert command[:2] == ["python3", "-c"]
    assert command[3:] == [f"HUB_TOKEN={SECRET}", "--", "python", "train.py"]
    assert "env" not in container(planned(tmp_path))


def test_a_file_that_runs_here_identifies_the_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "mine.py"
    code.write_text("print(1)")
    monkeypatch.syspath_prepend(str(tmp_path))
    by_path, by_name = {"command": ["python", str(code)]}, {"command": ["python", "-m", "mine"]}
    in_the_cloud = [planned(tmp_path, **each).run_id for each in (by_path, by_name)]
    monkeypatch.setenv(step_endpoint.MARKER, "1")
    before = [planned(tmp_path, **each).run_id for each in (by_path, by_name)]
    code.write_text("print(2)")
    after = [planned(tmp_path, **each).run_id for each in (by_path, by_name)]
    assert len({*in_the_cloud, *before, *after}) == 6
    # A word is no file, however long it is.
    assert planned(tmp_path, command=["python", "-c", "print()\n" * 1000]).run_id


def test_what_stands_in_for_the_image_identifies_a_local_run(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(step_endpoint.MARKER, "1")
    monkeypatch.setenv(step_endpoint.IMAGES, "{}")
    relative: dict[str, Any] = {"image": "my/code:1", "command": ["python", "train.py"]}
    with pytest.raises(UserError, match=r"the code of 'python train\.py' is not known.*--image my/code:1="):
        planned(tmp_path, **relative)
    found = {planned(tmp_path, **relative, run_label="again").run_id}
    assert planned(tmp_path, command=["python", "-c", "print()"]).run_id
    for name, digest in (("my/code:1", "a"), ("my/code:1", "b"), ("my/code", "c"), ("*", "image")):
        monkeypatch.setenv(step_endpoint.IMAGES, json.dumps({name: digest, "other": "d"}))
        found.add(planned(tmp_path, **relative).run_id)
    assert len(found) == 5
    monkeypatch.delenv(step_endpoint.MARKER)
    in_the_cloud = planned(tmp_path, **relative).run_id
    monkeypatch.delenv(step_endpoint.IMAGES)
    assert planned(tmp_path, **relative).run_id == in_the_cloud


def test_a_run_counts_as_finished_only_with_the_result_that_was_noted(tmp_path: pathlib.Path) -> None:
    made = planned(tmp_path)
    result = storage.join(made.checkpoint_directory, "result.json")
    # As a program leaves it that fails afterwards: no step has noted that the job succeeded.
    storage.write_json(result, {"metrics": {"accuracy": 0.5}})
    assert not planned(tmp_path).is_finished
    outcome.note_completion(made.checkpoint_directory, run_id=made.run_id, inputs_sha256=made.inputs_sha256)
    assert planned(tmp_path, replica_count=2).is_finished
    assert not planned(tmp_path, run_label="again").is_finished
    storage.write_json(result, {"metrics": {"accuracy": 0.6}})
    assert not planned(tmp_path).is_finished


def test_the_page_and_the_log_have_the_machines_and_the_configuration(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = planned(tmp_path, image=PLACEHOLDER_IMAGE, secrets={"HUB": SECRET}, replica_count=2)
    assert made.restart_job_on_worker_restart
    page = (tmp_path / "plan.html").read_text()
    for expected in ("n1-standard-8", made.run_id, "train.py", SECRET):
        assert expected in page
    assert "has no digest; a rebuilt image is taken for the same code" in capsys.readouterr().out
    assert json.loads(json.dumps(made)) == list(made)


def test_any_image_may_use_gpus_that_the_image_trainer_does_not_know() -> None:
    from components.train.machines import check, check_any_code

    machines = Machines(machine_type="a4-highgpu-8g", accelerator_type="NVIDIA_B200", accelerator_count=8)
    rules = [finding.rule for finding in check_any_code(machines, image=IMAGE, region="us-central1")]
    assert "training-image" not in rules
    assert "training-image" in [each.rule for each in check(machines, image=IMAGE, region="us-central1")]
