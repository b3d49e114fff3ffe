"""`cloud.py up`: what it makes and marks, what it refuses first, and the test commands of cloudbuild.yaml."""

import json
import os
import pathlib
import shlex
import subprocess
import sys

import pytest
import yaml

from cloud import main
from tests.pipelines.project.conftest import Script, World
from vertex_testing.in_process import call

DIGEST = "sha256:" + "d" * 64
ACCOUNT = "image-training@my-project.iam.gserviceaccount.com"
BUCKET = "gs://my-project-image-training"


@pytest.mark.slow
@pytest.mark.usefixtures("build_folder")
def test_up_creates_everything_with_its_mark_and_a_second_run_changes_nothing(
    cloud: Script, world: World, repository: pathlib.Path
) -> None:
    first = cloud("up", "--region", "europe-west4")
    assert first.returncode == 0, first.stderr
    made = world.things
    bucket, account = made["buckets"][BUCKET], made["accounts"][ACCOUNT]
    assert (bucket["location"], bucket["project"]) == ("EUROPE-WEST4", "my-project")
    mark = {"created-by": "image-training-cloud-py"}
    assert bucket["labels"] == mark
    assert made["repositories"] == {"my-project/europe-west4/image-training": {"labels": mark}}
    assert "created-by=image-training-cloud-py" in account["description"]
    granted = {each["role"] for policy in made["policies"].values() for each in policy}
    documented = (repository / "docs" / "cloud.md").read_text()
    assert granted == {
        "roles/aiplatform.user",
        "roles/logging.logWriter",
        "roles/storage.objectUser",
        "roles/artifactregistry.reader",
        "roles/iam.serviceAccountUser",
    }
    assert all(f"`{role}`" in documented for role in granted)
    assert f"--service-account={ACCOUNT}" in first.stdout
    compiled = (repository / "build" / "image_training.json").read_text()
    image = f"europe-west4-docker.pkg.dev/my-project/image-training/image-training-python@{DIGEST}"
    cpu_image = image.replace("image-training-python", "image-training-cpu")
    spec = json.loads(compiled)
    executors = spec["deploymentSpec"]["executors"]
    images = {name: found.get("container", {}).get("image", "") for name, found in executors.items()}
    used = {name: found for name, found in images.items() if "training" in found}
    assert used["exec-prepare"] == used["exec-plan"] == cpu_image
    assert used["exec-export"] == used["exec-record"] == cpu_image
    assert used["exec-evaluate"] == used["exec-compare"] == image
    tasks = [task for each in spec["components"].values() for task in each.get("dag", {}).get("tasks", {}).items()]
    served = [task["inputs"]["parameters"]["own_image"] for name, task in tasks if name == "export"]
    assert served == [{"runtimeValue": {"constant": cpu_image}}]
    assert not any("dataflow" in service for service in world.read()["services"])
    changes = world.changes
    second = cloud("up", "--region", "europe-west4")
    assert second.returncode == 0, second.stderr
    assert (world.things, world.changes) == (made, changes)
    assert "note:" not in second.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("build_folder")
def test_dataflow_is_enabled_only_when_asked_and_its_roles_go_with_the_account(
    cloud: Script, world: World, state_after_up: str, repository: pathlib.Path
) -> None:
    world.file.write_text(state_after_up)
    before = world.changes
    done = cloud("up", "--dataflow")
    assert done.returncode == 0, done.stderr
    later = world.changes[len(before) :]
    assert {"dataflow.googleapis.com", "compute.googleapis.com"} <= set(world.read()["services"])
    (build,) = [change for change in later if "builds submit" in change]
    assert "_CPU_TARGET=dataflow" in build
    compiled = json.loads((repository / "build" / "image_training.json").read_text())
    prepare = compiled["deploymentSpec"]["executors"]["exec-prepare"]["container"]
    assert "/image-training-dataflow@" in prepare["image"]
    granted = {role for change in later for role in shlex.split(change) if role.startswith("--role=")}
    assert granted == {"--role=roles/dataflow.admin", "--role=roles/dataflow.worker"}
    documented = (repository / "docs" / "cloud.md").read_text()
    assert all(f"`{role.removeprefix('--role=')}`" in documented for role in granted)
    assert cloud("down", "--yes").returncode == 0
    removed = " ".join(change for change in world.changes if "remove-iam-policy-binding" in change)
    assert all(role in removed for role in granted)


