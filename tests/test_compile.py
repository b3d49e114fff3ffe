"""`python compile.py`: its files, its output, and what it refuses."""

import json
import pathlib
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from kfp import compiler

import compile
from pipelines.settings import Settings
from vertex_testing.in_process import call

Compile = Callable[..., subprocess.CompletedProcess[str]]

IMAGE = "europe-west4-docker.pkg.dev/project/images/image-training-python@sha256:" + "a" * 64


@pytest.fixture
def compile_pipeline(repository: pathlib.Path, python: str, tmp_path: pathlib.Path) -> Compile:
    """Calls `python compile.py`, or runs it in its own process."""

    def run(
        *flags: str, output: str = "build", is_process: bool = False, **settings: Any
    ) -> subprocess.CompletedProcess[str]:
        words = ["--output-dir", str(tmp_path / output), *flags]
        if settings:
            (tmp_path / "project.yaml").write_text(yaml.safe_dump(settings))
            words += ["--settings", str(tmp_path / "project.yaml")]
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
    names = [
        f"{name}.{suffix}" for name in ("batch_prediction", "image_training", "training") for suffix in ("json", "yaml")
    ]
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


def test_the_yaml_is_that_of_kfps_compiler_except_for_line_breaks_in_texts(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    compile_pipeline()
    for name in ("batch_prediction", "image_training", "training"):
        compiler.Compiler().compile(compile._PIPELINES[name](Settings()), str(tmp_path / f"{name}.yaml"))
        own, theirs = (path.read_text() for path in (tmp_path / f"build/{name}.yaml", tmp_path / f"{name}.yaml"))
        assert list(yaml.safe_load_all(own)) == list(yaml.safe_load_all(theirs))
        # Comments, keys and their order, too.
        assert re.sub(r"\s+|\\", "", own) == re.sub(r"\s+|\\", "", theirs)


FALLBACKS = [{"scheduling_strategy": "SPOT"}, {"region": "europe-west4"}]


def test_an_empty_list_of_fallbacks_changes_no_byte(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    compile_pipeline(output="one")
    assert compile_pipeline(output="two", fallbacks=[], max_preemptions=9).returncode == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_sigterm_reaches_python_in_every_step(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    compile_pipeline(fallbacks=FALLBACKS, timeout_seconds=3600)
    words = [
        word
        for path in (tmp_path / "build").glob("*.json")
        for executor in json.loads(path.read_text())["deploymentSpec"]["executors"].values()
        for word in executor.get("container", {}).get("command", [])
    ]
    started = [word for word in words if "program_path=" in word]
    assert len(started) > 20
    assert all("\n_KFP_RUNTIME=true exec python3 -m kfp.dsl.executor_main" in word for word in started)


@pytest.mark.parametrize("name", ["image_training", "training"])
def test_fallbacks_replace_googles_operation_by_a_step_with_all_candidates(
    compile_pipeline: Compile, tmp_path: pathlib.Path, name: str
) -> None:
    done = compile_pipeline(name, f"--image={IMAGE}", fallbacks=FALLBACKS, timeout_seconds=3600)
    assert done.returncode == 0, done.stderr
    assert "slower, and Google charges for the traffic between regions" in done.stderr
    spec = json.loads((tmp_path / f"build/{name}.json").read_text())
    assert "custom_job.launcher" not in json.dumps(spec)
    found = [
        task
        for component in spec["components"].values()
        for key, task in component.get("dag", {}).get("tasks", {}).items()
        if key == "train"
    ]
    (train,) = found
    inputs = train["inputs"]["parameters"]
    candidates = inputs["candidates"]["runtimeValue"]["constant"]
    assert [each.get("region", "") for each in candidates] == ["", "", "europe-west4"]
    assert [each["scheduling_strategy"] == "SPOT" for each in candidates] == [False, True, False]
    # A retried attempt has the id of the first one, by which it finds its job.
    assert inputs["task"]["runtimeValue"]["constant"] == "{{$.pipeline_task_uuid}}"
    assert train["retryPolicy"]["maxRetryCount"] == 3
    assert {"parameter_server_count", "persistent_resource_id"} <= candidates[1].keys()
    # Without `exec`, the shell gets the SIGTERM of a cancelled pipeline, as process 1 ignores it, and the job stays.
    command = spec["deploymentSpec"]["executors"]["exec-train"]["container"]["command"]
    assert command[:2] == ["sh", "-ec"]
    assert re.search(r"^_KFP_RUNTIME=true exec python3 -m kfp.dsl.executor_main", command[2], re.M)


def test_what_a_fallback_may_cost_is_printed(compile_pipeline: Compile) -> None:
    done = compile_pipeline("image_training", fallbacks=FALLBACKS, timeout_seconds=7200, max_wait_seconds=3600)
    assert "or else, 2.  " in done.stdout
    assert "a second machine (e2-standard-4) while it waits and trains, for at most 5.0 hours" in done.stdout


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fallbacks": FALLBACKS}, "fallbacks is set without timeout_seconds, which bounds what all machines"),
        ({"fallbacks": [{"machine_type": "g2-standard-9"}], "timeout_seconds": 60}, "fallbacks[0]: "),
        ({"fallbacks": {"region": "us-east1"}, "timeout_seconds": 60}, "fallbacks is {'region': 'us-east1'}; expected"),
        (
            {
                "fallbacks": FALLBACKS,
                "timeout_seconds": 60,
                "service_account": "training@p.iam.gserviceaccount.com",
                "tensorboard": "projects/1/locations/us-central1/tensorboards/2",
            },
            "fallbacks[1]: region is europe-west4, but tensorboard is projects/1",
        ),
    ],
    ids=["timeout", "machine", "kind", "region"],
)
def test_wrong_fallbacks_write_nothing(
    compile_pipeline: Compile, tmp_path: pathlib.Path, settings: dict[str, Any], words: str
) -> None:
    done = compile_pipeline(**settings)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "build").exists()


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


