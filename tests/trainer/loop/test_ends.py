"""The trainer ends as the page of exact_resume has it."""

from pathlib import Path

import pytest

from localvertex.jobs.job import Scheduling
from localvertex.jobs.restart_rules import Restarts, Verdict
from tests.support import ended_job
from vertex_testing import ends

SHORT = {1: ("SIGTERM", "SIGTERM, then error", "SIGTERM, full disk"), 2: ("SIGTERM",)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_workers", "end"),
    [
        pytest.param(num_workers, end, marks=[] if end in SHORT[num_workers] else pytest.mark.soak)
        for num_workers in (1, 2)
        for end in ends.ENDS
    ],
)
def test_the_trainer_ends_as_the_page_has_it(
    digits_directory: Path, tmp_path: Path, num_workers: int, end: str
) -> None:
    found = ended_job.measure(num_workers, end, tmp_path / "run", digits_directory)
    of_page = ends.read(ended_job.PAGE, ended_job.way(num_workers))
    assert found == of_page[end]


def test_the_service_restarts_what_the_page_says() -> None:
    for code, result in ends.RESTARTS.items():
        if result != "succeeds":
            verdict = Restarts(scheduling=Scheduling()).after_exit("workerpool0-0", int(code)).verdict
            assert (verdict != Verdict.FAIL) is (result == "restarts"), code
