"""The search in a whole log, and links to its lines, in a real browser: far from the end and while the log grows."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from localvertex_tests.support import run_records
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, Locator, Page, expect

from vertex_testing.browser import needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, needs_chromium]

PLACE = """(box, text) => {
  box.scrollTop = box.scrollHeight;
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const start = walker.currentNode.data.indexOf(text);
    if (start < 0) continue;
    const range = document.createRange();
    range.setStart(walker.currentNode, start);
    range.setEnd(walker.currentNode, start + text.length);
    const { left, top, height } = range.getBoundingClientRect();
    return [left + 20, top + height / 2];
  }
}"""
"""Where a text is in the log, in pixels."""

LONG = f"long {'x' * 9000} needle <b>end</b>"


@pytest.fixture
def server(start_server: Callable[..., Server]) -> Server:
    return start_server()


@pytest.fixture
def log(server: Server) -> Path:
    """Write a log of which the page shows the last part, and return its path."""
    run_id = run_records.write_job(server.work_dir, 1)
    path = server.work_dir / run_id / "train" / "log.txt"
    path.parent.mkdir()
    lines = [f"line {number} <script>".encode() for number in range(60_000)]
    lines[3] = "\x1b[31mü nee\x1b[0mdle\x1b[0m one".encode()
    lines[20_000] = LONG.encode()
    # Bytes that are not UTF-8 do not move what follows them.
    lines[20_001] = lines[59_990] = b"\xff\xfe" * 300
    lines[59_995] = b"needle last"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def where(page: Page) -> Locator:
    """Return the text with the number of matches."""
    return page.get_by_role("search").get_by_role("status")


def test_a_match_is_found_in_the_whole_file_and_shown_with_its_lines(
    browser: Browser, server: Server, log: Path
) -> None:
    with opened(browser, server, "#/runs/run-00001/train?view=steps", width=390) as page:
        box, current = page.get_by_role("log"), page.locator(".line mark")
        expect(box).to_contain_text("needle last")
        search = page.get_by_role("searchbox", name="Search the log")
        search.fill("NEEDLE")
        # Nothing is waited for: the match is shown as soon as it is known.
        search.press("Enter")
        expect(where(page)).to_have_text("3 of 3")
        expect(page.locator(".line")).to_have_text("needle last")
        expect(current).to_be_in_viewport()
        search.press("Shift+Enter")
        expect(where(page)).to_have_text("2 of 3")
        expect(page.locator(".line")).to_have_text(LONG)
        expect(current).to_be_in_viewport()
        expect(box).to_contain_text("line 19999 <script>")
        expect(box).not_to_contain_text("needle last")
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        # What the user reads stays when the log grows, and the next search finds what was added.
        top = box.evaluate("each => each.scrollTop")
        with log.open("a") as file:
            file.write("another nee")
        with log.open("a") as file:
            file.write("dle\n")
        expect(page.get_by_role("button", name="Jump to the end")).to_be_visible()
        assert box.evaluate("each => each.scrollTop") == top
        # The page hears of what was added twice per second, and later on a busy machine.
        page.wait_for_timeout(5000)
        box.focus()
        page.keyboard.press("Shift+F3")
        expect(page.locator(".line")).to_have_text("ü needle one")
        expect(where(page)).to_have_text("1 of 4")
        page.keyboard.press("Shift+F3")
        expect(page.locator(".line")).to_have_text("another needle")
        page.keyboard.press("F3")
        expect(where(page)).to_have_text("1 of 4")
        page.keyboard.press("Escape")
        expect(search).to_have_value("")
        expect(page.locator("mark")).to_have_count(0)
        page.get_by_role("button", name="Load later lines").click()
        expect(box).to_contain_text("line 8000 <script>")
        page.get_by_role("button", name="Jump to the end").click()
        expect(box).to_contain_text("another needle")
        expect(page.locator(".line")).to_have_count(0)
        assert "at=" not in page.url
        log.write_text("replaced\n")
        expect(box).to_have_text("replaced")
        search.fill("needle")
        expect(where(page)).to_have_text("No match")


def test_a_link_leads_to_its_line_in_a_log_with_any_bytes(browser: Browser, server: Server, log: Path) -> None:
    start = log.read_bytes().index(b"line 30000 <")
    with opened(browser, server, f"#/runs/run-00001/train?view=steps&at={start + 3}") as page:
        line = page.locator(".line")
        expect(line).to_have_text("line 30000 <script>")
        expect(line).to_be_in_viewport()
        page.get_by_role("button", name="Jump to the end").click()
        expect(page.get_by_role("log")).to_contain_text("needle last")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        # Beyond a line of invalid bytes and within a block.
        page.mouse.click(*page.get_by_role("log").evaluate(PLACE, "needle last"))
        expect(line).to_have_text("needle last")
        expect(page).to_have_url(re.compile(f"at={log.read_bytes().index(b'needle last')}$"))
        page.get_by_role("button", name="Copy line").click()
        assert page.evaluate("navigator.clipboard.readText()") == "needle last"
        page.get_by_role("button", name="Copy link").click()
        address = page.evaluate("navigator.clipboard.readText()")
        assert "token" not in address
        page.goto("about:blank")
        page.goto(address)
        expect(line).to_have_text("needle last")
        expect(line).to_be_in_viewport()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download").click()
        assert Path(download.value.path()).read_bytes() == log.read_bytes()
