"""A serving container in pure Python: `python -m localvertex_tests.support.serving`, or this file with any Python.

Each instance is answered by itself and the values of the process. The text "wait" waits, "crash" ends the process,
"bad" is refused, "odd" is answered by something that is not a prediction, "half" by a part of one. "until PATH" waits
for this file.
"gate PATH" as the last arguments: healthy as soon as there is such a file. "endless": a health check does not end.
"""

import http.server
import json
import os
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    """Health and predictions, at the routes of the service."""

    def do_GET(self) -> None:
        """Answer a health check."""
        if "endless" in sys.argv:
            return self._never_end()
        is_known = self.path == os.environ["AIP_HEALTH_ROUTE"] and "unhealthy" not in sys.argv
        if "gate" in sys.argv:
            is_known = is_known and os.path.exists(sys.argv[-1])
        self._answer(200 if is_known else 404, {})

    def do_POST(self) -> None:
        """Answer a prediction."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        content = json.loads(body)
        instances = content.get("instances", [])
        if "crash" in instances:
            os._exit(7)
        if "wait" in instances:
            time.sleep(600)
        if instances and str(instances[0]).startswith("until "):
            self._wait_for(instances[0].removeprefix("until "))
        if "bad" in instances:
            return self._answer(400, {"error": "an instance is bad"})
        if "half" in instances:
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"predictions": []}')
            self.close_connection = True
            return None
        if "odd" in instances:
            return self._answer(200, {"answer": 42})
        values = {name: text for name, text in os.environ.items() if name.startswith(("AIP_", "OWN_", "SECRET"))}
        values |= {"pid": str(os.getpid()), "arguments": " ".join(sys.argv[1:])}
        predictions = [{"instance": each, "by": values} for each in instances]
        return self._answer(200, {"predictions": predictions, "parameters": content.get("parameters")})

    def _answer(self, code: int, content: object) -> None:
        data = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _wait_for(self, path: str) -> None:
        """Wait for a file, beside another one that shows that the request has arrived."""
        with open(f"{path}.{self.client_address[1]}", "w"):
            pass
        while not os.path.exists(path):
            time.sleep(0.05)

    def _never_end(self) -> None:
        """Send a byte now and then."""
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b" ")
            time.sleep(0.1)

    def log_message(self, *args: object) -> None:
        """Write no line per request."""


def main() -> None:
    """Serve until the end of the process."""
    print("serving started", flush=True)
    if "broken" in sys.argv:
        raise SystemExit("error: the model cannot be loaded")
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["AIP_HTTP_PORT"])), Handler).serve_forever()


if __name__ == "__main__":
    main()
