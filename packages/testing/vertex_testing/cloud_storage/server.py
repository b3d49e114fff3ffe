"""The server on loopback: an emulator, and a CONNECT proxy that answers for Google's own names."""

import contextlib
import dataclasses
import pathlib
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self, cast

import trustme

from vertex_testing.cloud_storage.api import Answer, Api, damaged, failure, unpacked
from vertex_testing.cloud_storage.buckets import ApiError, Buckets
from vertex_testing.cloud_storage.faults import ConnectionDropped, Faults, Request

_HOSTS = ("www.googleapis.com", "storage.googleapis.com")
TOKEN = "a-token-of-the-tests"


class CloudStorage:
    """A running server; `buckets` is its content and `faults` are its failures.

    Use it as a context manager. Other processes reach it through `environment`.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        """Create the certificates in `folder` and listen on a free port."""
        self.buckets = Buckets()
        self.faults = Faults()
        authority = trustme.CA()
        self._authority_file = folder / "authority.pem"
        authority.cert_pem.write_to_path(self._authority_file)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*_HOSTS).configure_cert(tls)
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0),
            type("Handler", (_Handler,), {"api": Api(self.buckets, self.faults), "tls": tls, "faults": self.faults}),
        )
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that redirect gs:// in a process to this server, even in TensorFlow."""
        return {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{self._server.server_port}", **self.proxy}

    @property
    def proxy(self) -> dict[str, str]:
        """Variables for programs that connect to Google's own names, with TensorFlow's credentials."""
        return {
            "https_proxy": f"http://127.0.0.1:{self._server.server_port}",
            "no_proxy": "",
            "CURL_CA_BUNDLE": str(self._authority_file),
            "REQUESTS_CA_BUNDLE": str(self._authority_file),
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": TOKEN,
            "NO_GCE_CHECK": "true",
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.faults.clear()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    """One connection: CONNECT, then TLS, then requests."""

    protocol_version = "HTTP/1.1"
    # Otherwise a body waits 40 ms for the client to confirm the headers.
    disable_nagle_algorithm = True
    api: Api
    faults: Faults
    tls: ssl.SSLContext
    is_emulator = True

    def do_CONNECT(self) -> None:
        host, _, _ = self.path.partition(":")
        if host not in _HOSTS:
            self._send(failure(ApiError(403, "forbidden", f"{host} is not served here")))
            return
        self.send_response_only(200, "Connection established")
        self.end_headers()
        # The handshake happens on the first read; after it, this connection speaks HTTP as that host.
        self.is_emulator = False
        # Python's own client asks for the tunnel as HTTP/1.0, which would end with this answer.
        self.close_connection = False
        self.connection = self.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)

    def do_GET(self) -> None:
        headers = cast("Mapping[str, str]", self.headers)
        host = headers.get("Host", "").removesuffix(":443")
        target = f"{host}{self.path}"
        try:
            body = self._body(f"{self.command} {target}")
        except ConnectionDropped as dropped:
            # The bytes of a resumable upload that have arrived count, as they do at Google.
            self.api.keep(self.command, self.path, headers, dropped.body)
            self.close_connection = True
            return
        target, num_bytes = unpacked(target, headers, body)
        line = f"{self.command} {target}"
        request = Request(method=self.command, target=target, num_bytes=num_bytes, range=headers.get("Range", ""))
        if status := self.faults.meet(line, request):
            self._send(failure(ApiError(status, "backendError", "A test made this request fail.")))
            return
        is_damaged = self.faults.is_damaged(line)
        if is_damaged and self.command != "GET":
            body = damaged(headers, body)
        origin = f"{'http' if self.is_emulator else 'https'}://{host}"
        answer = self.api.answer(self.command, self.path, headers, body, origin=origin, is_emulator=self.is_emulator)
        if is_damaged and self.command == "GET":
            answer = dataclasses.replace(answer, body=damaged({}, answer.body))
        self._send(answer, cut=self.faults.answer_length(line))

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def _body(self, line: str) -> bytes:
        length = int(self.headers.get("Content-Length") or 0)
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        cut = self.faults.drop_length(line) if length else None
        body = bytearray()
        # libcurl sends both a length and chunks; chunks win (RFC 9112, 6.3).
        chunked = "chunked" in self.headers.get("Transfer-Encoding", "")
        while piece := self._chunk() if chunked else self.rfile.read(min(65536, length - len(body))):
            body += piece
            if cut is not None and len(body) >= cut:
                raise ConnectionDropped(bytes(body[:cut]))
        return bytes(body)

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0] or b"0", 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    def _send(self, answer: Answer, *, cut: int | None = None) -> None:
        if cut is not None and not answer.body:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[:cut])
        if cut is not None:
            self.close_connection = True

    def handle_expect_100(self) -> bool:
        # Answered when the body is read.
        return True

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            # The client was killed during a request, which tests do on purpose.
            self.close_connection = True

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        # TLS wrapped the server's socket into this one, which the server does not close.
        self.connection.close()
