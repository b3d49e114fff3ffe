"""What a run's page says of its results: the metrics with their steps, the worst mistakes, the evaluation report."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import TASK, run_record, write
from playwright.sync_api import Browser, expect

from localvertex._base.compiled.load import load
from localvertex.api.rest.store import Store
from localvertex.console.runs.outputs import RunOutputs
from localvertex.show import report
from localvertex.show.view import mistakes
from vertex_testing.browser import browser as browser, needs_chromium, opened, opened_report
from vertex_testing.server import Server

COMPILED = Path(__file__).parents[2] / "constructs" / "compiled" / "only_a_pipeline.json"

CREATED = "2026-01-01T00:00:00.000Z"

STEP = "exit-handler-1/condition-2/evaluate"

IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)

LOG = """[KFP Executor 2026-11-28 12:20:53,227 INFO]: Got executor_input:
{
    "inputs": {
        "artifacts": {
            "dataset": "a dumped address"
        }
    }
}
the step's own line
"""


def line(number: int, **fields: Any) -> str:
    content = {"file_name": f"cats/{number:02d}.png", "label": "cat", "predicted": "dog", "split": "test"}
    return json.dumps(content | {"probability": number / 100, "image": IMAGE} | fields)


ODD = [
    line(1, label="dog"),
    line(2, image="data:image/svg+xml;base64,AAAA"),
    line(3, image="https://example.com/a.png"),
    line(4, image=f'{IMAGE}" onerror="alert(1)'),
    line(5, probability="0.9"),
    line(6, probability=float("nan")),
    line(7, label=None),
    line(8, image=IMAGE + "A" * 200_000),
    '{"image": ',
    '["image"]',
    '"image"',
    "\x00\xff image",
]
"""Lines that are no mistakes with an image."""


def artifact(path: Path, kind: str, **metadata: Any) -> list[dict[str, Any]]:
    return [{"type": {"schemaTitle": kind}, "uri": str(path), "name": path.name, "metadata": metadata}]


def write_run(work_dir: Path, run_id: str, **fields: Any) -> Path:
    """Write a run with an evaluation in two groups."""
    folder = work_dir / run_id / STEP
    folder.mkdir(parents=True)
    (folder / "predictions").write_text("\n".join([*ODD, *(line(number) for number in range(50, 90))]) + "\n")
    (folder / "report.html").write_text("<h1>Evaluated</h1>")
    (folder / "log.txt").write_text(LOG)
    artifacts = {
        "predictions": artifact(folder / "predictions", "system.Artifact"),
        "report": artifact(folder / "report.html", "system.HTML"),
        "classes": artifact(folder / "none", "system.ClassificationMetrics"),
        "metrics": artifact(folder / "no", "system.Metrics", accuracy=0.96),
    }
    values = {
        "path": STEP,
        "title": "evaluate",
        "display_name": "evaluate",
        "name": "evaluate",
        "log": f"{STEP}/log.txt",
    }
    tasks = [
        {**TASK, "outputs": {"parameters": {}, "artifacts": {}}},
        {**TASK, **values, "outputs": {"parameters": {"Output": 0.995}, "artifacts": artifacts}},
    ]
    metrics = [
        {"task": STEP, "artifact": "metrics", "name": "accuracy", "value": 0.96},
        {"task": "train", "artifact": "metrics", "name": "accuracy", "value": 0.9},
    ]
    content = run_record(work_dir, run_id, CREATED, **({"tasks": tasks, "metrics": metrics} | fields))
    write(work_dir / run_id / "run.json", content)
    (work_dir / run_id / "pipeline.json").write_text(COMPILED.read_text())
    report.write(work_dir / run_id, content | {"outcome": None}, load(COMPILED).pipeline, lambda data: data)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    work_dir = tmp_path_factory.mktemp("results") / "runs"
    write_run(work_dir, "evaluated")
    write_run(work_dir, "stopped", state="CANCELLED", stopped_by_signal=2)
    with Server(work_dir) as found:
        yield found


def test_the_worst_mistakes_are_the_most_probable_ones_with_an_image(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "run")
    found = mistakes.worst(folder / "predictions")
    assert [each["probability"] for each in found] == [number / 100 for number in range(89, 59, -1)]
    assert found[0] == {
        "file_name": "cats/89.png",
        "label": "cat",
        "predicted": "dog",
        "probability": 0.89,
        "image": IMAGE,
    }
    assert mistakes.worst(folder / "missing") == []


def test_metrics_of_one_name_are_distinguished_by_the_names_of_their_steps(tmp_path: Path) -> None:
    write_run(tmp_path, "run")
    outputs = RunOutputs(Store(tmp_path)).summary("run").content or {}
    assert outputs["outputs"]["metrics"] == {"evaluate/accuracy": 0.96, "train/accuracy": 0.9}


def test_only_predictions_of_the_run_are_read(server: Server, tmp_path: Path) -> None:
    path = f"/local/runs/evaluated/mistakes?task={STEP}"
    assert len(server.get(path).json()["mistakes"]) == 30
    record = server.work_dir / "evaluated" / "run.json"
    before = record.read_text()
    (tmp_path / "predictions").write_text(line(3))
    try:
        record.write_text(before.replace(f"{STEP}/predictions", "train/../../../x").replace("/x", f"{tmp_path}/x"))
        assert server.get(path).json() == {"mistakes": []}
    finally:
        record.write_text(before)
    assert server.get("/local/runs/evaluated/mistakes?task=train").json() == {"mistakes": []}
    assert server.get("/local/runs/evaluated/mistakes?task=..").json() == {"mistakes": []}


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_results_are_on_the_page_and_in_the_report(browser: Browser, server: Server, width: int) -> None:
    file = server.work_dir / "evaluated" / "run.html"
    for view in (
        lambda: opened(browser, server, "#/runs/evaluated", width=width),
        lambda: opened_report(browser, file),
    ):
        with view() as page:
            mistaken = page.get_by_role("region", name="Worst mistakes")
            expect(mistaken.get_by_role("listitem")).to_have_count(30)
            expect(mistaken.get_by_role("listitem").first).to_contain_text("cat")
            expect(mistaken.get_by_role("listitem").first).to_contain_text("dog 89%")
            image = mistaken.get_by_role("img").first
            image.scroll_into_view_if_needed()
            expect(image).to_have_js_property("naturalWidth", 1)
            results = page.get_by_role("region", name="Results")
            expect(results).to_contain_text("accuracy")
            expect(results.locator("dt").filter(has_text="evaluate")).to_have_count(1)
            expect(results).not_to_contain_text("2/evaluate")
            assert problems_of(page) == []
            page.get_by_role("tab", name="Evaluation report").click()
            frame = page.locator("iframe")
            expect(frame.content_frame.get_by_role("heading")).to_have_text("Evaluated")
            inner = page.locator(".run").bounding_box() or {"width": 0.0}
            assert (frame.bounding_box() or {"width": 0.0})["width"] > 0.9 * inner["width"]
            assert problems_of(page) == []


@pytest.mark.slow
@needs_chromium
def test_the_dump_of_the_executor_input_is_folded_in_a_log(browser: Browser, server: Server) -> None:
    with opened(browser, server, f"#/runs/evaluated/{STEP.replace('/', '%2F')}") as page:
        log = page.get_by_role("log")
        expect(log).to_contain_text("the step's own line")
        expect(log.get_by_text("a dumped address")).to_be_hidden()
        log.get_by_text("6 lines").or_(log.get_by_text("7 lines")).click()
        expect(log.get_by_text("a dumped address")).to_be_visible()
        assert "at=" not in page.url
        assert problems_of(page) == []
        page.reload()
        # What is searched for is never hidden.
        page.get_by_role("searchbox").fill("dumped")
        expect(log.locator("mark")).to_be_visible()
        page.get_by_role("searchbox").fill("")
        # A line below the dump is still the line that is clicked.
        lines = log.locator("pre")
        lines.click(position={"x": 20, "y": (lines.bounding_box() or {"height": 0.0})["height"] - 9})
        expect(log.locator(".line")).to_have_text("the step's own line")
        page.get_by_role("tab", name="Inputs and outputs").click()
        expect(page.get_by_text("Return value of evaluate")).to_be_visible()


@pytest.mark.slow
@needs_chromium
def test_a_signal_is_a_word(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/runs/stopped") as page:
        expect(page.locator(".facts div").filter(has_text="Stopped by")).to_contain_text("Ctrl-C")
