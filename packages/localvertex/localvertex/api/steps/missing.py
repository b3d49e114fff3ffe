"""In place of the server where the packages that it needs are not installed: each call is answered with the advice."""

import json
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MissingServer:
    """Refuses all calls.

    Args:
        text: The answer.
    """

    def __init__(self, text: str) -> None:
        error = {"code": HTTPStatus.NOT_IMPLEMENTED, "status": "UNIMPLEMENTED", "message": text}
        body = json.dumps({"error": error}).encode()

        class Handler(BaseHTTPRequestHandler):
            """Answers every method alike."""

            timeout = 30.0

            def answer(self) -> None:
                # The sender of a body must have sent all of it before it reads the answer.
                self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 1 << 20))
                self.send_response(HTTPStatus.NOT_IMPLEMENTED)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = answer

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.socket.close()

    def run(self, listener: socket.socket) -> None:
        """Answer until `stop`."""
        self._server.socket = listener
        self._server.serve_forever(poll_interval=0.05)

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.shutdown()
