"""Errors of Google's clients by code and message."""

import pytest
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from requests import exceptions as requests

from trainer.google_errors import google_error, google_errors, is_temporary


@pytest.mark.parametrize(
    ("error", "code", "line", "is_passing"),
    [
        (api.NotFound("GET https://h/v1: no\nmodel"), 404, "not found (no model)", False),
        (api.Conflict("twice"), 409, "the service is not available (twice)", True),
        (api.MethodNotImplemented("new"), 501, "the service refused it (new)", False),
        (api.RetryError("late", api.TooManyRequests("many")), 429, "quota exceeded (many)", True),
        (auth.RefreshError("old"), 401, "the credentials were not accepted (old)", False),
        (auth.TransportError("gone"), 0, "the service is not available (gone)", True),
        (requests.ReadTimeout("5 s"), 0, "the service is not available (the answer was lost: 5 s)", True),
        (requests.ProxyError("no"), 0, "the service is not available (it cannot be reached: no)", True),
    ],
)
def test_an_error_is_told_by_code_and_message(error: Exception, code: int, line: str, is_passing: bool) -> None:
    found = google_error(error)
    assert found is not None
    assert (found.code, found.line(), found.is_temporary, is_temporary(error)) == (code, line, is_passing, is_passing)


@pytest.mark.parametrize("error", [ValueError("x"), ConnectionError("y"), AttributeError("get", name="get", obj={})])
def test_another_error_is_none_of_a_call(error: Exception) -> None:
    assert google_error(error) is None
    with pytest.raises(type(error)) as caught, google_errors(lambda found: RuntimeError(found.line())):
        raise error
    assert caught.value is error
