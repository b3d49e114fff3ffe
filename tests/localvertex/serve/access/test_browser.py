"""A real browser opens the address that the server prints: it gets a cookie, and the address bar loses the token."""

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.localvertex.show.test_browser import BROWSER
from tests.support.server import Server, wait_until
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow


TEXT = "document.body?.innerText ?? ''"

IS_INDEX = "location.pathname === '/' && document.querySelectorAll('h2').length > 0"


class Browser:
    """Headless Chromium, controlled by its DevTools protocol over two pipes."""

    def __init__(self, profile: Path) -> None:
        read, self._commands = os.pipe()
        self._answers, write = os.pipe()
        options = (
            "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-background-networking "
            "--remote-debugging-pipe"
        )
        words = ["bash", "-c", f"exec {BROWSER} {options} --user-data-dir={profile} 3<&{read} 4>&{write}"]
        self.process = subprocess.Popen(words, pass_fds=(read, write), stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self._buffer, self._number = b"", 0

    def ask(self, method: str, session: str = "", **values: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": values} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                assert select.select([self._answers], [], [], 120)[0], "the browser does not answer"
                part = os.read(self._answers, 1 << 16)
                assert part, "the browser has ended"
                self._buffer += part
            text, _, self._buffer = self._buffer.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._number:
                return dict(answer["result"])

    def close(self) -> None:
        """End the browser."""
        self.process.kill()
        self.process.wait()
        for each in (self._commands, self._answers):
            os.close(each)

    def open(self, url: str) -> str:
        """Open a page and return its session."""
        target = self.ask("Target.createTarget", url=url)["targetId"]
        return str(self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def value(self, session: str, expression: str) -> Any:
        """Return the value of an expression in a page."""
        return self.ask("Runtime.evaluate", session, expression=expression, returnByValue=True)["result"].get("value")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Start a browser without cookies."""
    if BROWSER is None:
        pytest.skip("Chromium is not installed")
    started = Browser(tmp_path / "profile")
    yield started
    started.close()


def test_the_page_exchanges_the_token_for_a_cookie(server: Server, browser: Browser) -> None:
    token = server.headers["Authorization"].removeprefix("Bearer ")
    wrong = browser.open(f"{server.url}/open#wrong")
    wait_until(lambda: "not the one of this server" in browser.value(wrong, TEXT))
    page = browser.open(f"{server.url}/open#{token}")
    wait_until(lambda: browser.value(page, IS_INDEX))
    assert browser.value(page, "document.cookie") == ""
    history = browser.ask("Page.getNavigationHistory", page)["entries"]
    assert token not in json.dumps([history, browser.value(page, "location.href")])
    later = browser.open(f"{server.url}/")
    wait_until(lambda: browser.value(later, IS_INDEX))


def test_the_address_with_the_token_is_printed_on_a_terminal_only(tmp_path: Path, server: Server) -> None:
    words = [sys.executable, "-m", "localvertex", "serve", "--port", "0"]
    terminal = Terminal(words, width=200, cwd=tmp_path)
    try:
        line = terminal.wait_for("in a browser: ")
        token = (tmp_path / "runs" / "api" / "token").read_text().strip()
        assert re.fullmatch(rf"  in a browser: http://127\.0\.0\.1:\d+/open#{token}", line)
    finally:
        terminal.process.terminate()
        terminal.end()
    assert f"{server.url}/open#TOKEN, with the text of {server.work_dir}/api/token as TOKEN" in server.text
