"""The time zone of this machine, by its name."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_LINK, _FOLDER = Path("/etc/localtime"), "zoneinfo/"


def local() -> str:
    """Return the name in the variable TZ, else that of the system's setting, else UTC."""
    linked = str(_LINK.resolve()).rpartition(_FOLDER)[2]
    for name in (os.environ.get("TZ", "").lstrip(":"), linked):
        try:
            return ZoneInfo(name).key
        except (ZoneInfoNotFoundError, ValueError, OSError):
            continue
    return "UTC"
