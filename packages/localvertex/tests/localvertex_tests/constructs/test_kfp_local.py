"""kfp.local gives the same values for every construct, except where the construct states what it does instead."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.constructs.compile import all_constructs
from localvertex_tests.constructs.construct import Construct


def expected(construct: Construct) -> Any:
    """Return the outputs that kfp.local is expected to give, or text of its error."""
    if construct.kfp_local is not None:
        return construct.kfp_local
    return construct.outputs if construct.state == "SUCCEEDED" and not construct.refused else ""


@pytest.mark.soak
@pytest.mark.slow
def test_kfp_local_differs_only_where_a_construct_says_so(package: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "localvertex_tests.constructs.kfp_local", tmp_path / "result.json"]
    # Some constructs write into the present folder.
    environment = os.environ | {"PYTHONPATH": str(package / "tests")}
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, timeout=500)
    found = json.loads((tmp_path / "result.json").read_text())
    constructs = all_constructs()
    wrong = {}
    for name, (outputs, printed) in found.items():
        wanted = expected(constructs[name])
        is_error = isinstance(wanted, str)
        is_same = outputs is None and wanted in printed if is_error else is_equal(outputs, wanted)
        if not is_same:
            wrong[name] = (wanted, outputs, printed[-500:])
    assert wrong == {}
    same = [name for name in found if constructs[name].kfp_local is None]
    assert len(same) >= 50


def is_equal(outputs: dict[str, Any] | None, wanted: dict[str, Any]) -> bool:
    known = {name: value for name, value in wanted.items() if value is not ...}
    return (
        outputs is not None
        and set(outputs) == set(wanted)
        and all(outputs[name] == value for name, value in known.items())
    )
