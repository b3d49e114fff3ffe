"""The private file by which the processes of a run find the registry, and the variables that lead to it."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from vertex_gpu_training.userinput import step_endpoint
from vertex_gpu_training.userinput.step_endpoint import VARIABLE, StepEndpoint
from vertex_gpu_training.userinput.temporary import temporary_folder

_NAME = "endpoint.json"

_LOOPBACK = ("127.0.0.1", "localhost")


class StepFile:
    """The file of a run; processes get no variable before `write` and after `close`."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self.readable: tuple[Path, ...] = ()
        """The file, which processes in a sandbox must find, too."""

    def write(self, endpoint: StepEndpoint) -> None:
        """Write the file into a folder of its own, which only its owner can open.

        Raises:
            OSError: It cannot be written.
        """
        path = Path(self._held.enter_context(temporary_folder())) / _NAME
        step_endpoint.write(path, endpoint)
        self.readable = (path,)

    def added_to(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return variables with that of the file, and never with the one that localvertex itself has received."""
        kept = {name: text for name, text in env.items() if name != VARIABLE}
        for path in self.readable:
            kept |= {VARIABLE: str(path), **_without_proxy(kept)}
        return kept

    def close(self) -> None:
        """Remove the file."""
        self.readable = ()
        self._held.close()


def _without_proxy(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep a user's proxy from calls to this machine, which it could not pass on."""
    if not any(name.lower() in ("http_proxy", "all_proxy") and text for name, text in env.items()):
        return {}
    named = (env.get("no_proxy") or env.get("NO_PROXY") or "").split(",")
    text = ",".join(dict.fromkeys([*filter(None, map(str.strip, named)), *_LOOPBACK]))
    return {"no_proxy": text, "NO_PROXY": text}
