"""Which failure restarts what: one replica, the whole job, or nothing.

Source: Vertex AI's page "understanding the training service". It states both that a worker with a non-zero exit code
is restarted, and that only potentially transient codes are retried. Hence there are two rules to choose from.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from localvertex.custom_jobs.job import Scheduling

_MAX_REPLICA_RESTARTS = 5
_MAX_JOB_RETRIES = 3
_MAX_PREEMPTIONS = 6
"""Restarts of a Spot job."""

_PERMANENT = {2: "invalid input", 126: "the program cannot be executed", 127: "the program is not found"}
"""Exit codes that no restart fixes: this project's code for invalid input, and a shell's for a missing program."""

_TRANSIENT = {134, 139}
"""SIGABRT and SIGSEGV are named by the service's page; any other death by signal is treated the same."""


class RestartRule(StrEnum):
    """How an ordinary non-zero exit code is treated."""

    SERVICE = "service"
    """As transient."""
    STRICT = "strict"
    """As permanent, unless it means death by a signal."""


class Verdict(StrEnum):
    """What a failure leads to."""

    RESTART_REPLICA = "restart the replica"
    RESTART_JOB = "restart the job"
    FAIL = "end the job"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A verdict and its reason, for the log."""

    verdict: Verdict
    reason: str
    is_permanent: bool = False


@dataclass(kw_only=True)
class Restarts:
    """The restart budget of one job, and how much of it has been used."""

    scheduling: Scheduling
    rule: RestartRule
    of_replicas: Counter[str] = field(default_factory=Counter)
    """In the current attempt at the job."""
    num_job_retries: int = 0
    num_preemptions: int = 0

    def after_exit(self, name: str, code: int) -> Decision:
        """Decide what a non-zero exit code of a replica leads to."""
        if code in _PERMANENT:
            return _fail(f"exit code {code} ({_PERMANENT[code]}) is permanent", is_permanent=True)
        if self.rule is RestartRule.STRICT and code not in _TRANSIENT and code <= 128:
            return _fail(f"exit code {code} is permanent with --restart-rule strict", is_permanent=True)
        if self.scheduling.disable_retries:
            return _fail("disable_retries is set")
        if self.of_replicas[name] < _MAX_REPLICA_RESTARTS:
            self.of_replicas[name] += 1
            count = f"restart {self.of_replicas[name]} of {_MAX_REPLICA_RESTARTS}"
            if self.scheduling.restart_job_on_worker_restart:
                return Decision(verdict=Verdict.RESTART_JOB, reason=f"{count} (all replicas)")
            return Decision(verdict=Verdict.RESTART_REPLICA, reason=count)
        if self.num_job_retries < _MAX_JOB_RETRIES:
            self.num_job_retries += 1
            self.of_replicas.clear()
            reason = f"the job restarts, retry {self.num_job_retries} of {_MAX_JOB_RETRIES}"
            return Decision(verdict=Verdict.RESTART_JOB, reason=reason)
        return _fail(f"{_MAX_REPLICA_RESTARTS} restarts in each of {_MAX_JOB_RETRIES + 1} attempts are used up")

    def after_preemption(self) -> Decision:
        """Decide what a preemption leads to."""
        self.num_preemptions += 1
        if self.scheduling.disable_retries:
            return _fail("preempted, and disable_retries is set")
        if self.num_preemptions > _MAX_PREEMPTIONS:
            count = self.num_preemptions
            return _fail(f"preempted {count} times; the service restarts a job at most {_MAX_PREEMPTIONS} times")
        reason = f"preempted, restart {self.num_preemptions} of {_MAX_PREEMPTIONS}"
        return Decision(verdict=Verdict.RESTART_JOB, reason=reason)

    def after_maintenance(self) -> Decision:
        """Decide what maintenance leads to: the same host name on another machine, outside the restart budget."""
        if self.scheduling.disable_retries:
            return _fail("its machine was lost to maintenance, and disable_retries is set")
        restarts_all = self.scheduling.restart_job_on_worker_restart
        verdict = Verdict.RESTART_JOB if restarts_all else Verdict.RESTART_REPLICA
        return Decision(verdict=verdict, reason="restart on another machine after maintenance")


def _fail(reason: str, *, is_permanent: bool = False) -> Decision:
    """Return the decision to end the job."""
    return Decision(verdict=Verdict.FAIL, reason=reason, is_permanent=is_permanent)
