"""Files that kfp 1.8, 2.0, 2.4, 2.9 and 2.14 compiled give the values of their time."""

from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.constructs.older.compile import FILES, FOLDER
from localvertex_tests.constructs.package_index import index_is_reachable

import localvertex
from localvertex._base.compiled.load import load

NEVER = "NOT_TRIGGERED"
SECOND_MINORS = ("2_0", "2_4", "2_9", "2_14")

WRITE = "it's|3|1.5|{\"a\": 2.5}|--text=it's --optional "
COMMANDS = {
    "write": WRITE,
    "condition-1/write-2": f'{WRITE}|4|0.5|{{"c": 1}}|--text={WRITE} --optional given',
    "condition-2": NEVER,
    "for-loop-4/0/write-3": 'a|1|0.5|{"d": 1}|--text=a --optional ',
    "for-loop-4/1/write-3": 'b|1|0.5|{"d": 1}|--text=b --optional ',
    "inner/read": "it's 3",
}
WRITE_1_8 = "it's|3|1.5|{\"a\": [1, 2.5]}|--text=it's --none"
COMMANDS_1_8 = {
    "write": WRITE_1_8,
    "read": "it's",
    "condition-more-1/write-2": f"{WRITE_1_8}|4|0.5|{{}}|--text={WRITE_1_8} --optional given",
    "condition-never-2": NEVER,
    "for-loop-4/0/write-3": 'a|1|0.5|{"item": "x"}|--text=a --none',
    "for-loop-4/1/write-3": 'b|1|0.5|{"item": "x"}|--text=b --none',
}
DESCRIBED = "(\"it's\", 3, 0.5, True, [1, 'a'], {'k': {'deep': 1.5}})"
STEPS = {
    "exit-handler-1/describe": DESCRIBED,
    "exit-handler-1/several": {"n": 4, "text": "n is 3"},
    "exit-handler-1/several-2": {"n": 5, "text": "n is 4"},
    "exit-handler-1/consume": "n is 3 3",
    "status": "SUCCEEDED exit-handler-1",
}
STEPS_1_8 = {path.removeprefix("exit-handler-1/"): value for path, value in STEPS.items() if path != "status"}
FLOW = {
    "condition-branches-1/condition-2": NEVER,
    "condition-branches-1/condition-4": NEVER,
    "for-loop-6/0/several-4": {"n": 2, "text": "n is 1"},
    "join": "n is 1+n is 2",
    "join-data": "n is 1+n is 2",
}


def check(name: str, expected: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """Run a file and compare states and output parameters of the tasks named."""
    options = localvertex.Options(work_dir=tmp_path / "runs", use_cache=False)
    record = localvertex.run(FOLDER / f"{name}.json", options=options)
    assert record["state"] == "SUCCEEDED", record["error"]
    tasks = {each["path"]: each for each in record["tasks"]}
    for path, value in expected.items():
        outputs = tasks[path]["outputs"]["parameters"]
        found = tasks[path]["state"] if value == NEVER else outputs
        assert found == (value if value == NEVER or isinstance(value, dict) else {next(iter(outputs)): value}), path
    unexpected = {path for path, each in tasks.items() if each["state"] == NEVER} - set(expected)
    assert unexpected == set()
    return record


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_a_file_is_read_without_a_problem(name: str) -> None:
    assert load(FOLDER / f"{name}.json").pipeline.problems == []


@pytest.mark.parametrize("minor", SECOND_MINORS)
def test_container_commands(minor: str, tmp_path: Path) -> None:
    record = check(f"kfp_{minor}_commands", COMMANDS, tmp_path)
    assert record["outputs"]["parameters"] == {"Output": "it's 3"}
    (imported,) = [each for each in record["tasks"] if each["name"] == "importer"]
    artifact = imported["outputs"]["artifacts"]["artifact"][0]
    assert (artifact["uri"], artifact["metadata"]) == ("https://host.example/data.csv", {"rows": 3})
    assert {each["display_name"] for each in record["tasks"]} >= {"Each item"}


def test_container_commands_of_kfp_1_8(tmp_path: Path) -> None:
    record = check("kfp_1_8_commands", COMMANDS_1_8, tmp_path)
    (imported,) = [each for each in record["tasks"] if each["name"] == "importer"]
    assert imported["outputs"]["artifacts"]["artifact"][0]["uri"] == "https://host.example/data.csv"


@pytest.mark.parametrize("minor", ["2_4", "2_9", "2_14"])
def test_python_steps(minor: str, tmp_path: Path) -> None:
    record = check(f"kfp_{minor}_steps", STEPS, tmp_path)
    metrics = {each["name"]: each["value"] for each in record["metrics"]}
    assert metrics == {"accuracy": 0.5}


@pytest.mark.parametrize("minor", ["2_4", "2_9", "2_14"])
def test_one_of_and_collected(minor: str, tmp_path: Path) -> None:
    record = check(f"kfp_{minor}_flow", FLOW, tmp_path)
    expected = {"chosen": "n is 2", "joined": "n is 1+n is 2", "data": "n is 1+n is 2"}
    assert record["outputs"]["parameters"] == expected


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize(("name", "expected"), [("kfp_1_8_steps", STEPS_1_8), ("kfp_2_0_steps", STEPS)])
def test_python_steps_that_install_their_kfp(name: str, expected: dict[str, Any], tmp_path: Path) -> None:
    if not index_is_reachable():
        pytest.skip("no index of packages can be reached")
    record = check(name, expected, tmp_path)
    assert {each["name"]: each["value"] for each in record["metrics"]} == {"accuracy": 0.5}
