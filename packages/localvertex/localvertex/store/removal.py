"""Decides what of a run may be removed: nothing that is referred to, and nothing that localvertex did not make."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.store import executor_files, record, run_folder
from localvertex.store.models.reading import SOURCE
from localvertex.store.runs import Found

_OWN_FILES = ("run.*", "journal*", "pipeline.json", "pipeline.yaml", ".*.partial", record.LOCK, record.COPIES)
"""Files that localvertex writes into the folder of a run, besides the folders of tasks."""

_TEXTS = (".json", ".jsonl", ".yaml")


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A removal by `clean`."""

    removed: tuple[Path, ...]
    """The folders of runs."""
    kept: dict[Path, str]
    """The runs that were meant, but have to stay, with the reason."""


def plan(work_dir: Path, wanted: Iterable[Found], every: Iterable[Found]) -> Removal:
    """Choose the runs that can be removed: those that are not running, and that nothing which stays refers to.

    Args:
        work_dir: The folder of the runs.
        wanted: The runs to remove.
        every: All runs of the folder.
    """
    wanted = list(wanted)
    for each in wanted:
        run_folder.wait_for_last_processes(each.run_dir)
    kept = {each.run_dir: "it is running" for each in wanted if record.is_running(each.run_dir)}
    removed = [each.run_dir for each in wanted if each.run_dir not in kept]
    texts = dict(_texts_of_registry(work_dir))
    texts |= {f"run {each.run_dir.name}": _text_of(each.run_dir) for each in every}
    while True:
        staying = {name: text for name, text in texts.items() if name not in {f"run {each.name}" for each in removed}}
        found = {each: name for each in removed for name, text in staying.items() if _is_mentioned(each, text)}
        if not found:
            return Removal(removed=tuple(removed), kept=kept)
        kept |= {run_dir: f"{name} refers to its files" for run_dir, name in found.items()}
        removed = [each for each in removed if each not in found]


def remove(run_dir: Path) -> list[str]:
    """Remove a run, its record first: a folder without a record is not a run.

    Returns:
        The names of what stays in the folder, because localvertex did not make it.

    Raises:
        UserError: The run is running, or something cannot be removed.
    """
    try:
        with run_folder.lock(run_dir):
            own = _own_entries(run_dir)
            (run_dir / record.FILE).unlink(missing_ok=True)
            for each in own:
                executor_files.remove(each)
            others = sorted(each.name for each in run_dir.iterdir())
            if not others:
                run_dir.rmdir()
    except BlockingIOError:
        raise UserError(f"{run_dir.name} is running; stop it first") from None
    except OSError as error:
        raise UserError(f"cannot remove {error.filename or run_dir}: {error.strerror}") from None
    return others


def _own_entries(run_dir: Path) -> list[Path]:
    """Return the entries that localvertex or a step made: its files by their names, and the folders of tasks."""
    try:
        tasks: list[JsonObject] = record.read(run_dir)["tasks"]
    except (OSError, ValueError):
        tasks = []
    names = {str(task["path"]).partition("/")[0] for task in tasks}
    return [each for each in run_dir.iterdir() if _is_own(each, names)]


def _is_own(entry: Path, tasks: set[str]) -> bool:
    if any(entry.match(pattern) for pattern in _OWN_FILES):
        return True
    if not entry.is_dir() or entry.is_symlink():
        return False
    return entry.name in tasks or next(entry.rglob(executor_files.INPUT), None) is not None


def _texts_of_registry(work_dir: Path) -> Iterator[tuple[str, str]]:
    for path in (work_dir / "models").glob("*/*/model.json"):
        text = path.read_text(errors="replace")
        try:
            # The field names where the copy came from, which is not needed any more.
            text = json.dumps({key: value for key, value in json.loads(text).items() if key != SOURCE})
        except (ValueError, AttributeError, RecursionError):
            pass  # A damaged entry counts with all that it contains.
        yield f"model {path.parent.parent.name}@{path.parent.name}", text


def _text_of(run_dir: Path) -> str:
    """Return the text of the files that may name other files, whole, because a record may be damaged."""
    paths = [each for each in run_dir.iterdir() if each.suffix in _TEXTS and each.is_file()]
    paths = [each for each in paths if each.stat().st_size <= record.MAX_BYTES]
    return "\n".join(path.read_text(errors="replace") for path in paths)


def _is_mentioned(run_dir: Path, text: str) -> bool:
    """Return whether a text contains a path in the folder of a run, absolute or relative."""
    names = {f"{run_dir.absolute().parent.name}/{run_dir.name}", f"{run_dir.resolve().parent.name}/{run_dir.name}"}
    written = {form for name in names for form in (name, json.dumps(name)[1:-1])}
    return any(f"{form}{end}" in text for form in written for end in ("/", '"'))
