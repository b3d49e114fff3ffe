"""A service in front of a real one, on loopback, that is not available from some call on."""

import http.server
import itertools
import threading
from typing import Self

import requests


class Unreliable:
    """Answers all calls from one on with 503.

    Args:
        url: The real service's.
        first_failure: Number of the first call that fails, from 1.
        is_made: Whether the real service gets this call, whose answer is lost.
    """

    def __init__(self, url: str, *, first_failure: int, is_made: bool) -> None:
        calls = itertools.count(1)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                number = next(calls)
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                code, content = 503, b'{"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}'
                if number < first_failure or (is_made and number == first_failure):
                    headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
                    answer = requests.request(self.command, url + self.path, data=data, headers=headers, timeout=60)
                    if number < first_failure:
                        code, content = answer.status_code, answer.content
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PATCH = do_DELETE = do_GET

            def log_message(self, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Self:
        """Return the service."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the service."""
        self.server.shutdown()
        self.server.server_close()
