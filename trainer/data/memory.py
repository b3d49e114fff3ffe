"""How much memory this process may still use."""

import psutil

from localvertex._base import linux


def available_bytes() -> int:
    """Return the memory that the machine has free or can reclaim, or less where a container's limit is nearer.

    Where the machine does not report its memory it is 0: data is then read from the disk, which is slower but works.

    Source: psutil's `virtual_memory().available`.
    """
    try:
        available = int(psutil.virtual_memory().available)
    except (OSError, RuntimeError):
        # Not the user's mistake: some sandboxes hide it.
        return 0
    return min(available, linux.container_bytes())
