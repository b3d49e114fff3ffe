"""Faults as users write them: what goes wrong in a job, and when (docs/faults.md)."""

import re
from dataclasses import dataclass
from enum import StrEnum

from localvertex._base.userinput.errors import UserError
from localvertex.errors import TaskFailed
from localvertex.jobs.faults import shortages
from localvertex.jobs.faults.shortages import Shortage
from localvertex.jobs.job import CustomJob
from localvertex.values import facts


class Action(StrEnum):
    """A kind of fault."""

    SIGKILL = "SIGKILL"
    SIGTERM = "SIGTERM"
    SIGSTOP = "SIGSTOP"
    """The process freezes: it neither continues nor ends."""
    PREEMPT = "preempt"
    """The machine is preempted, as Spot machines are."""
    MAINTENANCE = "maintenance notice"
    """The machine announces its maintenance, and is lost when that begins."""


DEFAULT_GRACE_SECONDS = {
    Action.SIGTERM: facts.number("grace.stop"),
    Action.PREEMPT: facts.number("grace.preemption"),
    Action.MAINTENANCE: facts.number("grace.maintenance"),
}
"""Compute Engine gives 30 seconds before a Spot machine is preempted, and 60 before maintenance (GPU machines: 1 h)."""

_GRAMMAR = (
    "ACTION REPLICA WHEN [grace 30s]; ACTION is SIGKILL, SIGTERM, SIGSTOP, preempt or maintenance notice; REPLICA is "
    "like workerpool1-0, or all; WHEN is at step 30, at 50%, at 20s or every 45s"
)

_NUMBER = r"(\d{1,9}(?:\.\d{1,3})?)"
_FAULT = re.compile(
    rf"(?P<action>{'|'.join(Action)})\s+(?P<target>all|workerpool[0-3]-\d{{1,4}})\s+"
    rf"(?:at\s+step\s+(?P<step>\d{{1,12}})|at\s+{_NUMBER.replace('(', '(?P<percent>', 1)}\s*%"
    rf"|at\s+{_NUMBER.replace('(', '(?P<seconds>', 1)}\s*s|every\s+{_NUMBER.replace('(', '(?P<every>', 1)}\s*s)"
    rf"(?:\s+grace\s+{_NUMBER.replace('(', '(?P<grace>', 1)}\s*s)?",
    re.IGNORECASE,
)

ALL = "all"

NOT_SPOT = "the job does not have strategy SPOT; on Vertex its machines would not be preempted"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault; exactly one of the four times is set."""

    action: Action
    target: str
    """A replica's name, or `all`."""
    at_step: int | None = None
    """Once, when the replica has trained this step."""
    at_percent: float | None = None
    """Once, when the replica has trained this percentage of its steps."""
    at_seconds: float | None = None
    """Once, this long after the start of the job."""
    every_seconds: float | None = None
    grace_seconds: float = 0.0
    """Time from the signal or the notice to SIGKILL."""

    def __post_init__(self) -> None:
        """Refuse combinations that make no sense."""
        times = (self.at_step, self.at_percent, self.at_seconds, self.every_seconds)
        if sum(time is not None for time in times) != 1:
            raise UserError(f"{self}: expected exactly one of step, percentage, seconds and interval")
        if self.every_seconds is not None and self.every_seconds < 1:
            raise UserError(f"{self}: expected an interval of at least one second")
        if self.at_percent is not None and self.at_percent > 100:
            raise UserError(f"{self}: expected at most 100%")
        if self.grace_seconds and self.action not in DEFAULT_GRACE_SECONDS:
            raise UserError(f"{self}: {self.action} has no grace time; leave it out")

    @property
    def needs_steps(self) -> bool:
        """Whether the replica has to write an event log (docs/events.md)."""
        return self.at_step is not None or self.at_percent is not None

    def __str__(self) -> str:
        """Format it as on the command line."""
        if self.at_step is not None:
            when = f"at step {self.at_step}"
        elif self.at_percent is not None:
            when = f"at {self.at_percent:g}%"
        elif self.at_seconds is not None:
            when = f"at {self.at_seconds:g}s"
        else:
            when = f"every {self.every_seconds or 0:g}s"
        grace = f" grace {self.grace_seconds:g}s" if self.action in DEFAULT_GRACE_SECONDS else ""
        return f"{self.action} {self.target} {when}{grace}"


def parse(text: str) -> Fault | Shortage:
    """Read a fault as written on the command line.

    Raises:
        UserError: It is not a fault; the message contains the grammar.
    """
    if shortage := shortages.parse(text):
        return shortage
    match = _FAULT.fullmatch(text.strip())
    if match is None:
        raise UserError(f"--fault {text!r}: expected {_GRAMMAR}; or {shortages.GRAMMAR}")
    action = next(each for each in Action if each.lower() == re.sub(r"\s+", " ", match["action"]).lower())
    grace = float(match["grace"]) if match["grace"] else DEFAULT_GRACE_SECONDS.get(action, 0.0)
    try:
        return Fault(
            action=action,
            target=match["target"].lower(),
            at_step=int(match["step"]) if match["step"] else None,
            at_percent=float(match["percent"]) if match["percent"] else None,
            at_seconds=float(match["seconds"]) if match["seconds"] else None,
            every_seconds=float(match["every"]) if match["every"] else None,
            grace_seconds=grace,
        )
    except UserError as error:
        raise UserError(f"--fault {error}") from None


def check_for(job: CustomJob, faults: tuple[Fault, ...]) -> None:
    """Refuse faults that cannot happen in this job.

    Raises:
        TaskFailed: The job has no such replica, or its steps cannot be read.
    """
    names = [replica.name for replica in job.replicas]
    for fault in faults:
        if fault.target not in (ALL, *names):
            raise TaskFailed(
                f"fault {fault}: the job has no {fault.target}; it has {', '.join(names)}", is_retryable=False
            )
        if fault.needs_steps and (not job.base_output_directory or "://" in job.base_output_directory):
            raise TaskFailed(
                f"fault {fault}: base_output_directory, whose event log has the steps, is "
                f"{job.base_output_directory or 'not set'}; set it to a local folder, or time the fault in seconds",
                is_retryable=False,
            )
