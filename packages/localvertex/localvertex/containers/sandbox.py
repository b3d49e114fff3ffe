"""Container commands in a bubblewrap sandbox: this machine's programs, without the user's files and sockets.

The root is built from nothing, and what a command adds to it ends with the command. Folders of the system are mounted
read-only; those with files of users, with sockets of services and agents, or with temporary files stay out: /home,
/root, /run, /var, /tmp, /mnt. Options after bwrap(1).
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from functools import cached_property
from glob import glob
from pathlib import Path

from localvertex.containers import interpreter, variables
from localvertex.containers.call import ContainerCommand, Prepared, inside
from localvertex.containers.options import ContainerOptions
from localvertex.processes import in_sandbox
from localvertex.processes.answers import ask
from localvertex.processes.masks import secret_places
from localvertex.processes.masks.mask import covering

_LEFT_OUT = frozenset("boot dev home lost+found media mnt proc root run tmp var".split())
"""Top-level folders that stay empty; /dev and /proc are the sandbox's own."""

_OF_PACKAGES = re.compile("usr|bin|sbin|lib.*|nix|gnu|snap|sys")

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - folders of the sandbox

_CERTIFICATES = "/var/lib/ca-certificates"

_MAX_PROBE_SECONDS = 30

_ROOT_BYTES = 2**30
"""Memory for the files that a command writes outside its folders; it ends with the command."""

_STARTER = ("sh", "-c", 'trap "" TERM INT HUP; exec "$@"', "sh")
"""Starts bubblewrap so that signals do not end it: the command inside decides within its grace time."""


