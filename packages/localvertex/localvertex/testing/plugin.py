"""A pytest plugin: `vertex`, a local endpoint for one test, and `run_pipeline` (docs/your-own-repository.md).

    def test_the_greeting(run_pipeline):
        run = run_pipeline("build/hello.yaml", {"name": "you"})
        assert run.outputs["greet"]["Output"] == "hello you"

    def test_the_submission(vertex):
        job = aiplatform.PipelineJob(display_name="hello", template_path="build/hello.yaml")
        job.run()

Each test has a work folder, buckets and a server process of its own, so that no test finds what another has made. The
SDK talks REST, because gRPC trusts one server in a process. pytest imports this module in every session of its
environment: whatever is more than pytest itself is imported by the first test that uses a fixture.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.json_object import JsonObject

_POLL_SECONDS = 0.01
_SDK_POLL_SECONDS = 0.1
"""Replaces the 5 s for which the SDK waits before it asks for the state of a job again."""


@dataclass(frozen=True, kw_only=True)
class Vertex:
    """The local endpoint of a test, for which `aiplatform.init` has been called."""

    project: str
    location: str
    work_dir: Path
    """The work folder of the server and of `run_pipeline`: its runs, models and experiments."""
    buckets: Path
    """The folder with one folder per bucket: gs://BUCKET/OBJECT is the file BUCKET/OBJECT in it."""
    address: str
    """The endpoint's address for REST, such as http://127.0.0.1:8700."""


@pytest.fixture
def vertex(
    _localvertex_folder: Path, _localvertex_host: subprocess.Popen[str], request: pytest.FixtureRequest
) -> Iterator[Vertex]:
    """Start a local endpoint on a free port and point google-cloud-aiplatform at it; both end with the test."""
    with warnings.catch_warnings():
        # Deprecations in what Google's packages import are not those of the test.
        warnings.simplefilter("ignore")
        from google.cloud import aiplatform
        from google.cloud.aiplatform.metadata import metadata

        from localvertex import client
        from localvertex.runner.options import Options
        from localvertex.values.configuration import FILE
    work_dir, buckets = _localvertex_folder / "runs", _localvertex_folder / "buckets"
    config, how = request.config.rootpath / FILE, Options()
    words = ["serve", "--port", "0", "--work-dir", str(work_dir), "--gcs-root", str(buckets)]
    words += ["--config", str(config)] if config.exists() else []
    with _server(_localvertex_host, work_dir, words) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", address)
        for name, module in list(sys.modules.items()):
            if name.startswith("google.cloud.aiplatform.") and hasattr(module, "_JOB_WAIT_TIME"):
                patch.setattr(module, "_JOB_WAIT_TIME", _SDK_POLL_SECONDS)
        # The settings that the SDK has after its import; the second has the experiment, of which a process has one.
        for settings in (aiplatform.initializer.global_config, vars(metadata)["_experiment_tracker"]):
            for name, value in vars(type(settings)()).items():
                patch.setattr(settings, name, value)
        client.init(work_dir, project=how.project, location=how.region, api_transport="rest")
        yield Vertex(project=how.project, location=how.region, work_dir=work_dir, buckets=buckets, address=address)


