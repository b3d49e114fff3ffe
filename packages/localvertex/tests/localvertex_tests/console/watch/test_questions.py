"""What a user comes for, in a real browser: start a run, why it failed, where its model is; each in three clicks.

The answer is text in the viewport of 1280 x 800 pixels, and nothing covers or cuts it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records
from playwright.sync_api import Browser, Locator, Page, expect

from vertex_testing.browser import needs_chromium, opened
from vertex_testing.server import Server, wait_until

pytestmark = [pytest.mark.slow, needs_chromium]

MOST_CLICKS = 3

IS_SEEN = """(each) => {
  const { left, top, right, bottom } = each.getBoundingClientRect();
  const isAt = (x, y) => {
    const hit = document.elementFromPoint(x, y);
    return each.contains(hit) || hit?.contains(each);
  };
  return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight && bottom > top
    && isAt(left + 1, top + 1) && isAt(right - 1, bottom - 1);
}"""


class Clicks:
    """The clicks of one user."""

    def __init__(self, page: Page) -> None:
        page.set_viewport_size({"width": 1280, "height": 800})
        self.num = 0

    def on(self, place: Locator) -> None:
        place.click()
        self.num += 1
        assert self.num <= MOST_CLICKS


def is_seen(place: Locator) -> None:
    """Wait until a text is in the viewport, whole and uncovered."""
    expect(place).to_be_visible()
    wait_until(lambda: bool(place.evaluate(IS_SEEN)))


def test_a_run_is_started_and_why_it_failed_is_seen(
    browser: Browser, start_server: Callable[..., Server], compiled: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "failing.json"
    file.write_text(json.dumps(compiled["failing"]))
    server = start_server()
    with opened(browser, server) as page:
        clicks = Clicks(page)
        clicks.on(page.get_by_role("navigation").get_by_role("link", name="Create run"))
        with page.expect_file_chooser() as chooser:
            clicks.on(page.get_by_role("button", name="Choose a file"))
        chooser.value.set_files(file)
        clicks.on(page.get_by_role("button", name="Start run"))
        expect(page.get_by_role("heading", level=1)).to_contain_text("Failed")
        clicks = Clicks(page)
        page.goto(f"{server.url}/#/runs")
        clicks.on(page.get_by_role("row").get_by_role("link", name="failing").first)
        is_seen(page.get_by_role("alert").get_by_text("ValueError: <b>no data</b>"))
        clicks.on(page.get_by_role("alert").get_by_role("link", name="fail"))
        # Its log begins at the error.
        is_seen(page.locator(".line", has_text="ValueError: <b>no data</b>"))
        for tab in ("Log", "Inputs and outputs"):
            is_seen(page.get_by_role("tab", name=tab))


def test_the_model_of_a_run_is_seen_with_its_metric_and_changed_parameters(
    browser: Browser, start_server: Callable[..., Server]
) -> None:
    server = start_server()
    model = {"task": "train", "artifact": "model", "uri": "x", "resource_name": "projects/p/models/digits@3"}
    metric = {"task": "train", "artifact": "metrics", "name": "accuracy", "value": 0.875}
    content = run_records.run_record(
        server.work_dir, "good", "2026-01-01T00:01:00.000Z", models=[model], metrics=[metric]
    )
    run_records.write(server.work_dir / "good" / "run.json", content)
    with opened(browser, server, expected="graph") as page:
        clicks = Clicks(page)
        clicks.on(page.get_by_role("row").get_by_role("link", name="good"))
        overview = page.get_by_role("region", name="Overview")
        is_seen(overview.get_by_role("link", name="digits version 3"))
        is_seen(overview.get_by_text("accuracy 0.875"))
        assert overview.get_by_role("link").get_attribute("href") == "#/models/digits/3"
        is_seen(page.get_by_role("region", name="Summary of the run").get_by_role("heading", name="Parameters"))


def test_what_a_stop_left_is_not_pending_and_a_resumed_run_is_in_order(
    browser: Browser, start_server: Callable[..., Server]
) -> None:
    """The record has no entry of what a stop kept from running, and entries of resumed groups start late."""
    server = start_server()
    task = {"taskInfo": {"name": "a"}, "componentRef": {"name": "comp-step"}}
    steps = {"first": task, "second": task | {"dependentTasks": ["first"]}}
    pipeline = {
        "pipelineInfo": {"name": "small"},
        "schemaVersion": "2.1.0",
        "root": {"dag": {"tasks": {"group": task | {"componentRef": {"name": "comp-group"}}}}},
        "components": {"comp-step": {"executorLabel": "exec-step"}, "comp-group": {"dag": {"tasks": steps}}},
        "deploymentSpec": {"executors": {"exec-step": {"container": {"image": "a", "command": ["true"]}}}},
    }
    late = {"kind": "dag", "start_time": "2026-01-01T00:09:00.000Z"}
    note = "finished before the run was resumed"

    def entry(path: str, **fields: Any) -> dict[str, Any]:
        name = path.rpartition("/")[2]
        return run_records.TASK | {"path": path, "name": name, "display_name": name, "title": path} | fields

    tasks = [
        entry("group", **late, state="CANCELLED"),
        entry("group/skipped", state="NOT_TRIGGERED", start_time=None, end_time=None),
        entry("group/inner", **late),
        entry("group/inner/first", start_time="2026-01-01T00:01:00.000Z", note=note, restored=True),
        entry("group/third", start_time="2026-01-01T00:02:00.000Z"),
    ]
    content = run_records.run_record(
        server.work_dir, "stopped", "2026-01-01T00:01:00.000Z", state="CANCELLED", tasks=tasks
    )
    run_records.write(server.work_dir / "stopped" / "run.json", content)
    run_records.write(server.work_dir / "stopped" / "pipeline.json", pipeline)
    with opened(browser, server, "#/runs/stopped") as page:
        expect(page.locator(".graph .choice")).to_have_count(3)
        expect(page.locator('.graph .choice[data-id="group/second"]')).to_have_attribute("aria-label", "a Did not run")
        assert page.locator(".graph").get_by_text("Pending").count() == 0
        page.get_by_role("tab", name="Steps").click()
        names = page.get_by_role("table", name="Steps of the run").get_by_role("rowheader")
        expect(names).to_have_text(["group", "inner", "first", "third", "skipped"])
        expect(page.get_by_role("row", name="first")).to_contain_text(note)
        assert page.get_by_text(note).count() == 1