class Sandbox:
    """bubblewrap."""

    runs_images = False
    confines = True
    problem = ""

    def __init__(self, program: str, options: ContainerOptions) -> None:
        self._program, self._has_network = program, options.allow_network

    @property
    def announcement(self) -> str:
        """Return how container commands run."""
        network = "with your network" if self._has_network else "without network (--allow-network)"
        return (
            f"container commands run in a bubblewrap sandbox on this machine, not in their images: {network}, "
            "without your home directory and credentials"
        )

    def probe(self) -> str:
        """Try the sandbox; return why it cannot be used, or an empty text."""
        with tempfile.TemporaryDirectory(prefix="localvertex-") as name:
            folder = Path(name)
            call = ContainerCommand(
                image="",
                command=["true"],
                arguments=[],
                env={"PATH": os.environ.get("PATH", os.defpath)},
                declared=frozenset(),
                folder=folder,
                temporary=folder,
                work_dir=folder,
            )
            prepared = self.prepared(call)
            done = ask(prepared.command, env=prepared.env, seconds=_MAX_PROBE_SECONDS)
        lines = done.stderr.strip().splitlines()
        return "" if done.returncode == 0 else (lines[-1] if lines else f"exit code {done.returncode}")

    def shows(self, path: str | Path) -> bool:
        """Return whether the sandbox shows a path of this machine, before anything of a run is mounted."""
        return os.path.exists(path) and (is_of_system(path) or inside(path, self._python))

    def prepared(self, call: ContainerCommand) -> Prepared:
        """Return the command line that runs a call in the sandbox."""
        env = variables.in_sandbox(call, has_network=self._has_network)
        if call.credentials is None:
            # The folder named by isolation.py is among the temporary files, which are hidden.
            env["CLOUDSDK_CONFIG"] = str(call.temporary / "gcloud")
            (call.temporary / "gcloud").mkdir(exist_ok=True)
        inner = [sys.executable, "-I", "-S", in_sandbox.__file__, *call.command, *call.arguments]
        words = [self._program, "--unshare-all", *(["--share-net"] if self._has_network else [])]
        words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", *self._root]
        # A folder that has gone since they were looked for cannot be covered.
        words += [*covering(filter(os.path.exists, _only_roots())), *self._mounts(call)]
        return Prepared(
            command=[*_STARTER, *words, "--chdir", str(call.folder), "--", *inner],
            env=in_sandbox.carried(env),
        )

    @cached_property
    def _python(self) -> list[Path]:
        return interpreter.folders()

    @cached_property
    def _limits_root(self) -> bool:
        """Whether bubblewrap can limit the size of a root that can be written; it can since 0.7."""
        return "--size " in ask([self._program, "--help"], seconds=_MAX_PROBE_SECONDS).stdout

    @cached_property
    def _root(self) -> list[str]:
        """Return the mounts of the system."""
        words = ["--size", str(_ROOT_BYTES), "--tmpfs", "/"] if self._limits_root else []
        for entry in sorted(os.scandir("/"), key=lambda each: each.name):
            if entry.is_symlink():
                words += ["--symlink", os.readlink(entry.path), entry.path]
            elif entry.is_dir() and entry.name not in _LEFT_OUT:
                words += ["--ro-bind", entry.path, entry.path]
        words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var"]
        words += [word for path in sorted(glob("/dev/nvidia*")) for word in ("--dev-bind", path, path)]
        words += ["--ro-bind-try", _CERTIFICATES, _CERTIFICATES]
        names = os.path.realpath("/etc/resolv.conf")
        if self._has_network and not names.startswith("/etc/"):
            words += ["--ro-bind-try", names, names]
        return words

    def _mounts(self, call: ContainerCommand) -> list[str]:
        """Return the mounts of a call; a later one covers an earlier one."""
        home, temporary = call.temporary / "home", call.temporary / "tmp"
        for each in (home, temporary):
            each.mkdir(exist_ok=True)
        # A folder inside an empty folder is hidden already.
        hidden = [
            each
            for each in {*_hidden(), os.path.realpath(call.work_dir)}
            if each != os.sep and each.split(os.sep)[1] not in _LEFT_OUT and os.path.isdir(each)
        ]
        words = [word for each in sorted(hidden) for word in ("--tmpfs", each)]
        words += [word for target in _TEMPORARY for word in ("--bind", str(temporary), target)]
        if (users_home := os.path.realpath(Path.home())) != os.sep:
            words += ["--bind", str(home), users_home]
        # The step's temporary folder is in the machine's, which may also contain Python.
        words += _binds("--ro-bind", [*self._python, *call.readable, *(call.credentials or [])])
        words += _binds("--bind", [call.temporary, call.folder, *call.writable])
        if call.gcs_root:
            # Parameters and artifacts use the path on this machine.
            words += [*_binds("--bind", [call.gcs_root]), "--bind", str(call.gcs_root), "/gcs"]
        # As in an image, a command may add to its root.
        read_only = [*([] if self._limits_root else ["/"]), *sorted({*hidden} - {users_home})]
        return words + [word for each in read_only for word in ("--remount-ro", each)]


def _only_roots() -> tuple[str, ...]:
    """Return the files that the sandbox of root must hide; packages of the system have no such files."""
    if os.geteuid() != 0:
        return ()
    shown = sorted(each for each in os.listdir("/") if each not in _LEFT_OUT and not _OF_PACKAGES.fullmatch(each))
    folders = ("/usr/local", *(f"/{each}" for each in shown))
    return secret_places.only_roots(*(each for each in folders if os.path.isdir(each) and not os.path.islink(each)))


def is_of_system(path: str | Path) -> bool:
    """Return whether a path belongs to the system, so that every command may read it, if it exists."""
    place = os.path.realpath(path)
    return place.split(os.sep)[1] not in _LEFT_OUT and not inside(place, (*_hidden(), *_only_roots()))


def _hidden() -> list[str]:
    """Return the folders that must be empty although their top-level folder is mounted."""
    return sorted({os.path.realpath(each) for each in (Path.home(), tempfile.gettempdir(), "/home", *_TEMPORARY)})


def _binds(option: str, paths: Iterable[Path]) -> list[str]:
    """Mount paths where programs look for them: as named, and where their links lead."""
    words = []
    for path in paths:
        real = os.path.realpath(path)
        words += [option, real, real]
        top = os.path.join(os.sep, path.parts[1]) if len(path.parts) > 1 else os.sep
        # A link that the root shows cannot be a mount point, and leads to what is mounted already.
        if str(path) != real and not os.path.islink(top) and not is_of_system(path.parent):
            words += [option, real, str(path)]
    return words
