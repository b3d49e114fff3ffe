"""Compared runs in a real browser: what differs, and the curves."""

import re
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.console.comparing.runs import Runs, metric
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import TASK
from playwright.sync_api import Browser, Page, Route, expect

from localvertex.store import run_folder
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import wait_until

pytestmark = [pytest.mark.slow, needs_chromium]

COUNT_EVENTS = """window.EventSource = class extends EventSource {
  constructor(address) {
    super(address);
    window.seen = 0;
    this.addEventListener("runs", () => { window.seen += 1; });
  }
}"""
"""Counts the changes of the list that have reached the page."""

HOSTILE = '<img src=x onerror="alert(1)">'


def write_runs(work_dir: Path) -> None:
    """Write three runs."""
    runs = Runs(work_dir)
    runs.add(
        "first",
        job=runs.train("first", [2.0, 1.0, 0.5]),
        parameters={"rate": 0.1, "epochs": 3, HOSTILE: HOSTILE},
        metrics=[metric("accuracy", 0.25), metric(HOSTILE, 1)],
    )
    runs.add(
        "second",
        job=runs.train("second", [2.0, 0.8, 0.4]),
        parameters={"rate": 0.2, "epochs": 3, HOSTILE: HOSTILE},
        metrics=[metric("accuracy", 0.75), metric(HOSTILE, 2)],
    )
    runs.add("third", state="FAILED", parameters={"rate": 0.2, "epochs": 3})


def row(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=name, exact=True))


def test_two_runs_are_compared(start_server: Any, browser: Browser) -> None:
    server = start_server()
    write_runs(server.work_dir)
    with opened(browser, server, "#/compare?runs=first,second") as page:
        expect(row(page, "rate").get_by_role("cell")).to_have_text(["0.1", "0.2"])
        expect(row(page, "accuracy").get_by_role("cell").nth(1)).to_contain_text("0.75")
        expect(row(page, "accuracy").get_by_role("cell").nth(1)).to_contain_text("best+0.5")
        expect(row(page, HOSTILE).first.get_by_text("best")).to_have_count(0)
        # What is equal is folded.
        expect(row(page, "epochs")).to_be_hidden()
        page.get_by_text("2 equal parameters").click()
        expect(row(page, "epochs").get_by_role("cell")).to_have_text(["3"])
        expect(page.get_by_role("slider", name="Loss by step")).to_have_attribute(
            "aria-valuetext", "run A 0.5, run B 0.4 at step 30"
        )
        assert problems_of(page) == []


@pytest.mark.soak
def test_a_running_run_is_live_and_differences_are_from_the_chosen_one(start_server: Any, browser: Browser) -> None:
    server = start_server()
    write_runs(server.work_dir)
    runs, pending = Runs(server.work_dir), {**TASK, "path": "next", "title": "next", "state": "PENDING"}
    tasks = [{**TASK, "state": "RUNNING", "end_time": None}, {**pending, "start_time": None, "end_time": None}]
    (server.work_dir / "live").mkdir()
    with run_folder.lock(server.work_dir / "live"):
        runs.add("live", state="RUNNING", tasks=tasks, parameters={"rate": 0.3}, metrics=[metric("accuracy", 0.5)])
        with opened(browser, server, "#/compare?runs=first,second,live") as page:
            expect(row(page, "accuracy").get_by_role("cell").nth(1)).to_contain_text("+0.5")
            page.get_by_role("radio", name="Differences from second").check()
            expect(row(page, "accuracy").get_by_role("cell").nth(0)).to_contain_text("\N{MINUS SIGN}0.5")
            expect(page.get_by_role("img", name="rate, accuracy")).to_have_attribute(
                "aria-label", "rate, accuracy; run A: 0.1, 0.25; run B: 0.2, 0.75; run C: 0.3, 0.5"
            )
            step = row(page, "train").get_by_role("cell").nth(2)
            before = step.inner_text()
            expect(step).not_to_have_text(before)
            expect(row(page, "next").get_by_role("cell").nth(2)).not_to_contain_text("0.0 s")
            assert problems_of(page) == []
            runs.add("live", tasks=[TASK], parameters={"rate": 0.3}, metrics=[metric("accuracy", 0.9)])
            expect(row(page, "accuracy").get_by_role("cell").nth(2)).to_contain_text("best")


@pytest.mark.soak
def test_answers_that_are_always_older_than_the_newest_change_are_shown(start_server: Any, browser: Browser) -> None:
    server = start_server()
    write_runs(server.work_dir)
    held: list[Route] = []
    with opened(browser, server) as page:
        page.add_init_script(COUNT_EVENTS)
        page.goto("about:blank")
        page.route(re.compile("/local/runs"), lambda each: held.append(each))
        page.goto(f"{server.url}/#/compare?runs=first,second")
        is_shown, number = page.get_by_role("heading", name="Metrics").is_visible, 0
        while not is_shown() and number < 20:
            seen, answered, held[:] = page.evaluate("window.seen ?? 0"), held[:], []
            number += 1
            Runs(server.work_dir).add(f"other-{number}")
            wait_until(lambda seen=seen: page.evaluate("window.seen ?? 0") > seen)
            # The page draws, and may begin to read again, before it has an answer to what it read before the change.
            page.wait_for_timeout(300)
            for each in answered:
                each.continue_()
        assert is_shown()
        # The last change is shown, too, once its answer is there.
        is_read = page.get_by_role("option", name=f"other-{number}").count
        for _ in range(300):
            page.wait_for_timeout(100)
            answered, held[:] = held[:], []
            for each in answered:
                each.continue_()
            if is_read() and not held:
                break
        assert is_read()


def test_runs_are_added_and_removed_on_a_narrow_screen(start_server: Any, browser: Browser) -> None:
    server = start_server()
    write_runs(server.work_dir)
    with opened(browser, server, "#/compare?runs=first", width=390) as page:
        expect(page.get_by_text("Choose two or more runs")).to_be_visible()
        page.get_by_label("Add a run").select_option("second")
        expect(row(page, "rate").get_by_role("cell")).to_have_text(["0.1", "0.2"])
        page.get_by_label("Add a run").select_option("third")
        expect(row(page, "rate").get_by_role("cell")).to_have_text(["0.1", "0.2", "0.2"])
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert problems_of(page) == []
        page.get_by_role("button", name="Remove first").click()
        expect(row(page, "rate")).to_be_hidden()
        expect(page).to_have_url(re.compile("#/compare[?]runs=second%2Cthird$"))
    with opened(browser, server, "#/compare?runs=first,missing", expected="404") as page:
        expect(page.get_by_role("alert").first).to_contain_text("the run missing does not exist")
