"""The page of a run in a real browser: live from its start to its end, every kind of artifact, and long logs."""

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from localvertex_tests.console.watch.conftest import Start
from localvertex_tests.support import run_records
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, Page, expect

from vertex_testing.browser import PATIENCE_MS, needs_chromium, opened
from vertex_testing.server import Server, wait_until

pytestmark = [pytest.mark.slow, needs_chromium]


def log_of(page: Page) -> list[str]:
    """Return the lines of the log that the page shows."""
    return page.get_by_role("log").inner_text().splitlines()


def test_a_run_is_watched_to_its_end_and_its_artifacts_are_shown(
    browser: Browser, start_server: Callable[..., Server], start_run: Start, tmp_path: Path
) -> None:
    server = start_server()
    start_run(server, "watched", there=tmp_path / "there", note="<i>")
    with opened(browser, server, "#/runs/watched") as page:
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_contain_text("watched run Running")
        page.get_by_role("tab", name="Steps").click()
        page.get_by_role("tabpanel").get_by_role("link", name="Report <i>").click()
        expect(page.get_by_role("log")).to_contain_text("waiting for <b>permission</b>")
        expect(page.get_by_role("log")).to_contain_text("line 40")
        expect(page.get_by_role("link", name="Report", exact=True)).to_have_count(0)
        (tmp_path / "there").write_text("")
        # Without a reload.
        expect(heading).to_contain_text("Succeeded")
        expect(page.get_by_role("log")).to_contain_text("Wrote executor output file")
        step = page.get_by_role("region", name="Step Report <i>")
        expect(step).to_contain_text("Succeeded")
        step.get_by_role("tab", name="Inputs and outputs").click()
        for name in ("classes", "page", "notes", "scores", "picture", "model"):
            part = step.locator("details.artifact", has=page.locator("bdi", has_text=re.compile(f"^{name}$")))
            if part.get_attribute("open") is None:
                part.locator("summary").first.click()
        frame = step.locator("iframe")
        assert frame.get_attribute("sandbox") == ""
        expect(frame.content_frame.get_by_role("heading")).to_have_text("A page")
        notes = step.locator(".markdown")
        expect(notes.locator("strong")).to_have_text("bold")
        expect(notes).to_contain_text("<img src=x onerror=alert(1)>")
        assert notes.locator("a").get_attribute("href") == "https://example.com"
        expect(step.get_by_role("table")).to_contain_text("cat")
        expect(step.get_by_role("img", name=re.compile("^ROC of 3 points"))).to_be_visible()
        expect(step).to_contain_text("0.9875")
        picture = step.get_by_role("img", name="picture")
        picture.scroll_into_view_if_needed()
        expect(picture).to_have_js_property("naturalWidth", 1)
        expect(step.get_by_role("listitem").filter(has_text="weights.bin")).to_contain_text("2.50 MB")
        with page.expect_download() as download:
            step.get_by_role("link", name="labels.txt").click()
        assert Path(download.value.path()).read_text() == "cat dog"
        assert problems_of(page) == []
        page.get_by_role("link", name="Close").click()
        summary = page.get_by_role("region", name="Summary of the run")
        expect(summary.locator("dt", has_text="note")).to_contain_text("changed")
        expect(summary.locator("dt", has_text="count")).not_to_contain_text("changed")
        with page.expect_download() as download:
            page.get_by_role("link", name="Report", exact=True).click()
        assert download.value.suggested_filename == "run.html"


