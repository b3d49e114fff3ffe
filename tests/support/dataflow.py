"""A Dataflow service on loopback: jobs by REST, one active job per name, and gates that delay an answer."""

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

_OVER = {"JOB_STATE_DONE", "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"}
_CANCELLED = 5
_PAGE = 2
_PATH = re.compile(r"/v1b3/projects/([^/]+)/locations/([^/]+)/jobs(?:/([^/]+)(?:/(messages))?)?")


class Dataflow:
    """A running server; use it as a context manager. Other processes reach it through `environment`."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        """Every job that was ever created, as it was sent, with its id and state."""
        self.messages: dict[str, list[dict[str, str]]] = {}
        self.calls: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.failures: list[int] = []
        """Statuses that replace the next answers' own; 0 does not replace."""
        self.refuses_by_conflict = False
        """Answer 409 to a second job of a name, and not the existing one."""
        self.loses_answers = False
        """Answer 404 to the creation of a job that is stored."""
        self.num_late = 0
        """Number of lists that a new job is missing in."""
        self.changed = threading.Condition()
        self._gates: dict[str, tuple[threading.Event, threading.Event]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"service": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def environment(self) -> dict[str, str]:
        """The variable that makes the trainer use this server."""
        return {"DATAFLOW_EMULATOR_HOST": f"localhost:{self._server.server_port}"}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for _, opened in self._gates.values():
            opened.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    @contextlib.contextmanager
    def gate(self, name: str) -> Iterator[threading.Event]:
        """Let the next request wait at a point, `create received` or `create stored`; yields when it is reached."""
        reached, opened = self._gates[name] = (threading.Event(), threading.Event())
        try:
            yield reached
        finally:
            opened.set()

    def pass_gate(self, name: str) -> None:
        if gate := self._gates.pop(name, None):
            gate[0].set()
            assert gate[1].wait(300)

    def wait_for(self, condition: Any) -> None:
        """Wait until a condition on the jobs and calls is true."""
        with self.changed:
            assert self.changed.wait_for(condition, 20)

    def end(self, state: str, number: int = -1) -> None:
        """Put a job into a state, e.g. DONE."""
        with self.changed:
            self.jobs[number]["currentState"] = f"JOB_STATE_{state}"
            self.changed.notify_all()

    def active(self) -> list[dict[str, Any]]:
        """The jobs that run now."""
        return [job for job in self.jobs if job["currentState"] not in _OVER]

    def create(self, project: str, region: str, job: dict[str, Any]) -> tuple[int, Any]:
        with self.changed:
            for other in self.active():
                if other["name"] == job["name"]:
                    text = f"(78f6): There is already an active job named {job['name']}."
                    conflict = {"error": {"code": 409, "message": text, "status": "ALREADY_EXISTS"}}
                    return (409, conflict) if self.refuses_by_conflict else (200, _summary(other))
            number = len(self.jobs) + 1
            own = {"id": f"2026-11-22_{number}", "projectId": project, "location": region}
            self.jobs.append(job | own | {"currentState": "JOB_STATE_RUNNING"})
            self.changed.notify_all()
            return 200, _summary(self.jobs[-1])

    def list(self, query: Mapping[str, str]) -> tuple[int, Any]:
        late = self.jobs if self.num_late else []
        self.num_late -= bool(late)
        found = [job for job in self.jobs if job not in late and query.get("name", job["name"]) == job["name"]]
        start = int(query.get("pageToken") or 0)
        more = {"nextPageToken": str(start + _PAGE)} if start + _PAGE < len(found) else {}
        return 200, {"jobs": [_summary(job) for job in found[start : start + _PAGE]], **more}

    def one(self, method: str, job_id: str, part: str, sent: Any) -> tuple[int, Any]:
        job = next((job for job in self.jobs if job["id"] == job_id), None)
        if job is None:
            return 404, {"error": {"code": 404, "message": f"(1): {job_id} not found", "status": "NOT_FOUND"}}
        if part == "messages":
            return 200, {"jobMessages": self.messages.get(job_id, [])}
        if method == "PUT":
            with self.changed:
                if job["currentState"] in _OVER:
                    text = "(2): Cannot modify a terminated job"
                    return 400, {"error": {"code": 400, "message": text, "status": "FAILED_PRECONDITION"}}
                assert sent["requestedState"] == _CANCELLED
                job["currentState"] = "JOB_STATE_CANCELLED"
                self.changed.notify_all()
        return 200, _summary(job)


def _summary(job: dict[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in ("id", "name", "projectId", "location", "currentState", "clientRequestId")}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Dataflow

    def _answer(self) -> None:
        service, split = self.service, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with service.changed:
            service.calls.append(f"{self.command} {split.path}")
            service.headers.append(dict(self.headers))
            failure = service.failures.pop(0) if service.failures else 0
            service.changed.notify_all()
        found = _PATH.fullmatch(split.path)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        if failure or not found:
            status, answer = failure or 404, {"error": {"code": failure or 404, "message": "a fault of the test"}}
        elif self.command == "POST":
            service.pass_gate("create received")
            status, answer = service.create(found[1], found[2], json.loads(body))
            service.pass_gate("create stored")
            if service.loses_answers:
                status, answer = 404, {"error": {"code": 404, "message": "the answer is lost"}}
        elif not found[3]:
            status, answer = service.list(query)
        else:
            status, answer = service.one(self.command, found[3], found[4] or "", json.loads(body or b"{}"))
        text = json.dumps(answer).encode()
        # The client may be a process that was killed.
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    do_GET = do_POST = do_PUT = _answer

    def log_message(self, format: str, *arguments: object) -> None:
        del format, arguments
