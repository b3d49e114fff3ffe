"""The page reports that it shows old data: when the server hangs, and when too many tabs are open."""

import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from localvertex_tests.support.run_records import job_record, run_record, write, write_job
from playwright.sync_api import Browser, expect

from localvertex.console.events.stream import MAX_STREAMS
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server, wait_until

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    work_dir = tmp_path_factory.mktemp("silent") / "runs"
    write_job(work_dir, 1)
    with Server(work_dir) as found:
        yield found


def add_run(work_dir: Path, name: str) -> None:
    created = "2026-12-01T00:00:00.000Z"
    write(work_dir / name / "run.json", run_record(work_dir, name, created))
    write(work_dir / "api" / "pipelineJobs" / f"{name}.json", job_record(name, created))


@contextmanager
def taken(server: Server) -> Iterator[None]:
    """Open the maximum number of streams."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    token = server.headers["Authorization"]
    request = f"GET /local/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: {token}\r\n\r\n".encode()
    with ExitStack() as stack:
        every = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(MAX_STREAMS)]
        for each in every:
            each.sendall(request)
            assert each.recv(1)
        yield


def test_a_server_that_hangs_is_shown_until_it_continues(browser: Browser, server: Server) -> None:
    with opened(browser, server, expected="net::ERR_") as page:
        page.clock.install()
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(1)
        lost = page.get_by_text("Connection lost: this page shows old data")
        expect(lost).to_have_count(0)
        server.process.send_signal(signal.SIGSTOP)
        try:
            page.clock.fast_forward(60_000)
            expect(lost).to_be_visible()
            add_run(server.work_dir, "meanwhile")
        finally:
            server.process.send_signal(signal.SIGCONT)
        page.clock.fast_forward(10_000)
        expect(lost).to_have_count(0)
        expect(page.locator("tbody tr")).to_have_count(2)


def test_a_page_without_a_stream_says_why_and_follows_when_there_is_room(browser: Browser, server: Server) -> None:
    with ExitStack() as stack, taken(server):
        page = stack.enter_context(opened(browser, server, expected="503"))
        page.clock.install()
        page.reload()
        busy = page.get_by_text(re.compile("Too many tabs of the console are open: this page shows old data"))
        expect(busy).to_be_visible()
        # What was loaded is still shown.
        expect(page.locator("tbody tr").first).to_be_visible()
        left = stack.pop_all()
    with left:
        wait_until(lambda: server.request("HEAD", "/local/events").status_code == 200)
        page.clock.fast_forward(11_000)
        expect(busy).to_have_count(0)
