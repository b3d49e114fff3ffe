"""The private files by which the processes of a run find the registry, and the variables that lead to them."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import VARIABLE, StepEndpoint
from localvertex._base.userinput.temporary import temporary_folder

_NAME, _CONFINED = "endpoint.json", "confined.json"

FILES = (_NAME, _CONFINED)
"""File that a killed run leaves in its folder."""

_LOOPBACK = ("127.0.0.1", "localhost")


class StepFile:
    """The files of a run; processes get no variable before `write` and after `close`."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._folder: Path | None = None

    def write(self, endpoint: StepEndpoint, confined: StepEndpoint) -> None:
        """Write the files into a folder of their own, which only its owner can open.

        Args:
            endpoint: Endpoint for processes that run as the user.
            confined: Endpoint for processes in a sandbox, which must not act as the user.

        Raises:
            OSError: They cannot be written.
        """
        folder = Path(self._held.enter_context(temporary_folder()))
        step_endpoint.write(folder / _NAME, endpoint)
        step_endpoint.write(folder / _CONFINED, confined)
        self._folder = folder

    @property
    def readable(self) -> tuple[Path, ...]:
        """The file that processes in a sandbox must find."""
        return (self._folder / _CONFINED,) if self._folder else ()

    def sandbox_variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a process in a sandbox."""
        return dict(env) | ({VARIABLE: str(self._folder / _CONFINED)} if self._folder else {})

    def add_to(self, env: Mapping[str, str]) -> dict[str, str]:
        """Add the endpoint-file variable, never the one that localvertex itself has received."""
        kept = {name: text for name, text in env.items() if name != VARIABLE}
        if self._folder:
            kept |= {VARIABLE: str(self._folder / _NAME), **_without_proxy(kept)}
        return kept

    def close(self) -> None:
        """Remove the files."""
        self._folder = None
        self._held.close()


def _without_proxy(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that keep a user's proxy from calls to this machine, which it could not pass on."""
    if not any(name.lower() in ("http_proxy", "all_proxy") and text for name, text in env.items()):
        return {}
    named = (env.get("no_proxy") or env.get("NO_PROXY") or "").split(",")
    text = ",".join(dict.fromkeys([*filter(None, map(str.strip, named)), *_LOOPBACK]))
    return {"no_proxy": text, "NO_PROXY": text}
