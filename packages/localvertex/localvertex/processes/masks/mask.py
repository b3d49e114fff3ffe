"""The mask of steps and replicas: this machine as it is, without secrets, other runs, the server and other processes.

bubblewrap binds the whole file system, gives the supervisor of a process a process table and terminals of its own, and
covers what `secret_places` lists. In place of the work folder there is a stand-in, with everything that is not the
server's or another run's. Options after bwrap(1).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from localvertex._base import linux
from localvertex._base.userinput import temporary
from localvertex.errors import TaskFailed
from localvertex.processes.answers import ask
from localvertex.processes.masks import secret_places
from localvertex.processes.masks.stand_in import MODELS, OF_THE_SERVER, PRIVATE, RECORD, StandInFolder

_ENVIRONMENTS = "environments"
"""Name of a folder in the private folder."""

_SHARED = ("prepared", "training")
"""Folders that programs make in the work folder of which they only know the path."""

_PATH = r"((?:/[^\s\"'\\,;:()\[\]{}<>|&*?$`]+)*)"
"""The rest of a path in a text."""

_MAX_BINDS = 20
"""Binds for the paths of one run: each bind makes the next ones slower."""

_DEVICES = re.compile(
    "nvidia.*|dri|kfd|accel.*|vfio|infiniband|dxg|hl.*|habana.*|neuron.*|davinci.*|dma_heap|udmabuf|kvm|snd"
    "|video[0-9]+|shm|mqueue|hugepages"
)
"""All except bubblewrap's own, disks, terminals and keyboards."""

_CAPABILITIES = (
    "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID SETPCAP SETFCAP NET_BIND_SERVICE NET_RAW SYS_CHROOT "
    "AUDIT_WRITE SYS_NICE IPC_LOCK"
)
"""Capabilities of root: those of an ordinary container without MKNOD, and two for priorities and locked memory.

bubblewrap 0.8 leaves all of them with `--cap-add CAP_SYS_RESOURCE`.
"""

_SYS_ADMIN = 1 << 21

_OF_THE_LOADER = ("LD_", "GLIBC_", "GCONV_", "MALLOC_", "LOCPATH", "NLSPATH")
"""Beginnings of variables that change every program; a step's must not change those outside the mask."""

_MAX_PROBE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Covered:
    """How a command is started."""

    env: dict[str, str]
    words: tuple[str, ...] = ()
    """Words before the program; empty without a mask."""
    stand_in: StandInFolder | None = None


