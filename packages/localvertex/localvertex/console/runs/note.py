"""The name and the note that a user gave a run: a file beside its record, which is never touched for them."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from localvertex._base.userinput import atomic_write
from localvertex.api.rest.errors import invalid

FILE = "note.json"

EMPTY = {"name": "", "note": ""}

_MOST = {"name": 128, "note": 20_000}
"""Characters."""


def read(run_dir: Path) -> dict[str, str]:
    """Return the name and the note of a run; empty without a readable file."""
    with suppress(OSError, ValueError, TypeError):
        found = json.loads((run_dir / FILE).read_text()) if (run_dir / FILE).is_file() else EMPTY
        return {each: str(found.get(each, "")) for each in EMPTY} if isinstance(found, dict) else EMPTY
    return EMPTY


def write(run_dir: Path, body: Mapping[str, Any]) -> None:
    """Write the name and the note; remove the file if both are empty.

    Raises:
        ApiError: One is not a text, or too long.
        OSError: The file cannot be written; the earlier one is unchanged.
    """
    for each, most in _MOST.items():
        text = body.get(each)
        if not isinstance(text, str) or len(text) > most or (each == "name" and not text.isprintable()):
            raise invalid(f"{each}: found {str(text)[:40]!r}; expected a text of up to {most} characters")
    if not any(body[each] for each in EMPTY):
        (run_dir / FILE).unlink(missing_ok=True)
        return
    atomic_write.write_text(run_dir / FILE, json.dumps({each: body[each] for each in EMPTY}))
