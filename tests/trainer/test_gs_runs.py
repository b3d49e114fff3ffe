"""Whole runs with everything on gs://: prepared, killed, resumed, evaluated, exported; and mistakes in one line."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.modules import run_module, start_module
from trainer.data.sources import digits

pytestmark = pytest.mark.slow
ARGUMENTS = [
    "--exact",
    "--epochs=2",
    "--global-batch-size=16",
    "--checkpoint-every-steps=4",
    "--checkpoint-every-seconds=0",
]


@pytest.fixture(scope="module")
def server(cloud_storage, tmp_path_factory):
    """A server whose bucket `data` holds the digits' pictures, and the environment that leads there."""
    cloud_storage.buckets.create("data")
    cloud_storage.buckets.create("runs")
    folder = Path(digits.write(str(tmp_path_factory.mktemp("source") / "digits")))
    for path in sorted(folder.rglob("*.png")):
        if int(path.stem) >= 200:
            path.unlink()
            continue
        cloud_storage.buckets.put("data", f"source/{path.relative_to(folder).as_posix()}", path.read_bytes())
    cloud_storage.source = folder
    cloud_storage.told = {**cloud_storage.environment, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}
    return cloud_storage


@pytest.fixture(scope="module")
def dataset(server, tmp_path_factory):
    """The same pictures prepared in the bucket, and here."""
    arguments = ["--image-size=16"]
    done = run_module("trainer.prepare", "gs://data/source", "gs://data/digits", *arguments, **server.told)
    assert done.returncode == 0, done.stderr
    here = tmp_path_factory.mktemp("prepared") / "digits"
    done = run_module("trainer.prepare", str(server.source), str(here), *arguments)
    assert done.returncode == 0, done.stderr
    prepared = json.loads(server.buckets.get("data", "digits/dataset.json").data)
    assert prepared["fingerprint"] == json.loads((here / "dataset.json").read_text())["fingerprint"]
    assert server.buckets.names("data", "digits.html") == ["digits.html"]
    return here


def test_a_killed_run_goes_on_and_ends_as_one_here(server, dataset, tmp_path):
    undisturbed = run_module("trainer.task", f"--dataset={dataset}", f"--checkpoint-directory={tmp_path}", *ARGUMENTS)
    assert undisturbed.returncode == 0, undisturbed.stderr
    arguments = ["--dataset=gs://data/digits", "--checkpoint-directory=gs://runs/one", *ARGUMENTS]
    told = {**server.told, "AIP_TENSORBOARD_LOG_DIR": "gs://runs/logs"}

    # Killed between the upload of a checkpoint's variables and that of its manifest.
    arrived, go_on = server.faults.hold(r"POST .*step-000000012%2Fmanifest\.json")
    process = start_module("trainer.task", *arguments, **told)
    assert arrived.wait(200)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    go_on.set()
    assert server.buckets.names("runs", "one/step-000000012") == ["one/step-000000012/variables.npz"]

    manifests = [name for name in server.buckets.names("runs") if name.endswith("manifest.json")]
    committed = max(int(name.split("-")[1].split("/")[0]) for name in manifests)
    assert 8 <= committed < 12
    server.faults.fail(2, 503, matching="POST .*step-")
    done = run_module("trainer.task", *arguments, **told)
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
    assert [name for name in names if name.startswith("logs/train/events.out.tfevents")]
    # A third start finds that nothing is left to do.
    again = run_module("trainer.task", *arguments, **told)
    assert "is finished" in again.stdout, again.stderr


def test_a_stop_while_the_data_is_copied_is_followed_at_once(server, dataset, tmp_path):
    arguments = ["--dataset=gs://data/digits", f"--checkpoint-directory={tmp_path}/run", "--max-steps=2", *ARGUMENTS]
    told = {**server.told, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    # A bucket that does not answer for a minute.
    arrived, go_on = server.faults.hold(r"GET storage\.googleapis\.com/data/digits%2F.*train")
    process = start_module("trainer.task", *arguments, **told)
    assert arrived.wait(200)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, go_on.is_set()) == (143, False), stderr
    assert "SIGTERM: stopped before the first step; there is nothing to save" in stdout
    events = [json.loads(line) for line in (tmp_path / "run/events/workerpool0-0.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", "notice", "exit"]
    assert events[-1]["code"] == 143
    server.faults.clear()
    done = run_module("trainer.task", *arguments, **told)
    assert done.returncode == 0, done.stderr


def test_the_run_is_evaluated_and_exported_in_the_bucket(server, dataset):
    where = ["--dataset=gs://data/digits", "--checkpoint-directory=gs://runs/one"]
    done = run_module("trainer.evaluate", *where, "--report=gs://runs/evaluation.html", **server.told)
    assert done.returncode == 0, done.stderr
    assert b"<html" in server.buckets.get("runs", "evaluation.html").data
    server.buckets.put("runs", "model/variables/left-by-a-killed-writer", b"")
    done = run_module("trainer.export", *where, "gs://runs/model", **server.told)
    assert done.returncode == 0, done.stderr
    names = server.buckets.names("runs", "model/")
    assert "model/saved_model.pb" in names
    assert "model/variables/left-by-a-killed-writer" not in names
    picture = next(server.source.rglob("*.png"))
    done = run_module("trainer.predict", "gs://runs/model", str(picture), **server.told)
    assert done.returncode == 0, done.stderr
    assert "%" in done.stdout


@pytest.mark.parametrize(
    ("dataset_name", "folder", "environment", "words"),
    [
        ("gs://none/digits", "gs://runs/x", {}, "bucket 'none' does not exist"),
        ("gs://data/digits", "gs://none/x", {}, "bucket 'none' does not exist"),
        ("gs://data/nothing", "gs://runs/x", {}, "no prepared dataset"),
        (
            "gs://data/digits",
            "gs://runs/x",
            {"GOOGLE_AUTH_TOKEN_FOR_TESTING": "", "HOME": "/nonexistent"},
            "no valid credentials",
        ),
    ],
)
def test_a_mistake_is_one_line(server, dataset, dataset_name, folder, environment, words):
    arguments = [f"--dataset={dataset_name}", f"--checkpoint-directory={folder}", *ARGUMENTS]
    done = run_module("trainer.task", *arguments, **{**server.told, **environment})
    assert done.returncode == 2, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert words in last
    assert "Traceback" not in done.stderr
    assert "/x/" not in "\n".join(server.buckets.names("runs"))


def test_a_bucket_that_is_away_is_a_failure_and_says_so(server, dataset):
    server.faults.fail(1000, 503)
    arguments = ["--dataset=gs://data/digits", "--checkpoint-directory=gs://runs/y", *ARGUMENTS]
    done = run_module("trainer.task", *arguments, **server.told)
    server.faults.clear()
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("failed: gs://data/digits/dataset.json: ")
    assert "HTTP 503" in last
    assert os.linesep not in last
