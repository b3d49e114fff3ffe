"""The pages in a browser: everything the server has, and no file outside a run."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.support.server import Server

pytestmark = pytest.mark.slow


def get(server: Server, path: str) -> requests.Response:
    """Request the path unchanged; `requests` would remove its dots."""
    with requests.Session() as session:
        request = requests.Request("GET", server.url).prepare()
        request.url = server.url + path
        return session.send(request, timeout=60)


ESCAPES = [
    "shown/../secret.txt",
    "shown/..%2fsecret.txt",
    "shown/%2e%2e/secret.txt",
    "shown/link.txt",
    "shown/.lock",
    "shown//etc/passwd",
    "shown/",
    "api/pipelineJobs/shown.json",
    "linked/runs/secret.txt",
    "other/run.html",
]
"""Paths that are not files of a run, although links or dots lead somewhere."""


def test_the_index_lists_everything_and_links_to_the_page_of_each_run(
    start_server: Callable[..., Server], new_job: Any
) -> None:
    server = start_server()
    assert get(server, "/").text.count("none yet") == 4
    job = new_job(server, job_id="shown", display_name="<script>alert(1)</script>")
    job.create_schedule(cron="0 3 * * *", display_name="<b>nightly</b>")
    job.submit()
    job.wait()
    index = get(server, "/")
    assert "script-src" not in index.headers["Content-Security-Policy"]
    assert index.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert 'href="/runs/shown/run.html"' in index.text
    assert "SUCCEEDED" in index.text
    assert "&lt;b&gt;nightly&lt;/b&gt;" in index.text
    assert "<b>nightly" not in index.text
    page = get(server, "/runs/shown/run.html")
    assert page.text == (server.work_dir / "shown" / "run.html").read_text()
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Content-Security-Policy"] == index.headers["Content-Security-Policy"]
    assert get(server, "/runs/shown/run.json").headers["Content-Type"].startswith("text/plain")
    (server.work_dir / "secret.txt").write_text("hidden words")
    os.symlink(server.work_dir / "secret.txt", server.work_dir / "shown" / "link.txt")
    os.symlink(server.work_dir.parent, server.work_dir / "linked")
    for path in ESCAPES:
        response = get(server, f"/runs/{path}")
        assert (response.status_code, "hidden words" in response.text) == (404, False), path
    assert requests.post(f"{server.url}/", json={}, timeout=60).status_code == 405