@pytest.mark.slow
@pytest.mark.usefixtures("build_folder")
def test_a_failure_stops_it_and_the_next_run_continues(cloud: Script, world: World) -> None:
    failed = cloud("up", GCLOUD_FAILS="repositories create")
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith("error: ERROR: (gcloud.artifacts.repositories.create) PERMISSION_DENIED: you may not do")
    assert "(from: gcloud artifacts" in line
    before = world.changes
    assert not any("service-accounts" in change or "builds" in change for change in before)
    assert cloud("up").returncode == 0
    later = world.changes[len(before) :]
    assert not any("buckets create" in change for change in later)
    assert any("repositories create" in change for change in later)


@pytest.mark.slow
@pytest.mark.usefixtures("build_folder")
def test_a_bucket_whose_mark_failed_is_marked_by_the_printed_command(
    cloud: Script, world: World, variables: dict[str, str]
) -> None:
    assert cloud("up", GCLOUD_FAILS="buckets update").returncode == 1
    assert world.things["buckets"][BUCKET]["labels"] == {}
    again = cloud("up")
    assert again.returncode == 0, again.stderr
    assert f"note: bucket {BUCKET} exists without the mark of `cloud.py up`, so `down` keeps it." in again.stdout
    (mark,) = [line.partition("mark it: ")[2] for line in again.stdout.splitlines() if "mark it: " in line]
    subprocess.run(shlex.split(mark), env=variables, check=True)
    assert cloud("down", "--with-bucket", "--yes").returncode == 0
    assert BUCKET not in world.things["buckets"]


@pytest.mark.slow
def test_up_in_another_folder_writes_only_into_the_project_and_prints_the_paths(
    repository: pathlib.Path, variables: dict[str, str], build_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    words = [sys.executable, str(repository / "cloud.py"), "up", "--project", "my-project"]
    done = subprocess.run(words, cwd=elsewhere, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(elsewhere.iterdir()) == []
    assert f"Wrote {build_folder / 'image_training.json'} and " in done.stdout
    # Every printed command works where it is pasted.
    build = next(shlex.split(line) for line in done.stdout.splitlines() if line.startswith("gcloud builds submit"))
    assert build[3:5] == [str(repository), f"--config={repository / 'cloudbuild.yaml'}"]
    compiles = next(shlex.split(line) for line in done.stdout.splitlines() if "compile.py" in line)
    assert compiles[1] == str(repository / "compile.py")
    (submits,) = [line for line in done.stdout.splitlines() if "pipelines submit" in line]
    assert submits.strip().startswith(f"{shlex.join(['cd', str(repository)])} && python -m pipelines submit ")


@pytest.mark.parametrize("command", ["buckets describe", "projects describe", "services list"])
def test_a_refused_read_does_not_count_as_missing(cloud: Script, world: World, command: str) -> None:
    failed = cloud("up", GCLOUD_FAILS=command)
    assert failed.returncode == 1
    assert world.changes == []


@pytest.mark.parametrize("shared", [False, True])
def test_a_bucket_of_another_project_is_refused_before_anything_is_made(
    cloud: Script, world: World, shared: bool
) -> None:
    labels = {"created-by": "image-training-cloud-py"}
    world.add("buckets", BUCKET, project="other-project", location="US-CENTRAL1", labels=labels, shared=shared)
    failed = cloud("up")
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith(f"error: {BUCKET} is in another project")
    assert line.endswith("; give another --name")
    assert (failed.stdout, world.changes) == ("", [])


def test_a_bucket_in_another_region_is_refused_before_anything_is_made(cloud: Script, world: World) -> None:
    world.add("buckets", BUCKET, project="my-project", location="EUROPE-WEST4", labels={})
    moved = cloud("up", "--region", "us-central1")
    assert moved.returncode == 1
    assert moved.stderr.startswith(f"error: {BUCKET} is in EUROPE-WEST4, not in us-central1; give another --name or ")
    assert world.changes == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--region", "us-centrall1"), "--region is 'us-centrall1', which is not a region with training; did you mean"),
        (("--region", "africa-south1"), "NVIDIA_L4 is not offered in africa-south1; choose another region or"),
        ("accelerator_count: 3", "3 x NVIDIA_L4 on g2-standard-8; this machine type supports 1 per replica"),
        ("replica_count: 0", "replica_count is 0; expected a whole number from 1"),
        ("prepare_memory_gb: 999", "999 GB for step 'prepare'; a step may have at most 624"),
    ],
)
@pytest.mark.parametrize("dry_run", [(), ("--dry-run",)])
def test_region_and_machines_are_checked_before_anything_is_made(
    cloud: Script,
    world: World,
    tmp_path: pathlib.Path,
    flags: tuple[str, ...] | str,
    message: str,
    dry_run: tuple[str, ...],
) -> None:
    if isinstance(flags, str):
        (tmp_path / "project.yaml").write_text(flags)
        flags = ("--settings", str(tmp_path / "project.yaml"))
    refused = cloud("up", *flags, *dry_run)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert message in line
    assert world.read()["calls"] == []


