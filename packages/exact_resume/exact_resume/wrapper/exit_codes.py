"""Translate the exit code of a command by the user's table, with the help of torchrun's error files.

A table never turns a failure into a success or the other way round.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from exact_resume.errors import InputError
from exact_resume.files import storage
from exact_resume.text import quote

ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
"""Variable with the path of the file into which torchrun and `torch.distributed.elastic`'s `@record` write errors."""
_LOST_PEER = re.compile(
    r"connection (closed|reset|refused|aborted) by (remote )?peer|remote process exited|socket timeout|broken pipe"
    r"|Dist(Network|Store)Error|Rendezvous(Connection|Closed|Timeout)Error|collective operation timeout",
    re.IGNORECASE,
)
"""Messages of torch, gloo and NCCL about a lost peer."""
_ENTRY = re.compile(r"(\d{1,3})=(\d{1,3})(:lost-peer)?")
Table = Mapping[int, re.Match[str]]
"""Code of the command -> its entry."""


def parse(entries: Sequence[str]) -> Table:
    """Return the table of entries such as `1=134:lost-peer`.

    Raises:
        InputError: One has another form, appears twice, or would hide a success or a failure.
    """
    table: dict[int, re.Match[str]] = {}
    for text in entries:
        found = _ENTRY.fullmatch(text)
        if not found or not all(0 < int(each) < 256 for each in found.group(1, 2)) or int(found[1]) in table:
            raise InputError(
                f"--exit-code={quote(text)} is not valid; expected one CODE=CODE per code, from 1 to 255, such as 3=134"
                " or 1=134:lost-peer; 0 stays 0 and no other code becomes 0, which would hide a failure"
            )
        table[int(found[1])] = found
    return table


def translate(code: int, table: Table, *, stop_signal: int, error_file: Path) -> tuple[int, str]:
    """Return the exit code for a command's code, and the reason; the reason is empty if they are the same.

    Args:
        code: Exit code of the command, 128 + N after signal N.
        table: Entries of the user.
        stop_signal: Number of the signal that the command was sent while it ran; 0: none.
        error_file: Where torchrun writes the error of the process that failed first; it need not exist.
    """
    # Many programs exit with 0 after a signal, whether or not they were complete. torchrun exits with 1, as does a
    # program whose other processes were also ended by the signal.
    if stop_signal and code in (0, 1):
        return 128 + stop_signal, "it was stopped, so it may not be complete"
    error = _read_error(error_file)
    if (entry := table.get(code)) and not entry[3]:
        return int(entry[2]), f"--exit-code {entry[0]}"
    if entry and (match := _LOST_PEER.search(error)):
        return int(entry[2]), f"--exit-code {entry[0]}, and the error file says {quote(match[0])}"
    return code, ""


def _read_error(path: Path) -> str:
    """Return the message of an error file; empty without an error file, or if it is another kind of file."""
    found = storage.read_json(path)
    # torch.distributed.elastic writes {"message": {"message": TEXT, ...}}, and its readers accept {"message": TEXT}.
    while isinstance(found, dict):
        found = found.get("message")
    return found if isinstance(found, str) else ""
