"""Faults that a user asks for while a job runs: lines in a file of the job's folder, which the job's loop reads.

The file works for every job, including one that a terminal runs. A line names the job that it is for, so that neither a
later attempt nor another job acts on it.
"""

import errno
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.regular_files import open_regular
from localvertex.jobs.faults.faults import DEFAULT_GRACE_SECONDS, NOT_SPOT, Action, Fault
from localvertex.jobs.job import CustomJob

FILE = "fault-requests.jsonl"

_MAX_GRACE_SECONDS = 3600.0

_MAX_BYTES = 64 << 10
"""Read at a time. The replicas of the job can write into its folder, whatever they like."""

_MAX_WARNINGS = 5


class FaultRefused(UserError):
    """A request that cannot be met; `is_wrong`: it never could be."""

    def __init__(self, text: str, *, is_wrong: bool = False) -> None:
        super().__init__(text)
        self.is_wrong = is_wrong


def _fault(content: Mapping[str, Any], seconds: float = 0.0) -> Fault:
    """Return the fault that a request asks for, which happens this long after the start of the job.

    Raises:
        FaultRefused: It is not a request.
    """
    unknown = content.keys() - {"replica", "action", "grace_seconds"}
    if unknown:
        raise FaultRefused(f"{min(map(str, unknown))}: expected replica, action and grace_seconds only", is_wrong=True)
    name, replica, grace = (content.get(each) for each in ("action", "replica", "grace_seconds"))
    if not isinstance(replica, str) or not replica:
        raise FaultRefused("replica is missing; name one, like workerpool1-0", is_wrong=True)
    action = next((each for each in Action if each == name), None)
    if action is None:
        raise FaultRefused(f"action {name!r}: expected {', '.join(Action)}", is_wrong=True)
    grace = DEFAULT_GRACE_SECONDS.get(action, 0.0) if grace is None else grace
    if isinstance(grace, bool) or not isinstance(grace, int | float) or not 0 <= grace <= _MAX_GRACE_SECONDS:
        raise FaultRefused(f"grace_seconds {grace!r}: expected 0 to {_MAX_GRACE_SECONDS:g}", is_wrong=True)
    try:
        return Fault(action=action, target=replica, at_seconds=round(seconds, 1), grace_seconds=float(grace))
    except UserError as error:
        raise FaultRefused(str(error), is_wrong=True) from None


def write(folder: Path, status: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Ask a running job for a fault.

    Args:
        folder: The folder of the job.
        status: Its status, as in the record of its run.
        content: The request: replica, action, grace_seconds.

    Raises:
        FaultRefused: The job has no such replica, or it is not running.
        OSError: The request cannot be written.
    """
    replicas = {each["name"]: each for each in status.get("replicas", [])}
    target = _fault(content).target
    if target not in replicas:
        names = ", ".join(replicas) or "no replica yet"
        raise FaultRefused(f"the job has no {target[:100]}; it has {names}", is_wrong=True)
    if not replicas[target]["is_running"]:
        raise FaultRefused(f"{target} has no running process at the moment")
    # The replicas of a trial are in its own folder.
    trial, _, own_name = target.rpartition("/")
    job_id = replicas[target].get("job_id")
    place = (folder / trial).resolve()
    # Replicas of a job of the API can write its status.
    if not job_id or place != folder.resolve() / trial or not place.is_relative_to(folder.resolve()):
        raise FaultRefused(f"{target} was not started by this version of localvertex")
    _append(folder / trial / FILE, json.dumps({"job": job_id, **content, "replica": own_name}).encode())


def _append(path: Path, line: bytes) -> None:
    """Append a line in one piece, on a line of its own: a killed writer may have left half a line.

    Raises:
        OSError: It cannot be written, or the path is not a regular file.
    """
    # Replicas may put a link or a pipe in its place.
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "the file of requests is not a regular file", str(path))
        data = b"\n" + line + b"\n"
        if os.write(file, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    finally:
        os.close(file)


class Requests:
    """The requests to one job, as its loop reads them.

    Args:
        job: The job.
        folder: Its folder.
        job_id: The id that its status has; requests to other jobs, such as an earlier attempt, are skipped.
        warn: Called with what is wrong in the file.
    """

    def __init__(self, job: CustomJob, folder: Path, job_id: str, warn: WriteLine) -> None:
        self._names, self._is_spot = {each.name for each in job.replicas}, job.scheduling.is_spot
        self._path, self._job_id, self._warn = folder / FILE, job_id, warn
        self._offset, self._num_warnings = 0, 0

    def new(self, seconds: float) -> list[Fault]:
        """Return the faults that were requested since the last call; `seconds` is the time since the start."""
        found = []
        for line in self._lines():
            try:
                content = json.loads(line)
                job_id = content.pop("job")
                fault = _fault(content, seconds)
            except (ValueError, AttributeError, KeyError, TypeError, RecursionError, FaultRefused):
                self._ignore(line)
                continue
            if job_id == self._job_id and fault.target in self._names:
                found.append(fault)
                if fault.action is Action.PREEMPT and not self._is_spot:
                    self._warn(NOT_SPOT)
        return found

    def _lines(self) -> list[bytes]:
        """Read the complete lines that are new."""
        try:
            if self._path.lstat().st_size <= self._offset:
                return []
            with open_regular(self._path) as file:
                file.seek(self._offset)
                data = file.read(_MAX_BYTES)
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        if not end and len(data) == _MAX_BYTES:
            # No request is as long as that.
            self._offset += len(data)
            return [data]
        self._offset += end
        return [line for line in data[:end].splitlines() if line.strip()]

    def _ignore(self, line: bytes) -> None:
        """Warn about a line that is not a request; not about each of very many."""
        self._num_warnings += 1
        if self._num_warnings <= _MAX_WARNINGS:
            self._warn(f"{FILE}: ignored {line[:80]!r}, which is not a request (docs/faults.md)")
