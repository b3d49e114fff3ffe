"""The page of what resumes exactly: it is what the recorded answers of the programs give, and nothing else."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.resuming import page, proofs

ROWS = page.rows()
PROGRAMS = [path for path in sorted(page.FOLDER.glob("*/[!_]*.py")) if path.parent != proofs.TRAINERS]


def test_the_page_is_that_of_the_recorded_answers() -> None:
    for path, text in page.written(page.recorded()).items():
        assert path.read_text(encoding="utf-8") == text, "run make rows"


def test_every_program_has_a_row_and_every_row_an_answer() -> None:
    programs = {str(path.relative_to(page.FOLDER)) for path in PROGRAMS}
    assert {row["program"].split()[0] for row in ROWS.values()} == programs
    assert list(ROWS) == list(page.recorded()["rows"])
    folders = {program.split("/")[0] for program in programs}
    assert folders == {*page.GROUPS, "pixels"}
    assert [folder for folder in folders if not (page.FOLDER / folder / "requirements.txt").exists()] == []
    assert len({row.get("asked") for row in ROWS.values()}) > 20


@pytest.mark.parametrize("name", ROWS)
def test_what_a_program_saw_is_what_its_row_states(name: str) -> None:
    answer = page.recorded()["rows"][name]
    assert page.differences(ROWS[name]["expected"], answer["cases"]) == []
    assert answer["versions"]
    # Pinned, so that the same page is written again.
    folder = ROWS[name].get("environment", ROWS[name]["program"].split("/")[0])
    lock = (
        page.FOLDER / folder / "requirements.txt"
        if folder != "main"
        else page.FOLDER.parents[1] / "requirements/cpu.txt"
    )
    pins = re.findall(r"^[\w.-]+==([^\s;]+)", lock.read_text(), re.M)
    versions = [value.partition("+")[0] for value in answer["versions"].values()]
    assert [each for each in versions if not any(pin.startswith(each) for pin in pins)] == []


@pytest.mark.parametrize(
    ("cases", "found"),
    [
        ({"a": 0.0, "b": 0.3, "c": "refused"}, []),
        ({"a": 1e-9, "b": 0.3, "c": "refused"}, ["'a' is 1e-09; stated is 0"]),
        ({"a": 0, "b": 0.0, "c": "refused"}, ["'b' is 0.0; stated is 0.2"]),
        ({"a": 0, "b": 2.0, "c": "refused"}, ["'b' is 2.0; stated is 0.2"]),
        ({"a": 0, "b": 0.2, "c": "accepted"}, ["'c' is 'accepted'; stated is 'refused'"]),
        ({"a": 0, "b": 0.2, "c": 0}, ["'c' is 0.0; stated is 'refused'"]),
        ({"a": 0, "b": 0.2}, ["'c' is stated and was not seen"]),
        ({"a": 0, "b": 0.2, "c": "refused", "d": 0}, ["'d' is 0.0; stated is 'nothing'"]),
    ],
)
def test_another_answer_is_a_difference(cases: dict[str, Any], found: list[str]) -> None:
    assert page.differences({"a": 0, "b": 0.2, "c": "refused"}, cases) == found


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_what_it_saw(path: Path) -> None:
    """It knows nothing of what is expected, and prints one object as its last line."""
    text = path.read_text(encoding="utf-8")
    *_, last = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and "print" in ast.dump(node.func)
    ]
    (printed,) = last.args
    keys = [ast.literal_eval(key) for key in printed.args[0].keys]  # type: ignore[attr-defined]
    assert keys == ["library", "versions", "continued", "cases"]
    assert "rows.toml" not in text
    assert "answers.json" not in text
    assert len(text.splitlines()) <= 130


def test_the_recorded_answers_are_dated() -> None:
    assert json.loads(page.ANSWERS.read_text())["date"] >= "2026-11-29"


def test_the_page_of_trainers_is_that_of_the_recorded_proofs() -> None:
    recorded, stated = proofs.recorded(), proofs.stated()
    assert proofs.PAGE.read_text(encoding="utf-8") == proofs.written(recorded), "run benchmarks.resuming.proofs"
    assert {path.stem for path in proofs.TRAINERS.glob("*.py")} == {*stated} == {*recorded["proofs"]}
    for name, row in stated.items():
        faults = [each["fault"] for each in recorded["proofs"][name]["faults"]]
        assert sorted(faults) == sorted(proofs.FAULTS if "trainer" in row else proofs.KILLS)


def test_each_public_defect_was_found_with_its_cause() -> None:
    found = proofs.recorded()["proofs"]
    defects = {name: row for name, row in proofs.stated().items() if "defect" in row}
    assert len(defects) == 4
    assert [name for name, row in defects.items() if not proofs.is_found(row, found[name])] == []
    other = {"faults": [{"causes": ["data order"]}, {"causes": []}]}
    assert not proofs.is_found({"expected": ["data order"]}, other)
