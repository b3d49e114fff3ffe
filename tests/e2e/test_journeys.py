"""A compiled pipeline with fallbacks: shortages, a preemption, kills, and the weights of an undisturbed training."""

import pytest

from tests.support.journeys import CANCEL, RUN, STEP, Journeys, Plan


@pytest.fixture(scope="module")
def journeys(tmp_path_factory: pytest.TempPathFactory) -> Journeys:
    return Journeys(tmp_path_factory.mktemp("journeys") / "journeys")


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        Plan(troubles=("quota", "stockout", ""), is_preempted=False, disturbance=STEP, after_seconds=2),
        Plan(troubles=("", "queue", ""), is_preempted=True, disturbance="", after_seconds=0),
        Plan(troubles=("stockout", "queue", "stockout"), is_preempted=False, disturbance="", after_seconds=0),
        Plan(troubles=("", "", ""), is_preempted=False, disturbance=CANCEL, after_seconds=3),
        Plan(troubles=("queue", "", ""), is_preempted=False, disturbance=RUN, after_seconds=4),
    ],
    ids=str,
)
def test_a_journey_ends_as_it_is_written(journeys: Journeys, plan: Plan) -> None:
    journeys.check(f"journey-{len([*journeys.folder.iterdir()])}", plan)
