"""How a run executes container commands: decided once, when the first one is found."""

import json
import os
from functools import cache, cached_property
from pathlib import Path

from localvertex._base import linux
from localvertex.containers.call import ContainerCommand, Prepared, inside
from localvertex.containers.engine import Engine
from localvertex.containers.options import ContainerOptions
from localvertex.containers.sandbox import Sandbox
from localvertex.containers.stand_ins import StandIns
from localvertex.values.arguments import CommandPrefixes
from localvertex.values.buckets import Buckets

_ADVICE = "add --engine docker, --engine podman or --allow-host-commands"


class Choice:
    """Chooses how container commands run, from the user's options and this machine. Nothing is tried before `how`."""

    def __init__(
        self,
        options: ContainerOptions | None = None,
        *,
        command_prefixes: CommandPrefixes | None = None,
        stand_ins: StandIns | None = None,
    ) -> None:
        self.options = options or ContainerOptions()
        self.command_prefixes = command_prefixes or {}
        """Local commands in place of container images, by image."""
        self.stand_ins = stand_ins or StandIns()

    def images_variable(self, work_dir: Path) -> str:
        """Return the variable by which a step knows the code in place of images: a JSON object, image -> digest.

        `*` is in it if an engine runs the images themselves.
        """
        engine = {"*": "image"} if self.options.engine else {}
        return json.dumps(engine | self.stand_ins.code_digests(work_dir, self.command_prefixes))

    def shows(self, path: str | Path) -> bool:
        """Return whether a container command finds a path; the source folder of its image is mounted."""
        return self.how.shows(path) or (os.path.exists(path) and inside(path, self.stand_ins.sources))

    @cached_property
    def how(self) -> "Engine | Sandbox | _Host | _Missing":
        """Return how container commands run.

        Raises:
            UserError: The engine that the user has named cannot be used.
        """
        if self.options.engine:
            return Engine(self.options)
        if self.options.allow_host_commands:
            return _Host()
        if not linux.is_used():
            return _Missing(_ADVICE)
        program = linux.bubblewrap()
        if program is None:
            return _Missing(f"install bubblewrap (for example: apt install bubblewrap), or {_ADVICE}")
        if problem := _problem_of_sandbox(program):
            return _Missing(f"bubblewrap is installed but does not work here ({problem}); {_ADVICE}")
        return Sandbox(program, self.options)


@cache
def _problem_of_sandbox(program: str) -> str:
    return Sandbox(program, ContainerOptions()).probe()


class _Host:
    """Runs container commands on this machine, like any other program."""

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

    def prepared(self, call: ContainerCommand) -> Prepared:
        """Return the command, with the folders of its buckets in place of /gcs."""
        command = Buckets(root=call.gcs_root).mount([*call.command, *call.arguments])
        return Prepared(command=command, env=dict(call.env))


class _Missing:
    """Refuses container commands: there is no way to run them."""

    runs_images = False
    confines = False
    announcement = ""

    def __init__(self, advice: str) -> None:
        self.problem = f"container commands need a sandbox or an engine: {advice}"

    def shows(self, path: str | Path) -> bool:
        """Return true, so that only the missing sandbox is reported, not the paths that it would hide."""
        return True

    def prepared(self, call: ContainerCommand) -> Prepared:
        """Fail; the check before the run has already refused."""
        raise RuntimeError(self.problem)
