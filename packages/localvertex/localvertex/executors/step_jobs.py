"""The custom jobs that a step creates itself, by calls of the API: which it may create, and how they run.

A step with the inputs `worker_pool_specs` and `candidates` may create what these describe, and nothing else. Its jobs
run as the job of Google's operation does: in the folder of the step, by whose name the user knows them. They outlive an
attempt, whose successor finds them by their labels, and end with the step.
"""

import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex.executors.attempt import Attempt
from localvertex.executors.custom_job import JOB_FILE, run
from localvertex.jobs import CustomJob, JobStatus, Outcome, StepLedger, images, read_job
from localvertex.machines import custom_job_fields
from localvertex.processes import logs
from localvertex.processes.processes import Processes

_POOLS, _CANDIDATES = "worker_pool_specs", "candidates"
"""The inputs of a step that creates jobs."""

_MACHINE = ("machine_type", "accelerator_type", "accelerator_count")

_UNSPECIFIED = ("STRATEGY_UNSPECIFIED", "ACCELERATOR_TYPE_UNSPECIFIED")

_CHOSEN = ("machine_spec", "replica_count", "disk_spec")
"""The fields of a pool that depend on the candidate; disks do not exist here."""


class NotGranted(Exception):
    """A job that the step may not create or stop; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Machines that a step may use, as its input describes them or as a job asks for them."""

    region: str
    scheduling_strategy: str
    machine_type: str
    accelerator_type: str
    accelerator_count: int
    replica_count: int
    """Replicas of the pools 0 and 1 together."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Candidate":
        """Build it from fields of any types: kfp passes numbers in a list as texts or floats."""
        texts = {name: str(fields.get(name) or "") for name in ("region", "scheduling_strategy", *_MACHINE[:2])}
        texts = {name: "" if text in _UNSPECIFIED else text for name, text in texts.items()}
        texts["scheduling_strategy"] = texts["scheduling_strategy"] or "STANDARD"
        count = _whole(fields.get("accelerator_count") or 0)
        return cls(**texts, accelerator_count=count, replica_count=_whole(fields.get("replica_count") or 1))

    def __str__(self) -> str:
        """Format it for messages."""
        return " ".join(str(each) for each in astuple(self) if each)


@dataclass(frozen=True, kw_only=True)
class _Created:
    """A job of the step."""

    stop: Callable[[], None]
    end: "Future[JsonObject]"


@dataclass(kw_only=True, eq=False)
class StepJobs:
    """The jobs of a step. Safe for several threads."""

    attempt: Attempt
    """The first attempt at the step."""
    pools: list[JsonObject]
    candidates: list[Candidate]
    ledger: StepLedger
    """A fault that has happened in one of its jobs does not happen in the next."""
    _created: dict[str, _Created] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_closed: bool = False
    _present: str = ""
    """The name of the job that was started last."""

    @classmethod
    def of(cls, attempt: Attempt) -> "StepJobs | None":
        """Return the jobs that a step may create; None for a step that creates none."""
        inputs = attempt.executor_input.get("inputs", {}).get("parameterValues", {})
        if attempt.context.api is None or not creates_jobs(inputs):
            return None
        of_run = {"region": attempt.context.region}
        named = [of_run | {name: each[name] for name in each if each[name]} for each in inputs[_CANDIDATES]]
        ledger = StepLedger(attempt.context.fault_ledger)
        return cls(attempt=attempt, pools=_read(inputs[_POOLS]), candidates=[*map(Candidate.of, named)], ledger=ledger)

    @property
    def run(self) -> str:
        """The unique number of the run."""
        return self.attempt.context.job["pipeline_job_uuid"]

    def read(self, message: JsonObject, region: str) -> CustomJob:
        """Check a CustomJob message, and build the job.

        Raises:
            NotGranted: The step may not create it.
            QuotaExceeded: There is no quota for it.
            TaskFailed: The service would refuse it, or it cannot run here.
        """
        context = self.attempt.context
        job = read_job(message, region=region, warn=context.warnings.add, choice=context.containers)
        images.check(job, context.containers)
        pools = _read(job.spec.get(_POOLS, []))
        strategy = job.spec.get("scheduling", {}).get("strategy", "")
        self._check_pools(pools)
        machines = [each["machine_spec"] for each in pools[:2] if each]
        if any(each != machines[0] for each in machines):
            raise NotGranted("the machine_spec of pool 1 is not that of pool 0")
        count = sum(each["replica_count"] for each in pools[:2] if each)
        asked = {"region": region, "scheduling_strategy": strategy, "replica_count": count}
        found = Candidate.of({**asked, **{name: machines[0].get(name) for name in _MACHINE}})
        if found not in self.candidates:
            known = "; ".join(map(str, self.candidates))
            raise NotGranted(f"{found} is not one of its candidates, which are: {known}")
        base = context.buckets.local_path(job.base_output_directory)
        if base.startswith("/") and context.processes.mask.hides(base, self.attempt.readable):
            raise NotGranted(f"base_output_directory {base} is hidden from it")
        self.ledger.shortages.check_quota(job, self.attempt.report)
        return job

    def _check_pools(self, pools: list[JsonObject]) -> None:
        """Refuse pools that differ from those of the input in more than their machines and number of replicas.

        Raises:
            NotGranted: They do.
        """
        first, workers = self.pools[0], (self.pools[1:2] or [{}])[0]
        own = [first, workers or first, *self.pools[2:]]
        for number, pool in enumerate(pools):
            known = own[number] if number < len(own) else {}
            # Parameter servers and evaluators stay as they are.
            names = {*pool, *known} - {*(_CHOSEN if number < 2 else ())}
            if pool and (wrong := sorted(each for each in names if pool.get(each) != known.get(each))):
                raise NotGranted(f"{_POOLS}[{number}].{wrong[0]} is not that of its input {_POOLS}")
            if number < 2 and pool and _fixed(pool) != _fixed(known):
                raise NotGranted(f"{_POOLS}[{number}].machine_spec is not that of its input {_POOLS}")
        if not pools or not pools[0] or any(own[max(2, len(pools)) :]):
            raise NotGranted(f"a pool of its input {_POOLS} is missing")

    def processes(self, hold: int) -> Processes:
        """Return the processes of a new job, which also end with the run, and hold a lock until then."""
        return self.attempt.context.processes.branch(hold)

    def add(self, number: str, stop: Callable[[], None], end: "Future[JsonObject]") -> None:
        """Take over a new job before it starts.

        Raises:
            NotGranted: The step has ended.
        """
        with self._lock:
            if self._is_closed:
                raise NotGranted("it has ended")
            self._created[number] = _Created(stop=stop, end=end)

    def check_own(self, number: str) -> None:
        """Refuse to stop or delete a job of others.

        Raises:
            NotGranted: The step has not created it.
        """
        if number not in self._created:
            raise NotGranted(f"it has not created the job {number[:100]}")

    def execute(
        self, job: CustomJob, *, name: str, processes: Processes, observe: Callable[[JobStatus], None]
    ) -> Outcome:
        """Run a job to its end, as the present job of the step.

        Raises:
            TaskFailed: It could not be started.
            Cancelled: It was cancelled before its replicas started.
        """
        attempt = self.attempt

        def report(status: JobStatus) -> None:
            observe(status)
            # One that is being stopped may end after the next has started.
            if self._present == name:
                attempt.report_custom_job(status)

        self._present = name

        message = {"display_name": job.display_name, "job_spec": job.spec}
        text = attempt.context.credentials.secrets.remove(json.dumps(message))
        atomic_write.write_text(attempt.folder / JOB_FILE, text)
        logs.add(attempt.log, f"custom job {job.display_name!r} as {name}")
        faults = self.ledger.left(attempt.context.faults)
        context = replace(attempt.context, processes=processes, faults=faults, fault_ledger=self.ledger)
        return run(job, replace(attempt, context=context, report_custom_job=report), context.project)

    def close(self) -> None:
        """Stop the jobs that have not ended, and wait for their end; no other one starts."""
        with self._lock:
            self._is_closed = True
            created = [*self._created.values()]
        for each in created:
            each.stop()
        for each in created:
            each.end.result()


def creates_jobs(inputs: Mapping[str, Any]) -> bool:
    """Return whether a step with these parameters creates jobs."""
    lists = [inputs.get(each) for each in (_POOLS, _CANDIDATES)]
    return all(isinstance(each, list) and each and all(isinstance(one, dict) for one in each) for each in lists)


def _read(pools: list[JsonObject]) -> list[JsonObject]:
    """Return pools as they can be compared: as the API reads them, with what is left out in place."""
    spec = custom_job_fields({"job_spec": {_POOLS: pools}}).get("job_spec", {})
    return [_complete(each) if each else {} for each in spec.get(_POOLS, [])]


def _complete(pool: JsonObject) -> JsonObject:
    container = pool.get("container_spec", {})
    env = [{"value": "", **each} for each in container.get("env", ())]
    container = {"command": [], "args": [], **container, "env": env}
    return {"machine_spec": {}, **pool, "replica_count": int(pool.get("replica_count", 1)), "container_spec": container}


def _fixed(pool: JsonObject) -> JsonObject:
    """Return the fields of a machine that do not depend on the candidate, such as its reservation."""
    return {name: value for name, value in pool["machine_spec"].items() if name not in _MACHINE}


def _whole(value: object) -> int:
    """Return a whole number; -1, which no job has, for anything else."""
    try:
        number = float(str(value))
    except ValueError:
        return -1
    return int(number) if number.is_integer() else -1
