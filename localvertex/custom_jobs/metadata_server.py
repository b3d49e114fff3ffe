"""What Compute Engine's metadata server says about a machine, on the loopback interface.

Source: docs.cloud.google.com/compute/docs/metadata/querying-metadata (wait_for_change, last_etag, timeout_sec,
Metadata-Flavor), .../instances/create-use-spot (preempted), .../instances/monitor-plan-host-maintenance-event.
"""

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

ROOT = "/computeMetadata/v1/"
PREEMPTED, MAINTENANCE_EVENT = "instance/preempted", "instance/maintenance-event"
INITIAL = {PREEMPTED: "FALSE", MAINTENANCE_EVENT: "NONE"}


class MetadataServer:
    """The metadata server of one replica; a replica finds it by GCE_METADATA_HOST."""

    def __init__(self) -> None:
        self._values = {name: (value, 1) for name, value in INITIAL.items()}
        self._has_changed = threading.Condition()
        self._is_closed = False
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.metadata = self
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="metadata", daemon=True).start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def set(self, name: str, value: str) -> None:
        """Changes a value; those that wait for it are told."""
        with self._has_changed:
            previous, version = self._values[name]
            if value != previous:
                self._values[name] = (value, version + 1)
                self._has_changed.notify_all()

    def reset(self) -> None:
        """The replica is on a machine that nobody wants."""
        for name, value in INITIAL.items():
            self.set(name, value)

    def get(self, name: str, *, wait_for_etag: str | None, timeout_seconds: float | None) -> tuple[str, str] | None:
        """Value and ETag, None when there is no such value; waits while the ETag is the one given."""
        with self._has_changed:
            if name not in self._values:
                return None
            if wait_for_etag is not None:
                known = wait_for_etag or etag(self._values[name])
                self._has_changed.wait_for(
                    lambda: self._is_closed or etag(self._values[name]) != known, timeout_seconds
                )
            return self._values[name][0], etag(self._values[name])

    def close(self) -> None:
        """Ends the server; those that wait get the present value."""
        with self._has_changed:
            self._is_closed = True
            self._has_changed.notify_all()
        self._server.shutdown()
        self._server.server_close()


def etag(value: tuple[str, int]) -> str:
    """The version of a value, as the server shows it."""
    return f"{value[1]:016x}"


class Server(ThreadingHTTPServer):
    """Each request in a thread of its own, because a request may wait."""

    daemon_threads = True
    metadata: MetadataServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A replica that was killed while it waited is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """GET of a single value."""

    server_version = "Metadata Server for VM"
    sys_version = ""
    server: Server

    def do_GET(self) -> None:
        """Answers a request."""
        url = urlsplit(self.path)
        options = {name: values[-1] for name, values in parse_qs(url.query).items()}
        if self.headers.get("Metadata-Flavor") != "Google" or self.headers.get("X-Forwarded-For"):
            return self.answer(HTTPStatus.FORBIDDEN, "Missing Metadata-Flavor:Google header.")
        wait_for_etag = options.get("last_etag", "") if options.get("wait_for_change", "").lower() == "true" else None
        try:
            timeout_seconds = float(options["timeout_sec"]) if "timeout_sec" in options else None
        except ValueError:
            return self.answer(HTTPStatus.BAD_REQUEST, "timeout_sec is not a number")
        found = self.server.metadata.get(
            url.path.removeprefix(ROOT), wait_for_etag=wait_for_etag, timeout_seconds=timeout_seconds
        )
        if found is None or not url.path.startswith(ROOT):
            return self.answer(HTTPStatus.NOT_FOUND, "not found")
        return self.answer(HTTPStatus.OK, found[0], ETag=found[1])

    def answer(self, status: HTTPStatus, text: str, **headers: str) -> None:
        """Sends a text."""
        body = text.encode()
        self.send_response(status)
        own = {"Metadata-Flavor": "Google", "Content-Type": "application/text", "Content-Length": str(len(body))}
        for name, value in {**own, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""
