"""How a model is used from its page: its path, its files, a command, and the prediction of a dropped image."""

import base64
import io
import os
import shlex
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, expect

from localvertex.store import registry
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

SERVER = """
import base64, http.server, json, os

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, {})

    def do_POST(self):
        (instance,) = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        if b"PNG" not in base64.b64decode(instance["b64"]):
            return self.answer(400, {"error": "instance 0: not an image"})
        self.answer(200, {"predictions": [{"label": "cat", "probabilities": [0.75, 0.25], "pid": os.getpid()}]})

    def answer(self, code, content):
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["AIP_HTTP_PORT"])), Handler).serve_forever()
"""

PREDICT = "import os, sys\nprint(os.path.exists(sys.argv[1] + '/saved_model.pb'), input(), sys.argv[2:])\n"

OWN = {"image_uri": "own:1", "command": ["python", "-m", "trainer.serve"], "health_route": "/health"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="  # a PNG


def add(work_dir: Path, name: str, files: dict[str, str], **fields: Any) -> Path:
    """Register a model with files, and return their folder."""
    registry.add(work_dir, {"display_name": name, **fields})
    folder = work_dir / "models" / name / "1" / "model"
    for each, text in files.items():
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text(text)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose Python has a stand-in for the project's own prediction server."""
    folder = tmp_path_factory.mktemp("use of models")
    for name, text in (("__init__", ""), ("serve", SERVER), ("predict", PREDICT)):
        (folder / "own" / "trainer").mkdir(parents=True, exist_ok=True)
        (folder / "own" / "trainer" / f"{name}.py").write_text(text)
    files = {"saved_model.pb": "a", "variables/b c.txt": "b" * 3_000_000, ".hidden": "h"}
    files["assets.extra/model.json"] = '{"class_names": ["cat", "dog <b>"]}'
    own = add(folder / "runs", "own", files, container_spec=OWN)
    (own / "out.txt").symlink_to(folder / "own" / "trainer" / "serve.py")
    (own / "folder").symlink_to(folder / "own")
    add(folder / "runs", "foreign", {"x": "y"}, container_spec={"image_uri": "gcr.io/a/b"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", f"{folder / 'own'}:{os.environ.get('PYTHONPATH', '')}")
        with Server(folder / "runs") as found:
            yield found


def get(server: Server, path: str) -> Any:
    return server.get(f"/local/models/{path}")


def predict(server: Server, model: str, data: bytes) -> Any:
    body = {"b64": base64.b64encode(data).decode()}
    return server.request("POST", f"/local/models/{model}/1:predict", json=body)


def test_the_shown_command_works_when_it_is_pasted(server: Server, tmp_path: Path) -> None:
    use = get(server, "own/1").json()["use"]
    assert Path(use["path"]) == server.work_dir / "models" / "own" / "1" / "model"
    answer = subprocess.run(
        ["sh", "-c", use["command"]],
        input="an image.png\n",
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(server.work_dir.parent / "own")},
    )
    assert answer.stdout == "True an image.png []\n"


def test_an_image_is_predicted_by_a_process_that_ends_with_the_server(server: Server) -> None:
    assert get(server, "own/1").json()["use"]["takes_images"] is True
    answer = predict(server, "own", base64.b64decode(PIXEL)).json()
    number = answer.pop("pid")
    assert answer == {"label": "cat", "probabilities": [["cat", 0.75], ["dog <b>", 0.25]]}
    refused = predict(server, "own", b"text")
    assert (refused.status_code, "not an image" in refused.json()["error"]["message"]) == (400, True)
    # It runs until the server ends, and another one is started after its end.
    assert predict(server, "own", base64.b64decode(PIXEL)).json()["pid"] == number
    served = [
        each
        for each in psutil.Process(server.process.pid).children(recursive=True)
        if "trainer.serve" in each.cmdline()
    ]
    assert served
    for body in ({}, {"b64": 3}, {"b64": ""}, {"b64": PIXEL, "more": 1}):
        assert server.request("POST", "/local/models/own/1:predict", json=body).status_code == 400
    served[-1].kill()
    assert predict(server, "own", base64.b64decode(PIXEL)).json()["label"] == "cat"


def test_a_model_of_another_project_has_the_request_to_send(server: Server) -> None:
    use = get(server, "foreign/1").json()["use"]
    assert (use["takes_images"], use["command"]) == (False, "")
    assert predict(server, "foreign", base64.b64decode(PIXEL)).status_code == 400


def test_each_file_and_all_of_them_are_downloaded_and_no_others(server: Server, tmp_path: Path) -> None:
    listed = {each["name"]: each["size"] for each in get(server, "own/1").json()["files"]}
    assert set(listed) == {"saved_model.pb", "variables/b c.txt", "assets.extra/model.json"}
    answer = get(server, "own/1/file?file=variables/b%20c.txt")
    assert (len(answer.content), answer.headers["content-disposition"].split(";")[0]) == (3_000_000, "attachment")
    for name in ("out.txt", "folder/trainer/serve.py", "../model.json", "/etc/passwd", ".hidden", "", "none", "%00"):
        assert get(server, f"own/1/file?file={name}").status_code == 404, name
    archive = get(server, "own/1/zip")
    assert archive.headers["content-disposition"].endswith("own-1.zip")
    with zipfile.ZipFile(io.BytesIO(archive.content)) as opened_archive:
        assert opened_archive.testzip() is None
        assert {each.filename: each.file_size for each in opened_archive.infolist()} == listed
    assert get(server, "own/2/zip").status_code == 404


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_an_image_that_is_dropped_on_the_page_is_predicted(
    browser: Browser, server: Server, tmp_path: Path, width: int
) -> None:
    (tmp_path / "<i>.png").write_bytes(base64.b64decode(PIXEL))
    (tmp_path / "a.txt").write_text("text")
    with opened(browser, server, "#/models/own/1", width=width, expected="400") as page:
        page.locator("input[type=file]").set_input_files(tmp_path / "<i>.png")
        expect(
            page.get_by_role("table", name="Classes of the prediction").get_by_role("row", name="dog <b>")
        ).to_contain_text("25%")
        expect(page.get_by_role("img", name="<i>.png")).to_be_visible()
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("input[type=file]").set_input_files(tmp_path / "a.txt")
        expect(page.get_by_role("alert")).to_contain_text("not an image")
        with page.expect_download() as download:
            page.get_by_role("link", name="saved_model.pb").click()
        assert download.value.path().read_text() == "a"
        with page.expect_download() as download:
            page.get_by_role("link", name="Download all").click()
        assert zipfile.is_zipfile(download.value.path())


@pytest.mark.slow
@needs_chromium
def test_the_request_to_an_endpoint_is_shown_and_works(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/models/foreign/1") as page:
        expect(page.get_by_text("ENDPOINT_ID:predict")).to_be_visible()
        expect(page.locator("input[type=file]")).to_have_count(0)
        command = page.locator(".code pre").filter(has_text="curl").inner_text()
        assert problems_of(page) == []
    # The server has no such endpoint, and says so: the rest of the request is right.
    found = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, cwd="/")
    assert "ENDPOINT_ID" in found.stdout
    assert "NOT_FOUND" in found.stdout
    assert shlex.split(command)[0] == "curl"
