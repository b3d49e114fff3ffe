"""`run.html`: the page of a run, written also when the run failed."""

from datetime import datetime
from pathlib import Path
from typing import Any

from localvertex.show import failure, job_report
from localvertex.state import record
from localvertex.state.task import State
from localvertex.values.buckets import Buckets
from userinput import files

FILE, TEMPLATE = "run.html", "run.html.j2"

_MAX_EMBEDDED_BYTES = 30 * 1024 * 1024
"""Limit for all embedded pages together; the rest are linked."""


def write(run_dir: Path, content: dict[str, Any]) -> Path:
    """Write the page by one rename and return its path."""
    page = render(
        TEMPLATE,
        run=content,
        steps=[_step_row(task, content) for task in content["tasks"] if _is_shown(task)],
        custom_jobs=job_report.sections(content["tasks"]),
        pages=_embedded_pages(run_dir, content),
        failure=_failed_step(run_dir, content),
        models=[{**each, "link": _link(run_dir, each["uri"])} for each in content["models"]],
    )
    files.write_all({run_dir / FILE: page.encode(errors="replace")})
    return run_dir / FILE


def render(template: str, **values: Any) -> str:
    """Render a template of this folder with the style of all pages."""
    # Imported late: a run that is refused needs no template engine.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = Path(__file__).parent
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    return environment.get_template(template).render(style=(folder / "run.css").read_text(), **values)


def _is_shown(task: dict[str, Any]) -> bool:
    """Return whether a task has a row: steps, and dags that were not triggered."""
    return bool(task["kind"] == "step" or task["state"] == State.NOT_TRIGGERED)


def _step_row(task: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Return a task with its position on the timeline, in percent of the run."""
    total = max(content["seconds"], 0.001)
    begin, start = _moment(content["start_time"]), _moment(task["start_time"])
    left = (start - begin).total_seconds() / total * 100 if begin and start else 0.0
    width = task["seconds"] / total * 100 if start else 0.0
    return {**task, "left": round(min(left, 100), 2), "width": round(min(width, 100 - min(left, 100)), 2)}


def _moment(text: str | None) -> datetime | None:
    """Parse a time of the record."""
    return datetime.fromisoformat(text) if text else None


def _embedded_pages(run_dir: Path, content: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every system.HTML artifact: its text, or only a link beyond the limit."""
    left, root = _MAX_EMBEDDED_BYTES, content.get("gcs_root")
    buckets = Buckets(root=Path(root) if root else None)
    pages = []
    for path, name, artifact in record.artifacts_of_type(content["tasks"], "system.HTML"):
        file = Path(buckets.path_of(artifact["uri"]))
        size = file.stat().st_size if file.is_file() else None
        text = file.read_text(errors="replace") if size is not None and size <= left else None
        left -= size if text is not None and size is not None else 0
        pages.append({"task": path, "name": name, "text": text, "link": _link(run_dir, artifact["uri"])})
    return pages


def _failed_step(run_dir: Path, content: dict[str, Any]) -> dict[str, Any] | None:
    """Return the error of a run with the end of the log that explains it."""
    if not content["error"]:
        return None
    log, lines = failure.log_of(content, run_dir)
    return {"text": content["error"], "lines": lines, "log": str(log.relative_to(run_dir)) if log else None}


def _link(run_dir: Path, uri: str) -> str:
    """Return a link that works from the run's folder, relative for files inside it."""
    path = Path(uri)
    if "://" in uri or not path.is_absolute():
        return uri if uri.startswith(("https://", "http://")) else ""
    return str(path.relative_to(run_dir)) if path.is_relative_to(run_dir) else path.as_uri()
