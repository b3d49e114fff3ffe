"""The reader of a config.yaml of AI Platform Training; it corrects the spelling of keys."""

import re
from collections.abc import Mapping
from typing import Any

from accelerators.legacy.fields import (
    ANY,
    BOOL,
    COUNT,
    NUMBER,
    NUMBERS,
    SET_BY_THE_SERVICE,
    TEXT,
    TEXT_MAP,
    TEXTS,
    TRAINING_INPUT,
    Fields,
)
from accelerators.legacy.report import LegacyInputError, Report
from localvertex_base.userinput.spelling import closest, join_or, quote, snake

_JOB: Fields = {"jobId": TEXT, "labels": TEXT_MAP, "trainingInput": TRAINING_INPUT}
_VERTEX = {"job_spec", "worker_pool_specs", "trial_job_spec"}
_WORDS = {"text": "text", "count": "a whole number", "bool": "true or false", "number": "a number"}
_WORDS |= {"texts": "a list of text", "numbers": "a list of numbers", "text map": "a mapping of names to text"}


def read_config(document: Any, report: Report) -> dict[str, Any]:
    """Return the Job with its fields in camelCase, text as text and counts as whole numbers.

    Args:
        document: The content of the YAML file.
        report: Gets a remark for every key that is not spelt exactly right.

    Raises:
        LegacyInputError: There are unknown keys or values of the wrong type; it names them all.
    """
    if not isinstance(document, Mapping):
        raise LegacyInputError([f"the config contains {quote(document)}; expected trainingInput: with its fields"])
    if _VERTEX & {snake(key) for key in document if isinstance(key, str)}:
        raise LegacyInputError(["this is already a Vertex AI job; run `python -m accelerators check` on it"])
    reader = _Reader(report)
    job = reader.fields(document, _JOB, "")
    if not reader.problems and "trainingInput" not in job:
        keys = ", ".join(map(quote, list(document)[:5])) or "no keys"
        reader.problems.append(f"the config has {keys}, but no fields under trainingInput; expected a training job")
    if reader.problems:
        raise LegacyInputError(reader.problems)
    return job


class _Reader:
    def __init__(self, report: Report) -> None:
        self.report = report
        self.problems: list[str] = []

    def fields(self, value: object, known: Fields, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.problems.append(f"{path} is {quote(value)}; expected the fields {join_or(known)}")
            return {}
        found: dict[str, Any] = {}
        for key, inner in value.items():
            name = self._name(key, known, path)
            if name is None or inner is None:
                continue
            inner_path = _join(path, name)
            if name in found:
                self.problems.append(f"{inner_path} is given twice, once as {quote(key)}; keep one")
            found[name] = self._value(inner, known[name], inner_path)
        return found

    def _name(self, key: object, known: Fields, path: str) -> str | None:
        by_fold = {_fold(name): name for name in known}
        name = by_fold.get(_fold(str(key)))
        if name is None:
            self._unknown(key, known, path)
        elif name != key:
            message = (
                f"read as {name}; the service did not know this spelling, so check which machines the job really used"
            )
            self.report.add("doubtful", _join(path, key), message)
        return name

    def _unknown(self, key: object, known: Fields, path: str) -> None:
        if not path and key in SET_BY_THE_SERVICE:
            self.report.add("dropped", str(key), "set by the service in the description of a job; not an input")
            return
        near = closest(str(key), known)
        if right := _right_path(str(key), path):
            hint = f"it belongs {right}"
        else:
            hint = f"did you mean {near[0]}?" if near else f"expected {join_or(known)}"
        self.problems.append(f"{quote(_join(path, key))} is not a field of a training job; {hint}")

    def _value(self, value: object, kind: "str | Fields", path: str) -> Any:
        if isinstance(kind, dict):
            return self._messages(value, kind["[]"], path) if "[]" in kind else self.fields(value, kind, path)
        if kind == ANY:
            return value
        if kind in (TEXTS, NUMBERS):
            return self._list(value, TEXT if kind == TEXTS else NUMBER, path)
        if kind == TEXT_MAP:
            return self._map(value, path)
        return self._scalar(value, kind, path)

    def _messages(self, value: object, kind: "str | Fields", path: str) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not isinstance(kind, dict):
            self.problems.append(f"{path} is {quote(value)}; expected a list")
            return []
        return [self.fields(item, kind, f"{path}[{index}]") for index, item in enumerate(value)]

    def _list(self, value: object, kind: str, path: str) -> list[Any]:
        if not isinstance(value, list):
            self.problems.append(f"{path} is {quote(value)}; expected a list: {_WORDS[kind]} per line, each after '- '")
            return []
        return [self._scalar(item, kind, f"{path}[{index}]") for index, item in enumerate(value)]

    def _map(self, value: object, path: str) -> dict[str, str]:
        if not isinstance(value, Mapping):
            self.problems.append(f"{path} is {quote(value)}; expected {_WORDS[TEXT_MAP]}")
            return {}
        return {str(key): self._scalar(inner, TEXT, f"{path}.{key}") for key, inner in value.items()}

    def _scalar(self, value: object, kind: str, path: str) -> Any:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if kind == TEXT and (isinstance(value, str) or number):
            return self._text(value, path)
        if kind == BOOL and isinstance(value, bool):
            return value
        if kind == NUMBER and number:
            return value
        if kind == NUMBER and isinstance(value, str) and _is_number(value):
            return float(value)
        if kind == COUNT and isinstance(value, int) and number and value >= 0:
            return value
        if kind == COUNT and isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
            return int(value)
        self.problems.append(f"{path} is {quote(value)}; expected {_WORDS[kind]}")
        return None

    def _text(self, value: object, path: str) -> str:
        if isinstance(value, float) and path.endswith("Version"):
            message = (
                f"{value} has no quotes, and YAML reads 1.10 and 1.1 as the same number; check which version was meant"
            )
            self.report.add("doubtful", path, message)
        return str(value)


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _right_path(key: str, path: str) -> str:
    """Return where a field of this name belongs, nearest to the block that has it now; "" if there is no such field."""
    here = re.sub(r"\[\d+\]", "[]", path).split(".") if path else []
    paths = [found for found in _paths(_JOB, []) if _fold(found[-1]) == _fold(key)]
    if not paths:
        return ""
    *blocks, name = min(paths, key=lambda found: _distance(here, found[:-1]))
    if not blocks:
        return f"at the top level, next to trainingInput: ({name})"
    return f"under {blocks[0]}: ({'.'.join([*blocks, name])})"


def _paths(fields: Fields, above: list[str]) -> list[list[str]]:
    """Return the path of every field."""
    found = []
    for name, kind in fields.items():
        is_list = isinstance(kind, dict) and "[]" in kind
        found.append([*above, name])
        inner = kind["[]"] if isinstance(kind, dict) and is_list else kind
        if isinstance(inner, dict):
            found += _paths(inner, [*above, name + "[]" * is_list])
    return found


def _distance(one: list[str], other: list[str]) -> int:
    """Return the number of levels up and down from one block to another."""
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return len(one) + len(other) - 2 * shared


def _fold(key: str) -> str:
    return key.replace("_", "").replace("-", "").casefold()
