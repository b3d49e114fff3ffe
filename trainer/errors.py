"""The two kinds of failure that are told in one line: the user's input is wrong, or the run went wrong."""

from __future__ import annotations

import errno

_UNUSABLE_PATH = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL,
    errno.ENXIO,
}  # fmt: skip
"""The user named a place that is not there or not theirs; a full disk or a lost mount is another matter."""


class TrainingError(RuntimeError):
    """The input was fine and the run still failed, such as a loss that is not finite."""


def told(error: OSError) -> tuple[int, str] | None:
    """Exit code and line of an error of a path; None where only the traceback tells what happened."""
    if error.errno in _UNUSABLE_PATH and error.filename:
        return 2, f"error: {error.filename}: {error.strerror}; give a path that can be used"
    if "://" in str(error.filename):
        return 1, f"failed: {error.filename}: {error.strerror}"
    return None
