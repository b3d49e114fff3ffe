"""A change of the registry that is killed at any point is whole or not at all, and the next change works."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from localvertex_tests.store.killed_change import CHANGES, MODEL, OTHER

OWN_NAME = re.compile(r"m|other|[0-9]+|model|(model|aliases|shared|[0-9]+)\.json|evaluations|variables|data")
"""A temporary name among those of evaluations stays until the next evaluation."""


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_killed_change_is_whole_or_not_at_all(package: Path, tmp_path: Path, change: str) -> None:
    command = [sys.executable, "-m", "localvertex_tests.store.killed_change", str(tmp_path), change]
    done = subprocess.run(command, cwd=package / "tests", capture_output=True, text=True, check=True)
    lines = [json.loads(each) for each in done.stdout.splitlines()]
    assert len(lines) > 8
    before, after = lines[0]["state"], lines[-1]["state"]
    assert before != after
    # One point decides.
    states = [each["state"] for each in lines]
    assert states == [before] * states.count(before) + [after] * states.count(after)
    for line in lines:
        for model in (MODEL, OTHER):
            numbers = [int(each) for each in line["state"][model]["versions"]]
            assert set(line["state"][model]["aliases"].values()) <= {*line["state"][model]["versions"]}
            uploaded = line["uploaded"][model]
            assert uploaded > max(numbers, default=0), line["point"]
            assert line["aliases"][model] == {"champion": str(uploaded), "default": str(uploaded)}, line["point"]
        left = [each for each in line["names"] if not OWN_NAME.fullmatch(each)]
        assert [each for each in left if change != "evaluate" or not each[1].isdecimal()] == [], line["point"]
