"""Hostile texts in a real browser: commands that are copied, and lines of logs."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [needs_chromium, pytest.mark.slow]

WORDS = ["plain", "a 'b' $HOME", "\x15touch x\n\x1b[201~\ttouch y\n", "\\'\x03\u202e\u00fc!", ""]

SHOWN = """async ([words, lines]) => {
  const [{ quoted }, { shown }, { label, kind }] =
    await Promise.all(["runs/step", "logs/text", "ui/state"].map((each) => import(`/console/${each}.js`)));
  return [words.map(quoted), lines.map(shown), [label, kind].map((each) => each("constructor"))];
}"""


def test_texts_of_a_run_act_neither_on_a_terminal_nor_on_the_page(
    browser: Browser, start_server: Callable[..., Server]
) -> None:
    # A search that begins again at each carriage return would take an hour.
    lines = {"\r" * (1 << 20) + "x": "x", "1%\r2%\r\r": "2%", "\r\r": "", "a": "a"}
    with opened(browser, start_server(), "#/no/view") as page:
        expect(page.locator(".empty")).to_be_visible()
        words, texts, state = page.evaluate(SHOWN, [WORDS, [*lines]])
    assert state == ["Unknown", "idle"]
    assert texts == [*lines.values()]
    assert all(character in "\n\t" or character.isprintable() for each in words for character in each)
    assert words[:2] == ["plain", "'a '\\''b'\\'' $HOME'"]
    assert printed(words) == WORDS


def printed(words: list[Any]) -> list[str]:
    """Return the words as bash reads them."""
    command = f"printf '%s\\0' {' '.join(words)}"
    return subprocess.run(["bash", "-c", command], check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
