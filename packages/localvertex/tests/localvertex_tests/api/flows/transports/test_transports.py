"""Each flow has the outcome that it declares over gRPC, and over REST the same but for the classes of docs/grpc.md.

One test, as each test is a part of `python -m benchmarks.soak.tests` and the flows of a transport share their server.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.api.flows.transports.outcomes import FLOWS, outcomes

pytestmark = [pytest.mark.slow, pytest.mark.soak]


def test_flows_differ_between_transports_only_in_their_classes_of_errors(
    package: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = (package / "docs" / "grpc.md").read_text()
    classes = dict(re.findall(r"`exceptions\.(\w+)`[^|]*\| `exceptions\.(\w+)` \|", page))
    grpc, rest = (outcomes(tmp_path_factory.mktemp(each), each) for each in ("grpc", "rest"))
    expected_grpc: dict[str, dict[str, Any]] = {}
    expected_rest: dict[str, dict[str, Any]] = {}
    for name, (_, expected) in FLOWS.items():
        if isinstance(expected, type):
            found = {"raises": expected.__name__, "message": grpc[name].get("message")}
            expected_grpc[name] = found
            expected_rest[name] = found | {"raises": classes.get(expected.__name__, expected.__name__)}
        else:
            expected_grpc[name] = expected_rest[name] = {"value": expected}
    assert grpc == expected_grpc
    assert rest == expected_rest
