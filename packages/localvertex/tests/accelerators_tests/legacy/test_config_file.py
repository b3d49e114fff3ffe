"""Wrong config.yaml files: each mistake is reported with its correction."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from accelerators_tests.legacy.conftest import remarks, run

from accelerators.legacy.report import LegacyInputError


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
        ({"workerCount": 2.0}, "expected a whole number"),
        ({"workerCount": -1}, "expected a whole number"),
        ({"args": "--a"}, "text per line"),
        ({"masterConfig": "x"}, "expected the fields"),
        ({"masterType": "standard", "master_type": "large_model"}, "given twice"),
        ({"hyperparameters": {"params": {}}}, "expected a list"),
        ([], "expected the fields"),
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


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"trainingInput": {"maxRunningTime": "3600s"}}, "trainingInput.scheduling.maxRunningTime"),
        ({"trainingInput": {"labels": {"a": "b"}}}, "at the top level, next to trainingInput: (labels)"),
        (
            {"trainingInput": {"scheduling": {"labels": {"a": "b"}}}},
            "at the top level, next to trainingInput: (labels)",
        ),
        ({"trainingInput": {"masterConfig": {"worker_config": {}}}}, "trainingInput.workerConfig"),
        (
            {"trainingInput": {"workerConfig": {"bootDiskType": "pd-ssd"}}},
            "trainingInput.workerConfig.diskConfig.bootDiskType",
        ),
        (
            {"trainingInput": {"hyperparameters": {"params": [{"goal": "MAXIMIZE"}]}}},
            "trainingInput.hyperparameters.goal",
        ),
        ({"trainingInput": {"hyperparameters": {"minValue": 1}}}, "trainingInput.hyperparameters.params[].minValue"),
        ({"maxWaitTime": "5s"}, "trainingInput.scheduling.maxWaitTime"),
    ],
)
def test_a_key_in_the_wrong_block_is_reported_with_the_right_one(document: dict[str, Any], path: str) -> None:
    with pytest.raises(LegacyInputError) as error:
        run(document)
    (problem,) = error.value.problems
    assert "it belongs" in problem
    assert path in problem


def test_versions_without_quotes_are_doubtful() -> None:
    done = run({"trainingInput": {"runtimeVersion": 2.1, "pythonModule": "a.b", "packageUris": ["gs://b/p.tar.gz"]}})
    assert "1.10 and 1.1 as the same number" in remarks(done, "doubtful", "trainingInput.runtimeVersion")[0]
