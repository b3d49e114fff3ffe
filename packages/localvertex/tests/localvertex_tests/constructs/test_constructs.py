"""Every construct of compiled files gives the values, states and refusals that are expected of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.constructs.compile import all_constructs, compiled_documents, without_archive
from localvertex_tests.constructs.construct import FOLDER, Construct, compiled_file, documents
from localvertex_tests.constructs.package_index import index_is_reachable

import localvertex

CONSTRUCTS = all_constructs()


def run(name: str, construct: Construct, folder: Path) -> dict[str, Any]:
    """Run the checked-in file of a construct and return the record."""
    artifacts = {}
    for input_name, file_name in construct.artifacts.items():
        (folder / file_name).write_text("given")
        artifacts[input_name] = str(folder / file_name)
    options = localvertex.Options(
        work_dir=folder / "runs", max_backoff_seconds=0.05, grace_seconds=5, use_cache=construct.uses_cache
    )
    return localvertex.run(compiled_file(name), parameters=construct.parameters, artifacts=artifacts, options=options)


def parameter(name: str) -> Any:
    return pytest.param(name, marks=pytest.mark.slow) if CONSTRUCTS[name].needs_index else name


@pytest.mark.parametrize("name", [parameter(name) for name, each in CONSTRUCTS.items() if not each.refused])
def test_a_construct_gives_its_values(name: str, tmp_path: Path) -> None:
    construct = CONSTRUCTS[name]
    if construct.needs_index and not index_is_reachable():
        pytest.skip("no index of packages can be reached")
    record = run(name, construct, tmp_path)
    assert record["state"] == construct.state, record["error"]
    assert construct.error in (record["error"] or "")
    assert record["outputs"]["parameters"] == construct.outputs
    tasks = {each["path"]: each for each in record["tasks"]}
    assert construct.states.keys() | construct.tasks.keys() | construct.attempts.keys() <= tasks.keys()
    assert {path: tasks[path]["outputs"]["parameters"] for path in construct.tasks} == construct.tasks
    expected = {path: construct.states.get(path, "SUCCEEDED") for path in tasks}
    assert {path: each["state"] for path, each in tasks.items()} == expected
    assert {path: tasks[path]["attempts"] for path in construct.attempts} == construct.attempts
    for text in construct.warnings:
        assert any(text in each for each in record["warnings"]), (text, record["warnings"])


@pytest.mark.parametrize("name", [name for name, each in CONSTRUCTS.items() if each.refused])
def test_a_construct_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    with pytest.raises(localvertex.UserError) as refusal:
        run(name, CONSTRUCTS[name], tmp_path)
    assert CONSTRUCTS[name].refused in str(refusal.value)
    assert not (tmp_path / "runs").exists()


def test_the_files_are_those_that_kfp_compiles() -> None:
    files = {path.stem for path in FOLDER.iterdir()}
    assert files == set(CONSTRUCTS)
    for name in files:
        both = [documents(compiled_file(name)), compiled_documents(CONSTRUCTS[name])]
        found, expected = [without_archive(json.dumps(each, sort_keys=True)) for each in both]
        assert found == expected, name


def test_the_final_status_of_a_success_has_an_empty_error(tmp_path: Path) -> None:
    # The executors of kfp 1.8 to 2.9 read the error without asking whether there is one.
    record = run("exit_handler", CONSTRUCTS["exit_handler"], tmp_path)
    (status,) = [each for each in record["tasks"] if each["path"] == "status"]
    assert status["inputs"]["parameters"]["final"]["error"] == {}
    assert status["inputs"]["parameters"]["final"]["state"] == "SUCCEEDED"
