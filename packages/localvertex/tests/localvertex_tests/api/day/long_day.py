"""A day of schedules in less time: kills, full disks and damaged records, and then an account of every instant.

`python -m localvertex_tests.api.day.long_day --minutes 25` runs ten schedules of 48 instants each and prints figures.
On a file system of at most 1 GiB of its own (`--work-dir`), the disk is really filled.
"""

import argparse
import json
import os
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import requests
from localvertex_tests.api.day import damage
from localvertex_tests.api.day.account import Account
from localvertex_tests.api.day.meter import Meter
from localvertex_tests.api.day.pipeline import write_pipeline

from vertex_testing.server import PARENT, Server

EVERY = timedelta(minutes=30)
KILLS_END = 0.6
"""Share of the time after which one server remains, so that its memory can be compared."""
RESTART_SECONDS = 3.0
"""More than a server takes from the setting of its clock to its last skipped instant."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How long the day is, and what goes wrong in it.

    Attributes:
        minutes: Real time without restarts.
        hours: Time of the schedules.
        num_schedules: Every second one queues the runs that it missed.
        num_troubles: Kills, full disks and damaged records in total.
        seed: Seed of what goes wrong and when.
        work_dir: The work folder; its parent receives the server's output.
    """

    minutes: float
    hours: float
    num_schedules: int
    num_troubles: int
    seed: int
    work_dir: Path

    @property
    def factor(self) -> float:
        """How many times as fast the clock of the schedules is."""
        return self.hours * 60 / self.minutes

    @property
    def num_instants(self) -> int:
        """The instants of each schedule."""
        return int(timedelta(hours=self.hours) / EVERY)


