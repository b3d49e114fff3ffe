"""A run of the compiled pipeline that is killed between `evaluate` and the live prediction, and what it leaves behind.

Version 1 is the champion on an endpoint. The run `second` has evaluated a model that is to take its place. Its work
folder is kept, and put back where it was: its records have absolute paths.
"""

import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from PIL import Image

from localvertex.store import record
from tests.support.release_records import ReleaseRecords
from vertex_testing import kill_point
from vertex_testing.processes import command_line, has_ended
from vertex_testing.server import Server

NAME, ENDPOINT = "killed", "live"
_COMMON = {
    "model_name": NAME,
    "image_size": 16,
    "max_examples": 300,
    # A few steps teach the models little, and the test is about kills.
    "force_promotion": "true",
    "global_batch_size": 32,
    "augment": "none",
    "minimum_score": 0.0,
    "epochs": 1,
    "deploy_endpoint": ENDPOINT,
}
_FIRST = _COMMON | {"learning_rate": 0.000001}
_SECOND = _COMMON | {"learning_rate": 0.005}
_RUN = "second"
_POLL_SECONDS = 0.05
_END_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where a process kills itself."""

    module: str
    name: str
    """A function, or CLASS.METHOD."""
    when: str
    """before or after."""
    is_run: bool = False
    """Whether localvertex is killed with the step."""

    def __str__(self) -> str:
        """Return a name for a test."""
        victim = "the run" if self.is_run else "the step"
        return f"{victim} {self.when} {self.module.rpartition('.')[2]}.{self.name}"


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A kill at any time."""

    seconds: float
    """After the start."""
    is_run: bool
    """Whether localvertex is killed, or one of its processes."""
    which: float
    """Chooses that process, from 0 (the oldest) to below 1 (the newest)."""


EVALUATED = Point(module="components.compare.promotion", name="compare", when="before", is_run=True)


