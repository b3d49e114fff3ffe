"""Finds the members of `state` that the program has rebound: after `w = w - step`, the old array is saved for ever.

Such an object has the content that it had at the first step, when something outside of the state referred to it, and
nothing outside refers to it any more. CPython counts the references of variables, closures, other objects and C
extensions, and a view refers to its base. What the count cannot show is never reported: other names for the memory of
a tensor, or for memory that an array does not own.
"""

import collections
import sys
import sysconfig
import weakref
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np

import exact_resume.state as states

_Path = tuple[Any, ...]
"""Keys from the state to an object."""
_COUNTED = (np.ndarray, dict, list, tuple)
_PLAIN = (bool, int, float, str, bytes, type(None), np.generic)
"""Types whose values cannot change, and are equal if their container is."""
_IS_KNOWN = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
_MENDS = {"dict": "{}.update(...)", "list": "{}[:] = ...", "tuple": "give lists instead of tuples"}
"""Type of an object -> how it is changed in place."""


class Rebinding:
    """Watches the members of a state, which nothing but this dict and the program may refer to."""

    def __init__(self, objects: dict[str, Any]) -> None:
        """Note the objects that the program refers to at the first step, and their content."""
        self._objects, self._first = objects, dict[_Path, Any]()
        free = _unreferenced(objects, _NUM_OWN)
        pending: list[tuple[_Path, Any]] = [((), objects)]
        while pending and _NUM_OWN >= 0:
            path, container = pending.pop(0)
            for key, value in _items(container):
                if isinstance(value, _COUNTED) and id(value) not in free:
                    self._first[*path, key] = _content(value)
                elif isinstance(value, dict | list | tuple):
                    # Nothing refers to it, but perhaps to its entries.
                    pending.append(((*path, key), value))

    def lost(self) -> dict[str, str]:
        """Return the paths of the rebound members, each once, and how to change it in place."""
        free, found = _unreferenced(self._objects, _NUM_OWN), {}
        for path, content in [*self._first.items()]:
            value: Any = self._objects
            for key in path:
                value = value[key]
            if _is_lost(value, free) and _content(value) == content:
                del self._first[path]
                name = ".".join(map(str, path))
                found[name] = _MENDS.get(type(value).__name__, "{}[...] = ...").format(name)
        return found

    @property
    def is_all_lost(self) -> bool:
        """Whether no member is left that the program can change, after `lost` has returned some."""
        return not self._first and all(isinstance(each, _COUNTED) for each in self._objects.values())


def _is_lost(value: Any, free: set[int]) -> bool:
    if not isinstance(value, _COUNTED):
        return isinstance(value, _PLAIN) or states.is_jax(value)
    return id(value) in free and (
        isinstance(value, np.ndarray) or all(_is_lost(each, free) for _, each in _items(value))
    )


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _unreferenced(objects: dict[str, Any], num_own: int) -> set[int]:
    """Return the ids of the arrays and containers that nothing outside of `objects` can reach, nor their memory.

    Args:
        objects: The state.
        num_own: References that this function itself holds, which differ between versions of Python.
    """
    free, views, num_inside = set[int](), list[Any](), collections.Counter[int]()
    pending = [*objects.values()]
    while pending:
        value = pending.pop()
        if isinstance(value, _COUNTED):
            num_inside[id(value)] += 1
            # Others that refer to a container also reach its entries, whose references from it are not counted.
            if sys.getrefcount(value) - num_inside[id(value)] == num_own and not weakref.getweakrefcount(value):
                free.add(id(value))
                if not isinstance(value, np.ndarray):
                    pending += value.values() if isinstance(value, dict) else value
                elif value.base is not None:
                    views.append(value)
                    pending.append(value.base)
    # The base of a view is found later, and may itself be a view.
    for view in reversed(views):
        if id(view.base) not in free:
            free.discard(id(view))
    return free


_NUM_OWN = next((number for number in range(9) if _IS_KNOWN and _unreferenced({"": np.zeros(0)}, number)), -1)


def _content(value: Any) -> tuple[Any, list[int]]:
    arrays: states.Arrays = []
    tree = states.write(value, "", arrays)
    return tree, [zlib.crc32(each.ravel("K").view(np.uint8).data) if each.nbytes else 0 for each in arrays]
