"""Container commands in their own images: the command line of docker or podman.

Options after docs.docker.com/reference/cli/docker/container/run and docs.podman.io, podman-run(1).
"""

import csv
import io
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from localvertex._base.userinput.errors import UserError
from localvertex.containers import variables
from localvertex.containers.call import ContainerCommand, Prepared
from localvertex.containers.options import ContainerOptions
from localvertex.credentials.secrets import is_masked
from localvertex.processes.answers import ask

_MAX_ANSWER_SECONDS = 30

_DESCRIPTIONS = ("CLUSTER_SPEC", "TF_CONFIG")
"""Variables with the spec of a job as JSON, in JSON."""


class Engine:
    """docker or podman."""

    runs_images = True
    confines = True
    problem = ""

    def __init__(self, options: ContainerOptions) -> None:
        self._name, self._has_network = options.engine, options.allow_network
        self._program = shutil.which(options.engine)
        if self._program is None:
            raise UserError(
                f"--engine {options.engine}: this program is not installed; install it or choose another engine"
            )
        self._check()

    @property
    def announcement(self) -> str:
        """Return how container commands run."""
        network = "with network" if self._has_network else "without network (--allow-network)"
        return (
            f"container commands run in their images with {self._name}, {network}, without your credentials and "
            "without the CPU and memory limits of the spec"
        )

    def shows(self, path: str | Path) -> bool:
        """Return true: the content of an image is not known here."""
        return True

    def prepared(self, call: ContainerCommand) -> Prepared:
        """Return the engine's command line for a call."""
        name = f"localvertex-{uuid4().hex}"
        env = variables.in_image(call)
        words = [
            str(self._program),
            "run",
            "--rm",
            "--name",
            name,
            *self._identity(),
            *self._gpus(call),
        ]
        words += ["--network", ("host" if call.host_name else "bridge") if self._has_network else "none"]
        words += ["--hostname", call.host_name] if call.host_name and not self._has_network else []
        words += ["--add-host", "metadata.google.internal:127.0.0.1"] if words[-1] == "bridge" else []
        words += _mounts(call)
        secrets = _secrets(env)
        for variable, text in ({"HOME": "/tmp"} | env).items():  # noqa: S108 - a folder of the container
            words += ["--env", variable if variable in secrets else f"{variable}={text}"]
        words += ["--entrypoint", call.command[0]] if call.command else []
        # The engine's own program gets the user's variables, and only the secrets of the pipeline: they are not shown
        # in the list of processes, and no name of a secret changes what the program does.
        client = dict(os.environ) | {variable: env[variable] for variable in secrets}
        return Prepared(
            command=[*words, call.image, *call.command[1:], *call.arguments],
            env=client,
            clean_up=[str(self._program), "rm", "--force", name],
        )

    def _identity(self) -> list[str]:
        """Return the user's identity, without any privilege."""
        own = ["--user", f"{os.getuid()}:{os.getgid()}"]
        own += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "label=disable"]
        if self._name == "docker":
            # Without it, a program that is process 1 ignores SIGTERM.
            return [*own, "--init"]
        # Rootless podman maps the user to root, and root has no user namespace to keep.
        keep_id = ["--userns", "keep-id"] if os.getuid() else []
        return [*own, *keep_id, "--stop-timeout", "0"]

    def _gpus(self, call: ContainerCommand) -> list[str]:
        if not call.gpus:
            return []
        if self._name == "docker":
            return ["--gpus", f'"device={call.gpus}"']
        return [word for gpu in call.gpus.split(",") for word in ("--device", f"nvidia.com/gpu={gpu}")]

    def _check(self) -> None:
        """Refuse an engine that does not answer."""
        done = ask([str(self._program), "version"], seconds=_MAX_ANSWER_SECONDS)
        if done.returncode:
            reason = " ".join(done.stderr.strip().splitlines()[-1:]) or f"exit code {done.returncode}"
            raise UserError(
                f"--engine {self._name} cannot run containers: {reason}; start it, or leave the option out to use a "
                "sandbox"
            )


def _secrets(env: Mapping[str, str]) -> set[str]:
    """Return the names of the variables with secrets, including those that describe a job with all its variables."""
    found = {name for name in env if is_masked(name)}
    written = [json.dumps(json.dumps(env[name])[1:-1])[1:-1] for name in found if env[name]]
    return found | {name for name in _DESCRIPTIONS if any(text in env.get(name, "") for text in written)}


def _mounts(call: ContainerCommand) -> list[str]:
    """Return the mounts: the run, given paths and /gcs, at the same paths as here."""
    words = []
    for path in call.readable:
        words += _mount(path, path, "readonly")
    # An unusual work folder is reached through a link in the temporary folder.
    for path in (call.folder, call.temporary, *call.writable):
        words += _mount(path, path)
    return words + (
        [*_mount(call.gcs_root, Path("/gcs")), *_mount(call.gcs_root, call.gcs_root)] if call.gcs_root else []
    )


def _mount(source: Path, target: Path, *flags: str) -> list[str]:
    """Return one mount; a path may contain commas, so the fields are quoted as in CSV."""
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(["type=bind", f"source={source}", f"target={target}", *flags])
    return ["--mount", row.getvalue()]
