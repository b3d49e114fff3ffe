"""cloud.py against a stand-in for gcloud that keeps state, and the test commands of cloudbuild.yaml, run locally."""

import json
import os
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from cloud import main
from tests.support.in_process import call

Script = Callable[..., subprocess.CompletedProcess[str]]
DIGEST = "sha256:" + "d" * 64
READS = {"describe", "list", "get-iam-policy"}


@pytest.fixture
def cloud(repository: pathlib.Path, tmp_path: pathlib.Path, build_folder: pathlib.Path) -> Script:
    """Calls `python cloud.py ...` for one project with the gcloud of tests/support/gcloud.py."""
    gcloud = tmp_path / "bin" / "gcloud"
    gcloud.parent.mkdir()
    program = repository / "tests" / "support" / "gcloud.py"
    gcloud.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(program))} "$@"\n')
    gcloud.chmod(0o755)

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = {"PATH": f"{gcloud.parent}:{os.environ['PATH']}", "GCLOUD_STATE": str(tmp_path / "state.json")}
        words = [*arguments, "--project", "my-project"]
        return call(main, words, cwd=repository, environment=os.environ | path | variables, program="cloud.py")

    return run


@pytest.fixture
def state(tmp_path: pathlib.Path) -> Callable[[], dict[str, Any]]:
    """Return the state of the stand-in for gcloud."""
    return lambda: json.loads((tmp_path / "state.json").read_text())


def changes(calls: list[list[str]]) -> list[list[str]]:
    return [call for call in calls if not READS & set(call)]


def test_up_creates_everything_and_a_second_run_changes_nothing(
    cloud: Script, state: Any, repository: pathlib.Path
) -> None:
    first = cloud("up", "--region", "europe-west4")
    assert first.returncode == 0, first.stderr
    made = state()
    assert made["made"]["buckets gs://my-project-image-training"]["location"] == "EUROPE-WEST4"
    assert "repositories image-training" in made["made"]
    assert "service-accounts image-training" in made["made"]
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
    assert "--service-account=image-training@my-project.iam.gserviceaccount.com" in first.stdout
    compiled = (repository / "build" / "image_training.json").read_text()
    image = f"europe-west4-docker.pkg.dev/my-project/image-training/image-training-python@{DIGEST}"
    assert image in compiled
    second = cloud("up", "--region", "europe-west4")
    assert second.returncode == 0, second.stderr
    again = state()
    assert changes(again["calls"]) == changes(made["calls"])
    assert (again["made"], again["policies"]) == (made["made"], made["policies"])


def test_a_failure_stops_it_and_the_next_run_continues(cloud: Script, state: Any) -> None:
    failed = cloud("up", GCLOUD_FAILS="repositories create")
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith("error: ERROR: (gcloud) PERMISSION_DENIED: you may not do that (from: gcloud artifacts")
    before = state()
    assert not any("service-accounts" in call or "builds" in call for call in before["calls"])
    assert cloud("up").returncode == 0
    later = changes(state()["calls"][len(before["calls"]) :])
    assert not any("buckets" in call and "create" in call for call in later)
    assert any("repositories" in call and "create" in call for call in later)


def test_a_refused_read_does_not_count_as_missing(cloud: Script, state: Any) -> None:
    failed = cloud("up", GCLOUD_FAILS="buckets describe")
    assert failed.returncode == 1
    assert not any("create" in call for call in state()["calls"])


def test_a_bucket_in_another_region_is_refused(cloud: Script) -> None:
    assert cloud("up", "--region", "europe-west4").returncode == 0
    moved = cloud("up", "--region", "us-central1")
    assert moved.returncode == 1
    assert moved.stderr.startswith("error: gs://my-project-image-training is in EUROPE-WEST4, not in us-central1; ")


def test_down_removes_what_up_created(cloud: Script, state: Any) -> None:
    assert cloud("up").returncode == 0
    kept = cloud("down")
    assert kept.returncode == 0, kept.stderr
    assert "gs://my-project-image-training is kept" in kept.stdout
    assert [name for name in state()["made"] if name.startswith(("buckets", "repositories", "service-accounts"))] == [
        "buckets gs://my-project-image-training"
    ]
    assert cloud("down", "--with-bucket").returncode == 0
    before = changes(state()["calls"])
    assert not any(name.startswith("buckets") for name in state()["made"])
    assert cloud("down", "--with-bucket").returncode == 0
    assert changes(state()["calls"]) == before


@pytest.mark.parametrize("what", ["up", "down"])
def test_a_dry_run_calls_nothing(cloud: Script, tmp_path: pathlib.Path, what: str) -> None:
    done = cloud(what, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "state.json").exists()
    assert sum(line.startswith("gcloud ") for line in done.stdout.splitlines()) >= 4


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--project", "My Project"), "--project is 'My Project'; expected a project id"),
        (("--project", "example.com:my-project"), "--project is 'example.com:my-project'; expected a project id"),
        (("--region", "us-centrall"), "--region is 'us-centrall'; expected a region such as us-central1"),
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


@pytest.mark.slow
def test_the_test_steps_of_the_build_work(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    steps = yaml.safe_load((repository / "cloudbuild.yaml").read_text())["steps"]
    tests = [step["args"] for step in steps if step["id"].startswith("test-")]
    assert [step["id"] for step in steps] == ["build", "test-prepare", "test-train"]
    for args in tests:
        words = [word.replace("/workspace", str(tmp_path)) for word in args[args.index("$_IMAGE") + 1 :]]
        variables = dict(
            args[i + 1].replace("/workspace", str(tmp_path)).split("=") for i, a in enumerate(args) if a == "--env"
        )
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=repository, env=os.environ | variables, capture_output=True
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "build" / "test-run" / "result.json").exists()
