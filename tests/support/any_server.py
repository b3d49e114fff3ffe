"""A prediction server for the model of `any_training`, with the service's variables and nothing of this project."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    """Health and predictions."""

    def do_GET(self) -> None:
        """Answer a health check."""
        self._answer({})

    def do_POST(self) -> None:
        """Answer with 0 or 1 per instance."""
        weights = json.loads((Path(os.environ["AIP_STORAGE_URI"]) / "weights.json").read_text())
        instances = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        answers = [int(sum(a * b for a, b in zip(row, weights, strict=True)) > 0) for row in instances]
        self._answer({"predictions": answers})

    def _answer(self, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Write no line per request."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["AIP_HTTP_PORT"])), Handler).serve_forever()
