"""Tuning jobs that the service refuses: before the start, or before their first trial."""

from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.support.tuning import KIND, NAME, RATE, pool, tune

import localvertex
from vertex_testing.runs import STEP, Execute, FindTask

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"parameters": [RATE]}, "parameter parameters[0]", "GRID_SEARCH takes no double_value_spec (rate)"),
    ({"parameters": [KIND, KIND]}, "parameter parameters", "'kind' is repeated"),
    ({"metrics": []}, "parameter metrics", "expected at least one metric_id"),
    ({"algorithm": "SIMPLE"}, "parameter algorithm", "expected ALGORITHM_UNSPECIFIED, GRID_SEARCH or RANDOM_SEARCH"),
    ({"trials": 0}, "parameter trials", "expected an integer of at least 1, found 0"),
    ({"pools": [pool("", "x", machine_type="n1-standard-5")]}, "parameter pools[0].machine_spec", "n1-standard-5"),
    (
        {"pools": [pool("", "x", accelerator_type="NVIDIA_H100_80GB", accelerator_count=1)]},
        "parameter pools[0].machine_spec",
        "NVIDIA_H100_80GB",
    ),
]


@pytest.mark.parametrize(("change", "path", "message"), REFUSED)
def test_a_job_that_the_service_refuses_is_refused_before_the_start(
    execute: Execute, work_dir: Path, change: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(localvertex.UserError) as caught:
        execute(tune, {"pools": [pool("", "x")], "parameters": [KIND], **change})
    assert len(caught.value.reasons) == 1
    assert caught.value.reasons[0].startswith(path)
    assert message in caught.value.reasons[0]
    assert not work_dir.exists()


@dsl.component(**STEP)
def hand_on(given: list) -> list:
    return given


@dsl.pipeline(name="later")
def later(pools: list, parameters: list) -> None:
    tune(pools=hand_on(given=pools).output, parameters=hand_on(given=parameters).output)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": [RATE]}, "GRID_SEARCH takes no double_value_spec (rate)"),
        ({"pools": [pool("", "x", machine_type="n1-standard-5")]}, "n1-standard-5"),
        ({"pools": [{}, pool("", "x")]}, "worker_pool_specs: an empty pool precedes a filled one"),
    ],
)
def test_a_job_that_only_the_run_knows_is_refused_before_its_first_trial(
    execute: Execute, task: FindTask, work_dir: Path, change: dict[str, Any], message: str
) -> None:
    record = execute(later, {"pools": [pool("", "x")], "parameters": [KIND], **change}, run_id="later")
    assert record["state"] == "FAILED"
    assert message in record["error"]
    assert task(record, f"tune/{NAME}")["attempts"] == 1
    assert not list((work_dir / "later").rglob("trials"))
