"""The files of runs in a browser: pages under their policies, images, text, downloads, and no file outside a run."""

import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from vertex_testing.html import Page
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

SECRET = "hidden words"

ESCAPES = [
    "shown/../secret.txt",
    "shown/..%2fsecret.txt",
    "shown/%2e%2e/secret.txt",
    "shown/link.txt",
    "shown/folder/up/secret.txt",
    "shown/.lock",
    "shown/.hidden/secret.txt",
    "shown/to-hidden/secret.txt",
    "shown//etc/passwd",
    "shown/",
    "shown/a%00b",
    "shown/pipe",
    "shown/" + "a" * 3000,
    "api/token",
    "api/pipelineJobs/shown.json",
    "linked/runs/secret.txt",
    "plain/secret.txt",
]
"""Paths that are not files of a run, although links or dots lead somewhere."""


def get(server: Server, path: str, **headers: str) -> requests.Response:
    """Request the path unchanged; `requests` would remove its dots."""
    with requests.Session() as session:
        request = requests.Request("GET", server.url, server.headers | headers).prepare()
        request.url = f"{server.url}/runs/{path}"
        return session.send(request, timeout=60, allow_redirects=False)


def policy(answer: requests.Response) -> dict[str, str]:
    """Return the directives of a page."""
    parts = [each.strip().partition(" ") for each in answer.headers["Content-Security-Policy"].split(";")]
    return {name: value for name, _, value in parts}


def write_secrets(root: Path, run: Path) -> None:
    """Write files that are not of the run, and links to them."""
    for each in (run / "folder", run / ".hidden", root / "plain"):
        each.mkdir()
    for each in (root / "secret.txt", root / "plain" / "secret.txt", run / ".hidden" / "secret.txt"):
        each.write_text(SECRET)
    (run / "link.txt").symlink_to(root / "secret.txt")
    (run / "folder" / "up").symlink_to(root)
    (run / "to-hidden").symlink_to(".hidden")
    (root / "linked").symlink_to(root.parent)
    os.mkfifo(run / "pipe")


def test_the_page_of_a_run_is_shown_and_framed_under_its_policy(
    start_server: Callable[..., Server], new_job: Any
) -> None:
    server = start_server()
    new_job(server, job_id="shown").submit()
    run = server.work_dir / "shown"
    # Its files are there while it runs; the page comes last.
    wait_until((run / "run.json").is_file)
    assert get(server, "shown/run.json").json()["run_id"] == "shown"
    on_disk = wait_until(lambda: (run / "run.html").is_file() and (run / "run.html").read_text())
    page = get(server, "shown/run.html")
    assert page.headers["Content-Type"].startswith("text/html")
    links = [each["href"] for each in Page(page.text).attributes("a")[:3]]
    assert links == ["/", "/#/runs/shown", "/#/models"]
    assert on_disk.count("<!--navigation-->") == 1
    # In a frame of the console, the links would open in the frame.
    assert get(server, "shown/run.html", **{"Sec-Fetch-Dest": "iframe"}).text == on_disk
    digest = base64.b64encode(hashlib.sha256(Page(page.text).raw["script"].encode()).digest()).decode()
    found = policy(page)
    assert found["script-src"] == f"'sha256-{digest}'"
    assert (found["default-src"], found["frame-ancestors"]) == ("'none'", "'self'")
    write_secrets(server.work_dir, run)
    for path in ESCAPES:
        for query in ("", "?download"):
            answer = get(server, path + query)
            assert (answer.status_code, SECRET in answer.text) == (404, False), path
    assert server.request("POST", "/runs/shown/run.html", json={}).status_code == 405


def test_what_components_wrote_gets_no_script_and_downloads_keep_their_bytes(
    start_server: Callable[..., Server],
) -> None:
    server = start_server()
    run = server.work_dir / "shown"
    run.mkdir()
    (run / "run.json").write_text("{}")
    content = b"<script>alert(1)</script>" + bytes(range(256))
    types = {
        "page.html": "text/html; charset=utf-8",
        "image.svg": "image/svg+xml",
        "image.PNG": "image/png",
        "log.txt": "text/plain; charset=utf-8",
        "script.js": "text/plain; charset=utf-8",
        "no-ending": "text/plain; charset=utf-8",
        "page.xhtml": "text/plain; charset=utf-8",
    }
    for name, media_type in types.items():
        (run / name).write_bytes(content)
        answer = get(server, f"shown/{name}")
        assert (answer.headers["Content-Type"], answer.content) == (media_type, content)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        found = policy(answer)
        assert (found["sandbox"], found["default-src"], found["frame-ancestors"]) == ("", "'none'", "'self'")
        assert "script-src" not in found
        saved = get(server, f"shown/{name}?download")
        assert (saved.headers["Content-Type"], saved.content) == ("application/octet-stream", content)
        assert saved.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{name}"
    (run / "folder").mkdir()
    hostile = 'a\rSet-Cookie: x=1;"<b>\u202e.html'
    (run / "folder" / hostile).write_bytes(content)
    path = "shown/folder/" + requests.utils.quote(hostile)
    assert get(server, f"{path}?download").headers["Content-Disposition"].isascii()
    assert "Set-Cookie" not in get(server, f"{path}?download").headers
    assert get(server, "shown/folder/").headers["Content-Type"] == "text/plain; charset=utf-8"
    assert hostile in get(server, "shown/folder/").content.decode()
    with (run / "large.txt").open("wb") as file:
        file.truncate((64 << 20) + 1)
    assert get(server, "shown/large.txt").status_code == 413
    with requests.get(f"{server.url}/runs/shown/large.txt?download", headers=server.headers, stream=True) as large:
        assert large.headers["Content-Length"] == str((64 << 20) + 1)
    model = get(server, "models/digits/3/")
    assert (model.status_code, model.headers["Location"]) == (303, "/#/models/digits/3")


def test_a_page_that_is_not_a_file_or_too_large_is_not_read(start_server: Callable[..., Server]) -> None:
    server = start_server()
    for run_id in ("pipe", "large"):
        (server.work_dir / run_id).mkdir()
        (server.work_dir / run_id / "run.json").write_text("{}")
    os.mkfifo(server.work_dir / "pipe" / "run.html")
    with (server.work_dir / "large" / "run.html").open("wb") as file:
        file.truncate(1 << 42)
    assert get(server, "pipe/run.html").status_code == 404
    assert get(server, "large/run.html").status_code == 413
    server.end()
