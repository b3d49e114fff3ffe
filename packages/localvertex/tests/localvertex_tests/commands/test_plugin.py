"""The pytest plugin in another repository's sessions: it costs nothing unasked, and no test sees another's records."""

import os
import re
import signal
import socket
import statistics
import threading
from pathlib import Path

import psutil
import pytest
from localvertex_tests.commands.conftest import Session

from vertex_testing.server import wait_until

HELLO = """
import os

import pytest
from kfp import dsl

STEP = {"base_image": "python:3.11", "install_kfp_package": False}


@dsl.component(**STEP)
def greet(name: str, text: dsl.Output[dsl.Artifact], metrics: dsl.Output[dsl.Metrics]) -> str:
    print(f"greeting {name}")
    if name == "nobody":
        raise ValueError("there is nobody to greet")
    open(text.path, "w").write(name)
    metrics.log_metric("length", float(len(name)))
    return f"hello {name}"


@dsl.pipeline(name="hello")
def hello(name: str = "world") -> str:
    return greet(name=name).outputs["Output"]
"""

UNTOUCHED = """
import os
import sys

HEAVY = ("kfp", "google.auth", "google.cloud.aiplatform", "grpc", "yaml", "localvertex.runs", "localvertex.runner")


def test_nothing_is_imported_and_no_variable_is_set(pytestconfig):
    assert pytestconfig.pluginmanager.has_plugin("localvertex")
    assert [name for name in HEAVY if name in sys.modules] == []
    assert "STORAGE_EMULATOR_HOST" not in os.environ
"""

RUNS = (
    HELLO
    + """

def test_a_run_can_be_asserted_on(run_pipeline, tmp_path):
    run = run_pipeline(hello, {"name": "you"})
    assert run.state == "SUCCEEDED" and run.error == ""
    assert run.outputs["greet"]["Output"] == run.pipeline_outputs["Output"] == "hello you"
    assert run.outputs["greet"]["text"].read_text() == "you"
    assert run.metrics["greet"] == {"length": 3.0}
    assert "greeting you" in run.logs["greet"]
    assert run.tasks["greet"]["attempts"] == 1
    assert run.given == set()
    assert tmp_path in run.run_dir.parents
    with pytest.raises(KeyError, match="did you mean greet.; the run has greet"):
        run.outputs["gret"]
    with pytest.raises(AttributeError):
        run.state = "FAILED"


def test_given_outputs(run_pipeline, tmp_path):
    file = tmp_path / "theirs.txt"
    file.write_text("given")
    run = run_pipeline(hello, given={"greet": {"Output": "no computation", "text": file, "metrics": file}})
    assert run.given == {"greet"} and run.tasks["greet"]["state"] == "GIVEN"
    assert run.pipeline_outputs["Output"] == "no computation"
    assert run.outputs["greet"]["text"].read_text() == "given"
    assert run.metrics["greet"] == {} and run.logs["greet"] == ""


def test_an_expected_failure(run_pipeline):
    run = run_pipeline(hello, {"name": "nobody"}, expect_failure=True)
    assert run.state == "FAILED"
    assert "there is nobody to greet" in run.error
    assert "ValueError" in run.logs["greet"]


def test_a_fault_that_cannot_happen_fails(run_pipeline):
    with pytest.raises(AssertionError, match="SIGKILL workerpool0-0"):
        run_pipeline(hello, faults=["SIGKILL workerpool0-0 at 1s"])


def test_an_invalid_parameter(run_pipeline):
    with pytest.raises(ValueError, match="name"):
        run_pipeline(hello, {"nam": "you"})


def test_bad_unexpected_failure(run_pipeline):
    run_pipeline(hello, {"name": "nobody"})


def test_bad_unexpected_success(run_pipeline):
    run_pipeline(hello, expect_failure=True)


def test_bad_parameter(run_pipeline):
    run_pipeline(hello, {"nam": "you"})


def test_bad_file(run_pipeline):
    run_pipeline("none.yaml")


def test_bad_fault(run_pipeline):
    run_pipeline(hello, faults=["now"])
"""
)

CONFTEST = """
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from google.cloud import aiplatform

aiplatform.init(project="mine", staging_bucket="gs://mine")
"""

SEES = (
    HELLO
    + """
from pathlib import Path

from google.cloud import aiplatform, storage
from google.cloud.aiplatform import initializer

SEEN = Path(__file__).with_name("seen")


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory):
    from kfp import compiler

    path = tmp_path_factory.mktemp("compiled") / "hello.yaml"
    compiler.Compiler().compile(hello, str(path))
    return path


@pytest.mark.parametrize("number", range(2))
def test_no_record_of_another_test(vertex, run_pipeline, compiled, number):
    token = (vertex.work_dir / "api" / "token").read_text()
    earlier = SEEN.read_text() if SEEN.exists() else ""
    assert token not in earlier and vertex.address not in earlier
    SEEN.write_text(earlier + token + vertex.address)
    kinds = (aiplatform.PipelineJob, aiplatform.Model, aiplatform.Endpoint, aiplatform.Experiment, aiplatform.CustomJob)
    assert [kind.__name__ for kind in kinds if kind.list()] == []
    assert list(vertex.buckets.iterdir()) == []
    assert initializer.global_config.staging_bucket is None
    # As in the program under test, which knows nothing of the plugin.
    aiplatform.init(
        project="theirs", location="europe-west4", experiment="tuning", experiment_tensorboard=False,
        staging_bucket="gs://staging",
    )
    job = aiplatform.PipelineJob(display_name="hello", template_path=str(compiled), pipeline_root="gs://staging/root")
    job.run()
    assert job.state.name == "PIPELINE_STATE_SUCCEEDED"
    aiplatform.Endpoint.create(display_name="e")
    bucket = storage.Client(project="theirs", credentials=initializer.global_config.credentials).bucket("staging")
    bucket.blob("x").upload_from_string("1")
    assert (vertex.buckets / "staging" / "x").read_text() == "1"
    assert run_pipeline(compiled, {"name": "you"}).state == "SUCCEEDED"
    assert run_pipeline(compiled, {"name": "me"}).state == "SUCCEEDED"
    assert sorted(each.list() != [] for each in kinds) == [False, False, True, True, True]


def test_the_settings_are_those_of_before():
    assert initializer.global_config.staging_bucket == "gs://mine"
    assert "STORAGE_EMULATOR_HOST" not in os.environ
    from google.cloud.aiplatform.metadata import metadata

    assert metadata._experiment_tracker.experiment_name is None


def test_bad(vertex):
    credentials = initializer.global_config.credentials
    aiplatform.PipelineJob.list()
    assert (vertex, credentials, os.environ) == ()
"""
)


