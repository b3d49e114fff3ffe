"""A user's options for the custom jobs of a run: faults, and the rule for the restarts that follow."""

from dataclasses import dataclass

from localvertex.jobs.faults.faults import Fault
from localvertex.jobs.restart_rules import RestartRule


@dataclass(frozen=True, kw_only=True)
class CustomJobOptions:
    """How to run a job; none of it is part of the job itself."""

    restart_rule: RestartRule = RestartRule.SERVICE
    faults: tuple[Fault, ...] = ()