@dataclass
class Day:
    """A running day."""

    plan: Plan
    server: Server = field(init=False)
    account: Account = field(init=False)
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        """Prepare the pipeline and the account."""
        self.random = random.Random(self.plan.seed)
        self.ledger = self.plan.work_dir.parent / "ledger"
        self.ledger.touch()
        self.account = Account(work_dir=self.plan.work_dir, ledger=self.ledger)
        self.spec = write_pipeline(self.plan.work_dir.parent / "day.json")

    def __enter__(self) -> Self:
        """Start the first server."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the last server."""
        self.server.end(signal.SIGKILL)

    def start(self) -> None:
        """Start a server at the port of the last one; the clock continues where the last change of a schedule was."""
        options = ["--time-factor", str(self.plan.factor), "--allow-host-commands"]
        # As a user would: to publish another address needs room, which a full disk does not have.
        options += ["--port", self.server.url.rpartition(":")[2]] if hasattr(self, "server") else []
        self.server = Server(self.plan.work_dir, *options)
        self.meter.watch(self.server.process.pid)

    def create(self, index: int) -> None:
        """Create a schedule: half of them at the same instants, the others spread over the half hour."""
        offset = timedelta(minutes=0 if index % 4 < 2 else 30 * index // self.plan.num_schedules)
        queues, count, is_late = index % 2 == 0, self.plan.num_instants, True
        # Its first instant may have passed before the server has the request.
        while is_late:
            first = self.start_time() + offset
            body = {"displayName": f"number {index}", "cron": _cron(first), **self.request()}
            body |= {"maxConcurrentRunCount": "100", "startTime": first.isoformat(), "allowQueueing": queues}
            end = first + EVERY * (count - 1) + timedelta(minutes=1)
            body |= {"maxRunCount": str(count)} if queues else {"endTime": end.isoformat()}
            made = self.call("POST", "schedules", body)
            number = made["name"].rpartition("/")[2]
            is_late = datetime.fromisoformat(made["nextRunTime"]) != first
            if is_late:
                self.call("DELETE", f"schedules/{number}")
        self.account.expect(number, [first + EVERY * each for each in range(count)], queues=queues)

    def start_time(self) -> datetime:
        """Return a minute of the server's clock that is two real seconds away."""
        probe = {"displayName": "clock", "cron": "0 0 1 1 *", "maxConcurrentRunCount": "1"} | self.request()
        made = self.call("POST", "schedules", probe)
        self.call("DELETE", f"schedules/{made['name'].rpartition('/')[2]}")
        now = datetime.fromisoformat(made["createTime"]) + timedelta(seconds=2 * self.plan.factor)
        return now.replace(second=0, microsecond=0) + timedelta(minutes=1)

    def request(self) -> dict[str, Any]:
        """Return the job of every schedule."""
        config = {"parameterValues": {"ledger": str(self.ledger)}}
        job = {"displayName": "day", "pipelineSpec": self.spec, "runtimeConfig": config}
        return {"createPipelineJobRequest": {"parent": PARENT, "pipelineJob": job}}

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        """Send a request that must succeed."""
        answer = self.server.call(method, path, body, **options)
        assert answer.status_code == 200, (path, answer.text)
        content: dict[str, Any] = answer.json()
        return content

    def live(self) -> None:
        """Let the day pass, with its troubles at random times."""
        for index in range(self.plan.num_schedules):
            self.create(index)
        total = self.plan.minutes * 60
        for index in range(self.plan.num_troubles):
            self.wait(total / self.plan.num_troubles * self.random.uniform(0.5, 1.0))
            kinds = [self.fill_disk, self.plant]
            if index < KILLS_END * self.plan.num_troubles:
                kinds = [self.kill, self.kill_at_an_instant, *kinds]
            kinds[index % len(kinds)]()
        self.wait(2 * total + 60)
        assert self.is_over(), self.server.text

    def wait(self, seconds: float) -> None:
        """Look at everything again and again, as a user does."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.is_over():
            time.sleep(1)

    def is_over(self) -> bool:
        """Return whether all schedules are completed and all runs have ended; take a sample of the server."""
        found = {each["name"].rpartition("/")[2]: each["state"] for each in self.pages("schedules")}
        assert requests.get(self.server.url, timeout=60).status_code in (200, 403)
        self.meter.sample()
        return all(found[number] == "COMPLETED" for number in self.account.numbers) and not self.account.active()

    def pages(self, collection: str) -> list[dict[str, Any]]:
        """Return a whole list."""
        found: list[dict[str, Any]] = []
        answer: dict[str, Any] = {"nextPageToken": ""}
        while "nextPageToken" in answer:
            query = {"pageSize": "100", "pageToken": answer["nextPageToken"]}
            answer = self.call("GET", collection, params=query)
            found += answer.get(collection, [])
        return found

    def kill(self) -> None:
        """Kill the server, note what it may skip, and start it again."""
        with self.account.trouble("kill"):
            self.server.end(signal.SIGKILL)
            self.account.note_kill(slack=timedelta(seconds=RESTART_SECONDS * self.plan.factor))
            self.start()

    def kill_at_an_instant(self) -> None:
        """Kill the server while it starts runs."""
        before, deadline = self.account.num_runs, time.monotonic() + 2 * EVERY.total_seconds() / self.plan.factor
        while self.account.num_runs == before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(self.random.uniform(0, 0.2))
        self.kill()

    def fill_disk(self) -> None:
        """Fill the disk for about an instant's time, and now and then kill the server meanwhile."""
        seconds = min(self.random.uniform(0.5, 1.5) * EVERY.total_seconds() / self.plan.factor, 40)
        with self.account.trouble("full disk"):
            if filler := _Filler.of(self.plan.work_dir):
                with filler:
                    self.wait(seconds / 2)
                    if self.random.random() < 0.5:
                        self.kill()
                    self.wait(seconds / 2)
            else:
                with self.server.full_disk():
                    self.wait(seconds)

    def plant(self) -> None:
        """Put damaged records beside the others, look at all lists, and delete the records over the API."""
        with self.account.trouble("damage"):
            planted = damage.plant(self.plan.work_dir, self.random)
            self.wait(3)
            for collection in ("schedules", "pipelineJobs", "customJobs", "models"):
                self.pages(collection)
            for path in planted:
                assert self.server.call("DELETE", path).status_code == 200, path

    def end(self) -> dict[str, Any]:
        """Stop the server and return the account of the day."""
        counts = {each["name"].rpartition("/")[2]: int(each["startedRunCount"]) for each in self.pages("schedules")}
        jobs = {each["name"].rpartition("/")[2] for each in self.pages("pipelineJobs")}
        text = "".join(path.read_text() for path in sorted(self.plan.work_dir.parent.glob("serve-*.log")))
        self.server.end()
        return self.account.settle(counts, jobs, text) | self.meter.figures()


def _cron(first: datetime) -> str:
    return f"{first.minute % 30},{first.minute % 30 + 30} * * * *"


class _Filler:
    """A file that takes all the room of a small file system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def of(cls, folder: Path) -> "_Filler | None":
        """Return None when the file system is too large, or the machine's own."""
        size = os.statvfs(folder)
        return cls(folder / ".filler") if size.f_blocks * size.f_frsize <= 1 << 30 else None

    def __enter__(self) -> None:
        with self._path.open("wb", buffering=0) as file:
            for block in (1 << 20, 1):
                try:
                    while file.write(b"x" * block):
                        pass
                except OSError:
                    continue

    def __exit__(self, *_: object) -> None:
        self._path.unlink()


def main() -> None:
    """Run a day and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--schedules", type=int, default=10)
    parser.add_argument("--troubles", type=int, default=40)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--work-dir", type=Path)
    options = parser.parse_args()
    # Beside other work of the machine.
    os.nice(10)
    work_dir = options.work_dir or Path(tempfile.mkdtemp(prefix="long-day-")) / "runs"
    work_dir.mkdir(exist_ok=True)
    plan = Plan(
        minutes=options.minutes,
        hours=options.hours,
        num_schedules=options.schedules,
        num_troubles=options.troubles,
        seed=options.seed,
        work_dir=work_dir.absolute(),
    )
    started = datetime.now(UTC)
    with Day(plan) as day:
        day.live()
        print(json.dumps({"factor": plan.factor, **day.end(), "took": str(datetime.now(UTC) - started)}, indent=1))


if __name__ == "__main__":
    main()
