"""Each call of Google's generated clients: served, or refused as not implemented."""

import pytest
from localvertex_tests.api.rest import calls

from vertex_testing.server import PARENT, Server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    """Ask the server for every method once."""
    return calls.table(server)


def test_the_table_of_the_page_is_what_the_server_answers(table: str) -> None:
    assert calls.PAGE.read_text() == calls.page_with(table), "python -m localvertex_tests.api.rest.calls"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v1/{PARENT}/datasets/1"),
        ("POST", f"/v1beta1/{PARENT}/endpoints/1:explain"),
        ("GET", f"/ui/{PARENT}"),
        ("POST", f"/v1/{PARENT}/models/m:copy"),
        ("POST", f"/v1/{PARENT}/models:copy"),
    ],
)
def test_a_known_method_is_not_implemented_and_an_unknown_one_not_found(server: Server, method: str, path: str) -> None:
    answer = server.request(method, path, json={} if method == "POST" else None)
    is_known = not path.endswith("m:copy")
    assert answer.status_code == (501 if is_known else 404), answer.text
    assert answer.json()["error"]["status"] == ("UNIMPLEMENTED" if is_known else "NOT_FOUND")
