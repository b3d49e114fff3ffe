"""Strict reading of JSON and YAML files that users and other programs wrote."""

import ast
import json
import os
import sys
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import did_you_mean, quote
from localvertex._base.userinput.unique_keys import RepeatedKey, UniqueKeys, load_json

MAX_BYTES = 20 * 2**20
"""Larger files are not read; the largest spec that Vertex AI Pipelines takes is far smaller."""
_MAX_YAML_BYTES = 5 * 2**20
"""YAML takes about a second per MiB to read."""
_MAX_VALUES = 2_000_000
_MAX_DEPTH = 100
"""Levels of nesting; compiled pipelines have about 15."""
_MAX_NUMBER = sys.float_info.max
"""Numbers of JSON, and of a pipeline's parameters, are doubles."""
_JSON_TYPES = (dict, list, str, int, float, bool, type(None))


def read(path: str | Path) -> Any:
    """Return the first document of a file; "-" is standard input.

    Raises:
        UserError: The file cannot be read or is neither JSON nor YAML.
    """
    return next(iter(read_all(path)), None)


def read_all(path: str | Path, *, only_json_values: bool = False) -> list[Any]:
    """Return the documents of a file: one of JSON, any number of YAML.

    Args:
        path: The file; "-" is standard input.
        only_json_values: Refuse values that only YAML can write, such as dates.

    Raises:
        UserError: The file cannot be read or is neither JSON nor YAML.
    """
    return parse_all(read_bytes(path), display(path), only_json_values=only_json_values)


def text_of(value: str) -> str:
    """Return the text of a value on a command line: the content of FILE for @FILE, and @ for a leading @@.

    A file that ends in .json, .yaml or .yml is read strictly and becomes JSON on one line, any other stays as it is.

    Raises:
        UserError: The file cannot be read, or is not what its name says.
    """
    if not value.startswith("@") or value.startswith("@@"):
        return value.removeprefix("@")
    path = value.removeprefix("@")
    if path.endswith((".json", ".yaml", ".yml")):
        return json_of(path)
    try:
        return read_bytes(path).decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise UserError(f"{display(path)} is not text in UTF-8; give another file") from None


def json_of(path: str | Path) -> str:
    """Return the one document of a JSON or YAML file as JSON on one line.

    Raises:
        UserError: The file cannot be read, is neither JSON nor YAML, or has several documents.
    """
    documents = read_all(path, only_json_values=True)
    if len(documents) != 1:
        raise UserError(f"{display(path)} has {len(documents)} YAML documents; expected one")
    return json.dumps(documents[0], ensure_ascii=False)


