"""The client of fork_server.py: start kfp's Python steps there when that makes no difference to them."""

import json
import os
import re
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.processes import sinks
from localvertex.processes.processes import Process
from localvertex_base import linux

SERVER = str(Path(__file__).with_name("fork_server.py"))

_STARTED = b"\1"

_NUM_OWN = 2
"""How many folders own_packages.py puts in front of PYTHONPATH."""

_SCRIPT = re.compile(
    r"""\s*program_path=\$\(mktemp -d\)\s*"""
    r"""printf "%s" "\$0" > "\$program_path/ephemeral_component\.py"\s*"""
    r"""_KFP_RUNTIME=true python3 -m kfp\.dsl\.executor_main[\s\\]*"""
    r"""--component_module_path[\s\\]*"\$program_path/ephemeral_component\.py"[\s\\]*"\$@"\s*"""
)
"""Command that kfp's compiler writes for every `@dsl.component` (kfp 2.17, component_factory.py)."""


@dataclass(frozen=True, kw_only=True)
class PythonProgram:
    """A lightweight Python component: the source of its module, and the executor's arguments."""

    source: str
    arguments: tuple[str, ...]


def program_of(command: list[str]) -> PythonProgram | None:
    """Return the program in a step's command, when that command only runs it."""
    if len(command) < 4 or command[:2] != ["sh", "-ec"] or not _SCRIPT.fullmatch(command[2]):
        return None
    return PythonProgram(source=command[3], arguments=tuple(command[4:]))


class Forked(Process):
    """A step that a server forked."""

    def _exit_code(self) -> int:
        """Wait for the exit code from its supervisor; a supervisor that is killed ends the step too."""
        code = self._lifeline.recv(1)
        return code[0] if code else 137


class ForkServer:
    """One server: a separate Python process with one environment."""

    def __init__(self, python: Path, env: dict[str, str], view: tuple[str, ...]) -> None:
        self._env = env
        self._lock = threading.Lock()
        self._connection, other_end = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [*view, str(python), SERVER, str(other_end.fileno())],
                env=env | {"_KFP_RUNTIME": "true"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[other_end.fileno()],
                start_new_session=True,
            )
        finally:
            other_end.close()
        self._is_usable = self._connection.recv(1) == _STARTED

    def start(
        self,
        program: PythonProgram,
        *,
        cwd: Path,
        env: dict[str, str],
        own: dict[str, str],
        log: Path,
        secrets: list[str],
        temporary: Path,
        grace_seconds: float,
        hold: int | None,
    ) -> Forked | None:
        """Fork a step; return None when the server has ended or the step's environment differs by more than `own`."""
        if not self._is_usable or env != self._env | own:
            return None
        module = temporary / "ephemeral_component.py"
        module.write_text(program.source)
        request = {
            "cwd": str(cwd),
            "env": env | {"_KFP_RUNTIME": "true"},
            "import_path": own.get("PYTHONPATH", "").split(os.pathsep)[:_NUM_OWN],
            "arguments": ["--component_module_path", str(module), *program.arguments],
            "grace_seconds": grace_seconds,
        }
        with sinks.opened(log, secrets, hold) as sink:
            lifeline = self._send(request, [sink.fd, *([] if hold is None else [hold])])
        if lifeline is None or lifeline.recv(1) != _STARTED:
            self._is_usable = False
            if lifeline is not None:
                lifeline.close()
            return None
        return Forked(lifeline, sink)

    def _send(self, request: dict[str, Any], fds: list[int]) -> socket.socket | None:
        """Send a request; return this side of the step's lifeline, None when the server has ended."""
        text = json.dumps(request).encode()
        own_end, other_end = socket.socketpair()
        try:
            with self._lock:
                socket.send_fds(self._connection, [len(text).to_bytes(8, "big")], [other_end.fileno(), *fds])
                self._connection.sendall(text)
        except OSError:
            own_end.close()
            return None
        finally:
            other_end.close()
        return own_end

    def close(self) -> None:
        """End the server; running steps continue."""
        self._connection.close()
        self._process.wait()


class ForkServers:
    """The servers of a run, one for each Python that its steps use, started on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[Path, ForkServer] = {}
        self._is_closed = False

    def find(self, python: Path, env: dict[str, str], view: tuple[str, ...] = ()) -> ForkServer | None:
        """Return the server of a Python; start it with this environment if there is none; None where it cannot run.

        The words of `view` start it in another view of this machine, see read_only.py.
        """
        if not linux.is_used() or depends_on_folder(env.get("PYTHONPATH", "")):
            return None
        with self._lock:
            if self._is_closed:
                return None
            if python not in self._servers:
                variables = {k: v for k, v in env.items() if k != "TMPDIR"}
                self._servers[python] = ForkServer(python, variables, view)
            return self._servers[python]

    def close(self) -> None:
        """End all servers."""
        with self._lock:
            self._is_closed = True
            for server in self._servers.values():
                server.close()


def depends_on_folder(python_path: str) -> bool:
    """Return whether an import path depends on the working directory."""
    return bool(python_path) and not all(os.path.isabs(part) for part in python_path.split(os.pathsep))
