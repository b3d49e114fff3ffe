"""A real browser opens the address that the server prints: it gets a cookie, and the address bar loses the token."""

import json
import re
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from vertex_testing.browser import browser as browser, needs_chromium
from vertex_testing.server import Server
from vertex_testing.terminal import Terminal

pytestmark = pytest.mark.slow

READ = """async () => (await fetch("/v1/projects/local-project/locations/us-central1/models")).status"""


def history(page: Page) -> str:
    """Return all addresses of a tab."""
    session = page.context.new_cdp_session(page)
    return json.dumps([session.send("Page.getNavigationHistory"), page.evaluate("location.href")])


@needs_chromium
def test_the_page_exchanges_the_token_for_a_cookie(server: Server, browser: Browser) -> None:
    token = server.headers["Authorization"].removeprefix("Bearer ")
    context = browser.new_context()
    sent: list[str] = []
    context.on("request", lambda request: sent.append(f"{request.url} {request.headers.get('referer')}"))
    page = context.new_page()
    for fragment in ("", "#/runs", "#token=wrong"):
        page.goto("about:blank")
        page.goto(f"{server.url}/{fragment}")
        page.get_by_role("alert").get_by_text("Open the address that the server printed").wait_for()
    assert page.url == f"{server.url}/"
    assert page.evaluate(READ) == 403
    page.goto(f"{server.url}/#token={token}")
    page.reload()
    expect(page).not_to_have_url(re.compile("token"))
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    assert token not in history(page)
    assert not [each for each in sent if token in each]
    later = context.new_page()
    later.goto(f"{server.url}/")
    assert later.evaluate(READ) == 200
    context.close()


def test_the_address_with_the_token_is_printed_on_a_terminal_only(tmp_path: Path, server: Server) -> None:
    words = [sys.executable, "-m", "localvertex", "serve", "--port", "0"]
    terminal = Terminal(words, width=200, cwd=tmp_path)
    try:
        line = terminal.wait_for("token=")
        token = (tmp_path / "runs" / "api" / "token").read_text().strip()
        assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/#token={token}", line)
    finally:
        terminal.process.terminate()
        terminal.end()
    text = server.text
    assert f"{server.url}/, opened by `python -m localvertex console --work-dir {server.work_dir}`" in text
    assert f"with #token= and the text of {server.work_dir}/api/token after it" in text
    assert "TOKEN" not in text


HOSTILE = """
<script type="module">
const server = "{url}", answers = [];
const note = (name) => (found) => answers.push([name, String(found?.type ?? found?.name ?? found)]);
const json = {{ "Content-Type": "application/json" }};
const change = {{ method: "POST", body: "{{}}", credentials: "include" }};
await fetch(`${{server}}/local/session`, {{ ...change, headers: json }}).then(note("json"), note("json"));
await fetch(`${{server}}{path}`, {{ ...change, mode: "no-cors" }}).then(note("form"), note("form"));
await fetch(`${{server}}{path}`, {{ method: "DELETE", credentials: "include" }}).then(note("delete"), note("delete"));
await fetch(`${{server}}{path}`, {{ credentials: "include" }}).then(note("read"), note("read"));
await import(`${{server}}/console/main.js`).then(note("script"), note("script"));
const frame = document.createElement("iframe");
frame.src = `${{server}}/#/runs`;
frame.onload = () => {{ answers.push(["frame", frame.contentDocument === null]); window.answers = answers; }};
document.body.append(frame);
</script>
"""
"""A page of another port: the same site, so that the browser sends the cookie."""


@needs_chromium
def test_a_page_of_another_port_can_neither_read_nor_change_nor_frame(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    board = server.call("POST", "tensorboards", {"displayName": "kept"}).json()["response"]["name"]
    (tmp_path / "index.html").write_text(f"<body>{HOSTILE.format(url=server.url, path=f'/v1/{board}')}")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with browser.new_context() as context, ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page = context.new_page()
        sent: list[str] = []
        token = server.headers["Authorization"].removeprefix("Bearer ")
        page.goto(f"{server.url}/#token={token}")
        expect(page).not_to_have_url(re.compile("token"))
        page.locator("nav").first.wait_for()
        page.on("request", lambda each: sent.append(each.all_headers().get("cookie", "")))
        page.goto(f"http://127.0.0.1:{other.server_address[1]}/")
        answers = dict(page.wait_for_function("window.answers").json_value())
        other.shutdown()
    assert answers == {
        "json": "TypeError",
        "form": "opaque",
        "delete": "TypeError",
        "read": "TypeError",
        "script": "TypeError",
        "frame": True,
    }
    # The browser has indeed sent the cookie.
    assert any("localvertex-" in each for each in sent)
    assert server.request("GET", f"/v1/{board}").json()["displayName"] == "kept"
    assert server.request("DELETE", f"/v1/{board}").status_code == 200
