"""The runs in a work folder: find them by id, by a prefix of it, or as the latest."""

from dataclasses import dataclass
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.store import record


@dataclass(frozen=True, kw_only=True)
class Found:
    """A run on disk."""

    run_dir: Path
    content: JsonObject
    problem: str = ""
    """Why its record cannot be read; empty if it can."""


def find_all(work_dir: Path) -> list[Found]:
    """Return all runs, newest first; those with an unreadable record come last, with the reason."""
    runs = []
    for folder in sorted(work_dir.iterdir()) if work_dir.is_dir() else []:
        if folder.is_dir() and not folder.is_symlink() and (folder / record.FILE).is_file():
            try:
                runs.append(Found(run_dir=folder, content=record.read(folder)))
            except (OSError, ValueError) as error:
                reason = f"{folder / record.FILE} is not the record of a run ({error})"
                runs.append(Found(run_dir=folder, content={}, problem=reason))
    return sorted(runs, key=lambda each: str(each.content.get("create_time", "")), reverse=True)


def find(work_dir: Path, name: str) -> Found:
    """Return the run with this id or unique prefix, or the latest.

    Raises:
        UserError: No run matches, or several do.
    """
    runs = find_all(work_dir)
    if not runs:
        raise UserError(f"no runs in {str(work_dir)!r}; give the folder of the runs with --work-dir")
    matches = [each for each in runs if each.run_dir.name == name]
    if name == "latest" and not matches:
        return runs[0]
    matches = matches or [each for each in runs if each.run_dir.name.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(each.run_dir.name for each in (matches or runs)[:8])
    raise UserError(f"{len(matches) or 'no'} runs match {name!r}; choose one of: {names}")


def find_readable(work_dir: Path, name: str) -> Found:
    """Return the run as `find` does, with its present paths: the work folder may have been moved.

    Raises:
        UserError: No run matches, several do, or its record cannot be read.
    """
    found = find(work_dir, name)
    if found.problem:
        raise UserError(f"{found.problem}; `localvertex clean {found.run_dir.name}` removes the run")
    content, present = found.content, str(found.run_dir.parent.resolve())
    if content["work_dir"] != present:
        # The outcome has paths of the earlier folder; it is found again where it is shown.
        content = content | {"work_dir": present, "outcome": None}
    return Found(run_dir=found.run_dir, content=content)


def find_steps(found: Found, name: str | None) -> list[JsonObject]:
    """Return all steps, or the task with this name or with this path."""
    return [_find_task(found, name)] if name else [each for each in found.content["tasks"] if each["kind"] == "step"]


def _find_task(found: Found, name: str) -> JsonObject:
    """Return the task with this path or name, or whose path contains it.

    Raises:
        UserError: No task matches, or several do.
    """
    tasks: list[JsonObject] = found.content["tasks"]
    for matches in (
        [task for task in tasks if task["path"] == name],
        [task for task in tasks if name in (task["name"], task["display_name"]) and task["kind"] == "step"],
        [task for task in tasks if name in task["path"] and task["kind"] == "step"],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            choices = ", ".join(task["path"] for task in matches)
            raise UserError(f"{name!r} matches several tasks; choose one of: {choices}")
    known = ", ".join(task["path"] for task in tasks if task["log"])
    raise UserError(f"the run has no task {name!r}; tasks with a log: {known}")
