"""How a training may end: what a process does to itself then, how the end is measured, and the page with all ends.

The page is the expectation of the tests, and `write` makes it from what was measured.
"""

import http.server
import math
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints
from exact_resume.events import log as event_log

END_OF_STEP = 6
"""The end comes in this step, or in the first block of steps that reaches it."""
ENDS = (
    "finished",
    "stopped early",
    "infinite loss",
    "SIGTERM",
    "SIGINT",
    "notice",
    "notice, then SIGTERM",
    "error",
    "SIGTERM, then error",
    "SIGTERM, full disk",
    "full disk at the last save",
    "lost peer",
    "frozen",
    "another job's lease",
    "lost best",
)
WAYS = ("run", "blocks", "run, 2 workers", "keras_fit", "wrapper", "trainer", "trainer, 2 workers")
ONLY_ALL = ("finished", "stopped early", "infinite loss", "another job's lease", "lost best")
"""Ends that come to all workers; any other comes to one of them."""
START, END = "<!-- ends: written by tests/ends.py -->\n\n", "\n<!-- end of ends -->\n"
_FILE_BYTES = 60_000
"""A larger file cannot be written after the disk is full: a checkpoint, but no line of the event log."""
RESTARTS = {"0": "succeeds", "1": "fails", "2": "fails", "130": "restarts", "134": "restarts", "143": "restarts"}
"""Exit code -> what Vertex AI does with the job (docs/faults.md of localvertex, and decision 0050)."""
_ALL_BUT = "all but "
Cell = tuple[str, ...]
"""Exit codes, what is saved, what the event log has and what the service does; or only why an end does not apply."""


class Disturbance:
    """Lets a training end in its own process."""

    def __init__(self, end: str, folder: str, *, is_alone: bool = True, process: int = 0) -> None:
        """Prepare the end; call `watched` before the training starts.

        Args:
            end: One of ENDS, or "" for none.
            folder: Checkpoint folder.
            is_alone: Whether the training has one process.
            process: Receives signals and the full disk; 0: this one.
        """
        self._end, self._folder, self._is_alone, self._process = end, folder, is_alone, process or os.getpid()
        self.has_come = False
        """Whether the end has come."""

    def __call__(self, step: int, stop_early: Callable[[], object] = lambda: None) -> None:
        """Let the end come, if it is time.

        Args:
            step: Number of steps done at the end of this one.
            stop_early: Ends the training with this step.
        """
        if self._end == "notice, then SIGTERM" and self.has_come and checkpoints.steps(self._folder):
            os.kill(self._process, signal.SIGTERM)
        if step < END_OF_STEP or self.has_come:
            return
        self.has_come = True
        Path(f"{self._folder}.step").write_text(str(step))
        if self._end == "stopped early":
            stop_early()
        if self._end in ("SIGTERM, full disk", "full disk at the last save"):
            resource.prlimit(self._process, resource.RLIMIT_FSIZE, (_FILE_BYTES, resource.RLIM_INFINITY))
        if self._end.startswith("SIG"):
            os.kill(self._process, signal.Signals[self._end.partition(",")[0]])
        if self._end.startswith("notice"):
            Path(f"{self._folder}.announced").touch()
            while not Path(f"{self._folder}.received").exists():
                time.sleep(0.01)
        if self._end.endswith("error"):
            raise ZeroDivisionError("of its own")
        if self._end == "lost peer":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._end == "frozen":
            os.kill(os.getpid(), signal.SIGSTOP) if not self._is_alone else None
            time.sleep(600)

    @property
    def loss(self) -> float:
        """The loss of the last step."""
        return math.inf if self._end == "infinite loss" and self.has_come else 0.5

    def watched(self) -> None:
        """Let a metadata server on loopback announce the preemption."""
        if self._end.startswith("notice"):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Metadata)
            server.daemon_threads, server.folder = True, self._folder  # type: ignore[attr-defined]
            threading.Thread(target=server.serve_forever, daemon=True).start()
            os.environ["GCE_METADATA_HOST"] = f"127.0.0.1:{server.server_port}"


