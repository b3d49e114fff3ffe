"""Vertex custom jobs on this machine: `read` checks a CustomJob, `run` runs it as the service would.

    job = custom_jobs.read(body, region="us-central1", warn=print)
    outcome = custom_jobs.run(job, place=Place(...), processes=Processes(grace_seconds=10))

Worker pools become processes with the environment that the service gives them, restarted by its rules.
"""

from localvertex.custom_jobs.faults.faults import Fault
from localvertex.custom_jobs.job import CustomJob, Pool, Replica
from localvertex.custom_jobs.reading import read
from localvertex.custom_jobs.restart_rules import RestartRule
from localvertex.custom_jobs.run import run
from localvertex.custom_jobs.status import JobState, Options, Outcome, Place, ReplicaStatus, Status

__all__ = [
    "CustomJob",
    "Fault",
    "JobState",
    "Options",
    "Outcome",
    "Place",
    "Pool",
    "Replica",
    "ReplicaStatus",
    "RestartRule",
    "Status",
    "read",
    "run",
]
