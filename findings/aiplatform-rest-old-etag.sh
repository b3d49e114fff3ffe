#!/usr/bin/env bash
# google-cloud-aiplatform 1.165.1: Context.update does not retry an old etag when the transport is REST.
#
# `Context.update` says that it is "implemented with retry on etag errors": it catches Aborted, reads the context again
# and sends the update again. Over gRPC the server's refusal is Aborted. With `api_transport="rest"` the same refusal is
# HTTP status 409, for which google-api-core raises Conflict, the parent of Aborted, and nothing catches it. So two runs
# that write to one experiment at once lose one update, with a traceback, only over REST.
#
# Seen on 2026-11-29 with Python 3.11: the line below, after one GET and one PATCH. Exits with 1 if it is retried.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-cloud-aiplatform==1.165.1
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import http.server
import json
import threading

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform

NAME = "projects/p/locations/us-central1/metadataStores/default/contexts/c"
REFUSAL = "Specified Context `etag`: `1` does not match server `etag`: `2`"
calls = []


class Server(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        calls.append(self.command)
        is_old = self.command == "PATCH" and calls.count("PATCH") == 1
        body = {"name": NAME, "schemaTitle": "system.Experiment", "etag": str(1 + calls.count("PATCH"))}
        if is_old:
            body = {"error": {"code": 409, "message": REFUSAL, "status": "ABORTED"}}
        self.send_response(409 if is_old else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    do_GET = do_PATCH = answer

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
aiplatform.init(
    project="p",
    location="us-central1",
    credentials=AnonymousCredentials(),
    api_endpoint=f"http://127.0.0.1:{server.server_port}",
    api_transport="rest",
)
context = aiplatform.Context(NAME)
try:
    context.update(metadata={"accuracy": 0.9})
    ended = "updated"
except exceptions.Conflict as error:
    ended = f"raised {type(error).__name__}"
print(f"an old etag over REST: {ended} after {calls}")
raise SystemExit(ended != "raised Conflict" or calls != ["GET", "PATCH"])
PYTHON
