"""`python -m localvertex console`: which server it uses, what it prints, and what it gives to the browser."""

import fcntl
import os
import re
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from localvertex._base.userinput.errors import UserError
from localvertex.api.access import token_file
from localvertex.console import opening
from vertex_testing.browser import PATIENCE_MS, browser as browser, needs_chromium
from vertex_testing.server import Server, wait_until
from vertex_testing.terminal import Terminal

ADDRESS = r"^http://127\.0\.0\.1:\d+/#token=[\w-]+$"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the user's browser writes its arguments."""
    program, found = tmp_path / "browser", tmp_path / "opened"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{found}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    return found


@contextmanager
def console(folder: Path, *options: str, program: str = "python -m localvertex console") -> Iterator[Terminal]:
    """Run the command on a terminal until the test is done with it."""
    terminal = Terminal([sys.executable, *program.split()[1:], *options], width=200, cwd=folder)
    try:
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.send_signal(signal.SIGTERM)
        terminal.end()


@pytest.mark.slow
@needs_chromium
def test_the_browser_gets_the_token_from_a_file_and_a_second_console_uses_the_first(
    tmp_path: Path, opened: Path, browser: Browser, package: Path
) -> None:
    (program,) = re.findall(r"^```sh\n(.*)\n```$", (package / "docs" / "console.md").read_text(), re.M)
    with console(tmp_path, "--port", "0", program=program) as first:
        address = first.wait_for(ADDRESS)
        token = (tmp_path / "runs" / "api" / "token").read_text().strip()
        assert address.endswith(f"#token={token}")
        page = tmp_path / "runs" / "api" / "console.html"
        # Other users see the arguments of programs.
        assert wait_until(lambda: opened.exists() and opened.read_text()) == f"{page.as_uri()}\n"
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        with console(tmp_path, "--no-browser") as second:
            assert second.wait_for(ADDRESS) == address
            wait_until(lambda: second.process.poll() is not None)
            assert second.process.returncode == 0
        tab = browser.new_page()
        tab.set_default_timeout(PATIENCE_MS)
        tab.goto(page.as_uri())
        tab.wait_for_url(lambda url: url.startswith(address.partition("#")[0]) and "token" not in url)
        wait_until(lambda: tab.evaluate("async () => (await fetch('/local/events', {method: 'HEAD'})).status") != 403)
        tab.close()
    assert opened.read_text().count("\n") == 1


@pytest.mark.slow
def test_a_server_in_a_log_is_used_and_the_log_has_no_token(
    start_server: Callable[..., Server], command: Callable[..., object], opened: Path
) -> None:
    server = start_server()
    done = command("console")
    token = server.headers["Authorization"].removeprefix("Bearer ")
    assert f"{server.url}/, opened by `python -m localvertex console" in done.stdout
    assert (done.returncode, token in done.stdout + done.stderr, token in opened.read_text()) == (0, False, False)


@pytest.mark.slow
def test_the_server_of_another_program_at_the_old_address_or_port_is_left_alone(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket() as usual:
        with suppress(OSError):  # another program may have it already
            usual.bind(("127.0.0.1", 8700))
            usual.listen()
        (tmp_path / "runs" / "api").mkdir(parents=True)
        token_file.prepare(tmp_path / "runs", print)
        token_file.publish(tmp_path / "runs", f"http://127.0.0.1:{other.getsockname()[1]}")
        with console(tmp_path, "--no-browser") as started:
            port = re.findall(r":(\d+)/", started.wait_for(ADDRESS))[0]
            assert port not in ("8700", str(other.getsockname()[1]))
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()


def test_a_server_that_does_not_answer_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_ANSWER_SECONDS", 0.2)
    (tmp_path / "api").mkdir()
    token_file.prepare(tmp_path, print)
    assert not opening.use_running(tmp_path, opens_browser=True)
    with socket.create_server(("127.0.0.1", 0)) as silent, (tmp_path / "api" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="does not answer; stop it and try again"):
            opening.use_running(tmp_path, opens_browser=True)
        token_file.publish(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(UserError, match="does not answer; stop it and try again"):
            opening.use_running(tmp_path, opens_browser=True)
    assert not (tmp_path / "api" / "console.html").exists()


def test_without_a_screen_no_browser_takes_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform == "linux":
        assert opening.open_in_browser(tmp_path, "http://127.0.0.1:1") is None
    assert os.listdir(tmp_path) == []
