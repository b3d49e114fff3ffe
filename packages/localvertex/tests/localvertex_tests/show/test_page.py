"""The page of a run: the result first, the graph with its states, and what each step received and wrote."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kfp import dsl
from kfp.dsl import ClassificationMetrics, Metrics, Model, Output

import localvertex
from localvertex.show import report


from localvertex.store import registry
from localvertex_base.compiled.load import load
from vertex_testing.html import Page
from vertex_testing.runs import STEP, Compile, Execute


@dsl.component(**STEP)
def add(n: int) -> int:
    return n + 1


@dsl.component(**STEP)
def check(n: int, metrics: Output[Metrics], quality: Output[ClassificationMetrics]) -> int:
    metrics.log_metric("checked", 0.5)
    quality.log_confusion_matrix(["cat", "dog"], [[10, 2], [0, 20]])
    quality.log_roc_curve([0.0, 0.5, 1.0], [0.0, 1.0, 1.0], [1.0, 0.5, 0.0])
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


@pytest.fixture(scope="module")
def page(failed: Path) -> Page:
    """Its page."""
    return Page((failed / "run.html").read_text())


def test_the_failure_comes_first_and_can_be_focused(page: Page) -> None:
    titles = ("Failed", "Graph", "Steps", "Configuration", "Differences from Vertex AI")
    assert [text for text in page.texts if text in titles] == list(titles)
    (box,) = [each for _, each in page.elements if each.get("id") == "failure"]
    assert (box["tabindex"], box["aria-labelledby"]) == ("0", "failure-title")
    assert "ValueError: seven is not allowed" in page.text[: page.text.index("Graph")]
    assert re.search(r"run --resume failed --work-dir '.*/a b'", page.text)
    links = [each["href"] for each in page.attributes("a") if "aria-label" not in each]
    (target,) = [each for _, each in page.elements if each.get("id") and f"#{each['id']}" in links]
    assert target["class"] == "body"


def nodes(page: Page) -> dict[str, str]:
    """Return what a screen reader reads of the graph: title -> state, of the boxes that are links."""
    labels = [each["aria-label"] for each in page.attributes("a") if "aria-label" in each]
    return dict(label.split(": ", 1) for label in labels)


def test_the_graph_has_a_box_for_each_task_with_its_state(page: Page) -> None:
    classes = [each["class"].split() for each in page.attributes("g")]
    assert sorted(kind for _, kind, _ in classes) == sorted([*["group"] * 5, *["box"] * 5])
    found = {title: re.sub(r" [\d.]+ s", "", label) for title, label in nodes(page).items()}
    assert found == {
        "always": "FAILED",
        "inner": "SUCCEEDED",
        "two": "SUCCEEDED",
        "never": "NOT_TRIGGERED",
        "each": "FAILED",
        "add": "SUCCEEDED",
        "check": "1 of 3 FAILED",
        "close": "SUCCEEDED, also after a failure",
    }
    # What the run did not come to has no part of the page that it could link to.
    assert "not reached" in page.text
    assert classes.count(["node", "box", "NOT_TRIGGERED"]) == 1


def test_an_iteration_shows_its_item_and_the_failed_one_is_open(page: Page) -> None:
    text = " ".join(page.text.split())
    assert re.findall(r"item (\d) (\d)", text) == [("0", "5"), ("1", "7"), ("2", "9")]
    folded = [each for each in page.attributes("details") if "open" not in each]
    # The steps, the two iterations that are good, "never" and the configuration.
    assert len(folded) == 6 + 2 + 1 + 1


def test_classification_metrics_are_a_table_and_a_curve(page: Page) -> None:
    shades = [each["class"] for each in page.attributes("td") if each.get("class", "").startswith("shade")]
    assert shades[:4] == ["shade3", "shade1", "shade0", "shade4"]
    assert [each["points"] for each in page.attributes("polyline")] == ["0.0,200.0 100.0,0.0 200.0,0.0"] * 2
    assert "ROC of 3 points, area 0.7500" in page.text


def test_the_configuration_is_in_the_page_once(page: Page) -> None:
    assert page.text.count("SHA-256") == 1
    assert len(re.findall(r"\bparameters\b", page.text)) == 1


@dsl.pipeline(name="many")
def many(items: list) -> None:
    with dsl.ParallelFor(items=items) as item:
        dsl.importer(artifact_uri=item, artifact_class=dsl.Artifact)


def test_of_many_iterations_the_failed_and_the_first_are_shown(
    execute: Execute, compiled: Compile, work_dir: Path
) -> None:
    file = compiled(many)
    record = execute(file, {"items": [f"https://example.com/{number}" for number in range(80)]}, run_id="many")
    page = Page((work_dir / "many" / "run.html").read_text())
    assert "and 30 more in run.json: 30 SUCCEEDED" in page.text
    assert "80 of 80 SUCCEEDED" in page.text
    assert (work_dir / "many" / "run.html").stat().st_size < 300_000
    changed = copy.deepcopy(record)
    for task in changed["tasks"]:
        if task["path"].endswith("/70"):
            task["state"] = "FAILED"
    (loop,) = steps.tree(changed, Artifacts(run_dir=work_dir / "many")).rows
    assert [row.title for row in loop.rows] == [*map(str, range(49)), "70"]


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


def test_a_run_with_nothing_new_links_the_earlier_one(execute: Execute, compiled: Compile, work_dir: Path) -> None:
    file = compiled(recurring)
    for run_id, is_finished in (("alone", True), ("first", False), ("second", True)):
        assert execute(file, {"is_finished": is_finished}, run_id=run_id)["state"] == "SUCCEEDED"
    alone, first, second = (Page((work_dir / name / "run.html").read_text()) for name in ("alone", "first", "second"))
    sentence = f"nothing new: run abc123 is already finished; {work_dir} has no record of it"
    assert sentence in " ".join(alone.text.split())
    assert "nothing new" not in first.text
    box = " ".join(second.text[: second.text.index("Graph")].split())
    assert "nothing new: same as run first" in box
    assert "../first/run.html" in [each["href"] for each in second.attributes("a")]


def test_a_page_without_a_drawing_says_so(failed: Path, tmp_path: Path) -> None:
    content = json.loads((failed / "run.json").read_text())
    pipeline = load(failed / "pipeline.json").pipeline
    root = pipeline.root.dag
    assert root is not None
    copies = {f"close-{number}": root.tasks["close"] for number in range(601)}
    object.__setattr__(root, "tasks", copies)
    page = Page(report.write(tmp_path, content, pipeline).read_text())
    assert "too many tasks for a drawing" in page.text
    assert page.attributes("g") == []


def test_a_registered_model_is_linked_with_its_folder(failed: Path) -> None:
    version = registry.add(failed.parent, {"display_name": "digits", "artifact_uri": ""})
    content = json.loads((failed / "run.json").read_text())
    for name in ("digits@1", "gone@1"):
        resource = f"projects/p/locations/l/models/{name}"
        content["models"].append({"task": "t", "artifact": "m", "uri": "https://x/y", "resource_name": resource})
    page = Page(report.write(failed, content, load(failed / "pipeline.json").pipeline).read_text())
    links = [each["href"] for each in page.attributes("a")]
    assert "../models/digits/1/" in links
    assert (failed / "../models/digits/1/").resolve() == version.folder
    assert [each for each in links if "gone" in each] == []
    assert "gone@1 in the registry, which has no such model any more" in " ".join(page.text.split())