def test_a_session_without_the_fixtures_is_as_before(session: Session, repository: Path) -> None:
    (repository / "test_untouched.py").write_text(UNTOUCHED)
    done = session("-q")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("1 passed in " + done.stdout.rpartition(" in ")[2])


@pytest.mark.slow
def test_no_test_sees_the_records_of_another_and_no_output_has_a_token(
    session: Session, repository: Path, tmp_path: Path
) -> None:
    (repository / "test_runs.py").write_text(RUNS)
    (repository / "test_sees.py").write_text(SEES)
    (repository / "conftest.py").write_text(CONFTEST)
    before = {each.name for each in repository.iterdir()}
    options = ("-vv", "--showlocals", "--log-level=DEBUG", "--junit-xml=../result.xml", "-p", "no:cacheprovider")
    done = session(*options)
    assert "6 failed, 8 passed" in done.stdout, done.stdout
    assert re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE) == [
        "test_bad_unexpected_failure",
        "test_bad_unexpected_success",
        "test_bad_parameter",
        "test_bad_file",
        "test_bad_fault",
        "test_bad",
    ]
    assert "PipelineFailed: pipeline hello FAILED: greet: " in done.stdout
    assert "ValueError: there is nobody to greet" in done.stdout
    assert "PipelineFailed: pipeline hello SUCCEEDED: expected a failure" in done.stdout
    # A failure is shown at the line of the test, without a frame of this package.
    assert re.findall(r"^\S*localvertex\S*\.py:\d+", done.stdout, re.MULTILINE) == []
    assert "plugin.py" not in done.stdout
    assert {each.name for each in repository.iterdir()} - before <= {"__pycache__", "seen"}
    # pytest also makes a link "current" to the folder of each test.
    folders = {each.parents[2].resolve() for each in (tmp_path / "temporary").glob("*/vertex/runs/api/token")}
    tokens = {(each / "runs" / "api" / "token").read_text().strip() for each in folders}
    assert len(tokens) == len(folders) == 3
    printed = done.stdout + done.stderr + (tmp_path / "result.xml").read_text()
    assert [each for each in tokens if each in printed] == []
    # Their servers have ended.
    for each in folders:
        port = re.search(r"http://127\.0\.0\.1:(\d+)", (each / "serve.log").read_text())
        assert port
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port[1])), timeout=5)


WAITS = """
import time
from pathlib import Path


def test_waits(vertex):
    Path("address").write_text(vertex.address)
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.soak
def test_no_server_outlives_a_killed_session(session: Session, repository: Path, tmp_path: Path) -> None:
    (repository / "test_waits.py").write_text(WAITS)
    address = repository / "address"

    def kill() -> None:
        wait_until(lambda: address.exists() and address.read_text())
        for each in psutil.Process().children(recursive=True):
            if f"--basetemp={tmp_path / 'temporary'}" in each.cmdline():
                each.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    assert session("-q", "-p", "no:cacheprovider").returncode == -signal.SIGKILL
    killer.join()

    def is_refused() -> bool:
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", int(address.read_text().rpartition(":")[2]))) != 0

    wait_until(is_refused)


FAST = (
    HELLO
    + """

@pytest.mark.parametrize("number", range(12))
def test_a_step(vertex, run_pipeline, number):
    from google.cloud import aiplatform

    assert run_pipeline(hello).outputs["greet"]["Output"] == "hello world"
    assert len(aiplatform.PipelineJob.list()) == 0
"""
)


@pytest.mark.slow
@pytest.mark.soak
def test_the_time_of_a_test_with_one_step(session: Session, repository: Path) -> None:
    """Print the time of each test; nothing is asserted, because it depends on the machine."""
    (repository / "test_fast.py").write_text(FAST)
    before = os.times()
    done = session("-q", "--durations=40", "--durations-min=0")
    assert done.returncode == 0, done.stdout
    seconds = [0.0] * 12
    for found in re.finditer(r"^([0-9.]+)s \w+ +test_fast.py::test_a_step\[(\d+)\]$", done.stdout, re.MULTILINE):
        seconds[int(found[2])] += float(found[1])
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"first {seconds[0]:.2f} s, median of the others {statistics.median(seconds[1:]):.2f} s")
    print(f"CPU {cpu:.1f} s in all, load {os.getloadavg()[0]:.1f}")
