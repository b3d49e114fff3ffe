#!/usr/bin/env bash
# google-cloud-bigquery 3.47.0: an empty list of rows beside totalRows is taken for the whole result.
#
# While `result()` waits for a job, it asks for no rows, with maxResults=0. BigQuery's answer then has no field `rows`,
# and the client reads the rows from the table. A server, proxy or emulator that writes the same answer as `"rows": []`
# gets the answer accepted as the first and only page: the iterator has the right total_rows and yields nothing, without
# an error. The client compares neither with totalRows nor with the maxResults that it has sent itself.
#
# Seen on 2026-11-29 with Python 3.11: the two lines below. Exits with 1 if one changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-cloud-bigquery==3.47.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import http.server
import json
import threading

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

ROWS = [{"f": [{"v": "1"}]}, {"f": [{"v": "2"}]}]
SCHEMA = {"fields": [{"name": "x", "type": "INTEGER"}]}
REFERENCE = {"projectId": "p", "jobId": "j", "location": "US"}
TABLE = {"projectId": "p", "datasetId": "d", "tableId": "t"}
JOB = {
    "jobReference": REFERENCE,
    "status": {"state": "DONE"},
    "configuration": {"query": {"query": "q", "destinationTable": TABLE}},
    "statistics": {"query": {"statementType": "SELECT"}},
}


class Server(http.server.BaseHTTPRequestHandler):
    empty = {}

    def do_GET(self):
        results = {"jobComplete": True, "jobReference": REFERENCE, "schema": SCHEMA, "totalRows": "2"}
        if "/queries/" not in self.path:
            results = JOB
        elif "maxResults=0" in self.path:
            results |= self.empty
        else:
            results["rows"] = ROWS
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(results).encode())

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = {"api_endpoint": f"http://127.0.0.1:{server.server_port}"}
found = {}
for name, Server.empty in {"no field rows": {}, "rows: []": {"rows": []}}.items():
    client = bigquery.Client("p", AnonymousCredentials(), client_options=address)
    rows = client.get_job("j", location="US").result()
    found[name] = (rows.total_rows, [row.x for row in rows])
    print(f"{name}: total_rows {found[name][0]}, read {found[name][1]}")
raise SystemExit(found != {"no field rows": (2, [1, 2]), "rows: []": (2, [])})
PYTHON
