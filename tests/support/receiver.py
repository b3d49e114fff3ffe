"""A receiver of webhooks on loopback: it answers as a test defines, and keeps the requests."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CLOSES, HANGS, DRIPS = "closes half way", "hangs", "sends one byte now and then"
Answer = int | str
"""A status code, or one of the above."""

PATH = "/services/T0SECRET/B1SECRET/wxyzSECRETSECRET"


class Receiver:
    """A server on loopback.

    Args:
        answers: The answers in their order; the last one is repeated.
    """

    def __init__(self, *answers: Answer) -> None:
        self.received: list[tuple[str, str, Any]] = []
        """Method, path and body of each request."""
        self.headers: list[Message] = []
        self._answers, self._ends = list(answers), threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        """The secret address of its webhook."""
        return f"http://127.0.0.1:{self._server.server_port}{PATH}"

    @property
    def url(self) -> str:
        """The address of the server itself."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def body(self, request: BaseHTTPRequestHandler) -> Any:
        """Return the body of an answer."""
        return {}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Keep a request and answer it."""
        content = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.headers.append(request.headers)
        self.received.append((request.command, request.path, json.loads(content) if content else None))
        how = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        if how == HANGS:
            self._ends.wait()
        elif how == CLOSES:
            request.wfile.write(b"HTTP/1.1 20")
        elif how == DRIPS:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
            while not self._ends.wait(0.02):
                request.wfile.write(b"x")
        else:
            data = json.dumps(self.body(request)).encode()
            request.send_response(int(how))
            if 300 <= int(how) < 400:
                request.send_header("Location", f"{self.url}/elsewhere")
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)

    def close(self) -> None:
        """End the server and all its answers."""
        self._ends.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiving(*answers: Answer) -> Iterator[Receiver]:
    """Run a receiver."""
    receiver = Receiver(*answers)
    try:
        yield receiver
    finally:
        receiver.close()