class _Metadata(http.server.BaseHTTPRequestHandler):
    """Answers about a preemption when it is announced; the next request shows that the answer was read."""

    def do_GET(self) -> None:
        folder = self.server.folder  # type: ignore[attr-defined]
        is_first = "preempted" in self.path and "last_etag=0" in self.path
        if not is_first:
            Path(f"{folder}.received").touch() if "preempted" in self.path else None
        while not is_first or not Path(f"{folder}.announced").exists():
            time.sleep(0.01)
        self.send_response(200)
        for name, value in {"Metadata-Flavor": "Google", "ETag": "1", "Content-Length": "4"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"TRUE")

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


def measured(end: str, folder: Path, codes: Sequence[int | None], *, num_steps: int, saves: Sequence[int] = ()) -> Cell:
    """Return the cell of an end.

    Args:
        end: One of ENDS.
        folder: Checkpoint folder.
        codes: Exit codes, first of the process to which the end has come; None: it was killed or frozen.
        num_steps: Of the whole training.
        saves: Saved steps, if not those of the event log.
    """
    path = folder.with_name(f"{folder.name}.step")
    step = int(path.read_text()) if path.exists() else num_steps
    events = event_log.read(str(folder))
    saves = saves or [event["step"] for event in events if event["event"] == "save"]
    found = _listed(128 - code if code < 0 else code for code in codes if code is not None)
    logged = [event["code"] for event in events if event["event"] == "exit"]
    notice = "notice" if any(event["event"] == "notice" for event in events) else ""
    log = ", ".join(filter(None, [_listed(sorted(logged, key=[*codes, *logged].index)), notice])) or "nothing"
    if end == "notice" and found == "0":
        # The training has continued to its end.
        saves = [each for each in saves if each < num_steps]
    is_saved = max(saves, default=0) >= step
    return found, "that step" if is_saved else "nothing new", log, RESTARTS[found.split(" / ")[0]]


def _listed(codes: Iterable[int]) -> str:
    return " / ".join(dict.fromkeys(map(str, codes)))


def read(page: Path, way: str) -> dict[str, Cell]:
    """Return end -> cell of the page for a way to train."""
    return {end: cell for (end, of), cell in _read(page).items() if of == way}


def write(page: Path, found: Mapping[str, Mapping[str, Cell]]) -> None:
    """Write the page again, with new cells of some ways to train."""
    cells = _read(page) | {(end, way): cell for way, of_way in found.items() for end, cell in of_way.items()}
    before, _, rest = page.read_text().partition(START)
    page.write_text(f"{before}{START}{_table(cells)}{END}{rest.partition(END)[2]}")


def _read(page: Path) -> dict[tuple[str, str], Cell]:
    text = page.read_text().partition(START)[2].partition(END)[0]
    cells, end = {}, ""
    for line in text.splitlines()[2:]:
        name, ways, *cell = map(str.strip, line[1:-1].split("|"))
        end = name or end
        of_cell = ways.removeprefix(_ALL_BUT).split("; ")
        for way in WAYS if ways == "all" else set(WAYS) - {*of_cell} if ways.startswith(_ALL_BUT) else of_cell:
            cells[end, way] = tuple(filter(None, cell))
    return cells


def _table(cells: Mapping[tuple[str, str], Cell]) -> str:
    lines: list[Cell] = [("end", "way", "exit code", "saved", "event log", "Vertex AI"), ("---",) * 6]
    for end in ENDS:
        cell_of = {way: cells[end, way] for way in WAYS if (end, way) in cells}
        for number, cell in enumerate(dict.fromkeys(cell_of.values())):
            ways = [way for way in cell_of if cell_of[way] == cell]
            others = [way for way in WAYS if way not in ways]
            text = _ALL_BUT + "; ".join(others) if len(others) < len(ways) else "; ".join(ways)
            row = [end if not number else "", text if others else "all", *cell]
            lines.append((*row, *[""] * (6 - len(row))))
    return "".join(f"|{'|'.join(f' {each} ' if each else ' ' for each in line)}|\n" for line in lines)
