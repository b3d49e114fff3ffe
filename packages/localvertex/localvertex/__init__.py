"""Runs any compiled Kubeflow pipeline file on this machine as Vertex AI would; knows no pipeline of this project."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localvertex.errors import Refused
    from localvertex.runner.engine import Options, prepare, resume, run
    from localvertex_base.userinput.errors import UserError

__all__ = ["Options", "Refused", "UserError", "prepare", "resume", "run"]


def __getattr__(name: str) -> Any:
    """Import the engine on first use, so that `--help` stays quick."""
    if name in ("Options", "prepare", "resume", "run"):
        from localvertex.runner import engine

        return getattr(engine, name)
    if name == "Refused":
        from localvertex.errors import Refused

        return Refused
    if name == "UserError":
        from localvertex_base.userinput.errors import UserError

        return UserError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
