"""The report of a run: the data that the console's view of a run reads, and what is left out of a large one."""

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kfp import dsl
from kfp.dsl import HTML, ClassificationMetrics, Metrics, Model, Output
from markdown_it import MarkdownIt

import localvertex
from localvertex._base.compiled.load import load
from localvertex.credentials.secrets import Secrets
from localvertex.show import bundle, report
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Compile, Execute


@dsl.component(**STEP)
def add(n: int) -> int:
    return n + 1


@dsl.component(**STEP)
def check(n: int, metrics: Output[Metrics], quality: Output[ClassificationMetrics], page: Output[HTML]) -> int:
    metrics.log_metric("checked", 0.5)
    quality.log_confusion_matrix(["cat", "dog"], [[10, 2], [0, 20]])
    quality.log_roc_curve([0.0, 0.5, 1.0], [0.0, 1.0, 1.0], [1.0, 0.5, 0.0])
    with open(page.path, "w", encoding="utf-8") as file:
        large = f"<!--{'é' * 500_000}-->" if n == 5 else ""
        file.write(f"<style>h1 {{ color: red }}</style>{large}<h1>Checked {n}</h1>")
    print("before the last lines", *range(20_000), sep="\n")
    if n == 7:
        raise ValueError("seven is not allowed")
    return n


@dsl.component(**STEP)
def close() -> None:
    pass


@dsl.pipeline(name="inner")
def inner(n: int) -> int:
    return add(n=n).output


@dsl.pipeline(name="whole")
def whole(n: int = 1, items: list = [5, 7, 9]) -> None:  # noqa: B006 - the compiled default
    with dsl.ExitHandler(close(), name="always"):
        nested = inner(n=n)
        with dsl.If(nested.output == 2, name="two"):
            add(n=2)
            with dsl.If(nested.output == 3, name="never"):
                add(n=3).set_display_name("not reached")
        with dsl.ParallelFor(items=items, name="each") as item:
            check(n=item)


