"""The client of fork_server.py: Python steps start there in milliseconds, where that makes no difference to them."""

import ast
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from localvertex._base import linux
from localvertex._base.userinput.reading import parse_python
from localvertex.processes.masks.mask import Covered

_SERVER = str(Path(__file__).with_name("fork_server.py"))

_START = (
    "import sys; sys.flags.safe_path or sys.path.pop(0)\n"
    "from _frozen_importlib_external import SourceFileLoader\n"
    "module = type(sys)('fork_server'); module.__file__ = sys.argv[1]\n"
    "SourceFileLoader('fork_server', sys.argv[1]).exec_module(module); sys.exit(module.main(int(sys.argv[2])))"
)
"""Program that starts the server without an entry in `sys.modules` and without the folder of the file on the path."""

_DONE = b"\1"

_MAX_SECONDS = 30.0
"""Limit of the server's answers."""

_CREDENTIALS_BYTES = 12
"""Size of `struct ucred`, see unix(7)."""

_EARLY = ("PYTHON", "LD_", "GLIBC_", "GCONV_", "MALLOC_", "LOCPATH", "NLSPATH", "LC_", "LANG", "TZ", "OMP_", "SSL_")
"""Beginnings of the variables that Python and its libraries read when they start."""

_ALSO_EARLY = ("HOME", "PATH")

_OF_START_UP_FILES = ("COV", "SETUPTOOLS_")
"""Beginnings of the variables that those of coverage, pytest-cov and setuptools read."""

_HASHED = ("set", "frozenset", "hash")
"""Names whose results depend on the seed of hashes, which all steps of a server share."""

_SCRIPT = re.compile(
    r"""\s*program_path=\$\(mktemp -d\)\s*"""
    r"""printf "%s" "\$0" > "\$program_path/ephemeral_component\.py"\s*"""
    r"""_KFP_RUNTIME=true (?:exec )?python3 -m kfp\.dsl\.executor_main[\s\\]*"""
    r"""--component_module_path[\s\\]*"\$program_path/ephemeral_component\.py"[\s\\]*"\$@"\s*"""
)
"""The command that kfp's compiler writes for every `@dsl.component` (kfp 2.17, component_factory.py), and with `exec`,
which lets SIGTERM reach Python."""


@dataclass(frozen=True, kw_only=True)
class Forked:
    """A step that was forked."""

    mask: "subprocess.Popen[bytes] | None"
    """bubblewrap, which ends with the supervisor of the step; None without a mask."""
    pid: int
    """Id of the process above the supervisor."""


Fork = Callable[..., Forked | None]
"""`ForkServer.fork` of one program."""


@dataclass(frozen=True, kw_only=True)
class PythonProgram:
    """A lightweight Python component: the source of its module, and the executor's arguments."""

    source: str
    arguments: tuple[str, ...]

    def request(self, env: Mapping[str, str], folder: str) -> dict[str, object]:
        """Return what the server runs, as JSON."""
        env = {**env, "PWD": folder, "_KFP_RUNTIME": "true"}
        return {"env": env, "source": self.source, "arguments": self.arguments, "command": []}


@dataclass(frozen=True, kw_only=True)
class CommandProgram:
    """A command that starts its own program: only its supervisor is forked."""

    words: tuple[str, ...]

    def request(self, env: Mapping[str, str], folder: str) -> dict[str, object]:
        """Return what the server runs, as JSON."""
        del folder
        return {"env": env, "command": self.words}


Program = PythonProgram | CommandProgram


def program_of(command: Sequence[str], declared: Collection[str]) -> PythonProgram | None:
    """Return what a step's command runs; None if it does more, or depends on what a fork shares with other steps.

    Args:
        command: The command with its arguments.
        declared: Names of the variables that the step sets itself.
    """
    if len(command) < 4 or [*command[:2]] != ["sh", "-ec"] or not _SCRIPT.fullmatch(command[2]):
        return None
    if _uses_hashes(command[3]):
        return None
    return None if _early(dict.fromkeys(declared, "")) else PythonProgram(source=command[3], arguments=(*command[4:],))


@lru_cache(maxsize=128)
def _uses_hashes(source: str) -> bool:
    """Return whether code has something that depends on hashes; each iteration of a loop has the same code."""
    nodes = ast.walk(parse_python(source))
    return any(isinstance(each, ast.Set | ast.SetComp) or getattr(each, "id", "") in _HASHED for each in nodes)


