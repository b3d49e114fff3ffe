"""The same run without the page: a command line."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localvertex.console.creating.form import as_text
from localvertex.console.creating.request import Settings
from localvertex.console.creating.source import Source, short
from localvertex.runner.engine import Options

_DEFAULTS = Options()


def command(source: Source, values: Mapping[str, Any], settings: Settings, region: str, work_dir: Path) -> str:
    """Return the command line that runs what the form says; display name and labels exist in the API only.

    Args:
        source: The compiled file.
        values: The values of the parameters.
        settings: The rest of the form.
        region: The region of the run.
        work_dir: The work folder of the server.
    """
    path, root = source.path, source.pipeline.root
    words = ["python", "-m", "localvertex", "run", f"./{path}" if path.startswith("-") else path]
    for name, value in values.items():
        text = as_text(value, root.input_parameters[name].type)
        words += ["--parameter", f"{name}={'@' * text.startswith('@')}{text}"]
    for name, spec in root.input_artifacts.items():
        words += [] if spec.is_optional else ["--input-artifact", f"{name}=PATH"]
    words += ["--region", region] if region != _DEFAULTS.region else []
    words += ["--work-dir", short(work_dir)] if short(work_dir) != str(_DEFAULTS.work_dir) else []
    words += ["--fail-fast"] if settings.fail_fast else []
    return " ".join(map(_quote, words + ([] if settings.use_cache else ["--no-cache"])))


def _quote(word: str) -> str:
    """Return a word for a shell; control characters in pasted text act on the terminal, even in quotes."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escape, word))}'"


def _escape(character: str) -> str:
    if character.isprintable() and character not in "\\'":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogatepass"))
