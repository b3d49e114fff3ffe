"""Runs any compiled Kubeflow pipeline file on this machine as Vertex AI would; knows no pipeline of this project."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localvertex.errors import Refused
    from localvertex.runner.options import Options
    from localvertex.runs import prepare, resume, run
    from localvertex_base.userinput.errors import UserError

__all__ = ["Options", "Refused", "UserError", "prepare", "resume", "run"]


def __getattr__(name: str) -> Any:
    """Import the engine on first use, so that `--help` stays quick."""
    if name in ("prepare", "resume", "run"):
        from localvertex import runs

        return getattr(runs, name)
    if name == "Options":
        from localvertex.runner.options import Options

        return Options
    if name == "Refused":
        from localvertex.errors import Refused

        return Refused
    if name == "UserError":
        from localvertex_base.userinput.errors import UserError

        return UserError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