def _early(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that decide how Python starts, without the temporary folder of the step in their paths."""
    found = {name: text for name, text in env.items() if name.startswith(_EARLY) or name in _ALSO_EARLY}
    own = env.get("TMPDIR")
    return {name: text.replace(own, "") if own else text for name, text in found.items()}


def can_fork(env: Mapping[str, str]) -> bool:
    """Return whether a step with these variables starts as the server does, in whichever folder."""
    paths = (env.get("PYTHONPATH") or os.sep).split(os.pathsep)
    return all(map(os.path.isabs, paths)) and not any(name.startswith(_OF_START_UP_FILES) for name in env)


class ForkServer:
    """One server for the programs of a kind in a run.

    Args:
        env: The variables of the first Python step, in whose environment the server starts before the step does; empty
            for commands.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._early, self._lock = _early(env), threading.Lock()
        python, names = [sys.executable, "-I", "-S"], list[str]()
        if env:
            python, names = [shutil.which("python3", path=env["PATH"]) or sys.executable], [*self._early, "TMPDIR"]
        self._connection, other_end = socket.socketpair()
        self._connection.settimeout(_MAX_SECONDS)
        with other_end:
            self._process = subprocess.Popen(
                [*python, "-c", _START, _SERVER, str(other_end.fileno())],
                cwd="/",
                env={name: env[name] for name in names} | {"_KFP_RUNTIME": "true"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[other_end.fileno()],
                start_new_session=True,
            )
        self._is_usable: bool | None = None
        """None: it has not confirmed its imports yet."""

    def fork(
        self,
        program: Program,
        env: Mapping[str, str],
        *,
        cwd: Path,
        covered: Covered,
        fds: Sequence[int],
        kept: Sequence[int],
        grace_seconds: float,
        num_skipped_ids: int,
    ) -> Forked | None:
        """Fork a step, into its mask if it has one; return None if the step has to start its own Python.

        Args:
            program: The step, or a replica's command.
            env: Its variables.
            cwd: Its working directory.
            covered: The mask.
            fds: Descriptors of its log and of its lifeline.
            kept: Descriptors that its supervisor keeps open.
            grace_seconds: Between SIGTERM and SIGKILL.
            num_skipped_ids: Process ids that are used up before.
        """
        is_other = isinstance(program, PythonProgram) and _early(env) != self._early
        if is_other or self._is_usable is False:
            return None
        mask = None
        try:
            with ExitStack() as opened:
                no_input = opened.enter_context(open(os.devnull, "rb"))
                pid, namespaces, last = os.getpid(), list[int](), no_input.fileno()
                if covered.words:
                    mask, holder, pid = _open_mask(covered, cwd)
                    last = opened.enter_context(holder).fileno()
                    namespaces = linux.namespaces(pid, opened)
                request = {
                    "rights": linux.rights(pid),
                    "num_namespaces": len(namespaces),
                    "folder": str(cwd),
                    # bubblewrap sets it, too.
                    **program.request({**env, "PWD": str(cwd)} if covered.words else env, str(cwd)),
                    "grace_seconds": grace_seconds,
                    "num_skipped_ids": num_skipped_ids,
                }
                file = opened.enter_context(open(os.memfd_create("request"), "wb+"))
                file.write(json.dumps(request).encode())
                file.seek(0)
                permission, permit = os.pipe()
                opened.callback(os.close, permission)
                opened.callback(os.close, permit)
                if above := self._ask([file.fileno(), *fds, last, no_input.fileno(), permission, *namespaces, *kept]):
                    os.write(permit, _DONE)
                    return Forked(mask=mask, pid=above)
        except OSError:
            pass  # The step starts its own Python.
        if mask:
            # Its process ends with the last socket, which a frozen process may have.
            mask.kill()
            mask.wait()
        return None

    def _ask(self, fds: list[int]) -> int:
        """Return the process above the supervisor of a step, or 0, after which no step is forked.

        The first call waits until the server has imported what it needs.
        """
        with self._lock:
            above = 0
            if self._is_usable is None:
                data = b""
                with suppress(OSError):
                    data = self._connection.recv(1)
                self._use_if(data == _DONE)
            if self._is_usable:
                with suppress(OSError):
                    socket.send_fds(self._connection, [_DONE], fds)
                    above = int.from_bytes(self._connection.recv(4), "big")
                self._use_if(above > 0)
            return above

    def _use_if(self, is_usable: bool) -> None:
        """Keep the server, or end it, since a late one still has the descriptors of requests."""
        self._is_usable = is_usable
        if not is_usable:
            self._process.kill()

    def close(self) -> None:
        """End the server and the threads that wait for it; running steps continue."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._use_if(False)
            self._connection.close()
            self._process.wait()


def _open_mask(covered: Covered, cwd: Path) -> "tuple[subprocess.Popen[bytes], socket.socket, int]":
    """Start a process behind a mask that ends with its last socket; return bubblewrap, the socket and its process id.

    The id is 0 if there is no such process.
    """
    holder, other_end = socket.socketpair()
    holder.settimeout(_MAX_SECONDS)
    # With each message, the kernel tells the sender's process id, as this process sees it.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with other_end:
        process = subprocess.Popen(
            [*covered.words, "cat"],
            cwd=cwd,
            env={"PATH": os.defpath},
            stdin=other_end.fileno(),
            stdout=other_end.fileno(),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    pid = 0
    with suppress(OSError):
        holder.sendall(_DONE)
        for _, _, credentials in holder.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS_BYTES))[1]:
            pid = int.from_bytes(credentials[:4], sys.byteorder)
    return process, holder, pid
