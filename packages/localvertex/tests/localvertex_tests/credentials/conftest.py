"""Credentials as a user has them, planted in every place where Google's libraries look; none of them is real."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

TOKEN = "planted-token-of-the-metadata-server"


class Metadata(ThreadingHTTPServer):
    """A metadata server that gives a token to every caller; `paths` are the requested paths."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.paths: list[str] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Metadata

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        if "token" in self.path:
            body, kind = json.dumps({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"}), "json"
        elif "service-accounts" in self.path:
            body, kind = json.dumps({"email": "planted@example.org", "scopes": ["all"]}), "json"
        else:
            body, kind = "planted-project", "text"
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", f"application/{kind}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    with Metadata() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


@pytest.fixture
def planted(tmp_path: Path, metadata: Metadata) -> dict[str, str]:
    """Variables of a user with credentials in HOME, in CLOUDSDK_CONFIG, in variables and in a metadata server."""
    home, config = tmp_path / "home", tmp_path / "gcloud"
    user = {"type": "authorized_user", "client_id": "c", "client_secret": "planted-client", "account": "me@example.org"}
    user |= {"refresh_token": "planted-refresh-token", "token_uri": "http://127.0.0.1:9/token"}
    for folder in (home / ".config" / "gcloud", config):
        folder.mkdir(parents=True)
        (folder / "application_default_credentials.json").write_text(json.dumps(user))
    return {
        "HOME": str(home),
        "CLOUDSDK_CONFIG": str(config),
        "CLOUDSDK_AUTH_ACCESS_TOKEN": "planted-access-token",
        "GOOGLE_APPLICATION_CREDENTIALS": str(config / "application_default_credentials.json"),
        "GOOGLE_API_KEY": "planted-api-key",
        "GOOGLE_AUTH_TOKEN_FOR_TESTING": "planted-testing-token",
        "HF_TOKEN": "planted-other-token",
        "GCE_METADATA_HOST": metadata.address,
        "GCE_METADATA_ROOT": metadata.address,
        "GCE_METADATA_IP": metadata.address,
    }


@pytest.fixture
def with_planted(planted: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Plant the credentials in this process, whose steps inherit them."""
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_GCE_CHECK", raising=False)
    return planted