def test_settings_are_defaults_of_parameters_and_constants(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    done = compile_pipeline(
        "--region=europe-west4",
        f"--image={IMAGE}",
        machine_type="g2-standard-24",
        accelerator_type="NVIDIA_L4",
        accelerator_count=2,
        replica_count=3,
        scheduling_strategy="SPOT",
        serving_image="example-docker.pkg.dev/serving:1",
        boot_disk_size_gb=200,
        max_regression=0,
        dataflow_max_workers=7,
        strict="leaks",
        service_account="training@p.iam.gserviceaccount.com",
        kms_key="projects/p/locations/r/keyRings/r/cryptoKeys/k",
    )
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "build/image_training.json").read_text()
    found = parameters(tmp_path / "build/image_training.json")
    assert found["machine_type"] == "g2-standard-24"
    assert found["accelerator_type"] == "NVIDIA_L4"
    assert (found["accelerator_count"], found["replica_count"]) == (2, 3)
    assert found["scheduling_strategy"] == "SPOT"
    assert not {"serving_image", "boot_disk_size_gb", "strict", "service_account", "kms_key"} & set(found)
    spec = json.loads(text)
    tasks = spec["components"]["comp-exit-handler-1"]["dag"]["tasks"]
    planned, prepared = (tasks[step]["inputs"]["parameters"] for step in ("plan", "prepare"))
    assert planned["settings"]["runtimeValue"]["constant"]["boot_disk_size_gb"] == 200
    assert planned["settings"]["runtimeValue"]["constant"]["serving_image"] == "example-docker.pkg.dev/serving:1"
    assert prepared["dataflow"]["runtimeValue"]["constant"]["max_workers"] == 7
    assert prepared["strict"] == {"runtimeValue": {"constant": "leaks"}}
    predicted = json.loads((tmp_path / "build/batch_prediction.json").read_text())
    for content in (text, json.dumps(predicted)):
        assert content.count('"constant": "training@p.iam.gserviceaccount.com"') >= 1
        assert content.count('"constant": "projects/p/locations/r/keyRings/r/cryptoKeys/k"') >= 1
    assert "placeholder/" not in text
    assert "3 x g2-standard-24 with 2 x NVIDIA_L4" in done.stdout
    assert "checked for europe-west4" in done.stdout
    assert "Without --image" not in done.stdout


def test_without_an_image_the_output_explains_how_to_build_one(compile_pipeline: Compile) -> None:
    done = compile_pipeline()
    assert done.returncode == 0
    assert "Without --image the file runs only locally" in done.stdout
    assert "gcloud builds submit --tag" in done.stdout


