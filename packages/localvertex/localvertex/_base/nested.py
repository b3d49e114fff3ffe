"""Values of JSON of any shape: all that is in one, and one with parts of it changed."""

from collections.abc import Callable, Iterator
from typing import Any


def parts(value: Any, *, with_keys: bool = False) -> Iterator[Any]:
    """Yield a value and all values in it, at any depth, and the keys of objects if they are wanted."""
    yield value
    if isinstance(value, dict):
        yield from value if with_keys else ()
        value = [*value.values()]
    for each in value if isinstance(value, list | tuple) else ():
        yield from parts(each, with_keys=with_keys)


def _same(value: Any) -> Any:
    return value


def changed(value: Any, change: Callable[[Any], Any] = _same, change_key: Callable[[Any], Any] = _same) -> Any:
    """Return a value in which each part that is not a list or an object, and each key of an object, is changed."""
    if isinstance(value, dict):
        return {change_key(key): changed(item, change, change_key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [changed(item, change, change_key) for item in value]
    return change(value)
