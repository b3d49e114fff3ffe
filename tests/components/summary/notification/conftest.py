"""The output of `report_end`, with pauses of milliseconds."""

import logging
from collections.abc import Callable

import pytest
from kfp.dsl import PipelineTaskFinalStatus

from components.summary.notification.delivery import Limits
from components.summary.notification.targets import VARIABLE
from components.summary.report import report_end
from tests.support.receiver import PATH

PATIENT = Limits(connect_seconds=120, answer_seconds=120, attempts=3, pause_seconds=0.01, total_seconds=600)
"""Only a receiver that hangs needs short limits; on a slow machine any other one would break them."""
JOB = "projects/123/locations/us-central1/pipelineJobs/image-training-1"
ERROR = "prepare: exit code 2: no images in <gs://b/f>"

Ended = Callable[..., str]
"""Takes options of `report_end` and a state; returns what came of the notification, without the first line."""


@pytest.fixture
def ended(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Ended:
    """Ends a run, and checks that the first line is the run's own and that no part of the address is printed."""

    def end(*, address: str = "", state: str = "FAILED", **options: object) -> str:
        monkeypatch.delenv(VARIABLE, raising=False)
        if address:
            monkeypatch.setenv(VARIABLE, address)
        message = ERROR if state == "FAILED" else None
        status = PipelineTaskFinalStatus(state, JOB, "run", 9 if message else None, message)
        expected = f"image-training-1: {state}" + (f": {message}" if message else "")
        given = {"secret": "", "topic": "", "limits": PATIENT} | options
        with caplog.at_level(logging.DEBUG):
            assert report_end(status, **given) == expected
        out, err = capfd.readouterr()
        first, *rest = out.splitlines()
        assert first == expected
        text = out + err + caplog.text
        assert [part for part in (PATH, *PATH.split("/")[2:], "SECRET") if part and part in text] == []
        assert err == ""
        return "\n".join(rest)

    return end
