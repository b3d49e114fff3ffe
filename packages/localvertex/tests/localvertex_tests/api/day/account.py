"""Compare the expected events of the day with the state at its end."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from localvertex.store import record

MARGIN = timedelta(seconds=15)
"""A run that was killed ends up to 10 s later."""


@dataclass(kw_only=True)
class Account:
    """The instants of each schedule, those that a killed server may have missed, and when something was wrong."""

    work_dir: Path
    ledger: Path
    numbers: list[str] = field(default_factory=list)
    planned: dict[str, set[datetime]] = field(default_factory=dict)
    queues: set[str] = field(default_factory=set)
    may_miss: dict[str, set[datetime]] = field(default_factory=dict)
    troubles: list[tuple[str, datetime, datetime]] = field(default_factory=list)

    def expect(self, number: str, instants: list[datetime], *, queues: bool) -> None:
        """Note a schedule."""
        self.numbers.append(number)
        self.planned[number], self.may_miss[number] = set(instants), set()
        self.queues |= {number} if queues else set()

    @contextmanager
    def trouble(self, kind: str) -> Iterator[None]:
        """Note when something is wrong."""
        began = datetime.now(UTC)
        try:
            yield
        finally:
            self.troubles.append((kind, began, datetime.now(UTC)))

    def note_kill(self, *, slack: timedelta) -> None:
        """Note the instants that the next server may skip: those before the time from which its clock continues."""
        schedules = {number: self._stored(number) for number in self.numbers}
        now = max(datetime.fromisoformat(each["updateTime"]) for each in schedules.values())
        for number in set(self.numbers) - self.queues:
            missed = datetime.fromisoformat(schedules[number].get("nextRunTime", "9999-01-01T00:00:00Z"))
            if missed <= now + slack:
                self.may_miss[number].add(missed)

    def _stored(self, number: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.work_dir / "api" / "schedules" / f"{number}.json").read_text())
        return content

    @property
    def runs(self) -> list[Path]:
        """The folders of all scheduled runs."""
        return [path.parent for path in self.work_dir.glob("day-*/run.json")]

    @property
    def num_runs(self) -> int:
        """The number of scheduled runs so far."""
        return len(self.runs)

    def active(self) -> list[Path]:
        """Return the runs that have not ended."""
        return [each for each in self.runs if record.is_running(each)]

    def instants(self, number: str) -> list[datetime]:
        """Return the instants of a schedule's runs, from the names of their folders."""
        stamps = [each.name.split("-")[1] for each in self.runs if each.name.endswith(number[-6:])]
        return sorted(datetime.strptime(each, "%Y%m%d%H%M%S").replace(tzinfo=UTC) for each in stamps)

    def settle(self, counts: dict[str, int], jobs: set[str], log: str) -> dict[str, Any]:
        """Compare everything; each list of wrong things is empty on a good day.

        Args:
            counts: `startedRunCount` of each schedule.
            jobs: The ids of the listed pipeline jobs.
            log: Output of the servers.
        """
        found = {number: self.instants(number) for number in self.numbers}
        missing = {number: self.planned[number] - set(found[number]) for number in self.numbers}
        lines = Counter(line.strip() for line in self.ledger.read_text().splitlines())
        states = {each.name: record.read(each) for each in self.runs}
        succeeded = {name for name, content in states.items() if content["state"] == "SUCCEEDED"}
        wrong = {
            "lost": [(n, str(t)) for n in self.numbers for t in missing[n] - self.may_miss[n]],
            "not planned": [(n, str(t)) for n in self.numbers for t in set(found[n]) - self.planned[n]],
            "wrong counts": [(n, counts[n], len(found[n])) for n in self.numbers if counts[n] != len(found[n])],
            "doubled": [name for name, number in lines.items() if number > 1],
            "succeeded but never ran": sorted(succeeded - set(lines)),
            "ran unrecorded": sorted(set(lines) - set(states)),
            "not listed": sorted(set(states) - jobs),
            "failed without a reason": [n for n, c in states.items() if n not in succeeded and not self._had_reason(c)],
            "left": [str(path) for path in self._left()],
            "defects": [line for line in log.splitlines() if "internal error" in line or "Traceback" in line],
        }
        kinds = Counter(kind for kind, _, _ in self.troubles)
        num_skipped = sum(len(each) for each in missing.values())
        figures = {"runs": len(states), "succeeded": len(succeeded), "skipped by kills": num_skipped}
        return {"troubles": dict(kinds)} | figures | {"wrong": {name: what for name, what in wrong.items() if what}}

    def _had_reason(self, content: dict[str, Any]) -> bool:
        """Return whether something was wrong while a run was running."""
        began = datetime.fromisoformat(content["create_time"])
        ended = datetime.fromisoformat(content["end_time"] or content["create_time"])
        return any(start - MARGIN <= ended and began <= end + MARGIN for _, start, end in self.troubles)

    def _left(self) -> list[Path]:
        """Return files that a killed writer left."""
        time.sleep(0.1)
        private = [*(self.work_dir / record.PRIVATE).glob(".*.partial")]
        return [*private, *self.work_dir.glob("api/*/*.tmp"), *self.work_dir.glob("api/*/.*")]
