"""Random runs whose localvertex is killed at random moments end as if it had not been (random_kills.py)."""

import pytest

from localvertex.containers.choice import Choice
from tests.e2e import random_kills

NUM_RUNS = 20


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.skipif(bool(Choice().how.problem), reason=Choice().how.problem or "bubblewrap works")
def test_random_runs_that_are_killed_and_resumed_end_as_undisturbed_ones() -> None:
    figures = random_kills.check(NUM_RUNS, seed=1)
    assert figures["runs"] == NUM_RUNS
    # The kills hit runs with finished and with unfinished steps.
    assert figures["steps restored"] > NUM_RUNS
    assert sum(count for name, count in figures.items() if name.startswith("kills: ")) > NUM_RUNS