class KilledRelease(ReleaseRecords):
    """The release and its kills.

    Args:
        folder: A new folder.
        compiled: The compiled pipeline.
    """

    def __init__(self, folder: Path, compiled: Path) -> None:
        super().__init__(folder / "runs", NAME)
        self._folder, self._saved, self._compiled = folder, folder / "saved", compiled
        self._output = folder / "output.txt"
        self._run_id = _RUN
        self.victim = ""
        """Target of the last `Kill`; empty if the run had ended."""

    def prepare(self) -> None:
        """Register and deploy version 1, evaluate another model, and keep the work folder."""
        assert self._run(self._words("first", _FIRST)) == 0, self.output
        assert self.is_killed(EVALUATED, words=self._words(_RUN, _SECOND))
        self.check()
        shutil.copytree(self.work_dir, self._saved, symlinks=True)

    def restore(self) -> None:
        """Bring back the work folder as it was after `evaluate`."""
        shutil.rmtree(self.work_dir)
        shutil.copytree(self._saved, self.work_dir, symlinks=True)
        self._run_id = _RUN

    def resume(self, kill: Kill | None = None) -> int:
        """Resume the newest run, or submit it again if it had not started, and return its exit code."""
        has_begun = (self.work_dir / self._run_id / "run.json").exists()
        return self._run(self._resumed() if has_begun else self._words(self._run_id, _SECOND), kill)

    def submit(self, kill: Kill | None = None) -> int:
        """Submit the same once more, and return the exit code."""
        self._run_id = f"again-{time.monotonic_ns()}"
        return self._run(self._words(self._run_id, _SECOND), kill)

    def steps(self, state: str = "SUCCEEDED") -> set[str]:
        """Return the steps of the newest run in a state."""
        folder = self.work_dir / self._run_id
        tasks = record.read(folder)["tasks"] if (folder / record.FILE).exists() else []
        return {each["name"] for each in tasks if (each["kind"], each["state"]) == ("step", state)}

    def is_killed(self, point: Point, words: list[str] | None = None) -> bool:
        """Resume the run, or run a command, up to a point; return whether the point was reached."""
        path = self._folder / "point.json"
        path.write_text(json.dumps(vars(point)))
        code = self._run(words or self._resumed())
        is_reached = not path.exists()
        path.unlink(missing_ok=True)
        assert not is_reached or code == (-signal.SIGKILL if point.is_run else 1), (code, self.output)
        return is_reached

    @property
    def output(self) -> str:
        """Output of the last command."""
        return self._output.read_text()

    def check_processes(self) -> None:
        """Wait until no process of a run is left."""
        deadline = time.monotonic() + _END_SECONDS
        while left := [each for each in psutil.process_iter() if self._is_own(each)]:
            assert time.monotonic() < deadline, [command_line(each) for each in left]
            time.sleep(_POLL_SECONDS)

    def check_prediction(self, server: Server) -> None:
        """Ask the endpoint through a server: a version with traffic answers."""
        image = io.BytesIO()
        Image.new("RGB", (16, 16)).save(image, "png")
        name = self.endpoint["name"].rpartition("/")[2]
        body = {"instances": [{"b64": base64.b64encode(image.getvalue()).decode()}]}
        answer = server.call("POST", f"endpoints/{name}:predict", body)
        assert answer.status_code == 200, answer.text
        assert self.served[answer.json()["modelVersionId"]] > 0

    @contextmanager
    def server(self) -> Iterator[Server]:
        """Serve the work folder."""
        with Server(self.work_dir) as server:
            yield server

    def _run(self, words: list[str], kill: Kill | None = None) -> int:
        """Run a command to its end or kill, while its records are checked all the time; return its exit code."""
        code = self._folder / "code"
        code.mkdir(exist_ok=True)
        shutil.copy(Path(*kill_point.__path__) / "sitecustomize.py", code)
        path = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH", "")]))
        shell = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self._folder / "run.pid"), *words]
        begin, self.victim = time.monotonic(), ""
        with self._output.open("w") as output:
            process = subprocess.Popen(
                shell, stdout=output, stderr=output, env=os.environ | {"PYTHONPATH": path}, start_new_session=True
            )
            while process.poll() is None:
                if kill is not None and time.monotonic() - begin >= kill.seconds:
                    kill = self._strike(kill, process.pid)
                if self._saved.exists():
                    self.check()
                time.sleep(_POLL_SECONDS)
        self.check_processes()
        if self._saved.exists():
            self.check()
        return process.returncode

    def _words(self, run_id: str, parameters: dict[str, Any]) -> list[str]:
        given = [f"--parameter={name}={value}" for name, value in parameters.items()]
        return self._localvertex(str(self._compiled), "--run-id", run_id, *given)

    def _resumed(self) -> list[str]:
        return self._localvertex("--resume", self._run_id)

    def _localvertex(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "localvertex", "run", *words, "--work-dir", str(self.work_dir), "--grace=1"]

    def _strike(self, kill: Kill, run: int) -> Kill | None:
        """Kill a process; return the kill if the process has ended before."""
        below = [each for each in psutil.process_iter() if each.pid != run and self._is_own(each)]
        victim = (
            psutil.Process(run)
            if kill.is_run or not below
            else below[min(int(kill.which * len(below)), len(below) - 1)]
        )
        words = command_line(victim)
        try:
            victim.kill()
        except psutil.NoSuchProcess:
            return kill
        self.victim = "the run" if victim.pid == run else _kind(words)
        return None

    def _is_own(self, process: psutil.Process) -> bool:
        """Return whether a process has the folder with the kill point on its path, as all of a run have."""
        try:
            return str(self._folder / "code") in process.environ().get("PYTHONPATH", "") and not has_ended(process)
        except psutil.Error:
            return False


def _kind(words: list[str]) -> str:
    """Return what a process of a run is; forks of the server of steps, and their supervisors, have its command line."""
    programs = {"supervisor.py": "a supervisor", "fork_server.py": "a process of a step", "trainer.serve": "a server"}
    return next((kind for end, kind in programs.items() if any(word.endswith(end) for word in words)), "a program")