def test_notify_uses_googles_e_mail_op(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    addresses = ["a@example.com", "b@example.com"]
    done = compile_pipeline(notify=addresses)
    assert done.returncode == 0, done.stderr
    assert "e-mail, sent to a@example.com and b@example.com" in done.stdout
    spec = json.loads((tmp_path / "build/image_training.json").read_text())
    task = spec["root"]["dag"]["tasks"]["vertex-pipelines-notification-email"]
    assert task["triggerPolicy"]["strategy"] == "ALL_UPSTREAM_TASKS_COMPLETED"
    assert task["inputs"]["parameters"]["recipients"] == {"runtimeValue": {"constant": addresses}}
    assert task["cachingOptions"] == {}
    assert "summary" not in spec["root"]["dag"]["tasks"]


def test_the_webhook_is_an_input_of_the_exit_handler_and_no_parameter(
    compile_pipeline: Compile, tmp_path: pathlib.Path
) -> None:
    done = compile_pipeline()
    before = parameters(tmp_path / "build/image_training.json")
    done = compile_pipeline(notify_webhook="projects/p-1/secrets/hook")
    assert "summary, sent to projects/p-1/secrets/hook" in done.stdout
    assert parameters(tmp_path / "build/image_training.json") == before
    spec = json.loads((tmp_path / "build/image_training.json").read_text())
    inputs = spec["root"]["dag"]["tasks"]["summary"]["inputs"]["parameters"]
    assert inputs["notify_webhook"] == {"runtimeValue": {"constant": "projects/p-1/secrets/hook"}}


def test_the_address_of_a_webhook_is_refused_and_not_shown(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    address = "https://hooks.example.com/services/T0/B0/wxyz"
    done = compile_pipeline(notify_webhook=address)
    assert (done.returncode, done.stdout) == (2, "")
    assert "projects/PROJECT/" in done.stderr
    assert "wxyz" not in done.stderr
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("wrong", "found", "valid"),
    [
        ({"accelerator_count": 3}, "3", "NVIDIA_L4"),
        ({"machine_type": "n1-standart-8"}, "n1-standart-8", "n1-standard-8"),
        ({"accelerator_type": "NVIDIA_TESLA_T5"}, "NVIDIA_TESLA_T5", "NVIDIA_TESLA_T4"),
        ({"accelerator_count": 0}, "accelerator", "NVIDIA_L4"),
        (["--region=mars-east1"], "mars-east1", "us-"),
        ({"replica_count": 0}, "0", "a whole number from 1"),
        ({"parameter_server_count": 2}, "2", "replica_count"),
        ({"scheduling_strategy": "FLEX_START", "accelerator_type": "NVIDIA_TESLA_T4"}, "FLEX_START", "NVIDIA_L4"),
        ({"max_wait_seconds": 0}, "0", "forever"),
        ({"boot_disk_size_gb": 50}, "50", "100"),
        ({"reservation": "mine"}, "'mine'", "projects/"),
        ({"reservation": "projects/p/zones/us-east1-b/reservations/r"}, "us-east1-b", "us-central1"),
        ({"reservation": "ANY", "persistent_resource_id": "r"}, "ANY_RESERVATION", "exclude each other"),
        ({"evaluate_accelerator_type": "NVIDIA_L4"}, "evaluate_accelerator_count is 0", "both"),
        (
            {"evaluate_accelerator_type": "NVIDIA_L4", "evaluate_accelerator_count": 3},
            "'evaluate'",
            "1, 2, 4 or 8",
        ),
        ({"prepare_cpus": 97}, "97 CPUs for step 'prepare'", "96"),
        ({"prepare_memory_gb": -1}, "-1", "a whole number from 0"),
        ({"scheduling_strategy": "CHEAP"}, "CHEAP", "SPOT"),
        (["--image="], "''", "sha256"),
        (["--image=a b"], "a b", "sha256"),
        (["--image=foo"], "'foo'", "sha256"),
        (["--image=UPPER//x@@"], "UPPER", "sha256"),
        (["--image=us-docker.pkg.dev/your-project/images/name:1"], "your-project", "placeholder"),
        (["--no-such-flag"], "--no-such-flag", "--help"),
        (["--settings=none.yaml"], "none.yaml", "no such file"),
        ({"accelerator_count": "two"}, "project.yaml: accelerator_count is 'two'", "expected int"),
        ({"must_improve": 1}, "project.yaml: must_improve is 1", "expected bool"),
        ({"max_regression": "0.1"}, "project.yaml: max_regression is '0.1'", "expected int | float"),
        ({"max_regression": 2}, "project.yaml: max_regression is 2", "from 0 to 1"),
        ({"kms_key": None}, "project.yaml: kms_key is None", "expected str"),
        ({"kms_kye": "k"}, "project.yaml: unknown key 'kms_kye'", "did you mean kms_key?"),
        ({"force_promotion": True}, "project.yaml: unknown key 'force_promotion'", "; "),
        ({"xyzzy": 1}, "project.yaml: unknown key 'xyzzy'", "known keys: machine_type, "),
        ({"kms_key": 'a"b'}, "project.yaml: kms_key", "quotes"),
        ({"tensorboard": "projects/1/locations/r/tensorboards/2"}, "without service_account", "needs one"),
        ({"serving_image": "nonsense"}, "project.yaml: serving_image is 'nonsense'", "sha256"),
        ({"notify": ["a@b", "team"]}, "project.yaml: notify[1] is 'team'", "team@example.com"),
        ({"notify": "a@b"}, "project.yaml: notify is 'a@b'", "expected list"),
        ({"notify": ["a@b", "c@d", "e@f", "g@h"]}, "4 addresses", "3"),
        ({"notify": ["a@b"], "notify_webhook": "projects/p/secrets/hook"}, "notify_webhook", "one exit task"),
        ({"max_bad_fraction": 1.0}, "project.yaml: max_bad_fraction is 1.0", "0 to 0.999999"),
        ({"strict": "leak"}, "project.yaml: strict='leak'", "use leaks, "),
        ({"dataflow_max_workers": 0}, "project.yaml: dataflow_max_workers is 0", "1 to 4000"),
        ({"dataflow_disk_size_gb": 50.5}, "dataflow_disk_size_gb is 50.5", "expected int"),
        ({"dataflow_machine_type": "big"}, "dataflow_machine_type is 'big'", "a machine type"),
        ({"deploy_min_replicas": 3}, "deploy_max_replicas is 1", "deploy_min_replicas, 3"),
        ({"deploy_machine_type": "n1-standard-64"}, "n1-standard-64", "not a machine type for prediction"),
    ],
)
def test_a_wrong_value_ends_with_exit_code_2_and_one_message(
    compile_pipeline: Compile, tmp_path: pathlib.Path, wrong: Any, found: str, valid: str
) -> None:
    done = compile_pipeline(**wrong) if isinstance(wrong, dict) else compile_pipeline(*wrong)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert found in done.stderr
    assert valid in done.stderr
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("- kms_key\n", "found ['kms_key']; expected a mapping"),
        ("kms_key: a\nkms_key: b\n", "kms_key"),
        ("kms_key: !!python/object/apply:os.getcwd []\n", "python/object"),
        ("kms_key: [\n", "is not"),
    ],
)
def test_a_settings_file_that_cannot_be_read_is_one_line(
    compile_pipeline: Compile, tmp_path: pathlib.Path, text: str, expected: str
) -> None:
    (tmp_path / "own.yaml").write_text(text)
    done = compile_pipeline("--settings=own.yaml")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert "own.yaml" in line
    assert expected in line


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


