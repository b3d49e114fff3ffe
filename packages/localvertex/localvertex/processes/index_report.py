"""Lists what pip takes from an index, with versions, as soon as pip has chosen it and before pip installs it.

pip writes a report of the one resolution that it makes (`--report`, since pip 22.2), here into a pipe.
"""

import json
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.temporary import temporary_folder

_CHUNK_BYTES = 65536
_END = "\0"

_NOT_LISTED = "installed packages without a list of their versions: pip of this Python is older than 22.2"


@contextmanager
def listed(report: WriteLine) -> Iterator[dict[str, str]]:
    """Yield variables with which the calls of pip in a command are listed, each in one line.

    Args:
        report: Receives the line.
    """
    lines = list[str]()

    def add(line: str) -> None:
        lines.append(line)
        if line:
            # pip would wait for ever for a reader that a closed terminal has ended.
            with suppress(OSError):
                report(line)

    with temporary_folder() as folder:
        pipe = Path(folder) / "report"
        os.mkfifo(pipe)
        # Also open for writing, so that the end of one call of pip is not the end of the pipe.
        end = os.open(pipe, os.O_RDWR)
        reader = threading.Thread(target=_read, args=(end, add), name="index report", daemon=True)
        reader.start()
        try:
            yield {"PIP_REPORT": str(pipe)}
        finally:
            os.write(end, _END.encode())
            reader.join()
            os.close(end)
    if not lines:
        report(_NOT_LISTED)


def _read(end: int, add: WriteLine) -> None:
    """Add a line for each report of pip, until the end mark."""
    data, is_end = b"", False
    while not is_end:
        data += os.read(end, _CHUNK_BYTES)
        # The mark may come with the last report.
        is_end, data = data.endswith(_END.encode()), data.removesuffix(_END.encode())
        # Also a part of a report may end with a brace.
        while data.endswith(b"}"):
            text = data.decode()
            try:
                content, length = json.JSONDecoder().raw_decode(text)
            except ValueError:
                break
            add(_line(content))
            data = text[length:].encode()


def _line(content: dict[str, Any]) -> str:
    """Return what a report lists by its host; empty if all of it is from files that the command names."""
    hosts = defaultdict(list)
    for each in content.get("install", ()):
        # An address may contain a password.
        address = urlsplit(each["download_info"]["url"])
        host = f"{address.hostname}:{address.port}" if address.port else address.hostname
        if host or not each["is_direct"]:
            hosts[host or "a folder"].append(f"{each['metadata']['name']} {each['metadata']['version']}")
    return "; ".join(f"installing from {host}: {', '.join(sorted(names))}" for host, names in hosts.items())
