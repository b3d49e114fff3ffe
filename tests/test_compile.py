"""`python compile.py`: its files, its output, and what it refuses."""

import json
import pathlib
import subprocess
from collections.abc import Callable

import pytest
import yaml

import compile
from vertex_testing.in_process import call

Compile = Callable[..., subprocess.CompletedProcess[str]]

IMAGE = "europe-west4-docker.pkg.dev/project/images/image-training-python@sha256:" + "a" * 64


@pytest.fixture
def compile_pipeline(repository: pathlib.Path, python: str, tmp_path: pathlib.Path) -> Compile:
    """Calls `python compile.py`, or runs it in its own process."""

    def run(*flags: str, output: str = "build", is_process: bool = False) -> subprocess.CompletedProcess[str]:
        words = ["--output-dir", str(tmp_path / output), *flags]
        if not is_process:
            return call(compile.main, words, cwd=tmp_path, program="compile.py")
        command = [python, str(repository / "compile.py"), *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    return run


def parameters(path: pathlib.Path) -> dict[str, object]:
    spec = json.loads(path.read_text())
    declared = spec["root"]["inputDefinitions"]["parameters"]
    return {name: field.get("defaultValue") for name, field in declared.items()}


def test_both_files_are_byte_identical_on_every_run(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    assert compile_pipeline(output="one", is_process=True).returncode == 0
    assert compile_pipeline(output="two").returncode == 0
    names = [f"{name}.{suffix}" for name in ("batch_prediction", "image_training") for suffix in ("json", "yaml")]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names


def test_a_name_compiles_one_pipeline(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    done = compile_pipeline("batch_prediction", f"--image={IMAGE}")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "build").iterdir()) == [
        "batch_prediction.json",
        "batch_prediction.yaml",
    ]
    assert "train" not in done.stdout
    assert done.stdout.count("Wrote") == 1
    spec = json.loads((tmp_path / "build/batch_prediction.json").read_text())
    assert spec["pipelineInfo"]["name"] == "batch-prediction"
    wrong = compile_pipeline("batch_predictoin")
    assert wrong.returncode == 2
    assert "no pipeline 'batch_predictoin'; did you mean batch_prediction?" in wrong.stderr


def test_json_and_yaml_hold_the_same_spec(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    compile_pipeline()
    as_json = json.loads((tmp_path / "build/image_training.json").read_text())
    as_yaml = yaml.safe_load((tmp_path / "build/image_training.yaml").read_text())
    assert as_json == as_yaml


def test_the_steps_without_gpus_and_the_server_use_the_image_for_cpus(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    other = IMAGE.replace("image-training-python", "image-training-cpu")
    done = compile_pipeline(f"--image={IMAGE}", f"--cpu-image={other}")
    assert done.returncode == 0, done.stderr
    spec = json.loads((tmp_path / "build/image_training.json").read_text())
    executors = spec["deploymentSpec"]["executors"]
    used = {
        name.removeprefix("exec-").removesuffix("-2"): found["container"]["image"]
        for name, found in executors.items()
        if "image-training" in found.get("container", {}).get("image", "")
    }
    of_cpu = {"prepare", "plan", "export", "record", "deploy", "summary"}
    assert used == dict.fromkeys(of_cpu, other) | dict.fromkeys(("evaluate", "compare"), IMAGE)
    exporting = spec["components"]["comp-condition-4"]["dag"]["tasks"]["export"]["inputs"]["parameters"]
    assert exporting["own_image"] == {"runtimeValue": {"constant": other}}
    tasks = spec["components"]["comp-exit-handler-1"]["dag"]["tasks"]
    images = {
        step: tasks[step]["inputs"]["parameters"]["image"]["runtimeValue"]["constant"] for step in ("prepare", "plan")
    }
    # Dataflow's workers have the packages of `prepare`; the training job has a GPU.
    assert images == {"prepare": other, "plan": IMAGE}
    wrong = compile_pipeline(f"--image={IMAGE}", "--cpu-image=Mine")
    assert wrong.returncode == 2
    assert "cpu_image is 'Mine', which is not an image name" in wrong.stderr


def test_flags_override_the_defaults_of_the_parameters(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    done = compile_pipeline(
        "--machine-type=g2-standard-24",
        "--accelerator-type=NVIDIA_L4",
        "--accelerator-count=2",
        "--replica-count=3",
        "--scheduling-strategy=SPOT",
        "--region=europe-west4",
        f"--image={IMAGE}",
        "--serving-image=example-docker.pkg.dev/serving:1",
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "build/image_training.json").read_text()
    found = parameters(tmp_path / "build/image_training.json")
    assert found["machine_type"] == "g2-standard-24"
    assert found["accelerator_type"] == "NVIDIA_L4"
    assert (found["accelerator_count"], found["replica_count"]) == (2, 3)
    assert found["scheduling_strategy"] == "SPOT"
    assert found["serving_image"] == "example-docker.pkg.dev/serving:1"
    assert "placeholder/" not in text
    assert "3 x g2-standard-24 with 2 x NVIDIA_L4" in done.stdout
    assert "checked for europe-west4" in done.stdout
    assert "Without --image" not in done.stdout


def test_without_an_image_the_output_explains_how_to_build_one(compile_pipeline: Compile) -> None:
    done = compile_pipeline()
    assert done.returncode == 0
    assert "Without --image the file runs only locally" in done.stdout
    assert "gcloud builds submit --tag" in done.stdout


def test_notify_uses_googles_e_mail_op_and_makes_the_recipients_a_parameter(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    done = compile_pipeline("--notify", "a@example.com", "b@example.com")
    assert done.returncode == 0, done.stderr
    spec = json.loads((tmp_path / "build/image_training.json").read_text())
    assert parameters(tmp_path / "build/image_training.json")["recipients"] == ["a@example.com", "b@example.com"]
    task = spec["root"]["dag"]["tasks"]["vertex-pipelines-notification-email"]
    assert task["triggerPolicy"]["strategy"] == "ALL_UPSTREAM_TASKS_COMPLETED"
    assert task["inputs"]["parameters"]["recipients"] == {"componentInputParameter": "recipients"}
    assert "summary" not in spec["root"]["dag"]["tasks"]
    compile_pipeline()
    assert "recipients" not in parameters(tmp_path / "build/image_training.json")


def test_notify_without_addresses_asks_for_them_at_submission(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    done = compile_pipeline("--notify")
    assert "e-mail to the recipients given at submission" in done.stdout
    spec = json.loads((tmp_path / "build/image_training.json").read_text())
    # Without a default it is required: the operation has no use for an empty list.
    assert spec["root"]["inputDefinitions"]["parameters"]["recipients"] == {
        "description": "E-mail addresses to notify when the run has ended.",
        "parameterType": "LIST",
    }
    task = spec["root"]["dag"]["tasks"]["vertex-pipelines-notification-email"]
    assert task["inputs"]["parameters"]["recipients"] == {"componentInputParameter": "recipients"}
    assert task["cachingOptions"] == {}


def test_the_targets_are_inputs_of_the_exit_handler_and_no_parameters(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    done = compile_pipeline()
    before = parameters(tmp_path / "build/image_training.json")
    done = compile_pipeline("--notify-webhook=projects/p-1/secrets/hook", "--notify-topic=projects/p-1/topics/ends")
    assert "summary, sent to projects/p-1/secrets/hook and projects/p-1/topics/ends" in done.stdout
    assert parameters(tmp_path / "build/image_training.json") == before
    spec = json.loads((tmp_path / "build/image_training.json").read_text())
    inputs = spec["root"]["dag"]["tasks"]["summary"]["inputs"]["parameters"]
    assert inputs["webhook_secret"] == {"runtimeValue": {"constant": "projects/p-1/secrets/hook"}}
    assert inputs["topic"] == {"runtimeValue": {"constant": "projects/p-1/topics/ends"}}


def test_the_address_of_a_webhook_is_refused_and_not_shown(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    address = "https://hooks.example.com/services/T0/B0/wxyz"
    for flag in ("--notify-webhook", "--notify-topic"):
        done = compile_pipeline(flag, address)
        assert (done.returncode, done.stdout) == (2, "")
        assert "projects/PROJECT/" in done.stderr
        assert "wxyz" not in done.stderr
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("flags", "found", "valid"),
    [
        (["--accelerator-count=3"], "3", "NVIDIA_L4"),
        (["--machine-type=n1-standart-8"], "n1-standart-8", "n1-standard-8"),
        (["--accelerator-type=NVIDIA_TESLA_T5"], "NVIDIA_TESLA_T5", "NVIDIA_TESLA_T4"),
        (["--accelerator-count=0"], "accelerator", "NVIDIA_L4"),
        (["--region=mars-east1"], "mars-east1", "us-"),
        (["--replica-count=0"], "0", "at least 1"),
        (["--parameter-server-count=2"], "2", "replica_count"),
        (["--scheduling-strategy=FLEX_START", "--accelerator-type=NVIDIA_TESLA_T4"], "FLEX_START", "NVIDIA_L4"),
        (["--max-wait-seconds=0", "--scheduling-strategy=FLEX_START"], "0", "forever"),
        (["--boot-disk-size-gb=50"], "50", "100"),
        (["--reservation=mine"], "'mine'", "projects/"),
        (["--reservation=projects/p/zones/us-east1-b/reservations/r"], "us-east1-b", "us-central1"),
        (["--reservation=ANY", "--persistent-resource-id=r"], "ANY_RESERVATION", "exclude each other"),
        (["--evaluate-accelerator-type=NVIDIA_L4"], "evaluate_accelerator_count is 0", "both"),
        (["--evaluate-accelerator-type=NVIDIA_L4", "--evaluate-accelerator-count=3"], "'evaluate'", "1, 2, 4 or 8"),
        (["--prepare-cpus=97"], "97 CPUs for step 'prepare'", "96"),
        (["--prepare-memory-gb=-1"], "-1", "0 or more"),
        (["--scheduling-strategy=CHEAP"], "CHEAP", "SPOT"),
        (["--accelerator-count=two"], "two", "--help"),
        (["--image="], "''", "sha256"),
        (["--image=a b"], "a b", "sha256"),
        (["--image=foo"], "'foo'", "sha256"),
        (["--serving-image=nonsense"], "'nonsense'", "sha256"),
        (["--image=UPPER//x@@"], "UPPER", "sha256"),
        (["--image=us-docker.pkg.dev/your-project/images/name:1"], "your-project", "placeholder"),
        (["--notify", "team"], "team", "@"),
        (["--notify", "a@b", "c@d", "e@f", "g@h"], "4 addresses", "3"),
        (["--notify", "a@b", "--notify-topic", "projects/p/topics/ends"], "--notify-topic", "one exit task"),
        (["--no-such-flag"], "--no-such-flag", "--help"),
    ],
)
def test_a_wrong_value_ends_with_exit_code_2_and_one_message(
    compile_pipeline: Compile, tmp_path: pathlib.Path, flags: list[str], found: str, valid: str
) -> None:
    done = compile_pipeline(*flags)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert found in done.stderr
    assert valid in done.stderr
    assert not (tmp_path / "build").exists()


def test_an_output_directory_that_cannot_be_written_is_one_line(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "file").write_text("")
    done = compile_pipeline("--output-dir", str(tmp_path / "file"))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "file").read_text() == ""


def test_a_folder_with_the_name_of_a_file_changes_nothing(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    (tmp_path / "build" / "image_training.yaml").mkdir(parents=True)
    (tmp_path / "build" / "image_training.json").write_text("before")
    done = compile_pipeline()
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert (tmp_path / "build" / "image_training.json").read_text() == "before"
    assert len(list((tmp_path / "build").iterdir())) == 2


def test_help_groups_the_flags(compile_pipeline: Compile) -> None:
    done = compile_pipeline("--help")
    assert done.returncode == 0
    flags = "image serving-image region machine-type accelerator-type accelerator-count replica-count"
    for flag in f"{flags} scheduling-strategy notify notify-webhook notify-topic output-dir".split():
        assert f"--{flag}" in done.stdout
    assert "images:" in done.stdout
    assert "machines" in done.stdout
