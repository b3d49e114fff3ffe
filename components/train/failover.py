"""Trains one run over its candidates: one custom job after another, each of which resumes where the last one stopped.

A step that is killed starts again and finds its job by its labels; the journey's file says what it was about to do.
At most one job of a run trains: before a job is created, all others have ended.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from components.train.custom_jobs import QUEUE, CustomJobs, Job, Refused
from components.train.fallbacks import Candidate, Fallbacks
from components.train.journey import CANCELLED, FAILED, FINISHED, INTERRUPTED, OTHER_RUN, PREEMPTED, Journey, Leg
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError

_CREATED_LATE_POLLS = 6
"""How often a job is looked for whose creation was not confirmed."""
_REFUSALS = 3
"""Requests that a quota refuses before it counts as a shortage: a limit of requests per minute is not one."""


class Stopped(BaseException):
    """The pipeline cancels the step."""


class Silent(TrainingError):
    """The service has not answered for a while; its job trains on, and the next attempt of the step finds it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The training job of a run, without its machines."""

    run_id: str
    task: str
    """Id of the pipeline's task, which stays the same when the step is retried."""
    display_name: str
    base_output_directory: str
    image: str
    command: list[str]
    args: list[str]
    env: dict[str, str]
    servers: list[dict[str, Any]]
    """The worker pools after the workers: parameter servers, which are the same on all candidates."""
    labels: Mapping[str, str]
    service_account: str
    network: str
    tensorboard: str
    kms_key: str

    def job(self, candidate: Candidate, labels: Mapping[str, str], *, timeout_seconds: float) -> dict[str, Any]:
        """Return the CustomJob on the machines of a candidate."""
        machines = candidate.machines
        pools = machines.worker_pool_specs(image=self.image, args=self.args, command=self.command, env=self.env)
        pools[2:] = self.servers
        scheduling: dict[str, Any] = {
            "strategy": machines.scheduling_strategy,
            "timeout": f"{timeout_seconds:.0f}s",
            "restart_job_on_worker_restart": machines.restart_job_on_worker_restart,
        }
        if machines.scheduling_strategy == "FLEX_START":
            scheduling["max_wait_duration"] = f"{machines.max_wait_seconds}s"
        spec = {
            "worker_pool_specs": pools,
            "scheduling": scheduling,
            "base_output_directory": {"output_uri_prefix": self.base_output_directory},
            "service_account": self.service_account,
            "network": self.network,
            "tensorboard": self.tensorboard,
            "persistent_resource_id": machines.persistent_resource_id,
        }
        job: dict[str, Any] = {
            "display_name": self.display_name,
            "labels": {**self.labels, **labels},
            "job_spec": {name: value for name, value in spec.items() if value},
        }
        return job | ({"encryption_spec": {"kms_key_name": self.kms_key}} if self.kms_key else {})


