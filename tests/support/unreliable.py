"""Services on loopback that answer as a test wants, in front of a real one or alone."""

import http.server
import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from typing import Self

import requests

_STATUSES = {404: "NOT_FOUND", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request."""

    method: str
    path: str
    headers: Message
    """Their names may have any case."""
    body: bytes


class Answering:
    """A service whose answers, code and body, come from a function.

    Args:
        answer: The function.
    """

    def __init__(self, answer: Callable[[Received], tuple[int, bytes]]) -> None:
        self.received: list[Received] = []
        received = self.received

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                request = Received(method=self.command, path=self.path, headers=self.headers, body=body)
                received.append(request)
                code, content = answer(request)
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def methods(self) -> list[str]:
        """Return the methods of all requests."""
        return [each.method for each in self.received]

    def __enter__(self) -> Self:
        """Return the service."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the service."""
        self._server.shutdown()
        self._server.server_close()


def refusal(code: int) -> tuple[int, bytes]:
    """Return the answer of Google's services with an error."""
    return code, json.dumps({"error": {"code": code, "message": "no", "status": _STATUSES[code]}}).encode()


def unreliable(url: str, *, first_failure: int, is_made: bool) -> Answering:
    """Return a service in front of a real one that answers all calls from one on with 503.

    Args:
        url: The real service's.
        first_failure: Number of the first call that fails, from 1.
        is_made: Whether the real service gets this call, whose answer is lost.
    """
    calls = itertools.count(1)

    def answer(request: Received) -> tuple[int, bytes]:
        number = next(calls)
        if number > first_failure or (number == first_failure and not is_made):
            return refusal(503)
        headers = {name: request.headers[name] for name in ("Authorization", "Content-Type")}
        made = requests.request(request.method, url + request.path, data=request.body, headers=headers, timeout=60)
        return (made.status_code, made.content) if number < first_failure else refusal(503)

    return Answering(answer)
