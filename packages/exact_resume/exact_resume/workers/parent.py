"""Child processes that must not outlive their parent."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
"""From linux/prctl.h."""


def end_with(parent: int) -> None:
    """Let the kernel end this process with its parent, whose restart would find the GPUs taken.

    Args:
        parent: Its process id, from the parent itself, which may have ended before this call.
    """
    # Only Linux has the call.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the parent has ended")
