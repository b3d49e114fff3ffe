"""Whole runs with everything on gs://: prepared, killed, resumed, evaluated, exported; mistakes are a single line."""

import dataclasses
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.board_server import tensorboard
from tests.support.forks import fork_module
from tests.support.modules import run_module, start_module
from trainer.data.sources import factory
from vertex_testing.cloud_storage.buckets import Buckets
from vertex_testing.cloud_storage.faults import Faults
from vertex_testing.cloud_storage.server import CloudStorage

pytestmark = pytest.mark.slow(first=True)
ARGUMENTS = [
    "--exact",
    "--epochs=2",
    "--global-batch-size=16",
    "--checkpoint-every-steps=4",
    "--checkpoint-every-seconds=0",
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server:
    """Cloud Storage whose bucket `data` has the images of the digits."""

    buckets: Buckets
    faults: Faults
    environment: dict[str, str]
    """Variables of the processes that use it."""
    source: Path
    """The same images in a local folder."""


@pytest.fixture(scope="module")
def server(cloud_storage: CloudStorage, tmp_path_factory: pytest.TempPathFactory) -> Server:
    cloud_storage.buckets.create("data")
    cloud_storage.buckets.create("runs")
    folder = Path(factory.write_digits(str(tmp_path_factory.mktemp("source") / "digits")))
    for path in sorted(folder.rglob("*.png")):
        if int(path.stem) >= 200:
            path.unlink()
            continue
        cloud_storage.buckets.put("data", f"source/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return Server(
        buckets=cloud_storage.buckets,
        faults=cloud_storage.faults,
        environment={**cloud_storage.environment, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))},
        source=folder,
    )


