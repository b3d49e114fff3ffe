"""Reads a file of JSON or YAML that anybody may have written."""

import sys
from pathlib import Path
from typing import Any

from userinput.errors import UserError
from userinput.unique_keys import RepeatedKey, UniqueKeys, load_json

MAX_BYTES = 64 * 2**20
"""Larger files are not read; the largest spec that Vertex AI Pipelines takes is far smaller."""
MAX_VALUES = 2_000_000
MAX_DEPTH = 100


def read(path: str | Path) -> Any:
    """Return the first document of a file; "-" is standard input.

    Raises:
        UserError: If it cannot be read, with the reason in one line.
    """
    text = str(path)
    # A message is one line, whatever a file is called.
    name = "standard input" if text == "-" else text if text.isprintable() and text else repr(text)
    data = _bytes(path, name)
    value = parse(data, name, json_only=name.endswith(".json"))
    _bounded(value, name)
    return value


def _bytes(path: str | Path, name: str) -> bytes:
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise UserError(f"{name} is a folder; give a file") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {(error.strerror or 'it failed').lower()}") from None
    except ValueError as error:  # a path with a null byte
        raise UserError(f"{name} is not a path: {error}") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} is larger than {MAX_BYTES // 2**20} MiB; that is no job and no pipeline")
    if not data.strip():
        raise UserError(f"{name} is empty; expected JSON or YAML")
    return data


def parse(data: bytes, name: str, *, json_only: bool = False) -> Any:
    """Return the value that JSON or YAML text stands for; of several YAML documents the first.

    Raises:
        UserError: If it is neither.
    """
    if json_only or data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return load_json(data)
        except RepeatedKey as error:
            raise UserError(f"{name} has {error}; keep one of them") from None
        except RecursionError:
            raise UserError(f"{name} is nested too deeply to be a job or a pipeline") from None
        except ValueError as error:
            if json_only:
                raise UserError(f"{name} is not JSON: {_first_line(error)}") from None
    return _parse_yaml(data, name)


def _parse_yaml(data: bytes, name: str) -> Any:
    try:
        import yaml  # only where YAML is read: JSON works without PyYAML
    except ImportError:
        raise UserError(f"{name} is YAML and PyYAML is not installed; install pyyaml or give JSON") from None
    plain = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader where PyYAML was built with it
    loader: Any = type("Loader", (UniqueKeys, plain), {})
    try:
        _refuse_bomb(yaml.parse(data, Loader=plain), name)
        return next(iter(yaml.load_all(data, Loader=loader)), None)
    except UserError:
        raise
    except RepeatedKey as error:
        raise UserError(f"{name} has {error}; keep one of them") from None
    except RecursionError:
        raise UserError(f"{name} is nested too deeply to be a job or a pipeline") from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # Besides YAMLError, PyYAML's constructors raise whatever int(), date() and dict lookups raise.
        raise UserError(f"{name} is not YAML: {_first_line(error)}") from None


def _refuse_bomb(events: Any, name: str) -> None:
    """Refuse what would take all memory or stack, before anything is built of it.

    Aliases may stand for more values than a file could hold, and the loader of libyaml ends the whole process where
    it is nested some ten thousand deep.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = 0
    for event in events:
        kind = type(event).__name__
        if kind == "AliasEvent":
            total += sizes.get(event.anchor, MAX_VALUES)  # an alias inside its own anchor never ends
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_nodes.append((event.anchor, total))
            total += 1
            if len(open_nodes) > MAX_DEPTH:
                raise UserError(f"{name} is nested too deeply to be a job or a pipeline")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before
        elif kind == "ScalarEvent":
            total += 1
            if event.anchor:
                sizes[event.anchor] = 1
        if total > MAX_VALUES:
            raise UserError(f"{name} stands for more than {MAX_VALUES} values through its aliases; write them out")


def _bounded(value: Any, name: str) -> None:
    """Refuse what is nested deeper than any job, so that no later step can run out of stack."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _inside(outer)]
        if not level:
            return
    raise UserError(f"{name} is nested deeper than {MAX_DEPTH} levels; that is no job and no pipeline")


def _inside(outer: dict[Any, Any] | list[Any]) -> list[Any]:
    inner = outer.values() if isinstance(outer, dict) else outer
    return [item for item in inner if isinstance(item, (dict, list))]


def _first_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    text = f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark and problem else str(error)
    line = " ".join(text.split()) or type(error).__name__
    return line if len(line) <= 160 else line[:157] + "..."
