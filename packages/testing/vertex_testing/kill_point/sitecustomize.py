"""Kills a process at a named point with SIGKILL; Python imports it in each process with this folder on PYTHONPATH.

`point.json` in the parent folder has the point: `module`, `name` (of a function or method), `when` (before or after),
`is_run`: whether the process whose id is in `run.pid` is killed as well, and perhaps `num_calls_before`: calls that
pass. The first process that reaches the point removes the file, so that there is one kill.
"""

import importlib
import importlib.abc
import importlib.util
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_FOLDER = Path(__file__).absolute().parent.parent
_POINT = _FOLDER / "point.json"


def _kill(*, is_run: bool) -> None:
    try:
        _POINT.unlink()
    except FileNotFoundError:
        return
    if is_run:
        os.kill(int((_FOLDER / "run.pid").read_text()), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _wrapped(original: Callable[..., Any], point: dict[str, Any]) -> Callable[..., Any]:
    calls = itertools.count()

    def wrapped(*arguments: Any, **options: Any) -> Any:
        is_reached = next(calls) >= point.get("num_calls_before", 0)
        if is_reached and point["when"] == "before":
            _kill(is_run=point["is_run"])
        result = original(*arguments, **options)
        if is_reached and point["when"] == "after":
            _kill(is_run=point["is_run"])
        return result

    return wrapped


def _wrap(module: ModuleType, point: dict[str, Any]) -> None:
    *above, last = point["name"].split(".")
    owner: Any = module
    for each in above:
        owner = getattr(owner, each)
    setattr(owner, last, _wrapped(getattr(owner, last), point))


class _Finder(importlib.abc.MetaPathFinder):
    """Wraps the function as soon as its module is imported."""

    def __init__(self, point: dict[str, Any]) -> None:
        self._point = point

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != self._point["module"]:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_wrap(module: ModuleType) -> None:
            execute(module)
            _wrap(module, self._point)

        spec.loader.exec_module = execute_and_wrap  # type: ignore[method-assign]
        return spec


if _POINT.exists():
    _point = json.loads(_POINT.read_text())
    if _point["module"] in sys.modules:
        _wrap(sys.modules[_point["module"]], _point)
    else:
        sys.meta_path.insert(0, _Finder(_point))
