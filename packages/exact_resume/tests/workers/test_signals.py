"""A stop request as a flag with an exit code."""

import signal

import pytest

from exact_resume.workers.signals import StopRequest


def test_a_stop_request_has_an_exit_code() -> None:
    request = StopRequest()
    assert not request.is_set
    request._remember(signal.SIGTERM, None)
    assert (request.is_set, request.exit_code, request.signal_name) == (True, 143, "SIGTERM")
    with pytest.raises(KeyboardInterrupt):
        request._remember(signal.SIGINT, None)


def test_while_there_is_nothing_to_save_a_signal_is_followed_immediately() -> None:
    request, left = StopRequest(), []
    with request.immediate(lambda: left.append("during")):
        request._remember(signal.SIGTERM, None)
        assert left == ["during"]
    with request.immediate(lambda: left.append("already")):
        pass
    assert left == ["during", "already"]
