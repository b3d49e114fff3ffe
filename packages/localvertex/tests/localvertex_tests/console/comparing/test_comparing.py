"""Runs side by side: what differs is shown, nothing is called best without a reason, and no file outside is shown."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.console.comparing.runs import Runs, metric
from localvertex_tests.support.run_records import TASK, run_record

from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.console.comparing import curves, tables
from localvertex.console.comparing.comparison import Comparisons
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.record import WatchedRuns


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "runs")


def test_what_differs_and_what_is_the_same(runs: Runs) -> None:
    first = runs.add("first", parameters={"rate": 0.1, "size": 3}, metrics=[metric("accuracy", 0.5), metric("n", 4)])
    other = TASK | {"path": "loop/train", "title": "train", "state": "FAILED", "seconds": 2.5}
    second = runs.add(
        "second", parameters={"rate": 0.2, "size": 3, "extra": None}, metrics=[metric("accuracy", 0.75)], tasks=[other]
    )
    found = tables.compare([first, second])
    assert [(each["name"], each["differs"]) for each in found["parameters"]] == [
        ("rate", True),
        ("size", False),
        ("extra", True),
    ]
    assert found["parameters"][2]["values"] == [{"is_set": False, "value": None}, {"is_set": True, "value": None}]
    accuracy, count = found["metrics"]
    assert (accuracy["values"], accuracy["differences"], accuracy["best"]) == ([0.5, 0.75], [None, 0.25], [1])
    assert (count["values"], count["differences"], count["best"]) == ([4, None], [None, None], [])
    assert [(each["path"], each["cells"]) for each in found["steps"]] == [
        ("train", [{"state": "SUCCEEDED", "seconds": 1.0, "attempts": 1}, None]),
        ("loop/train", [None, {"state": "FAILED", "seconds": 2.5, "attempts": 1}]),
    ]


def test_runs_of_one_pipeline_with_other_names_and_values_are_not_called_different(runs: Runs) -> None:
    files = {
        "named": {"displayName": "a", "pipelineSpec": {"root": {"dag": {}}, "schemaVersion": "2.1.0"}},
        "again": {"pipelineSpec": {"schemaVersion": "2.1.0", "root": {"dag": {}}}, "runtimeConfig": {"parameters": {}}},
        "plain": {"schemaVersion": "2.1.0", "root": {"dag": {}}},
        "other": {"schemaVersion": "2.1.0", "root": {"dag": {"tasks": {}}}},
        "damaged": [],
        "missing": None,
    }
    for name, content in files.items():
        runs.add(name)
        if content is not None:
            (runs.work_dir / name / "pipeline.json").write_text(json.dumps(content))
    found = Comparisons(WatchedRuns(Store(runs.work_dir))).compare(LocalCall(query={"runs": ",".join(files)}))["runs"]
    specs = {each["id"]: each["spec"] for each in found}
    assert specs["named"] == specs["again"] == specs["plain"] != specs["other"]
    assert all(specs[name] for name in ("named", "other"))
    assert specs["damaged"] == specs["missing"] == ""


@pytest.mark.parametrize(
    ("name", "values", "best"),
    [
        ("val_accuracy", [0.5, 0.7, 0.7], [1, 2]),
        ("validationLoss", [0.5, 0.7, 0.6], [0]),
        ("loss", [math.nan, 0.7, 0.6], [2]),
        ("auc", [math.inf, "high", True], []),
        ("accuracy", [0.5, 0.5, 0.5], []),
        # The score of a constant answer: the data are easier, not the model better.
        ("baseline_accuracy", [0.5, 0.7], []),
        ("num_images", [1, 2, 3], []),
        ("accuracy_loss", [1, 2, 3], []),
        ("glossary", [1, 2, 3], []),
    ],
)
def test_the_best_value_is_marked_only_where_the_direction_is_known(
    name: str, values: list[Any], best: list[int]
) -> None:
    contents = [
        run_record(Path("runs"), "a", "2026-01-01T00:00:00.000Z", metrics=[metric(name, value)]) | {"id": "a"}
        for value in values
    ]
    answer = tables.compare(contents)
    assert answer["metrics"][0]["best"] == best
    json.dumps(answer, allow_nan=False)


def test_curves_are_those_of_each_run(runs: Runs) -> None:
    first = runs.add("first", job=runs.train("first", [2.0, 1.0]))
    second = runs.add("second", job=runs.train("second", [3.0]))
    (found,) = curves.compare([first, runs.add("none"), second])["curves"]
    assert found["task"] == "train"
    losses = [each and [(point[0], point[2]) for point in each["points"]] for each in found["series"]]
    assert losses == [[(10, 2.0), (20, 1.0)], None, [(10, 3.0)]]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("first", "expected 2 to 8 different runs, found 1"),
        ("first,first", "found 1"),
        ("", "found 0"),
        (",".join(map(str, range(9))), "found 9"),
        ("first,missing", "the run missing does not exist"),
        ("first,../first", "does not exist"),
        ("first,damaged", "the record of damaged cannot be read"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(runs: Runs, asked: str, reason: str) -> None:
    runs.add("first")
    runs.add("damaged")
    (runs.work_dir / "damaged" / "run.json").write_text("[]")
    with pytest.raises(ApiError, match=reason):
        Comparisons(WatchedRuns(Store(runs.work_dir))).compare(LocalCall(query={"runs": asked}))
