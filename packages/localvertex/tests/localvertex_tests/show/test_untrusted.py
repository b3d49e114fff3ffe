"""The page of a run whose names, values and files try to become part of the page."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import HTML, Artifact, ClassificationMetrics, Markdown, Metrics, Output

import localvertex
from localvertex.show import bundle
from vertex_testing.html import Page, report_data
from vertex_testing.runs import STEP

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onfocus='alert(3)' autofocus='",
    "javascript:alert(4)",
    "</style></script><!--navigation-->",
    "{{ 7 * 7 }}{% endraw %}",
    "&lt;b&gt;",
    "x" * 3000,
]
REORDERING = "safe\u202etxt.exe\u2066\x1b[31m"


@dsl.component(**STEP)
def emit(
    texts: list,
    metrics: Output[Metrics],
    markdown: Output[Markdown],
    matrix: Output[ClassificationMetrics],
    page: Output[HTML],
    other: Output[Artifact],
    script: Output[Artifact],
    secret: Output[Artifact],
) -> str:
    for text in texts:
        metrics.metadata[text] = text
        other.metadata[text] = {text: [text]}
    matrix.log_confusion_matrix(texts[:3], [[1, 2, 3]] * 3)
    images = "![image](https://tracker.example/x.png) <img src=https://tracker.example/y.png> [file](../../secret.txt)"
    with open(markdown.path, "w") as file:
        file.write("\n\n".join([*texts, f"[click]({texts[3]}) [site](https://example.com/a)", "# Title", images]))
    with open(page.path, "w") as file:
        file.write("<h1>Of the step</h1>" + "".join(texts))
    other.uri = 'https://example.com/" onclick="alert(5)'
    script.uri = texts[3]
    secret.uri = "/etc/passwd"
    return "".join(texts)


@dsl.component(**STEP)
def fail(texts: list) -> None:
    print("\n".join(texts))
    raise ValueError(" ".join(texts))


@dsl.pipeline(name="hostile")
def hostile(texts: list, items: list) -> None:
    emit(texts=texts).set_display_name(HOSTILE[0] + REORDERING)
    with dsl.ParallelFor(items=items, name=HOSTILE[1]) as item:
        emit(texts=[item, item, item, item]).set_display_name("javascript:alert(6)")
    fail(texts=texts).set_display_name(HOSTILE[2])


@pytest.fixture(scope="module")
def run_dir(compile_pipeline: Callable[[Any, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the hostile pipeline."""
    folder = tmp_path_factory.mktemp("hostile")
    file = compile_pipeline(hostile, folder / "<b>hostile.json")
    texts = [*HOSTILE, REORDERING]
    how = localvertex.Options(work_dir=folder / "runs", run_id="hostile", max_backoff_seconds=0.05)
    record = localvertex.run(file, parameters={"texts": texts, "items": HOSTILE[:4]}, options=how)
    assert (record["state"], record["failed_task"]) == ("FAILED", "fail")
    return folder / "runs" / "hostile"


@pytest.fixture(scope="module")
def page(run_dir: Path) -> Page:
    """Its report."""
    return Page((run_dir / "run.html").read_text())


def test_no_value_becomes_an_element_an_attribute_or_a_comment(page: Page) -> None:
    assert page.unbalanced == []
    assert [tag for tag, _ in page.elements] == (
        "html head meta meta meta meta title style body div noscript script script".split()
    )
    assert page.comments == []
    assert page.attributes("script") == [{"type": "application/json", "id": "report"}, {}]


def test_only_the_script_of_the_package_can_run(page: Page, run_dir: Path) -> None:
    text = (run_dir / "run.html").read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert script == bundle.script()
    (policy,) = [each["content"] for each in page.attributes("meta") if "http-equiv" in each]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'; " in policy
    assert "http" not in policy
    assert "connect-src" not in policy


def test_the_data_contains_every_value_as_it_is(run_dir: Path) -> None:
    data = report_data(run_dir / "run.html")
    assert data["run"]["parameters"]["texts"] == [*HOSTILE, REORDERING]
    (log,) = [each for name, each in data["events"] if name == "log" and each["task"] == "fail"]
    assert all(each in log["text"] for each in HOSTILE)


def test_files_outside_the_runs_are_neither_shown_nor_linked(run_dir: Path) -> None:
    (tasks,) = [each["tasks"] for name, each in report_data(run_dir / "run.html")["events"] if name == "run"]
    (outputs,) = [each["outputs"]["artifacts"] for each in tasks if each["path"] == "emit"]
    for name in ("other", "script", "secret"):
        view = outputs[name][0]["view"]
        assert (view["files"], view["place"], view["text"], view["page"]) == ([], None, None, None)
    assert outputs["page"][0]["view"]["place"].startswith("emit/")


def test_files_of_pages_and_markdown_have_the_endings_that_programs_know(run_dir: Path) -> None:
    record = json.loads((run_dir / "run.json").read_text())
    (outputs,) = [task["outputs"]["artifacts"] for task in record["tasks"] if task["path"] == "emit"]
    files = {name: Path(outputs[name][0]["uri"]) for name in ("page", "markdown", "metrics")}
    assert {name: file.name for name, file in files.items()} == {
        "page": "page.html",
        "markdown": "markdown.md",
        "metrics": "metrics",
    }
    assert files["page"].read_text().startswith("<h1>Of the step</h1>")
    assert not files["page"].with_suffix("").exists()
