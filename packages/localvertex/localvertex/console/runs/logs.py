"""The routes' answers about the logs of a step."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from starlette.responses import Response

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.errors import invalid, not_found
from localvertex.console import file_responses
from localvertex.console.runs.folders import step_folder
from localvertex.show.view import logs
from localvertex.store.executor_files import LOG


def answer(run_dir: Path, task: str, query: Mapping[str, str]) -> JsonObject:
    """Return the logs of a step and a part of one of them, by default of the first.

    Raises:
        ApiError: The step or an offset is wrong.
    """
    folder = step_folder(run_dir, task)
    names = logs.files(run_dir, task)
    chosen = query.get("file") or next(iter(names), LOG)
    places: JsonObject = {name: _number(name, query.get(name, "")) for name in ("offset", "before", "around")}
    found = logs.piece(folder / chosen, **places) if chosen in names else None
    return {"files": names, "file": chosen, **asdict(found or logs.EMPTY)}


def download(run_dir: Path, task: str, query: Mapping[str, str]) -> Response:
    """Return a log as a file that the browser saves.

    Raises:
        ApiError: There is no such log.
    """
    folder = step_folder(run_dir, task)
    names = logs.files(run_dir, task)
    chosen = query.get("file") or next(iter(names), LOG)
    if chosen not in names:
        raise not_found(f"the log {chosen[:200]!r} of {task[:200]!r}")
    return file_responses.download(folder / chosen)


def _number(name: str, text: str) -> int | None:
    """Return an offset of a query; None without it.

    Raises:
        ApiError: It is not a number.
    """
    if text and not (text.isdecimal() and len(text) < 16):
        raise invalid(f"{name}={text[:100]}: expected a number of bytes")
    return int(text) if text else None
