"""A metadata server on the loopback interface that announces preemption and maintenance as Compute Engine does.

Source: docs.cloud.google.com/compute/docs/metadata/querying-metadata (wait_for_change, last_etag, timeout_sec,
Metadata-Flavor), .../instances/create-use-spot (preempted), .../instances/monitor-plan-host-maintenance-event.
"""

import socket
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from localvertex.values import facts

_ROOT = "/computeMetadata/v1/"
PREEMPTED, MAINTENANCE_EVENT = "instance/preempted", "instance/maintenance-event"
_INITIAL = {name: facts.group("metadata")[name].here for name in (PREEMPTED, MAINTENANCE_EVENT)}


class MetadataServer:
    """The metadata server of one replica, which finds it by GCE_METADATA_HOST."""

    def __init__(self) -> None:
        self._values = {name: (value, 1) for name, value in _INITIAL.items()}
        self._has_changed = threading.Condition()
        self._is_closed = False
        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.metadata = self
        threading.Thread(target=self._server.serve_forever, name="metadata", daemon=True).start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._server.server_port}"

    def set(self, name: str, value: str) -> None:
        """Change a value and answer the requests that wait for it."""
        with self._has_changed:
            previous, version = self._values[name]
            if value != previous:
                self._values[name] = (value, version + 1)
                self._has_changed.notify_all()

    def reset(self) -> None:
        """Set all values as on a healthy machine."""
        for name, value in _INITIAL.items():
            self.set(name, value)

    def get(self, name: str, *, wait_for_etag: str | None, timeout_seconds: float | None) -> tuple[str, str] | None:
        """Return value and ETag, or None when there is no such value; wait while the ETag is the given one."""
        with self._has_changed:
            if name not in self._values:
                return None
            if wait_for_etag is not None:
                known = wait_for_etag or _etag(self._values[name])
                self._has_changed.wait_for(
                    lambda: self._is_closed or _etag(self._values[name]) != known, timeout_seconds
                )
            return self._values[name][0], _etag(self._values[name])

    def close(self) -> None:
        """Stop the server; requests that wait get the current value."""
        with self._has_changed:
            self._is_closed = True
            self._has_changed.notify_all()
        # `shutdown` waits until the server's loop looks at it, for which a connection wakes the loop.
        stopping = threading.Thread(target=self._server.shutdown, daemon=True)
        stopping.start()
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", self._server.server_port)).close()
        stopping.join()
        self._server.server_close()


def _etag(value: tuple[str, int]) -> str:
    """Format the version of a value as its ETag."""
    return f"{value[1]:016x}"


class Server(ThreadingHTTPServer):
    """An HTTP server with one thread per request, because a request may wait."""

    daemon_threads = True
    metadata: MetadataServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that broke because a replica was killed while it waited."""


class Handler(BaseHTTPRequestHandler):
    """Answers GET requests for a single value."""

    server_version = "Metadata Server for VM"
    sys_version = ""
    server: Server

    def do_GET(self) -> None:
        """Answer a request."""
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
            url.path.removeprefix(_ROOT), wait_for_etag=wait_for_etag, timeout_seconds=timeout_seconds
        )
        if found is None or not url.path.startswith(_ROOT):
            return self.answer(HTTPStatus.NOT_FOUND, "not found")
        return self.answer(HTTPStatus.OK, found[0], ETag=found[1])

    def answer(self, status: HTTPStatus, text: str, **headers: str) -> None:
        """Send a text."""
        body = text.encode()
        self.send_response(status)
        own = {"Metadata-Flavor": "Google", "Content-Type": "application/text", "Content-Length": str(len(body))}
        for name, value in {**own, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