def test_help_lists_the_flags_and_the_settings(compile_pipeline: Compile) -> None:
    done = compile_pipeline("--help")
    assert done.returncode == 0
    for flag in "settings image cpu-image region output-dir".split():
        assert f"--{flag}" in done.stdout
    listed = re.findall(r"^  (\w+)(?: \(.+?\))?: ", done.stdout, re.M)
    assert sorted(listed) == sorted(Settings().values)


def test_a_recipe_in_a_file_is_the_default_of_its_parameter(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    (tmp_path / "recipe.yaml").write_text("optimizer:\n  class_name: AdamW\nclass_weights: auto\n")
    done = compile_pipeline("image_training", f"--recipe={tmp_path / 'recipe.yaml'}")
    assert done.returncode == 0, done.stderr
    found = parameters(tmp_path / "build" / "image_training.json")["recipe"]
    assert found == '{"optimizer": {"class_name": "AdamW"}, "class_weights": "auto"}'


def test_a_recipe_is_compiled_whose_network_is_given_later(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    (tmp_path / "recipe.yaml").write_text("fine_tuning: {start: 0.25}\n")
    done = compile_pipeline("image_training", f"--recipe={tmp_path / 'recipe.yaml'}")
    assert done.returncode == 0, done.stderr


def test_a_wrong_recipe_is_not_compiled(compile_pipeline: Compile, tmp_path: pathlib.Path) -> None:
    (tmp_path / "recipe.yaml").write_text("optimiser: AdamW\n")
    for name, message in (("recipe.yaml", "did you mean optimizer?"), ("none.yaml", "cannot be read")):
        done = compile_pipeline("image_training", f"--recipe={tmp_path / name}")
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
