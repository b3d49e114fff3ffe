"""Runs a compiled Kubeflow pipeline file on your own machine the way Vertex AI would."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localvertex.engine import Options, prepare, resume, run
    from localvertex.errors import Refused
    from userinput.errors import UserError

__all__ = ["Options", "Refused", "UserError", "prepare", "resume", "run"]


def __getattr__(name: str) -> Any:
    """Imports the engine when it is first asked for, so that `--help` stays quick."""
    if name in ("Options", "prepare", "resume", "run"):
        from localvertex import engine

        return getattr(engine, name)
    if name in ("Refused", "UserError"):
        from localvertex import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
