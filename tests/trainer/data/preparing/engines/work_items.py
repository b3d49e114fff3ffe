"""Functions that workers call in the tests of engines."""

import os
import signal
import time
from pathlib import Path

from vertex_gpu_training.userinput.errors import UserError


def square(number: int) -> int:
    return number * number


def once(folder: Path, name: str) -> bool:
    """Return whether this is the first call with a name, of all processes."""
    try:
        (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def trouble(item: tuple[Path, int]) -> int:
    """Return the square; the first call for some numbers fails, kills its process, or takes long."""
    folder, number = item
    if number == 2 and once(folder, "raised"):
        raise OSError("503 from the bucket")
    if number == 5 and once(folder, "killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 6 and once(folder, "slow"):
        time.sleep(0.5)
    return square(number)


def always_mistaken(number: int) -> int:
    raise UserError(f"number {number} is not usable; give another one")


def never_allowed(number: int) -> int:
    raise PermissionError(13, "Permission denied", f"gs://bucket/{number}")


def defect(number: int) -> int:
    return [0][number + 1]


def killed(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number