@pytest.fixture(scope="module")
def dataset(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The local one of two equal datasets, the other of which is in the bucket."""
    arguments = ["--image-size=16"]
    done = run_module("trainer.prepare", "gs://data/source", "gs://data/digits", *arguments, **server.environment)
    assert done.returncode == 0, done.stderr
    here = tmp_path_factory.mktemp("prepared") / "digits"
    done = run_module("trainer.prepare", str(server.source), str(here), *arguments)
    assert done.returncode == 0, done.stderr
    prepared = json.loads(server.buckets.get("data", "digits/dataset.json").data)
    assert prepared["fingerprint"] == json.loads((here / "dataset.json").read_text())["fingerprint"]
    assert server.buckets.names("data", "digits.html") == ["digits.html"]
    return here


def test_a_killed_run_resumes_and_ends_like_a_local_one(server: Server, dataset: Path, tmp_path: Path) -> None:
    uninterrupted = fork_module(
        "trainer.task", f"--dataset={dataset}", f"--checkpoint-directory={tmp_path}", *ARGUMENTS
    )
    assert uninterrupted.returncode == 0, uninterrupted.stderr
    arguments = ["--dataset=gs://data/digits", "--checkpoint-directory=gs://runs/one", *ARGUMENTS]
    environment = {**server.environment, "AIP_TENSORBOARD_LOG_DIR": "gs://runs/logs"}

    # Killed between the upload of a checkpoint's variables and that of its manifest.
    manifest = r"POST .*step-000000012%2Fmanifest\.json"
    arrived, resume_request = server.faults.hold(manifest)
    # The request ends without an effect, as if the process had been killed before its last byte was sent.
    server.faults.fail(1, 503, matching=manifest)
    process = start_module("trainer.task", *arguments, **environment)
    assert arrived.wait(200)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    resume_request.set()
    assert server.buckets.names("runs", "one/step-000000012") == ["one/step-000000012/variables.npz"]

    manifests = [name for name in server.buckets.names("runs") if name.endswith("manifest.json")]
    committed = max(int(name.split("-")[1].split("/")[0]) for name in manifests)
    assert 8 <= committed < 12
    server.faults.fail(2, 503, matching="POST .*step-")
    done = fork_module("trainer.task", *arguments, **environment)
    assert done.returncode == 0, done.stderr
    assert f"resuming at step {committed}" in done.stdout
    result = json.loads(server.buckets.get("runs", "one/result.json").data)
    wanted = json.loads((tmp_path / "result.json").read_text())
    for name in ("weights_sha256", "batch_digests", "best_step", "validation_accuracy", "final_step", "run_id"):
        assert result[name] == wanted[name]
    assert result["num_restarts"] == 1
    names = server.buckets.names("runs")
    assert not [name for name in names if ".probe-" in name or ".partial" in name]
    assert {name for name in names if "/events/" in name} == {
        "one/events/workerpool0-0.jsonl",
        "one/events/workerpool0-0.0001.jsonl",
    }
    check_tensorboard(server, result)
    # A third start finds nothing left to do.
    again = fork_module("trainer.task", *arguments, **environment)
    assert "is finished" in again.stdout, again.stderr


def check_tensorboard(server: Server, result: dict[str, Any]) -> None:
    program = ["-m", "tensorboard.main", "--logdir"]
    page = Path(__file__).parents[2] / "docs" / "tensorboard.md"
    assert f"    python {' '.join(program)} gs://MY-BUCKET/" in page.read_text()
    # The faster reader would ask Google's own address.
    arguments = [*program, "gs://runs/logs", "--load_fast=false"]
    with tensorboard(arguments, "convnet", last_step=result["final_step"], **server.environment) as board:
        assert board.runs() == ["convnet/train", "convnet/validation"]
        steps = [step for step, _ in board.scalars("convnet/train", "loss")]
        assert steps == sorted(set(steps))
        points = dict(board.scalars("convnet/validation", "accuracy"))
        assert points[result["best_step"]] == pytest.approx(result["validation_accuracy"])


@pytest.mark.usefixtures("dataset")
def test_a_stop_while_the_data_is_copied_ends_the_run_immediately(server: Server, tmp_path: Path) -> None:
    arguments = ["--dataset=gs://data/digits", f"--checkpoint-directory={tmp_path}/run", "--max-steps=2", *ARGUMENTS]
    environment = {**server.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    # A bucket that does not answer for ten minutes.
    arrived, resume_request = server.faults.hold(r"GET .*/download/.*/b/data/o/digits%2F.*train")
    process = start_module("trainer.task", *arguments, **environment)
    assert arrived.wait(200)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, resume_request.is_set()) == (143, False), stderr
    assert "SIGTERM: stopped before the first step; there is nothing to save" in stdout
    events = [json.loads(line) for line in (tmp_path / "run/events/workerpool0-0.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", "notice", "exit"]
    assert events[-1]["code"] == 143
    server.faults.clear()
    done = fork_module("trainer.task", *arguments, **environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("dataset")
def test_the_run_is_evaluated_and_exported_in_the_bucket(server: Server) -> None:
    where = ["--dataset=gs://data/digits", "--checkpoint-directory=gs://runs/one"]
    files = ["--report=gs://runs/evaluation.html", "--predictions=gs://runs/predictions.jsonl"]
    done = fork_module("trainer.evaluate", *where, *files, **server.environment)
    assert done.returncode == 0, done.stderr
    assert b"<html" in server.buckets.get("runs", "evaluation.html").data
    lines = server.buckets.get("runs", "predictions.jsonl").data.splitlines()
    # The validation split was staged, too.
    assert {json.loads(line)["split"] for line in lines} == {"validation", "test"}
    server.buckets.put("runs", "model/variables/variables.data-00001-of-00002", b"")
    done = fork_module("trainer.export", *where, "gs://runs/model", **server.environment)
    assert done.returncode == 0, done.stderr
    names = server.buckets.names("runs", "model/")
    assert "model/saved_model.pb" in names
    assert "model/variables/variables.data-00001-of-00002" not in names
    image = next(server.source.rglob("*.png"))
    done = fork_module("trainer.predict", "gs://runs/model", str(image), **server.environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{image}: ")
    assert done.stdout.count("%") == 3


@pytest.mark.parametrize(
    ("dataset_name", "folder", "environment", "message"),
    [
        ("gs://none/digits", "gs://runs/x", {}, "bucket 'none' does not exist"),
        ("gs://data/digits", "gs://none/x", {}, "bucket 'none' does not exist"),
        ("gs://data/nothing", "gs://runs/x", {}, "no prepared dataset"),
        (
            "gs://data/digits",
            "gs://runs/x",
            {"STORAGE_EMULATOR_HOST": "", "HOME": "/nonexistent"},
            "no valid credentials",
        ),
    ],
)
@pytest.mark.usefixtures("dataset")
def test_a_mistake_is_a_single_line(
    server: Server, dataset_name: str, folder: str, environment: dict[str, str], message: str
) -> None:
    arguments = [f"--dataset={dataset_name}", f"--checkpoint-directory={folder}", *ARGUMENTS]
    done = fork_module("trainer.task", *arguments, **{**server.environment, **environment})
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
    assert "Traceback" not in done.stderr
    assert "/x/" not in "\n".join(server.buckets.names("runs"))


@pytest.mark.usefixtures("dataset")
def test_an_unavailable_bucket_is_a_failure_in_a_single_line(server: Server) -> None:
    server.faults.fail(1000, 503)
    arguments = ["--dataset=gs://data/digits", "--checkpoint-directory=gs://runs/y", *ARGUMENTS]
    done = fork_module("trainer.task", *arguments, **server.environment)
    server.faults.clear()
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("failed: gs://data/digits/dataset.json: ")
    assert "HTTP 503" in last
    assert os.linesep not in last
