"""Changes a model again and again, each time in a process that is killed before another file changes.

`python -m localvertex_tests.store.killed_change FOLDER CHANGE` prints a JSON object for each kill: what the process was
about to do, and the registry as it was then.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions

MODEL, OTHER = "m", "other"

_EVENTS = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.chmod", "shutil.rmtree", "fcntl.flock"}


def upload(work_dir: Path, name: str = MODEL) -> registry.Version:
    """Add a version with files, which takes both aliases."""
    model = {"display_name": name, "artifact_uri": str(work_dir.parent / "files")}
    return registry.add(work_dir, model, aliases=["champion", "default"])


CHANGES: dict[str, Callable[[Path], object]] = {
    "upload": upload,
    "first_upload": lambda work_dir: upload(work_dir, OTHER),
    "merge": lambda work_dir: ModelVersions.of(work_dir, MODEL).merge("1", ["champion", "default"]),
    "remove": lambda work_dir: ModelVersions.of(work_dir, MODEL).remove("1"),
    "remove_champion": lambda work_dir: ModelVersions.of(work_dir, MODEL).remove("2"),
    "delete": lambda work_dir: ModelVersions.of(work_dir, MODEL).delete(),
    "evaluate": lambda work_dir: ModelVersions.of(work_dir, MODEL).evaluate("2", {"metrics": {"accuracy": 1.0}}),
}


def state(work_dir: Path) -> dict[str, Any]:
    """Return what the registry contains, without times and ids."""
    found = {}
    for model_id in (MODEL, OTHER):
        versions = ModelVersions.of(work_dir, model_id)
        contents = {each: versions.content(each) for each in versions.numbers}
        for number, content in contents.items():
            folder = versions.folder / number
            content["files"] = sorted(str(each.relative_to(folder)) for each in (folder / "model").rglob("*"))
            content["num_evaluations"] = len([*folder.glob("evaluations/*.json")])
            for name in ("create_time", "artifact_uri", "source_uri"):
                del content[name]
        found[model_id] = {"versions": contents, "aliases": versions.aliases}
    return found


def prepare(work_dir: Path) -> None:
    """Make a model with two versions, of which the second one has both aliases and an evaluation."""
    files = work_dir.parent / "files" / "variables"
    files.mkdir(parents=True)
    (files / "data").write_text("weights")
    upload(work_dir)
    upload(work_dir)
    ModelVersions.of(work_dir, MODEL).evaluate("2", {"metrics": {"accuracy": 0.5}})


def _killed_at(point: int, work_dir: Path, change: Callable[[Path], object]) -> str:
    """Change the registry in a process that is killed at a point; return what it was about to do, empty at the end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        left = point

        def count(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if event in _EVENTS or is_write:
                left -= 1
                if left < 0:
                    os.write(write, f"{event} {arguments[0]}".encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        change(work_dir)
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        reached = pipe.read()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) if reached else os.waitstatus_to_exitcode(status) == 0
    return reached


def main() -> None:
    """Kill the change at each point in turn, and upload the next version of both models after it."""
    folder, change = Path(sys.argv[1]), CHANGES[sys.argv[2]]
    prepare(folder / "before" / "runs")
    point, reached = 0, "start"
    while reached:
        root = folder / str(point)
        shutil.copytree(folder / "before", root, symlinks=True)
        work_dir = root / "runs"
        reached = _killed_at(point, work_dir, change)
        left = state(work_dir)
        uploaded = {each: upload(work_dir, each).number for each in (MODEL, OTHER)}
        aliases = {each: ModelVersions.of(work_dir, each).aliases for each in (MODEL, OTHER)}
        names = sorted({each.name for each in (work_dir / "models").rglob("*") if "model" not in each.parent.parts})
        line = {"point": reached, "state": left, "uploaded": uploaded, "aliases": aliases, "names": names}
        print(json.dumps(line))
        shutil.rmtree(root)
        point += 1


if __name__ == "__main__":
    main()