def test_a_failed_run_shows_why_also_on_a_narrow_screen(
    browser: Browser, start_server: Callable[..., Server], start_run: Start
) -> None:
    server = start_server()
    start_run(server, "failing")
    with opened(browser, server, "#/runs/failing", width=390) as page:
        failure = page.get_by_role("alert")
        expect(failure).to_contain_text("fail: exit code 1: ValueError: <b>no data</b>")
        expect(failure).to_contain_text("about to fail")
        failure.get_by_role("link", name="fail").click()
        expect(page.get_by_role("region", name="Step fail")).to_contain_text("Exit code")
        expect(page.get_by_role("log")).to_contain_text("raise ValueError(reason)")
        assert problems_of(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_files_of_artifacts_are_shown_as_text_or_as_images_and_others_are_explained(
    browser: Browser, start_server: Callable[..., Server]
) -> None:
    server = start_server()
    run_dir = server.work_dir / run_records.write_job(server.work_dir, 1)
    (run_dir / "table.csv").write_text("name,n\n<b>cat</b>,1\x1b[31m\n")
    (run_dir / "drawing").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><script>window.isHit = true</script></svg>"
    )
    given = {
        "table": ("system.Dataset", run_dir / "table.csv"),
        "drawing": ("system.Artifact", run_dir / "drawing"),
        "away": ("system.Model", "gs://bucket/model"),
    }
    artifacts = {
        name: [{"name": "", "type": {"schemaTitle": kind}, "uri": str(uri), "metadata": {}}]
        for name, (kind, uri) in given.items()
    }
    task = run_records.TASK | {"outputs": {"parameters": {}, "artifacts": artifacts}}
    content = run_records.run_record(server.work_dir, run_dir.name, "2026-01-01T00:01:00.000Z", tasks=[task])
    run_records.write(run_dir / "run.json", content)
    with opened(browser, server, f"#/runs/{run_dir.name}/train?view=steps&tab=values", width=390) as page:
        parts = {name: page.locator("details.artifact", has=page.locator("bdi", has_text=name)) for name in given}
        for part in parts.values():
            expect(part).to_have_count(1)
            if part.get_attribute("open") is None:
                part.locator("summary").first.click()
        expect(parts["table"].get_by_role("region", name="Content of table")).to_have_text("name,n\n<b>cat</b>,1\n")
        drawing = parts["drawing"].get_by_role("img", name="drawing")
        drawing.scroll_into_view_if_needed()
        expect(drawing).to_have_js_property("naturalWidth", 40)
        assert page.evaluate("window.isHit") is None
        expect(parts["away"]).to_contain_text("It is not on this machine.")
        expect(parts["away"]).to_contain_text("gs://bucket/model")
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_log_of_100_000_lines_is_a_window_that_follows_searches_and_loads_earlier_lines(
    browser: Browser, start_server: Callable[..., Server]
) -> None:
    server = start_server()
    run_id = run_records.write_job(server.work_dir, 1)
    log = server.work_dir / run_id / "train" / "log.txt"
    log.parent.mkdir()
    log.write_text("".join(f"line {number} <script>\n" for number in range(100_000)))
    with opened(browser, server, f"#/runs/{run_id}/train?view=steps") as page:
        expect(page.get_by_role("log")).to_contain_text("line 99999 <script>")
        num_lines = len(log_of(page))
        assert 4_000 < num_lines < 12_000
        with log.open("a") as file:
            file.write("".join(f"more {number}\n" for number in range(9_000)))
        expect(page.get_by_role("log")).to_contain_text("more 8999")
        assert 4_000 < len(log_of(page)) < 6_000
        box = page.get_by_role("log")
        place = "each => each.scrollHeight - each.scrollTop - each.clientHeight"
        wait_until(lambda: box.evaluate(place) < 32)
        # Scrolled up, the log stays where it is.
        top = box.evaluate("each => each.scrollTop") - 2_000
        box.hover()
        page.mouse.wheel(0, -2_000)
        follow = page.get_by_role("button", name="Jump to the end")
        expect(follow).to_be_visible()
        wait_until(lambda: box.evaluate("each => each.scrollTop") == top)
        with log.open("a") as file:
            file.write("last\n")
        expect(box).to_contain_text("last")
        assert box.evaluate("each => each.scrollTop") == top
        follow.click()
        expect(follow).to_have_count(0)
        wait_until(lambda: box.evaluate(place) < 32)
        search = page.get_by_role("searchbox", name="Search the log")
        search.fill("MORE 8990")
        expect(page.get_by_role("status").filter(has_text="1 line")).to_be_visible()
        search.press("Enter")
        expect(page.locator(".line mark")).to_have_text("more 8990")
        box.evaluate("each => { each.scrollTop = 0 }")
        page.get_by_role("button", name="Load earlier lines").click()
        expect(box).to_contain_text("line 99000 <script>")


def test_the_page_of_a_step_without_a_log_shows_why(browser: Browser, start_server: Callable[..., Server]) -> None:
    server = start_server()
    reasons = {"cached": "outputs came from the cache", "silent": "wrote no log", "running": "No log yet"}
    tasks = [run_records.TASK | {"name": name, "path": name, "display_name": name} for name in reasons]
    tasks[0]["cache_hit"], tasks[2]["end_time"], tasks[2]["state"] = True, None, "RUNNING"
    content = run_records.run_record(server.work_dir, "quiet", "2026-01-01T00:01:00.000Z", tasks=tasks)
    run_records.write(server.work_dir / "quiet" / "run.json", content)
    with opened(browser, server, "#/runs/quiet") as page:
        for name, reason in reasons.items():
            page.goto(f"{server.url}/#/runs/quiet/{name}")
            expect(page.get_by_role("log", name=f"Log of {name}")).to_contain_text(reason)
            assert page.get_by_role("link", name="Download").count() == 0


def test_a_lost_connection_is_shown_until_the_server_is_back(
    browser: Browser, start_server: Callable[..., Server]
) -> None:
    server = start_server()
    run_id = run_records.write_job(server.work_dir, 1)
    context = browser.new_context(extra_http_headers=server.headers)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{server.url}/#/runs/{run_id}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Succeeded")
    server.end(signal.SIGKILL)
    expect(page.get_by_text("Connection lost")).to_be_visible()
    start_server("--port", server.url.rpartition(":")[2])
    expect(page.get_by_text("Connection lost")).to_have_count(0)
    content = run_records.run_record(server.work_dir, run_id, "2026-01-01T00:01:00.000Z", state="FAILED")
    run_records.write(server.work_dir / run_id / "run.json", content)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Failed")
    os.truncate(server.work_dir / run_id / "run.json", 0)
    expect(page.get_by_role("alert").first).to_contain_text("cannot be read")
    (server.work_dir / run_id / "run.json").unlink()
    expect(page.get_by_text("This run was deleted.")).to_be_visible()
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("does not exist")
    assert page.get_by_text("Connection lost").count() == 0
    context.close()
