"""A profile of a few steps, on request, for TensorBoard's profile page. Imports TensorFlow only to profile."""

import contextlib
import dataclasses
import os
import pathlib
import re
import tempfile
from collections.abc import Callable

from exact_resume.events.observers import Observer
from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError

_MAX_STEPS = 100
"""Longest profile, which bounds its size."""
_FOLDER = "plugins/profile"
"""Where TensorBoard looks for profiles in the folder of a run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProfileSteps:
    """The steps to profile, counted from 1; both 0: none."""

    first: int = 0
    last: int = 0

    def next_boundary(self, step: int, num_steps: int) -> int:
        """Return the number of steps of a call that begins after `step`, so that no call crosses a boundary."""
        return min([num_steps, *(edge - step for edge in (self.first - 1, self.last) if edge > step)])


def parse(text: str) -> ProfileSteps:
    """Return the steps of a text like `100-109`; none for an empty text.

    Raises:
        UserError: The text is something else, or the range is empty, too long or begins with the first step.
    """
    if not text:
        return ProfileSteps()
    if not (match := re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", text)):
        raise UserError(f"profile_steps is {text!r}; expected the first and the last step, e.g. 100-109")
    first, last = int(match[1]), int(match[2])
    # The first step is traced and compiled, which no later one is.
    if not 2 <= first <= last < first + _MAX_STEPS:
        raise UserError(f"profile_steps is {text!r}; expected 1 to {_MAX_STEPS} steps that begin with step 2 or later")
    return ProfileSteps(first=first, last=last)


class Profiler:
    """Records some steps of this process; a failure costs the profile and not the run."""

    def __init__(
        self,
        steps: ProfileSteps,
        directory: str,
        *,
        submit: Callable[[Callable[[], None]], None] = lambda write: write(),
        log_event: Observer = lambda event, **fields: None,
    ) -> None:
        """Wait for the first of the steps.

        Args:
            steps: The steps, the same on all workers.
            directory: Folder of TensorBoard's run; empty: only the calls are cut, because another worker profiles.
            submit: Calls a function that writes files, without letting the training wait.
            log_event: Receives a notice.
        """
        self._steps, self._directory, self._submit, self._log_event = steps, directory, submit, log_event
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._is_due, self._first, self._reached = bool(directory), steps.first, 0

    def begin(self, step: int, num_steps: int) -> int:
        """Prepare for a call that follows `step`; return how many of its steps it may take."""
        # A run that was stopped between two of the steps resumes there.
        if self._is_due and self._steps.first - 1 <= step < self._steps.last:
            self._is_due, self._first = False, step + 1
            self._guard(self._start)
        return self._steps.next_boundary(step, num_steps)

    def end(self, step: int) -> None:
        """Note that a call has ended with `step`."""
        self._reached = step
        if self._scratch and step >= self._steps.last:
            self._guard(self._finish)

    def close(self) -> None:
        """Discard an unfinished profile; a stop request, an early end or a short run leaves one."""
        if self._scratch or (self._is_due and 0 < self._reached < self._steps.first):
            self._discard()
            self._report(f"(training ended at step {self._reached})")

    def _discard(self) -> None:
        from tensorflow import profiler

        with contextlib.suppress(Exception):  # it has been reported, or nothing depends on it
            profiler.experimental.stop(save=False)
        if self._scratch:
            self._scratch.cleanup()
            self._scratch = None

    def _report(self, reason: str) -> None:
        steps = f"steps {self._steps.first} to {self._steps.last}"
        self._log_event("notice", message=f"{steps} are not profiled {reason}")

    def _start(self) -> None:
        from tensorflow import profiler

        if storage.names(storage.join(self._directory, _FOLDER)):
            # An earlier attempt has written it.
            return
        scratch = tempfile.TemporaryDirectory(prefix="profile-")
        profiler.experimental.start(scratch.name)
        self._scratch = scratch

    def _finish(self) -> None:
        from tensorflow import profiler

        profiler.experimental.stop()
        scratch, self._scratch = self._scratch, None
        self._log_event("notice", message=f"steps {self._first} to {self._steps.last} were profiled")
        if scratch:
            self._submit(lambda: self._publish(scratch))

    def _publish(self, scratch: "tempfile.TemporaryDirectory[str]") -> None:
        with scratch as folder:
            root = pathlib.Path(folder)
            for path in sorted(root.rglob("*")):
                if path.is_file() and _FOLDER in path.as_posix():
                    relative = os.path.relpath(path, root)
                    storage.write_bytes(storage.join(self._directory, relative), path.read_bytes())

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # the run continues after any failure of the profiler
            self._report(f"({' '.join(str(error).split())[:200]}); training continues")
            self._discard()


NOTHING = Profiler(ProfileSteps(), "")
"""Profiles no steps."""
