"""Datasets in a browser: the report of each in a frame without scripts, and what changed since the one before."""

from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import TASK, run_record, write
from playwright.sync_api import Browser, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, needs_chromium]

HOSTILE = "<img src=x onerror=alert(1)>"

REPORT = "<h1>Report</h1><p id=p>of day {day}</p><script>document.getElementById('p').textContent = 'ran'</script>"


def write_run(work_dir: Path, day: int, **metadata: Any) -> None:
    """Write a run whose step has written a dataset with two pages."""
    folder, time = work_dir / f"run-{day}" / "prepare", f"2026-01-0{day}T00:00:00.000Z"
    write(folder.parent / "run.html", "<p>the run</p>")
    write(folder / "report.html", REPORT.format(day=day))
    write(folder / "what_changed.html", f"<h1>Changes of day {day}</h1>")
    written = {
        "dataset": ("Dataset", {"fingerprint": str(day) * 64, "name": HOSTILE, **metadata}),
        "what_changed.html": ("HTML", {}),
        "report.html": ("HTML", {}),
        "change_metrics": ("Metrics", {"num_added": day}),
    }
    artifacts = {
        name.partition(".")[0]: [
            {"type": {"schemaTitle": f"system.{kind}"}, "uri": str(folder / name), "metadata": content}
        ]
        for name, (kind, content) in written.items()
    }
    step = TASK | {"end_time": time, "outputs": {"parameters": {}, "artifacts": artifacts}}
    write(folder.parent / "run.json", run_record(work_dir, f"run-{day}", time, tasks=[step]))


@pytest.mark.parametrize("width", [1280, 390])
def test_a_dataset_shows_its_pages_without_scripts_and_what_changed(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    work_dir = tmp_path / "runs"
    write_run(work_dir, 1, num_examples=100, labels={"a": HOSTILE})
    write_run(work_dir, 2, num_examples=1250)
    with (
        Server(work_dir) as server,
        opened(browser, server, "#/datasets", width=width, expected="Blocked script execution") as page,
    ):
        expect(page.get_by_role("heading", name=HOSTILE)).to_be_visible()
        page.get_by_role("link", name="2" * 12).click()
        expect(page.get_by_role("tab", name="Report")).to_have_attribute("aria-selected", "true")
        expect(page.frame_locator("iframe").get_by_text("of day 2")).to_be_visible()
        assert page.locator("iframe").get_attribute("sandbox") == ""
        page.get_by_role("tab", name="What changed").click()
        expect(page.frame_locator("iframe").get_by_role("heading", name="Changes of day 2")).to_be_visible()
        page.get_by_role("tab", name="Changed metadata").click()
        table = page.get_by_role("table", name="Metadata that changed")
        expect(table.get_by_role("row", name="num_examples")).to_contain_text("+1,150")
        expect(table.get_by_role("row", name="labels")).to_contain_text(HOSTILE)
        expect(page.locator(".measures")).to_contain_text("num_added")
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.get_by_role("tab", name="Details").click()
        expect(page.get_by_role("link", name="run-2")).to_have_attribute("href", "#/runs/run-2/train")
        page.goto(f"{server.url}/#/datasets?dataset={'9' * 32}")
        expect(page.locator("main")).to_contain_text("No run in this work folder has written the dataset")
