"""Vertex custom jobs on this machine; the endpoint and the component that submit them are elsewhere.

    job = jobs.read_job(message, region="us-central1", warn=print)
    outcome = jobs.run_job(job, workspace=Workspace(...), processes=Processes(grace_seconds=10))

Replicas become processes with the environment that the service gives them, restarted by its rules.
"""

from localvertex.jobs.faults.faults import Fault
from localvertex.jobs.faults.ledger import FaultLedger, StepLedger
from localvertex.jobs.faults.shortages import QuotaExceeded, Shortage, Shortages
from localvertex.jobs.job import CustomJob, Pool, Replica, read_job
from localvertex.jobs.run import run_job
from localvertex.jobs.status import JobState, JobStatus, Outcome, ReplicaStatus, Workspace

__all__ = [
    "CustomJob",
    "Fault",
    "FaultLedger",
    "JobState",
    "JobStatus",
    "Outcome",
    "Pool",
    "QuotaExceeded",
    "Replica",
    "ReplicaStatus",
    "Shortage",
    "Shortages",
    "StepLedger",
    "Workspace",
    "read_job",
    "run_job",
]
