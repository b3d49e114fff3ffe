"""Time series metrics of experiment runs, and log folders that the SDK uploads."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions

from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def aiplatform(server: Server, sdk: Callable[[Server], Any]) -> Iterator[Any]:
    """Return the SDK, whose experiment and tensorboard are forgotten afterwards."""
    yield sdk(server)
    from google.cloud.aiplatform.metadata import metadata

    tracker: Any = metadata._experiment_tracker
    tracker.reset()
    tracker._global_tensorboard = None


def test_metrics_of_a_run_are_logged_by_step_and_read_as_a_data_frame(aiplatform: Any) -> None:
    aiplatform.init(experiment="time-series")
    (default,) = aiplatform.Tensorboard.list(filter="is_default=true")
    run = aiplatform.start_run("run-1")
    for step in (1, 2, 3):
        aiplatform.log_time_series_metrics({"loss": 1 / step, "accuracy": step / 4})
    aiplatform.log_time_series_metrics({"loss": 9.0}, step=7)
    aiplatform.end_run()
    # A program that continues the run counts on from the last step.
    with aiplatform.start_run("run-1", resume=True) as again:
        aiplatform.log_time_series_metrics({"loss": 8.0})
        frame = again.get_time_series_data_frame()
    assert frame["step"].tolist() == [1, 2, 3, 7, 8]
    assert frame["loss"].tolist() == [1, 1 / 2, 1 / 3, 9.0, 8.0]
    assert frame["accuracy"].tolist()[:3] == [1 / 4, 1 / 2, 3 / 4]
    assert frame["accuracy"].isna().tolist() == [False, False, False, True, True]
    assert isinstance(frame["wall_time"][0].timestamp(), float)
    whole = aiplatform.get_experiment_df("time-series")
    assert whole["time_series_metric.loss"].tolist() == [8.0]
    # A second experiment finds the same tensorboard.
    aiplatform.init(experiment="time-series-2")
    assert [each.name for each in aiplatform.Tensorboard.list(filter="is_default=true")] == [default.name]
    path = f"{default.resource_name}/experiments/time-series/runs/run-1"
    assert aiplatform.TensorboardRun(path).display_name == run.name
    run.delete(delete_backing_tensorboard_run=True)
    with pytest.raises(exceptions.NotFound):
        aiplatform.TensorboardRun(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what the uploader imports
def test_a_log_folder_is_uploaded(aiplatform: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The SDK makes a client of Cloud Storage for images, which needs no credentials for another host.
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    import tensorflow as tf

    for name in ("train", "eval"):
        with tf.summary.create_file_writer(str(tmp_path / name)).as_default():
            for step in range(3):
                tf.summary.scalar("loss", 1 / (step + 1), step=step)
            tf.summary.histogram("weights", [1.0, 2.0], step=1)
            tf.summary.flush()
    tensorboard = aiplatform.Tensorboard.create(display_name="uploads")
    aiplatform.upload_tb_log(
        tensorboard_id=tensorboard.name, tensorboard_experiment_name="uploaded", logdir=str(tmp_path)
    )
    for name in ("train", "eval"):
        run = aiplatform.TensorboardRun(f"{tensorboard.resource_name}/experiments/uploaded/runs/{name}")
        found = run.read_time_series_data()
        losses = [(each.step, each.scalar.value) for each in found["loss"].values]
        assert losses == [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]
        assert [each.step for each in found["weights"].values] == [1]
        assert found["weights"].values[0].tensor.value


def test_a_custom_job_with_a_tensorboard_keeps_its_logs_in_their_folder(server: Server) -> None:
    container = {"imageUri": "python:3.11", "command": ["python", "-c", "pass"]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": container}
    spec = {
        "workerPoolSpecs": [pool],
        "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/logged"},
        "tensorboard": "projects/local-project/locations/us-central1/tensorboards/404",
        "serviceAccount": "trainer@local-project.iam.gserviceaccount.com",
    }
    job = server.call("POST", "customJobs", {"displayName": "logged", "jobSpec": spec}).json()
    ended = wait_until(
        lambda: (
            (now := server.call("GET", f"customJobs/{job['name'].rpartition('/')[2]}").json()).get("endTime") and now
        )
    )
    assert ended["state"] == "JOB_STATE_SUCCEEDED", ended
    assert "warning: tensorboard: its logs stay in their folder" in server.text
