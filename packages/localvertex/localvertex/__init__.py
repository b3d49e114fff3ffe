"""Runs any compiled Kubeflow pipeline file on this machine as Vertex AI would; knows no pipeline of this project."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localvertex._base.userinput.errors import UserError
    from localvertex.errors import Refused
    from localvertex.runner.options import Options
    from localvertex.runs import prepare, resume, run

__all__ = ["Options", "Refused", "UserError", "prepare", "resume", "run"]


_PLACES = {
    "Options": "localvertex.runner.options",
    "Refused": "localvertex.errors",
    "UserError": "localvertex._base.userinput.errors",
    "prepare": "localvertex.runs",
    "resume": "localvertex.runs",
    "run": "localvertex.runs",
}


def __getattr__(name: str) -> Any:
    """Import the engine on first use, so that `--help` stays quick."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
