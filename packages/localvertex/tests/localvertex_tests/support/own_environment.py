"""The environment of the user, which nothing that runs may change."""

import hashlib
import os
import sys
from pathlib import Path


def users_environment() -> str:
    """Return a hash over all packages and programs that this interpreter and the user's shell see."""
    folders = {Path(path) for path in sys.path if path.endswith("-packages")}
    folders |= {Path(sys.prefix) / "bin", Path(sys.base_prefix) / "lib" / "python3.11" / "site-packages"}
    folders |= {Path(os.path.expanduser("~/.local/lib")), Path(os.path.expanduser("~/.config/pip"))}
    known = hashlib.sha256()
    for folder, _, names in (each for start in sorted(folders) for each in os.walk(start)):
        is_metadata = folder.endswith((".dist-info", ".egg-info"))
        for name in sorted(names if "__pycache__" not in folder else []):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            known.update(f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ino}\n".encode())
            known.update(Path(path).read_bytes() if is_metadata else b"")
    return known.hexdigest()