def display(path: str | Path) -> str:
    """Return a path as messages show it: on one line, whatever the file is called."""
    text = str(path)
    return "standard input" if text == "-" else text if text.isprintable() and text else repr(text)


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file; "-" is standard input.

    Raises:
        UserError: The file cannot be read, is empty or too large.
    """
    name = display(path)
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            # Opening a pipe without a writer would never return.
            with open(path, "rb", opener=_without_waiting) as file:
                os.set_blocking(file.fileno(), True)
                data = file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise UserError(f"{name} is a folder; give a file") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {(error.strerror or 'unknown error').lower()}") from None
    except ValueError as error:  # a path with a null byte
        raise UserError(f"{name} is not a path: {error}") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{name} is larger than {MAX_BYTES // 2**20} MiB; jobs and pipelines are much smaller")
    if not data.strip():
        raise UserError(f"{name} is empty; expected JSON or YAML")
    return data


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse_all(data: bytes, name: str, *, only_json_values: bool = False, may_be_yaml: bool = False) -> list[Any]:
    """Return the documents of a text.

    Args:
        data: The text.
        name: The file's name for messages; ".json" at its end excludes YAML.
        only_json_values: Refuse values that only YAML can write, such as dates.
        may_be_yaml: Read it as YAML where it is not JSON, whatever its name is.

    Raises:
        UserError: It is neither JSON nor YAML, or only JSON values are allowed and there are others.
    """
    is_json = name.endswith(".json") and not may_be_yaml
    if is_json or data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        try:
            return [_json(data, name)]
        except ValueError as error:
            if is_json or isinstance(error, UserError):
                raise _not_json(error, name) from None
    if len(data) > _MAX_YAML_BYTES:
        raise UserError(f"{name} is YAML of more than {_MAX_YAML_BYTES // 2**20} MiB, which takes long; give JSON")
    documents = _parse_yaml(data, name)
    for document in documents:
        _check_values(document, name, only_json_values=only_json_values)
    return documents


def check_keys(body: Any, types: Mapping[str, type | UnionType]) -> None:
    """Refuse a value that is not a mapping with known keys and values of their types.

    Raises:
        UserError: A key is unknown, or a value has another type.
    """
    if not isinstance(body, dict):
        raise UserError(f"found {quote(body)}; expected a mapping")
    for key, value in body.items():
        if key not in types:
            hint = did_you_mean(str(key), types) or f"; known keys: {', '.join(types)}"
            raise UserError(f"unknown key {key!r}{hint}")
        # In Python a boolean is also an integer.
        if not isinstance(value, types[key]) or isinstance(value, bool) != (types[key] is bool):
            raise UserError(f"{key} is {quote(value)}; expected {getattr(types[key], '__name__', types[key])}")


def parse_json(text: str | bytes, name: str) -> Any:
    """Return the value of a JSON text; `name` begins the messages.

    Raises:
        UserError: It is not JSON.
    """
    try:
        return _json(text, name)
    except ValueError as error:
        raise _not_json(error, name) from None


_PARSING = threading.Lock()


def parse_python(source: str | bytes) -> ast.Module:
    """Return the syntax tree of code; the tree of an empty file if it is not Python or nested too deeply."""
    try:
        # Python 3.11 counts the depth of all threads together, and raises SystemError if another thread runs meanwhile.
        with _PARSING:
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def parse_toml(data: bytes, name: str) -> JsonObject:
    """Return the tables of a TOML text; `name` begins the messages.

    Raises:
        UserError: It is not TOML, or has a number or a nesting that JSON could not hold.
    """
    try:
        tables = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is not TOML: {_first_line(error)}") from None
    _check_values(tables, name)
    return tables


def _json(text: str | bytes, name: str) -> Any:
    try:
        value = load_json(text)
    except RepeatedKey as error:
        raise UserError(f"{name} has {error}; keep one of them") from None
    except RecursionError:
        raise _too_deep(name) from None
    _check_values(value, name)
    return value


def _not_json(error: ValueError, name: str) -> UserError:
    return error if isinstance(error, UserError) else UserError(f"{name} is not JSON: {_first_line(error)}")


def _parse_yaml(data: bytes, name: str) -> list[Any]:
    try:
        import yaml  # only where YAML is read: JSON works without PyYAML
    except ImportError:
        raise UserError(f"{name} is YAML and PyYAML is not installed; install pyyaml or give JSON") from None
    plain = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader where PyYAML was built with it
    loader: Any = type("Loader", (UniqueKeys, plain), {})
    try:
        _refuse_bomb(yaml.parse(data, Loader=plain), name)
        return list(yaml.load_all(data, Loader=loader))
    except UserError:
        raise
    except RepeatedKey as error:
        raise UserError(f"{name} has {error}; keep one of them") from None
    except RecursionError:
        raise _too_deep(name) from None
    except (yaml.YAMLError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
        # Besides YAMLError, PyYAML's constructors raise whatever int(), date() and dict lookups raise.
        raise UserError(f"{name} is not YAML: {_first_line(error)}") from None


def _refuse_bomb(events: Any, name: str) -> None:
    """Refuse content that would take all memory or stack, before anything is built from it.

    Aliases may unfold to more values than fit into memory. The loader of libyaml ends the whole process where a file is
    nested some ten thousand levels deep.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = 0
    for event in events:
        kind = type(event).__name__
        if kind == "AliasEvent":
            total += sizes.get(event.anchor, _MAX_VALUES)  # an alias inside its own anchor never ends
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            open_nodes.append((event.anchor, total))
            total += 1
            if len(open_nodes) > _MAX_DEPTH:
                raise _too_deep(name)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = total - before
        elif kind == "ScalarEvent":
            total += 1
            if event.anchor:
                sizes[event.anchor] = 1
        if total > _MAX_VALUES:
            raise UserError(f"{name} unfolds to more than {_MAX_VALUES} values through its aliases; use fewer aliases")


def _check_values(value: Any, name: str, *, only_json_values: bool = False) -> None:
    """Refuse numbers that no double holds, NaN, and deeper nesting than any job has, which could exhaust the stack."""
    level, depth = [value], 0
    while level:
        containers = []
        for item in level:
            if only_json_values and not isinstance(item, _JSON_TYPES):
                found = quote(item if isinstance(item, set | tuple) else str(item))
                raise UserError(f"{name} contains {found}, which is not a JSON value; write it in quotes")
            if isinstance(item, dict | list | tuple | set):
                containers.append(item)
            elif isinstance(item, int | float) and not -_MAX_NUMBER <= item <= _MAX_NUMBER:
                # Python writes no integer of more than 4300 digits, but reads one of YAML and TOML in hexadecimal.
                found = f"the number {item}" if isinstance(item, float) else f"an integer of {item.bit_length()} bits"
                raise UserError(f"{name} contains {found}; expected a finite number of at most {_MAX_NUMBER:.1e}")
        depth += 1
        if containers and depth > _MAX_DEPTH:
            raise _too_deep(name)
        level = [inner for outer in containers for inner in _inside(outer)]


def _inside(outer: Any) -> list[Any]:
    if not isinstance(outer, dict):
        return [*outer]
    return [*outer.values(), *(key for key in outer if not isinstance(key, str))]


def _too_deep(name: str) -> UserError:
    return UserError(f"{name} is nested too deeply, more than {_MAX_DEPTH} levels; jobs and pipelines have about 15")


def _first_line(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"expected text in UTF-8, found the byte {error.object[error.start]:#04x} at position {error.start}"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    text = f"{problem}, line {mark.line + 1}, column {mark.column + 1}" if mark and problem else str(error)
    # Python's advice about sys.set_int_max_str_digits() comes after a semicolon.
    line = " ".join(text.partition("; use sys.")[0].split()) or type(error).__name__
    return line if len(line) <= 160 else line[:157] + "..."
