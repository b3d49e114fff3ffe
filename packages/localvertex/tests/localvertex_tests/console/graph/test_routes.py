"""The routes of the graph: of a run, with groups closed, and of a text that may be anything."""

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from localvertex_tests.constructs.construct import FOLDER
from localvertex_tests.support.run_records import run_record, write

from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import ApiError
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.graph import Graphs

TIME = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def graphs(tmp_path: Path) -> Graphs:
    """Return the graphs of a work folder with a run, which has not begun."""
    write(tmp_path / "nested" / "run.json", run_record(tmp_path, "nested", TIME, tasks=[]))
    write(tmp_path / "nested" / "pipeline.json", (FOLDER / "nested_loops.json").read_text())
    return Graphs(tmp_path)


def ids(box: dict[str, Any]) -> set[str]:
    """Return the ids of all boxes that are drawn."""
    return {each["id"] for each in box["boxes"]}.union(*(ids(each) for each in box["boxes"]))


def test_a_closed_group_is_drawn_without_its_tasks(graphs: Graphs) -> None:
    whole = graphs.of_run(LocalCall(path={"id": "nested"}))
    outer = next(each for each in whole["boxes"] if each["is_open"])
    assert outer["kind"] == "for each"
    closed = graphs.of_run(LocalCall(path={"id": "nested"}, query={"closed": f"{quote(outer['id'], safe='')},other"}))
    assert ids(closed) == {each for each in ids(whole) if not each.startswith(f"{outer['id']}/")}
    assert not any(each["is_open"] for each in closed["boxes"])


def test_a_file_that_has_not_run_is_drawn(graphs: Graphs) -> None:
    for name in ("nested_loops.json", "importer_to_a_workspace.yaml"):
        drawn = graphs.of_content(LocalCall(body={"content": (FOLDER / name).read_text()}))
        assert drawn["boxes"]
        json.dumps(drawn, allow_nan=False)


@pytest.mark.parametrize("content", ["", "{", "a: [", "null", "\ud800", '{"root": {}}', 7, "x" * 10_000])
def test_a_text_that_is_no_pipeline_is_refused_in_one_line(graphs: Graphs, content: Any) -> None:
    with pytest.raises((UserError, ApiError)) as refused:
        graphs.of_content(LocalCall(body={"content": content}))
    assert "\n" not in str(refused.value)
    assert "tmp" not in str(refused.value)


TASK = {"componentRef": {"name": "comp-step"}}


def text(tasks: dict[str, Any], component: dict[str, Any] | None = None) -> str:
    """Return a compiled file with these tasks."""
    return json.dumps(
        {
            "pipelineInfo": {"name": "drawn"},
            "schemaVersion": "2.1.0",
            "root": {"dag": {"tasks": tasks}},
            "components": {"comp-step": component or {"executorLabel": "exec-step"}},
            "deploymentSpec": {"executors": {"exec-step": {"container": {"image": "python:3.11"}}}},
        }
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (text({}), "the pipeline has no tasks"),
        (text({"a": TASK | {"dependentTasks": ["a"]}}), "root: tasks wait for each other: a -> a"),
        (text({"a": TASK}, {"dag": {"tasks": {"b": TASK}}}), "components contain each other: comp-step -> comp-step"),
    ],
)
def test_a_file_without_an_order_of_tasks_has_no_graph_for_a_reason(graphs: Graphs, content: str, reason: str) -> None:
    with pytest.raises(ApiError) as refused:
        graphs.of_content(LocalCall(body={"content": content}))
    assert str(refused.value) == reason


def test_a_task_without_its_component_is_a_step(graphs: Graphs) -> None:
    tasks = {"a": TASK | {"dependentTasks": ["gone"]}, "b": {"componentRef": {"name": "gone"}, "dependentTasks": ["a"]}}
    drawn = graphs.of_content(LocalCall(body={"content": text(tasks)}))
    assert [(each["id"], each["kind"]) for each in drawn["boxes"]] == [("a", "step"), ("b", "step")]
    assert len(drawn["lines"]) == 1


@pytest.mark.parametrize("run_id", ["gone", "..", ".", "api", "nested/../nested", "a\0"])
def test_only_a_run_of_the_work_directory_has_a_graph(graphs: Graphs, run_id: str) -> None:
    with pytest.raises(ApiError, match="does not exist"):
        graphs.of_run(LocalCall(path={"id": run_id}))


def test_a_pipeline_without_its_copy_is_refused_and_another_copy_is_read_anew(graphs: Graphs, tmp_path: Path) -> None:
    call = LocalCall(path={"id": "nested"})
    assert len(ids(graphs.of_run(call))) > 1
    copy = tmp_path / "nested" / "pipeline.json"
    copy.write_text((FOLDER / "importer_alone.json").read_text())
    os.utime(copy, (1, 1))
    assert "importer" in {each["kind"] for each in graphs.of_run(call)["boxes"]}
    copy.unlink()
    with pytest.raises(UserError, match="no copy"):
        graphs.of_run(call)
