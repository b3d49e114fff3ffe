"""Runs side by side: what differs is shown, nothing is called best without a reason, and no file outside is shown."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.console.comparing.runs import Runs, line, metric
from localvertex_tests.support.run_records import TASK, run_record

from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.console.comparing import curves, tables
from localvertex.console.comparing.comparison import Comparisons
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.record import WatchedRuns

PNG = b"\x89PNG\r\n\x1a\n0000"


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


def test_the_images_on_which_runs_differ(runs: Runs) -> None:
    both = [line("same", "cat"), line("both-wrong", "dog")]
    first = runs.add(
        "first", [*both, line("a", "cat"), line("b", "dog", 0.6), line("c", "dog", 0.8), line("only", "cat")]
    )
    second = runs.add("second", [*both, line("a", "dog"), line("b", "cat"), line("c", "owl", 0.7), line("a", "cat")])
    found = runs.predictions(first, second)
    assert found["num_common"] == 5
    counts = {tuple(each["is_right"]): (each["num_images"], each["num_differing"]) for each in found["groups"]}
    assert counts == {(True, True): (1, 0), (True, False): (1, 1), (False, True): (1, 1), (False, False): (2, 1)}
    shown = {tuple(each["is_right"]): [image["file_name"] for image in each["images"]] for each in found["groups"]}
    assert shown == {(True, True): [], (True, False): ["a"], (False, True): ["b"], (False, False): ["c"]}
    (row,) = next(each["images"] for each in found["groups"] if each["is_right"] == [False, False])
    assert row["predictions"] == [
        {"predicted": "dog", "probability": 0.8, "is_right": False},
        {"predicted": "owl", "probability": 0.7, "is_right": False},
    ]


def test_the_line_in_the_docs_is_a_prediction(runs: Runs) -> None:
    page = (Path(__file__).parents[4] / "docs" / "console.md").read_text()
    (example,) = [each for each in page.splitlines() if each.startswith('{"file_name"')]
    (group,) = runs.predictions(runs.add("a", [example]), runs.add("b", [line("cats/7.png", "cat")]))["groups"]
    assert [each["predicted"] for each in group["images"][0]["predictions"]] == ["dog", "cat"]


def test_an_image_is_shown_only_from_a_file_of_a_run_or_from_its_line(runs: Runs, tmp_path: Path) -> None:
    good = "data:image/png;base64,iVBORw0KGgo="
    bad = ["javascript:alert(1)", "data:image/svg+xml;base64,PHN2Zz4=", "https://example.com/a.png", f'{good}"x', 7]
    (tmp_path / "outside.png").write_bytes(PNG)
    names = [
        "in.png",
        "../../../../outside.png",
        "link.png",
        str(tmp_path / "outside.png"),
        "text.png",
        "../found",
        "\0",
    ]
    lines = [line("given", "dog", image=good), *(line(f"bad-{n}", "dog", image=each) for n, each in enumerate(bad))]
    first = runs.add("first", [*lines, *(line(each, "dog") for each in names)])
    second = runs.add(
        "second", [line(each["file_name"], "cat") for each in [*lines, *({"file_name": n} for n in names)]]
    )
    folder = runs.work_dir / "first" / "train" / "images"
    (folder / "in.png").write_bytes(PNG)
    (folder / "text.png").write_text("no image")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    images = {
        row["file_name"]: row["image"] for each in runs.predictions(first, second)["groups"] for row in each["images"]
    }
    address = "/local/runs/first/artifact/file?task=train&side=outputs&name=images&index=0&file=in.png"
    assert {name: each for name, each in images.items() if each} == {"given": good, "in.png": address}


def test_curves_are_those_of_each_run(runs: Runs) -> None:
    first = runs.add("first", job=runs.train("first", [2.0, 1.0]))
    second = runs.add("second", job=runs.train("second", [3.0]))
    (found,) = curves.compare([first, runs.add("none"), second])["curves"]
    assert found["task"] == "train"
    losses = [each and [(point[0], point[2]) for point in each["points"]] for each in found["series"]]
    assert losses == [[(10, 2.0), (20, 1.0)], None, [(10, 3.0)]]


def test_a_run_without_predictions_or_with_a_damaged_file_is_named(runs: Runs) -> None:
    first, none = runs.add("first", [line("a", "cat")]), runs.add("none", ["an ordinary text"])
    torn = runs.add("torn", [line("a", "cat"), '{"file_name": "b'])
    assert runs.predictions(first, none)["sources"] == [
        {"task": "train", "artifact": "found", "num_images": 1, "problem": ""},
        None,
    ]
    found = runs.predictions(first, torn)
    assert found["groups"] == []
    assert found["sources"][1]["problem"].startswith("line 2: ")


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
