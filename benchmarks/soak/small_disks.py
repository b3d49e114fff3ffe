"""Disks that can be filled: a proof mounts them in a namespace of its own."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

_MOUNT = ("mount", "-t", "tmpfs", "-o", "size=64m", "none")
_IN_NAMESPACE = "SOAK_CAN_MOUNT"
"""Variable of a process that may mount."""


def enter_namespace(proof: str) -> bool:
    """Start this program again where it may mount small disks; return whether it may."""
    if _IN_NAMESPACE in os.environ:
        return True
    tried = ("unshare", "-rm", "sh", "-c", f"{' '.join(_MOUNT)} /mnt")
    if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True).returncode:
        return False
    words = ("unshare", "-rm", sys.executable, "-m", f"benchmarks.soak.{proof}", *sys.argv[1:])
    os.execvpe("unshare", words, {**os.environ, _IN_NAMESPACE: "1"})


def mount(folder: Path) -> None:
    """Make a folder a disk of 64 MiB."""
    subprocess.run([*_MOUNT, str(folder)], check=True)


def unmount(folder: Path) -> None:
    """Remove the disk of a folder with all files on it."""
    subprocess.run(["umount", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write a file until its disk is full."""
    with path.open("wb", buffering=0) as file:
        for size in (2**20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
