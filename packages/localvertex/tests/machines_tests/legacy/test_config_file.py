"""Wrong config.yaml files: each mistake is reported with its correction."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from machines_tests.legacy.conftest import remarks, run

from localvertex.machines.legacy.report import LegacyInputError


def test_misspelt_keys_are_errors_with_the_right_one(data: Path) -> None:
    with pytest.raises(LegacyInputError) as error:
        run(yaml.safe_load((data / "legacy" / "misspelt.yaml").read_text("utf-8")))
    (problem,) = error.value.problems
    assert "arameterServerCount" in problem
    assert "did you mean parameterServerCount?" in problem


@pytest.mark.parametrize(
    ("training", "problem"),
    [
        ({"masterTyp": "standard"}, "did you mean masterType?"),
        ({"workerCount": "two"}, "expected a whole number"),
        ({"args": "--a"}, "expected a list"),
        ({"masterConfig": "x"}, "expected a mapping with the fields"),
        ([], "expected a mapping with the fields"),
    ],
)
def test_wrong_configs(training: Any, problem: str) -> None:
    with pytest.raises(LegacyInputError) as error:
        run({"trainingInput": training})
    assert any(problem in one for one in error.value.problems)


def test_keys_on_the_wrong_level() -> None:
    with pytest.raises(LegacyInputError, match="belongs under trainingInput"):
        run({"scaleTier": "BASIC"})
    with pytest.raises(LegacyInputError, match="no fields under trainingInput"):
        run({})
    with pytest.raises(LegacyInputError, match="no fields under trainingInput"):
        run({"trainingInput": None})
    with pytest.raises(LegacyInputError, match="already a Vertex AI job"):
        run({"jobSpec": {"workerPoolSpecs": []}})


def test_versions_without_quotes_are_refused() -> None:
    """YAML reads 1.10 and 1.1 as the same number."""
    with pytest.raises(LegacyInputError, match=r"write it in quotes: '2\.1'"):
        run({"trainingInput": {"runtimeVersion": 2.1, "pythonModule": "a.b", "packageUris": ["gs://b/p.tar.gz"]}})


def test_a_key_in_snake_case_is_read_with_a_remark() -> None:
    done = run({"trainingInput": {"scaleTier": "CUSTOM", "master_type": "standard"}})
    assert "the service ignored it" in remarks(done, "doubtful", "masterType")[0]
