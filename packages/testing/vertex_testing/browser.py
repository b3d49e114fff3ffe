"""Chromium on the console of a real server; a console error or a violation of the policy fails the test."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from vertex_testing.server import Server

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), "")

_MISSING = "no Chromium on this machine: apt-get install chromium"

PATIENCE_MS = 120_000
"""How long anything may take on a busy machine: playwright gives expectations 5 s, and actions and pages 30 s."""

needs_chromium = pytest.mark.skipif(not CHROMIUM, reason=_MISSING)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser. It ends with the module, because playwright's event loop is in the way of other tests."""
    if not CHROMIUM:
        pytest.skip(_MISSING)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def opened(
    browser: Browser, server: Server, fragment: str = "#/runs", *, width: int = 1280, expected: str = "(?!)"
) -> Iterator[Page]:
    """Open a view with the session of the server's token; what the page reports as an error fails at the end.

    Args:
        browser: The browser.
        server: The server.
        fragment: The view.
        width: Of the window, in pixels.
        expected: A regular expression of errors that are no failure; each has ` at ` and its address at the end.
    """
    with _watched(browser, width, expected) as page:
        token = (server.work_dir / "api" / "token").read_text().strip()
        page.goto(f"{server.url}/#token={token}")
        # wait_for_function needs eval from its second look on, which the page's policy refuses.
        expect(page).not_to_have_url(re.compile("token"))
        page.goto(f"{server.url}/{fragment}")
        yield page


@contextmanager
def opened_report(
    browser: Browser, file: Path, fragment: str = "", *, width: int = 1280, expected: str = "(?!)"
) -> Iterator[Page]:
    """Open the report of a run from the disk; it may load no other file, and nothing from a network."""
    with _watched(browser, width, expected) as page:
        requests: list[str] = []
        page.on("request", lambda each: requests.append(each.url))
        page.goto(f"{file.as_uri()}{fragment}")
        yield page
        others = [each for each in requests if not each.startswith((file.as_uri(), "blob:null/"))]
        assert not others, others


@contextmanager
def _watched(browser: Browser, width: int, expected: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda each: problems.extend(_problems(each, expected)))
    page.on("pageerror", lambda each: problems.append(str(each)))
    page.on("dialog", lambda each: problems.append(f"dialog: {each.message}"))
    try:
        yield page
        assert not problems, problems
    finally:
        context.close()


def _problems(message: ConsoleMessage, expected: str) -> list[str]:
    """Return what is an error of the page; the browser also notes requests that the server refuses."""
    text = f"{message.text} at {message.location['url']}"
    is_expected = "responded with a status of 400" in text or re.search(expected, text, re.S)
    return [text] if message.type in ("error", "warning") and not is_expected else []
