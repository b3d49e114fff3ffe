"""The pages in a browser: everything the server has, and no file outside a run."""

import base64
import hashlib
import os
from collections.abc import Callable
from typing import Any

import pytest
import requests

from localvertex.state import registry
from localvertex.state.model_versions import ModelVersions
from tests.support.html import Page
from tests.support.server import Server, wait_until

pytestmark = pytest.mark.slow


def get(server: Server, path: str) -> requests.Response:
    """Request the path unchanged; `requests` would remove its dots."""
    with requests.Session() as session:
        request = requests.Request("GET", server.url, server.headers).prepare()
        request.url = server.url + path
        return session.send(request, timeout=60)


def wait_for_page(server: Server) -> None:
    """Wait until the run has its page, which is written after its last state."""
    wait_until((server.work_dir / "shown" / "run.html").is_file)


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
    assert get(server, "/").text.count("none yet") == 5
    job = new_job(server, job_id="shown", display_name="<script>alert(1)</script>")
    job.create_schedule(cron="0 3 * * *", display_name="<b>nightly</b>")
    job.submit()
    wait_for_page(server)
    index = get(server, "/")
    assert index.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert 'href="/runs/shown/run.html"' in index.text
    assert "SUCCEEDED" in index.text
    assert "<b>nightly</b>" in Page(index.text).text
    assert Page(index.text).attributes("b") == []
    page = get(server, "/runs/shown/run.html")
    links = '<nav><a href="/">All runs</a><a href="/#models">Models</a></nav>'
    on_disk = (server.work_dir / "shown" / "run.html").read_text()
    assert page.text == on_disk.replace("<!--navigation-->", links)
    assert on_disk.count("<!--navigation-->") == 1
    assert page.headers["Content-Type"].startswith("text/html")
    assert page.headers["Content-Security-Policy"] == index.headers["Content-Security-Policy"]
    assert get(server, "/runs/shown/run.json").headers["Content-Type"].startswith("text/plain")
    (server.work_dir / "secret.txt").write_text("hidden words")
    os.symlink(server.work_dir / "secret.txt", server.work_dir / "shown" / "link.txt")
    os.symlink(server.work_dir.parent, server.work_dir / "linked")
    for path in ESCAPES:
        response = get(server, f"/runs/{path}")
        assert (response.status_code, "hidden words" in response.text) == (404, False), path
    assert server.request("POST", "/", json={}).status_code == 405
    listing = get(server, "/runs/shown/double/")
    assert "executor_input.json" in listing.text.splitlines()
    assert listing.headers["Content-Type"].startswith("text/plain")


def test_the_script_of_the_pages_is_the_only_one_that_may_run(
    start_server: Callable[..., Server], new_job: Any
) -> None:
    server = start_server()
    job = new_job(server, job_id="shown")
    job.submit()
    wait_for_page(server)
    page = get(server, "/runs/shown/run.html")
    script = Page(page.text).raw["script"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = page.headers["Content-Security-Policy"]
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.count("script") == 1
    assert "frame-ancestors 'none'" in policy
    # A page that a step wrote gets no script at all, and an origin of its own.
    (server.work_dir / "shown" / "double" / "page.html").write_text("<script>alert(1)</script>")
    written = get(server, "/runs/shown/double/page.html")
    assert written.headers["Content-Type"].startswith("text/html")
    assert written.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'; style-src")
    assert "script" not in written.headers["Content-Security-Policy"]


def test_a_model_has_a_page_with_its_files_and_its_run(start_server: Callable[..., Server], new_job: Any) -> None:
    server = start_server()
    job = new_job(server, job_id="shown")
    job.submit()
    wait_for_page(server)
    files = server.work_dir / "shown" / "wait" / "data"
    model = {"display_name": "<b>digits</b>", "artifact_uri": str(files), "labels": {"<i>": "</td>"}}
    version = registry.add(server.work_dir, model)
    link = f"/runs/models/{version.model_id}/1/"
    assert link in [each["href"] for each in Page(get(server, "/").text).attributes("a")]
    page = Page(get(server, link).text)
    assert page.unbalanced == []
    assert page.attributes("b") == page.attributes("i") == []
    assert "<b>digits</b>" in page.text
    assert "model.json" in page.text
    assert [each["href"] for each in page.attributes("a")] == ["/", "/#models", "/runs/shown/run.html"]
    for wrong in ("/runs/models/other/1/", f"/runs/models/{version.model_id}/2/", "/runs/models/%2e%2e/1/"):
        assert get(server, wrong).status_code == 404
    (version.folder / "model.json").write_text("[]")
    assert get(server, link).status_code == 404


def test_the_page_of_a_model_shows_its_champion_its_versions_and_its_evaluations(start_server: Any) -> None:
    server = start_server()
    for aliases in (["champion"], []):
        version = registry.add(server.work_dir, {"display_name": "digits"}, aliases=aliases)
    versions, folder = ModelVersions(version.folder.parent), f"/runs/models/{version.model_id}"
    versions.merge("2", ["champion"])
    damaged = versions.evaluate("2", {"display_name": "other"})
    versions.evaluate("2", {"display_name": "<b>test split</b>", "metrics": {"<i>accuracy": 0.9375}})
    (version.folder / "evaluations" / f"{damaged}.json").write_text("{")
    index = Page(get(server, "/").text)
    assert "digits digits 1 default 2" in " ".join(index.text.split())
    links = [each["href"] for each in index.attributes("a")]
    assert [each for each in links if folder in each] == [f"{folder}/1/", f"{folder}/2/"]
    page = Page(get(server, f"{folder}/2/").text)
    assert page.unbalanced == page.attributes("b") == page.attributes("i") == []
    assert "version 2 champion" in " ".join(page.text.split())
    assert "Evaluation <b>test split</b>" in page.text
    assert "<i>accuracy" in page.text
    assert f"Evaluation {damaged} is damaged" in page.text
    assert "../1/" in [each["href"] for each in page.attributes("a")]
    (version.folder.parent / "aliases.json").write_text("[]")
    assert get(server, f"{folder}/2/").status_code == get(server, "/").status_code == 200
