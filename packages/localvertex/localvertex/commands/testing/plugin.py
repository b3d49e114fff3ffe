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
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from localvertex.commands.testing.finished_run import FinishedRun

_SDK_POLL_SECONDS = 0.1
"""In place of the 5 s for which the SDK waits before it asks for the state of a job again."""


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
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    _localvertex_host: "_Host",
) -> Iterator[Vertex]:
    """Start a local endpoint on a free port and point google-cloud-aiplatform at it; both end with the test."""
    try:
        with warnings.catch_warnings():
            # Deprecations in what Google's packages import are not those of the test.
            warnings.simplefilter("ignore")
            from localvertex import client
            from localvertex.runner.options import Options
            from localvertex.values.configuration import FILE
    except ImportError as error:
        raise _not_installed("vertex", error, "serve") from None
    work_dir, buckets = _folders(tmp_path, tmp_path_factory)
    how = Options(work_dir=work_dir)
    config = request.config.rootpath / FILE
    words = ["--gcs-root", str(buckets), *(["--config", str(config)] if config.exists() else [])]
    with (
        _server(_localvertex_host, work_dir, words) as address,
        _own_settings_of_sdk(),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("STORAGE_EMULATOR_HOST", address)
        for name, module in list(sys.modules.items()):
            if name.startswith("google.cloud.aiplatform.") and hasattr(module, "_JOB_WAIT_TIME"):
                patch.setattr(module, "_JOB_WAIT_TIME", _SDK_POLL_SECONDS)
        client.init(work_dir, project=how.project, location=how.region, api_transport="rest")
        yield Vertex(project=how.project, location=how.region, work_dir=work_dir, buckets=buckets, address=address)


@pytest.fixture
def run_pipeline(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> "Callable[..., FinishedRun]":
    """Run pipelines on this machine, in the work folder of the test."""
    work_dir, buckets = _folders(tmp_path, tmp_path_factory)
    root, numbers = request.config.rootpath, itertools.count(1)

    def run(
        file: Any,
        parameters: Mapping[str, Any] | None = None,
        *,
        given: Mapping[str, Mapping[str, Any]] | None = None,
        faults: Sequence[str] = (),
        artifacts: Mapping[str, Any] | None = None,
        expect_failure: bool = False,
        config: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> "FinishedRun":
        """Run a pipeline to its end and return what it did.

        Args:
            file: A compiled file, relative to pytest's root folder, or a pipeline function of kfp.
            parameters: Values of the pipeline's parameters by name.
            given: By step, the outputs that replace its execution, as `[step.NAME] outputs` in localvertex.toml; paths
                are relative to pytest's root folder.
            faults: Faults as for `localvertex run --fault`, such as "SIGKILL workerpool0-0 at 5s".
            artifacts: Files and folders by the name of an input artifact of the pipeline.
            expect_failure: Whether the run has to fail.
            config: A localvertex.toml; None for the one in pytest's root folder, if there is one.
            **options: Other fields of `localvertex.Options`, such as `use_cache`.

        Raises:
            PipelineFailed: The run failed, did not fail as expected, or a fault did not happen.
            UserError: The input is invalid, or the pipeline cannot run here; nothing has run.
        """
        __tracebackhide__ = True
        try:
            import localvertex
            from localvertex.commands.testing.finished_run import PipelineFailed, finished_run, problem
            from localvertex.jobs.faults.faults import parse
            from localvertex.show.terminal.lines import Lines
        except ImportError as error:
            raise _not_installed("run_pipeline", error, "run") from None
        path = root / file if isinstance(file, str | os.PathLike) else _compiled(file, tmp_path)
        found = _configuration(root, config, given or {})
        # The SDK names its jobs by pipeline and second; a run of the same test must not take such a name.
        own: dict[str, Any] = {
            "work_dir": work_dir,
            "gcs_root": buckets,
            "run_id": f"run-{next(numbers)}",
            "max_backoff_seconds": 1.0,
        }
        how = localvertex.Options(configuration=found, faults=tuple(map(parse, faults)), **(own | options))
        record = localvertex.run(path, parameters=parameters, artifacts=artifacts, options=how, display=Lines(print))
        if record["stopped_by_signal"]:
            signal.raise_signal(record["stopped_by_signal"])
        if text := problem(record, expects_failure=expect_failure):
            raise PipelineFailed(text)
        return finished_run(record)

    return run


def _folders(tmp_path: Path, factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the work folder and the buckets of a test; both fixtures of a test have the same.

    All tests of a session share the environments of steps that install packages: they are built once and never change.
    """
    work_dir, buckets = tmp_path / "vertex" / "runs", tmp_path / "vertex" / "buckets"
    environments, shared = work_dir / ".localvertex" / "environments", factory.getbasetemp() / "environments"
    if not work_dir.exists():
        for each in (environments.parent, buckets, shared):
            each.mkdir(parents=True, exist_ok=True)
        environments.symlink_to(shared, target_is_directory=True)
    return work_dir, buckets


def _configuration(root: Path, config: Any, given: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the configuration of a run: that of a file, with the outputs that the test gives, and with any bucket."""
    from localvertex.values import configuration

    file = root / (config or configuration.FILE)
    found = configuration.read(file) if config or file.exists() else configuration.Configuration(file=file)
    texts = {
        step: {name: str(value) if isinstance(value, os.PathLike) else value for name, value in outputs.items()}
        for step, outputs in given.items()
    }
    return replace(found, given_outputs={**found.given_outputs, **texts}, create_buckets=True)


def _compiled(pipeline: Any, tmp_path: Path) -> Path:
    """Compile a pipeline function into the folder of the test."""
    from kfp import compiler

    path = tmp_path / "vertex" / "compiled" / f"{pipeline.name}.yaml"
    path.parent.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiler.Compiler().compile(pipeline, str(path))
    return path


class _Host:
    """The process that starts the servers of this session; itself started by the first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, folder: Path, request: Mapping[str, Any]) -> int:
        """Return its answer to a request; it starts in `folder`, where it finds no module of the user."""
        if self._process is None:
            words = [sys.executable, "-m", "localvertex.commands.testing.host"]
            pipe = subprocess.PIPE
            # In a session of its own: Ctrl-C must reach pytest alone, which then ends the servers.
            self._process = subprocess.Popen(
                words, cwd=folder, stdin=pipe, stdout=pipe, text=True, start_new_session=True
            )
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline()) if self._process.stdout else 0

    def close(self) -> None:
        """End it, and wait for its end."""
        if self._process is not None:
            self._process.communicate()


@pytest.fixture(scope="session")
def _localvertex_host() -> Iterator[_Host]:
    host = _Host()
    yield host
    host.close()


@contextmanager
def _server(host: _Host, work_dir: Path, options: list[str]) -> Iterator[str]:
    """Serve a work folder in a process and return the address; the process has ended after the block."""
    from localvertex.api.access import token_file
    from localvertex.commands.testing.host import LOG, POLL_SECONDS, RUNNING

    folder = work_dir.parent
    words = ["serve", "--port", "0", "--work-dir", str(work_dir), *options]
    server = host.ask(folder, {"start": words, "environment": dict(os.environ), "folder": str(folder)})
    try:
        while not (address := token_file.address(work_dir)):
            if host.ask(folder, {"poll": server}) != RUNNING:
                text = (folder / LOG).read_text().strip()
                raise pytest.UsageError(f"vertex: localvertex serve did not start: {text}")
            time.sleep(POLL_SECONDS)
        yield address
    finally:
        host.ask(folder, {"stop": server})


@contextmanager
def _own_settings_of_sdk() -> Iterator[None]:
    """Begin with the settings that the SDK has after its import, and restore those of before."""
    from google.cloud.aiplatform import initializer
    from google.cloud.aiplatform.metadata import metadata

    # The second has the experiment, of which the SDK has one per process.
    settings = [initializer.global_config, vars(metadata)["_experiment_tracker"]]
    before = [dict(vars(each)) for each in settings]

    def fill(each: Any, values: Mapping[str, Any]) -> None:
        vars(each).clear()
        vars(each).update(values)

    for each in settings:
        fill(each, vars(type(each)()))
    try:
        yield
    finally:
        for each, values in zip(settings, before, strict=True):
            fill(each, values)


def _not_installed(name: str, error: ImportError, extra: str) -> pytest.UsageError:
    from localvertex_base import extras

    return pytest.UsageError(f"{name} needs {error.name}; {extras.install(extra)}")