@pytest.mark.slow
@pytest.mark.usefixtures("build_folder")
def test_the_given_settings_are_those_of_the_compiled_pipeline(
    cloud: Script, world: World, repository: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    settings = "machine_type: g2-standard-12\nevaluate_accelerator_type: NVIDIA_L4\nevaluate_accelerator_count: 2\n"
    (tmp_path / "project.yaml").write_text(settings)
    done = cloud("up", "--region", "europe-west4", "--settings", str(tmp_path / "project.yaml"))
    assert done.returncode == 0, done.stderr
    compiled = json.loads((repository / "build" / "image_training.json").read_text())
    parameters = compiled["root"]["inputDefinitions"]["parameters"]
    assert parameters["machine_type"]["defaultValue"] == "g2-standard-12"
    assert parameters["accelerator_type"]["defaultValue"] == "NVIDIA_L4"
    evaluate = compiled["deploymentSpec"]["executors"]["exec-evaluate"]["container"]
    assert evaluate["resources"]["accelerator"]["count"] == "2"


def test_a_dry_run_calls_nothing(cloud: Script, world: World) -> None:
    done = cloud("up", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert not world.file.exists()
    assert sum(line.startswith("gcloud ") for line in done.stdout.splitlines()) >= 4


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("projects describe", "<html><body>Sign in</body></html>"),
        ("projects describe", ""),
        ("projects describe", "\udcff"),
        ("buckets describe", "null"),
        ("buckets describe", "{}"),
        ("services list", "{}"),
        ("services list", '[{"config": 1}]'),
        ("buckets get-iam-policy", "[]"),
        ("images describe", "{}"),
    ],
)
def test_output_of_gcloud_that_is_not_as_expected_is_one_line(
    cloud: Script, world: World, state_after_up: str, command: str, text: str
) -> None:
    world.file.write_text(state_after_up)
    before = world.changes
    done = cloud("up", GCLOUD_SAYS=command, GCLOUD_TEXT=text)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert command in line or "gcloud shows no " in line
    assert world.changes == before
    if "html" in text:
        assert line.startswith(
            "error: expected JSON, found '<html><body>Sign in</body></html>'; run it yourself: gcloud"
        )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--project", "My Project"), "--project is 'My Project'; expected a project id"),
        (("--project", "example.com:my-project"), "--project is 'example.com:my-project'; expected a project id"),
        (("--region", "us_central1"), "--region is 'us_central1'; expected a region such as us-central1"),
        (("--name", "a"), "--name is 'a'; expected 6 to 30 characters"),
        (("--name", "Image_Training"), "--name is 'Image_Training'; expected 6 to 30 characters"),
    ],
)
def test_a_wrong_name_is_refused_before_anything_is_created(
    repository: pathlib.Path, flags: tuple[str, ...], message: str
) -> None:
    words = ["up", "--project", "my-project", *flags, "--dry-run"]
    done = call(main, words, cwd=repository, program="cloud.py")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: {message}")


def test_without_gcloud_the_error_has_a_link(repository: pathlib.Path) -> None:
    words = [sys.executable, "cloud.py", "up", "--project", "my-project"]
    done = subprocess.run(words, cwd=repository, env={"PATH": "/nowhere"}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: gcloud is not installed; see https://")


@pytest.mark.soak
@pytest.mark.slow
def test_the_test_steps_of_the_build_work(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    steps = yaml.safe_load((repository / "cloudbuild.yaml").read_text())["steps"]
    tests = [step["args"] for step in steps if step["id"].startswith("test-")]
    assert [step["id"] for step in steps] == ["build", "build-cpu", "test-prepare", "test-train", "test-export"]
    for args in tests:
        place = next(number for number, word in enumerate(args) if word.endswith("_IMAGE"))
        # A program is named before the image, where the image has one of its own.
        program = args[args.index("--entrypoint") + 1 :][:1] if "--entrypoint" in args else []
        words = [word.replace("/workspace", str(tmp_path)) for word in (*program, *args[place + 1 :])]
        variables = dict(
            args[i + 1].replace("/workspace", str(tmp_path)).split("=") for i, a in enumerate(args) if a == "--env"
        )
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=repository, env=os.environ | variables, capture_output=True
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "test-run" / "result.json").exists()
    assert (tmp_path / "build" / "test-model" / "saved_model.pb").exists()
