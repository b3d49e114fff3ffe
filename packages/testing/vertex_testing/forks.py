"""Python programs as forks of a process that has imported them, because most of a short program is its imports.

Each is a process of its own, which runs the same program with the same arguments, variables, folder and streams, and
can be killed. Only what the kernel tells about its start differs: its command line and first variables in `/proc` are
those of the process that it was forked from. Where a test looks at these, or at the start itself, it starts an
interpreter.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

_EARLY = ("PYTHON", "LD_", "MALLOC_", "OMP_", "LC_", "LANG", "TZ")
"""Beginnings of the variables that are read when Python starts: a program with others needs an interpreter."""
_ENVIRONMENT = dict(os.environ)
"""As the test run was started, because the first test may have changed it."""


class Fork:
    """A forked program, with the methods of `subprocess.Popen` that tests call."""

    def __init__(self, args: Sequence[str], pid: int, status: int, *pipes: IO[str] | None) -> None:
        self.args, self.pid, self._status = args, pid, status
        self.stdout, self.stderr = pipes
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        """The exit code, None while it runs; minus the number of a signal."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self._code = os.waitstatus_to_exitcode(int.from_bytes(os.read(self._status, 8), "big"))
            os.close(self._status)
        return self._code

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        if self._code is None:
            select.select([self._status], [], [], timeout)
        if (code := self.returncode) is None:
            raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
        return code

    def communicate(self, timeout: float = 600) -> tuple[str, str]:
        """Wait for the end, also of children with its pipes; return what was printed to each."""
        deadline, printed = time.monotonic() + timeout, {self.stdout: "", self.stderr: ""}
        pipes = [pipe for pipe in printed if pipe and not pipe.closed]
        threads = [threading.Thread(target=_read, args=(pipe, printed), daemon=True) for pipe in pipes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            raise subprocess.TimeoutExpired(list(self.args), timeout)
        self.wait(max(0, deadline - time.monotonic()))
        return printed[self.stdout], printed[self.stderr]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Stop it, unless it has ended."""
        self.send_signal(signal.SIGTERM)


Process = Fork | subprocess.Popen[str]


class Forks:
    """A process that imports modules when the first program is started, and ends with this one."""

    def __init__(self, *modules: str) -> None:
        self._modules, self._lock = modules, threading.Lock()
        self._connection: socket.socket | None = None

    def start(
        self,
        words: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.STDOUT,
        has_own_interpreter: bool = False,
    ) -> "Process":
        """Start `python -m NAME`, `python -c CODE` or `python FILE`.

        Args:
            words: The command without `python`.
            cwd: Its working directory; None: this one.
            env: All its variables; None: those of this process.
            stdin: A descriptor, or `subprocess.DEVNULL`.
            stdout: A descriptor, or `subprocess.PIPE`.
            stderr: A descriptor, `subprocess.PIPE` or `subprocess.STDOUT`.
            has_own_interpreter: Whether it is no fork, as if a variable is read when Python starts.
        """
        command, env = [*map(str, words)], dict(os.environ if env is None else env)
        if has_own_interpreter or _early(env) != _early(_ENVIRONMENT):
            full = [sys.executable, *command]
            return subprocess.Popen(full, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, text=True)
        pipes = [os.pipe() if each == subprocess.PIPE else None for each in (stdout, stderr)]
        outputs = [pipe[1] if pipe else given for pipe, given in zip(pipes, (stdout, stderr), strict=True)]
        outputs[1] = outputs[0] if stderr == subprocess.STDOUT else outputs[1]
        status, its_status = os.pipe()
        with self._lock, tempfile.TemporaryFile() as request, open(os.devnull, "rb") as nothing:
            request.write(json.dumps([*command, str(cwd or Path.cwd()), env]).encode())
            request.seek(0)
            streams = [nothing.fileno() if stdin == subprocess.DEVNULL else stdin, *outputs]
            connection = self._connection = self._connection or self._started()
            socket.send_fds(connection, [b"\1"], [request.fileno(), its_status, *streams])
            pid = int.from_bytes(connection.recv(8), "big")
        for fd in (its_status, *(pipe[1] for pipe in pipes if pipe)):
            os.close(fd)
        return Fork(command, pid, status, *(os.fdopen(pipe[0]) if pipe else None for pipe in pipes))

    def _started(self) -> socket.socket:
        ours, its = socket.socketpair()
        with its:
            process = subprocess.Popen(
                [sys.executable, "-m", "vertex_testing.forks", str(its.fileno()), *self._modules],
                cwd="/",
                env=_ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        atexit.register(process.wait)
        atexit.register(ours.close)
        return ours


def _read(pipe: IO[str], printed: dict[IO[str] | None, str]) -> None:
    with pipe:
        printed[pipe] = pipe.read()


def _early(env: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if name.startswith(_EARLY)}


def _next_program(connection: socket.socket) -> list[Any]:
    """Fork a process per request; return its request there, and nothing here, at the end of the test run."""
    while True:
        data, fds, _, _ = socket.recv_fds(connection, 1, 5)
        if not data:
            return []
        (content, status), streams = fds[:2], fds[2:]
        # The process in between waits for the program, which may be stopped and continued.
        reading, writing = os.pipe()
        if os.fork() == 0:
            if (pid := os.fork()) == 0:
                with open(content, "rb") as file:
                    request: list[Any] = json.load(file)
                for number, fd in enumerate(streams):
                    os.dup2(fd, number)
                for fd in (reading, writing, status, connection.fileno(), *streams):
                    os.close(fd)
                return request
            os.write(writing, pid.to_bytes(8, "big"))
            for fd in (reading, writing, content, connection.fileno(), *streams):
                os.close(fd)
            os.write(status, os.waitpid(pid, 0)[1].to_bytes(8, "big"))
            os._exit(0)
        for fd in (*fds, writing):
            os.close(fd)
        connection.send(os.read(reading, 8))
        os.close(reading)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _run(*request: Any) -> None:
    *words, folder, env = request
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    tempfile.tempdir = None
    if "numpy" in sys.modules:
        # Unlike `random`, it does not do so in a fork.
        importlib.import_module("numpy").random.seed()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if os.isatty(number):
            stream = open(number, "w" if number else "r", buffering=1, encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
    sys.orig_argv = [sys.executable, *words]
    kind, *rest = words
    if kind == "-m":
        sys.argv, sys.path[0] = rest, folder
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    else:
        sys.argv, sys.path[0] = words, str(Path(kind).resolve().parent)
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    if found := _next_program(socket.socket(fileno=int(sys.argv[1]))):
        _run(*found)
