"""Compare a job with the fields of the API: spelling, types and ranges of numbers."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import camel, did_you_mean, join_or, quote, snake
from localvertex.machines.job.finding import Finding, Findings
from localvertex.machines.job.schema import ENUMS, MESSAGES, OUTPUT, REPEATED
from localvertex.machines.job.values import RuntimeValue

_MISSING = object()
_LIMITS = {"int32": 2**31, "int64": 2**63}
# Replaces a value of the wrong type, so that rules ignore it.
_UNREADABLE = RuntimeValue(origin="a value of the wrong type")
_DURATION = re.compile(r"(-?\d{1,12})(?:\.\d{1,9})?s")
_WORD = re.compile(r"[a-z_0-9]+")
_INTEGER = re.compile(r"[+-]?\d{1,19}")
# google.protobuf.Duration: +-10 000 years.
_MAX_SECONDS = 315_576_000_000


@dataclass(frozen=True, kw_only=True)
class Reading(Findings):
    """A job as the REST API and gcloud read it: in camelCase too, with "1" and 1.0; and what was found on the way."""

    findings: list[Finding] = field(default_factory=list)
    messages: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MESSAGES)
    """Message -> field -> type, as in `schema`."""
    spelling: dict[str, str] = field(default_factory=dict)
    """snake_case key -> the key as the file spells it, where that differs."""
    drops_empty: bool = False
    """Whether a launcher of Google's sends the job, which leaves out every field with an empty value."""

    def as_written(self, path: str) -> str:
        """Return a path with its keys spelled as in the file."""
        return _WORD.sub(lambda word: self.spelling.get(word.group(), word.group()), path)

    def message(self, value: object, kind: str, path: str) -> JsonObject:
        """Return the fields of a message in snake_case with plain values; unreadable ones are left out."""
        if not isinstance(value, Mapping):
            self.error("field-type", path, f"found {quote(value)}; expected a mapping with the fields of {kind}")
            return {}
        fields: JsonObject = {}
        for key, inner in value.items():
            if self.drops_empty and not inner and snake(str(key)) not in self.messages[kind]:
                continue
            name = self._field(key, kind, path)
            # Users leave a field out with null or ""; the launcher of the components drops both.
            if name is None or inner is None or self.messages[kind][name] == OUTPUT:
                continue
            read = self._value(inner, self.messages[kind][name], f"{path}.{name}" if path else name)
            if read is not _MISSING:
                fields[name] = read
        return fields

    def _field(self, key: object, kind: str, path: str) -> str | None:
        known, text = self.messages[kind], str(key)
        name = text if text in known else snake(text)
        # The fields of old jobs are in camelCase.
        name = name if name in known else camel(text)
        here = f"{path}.{text}" if path else text
        if name not in known:
            hint = did_you_mean(text, known)
            expected = "" if hint else f"; expected {join_or(n for n, k in known.items() if k != OUTPUT)}"
            self.error("unknown-field", _one_line(here), f"{kind} has no field {quote(key)}{hint}{expected}")
            return None
        if name != key:
            self.spelling[name] = text
        return name

    def _value(self, value: object, kind: str, path: str) -> Any:
        if isinstance(value, RuntimeValue):
            return value
        if kind.startswith(REPEATED):
            return self._list(value, kind[1:], path)
        if kind in self.messages:
            return self.message(value, kind, path)
        if kind.startswith("enum:"):
            return self._enum(value, ENUMS[kind[5:]], path)
        if kind in _LIMITS:
            return self._whole(value, path, _LIMITS[kind])
        return _SCALARS[kind](self, value, path)

    def _list(self, value: object, kind: str, path: str) -> Any:
        if isinstance(value, Mapping) and value and kind in self.messages:
            message = "found a mapping, which only gcloud takes for a list of one; put '- ' in front of its first line"
            self.warning("field-type", path, message)
            value = [value]
        if not isinstance(value, (list, tuple)):
            return self._wrong(value, "a list", path)
        read = []
        for index, inner in enumerate(value):
            here = f"{path}[{index}]"
            # A pool that is not used may be empty ({} or null): the others keep their index.
            empty = inner is None and kind == "WorkerPoolSpec"
            read.append({} if empty else self._value(inner, kind, here))
        return read

    def _enum(self, value: object, names: dict[str, int], path: str) -> Any:
        if value == "":
            return _MISSING
        if isinstance(value, int) and not isinstance(value, bool):
            by_number = {number: name for name, number in names.items()}
            return by_number.get(value, f"{value}")
        if not isinstance(value, str):
            return self._wrong(value, f"one of the names {join_or(list(names)[1:])}", path)
        return value

    def _wrong(self, value: object, expected: str, path: str) -> Any:
        self.error("field-type", path, f"found {quote(value)}; expected {expected}")
        return _UNREADABLE

    def _string(self, value: object, path: str) -> Any:
        if not isinstance(value, str):
            scalar = isinstance(value, (int, float)) and not isinstance(value, bool)
            return self._wrong(value, f"text; write it in quotes: {quote(str(value))}" if scalar else "text", path)
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            return self._wrong(value, "text without unpaired surrogates", path)
        return value

    def _bool(self, value: object, path: str) -> Any:
        # Operations of google-cloud-pipeline-components before 2.0 have texts, which the API reads as proto3 JSON.
        if value in ("true", "false"):
            return value == "true"
        return value if isinstance(value, bool) else self._wrong(value, "true or false", path)

    def _whole(self, value: object, path: str, limit: int) -> Any:
        number = int(value) if isinstance(value, str) and _INTEGER.fullmatch(value) else value
        if isinstance(number, float) and math.isfinite(number) and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not -limit <= number < limit:
            return self._wrong(value, "a whole number", path)
        return number

    def _duration(self, value: object, path: str) -> Any:
        match = _DURATION.fullmatch(value) if isinstance(value, str) else None
        if match is None or abs(int(match.group(1))) > _MAX_SECONDS:
            return self._wrong(value, "seconds with an 's' as text, e.g. \"604800s\" for 7 days", path)
        return value

    def _map(self, value: object, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong(value, "a mapping of names to text", path)
        return {
            self._string(key, path): inner
            if isinstance(inner, RuntimeValue)
            else self._string(inner, _one_line(f"{path}.{key}"))
            for key, inner in value.items()
        }


_SCALARS: dict[str, Callable[[Reading, object, str], Any]] = {
    "string": Reading._string,
    "bool": Reading._bool,
    "duration": Reading._duration,
    "map": Reading._map,
    "any": lambda _, value, __: value,
}


def _one_line(text: str) -> str:
    return text if len(text) < 200 and text.isprintable() else quote(text, 80)


def seconds(duration: str) -> float:
    """Return the seconds of a duration such as "604800s"."""
    return float(duration[:-1])
