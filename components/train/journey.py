"""The journey of a training over several machines: a file in the run's folder, and what people see of it.

The file is written before each step that costs money or ends a job, so that a step that is killed and starts again
knows what it was about to do.
"""

import dataclasses
import pathlib
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.checkpoints import result_file
from exact_resume.events import log as event_log
from exact_resume.files import storage
from trainer.data.pages import page

FOLDER = "journey"
"""In the folder of the run, beside `checkpoints/`: a file per task, which its step alone writes."""

FINISHED, FAILED, CANCELLED = "finished", "failed", "cancelled"
PREEMPTED, OTHER_RUN, INTERRUPTED = "preempted", "other run", "interrupted"

TERMINATED = 128 + signal.SIGTERM
"""Exit code of a training that saves and ends after this signal (docs/events.md), and of the step."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Leg:
    """One job of a training: on one candidate, until it ends."""

    task: str
    """Id of the task whose step created it."""
    candidate: int
    """Place in the list of candidates; 0 is the first choice."""
    attempt: int
    """Counts the jobs of this candidate."""
    machines: str
    """The candidate in words."""
    region: str
    submitted: float
    """Times are in seconds since 1970; 0 if it has not happened."""
    job: str = ""
    """Resource name; empty until the service has answered."""
    started: float = 0.0
    ended: float = 0.0
    leaving: str = ""
    """Why the job is being cancelled, written before the request."""
    why: str = ""
    """Why it ended: `finished`, `failed`, `cancelled`, or why the training moved on; empty while it has not ended."""
    message: str = ""
    """The service's text."""
    first_step: int | None = None
    last_step: int | None = None
    """Steps that the event log has of it; None without a log."""

    @property
    def waited_seconds(self) -> float:
        """From the request to its first start, or to its end without one."""
        return max(0.0, (self.started or self.ended) - self.submitted)

    @property
    def trained_seconds(self) -> float:
        """From its first start to its end."""
        return max(0.0, self.ended - self.started) if self.started else 0.0

    @property
    def num_steps(self) -> int:
        """Steps that it trained."""
        return 0 if self.first_step is None or self.last_step is None else self.last_step - self.first_step + 1

    @property
    def summary(self) -> str:
        """Return e.g. `candidate 1 (1 x g2-standard-8 ...): stockout; waited 20 s, trained 0 s, no step`."""
        steps = f"steps {self.first_step} to {self.last_step}" if self.num_steps else "no step"
        took = f"waited {self.waited_seconds:.0f} s, trained {self.trained_seconds:.0f} s, {steps}"
        return f"candidate {self.candidate} ({self.machines}): {self.why}; {took}"

    def __str__(self) -> str:
        """Return the summary with the service's text."""
        return f"{self.summary} ({self.message})" if self.message else self.summary


class Journey:
    """The legs of a run, of all tasks that trained it.

    Args:
        base_output_directory: Folder of the run, local or gs://.
        task: The task whose legs this process writes.
    """

    def __init__(self, base_output_directory: str, task: str) -> None:
        folder = storage.join(base_output_directory, FOLDER)
        self._path = storage.join(folder, f"{task}.json")
        self._checkpoints = storage.join(base_output_directory, "checkpoints/")
        legs = [leg for name in storage.names(folder) for leg in _legs(storage.read_json(storage.join(folder, name)))]
        self.own = [leg for leg in legs if leg.task == task]
        """The legs of this task."""
        self._others = [leg for leg in legs if leg.task != task]

    @property
    def legs(self) -> list[Leg]:
        """The legs of all tasks, the oldest first."""
        return sorted([*self._others, *self.own], key=lambda leg: leg.submitted)

    def add(self, leg: Leg) -> Leg:
        """Write a new leg."""
        self.own.append(leg)
        self._write()
        return leg

    def change(self, leg: Leg, **fields: Any) -> Leg:
        """Write changes of a leg, and return it."""
        changed = dataclasses.replace(leg, **fields)
        self.own[self.own.index(leg)] = changed
        self._write()
        return changed

    def end(self, leg: Leg, *, why: str, ended: float, message: str = "") -> Leg:
        """Write how a leg ended, with the steps that it trained."""
        lines = [event for event in self.events(leg) if event["event"] == "steps"]
        first = min((int(event["first_step"]) for event in lines), default=None)
        last = max((int(event["last_step"]) for event in lines), default=None)
        return self.change(leg, why=why, ended=ended, message=message, first_step=first, last_step=last)

    def events(self, leg: Leg) -> list[dict[str, Any]]:
        """Return what the primary replica has logged since a leg was submitted."""
        events, _ = event_log.read_complete(self._checkpoints)
        return [each for each in events if each["replica"] == event_log.PRIMARY and each["time"] >= leg.submitted]

    def preemptions(self, leg: Leg) -> list[float]:
        """Return when the primary replica started again after a preemption, in seconds since 1970.

        It was announced, or the process was stopped by SIGTERM: a program that crashes does neither.
        """
        found, is_preempted = [], False
        for event in self.events(leg):
            if event["event"] == "start":
                found += [float(event["time"])] * is_preempted
                is_preempted = False
            is_preempted |= event.get("kind") == PREEMPTED or (event["event"], event.get("code")) == (
                "exit",
                TERMINATED,
            )
        return found

    def complete(self) -> None:
        """Add the journey to `result.json`, if the training wrote one in the format of exact_resume."""
        result_file.add(self._checkpoints, journey=[shown(leg) for leg in self.legs])

    def _write(self) -> None:
        storage.write_json(self._path, {"legs": [dataclasses.asdict(leg) for leg in self.own]})


def shown(leg: Leg) -> dict[str, Any]:
    """Return the fields of a leg that a reader of `result.json` needs."""
    return {
        "candidate": leg.candidate,
        "machines": leg.machines,
        "job": leg.job,
        "waited_seconds": round(leg.waited_seconds, 3),
        "trained_seconds": round(leg.trained_seconds, 3),
        "first_step": leg.first_step,
        "last_step": leg.last_step,
        "why": leg.why,
        "message": leg.message,
    }


def write_page(path: str, run_id: str, legs: Sequence[Leg]) -> None:
    """Write the page of a journey."""
    columns = ["candidate", "machines", "waited", "trained", "steps", "why it ended", "the service's text"]
    rows = [
        [
            str(leg.candidate),
            leg.machines,
            f"{leg.waited_seconds:.0f} s",
            f"{leg.trained_seconds:.0f} s",
            f"{leg.first_step} to {leg.last_step}" if leg.num_steps else "-",
            leg.why or "running",
            leg.message,
        ]
        for leg in legs
    ]
    states = ["good" if leg.why == FINISHED else "bad" if leg.why in (FAILED, CANCELLED) else "warn" for leg in legs]
    table = page.Table(title="Machines", columns=columns, rows=rows, states=states)
    content = page.render(title="Journey of the training", subtitle=f"Run {run_id}.", blocks=[table])
    pathlib.Path(path).write_text(content, encoding="utf-8")


def _legs(content: Any) -> list[Leg]:
    """Return the legs of a file; none of a damaged one, whose jobs their labels still find."""
    entries = content.get("legs") if isinstance(content, Mapping) else None
    names = {field.name for field in dataclasses.fields(Leg)}
    required = {field.name for field in dataclasses.fields(Leg) if field.default is dataclasses.MISSING}
    return [
        Leg(**entry)
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and required <= entry.keys() <= names
    ]
