"""A user's options for the custom jobs of a run: faults, and the rule for the restarts that follow."""

from dataclasses import dataclass

from localvertex.jobs.faults.faults import Fault
from localvertex.jobs.faults.ledger import FaultLedger
from localvertex.jobs.restart_rules import RestartRule


@dataclass(frozen=True, kw_only=True)
class CustomJobOptions:
    """How to run a job; none of it is part of the job itself."""

    restart_rule: RestartRule = RestartRule.SERVICE
    faults: tuple[Fault, ...] = ()
    random_faults_seed: int | None = None
    """Adds random faults, the same for the same seed and replicas."""

    @property
    def has_faults(self) -> bool:
        """Return whether the run has faults for its jobs."""
        return bool(self.faults) or self.random_faults_seed is not None

    def new_ledger(self) -> FaultLedger:
        """Return a ledger in which no fault of these options has happened yet."""
        return FaultLedger(self.faults, has_random=self.random_faults_seed is not None)
