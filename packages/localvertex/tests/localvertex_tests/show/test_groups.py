"""The groups of a form, and the values that descriptions list."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.compiled.load import load
from localvertex._base.compiled.parameters import ParameterSpec, ParameterType
from localvertex.show.view.fields import of_file
from localvertex.show.view.groups import documented_choices, documented_problem, split_description


def text(description: str = "", default: Any = "a") -> ParameterSpec:
    return ParameterSpec(type=ParameterType.STRING, description=description, default=default, is_optional=True)


def declared(*names: str) -> dict[str, ParameterSpec]:
    return {name: text() for name in names}


def test_heading_lines_are_the_groups_and_no_part_of_the_description() -> None:
    description = "Trains.\nData: b, a; c\nIt costs money.\nMachine: ; gpu, gone\nData: ; d"
    rest, groups = split_description(description, declared("a", "b", "c", "d", "gpu", "left"))
    assert rest == "Trains.\nIt costs money."
    assert groups == [
        {"title": "Data", "names": ["b", "a"], "more": ["c", "d"]},
        {"title": "Machine", "names": [], "more": ["gpu"]},
        {"title": "Other", "names": ["left"], "more": []},
    ]


def test_a_line_named_other_and_the_parameters_that_no_line_names_are_one_group() -> None:
    _, groups = split_description("Other: b", declared("a", "b"))
    assert groups == [{"title": "Other", "names": ["b", "a"], "more": []}]


@pytest.mark.parametrize(
    "line", ["Note: training is slow", "See: https://a/b", "data: a", "Data: a b", "Data:", "Data: a,", "Data: x, y"]
)
def test_prose_is_no_heading_line(line: str) -> None:
    assert split_description(line, declared("a")) == (line, [{"title": "", "names": ["a"], "more": []}])


def test_every_parameter_is_in_one_group_whatever_the_description_says() -> None:
    names = [f"n{number}" for number in range(30)] + ["learning_rate", "machine_type", "source_uri", "endpoint"]
    for description in ("", "A: n1, n1; n1, n2\nB: n1", "A: " + ", ".join(names)):
        _, groups = split_description(description, declared(*names))
        found = [each for group in groups for each in (*group["names"], *group["more"])]
        assert sorted(found) == sorted(names)


def test_many_parameters_without_lines_are_grouped_by_their_names_and_only_required_ones_are_unfolded() -> None:
    parameters = declared(*(f"x{number}" for number in range(20)), "gpu_count", "batch_size", "train_data")
    parameters["bucket"] = ParameterSpec(type=ParameterType.STRING)
    _, groups = split_description("", parameters)
    assert [(each["title"], each["names"], each["more"][:1]) for each in groups] == [
        ("Machine", [], ["gpu_count"]),
        ("Data", ["bucket"], ["train_data"]),
        ("Training", [], ["batch_size"]),
        ("Other", [], ["x0"]),
    ]


@pytest.mark.parametrize(
    ("description", "choices"),
    [
        ("Update rule: adam, rmsprop, or sgd (with momentum 0.9).", ["adam", "rmsprop", "sgd"]),
        ("STANDARD, SPOT (cheaper, may be preempted) or adam (waits).", ["STANDARD", "SPOT", "adam"]),
        ("Either: `adam` or `sgd`; the default is fast", ["adam", "sgd"]),
        ("GPU type, e.g. adam, sgd; empty for none", []),
        ("Use adam, sgd or rmsprop.", []),
        ("A path: adam, or a file of your own", []),
        ("Rule: sgd or rmsprop", []),
        ("", []),
        ("or", []),
        ("(" * 5000, []),
    ],
)
def test_values_that_a_description_lists(description: str, choices: list[str]) -> None:
    assert documented_choices(text(description, "adam")) == choices


@pytest.mark.parametrize("description", [" " * 100_000, "(" * 100_000, "Data:" + " " * 100_000 + "!"])
def test_a_long_description_is_read_at_once(description: str) -> None:
    start = time.process_time()
    documented_choices(text(description))
    split_description(description, declared("a"))
    assert time.process_time() - start < 0.5


def test_numbers_and_parameters_without_default_have_no_documented_choices() -> None:
    spec = ParameterSpec(type=ParameterType.STRING, description="Rule: a or b")
    assert documented_choices(spec) == []
    assert documented_choices(ParameterSpec(type=ParameterType.NUMBER_INTEGER, description="1 or 2", default=1)) == []


def test_the_page_of_a_run_has_no_heading_lines(light_pipeline: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "light.json"
    about = light_pipeline["pipelineInfo"] | {"description": "Trains.\nData: x\nIt costs money."}
    path.write_text(json.dumps(light_pipeline | {"pipelineInfo": about}))
    assert of_file(load(path).pipeline)["description"] == "Trains.\nIt costs money."


def number(description: str, default: float | None = None) -> ParameterSpec:
    return ParameterSpec(type=ParameterType.NUMBER_DOUBLE, description=description, default=default)


@pytest.mark.parametrize(
    ("spec", "value", "is_wrong"),
    [
        (number("Passes over the data (1 to 100).", 20), -1, True),
        (number("Passes over the data (1 to 100).", 20), 101, True),
        (number("Passes over the data (1 to 100).", 20), 100, False),
        (number("Peak rate (1e-12 to 1e+06).", 0.1), 0, True),
        (number("Peak rate (1e-12 to 1e+06).", 0.1), 1e-12, False),
        (number("Score (-0.5 to 0.5)"), -0.6, True),
        (number("Number (1 to 5)"), 0, True),
        # The default shows that it is about something else.
        (number("Passes; few data need more (1 to 5).", 20), 30, False),
        (number("Passes, 1 to 100.", 20), 200, False),
        (number("Pages (a to b), (1 to b), (1 to 1e)", 20), 200, False),
        (text("Text (1 to 5)", "9"), "7", False),
    ],
)
def test_a_number_outside_of_a_documented_range_is_wrong(spec: ParameterSpec, value: Any, is_wrong: bool) -> None:
    assert bool(documented_problem(spec, value)) == is_wrong


def test_a_path_that_has_to_exist_does(tmp_path: Path) -> None:
    spec = text("`digits`, an existing folder, or `tfds:NAME`.", "digits")
    (tmp_path / "photos").mkdir()
    for value in ("digits", str(tmp_path / "photos"), "gs://bucket/x", "tfds:mnist", "/gcs/bucket/x", "~"):
        assert documented_problem(spec, value) == ""
    for value in (str(tmp_path / "none"), "photos", "my/photos", "", "digit"):
        assert documented_problem(spec, value).endswith("expected the absolute path of an existing file or folder")
    assert documented_problem(text("A folder to write.", "digits"), "/none") == ""
