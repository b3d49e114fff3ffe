"""What a confined command leaves for programs outside: links out of its folder and special files are removed.

`localvertex` reads and writes in the folder of a step after its command has ended: logs, outputs, further attempts.
It would follow a link that the command itself could not follow, and would block on a pipe.
"""

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from localvertex.containers.call import Call, inside
from localvertex.containers.sandbox import is_of_system
from localvertex.errors import TaskFailed

_MAX_OUTPUT_BYTES = 2**26


def check(call: Call, output_file: Path | None = None) -> None:
    """Remove links that lead out of what a command may see, and files that are neither files nor folders.

    Args:
        call: The command, which has ended.
        output_file: The executor output that it may have written.

    Raises:
        TaskFailed: The command left one, or the output names a path that the command may not see.
    """
    visible = (call.folder, call.temporary, *call.readable, *call.writable)
    found = [path for folder in (call.folder, *call.writable) for path in _ways_out(folder, visible)]
    for path in found:
        path.unlink(missing_ok=True)
    if found:
        raise TaskFailed(
            f"the command left {found[0]}, which is a special file or a link out of its folder; it was removed",
            is_retryable=False,
        )
    for custom in _custom_paths(output_file) if output_file else ():
        if not _is_visible(call.folder / custom, visible):
            raise TaskFailed(
                f"the command named {custom} as an artifact, but it may not see this path", is_retryable=False
            )


def _ways_out(folder: Path, visible: Iterable[Path]) -> list[Path]:
    found = []
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            is_link_out = stat.S_ISLNK(mode) and not _is_visible(path, visible)
            if is_link_out or not (stat.S_ISLNK(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                found.append(path)
    return found


def _is_visible(path: Path, visible: Iterable[Path]) -> bool:
    return inside(path, visible) or is_of_system(path)


def _custom_paths(output_file: Path) -> list[str]:
    """Return the artifact paths in an executor output; an invalid output is reported by its reader."""
    try:
        if output_file.stat().st_size > _MAX_OUTPUT_BYTES:
            raise TaskFailed(f"{output_file.name} is larger than {_MAX_OUTPUT_BYTES} bytes", is_retryable=False)
        groups = json.loads(output_file.read_text()).get("artifacts", {}).values()
        return [str(each["custom_path"]) for group in groups for each in group["artifacts"] if each.get("custom_path")]
    except (OSError, ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return []
