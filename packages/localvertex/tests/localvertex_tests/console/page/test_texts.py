"""Hostile texts in a real browser: lines of logs and states."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [needs_chromium, pytest.mark.slow]

SHOWN = """async (lines) => {
  const [{ shown }, { label, kind }] =
    await Promise.all(["logs/text", "ui/state"].map((each) => import(`/console/${each}.js`)));
  return [lines.map(shown), [label, kind].map((each) => each("constructor"))];
}"""


def test_texts_of_a_run_do_not_act_on_the_page(browser: Browser, start_server: Callable[..., Server]) -> None:
    # A search that begins again at each carriage return would take an hour.
    lines = {"\r" * (1 << 20) + "x": "x", "1%\r2%\r\r": "2%", "\r\r": "", "a": "a"}
    with opened(browser, start_server(), "#/no/view") as page:
        expect(page.locator(".empty")).to_be_visible()
        texts, state = page.evaluate(SHOWN, [*lines])
    assert state == ["Unknown", "idle"]
    assert texts == [*lines.values()]
