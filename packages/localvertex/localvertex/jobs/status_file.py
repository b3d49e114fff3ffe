"""The status of a running custom job as a file of its folder, for jobs that no record of a run contains."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from localvertex.jobs.status import JobStatus
from localvertex_base.userinput import atomic_write
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.reading import read_bytes

_FILE = "status.json"


class StatusFile:
    """Writes the status of one job whenever more than its training changes, which its event log has anyway."""

    def __init__(self, folder: Path, without_secrets: Callable[[Any], Any]) -> None:
        self._path, self._without_secrets = folder / _FILE, without_secrets
        self._written: object = None

    def write(self, status: JobStatus) -> None:
        """Note the present status; a full disk does not end the job."""
        processes = [(each.is_running, each.num_starts, each.exit_code) for each in status.replicas]
        key = status.state, processes, len(status.marks), status.stalled, bool(status.goodput)
        if key != self._written:
            with suppress(OSError):
                atomic_write.write_text(self._path, json.dumps(self._without_secrets(status.as_json())))
                self._written = key


def read(folder: Path) -> dict[str, Any]:
    """Return the last status of a job; empty when there is none that can be read."""
    try:
        content = json.loads(read_bytes(folder / _FILE))
    except (UserError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
