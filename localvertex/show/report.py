"""`run.html`: the page that a run leaves behind, also when it failed."""

from datetime import datetime
from pathlib import Path
from typing import Any

from localvertex.processes import logs
from localvertex.show import job_report
from localvertex.state import record
from localvertex.state.task import State
from localvertex.values.placeholders import local_path
from userinput import files

FILE, TEMPLATE = "run.html", "run.html.j2"

MAX_EMBEDDED_BYTES = 30 * 1024 * 1024
"""All embedded pages together; what goes beyond is linked."""


def write(run_dir: Path, content: dict[str, Any]) -> Path:
    """Writes the page in one piece and returns its path."""
    # Imported here: a run that is refused needs no template engine.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    page = environment.get_template(TEMPLATE).render(
        run=content,
        steps=[step_row(task, content) for task in content["tasks"] if is_shown(task)],
        custom_jobs=job_report.sections(content["tasks"]),
        pages=embedded_pages(run_dir, content["tasks"]),
        failure=failure(run_dir, content),
        models=[{**each, "link": link(run_dir, each["uri"])} for each in content["models"]],
        style=(folder / "run.css").read_text(),
    )
    files.write_all({run_dir / FILE: page.encode(errors="replace")})
    return run_dir / FILE


def is_shown(task: dict[str, Any]) -> bool:
    """Steps, and dags that were not entered."""
    return bool(task["kind"] == "step" or task["state"] == State.NOT_TRIGGERED)


def step_row(task: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """A task with its place on the time line, in percent of the run."""
    total = max(content["seconds"], 0.001)
    begin, start = moment(content["start_time"]), moment(task["start_time"])
    left = (start - begin).total_seconds() / total * 100 if begin and start else 0.0
    width = task["seconds"] / total * 100 if start else 0.0
    return {**task, "left": round(min(left, 100), 2), "width": round(min(width, 100 - min(left, 100)), 2)}


def moment(text: str | None) -> datetime | None:
    """A time of the record."""
    return datetime.fromisoformat(text) if text else None


def embedded_pages(run_dir: Path, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every system.HTML artifact: its text, or only a link when there is too much of it."""
    left = MAX_EMBEDDED_BYTES
    pages = []
    for path, name, artifact in record.artifacts_of_type(tasks, "system.HTML"):
        file = Path(local_path(artifact["uri"]))
        size = file.stat().st_size if file.is_file() else None
        text = file.read_text(errors="replace") if size is not None and size <= left else None
        left -= size if text is not None and size is not None else 0
        pages.append({"task": path, "name": name, "text": text, "link": link(run_dir, artifact["uri"])})
    return pages


def failure(run_dir: Path, content: dict[str, Any]) -> dict[str, Any] | None:
    """The error of a run and the end of the log that belongs to it."""
    if not content["error"]:
        return None
    from localvertex.show import summary

    task = next((each for each in content["tasks"] if each["path"] == content["failed_task"]), None)
    log = summary.log_of(task, run_dir) if task else None
    return {
        "text": content["error"],
        "lines": logs.tail(log, summary.NUM_LOG_LINES) if log else [],
        "log": str(log.relative_to(run_dir)) if log else None,
    }


def link(run_dir: Path, uri: str) -> str:
    """A link that works from the run's folder: relative where the file is in it."""
    path = Path(uri)
    if "://" in uri or not path.is_absolute():
        return uri if uri.startswith(("https://", "http://")) else ""
    return str(path.relative_to(run_dir)) if path.is_relative_to(run_dir) else path.as_uri()
