"""The buttons of a run in a real browser: retry, stop and delete, each after a question."""

from typing import Any

import pytest
from localvertex_tests.console.test_actions import Waiting, counted, create, state, waiting as waiting
from playwright.sync_api import Browser, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.runs import Compile, StartRun
from vertex_testing.server import wait_until

pytestmark = [pytest.mark.slow, needs_chromium]


def test_a_failed_run_is_retried_stopped_and_deleted(
    start_server: Any, compiled: Compile, waiting: Waiting, browser: Browser
) -> None:
    server = start_server()
    waiting.lead("fail")
    create(server, compiled(counted), "clicked", folder=str(waiting.folder))
    wait_until(lambda: state(server, "clicked") == "FAILED")
    waiting.lead("")
    with opened(browser, server, "#/runs/clicked") as page:
        heading, dialog = page.get_by_role("heading", level=1), page.get_by_role("dialog")
        expect(heading).to_contain_text("Failed")
        again = page.get_by_role("link", name="Run again").get_attribute("href")
        assert again == "#/create?run=clicked"
        page.get_by_role("button", name="Retry").click()
        dialog.get_by_role("button", name="Retry").click()
        expect(heading).to_contain_text("Running")
        expect(page.get_by_role("button", name="Delete")).to_be_disabled()
        waiting.pid()
        page.get_by_role("button", name="Stop").click()
        dialog.get_by_role("button", name="Stop gracefully").click()
        expect(heading).to_contain_text("Cancelled")
        page.get_by_role("button", name="Delete").click()
        expect(dialog).to_contain_text(str(server.work_dir / "clicked"))
        page.keyboard.press("Escape")
        assert (server.work_dir / "clicked" / "run.json").is_file()
        page.get_by_role("button", name="Delete").click()
        dialog.get_by_role("button", name="Delete run").click()
        expect(page.get_by_text("No runs yet")).to_be_visible()
        assert not (server.work_dir / "clicked").exists()
    assert waiting.num_counted == 1


def test_a_run_of_a_terminal_is_stopped_there(
    start_server: Any, start_run: StartRun, waiting: Waiting, browser: Browser
) -> None:
    server = start_server()
    process = start_run(counted, "--work-dir", str(server.work_dir), "--parameter", f"folder={waiting.folder}")
    waiting.pid()
    with opened(browser, server, "#/runs/stopped", width=390) as page:
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("dialog")).to_contain_text("Press Ctrl-C in its terminal")
        expect(page.get_by_role("button", name="Stop at once")).to_have_count(0)
    waiting.lead("go")
    process.communicate(timeout=300)