@pytest.fixture
def run_pipeline(_localvertex_folder: Path, request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Run pipelines on this machine, in the work folder of the test."""
    root, numbers = request.config.rootpath, itertools.count(1)

    def run(
        file: Any,
        parameters: Mapping[str, Any] | None = None,
        *,
        given: Mapping[str, Any] | None = None,
        faults: Sequence[str] = (),
        artifacts: Mapping[str, Any] | None = None,
        expect_failure: bool = False,
        config: str | Path = "",
        **options: Any,
    ) -> Any:
        """Run a pipeline to its end and return what it did, a `FinishedRun`.

        Args:
            file: A compiled file, relative to pytest's root folder, or a pipeline function of kfp.
            parameters: Values of the pipeline's parameters by name.
            given: Outputs by step that replace its execution, as `[step.NAME] outputs` in localvertex.toml; paths
                are relative to pytest's root folder.
            faults: Faults as for `localvertex run --fault`, such as "SIGKILL workerpool0-0 at 5s".
            artifacts: Files and folders by the name of an input artifact of the pipeline.
            expect_failure: Whether the run has to fail.
            config: A localvertex.toml; empty for the one in pytest's root folder, if there is one.
            **options: Other fields of `localvertex.Options`, such as `use_cache`.

        Raises:
            PipelineFailed: The run failed, did not fail as expected, or a fault did not happen.
            UserError: The input is invalid, or the pipeline cannot run here; nothing has run.
        """
        __tracebackhide__ = True
        from localvertex import runs
        from localvertex._base.userinput.errors import UserError
        from localvertex.jobs.faults.faults import parse
        from localvertex.runner.options import Options
        from localvertex.show.terminal.lines import Lines
        from localvertex.testing.finished_run import finished_run
        from localvertex.values import configuration

        try:
            toml = root / (config or configuration.FILE)
            found = configuration.read(toml) if config or toml.exists() else configuration.Configuration(file=toml)
            # Paths become texts.
            outputs = {
                name: {"outputs": each} for name, each in json.loads(json.dumps(given or {}, default=str)).items()
            }
            own: JsonObject = {
                "work_dir": _localvertex_folder / "runs",
                "gcs_root": _localvertex_folder / "buckets",
                # The SDK names its jobs by pipeline and second; a run of the same test must not take such a name.
                "run_id": f"run-{next(numbers)}",
                "configuration": replace(
                    found,
                    step={**found.step, **outputs},
                    # What the test gives is more than what the file has for its pipeline.
                    pipeline={
                        name: table | {"step": {each: outputs.get(each, own) for each, own in table["step"].items()}}
                        if "step" in table
                        else table
                        for name, table in found.pipeline.items()
                    },
                    buckets={**found.buckets, "create": True},
                ),
                "faults": tuple(map(parse, faults)),
            }
            path = root / file if isinstance(file, str | Path) else _compiled(file, _localvertex_folder)
            how = Options(**(own | options))
            record = runs.run(path, parameters=parameters, artifacts=artifacts, options=how, display=Lines(print))
        except UserError as error:
            # Its line is the reason; the frames below the test are not the user's.
            raise error.with_traceback(None) from None
        if record["stopped_by_signal"]:
            signal.raise_signal(record["stopped_by_signal"])
        return finished_run(record, expects_failure=expect_failure)

    return run


@pytest.fixture
def _localvertex_folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a test's runs and buckets.

    All tests of a session share the environments of steps that install packages: they are built once and never change.
    """
    private, shared = tmp_path / "vertex" / "runs" / ".localvertex", tmp_path_factory.getbasetemp() / "environments"
    for each in (private, tmp_path / "vertex" / "buckets", shared):
        each.mkdir(parents=True, exist_ok=True)
    (private / "environments").symlink_to(shared, target_is_directory=True)
    return tmp_path / "vertex"


@pytest.fixture(scope="session")
def _localvertex_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Start the process that starts servers: where it finds no module of the user, and where Ctrl-C does not end it."""
    words, folder = [sys.executable, "-m", "localvertex.testing.host"], tmp_path_factory.mktemp("host")
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=folder, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as host:
        yield host


def _compiled(pipeline: Any, folder: Path) -> Path:
    from kfp import compiler

    path = folder / f"{pipeline.name}.yaml"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiler.Compiler().compile(pipeline, str(path))
    return path


@contextmanager
def _server(host: subprocess.Popen[str], work_dir: Path, words: list[str]) -> Iterator[str]:
    """Serve a work folder in a process and return the address; the process has ended after the block."""
    from localvertex.api.access import token_file

    print(json.dumps([str(work_dir.parent), words, dict(os.environ)]), file=host.stdin, flush=True)
    server = int(next(iter(host.stdout or ())))
    try:
        while not (address := token_file.address(work_dir)):
            if not _signalled(server, 0):
                log = work_dir.with_name("serve.log").read_text().strip()
                raise pytest.UsageError(f"vertex: localvertex serve did not start: {log}")
            time.sleep(_POLL_SECONDS)
        yield address
    finally:
        _signalled(server, signal.SIGTERM)
        while _signalled(server, 0):
            time.sleep(_POLL_SECONDS)


def _signalled(process: int, number: int) -> bool:
    """Send a signal, and return whether there still is such a process."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True
