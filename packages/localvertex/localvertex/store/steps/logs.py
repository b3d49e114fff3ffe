"""The logs of a step, of its custom job's replicas, and of the trials of a tuning job."""

from pathlib import Path

from localvertex.store import executor_files

TRIALS = "trials"
"""The folder of a tuning job with one folder per trial."""


def of_replicas(folder: Path) -> list[Path]:
    """Return the logs of a custom job's replicas, and the trials' logs by number."""
    trials = [each for each in (folder / TRIALS).glob("*") if each.name.isdecimal()]
    folders = [folder, *sorted(trials, key=lambda each: int(each.name))]
    return [log for each in folders for log in sorted(each.glob("workerpool*.log")) if log.is_file()]


def of_step(folder: Path) -> list[Path]:
    """Return all logs that exist in the folder of a step."""
    own = folder / executor_files.LOG
    return [*([own] if own.is_file() else []), *of_replicas(folder)]


def title(path: str, folder: Path, log: Path) -> str:
    """Return the line above a log of the task with this path."""
    return f"==> {path} ({log.relative_to(folder).as_posix()}) <=="