class Failover:
    """One step's training of a run.

    Args:
        request: What every job has.
        candidates: Machines in the order in which they are tried.
        limits: When a Spot machine is given up.
        jobs: The service.
        journey: The legs so far.
        poll_seconds: Time between two looks at a job.
        silent_seconds: How long calls are repeated while the service does not answer; the job trains meanwhile.
        announce: Called with the present job after each change, and with a line of text for people.
    """

    def __init__(
        self,
        request: Request,
        candidates: list[Candidate],
        limits: Fallbacks,
        *,
        jobs: CustomJobs,
        journey: Journey,
        poll_seconds: float,
        announce: Callable[[str, Job | None], None],
        silent_seconds: float = 600.0,
    ) -> None:
        self._request, self._candidates, self._limits = request, candidates, limits
        self._jobs, self._journey, self._poll_seconds, self._announce = jobs, journey, poll_seconds, announce
        self._silent_seconds = silent_seconds

    def run(self) -> None:
        """Train until the run is finished.

        Raises:
            TrainingError: The program failed, no candidate has machines, or the service did not answer.
            Stopped: The step was cancelled.
        """
        try:
            while self._run_leg().why != FINISHED:
                pass
        except Silent:
            raise
        except BaseException:
            self._cancel_all()
            raise
        self._journey.complete()

    def _run_leg(self) -> Leg:
        leg = self._next_leg()
        if leg.why:
            return leg
        job = self._find(leg)
        if job is None and leg.job:
            raise self._deleted(leg)
        if job is None:
            leg, job = self._submit(leg)
        if job is None:
            return leg
        if job.name != leg.job:
            leg = self._journey.change(leg, job=job.name)
        # Two steps that create a job of the same run at the same time both see both jobs: the later one gives way.
        if not leg.leaving and any((each.created, each.name) < (job.created, job.name) for each in self._others(leg)):
            leg = self._journey.change(leg, leaving=OTHER_RUN)
        self._announce(f"candidate {leg.candidate}: {job.name} on {leg.machines}", job)
        return self._watch(leg, job)

    def _next_leg(self) -> Leg:
        """Return the leg that has not ended, a new one, or the last one of a finished run.

        Raises:
            TrainingError: An earlier attempt of this step has failed for good, no candidate is left, or no time.
        """
        own = self._journey.own
        last = own[-1] if own else None
        if last is not None and not last.why:
            return last
        if last is not None and last.why in (FINISHED, FAILED, CANCELLED):
            # A retried step does not train again what has failed: that costs money, and ends in the same way.
            if last.why == FINISHED:
                return last
            how = "was cancelled by hand" if last.why == CANCELLED else "failed"
            raise TrainingError(
                f"{last.job or 'the training job'} {how} in an earlier attempt: {last.message or 'see its log'}"
            )
        index = 0 if last is None else last.candidate + (last.why not in (OTHER_RUN, INTERRUPTED))
        if index >= len(self._candidates):
            tried = "; ".join(map(str, own))
            raise TrainingError(
                f"there are no machines for this training ({tried}); run the pipeline again later, which resumes it, "
                "or add fallbacks"
            )
        if self._seconds_left() <= 0:
            raise TrainingError(
                f"timeout_seconds, {self._timeout_seconds:.0f} s for all machines together, is used up; run the "
                "pipeline again, which resumes the training, or set a longer one"
            )
        candidate = self._candidates[index]
        leg = Leg(
            task=self._request.task,
            candidate=index,
            attempt=1 + sum(each.candidate == index for each in own),
            machines=str(candidate),
            region=candidate.region,
            submitted=time.time(),
        )
        return self._journey.add(leg)

    @property
    def _timeout_seconds(self) -> float:
        return float(self._candidates[0].machines.timeout_seconds)

    def _seconds_left(self) -> float:
        return self._timeout_seconds - sum(leg.trained_seconds for leg in self._journey.own)

    @property
    def _regions(self) -> list[str]:
        """The regions in which jobs of this run may be; an earlier version of the pipeline may have had others."""
        own = [candidate.region for candidate in self._candidates]
        return [*dict.fromkeys([*own, *(leg.region for leg in self._journey.legs)])]

    def _labels(self, leg: Leg) -> dict[str, str]:
        own = {"candidate": str(leg.candidate), "attempt": str(leg.attempt)}
        return {"run_id": self._request.run_id, "task": self._request.task, **own}

    def _find(self, leg: Leg) -> Job | None:
        """Return the job of a leg, active or not; cancel all others of this task, whose creation was confirmed late."""
        labels = self._labels(leg)
        regions = dict.fromkeys(each.region for each in self._journey.own)
        found = [job for region in regions for job in self._listed(region, task=self._request.task)]
        of_leg = [job for job in found if labels.items() <= job.labels.items()]
        own = next((job for job in of_leg if job.name == leg.job), of_leg[0] if of_leg else None)
        for other in found:
            if other is not own and not other.has_ended:
                self._jobs.cancel(other)
        return own

    def _listed(self, region: str, **labels: str) -> list[Job]:
        """List jobs, and repeat that while the service does not answer.

        Raises:
            Silent: It did not answer for ten minutes.
        """
        start = time.monotonic()
        while True:
            try:
                return self._jobs.labelled(region, **labels)
            except TrainingError as error:
                if time.monotonic() - start > self._silent_seconds:
                    raise Silent(str(error)) from error
                time.sleep(self._poll_seconds)

    def _others(self, leg: Leg) -> list[Job]:
        """Return the active jobs of this run besides that of a leg, in all regions, whichever task created them."""
        labels = self._labels(leg)
        found = [job for region in self._regions for job in self._listed(region, run_id=self._request.run_id)]
        return [job for job in found if not job.has_ended and not labels.items() <= job.labels.items()]

    def _wait_for_others(self, leg: Leg) -> None:
        """Cancel the other jobs of this task, and wait until no job of this run is active."""
        announced = set[str]()
        while others := self._others(leg):
            for job in others:
                if job.labels.get("task") == self._request.task:
                    self._jobs.cancel(job)
                elif job.name not in announced:
                    text = f"{job.name} of another pipeline run trains this run; waiting for its end"
                    self._announce(text, None)
                    announced.add(job.name)
            time.sleep(self._poll_seconds)

    def _submit(self, leg: Leg) -> tuple[Leg, Job | None]:
        """Create the job of a leg; without one, the leg has ended.

        Raises:
            TrainingError: The service is not available.
            Refused: It refuses the job, and that is not a shortage.
        """
        self._wait_for_others(leg)
        candidate = self._candidates[leg.candidate]
        body = self._request.job(candidate, self._labels(leg), timeout_seconds=max(1.0, self._seconds_left()))
        refusals = 0
        while True:
            leg = self._journey.change(leg, submitted=time.time()) if not refusals else leg
            try:
                job = self._jobs.create(leg.region, body)
                break
            except Refused as refused:
                if lost := self._find_late(leg) if refused.error.may_have_arrived else None:
                    job = lost
                    break
                refusals += 1
                if refusals < _REFUSALS and (refused.shortage or refused.error.is_temporary):
                    time.sleep(self._poll_seconds * 4**refusals)
                    continue
                if not refused.shortage:
                    ended = self._journey.end(leg, why=FAILED, ended=time.time(), message=refused.error.line())
                    raise TrainingError(f"the training job cannot be created: {refused.error.line()}") from refused
                ended = self._journey.end(leg, why=refused.shortage, ended=time.time(), message=str(refused))
                self._announce(str(ended), None)
                return ended, None
        return leg, job

    def _find_late(self, leg: Leg) -> Job | None:
        for _ in range(_CREATED_LATE_POLLS):
            time.sleep(self._poll_seconds)
            if job := self._find(leg):
                return job
        return None

    def _watch(self, leg: Leg, job: Job) -> Leg:
        """Return the leg when its job has ended and the training may move on.

        Raises:
            TrainingError: The job failed, or was cancelled by somebody else.
        """
        last_ran = time.time() if job.started else leg.submitted
        while not job.has_ended:
            if job.started and not leg.started:
                leg = self._journey.change(leg, started=job.started)
            if not job.is_waiting:
                last_ran = time.time()
            if not leg.leaving and (reason := self._reason_to_leave(leg, job, waited_seconds=time.time() - last_ran)):
                leg = self._journey.change(leg, leaving=reason)
                self._announce(f"candidate {leg.candidate}: {reason}; {job.name} is cancelled", job)
            if leg.leaving:
                self._jobs.cancel(job)
            time.sleep(self._poll_seconds)
            found = self._find(leg) or self._jobs.get(job)
            if found is None:
                raise self._deleted(leg)
            job = found
        return self._end(self._journey.change(leg, started=job.started), job)

    def _deleted(self, leg: Leg) -> TrainingError:
        self._journey.end(leg, why=FAILED, ended=time.time(), message="the job was deleted")
        return TrainingError(
            f"{leg.job} was deleted before its end; run the pipeline again, which resumes the training"
        )

    def _reason_to_leave(self, leg: Leg, job: Job, *, waited_seconds: float) -> str:
        machines = self._candidates[leg.candidate].machines
        if job.is_waiting and waited_seconds > machines.max_wait_seconds:
            return QUEUE
        if machines.scheduling_strategy != "SPOT":
            return ""
        since = time.time() - self._limits.preemption_window_seconds
        recent = [at for at in self._journey.preemptions(leg) if at >= since]
        return PREEMPTED if len(recent) > self._limits.max_preemptions else ""

    def _end(self, leg: Leg, job: Job) -> Leg:
        machines = self._candidates[leg.candidate].machines
        has_started = bool(job.started) or any(event["event"] == "start" for event in self._journey.events(leg))
        # The service ends the wait for FLEX_START itself.
        is_late = machines.scheduling_strategy == "FLEX_START" and job.ended - job.created >= machines.max_wait_seconds
        why = FAILED if job.has_failed else leg.leaving or CANCELLED
        if job.has_succeeded:
            why = FINISHED
        elif not has_started and (shortage := job.shortage or (QUEUE if why == FAILED and is_late else "")):
            why = shortage
        leg = self._journey.end(leg, why=why, ended=job.ended, message=job.message)
        self._announce(str(leg), job)
        if why in (FAILED, CANCELLED):
            text = job.message or f"it ended with {job.state}"
            raise TrainingError(f"{job.name} on {leg.machines}: {text}")
        return leg

    def _cancel_all(self) -> None:
        """Cancel the jobs of this task, and wait until they have ended; a region that does not answer is asked again.

        A leg that has not ended is then interrupted: another attempt of the step begins it again. While a job is active
        its leg stays open, so that the other attempt finds it.
        """
        open_legs = [leg for leg in self._journey.own if not leg.why]
        # A request that was sent may still create a job.
        num_looks = _CREATED_LATE_POLLS if any(not leg.job for leg in open_legs) else 1
        start = time.monotonic()
        while num_looks and time.monotonic() - start < self._silent_seconds:
            num_looks = num_looks - 1 if self._cancel_once() else max(num_looks, 1)
            if num_looks:
                time.sleep(self._poll_seconds)
        for leg in open_legs if not num_looks else ():
            self._journey.end(leg, why=INTERRUPTED, ended=time.time(), message="the step was stopped")

    def _cancel_once(self) -> bool:
        """Ask all active jobs of this task to stop; return whether there is none, according to all regions."""
        is_done = True
        for region in self._regions:
            try:
                for job in self._jobs.labelled(region, task=self._request.task):
                    if not job.has_ended:
                        is_done = False
                        self._jobs.cancel(job)
            except (TrainingError, UserError):
                is_done = False
        return is_done
