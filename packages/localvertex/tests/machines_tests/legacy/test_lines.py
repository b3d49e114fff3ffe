"""Thirty shapes of real command lines, rewritten, with the job that each must become."""

from typing import Any

import pytest
import yaml
from machines_tests.conftest import DATA
from machines_tests.legacy.conftest import run

from localvertex.machines.legacy.report import LegacyInputError

CASES = yaml.safe_load((DATA / "legacy_lines.yaml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"].split()[-1][:30])
def test_a_real_line_becomes_this_job(case: dict[str, Any]) -> None:
    if "problems" in case:
        with pytest.raises(LegacyInputError) as error:
            run(case.get("config"), case["line"])
        assert error.value.problems == case["problems"]
        return
    done = run(case.get("config"), case["line"])
    assert (done.job, done.region) == (case["job"], case["region"])
    shown = [f"{remark.kind} {remark.field}" for remark in done.report.remarks if remark.kind != "changed"]
    assert shown == case["remarks"]
