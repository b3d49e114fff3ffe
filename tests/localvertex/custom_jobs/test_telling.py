"""Whoever watches a run hears of faults and restarts while they happen."""

from pathlib import Path

from localvertex import custom_jobs
from localvertex.processes.processes import Processes


def test_faults_and_restarts_are_told(message, place):
    program = (
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]) / 'seen'; p.exists() or (p.touch(), sys.exit('no data'))"
    )
    job = custom_jobs.read(message((program, 1)), region="us-central1", warn=print)
    told: list[str] = []
    custom_jobs.run(job, place=place, processes=Processes(grace_seconds=1), tell=told.append)
    assert told == ["workerpool0-0: exit code 1: no data; restart 1 of 5"]
    assert "exit code 0" in (Path(place.folder) / "log.txt").read_text()
