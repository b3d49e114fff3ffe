"""How the container commands of a run are run: decided once, when the first one is found."""

import os
import shutil
from collections.abc import Collection
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol

from localvertex.containers.call import Call, Prepared
from localvertex.containers.engine import Engine
from localvertex.containers.options import ContainerOptions
from localvertex.containers.sandbox import Sandbox

_ADVICE = "add --engine docker, --engine podman or --allow-host-commands"


class Containers(Protocol):
    """Runs container commands in one way."""

    @property
    def runs_images(self) -> bool:
        """Whether a command finds the files of its image."""
        ...

    @property
    def confines(self) -> bool:
        """Whether a command can reach only what its call names."""
        ...

    @property
    def problem(self) -> str:
        """Why no container command can run, with what to do; empty when they can."""
        ...

    @property
    def announcement(self) -> str:
        """How they run, in one line."""
        ...

    def shows(self, path: str | Path) -> bool:
        """Return whether a command finds this path of this machine."""
        ...

    def prepared(self, call: Call) -> Prepared:
        """Return the process for a call."""
        ...


class Choice:
    """The user's options, and what they come to on this machine. Nothing is tried before `how` is asked for."""

    def __init__(self, options: ContainerOptions | None = None, *, local_images: Collection[str] = ()) -> None:
        self.options = options or ContainerOptions()
        self.local_images = local_images
        """Images in whose place the user has given local commands."""

    @cached_property
    def how(self) -> Containers:
        """Return how container commands run.

        Raises:
            UserError: The engine that the user has named cannot be used.
        """
        if self.options.engine:
            return Engine(self.options)
        if self.options.allow_host_commands:
            return _Host()
        program = shutil.which("bwrap")
        if program is None:
            return _Missing(f"install bubblewrap (for example: apt install bubblewrap), or {_ADVICE}")
        if problem := _problem_of_sandbox(program):
            return _Missing(f"bubblewrap is installed but does not work here ({problem}); {_ADVICE}")
        return Sandbox(program, self.options)


@cache
def _problem_of_sandbox(program: str) -> str:
    return Sandbox(program, ContainerOptions()).probe()


class _Host:
    """This machine: a container command is a program like any other."""

    runs_images = False
    confines = False
    problem = ""
    announcement = (
        "container commands run on this machine, not in their images, with your files and your network "
        "(--allow-host-commands)"
    )

    def shows(self, path: str | Path) -> bool:
        """Return whether the path exists."""
        return os.path.exists(path)

    def prepared(self, call: Call) -> Prepared:
        """Return the command as it is."""
        return Prepared(command=[*call.command, *call.arguments], env=dict(call.env))


class _Missing:
    """No way to run them."""

    runs_images = False
    confines = False
    announcement = ""

    def __init__(self, advice: str) -> None:
        self.problem = f"container commands need a sandbox or an engine: {advice}"

    def shows(self, path: str | Path) -> bool:
        """Return true: the missing sandbox is reported, and not what it would not show."""
        return True

    def prepared(self, call: Call) -> Prepared:
        """Refuse; the check before the run has done so already."""
        raise RuntimeError(self.problem)
