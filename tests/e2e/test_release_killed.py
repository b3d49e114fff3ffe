"""A release that is killed anywhere between `evaluate` and the live prediction is completed, and harms nothing."""

from pathlib import Path

import pytest

from tests.support.killed_release import KilledRelease, Point
from tests.support.random_release_kills import RandomKills

pytestmark = [pytest.mark.slow, pytest.mark.soak]

_OUTCOME = "trainer.results.outcome"
_VERSIONS = "localvertex.store.model_versions"
_ENDPOINTS = "components.release.endpoints"
POINTS = [
    Point(module=_OUTCOME, name="note_comparison", when="after", is_run=True),
    Point(module="trainer.serve.trial", name="TrialServer.check", when="before"),
    Point(module="exact_resume.files.publication", name="_flush_to_disk", when="after", is_run=True),
    Point(module=_VERSIONS, name="ModelVersions.add", when="before", is_run=True),
    Point(module=_VERSIONS, name="ModelVersions.add", when="after", is_run=True),
    Point(module="components.registry.registry", name="Registry.import_evaluation", when="after"),
    Point(module=_OUTCOME, name="note_registration", when="before", is_run=True),
    Point(module=_OUTCOME, name="note_registration", when="after"),
    Point(module=_OUTCOME, name="note_deployment", when="after", is_run=True),
    Point(module=_ENDPOINTS, name="Endpoints.deploy", when="after", is_run=True),
    Point(module=_ENDPOINTS, name="Endpoints.predict", when="before"),
    Point(module=_ENDPOINTS, name="Endpoints.undeploy", when="before", is_run=True),
]
"""In the order of the release; tests/components/release has every call of `record` and `deploy` without a process."""
NUM_KILLS = 5
SECONDS = 8.0
"""A kill comes within this time; the release takes longer."""


@pytest.fixture(scope="module")
def evaluated(compiled_for_few_images: Path, tmp_path_factory: pytest.TempPathFactory) -> KilledRelease:
    """Version 1 on its endpoint, and a run that has evaluated another model."""
    release = KilledRelease(tmp_path_factory.mktemp("killed"), compiled_for_few_images)
    release.prepare()
    return release


@pytest.fixture
def release(evaluated: KilledRelease) -> KilledRelease:
    """The same work folder for each test."""
    evaluated.restore()
    return evaluated


def test_a_run_that_is_killed_at_every_point_is_completed_once(release: KilledRelease) -> None:
    with release.server() as server:
        release.check_prediction(server)
        for point in POINTS:
            assert release.is_killed(point), (str(point), release.output)
            release.check_prediction(server)
        assert release.resume() == 0, release.output
        release.check_prediction(server)
    release.check_end()
    assert release.submit() == 0, release.output
    assert release.steps() == {"prepare", "plan", "summary"}


def test_random_kills_of_runs_and_steps_leave_one_champion(release: KilledRelease) -> None:
    kills = RandomKills(release, seed=1, max_seconds=SECONDS)
    while kills.num_kills < NUM_KILLS:
        kills.attempt()
    kills.finish()
