"""The logs of a step, and of its custom job's replicas."""

from pathlib import Path

from localvertex.store import executor_files


def of_replicas(folder: Path) -> list[Path]:
    """Return the logs of a custom job's replicas."""
    return [log for log in sorted(folder.glob("workerpool*.log")) if log.is_file()]


def of_step(folder: Path) -> list[Path]:
    """Return all logs that exist in the folder of a step."""
    own = folder / executor_files.LOG
    return [*([own] if own.is_file() else []), *of_replicas(folder)]


def title(path: str, folder: Path, log: Path) -> str:
    """Return the line above a log of the task with this path."""
    return f"==> {path} ({log.relative_to(folder).as_posix()}) <=="