@dataclass(frozen=True, kw_only=True)
class Mask:
    """The part of this machine that processes see."""

    work_dir: Path | None = None
    given: tuple[Path, ...] = ()
    """Files and folders that the user has given; they are seen wherever they are."""
    has_credentials: bool = False
    """Whether processes get the user's secrets."""
    is_wanted: bool = True

    @property
    def is_there(self) -> bool:
        """Return whether processes run behind the mask."""
        return self.is_wanted and not _problem()

    @property
    def warning(self) -> str:
        """Return what processes can read where the mask is missing; empty if it is there, or not wanted."""
        if not (self.is_wanted and (problem := _problem())):
            return ""
        return (
            "steps and jobs run without a mask and can read your credentials, other runs and the server's token: "
            f'{problem}; or accept it with sandbox = "none" in localvertex.toml'
        )

    def cover(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        writable: Sequence[Path] = (),
        sees_work_dir: bool = True,
    ) -> Covered:
        """Return how a command is started: what it and its variables name of other runs can be read, and no more.

        Args:
            command: The command.
            cwd: Its working directory, which it may write.
            env: Its variables.
            writable: More files and folders in the work folder that it may write.
            sees_work_dir: Whether the work folder is more than an empty folder.

        Raises:
            TaskFailed: The program has no place to write to.
        """
        if not self.is_there:
            return Covered(env=dict(env))
        text = "\n".join([*command, *env.values()])
        root = os.path.realpath(self.work_dir) if self.work_dir else ""
        folders = [os.path.realpath(each) for each in (cwd, *writable)]
        given = [os.path.realpath(each) for each in self.given]
        covers = self._covers()
        outer = [each for each in covers if root and _is_inside(root, each)]
        inner = [each for each in covers if each not in outer]
        words = [*_machine(), *covering(outer)]
        try:
            shown = _WorkFolder(root, self.work_dir, text, folders, given) if root and sees_work_dir else None
        except OSError as error:
            raise TaskFailed(f"cannot start {command[0]}: {error.filename or root}: {error.strerror}") from None
        words += shown.words if shown else covering([root] if os.path.isdir(root) else [])
        words += covering(inner, keep=os.path.realpath(Path.home()))
        for path in [*_own_temporary(text), *folders, *given]:
            is_beside = not _is_inside(path, root) and not _is_inside(root, path)
            if any(_is_inside(path, each) for each in (*inner, *(outer if is_beside else ()))):
                words += ["--bind-try", path, path]
        ours = {name for name, value in env.items() if not _changes_all_programs(name, value)}
        for name in sorted(env.keys() - ours):
            words += ["--setenv", name, env[name]]
        return Covered(
            words=(*words, "--chdir", str(cwd), "--"),
            env={name: env[name] for name in ours},
            stand_in=shown.stand_in if shown else None,
        )

    def ask(self, words: Sequence[str], *, env: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[str]:
        """Run a program that does not see the work folder, in the temporary folder, as `answers.ask` does."""
        covered = self.cover(words, cwd=Path(tempfile.gettempdir()), env=env, sees_work_dir=False)
        return ask([*covered.words, *words], seconds=seconds, env=covered.env)

    def hides(self, path: str | Path, seen: Iterable[Path] = ()) -> bool:
        """Return whether a path leads to what is hidden, which localvertex must not copy for a step either.

        Args:
            path: The path, for example of a link that a step has made.
            seen: What the step sees of the work folder.
        """
        place, root = os.path.realpath(path), os.path.realpath(self.work_dir or os.devnull)
        if not self.is_there or any(_is_inside(place, os.path.realpath(each)) for each in (*seen, *self.given)):
            return False
        if _is_inside(place, root):
            first = os.path.join(root, os.path.relpath(place, root).split(os.sep)[0])
            if _is_inside(place, os.path.join(root, PRIVATE, _ENVIRONMENTS)):
                return False
            return os.path.basename(first) in OF_THE_SERVER or os.path.lexists(os.path.join(first, RECORD))
        # A step only knows the names of its own temporary folders.
        temporaries = os.path.realpath(temporary.parent())
        return any(
            _is_inside(each, place) or (_is_inside(place, each) and each != temporaries) for each in self._covers()
        )

    def _covers(self) -> list[str]:
        """Return the existing files and folders to cover, none of them inside another."""
        places = [*secret_places.of_system(os.environ)]
        places += [] if self.has_credentials else secret_places.of_users(os.environ)
        places += [temporary.parent()]
        found, needed = list[str](), _needed()
        for each in sorted({os.path.realpath(each) for each in places if os.path.exists(each)}):
            if not any(_is_inside(other, each) for other in needed) and not (found and _is_inside(each, found[-1])):
                found.append(each)
        return found


class _WorkFolder:
    """The work folder as a process sees it."""

    def __init__(self, root: str, named_as: Path | None, text: str, folders: list[str], given: list[str]) -> None:
        self._root = root
        self.stand_in = StandInFolder.new(root)
        self.words = ["--bind", self.stand_in.content, root]
        named = self._named(text, {root, str(named_as)})
        self._make_missing(named)
        for entry in sorted(os.scandir(root), key=lambda each: each.name):
            if entry.name in OF_THE_SERVER or os.path.lexists(os.path.join(entry.path, RECORD)):
                continue
            if entry.is_dir(follow_symlinks=False) or not self.stand_in.link(entry.name):
                self._show(entry.path, may_write=entry.name != MODELS)
        self._show(os.path.join(root, PRIVATE, _ENVIRONMENTS))
        for each in given:
            if self._parts(each) and not self._is_shown(each):
                self._show(each, may_write=len(self._parts(each)) > 1)
        self._show_runs(named, folders)

    def _show(self, path: str, *, may_write: bool = False) -> None:
        if not os.path.exists(path):
            return
        self.stand_in.known.add(self._parts(path)[0])
        if os.path.islink(path):
            self.words += ["--symlink", os.readlink(path), path]
        else:
            self.words += ["--bind" if may_write else "--ro-bind-try", path, path]

    def _is_shown(self, path: str) -> bool:
        return self._parts(path)[0] in self.stand_in.linked or any(
            _is_inside(path, each) for each in self.words if each.startswith(f"{self._root}{os.sep}")
        )

    def _show_runs(self, named: list[str], folders: list[str]) -> None:
        """Show the run of a process, in which it writes its own folder, and what it names of other runs."""
        own = next((os.path.join(self._root, self._parts(each)[0]) for each in folders if self._parts(each)), "")
        own = own if os.path.lexists(os.path.join(own, RECORD)) else ""
        if own:
            self._show(own)
            # A step may change its inputs, but no record of the run.
            tasks = {self._parts(each)[1] for each in [*folders, *named] if _is_inside(each, own) and each != own}
            for each in sorted(os.path.join(own, name) for name in tasks):
                if os.path.isdir(each):
                    self._show(each, may_write=True)
        for each in folders:
            if self._parts(each) and not (own and _is_inside(each, own)):
                self._show(each, may_write=True)
        # Artifacts are below the folder of a step, beside its log.
        others = [each for each in named if len(self._parts(each)) > 2 and not self._is_shown(each)]
        others = [each for each in others if self._parts(each)[0] not in OF_THE_SERVER and not _is_record(each)]
        if len(others) > _MAX_BINDS:
            others = [os.path.join(self._root, *self._parts(each)[:2]) for each in others]
        for each in sorted({*others}):
            self._show(each)

    def _make_missing(self, named: list[str]) -> None:
        """Make the folders that a process may make in the work folder, where others would not see them until its end.

        Files, whose names have an extension, are moved there at the end.
        """
        names = {self._parts(each)[0] for each in named if self._parts(each)}
        names |= {*_SHARED} if self._root in named else set()
        for name in sorted({*names, MODELS}):
            if "." not in name and name not in OF_THE_SERVER:
                with suppress(OSError):
                    os.makedirs(os.path.join(self._root, name), exist_ok=True)

    def _named(self, text: str, roots: Iterable[str]) -> list[str]:
        """Return the real paths in the work folder that a text names, even in JSON."""
        forms = {form for root in roots for form in (root, json.dumps(root)[1:-1])}
        pattern = re.compile(f"(?:{'|'.join(map(re.escape, sorted(forms, reverse=True)))}){_PATH}")
        found = {os.path.realpath(f"{self._root}{match[1]}") for match in pattern.finditer(text)}
        return sorted(each for each in found if _is_inside(each, self._root))

    def _parts(self, path: str) -> list[str]:
        """Return the names on the way from the work folder to a path; none if it is not inside."""
        if path == self._root or not _is_inside(path, self._root):
            return []
        return os.path.relpath(path, self._root).split(os.sep)


def _machine() -> list[str]:
    """Return bubblewrap with this machine, and new devices, terminals and processes."""
    words = [str(linux.bubblewrap()), "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--dev", "/dev"]
    for name in sorted(os.listdir("/dev")):
        path = os.path.join("/dev", name)
        if _DEVICES.fullmatch(name) and os.access(path, os.R_OK):
            words += ["--dev-bind", path, path]
    if os.path.islink("/dev/log"):
        words += ["--symlink", os.readlink("/dev/log"), "/dev/log"]
    if os.geteuid() == 0:
        for path in linux.KERNEL_SETTINGS:
            words += ["--ro-bind-try", path, path]
        words += ["--cap-drop", "ALL"]
        words += [word for each in _CAPABILITIES.split() for word in ("--cap-add", f"CAP_{each}")]
    return words


def covering(places: Iterable[str], *, keep: str = "") -> list[str]:
    """Return the options that make folders and files empty; what is written there is lost.

    Below the folder `keep`, the folders on the way cannot be renamed, so that a later step finds nothing elsewhere.
    """
    places = [*places]
    ways = {each for each in map(os.path.dirname, places) if keep and _is_inside(each, keep)}
    ways |= {os.path.dirname(each) for each in ways}
    words = [
        word for each in sorted(ways) if _is_inside(each, keep) and each != keep for word in ("--bind", each, each)
    ]
    for each in places:
        words += ["--tmpfs", each] if os.path.isdir(each) else ["--dev-bind", os.devnull, each]
    return words


def _problem() -> str:
    """Return why there cannot be a mask, with what to do; empty where it works."""
    if not linux.is_used():
        return "only Linux has bubblewrap, which makes it"
    if (program := linux.bubblewrap()) is None:
        return "install bubblewrap, which makes it (for example: apt install bubblewrap)"
    return _problem_of(program)


@cache
def _problem_of(program: str) -> str:
    """Return what the first process behind the mask of this bubblewrap shows to be wrong; nothing is tried before."""
    if os.path.exists("/dev/nvidiactl") and not os.path.exists("/dev/nvidia-uvm"):
        # The first program with CUDA makes this device, which it cannot do behind the mask.
        ask(["nvidia-modprobe", "-u", "-c", "0"], seconds=_MAX_PROBE_SECONDS)
    done = ask([program, *_machine()[1:], "--", "cat", linux.OWN_STATUS], seconds=_MAX_PROBE_SECONDS)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"bubblewrap does not work here ({lines[-1]}); permit user namespaces"
    capabilities = re.search(r"^CapEff:\s*(\w+)", done.stdout, re.MULTILINE)
    if capabilities is None or int(capabilities[1], 16) & _SYS_ADMIN:
        return "bubblewrap leaves the process the capabilities of root; update it"
    return ""


def _own_temporary(text: str) -> list[str]:
    """Return the temporary folders that a process is given, by the paths in a text."""
    parent = temporary.parent()
    names = {*re.findall(f"{re.escape(parent)}/([\\w-]+)", text)}
    return [os.path.realpath(os.path.join(parent, each)) for each in sorted(names)]


@cache
def _needed() -> tuple[str, ...]:
    """Return what no cover may contain."""
    return tuple({os.path.realpath(each) for each in (Path.home(), sys.prefix, sys.base_prefix, __file__)})


def _is_record(path: str) -> bool:
    """Return whether a file is localvertex's own in the folder of a step."""
    return path.endswith((".log", "/log.txt", "/executor_input.json", "/executor_output.json"))


def _changes_all_programs(name: str, value: str) -> bool:
    return name.startswith(_OF_THE_LOADER) and os.environ.get(name) != value


def _is_inside(path: str, folder: str) -> bool:
    """Return whether a real path is a folder or below it."""
    return path == folder or path.startswith(f"{folder.rstrip(os.sep)}{os.sep}")
