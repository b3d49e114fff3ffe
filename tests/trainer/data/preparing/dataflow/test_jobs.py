"""Real submissions by Beam's DataflowRunner to a server on loopback: what is sent, and that there is one job, ever."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.dataflow import Dataflow
from tests.trainer.data.preparing.dataflow.test_settings import GIVEN, IMAGE
from trainer.data.preparing.dataflow.settings import Settings
from vertex_testing.cloud_storage.server import CloudStorage

pytestmark = pytest.mark.slow

FOLDER = "gs://birds/root/prepared/0123456789abcdef0123456789abcdef"


class Steps:
    """Processes that each run one step; started by fork from one process that has imported Beam."""

    def __init__(self, python: str, folder: Path) -> None:
        self.variables: dict[str, str] = {}
        self._folder = folder
        self._running: set[int] = set()
        self._process = subprocess.Popen(
            [python, "-m", "tests.support.dataflow_steps"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, line: str) -> list[int]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return [int(word) for word in self._process.stdout.readline().split()]

    def start(self, **fields: Any) -> int:
        """Return the id of the new step's process."""
        log = self._folder / f"log-{len(list(self._folder.glob('log-*')))}"
        given = GIVEN | {"folder": FOLDER, "marker": f"{FOLDER}/done", "log": str(log), "variables": self.variables}
        log.touch()
        (process,) = self._ask(json.dumps(given | fields))
        log.with_name(f"of-{process}").symlink_to(log)
        self._running.add(process)
        return process

    def lines(self, process: int) -> list[str]:
        """What a step has printed."""
        return (self._folder / f"of-{process}").read_text().splitlines()

    def waits(self, process: int) -> None:
        """Return when a step waits for its job."""
        end = time.monotonic() + 300
        while not any("waited" in line for line in self.lines(process)):
            assert time.monotonic() < end, self.lines(process)
            time.sleep(0.01)

    def end(self, process: int) -> int:
        """Wait for a step and return its exit code; minus the signal that ended it."""
        code = self._ask(f"wait {process}")[1]
        self._running.remove(process)
        return code

    def kill(self, process: int) -> None:
        os.kill(process, signal.SIGKILL)
        assert self.end(process) == -signal.SIGKILL

    def clear(self) -> None:
        """End what a failed test left."""
        for process in list(self._running):
            self.kill(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self.clear()
        self._process.stdin.close()
        self._process.wait(300)
        self._process.stdout.close()


@pytest.fixture
def service() -> Iterator[Dataflow]:
    """Dataflow without jobs."""
    with Dataflow() as server:
        yield server


@pytest.fixture
def key_file(tmp_path: Path, server: CloudStorage) -> Path:
    """A user's own key, which gets tokens at the bucket server; no step may ask for one."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    content = {
        "type": "service_account",
        "client_email": "me@my-project.iam.gserviceaccount.com",
        "private_key": text,
        "token_uri": f"{server.environment['STORAGE_EMULATOR_HOST']}/oauth2/tests/token",
    }
    path = tmp_path / "key.json"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory, beam_python: str) -> Iterator[Steps]:
    """One process with Beam for all tests."""
    with Steps(beam_python, tmp_path_factory.mktemp("steps")) as running:
        yield running


@pytest.fixture
def steps(forked: Steps, server: CloudStorage, service: Dataflow, key_file: Path) -> Iterator[Steps]:
    """Steps for this server; afterwards, no request had credentials."""
    forked.variables = server.environment | service.environment | {"GOOGLE_APPLICATION_CREDENTIALS": str(key_file)}
    server.buckets.create("birds")
    for name in server.buckets.names("birds"):
        server.buckets.delete("birds", name)
    yield forked
    forked.clear()
    assert service.headers
    assert [headers for headers in service.headers if "authorization" in {name.lower() for name in headers}] == []
    assert [request.target for request in server.faults.requests if "oauth2" in request.target] == []


def finish(server: CloudStorage, service: Dataflow) -> None:
    """Let the job do its work."""
    server.buckets.put("birds", f"{FOLDER.removeprefix('gs://birds/')}/done", b"")
    service.end("DONE")


def test_the_job_is_what_the_parameters_name_field_by_field(
    steps: Steps, server: CloudStorage, service: Dataflow
) -> None:
    machines = {
        "machine_type": "n2-standard-8",
        "max_workers": 7,
        "disk_size_gb": 80,
        "subnetwork": "regions/us-central1/subnetworks/private",
        "service_account": "worker@my-project.iam.gserviceaccount.com",
    }
    step = steps.start(**machines)
    service.wait_for(lambda: service.jobs)
    staged = {name.rpartition("/")[2] for name in server.buckets.names("birds")}
    finish(server, service)
    assert steps.end(step) == 0, steps.lines(step)
    (job,) = service.jobs
    assert (job["projectId"], job["location"]) == ("my-project", "us-central1")
    environment = job["environment"]
    options = environment.pop("sdkPipelineOptions")["options"]
    pool = environment["workerPools"][0]
    (harness,) = pool.pop("sdkHarnessContainerImages")
    temporary = environment.pop("tempStoragePrefix")
    agent = environment.pop("userAgent")
    assert (agent["name"][:18], agent["version"]) == ("Apache Beam Python", "2.77.0")
    assert temporary.startswith(
        f"storage.googleapis.com/birds/root/prepared/{FOLDER[-32:]}/parts/work/staged/{job['name']}."
    )
    assert environment == {
        "clusterManagerApiService": "compute.googleapis.com",
        "dataset": "bigquery.googleapis.com/cloud_dataflow",
        "experiments": [
            "beam_fn_api",
            "use_unified_worker",
            "use_runner_v2",
            "use_portable_job_submission",
            "use_multiple_sdk_containers",
        ],
        "serviceAccountEmail": "worker@my-project.iam.gserviceaccount.com",
        "serviceOptions": ["max_workflow_runtime_walltime_seconds=86400"],
        "version": {"job_type": "FNAPI_BATCH", "major": "8"},
        "workerPools": [
            {
                "autoscalingSettings": {"maxNumWorkers": 7},
                "diskSizeGb": 80,
                "ipConfiguration": 2,  # WORKER_IP_PRIVATE
                "kind": "local",  # Beam's word for an endpoint with localhost in it; otherwise harness
                "machineType": "n2-standard-8",
                "subnetwork": "regions/us-central1/subnetworks/private",
                "taskrunnerSettings": {
                    "parallelWorkerSettings": {
                        "baseUrl": "https://dataflow.googleapis.com",
                        "servicePath": f"http://{service.environment['DATAFLOW_EMULATOR_HOST']}",
                    }
                },
                "workerHarnessContainerImage": IMAGE,
            }
        ],
    }
    assert harness["containerImage"] == IMAGE
    assert job["labels"] == {"created-by": "image-training"}
    assert job["type"] == 1  # JOB_TYPE_BATCH
    assert set(job) == {
        *("clientRequestId", "currentState", "environment", "id", "labels", "location"),
        *("name", "projectId", "type"),
    }
    assert options["use_public_ips"] is False
    assert options["sdk_location"] == "container"
    assert options["pipelineUrl"].startswith(f"{FOLDER}/parts/work/staged/{job['name']}.")
    assert staged == {"pipeline.pb"}
    assert "public" not in " ".join(steps.lines(step))


def test_wherever_the_step_is_killed_there_is_one_job(steps: Steps, server: CloudStorage, service: Dataflow) -> None:
    arrived, go_on = server.faults.hold(r"POST .*/upload/")
    step = steps.start()
    assert arrived.wait(60)
    steps.kill(step)
    go_on.set()
    with service.gate("create received") as reached:
        step = steps.start()
        assert reached.wait(60)
        steps.kill(step)
        # A second attempt asks before the request of the first is through.
        step = steps.start()
        service.wait_for(lambda: service.jobs)
    steps.waits(step)
    steps.kill(step)
    step = steps.start()
    steps.waits(step)
    steps.kill(step)
    finish(server, service)
    assert steps.end(steps.start()) == 0
    assert len(service.jobs) == 1


@pytest.mark.parametrize("refuses_by_conflict", [False, True])
def test_the_step_that_loses_the_race_waits_for_the_job_of_the_other(
    steps: Steps, server: CloudStorage, service: Dataflow, refuses_by_conflict: bool
) -> None:
    service.refuses_by_conflict = refuses_by_conflict
    with service.gate("create received") as reached:
        first = steps.start()
        assert reached.wait(60)
        second = steps.start()
        steps.waits(second)
    steps.waits(first)
    finish(server, service)
    assert [steps.end(first), steps.end(second)] == [0, 0]
    assert len(service.jobs) == 1


def test_a_lost_answer_of_the_creation_makes_no_second_job(
    steps: Steps, server: CloudStorage, service: Dataflow
) -> None:
    with service.gate("create stored") as reached:
        step = steps.start()
        assert reached.wait(60)
        steps.kill(step)
    step = steps.start()
    steps.waits(step)
    finish(server, service)
    assert steps.end(step) == 0, steps.lines(step)
    assert len(service.jobs) == 1


def test_a_job_whose_creation_seems_to_fail_is_found_although_it_is_listed_late(
    steps: Steps, server: CloudStorage, service: Dataflow
) -> None:
    service.loses_answers, service.num_late = True, 2
    step = steps.start()
    steps.waits(step)
    finish(server, service)
    assert steps.end(step) == 0, steps.lines(step)
    assert len(service.jobs) == 1


def test_a_stopped_step_cancels_its_job_also_one_that_it_found_and_one_that_is_being_created(
    steps: Steps, server: CloudStorage, service: Dataflow
) -> None:
    step = steps.start()
    steps.waits(step)
    os.kill(step, signal.SIGTERM)
    assert steps.end(step) == 143, steps.lines(step)
    assert service.active() == []
    with service.gate("create stored") as reached:
        step = steps.start()
        assert reached.wait(60)
        os.kill(step, signal.SIGTERM)
    assert steps.end(step) == 143
    assert service.active() == []
    killed = steps.start()
    steps.waits(killed)
    steps.kill(killed)
    assert len(service.active()) == 1
    finder = steps.start()
    steps.waits(finder)
    os.kill(finder, signal.SIGTERM)
    assert steps.end(finder) == 143
    assert service.active() == []
    # The next attempt follows the cancelled ones.
    step = steps.start()
    service.wait_for(lambda: len(service.jobs) == 4)
    finish(server, service)
    assert steps.end(step) == 0
    assert {job["name"] for job in service.jobs} == {service.jobs[0]["name"]}


def test_a_failed_job_is_one_line_and_is_followed_by_another(
    steps: Steps, server: CloudStorage, service: Dataflow
) -> None:
    step = steps.start()
    service.wait_for(lambda: service.jobs)
    number = service.jobs[0]["id"]
    text = "Traceback (most recent call last):\n  File x\nValueError: no space"
    service.messages[number] = [{"messageText": text, "messageImportance": "JOB_MESSAGE_ERROR"}] * 4
    service.end("FAILED")
    assert steps.end(step) == 1
    assert steps.lines(step)[-1] == (
        f"failed: the Dataflow job {number} failed: Traceback (most recent call last): File x ValueError: no space"
    )
    step = steps.start()
    service.wait_for(lambda: len(service.jobs) == 2)
    service.end("CANCELLED")
    assert steps.end(step) == 1
    assert steps.lines(step)[-1].endswith(
        f"{service.jobs[1]['id']} was cancelled; run the pipeline again to start a new one"
    )


def test_a_service_that_fails_for_a_while_is_asked_again_and_one_that_refuses_is_not(
    steps: Steps, server: CloudStorage, service: Dataflow
) -> None:
    service.failures = [503, 429]
    step = steps.start()
    service.wait_for(lambda: service.jobs)
    finish(server, service)
    assert steps.end(step) == 0, steps.lines(step)
    server.buckets.delete("birds", f"{FOLDER.removeprefix('gs://birds/')}/done", {})
    service.failures = [403]
    step = steps.start()
    assert steps.end(step) == 1
    (line,) = steps.lines(step)[-1:]
    assert line.startswith("failed: a call to Dataflow failed: permission denied (")
    assert line.endswith("docs/cloud.md lists the roles and the API that Dataflow needs in my-project")
    assert len(service.jobs) == 1


OPTIONS = """
import json, sys
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner
from apache_beam.utils import retry
# The pauses until Beam continues without credentials.
retry.Clock.sleep = lambda self, seconds: None
options = PipelineOptions(sys.argv[1:])
checked = PipelineOptionsValidator(options, DataflowRunner())
assert checked.is_service_runner()
assert checked.validate() == []
given = options.view_as(GoogleCloudOptions)
print(json.dumps([given.staging_location, given.temp_location, given.dataflow_endpoint]))
"""


def test_beam_accepts_the_options_of_a_job_on_the_real_service(
    server: CloudStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beam_python: str
) -> None:
    """Its checks of an address of Google, which nothing is sent to; a wrong folder would make Beam create a bucket."""
    for name, value in {"HOME": str(tmp_path), "CLOUDSDK_CONFIG": str(tmp_path), "NO_GCE_CHECK": "true"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    server.buckets.create("birds")
    settings = Settings(**GIVEN | {"folder": FOLDER})
    words = [beam_python, "-c", OPTIONS, *settings.arguments()]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout) == [settings.staging, settings.staging, "https://dataflow.googleapis.com"]
    assert not any(request.method == "POST" for request in server.faults.requests)
