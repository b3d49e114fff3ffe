"""Decide what a failure restarts: one replica, the whole job, or nothing.

Source: Google's page "Understand the custom training service". A common error is permanent, and only other errors get
five restarts and three retries. Its table names the common errors; decision 0050 has the sentences.
"""

import signal
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from localvertex.jobs.job import Scheduling
from localvertex.values import facts

_MAX_REPLICA_RESTARTS = facts.number("restarts.replica")
_MAX_JOB_RETRIES = facts.number("restarts.job")
_MAX_PREEMPTIONS = facts.number("restarts.spot")
"""Restarts of a Spot job."""

_EXITS = facts.group("exit")
_PERMANENT = {int(code): _EXITS[code].about for code in facts.facts()["restarts.permanent"].here.split()}
"""Exit codes that no restart fixes: this project's code for invalid input, and a shell's for a missing program."""

_KILLED = range(129, 128 + signal.NSIG)
"""Exit codes of programs that ended by a signal. Codes above, as of `sys.exit(-1)`, are the program's own."""


class Verdict(StrEnum):
    """Consequence of a failure, as facts.csv names it."""

    RESTART_REPLICA = "restarts the replica"
    RESTART_JOB = "restarts the job"
    FAIL = "ends the job"


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A verdict and its reason, for the log."""

    verdict: Verdict
    reason: str
    adds_to_exit_code: bool = True
    """Whether the reason explains more than the exit code, and so belongs to the job's error."""
    is_permanent: bool = False
    """Whether the same job would fail again, so that a pipeline does not retry its task either."""


@dataclass(kw_only=True)
class Restarts:
    """The restart budget of one job, and how much of it has been used."""

    scheduling: Scheduling
    of_replicas: Counter[str] = field(default_factory=Counter)
    """Restarts of each replica in the current attempt at the job."""
    num_job_retries: int = 0
    num_preemptions: int = 0

    def after_exit(self, name: str, code: int) -> Decision:
        """Decide the consequence of a replica's non-zero exit code."""
        if code in _PERMANENT:
            reason = f"exit code {code} ({_PERMANENT[code]}) is permanent"
            return _fail(reason, adds_to_exit_code=False, is_permanent=True)
        fact = _EXITS.get(str(code), _EXITS["143" if code in _KILLED else "1"])
        verdict = Verdict(fact.here)
        if verdict is Verdict.FAIL:
            reason = f"exit code {code} is the program's own, which is permanent on Vertex AI"
            return _fail(reason, adds_to_exit_code=False)
        if self.scheduling.disable_retries:
            return _fail("disable_retries is set")
        if verdict is Verdict.RESTART_JOB:
            return self._retry_job(f"{_MAX_JOB_RETRIES} retries of the job after {fact.about} are used up")
        if self.of_replicas[name] < _MAX_REPLICA_RESTARTS:
            self.of_replicas[name] += 1
            count = f"restart {self.of_replicas[name]} of {_MAX_REPLICA_RESTARTS}"
            if self.scheduling.restart_job_on_worker_restart:
                return Decision(verdict=Verdict.RESTART_JOB, reason=f"{count} (all replicas)")
            return Decision(verdict=Verdict.RESTART_REPLICA, reason=count)
        return self._retry_job(
            f"{_MAX_REPLICA_RESTARTS} restarts and {_MAX_JOB_RETRIES} retries of the job are used up"
        )

    def _retry_job(self, used_up: str) -> Decision:
        """Restart the job, or fail with `used_up` after the last retry."""
        if self.num_job_retries >= _MAX_JOB_RETRIES:
            return _fail(used_up)
        self.num_job_retries += 1
        self.of_replicas.clear()
        reason = f"the job restarts, retry {self.num_job_retries} of {_MAX_JOB_RETRIES}"
        return Decision(verdict=Verdict.RESTART_JOB, reason=reason)

    def after_preemption(self) -> Decision:
        """Decide the consequence of a preemption."""
        self.num_preemptions += 1
        if self.scheduling.disable_retries:
            return _fail("preempted, and disable_retries is set")
        if self.num_preemptions > _MAX_PREEMPTIONS:
            count = self.num_preemptions
            return _fail(f"preempted {count} times; the service restarts a job at most {_MAX_PREEMPTIONS} times")
        reason = f"preempted, restart {self.num_preemptions} of {_MAX_PREEMPTIONS}"
        return Decision(verdict=Verdict.RESTART_JOB, reason=reason)

    def after_maintenance(self) -> Decision:
        """Decide the consequence of maintenance: the same host name on another machine, outside the restart budget."""
        if self.scheduling.disable_retries:
            return _fail("its machine was lost to maintenance, and disable_retries is set")
        restarts_all = self.scheduling.restart_job_on_worker_restart
        verdict = Verdict.RESTART_JOB if restarts_all else Verdict.RESTART_REPLICA
        return Decision(verdict=verdict, reason="restart on another machine after maintenance")


def _fail(reason: str, *, adds_to_exit_code: bool = True, is_permanent: bool = False) -> Decision:
    """Return the decision to end the job."""
    return Decision(verdict=Verdict.FAIL, reason=reason, adds_to_exit_code=adds_to_exit_code, is_permanent=is_permanent)
