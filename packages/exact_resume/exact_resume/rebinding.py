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
from collections.abc import Mapping
from typing import Any

import numpy as np

from exact_resume import state as states

_Path = tuple[Any, ...]
"""Keys from the state to an object."""
_COUNTED = (np.ndarray, dict, list, tuple)
_PLAIN = (bool, int, float, str, bytes, type(None), np.generic)
"""They cannot change, and are equal if the container that has them is."""
_IS_KNOWN = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
_MENDS = {"dict": "{}.update(...)", "list": "{}[:] = ...", "tuple": "give lists instead of tuples"}
"""Type of an object -> how it is changed in place."""


class Rebinding:
    """Watches the members of a state, which nothing but this dict and the program may refer to."""

    def __init__(self, objects: dict[str, Any]) -> None:
        """Note what the program refers to at the first step, and its content."""
        self._objects, self._first = objects, dict[_Path, Any]()
        free = _unreferenced(objects)
        pending: list[tuple[_Path, Any]] = [((name,), value) for name, value in objects.items()]
        while _IS_KNOWN and pending:
            path, value = pending.pop(0)
            if isinstance(value, _COUNTED) and id(value) not in free:
                self._first[path] = _content(value)
            elif not isinstance(value, np.ndarray):
                # Within a container that nothing refers to, there may be objects with references of their own.
                pending += [((*path, key), each) for key, each in _entries(value).items()]

    def lost(self) -> dict[str, str]:
        """Return the paths of the rebound members, each once, and how to change it in place."""
        free, found = _unreferenced(self._objects), {}
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
        return isinstance(value, _PLAIN)
    return id(value) in free and all(_is_lost(each, free) for each in _entries(value).values())


def _entries(value: Any) -> Mapping[Any, Any]:
    """Return the counted objects, and others, to which a container or an array refers."""
    if isinstance(value, dict):
        return value
    if isinstance(value, np.ndarray):
        return {"base": value.base} if isinstance(value.base, np.ndarray) else {}
    return dict(enumerate(value)) if isinstance(value, list | tuple) else {}


def _unreferenced(objects: dict[str, Any]) -> set[int]:
    """Return the ids of the arrays and containers that nothing outside of `objects` can reach, nor their memory."""
    found, num_references = _references(objects)
    pending = [each for key, each in found.items() if num_references[key] > _NUM_OWN or weakref.getweakrefcount(each)]
    reached = set[int]()
    while pending:
        if id(value := pending.pop()) not in reached:
            reached.add(id(value))
            pending += [each for each in _entries(value).values() if id(each) in found]
    for key, owner in found.items():
        while isinstance(owner, np.ndarray) and owner.base is not None and id(owner) not in reached:
            # Others may use the memory of a base, and all use that of another object.
            owner = owner.base
        if isinstance(found[key], np.ndarray) and (id(owner) in reached or id(owner) not in found):
            reached.add(key)
    return found.keys() - reached


def _references(objects: dict[str, Any]) -> tuple[dict[int, Any], dict[int, int]]:
    """Return each array and container of a state by its id, and its number of references from outside and from here."""
    found, num_inside = dict[int, Any](), collections.Counter[int]()
    pending: list[Any] = [*objects.values()]
    while pending:
        value = pending.pop()
        if isinstance(value, _COUNTED):
            num_inside[id(value)] += 1
            if id(value) not in found:
                found[id(value)] = value
                pending += _entries(value).values()
    value = None
    return found, {key: sys.getrefcount(each) - num_inside[key] for key, each in found.items()}


_NUM_OWN = max(_references({"": np.zeros(0)})[1].values())
"""References of `_references` itself, which differ between versions of Python."""


def _content(value: Any) -> tuple[Any, list[int]]:
    arrays: states.Arrays = []
    return states.write(value, "", arrays), [zlib.crc32(each.tobytes()) for each in arrays]
