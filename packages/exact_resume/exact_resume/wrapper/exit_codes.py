"""Translate the exit code of a command by the user's table, with the help of torchrun's error files.

A table never turns a failure into a success or the other way round.
"""

import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Mapping, Sequence

from exact_resume.errors import InputError
from exact_resume.text import quote

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
"""Variable with the path of the file into which torchrun and `torch.distributed.elastic`'s `@record` write errors."""
_LOST_PEER = re.compile(
    r"connection (closed|reset|refused|aborted) by (remote )?peer|remote process exited|socket timeout|broken pipe"
    r"|Dist(Network|Store)Error|Rendezvous(Connection|Closed|Timeout)Error|collective operation timeout",
    re.IGNORECASE,
)
"""What torch, gloo and NCCL write when a peer is lost."""
_MAX_ERROR_BYTES = 2**20
_ENTRY = re.compile(r"(\d{1,3})=(\d{1,3})(:lost-peer)?")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Translation:
    """The exit code that takes the place of the command's."""

    to: int
    needs_lost_peer: bool = False
    """Whether it only applies if the error file says that a peer was lost."""


def parse(entries: Sequence[str]) -> dict[int, Translation]:
    """Return the table of entries such as `1=134:lost-peer`.

    Raises:
        InputError: One has another form, appears twice, or would hide a success or a failure.
    """
    table: dict[int, Translation] = {}
    for text in entries:
        found = _ENTRY.fullmatch(text)
        code, to = (int(found[1]), int(found[2])) if found else (-1, -1)
        if not found or max(code, to) > 255 or code in table:
            raise InputError(
                f"--exit-code={quote(text)} is not valid; expected one CODE=CODE per code, from 0 to 255, such as"
                " 3=134 or 1=134:lost-peer"
            )
        if (code == 0) != (to == 0):
            hidden = "failure" if code else "success"
            raise InputError(f"--exit-code={text} would hide a {hidden}; 0 can only become 0, and no other code can")
        table[code] = Translation(to=to, needs_lost_peer=bool(found[3]))
    return table


def translate(code: int, table: Mapping[int, Translation], *, stop_signal: int, error: str) -> tuple[int, str]:
    """Return the exit code for a command's code, and the reason; the reason is empty if they are the same.

    Args:
        code: Of the command, -N after signal N.
        table: Entries of the user; one for 128 + N is for signal N.
        stop_signal: Number of the signal that the command was sent while it ran; 0: none.
        error: Text of its error file.
    """
    own, reason = (code, "") if code >= 0 else (128 - code, f"signal {-code} ended it")
    if (found := table.get(own)) and not found.needs_lost_peer:
        return found.to, "--exit-code" if found.to != code else ""
    if found and (match := _LOST_PEER.search(error)):
        return found.to, f"the error file says {quote(match[0])}"
    # Many programs exit with 0 after a signal, whether or not they were complete.
    if own == 0 and stop_signal:
        return 128 + stop_signal, "the command was stopped, so it may not be complete; if it is, give --exit-code=0=0"
    return own, reason


def read_error(path: pathlib.Path, *, since: float) -> str:
    """Return the message of an error file; empty if there is none, it is older, or not an error file.

    Args:
        path: Value of ERROR_FILE.
        since: Start of the command, in seconds since 1970-01-01 UTC.
    """
    try:
        with path.open("rb") as file:
            # A file system's times may be some milliseconds behind.
            if os.fstat(file.fileno()).st_mtime < since - 0.02:
                return ""
            found = json.loads(file.read(_MAX_ERROR_BYTES))["message"]
        # torch.distributed.elastic.multiprocessing.errors.ErrorHandler writes the former, its readers accept both.
        text = found["message"] if isinstance(found, dict) else found
        return text if isinstance(text, str) else ""
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