@pytest.fixture(scope="module")
def failed(compile_pipeline: Callable[[Any, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the pipeline, which fails in one iteration of its loop."""
    folder = tmp_path_factory.mktemp("page")
    file = compile_pipeline(whole, folder / "whole.json")
    record = localvertex.run(file, options=localvertex.Options(work_dir=folder / "a b", run_id="failed"))
    assert record["state"] == "FAILED"
    return folder / "a b" / "failed"


def tasks_of(data: Any) -> dict[str, Any]:
    """Return the entries of a report by their paths."""
    (tasks,) = [each["tasks"] for name, each in data["events"] if name == "run"]
    return {each["path"]: each for each in tasks}


def test_the_report_has_the_error_the_last_lines_and_the_command_that_resumes_the_run(failed: Path) -> None:
    data = report_data(failed / "run.html")
    assert "ValueError: seven is not allowed" in data["run"]["error"]
    assert any("seven is not allowed" in each for each in data["run"]["failure"]["lines"])
    assert re.search(r"run --resume failed --work-dir '.*/a b'", data["resume"])
    assert data["run"]["defaults"] == {"n": 1, "items": [5, 7, 9]}


def test_the_report_has_the_record_with_the_graph_and_the_content_of_artifacts(failed: Path) -> None:
    data = report_data(failed / "run.html")
    record = json.loads((failed / "run.json").read_text())
    found = tasks_of(data)
    assert [(each["path"], each["state"]) for each in record["tasks"]] == [
        (path, each["state"]) for path, each in found.items()
    ]
    assert [each["id"] for each in data["graph"]["boxes"]]
    checked = next(each for path, each in found.items() if path.endswith("0/check"))
    (page,), (quality,) = checked["outputs"]["artifacts"]["page"], checked["outputs"]["artifacts"]["quality"]
    assert page["view"]["page"].endswith("<h1>Checked 5</h1>")
    assert (failed / page["view"]["place"]).read_text() == page["view"]["page"]
    assert quality["view"]["metadata"]["confusionMatrix"]["rows"] == [{"row": [10, 2]}, {"row": [0, 20]}]


def test_of_a_long_log_the_last_lines_are_in_the_report(failed: Path) -> None:
    logs = [each for name, each in report_data(failed / "run.html")["events"] if name == "log"]
    (first, *_) = [each for each in logs if each["task"].endswith("1/check")]
    whole_log = (failed / first["task"] / first["file"]).read_bytes()
    assert (first["size"], first["end"]) == (len(whole_log), len(whole_log))
    assert 0 < len(first["text"]) <= 64 << 10
    assert whole_log[first["offset"] :].decode() == first["text"]
    assert whole_log[first["offset"] - 1 : first["offset"]] == b"\n"


def test_a_report_without_room_keeps_all_states_and_the_values_and_logs_of_failed_steps(
    failed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads((failed / "run.json").read_text())
    monkeypatch.setattr(report, "_MAX_VALUES_BYTES", 4_000)
    monkeypatch.setattr(report, "_MAX_LOGS_BYTES", 20_000)
    page = report.write(failed, content, load(failed / "pipeline.json").pipeline, Secrets().remove)
    found = tasks_of(report_data(page))
    assert {path: each["state"] for path, each in found.items()} == {
        each["path"]: each["state"] for each in content["tasks"]
    }
    without = [path for path, each in found.items() if each["note"] == "its values are in run.json"]
    assert 0 < len(without) < len(found)
    assert [path for path in without if found[path]["state"] == "FAILED"] == []
    logs = [each for name, each in report_data(page)["events"] if name == "log"]
    assert logs[0]["task"].endswith("1/check")
    assert sum(len(each["text"]) for each in logs) < 21_000


def test_a_page_without_room_leaves_room_for_the_values_of_other_steps(
    failed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads((failed / "run.json").read_text())
    monkeypatch.setattr(report, "_MAX_VALUES_BYTES", 2_000_000)
    page = report.write(failed, content, load(failed / "pipeline.json").pipeline, Secrets().remove)
    found = tasks_of(report_data(page))
    assert [path for path, each in found.items() if each["note"] == "its values are in run.json"] == []
    artifacts = [each["outputs"]["artifacts"] for path, each in found.items() if path.endswith("/check")]
    pages = [each["page"][0]["view"]["page"] for each in artifacts if "page" in each]
    assert pages == [None, "<style>h1 { color: red }</style><h1>Checked 9</h1>"]


def test_secrets_are_removed_from_the_data_whatever_its_spelling_and_not_from_the_script(failed: Path) -> None:
    secrets, secret = Secrets(), "planted 'é\"</b>"
    secrets.learn({"A_PASSWORD": "default", "A_TOKEN": secret})
    content = json.loads((failed / "run.json").read_text())
    (metrics,) = [
        each["outputs"]["artifacts"]["metrics"][0] for each in content["tasks"] if each["path"].endswith("0/check")
    ]
    file = Path(metrics["uri"])
    try:
        for text in (
            secret,
            json.dumps({"token": secret}),
            html.escape(secret),
            MarkdownIt("js-default").render(secret),
        ):
            file.write_text(text)
            page = report.write(failed, content, load(failed / "pipeline.json").pipeline, secrets.remove).read_text()
            assert "planted" not in page, text
            assert f"<script>{bundle.script()}</script>" in page
    finally:
        file.unlink()


@dsl.pipeline(name="many")
def many(items: list) -> None:
    with dsl.ParallelFor(items=items) as item:
        dsl.importer(artifact_uri=item, artifact_class=dsl.Artifact)


def test_a_run_of_many_iterations_is_in_the_report(execute: Execute, compiled: Compile, work_dir: Path) -> None:
    file = compiled(many)
    execute(file, {"items": [f"https://example.com/{number}" for number in range(80)]}, run_id="many")
    found = tasks_of(report_data(work_dir / "many" / "run.html"))
    assert len([each for each in found.values() if each["kind"] == "iteration"]) == 80


@dsl.component(**STEP)
def plan(is_finished: bool) -> NamedTuple("Plan", [("run_id", str), ("has_nothing_new", bool)]):
    from collections import namedtuple

    return namedtuple("Plan", ["run_id", "has_nothing_new"])("abc123", is_finished)


@dsl.component(**STEP)
def train(metrics: Output[Metrics], model: Output[Model]) -> None:
    metrics.log_metric("accuracy", 0.875)
    with open(model.path, "w") as file:
        file.write("weights")


@dsl.pipeline(name="recurring")
def recurring(is_finished: bool) -> None:
    planned = plan(is_finished=is_finished).set_caching_options(False)
    with dsl.If(planned.outputs["has_nothing_new"] == False):  # noqa: E712 - this builds an expression
        train().set_caching_options(False)


def test_a_run_with_nothing_new_names_the_earlier_one(execute: Execute, compiled: Compile, work_dir: Path) -> None:
    file = compiled(recurring)
    for run_id, is_finished in (("alone", True), ("first", False), ("second", True)):
        assert execute(file, {"is_finished": is_finished}, run_id=run_id)["state"] == "SUCCEEDED"
    found = [report_data(work_dir / name / "run.html")["run"] for name in ("alone", "first", "second")]
    missing = f"Nothing new: run abc123 is already finished; {work_dir} has no record of it"
    model = work_dir / "first" / "condition-1" / "train" / "model"
    assert [(each["outcome"]["sentence"], each["outcome"]["earlier_run"]) for each in found] == [
        (missing, ""),
        (f"Made a model in {model}", ""),
        (f"Nothing new: same as run first; its model is in {model}", "first"),
    ]


def test_a_report_without_a_drawing_has_the_reason(failed: Path) -> None:
    content = json.loads((failed / "run.json").read_text())
    pipeline = load(failed / "pipeline.json").pipeline
    root = pipeline.root.dag
    assert root is not None
    copies = {f"close-{number}": root.tasks["close"] for number in range(601)}
    object.__setattr__(root, "tasks", copies)
    data = report_data(report.write(failed, content, pipeline, Secrets().remove))
    assert data["graph"] is None
    assert data["problem"] == "the pipeline has too many tasks or dependencies for a drawing"
