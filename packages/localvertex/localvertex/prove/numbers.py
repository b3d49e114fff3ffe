"""The numbers in the log of a replica.

`epoch 3 step 40 loss=0.53` has the value loss at 3/40. A line is known by its words, so what only a resumed process
prints is compared with nothing. Each part of a pattern has a greatest length, and neighbours have no character in
common: the time for a line is in proportion to its length.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError

Key = tuple[float, ...]

_START = re.compile(r"--- start \d+ ---$")
"""Separates the processes of a replica; text before it on its line is half of a line, which a kill has cut."""
_MAX_LINE = 4000
_COUNTERS = re.compile(
    r"(?:.*[/._])?(?:batch|checkpoint|ckpt|epoch|i|it|iters?|iterations?|n|num_steps|round|saved|steps?|t|updates?)",
    re.I,
)
"""Names that say when a value was measured."""
_MEASURES = frozenset(
    "at attempt attempts bytes cpu crc date duration elapsed eta etag fps gb gpu host hour hours interrupted "
    "interruption interruptions kb left mb mem memory minute minutes ms pid port ppid preempted preemption preemptions "
    "process ps remaining restart restarts resume resumed resumes retries retry rss runtime s seal sec second secs "
    "seconds speed start started starts throughput time times timestamp took uptime wall".split()
)
"""Words in names of what depends on the machine, the clock or the number of starts, and never on the training."""
_NUMBER = (
    r"[-+]?(?:(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,4})?|(?i:nan|inf(?:inity)?))(?![\w.]{0,40}\w)"
)
_NUMBER += r"(?![ \t]{0,2}(?:s|secs?|seconds?|ms|us|mins?|minutes?|h|hours?|[kKMGT]i?B|\w{1,20}/s(?:ec)?)\b)"
_PAIR = re.compile(
    r"(?<![\w.])([A-Za-z_][\w./-]{0,60})[\"']?(?:[ \t]{0,3}[=:][ \t]{0,8}|[ \t]{1,8}|(?=[\[(])(?![\[(]\d{1,15}[\])]))"
    rf"[\[(]{{0,2}}[ \t]?({_NUMBER}(?:[, \t]{{1,8}}{_NUMBER}){{0,4096}})"
)
_DIGEST = re.compile(r"\b(?=[0-9]{0,15}[a-f])(?=[a-f]{0,15}[0-9])[0-9a-f]{16,128}\b")
_ANY_NUMBER = re.compile(r"[-+]?(?:\d[\d.]{0,40}(?:[eE][-+]?\d{1,4})?|\b(?i:nan|inf(?:inity)?)\b)")
_CLOCK = re.compile(
    r"\b\d{4}-\d\d-\d\d(?!\d)|(?<!\d)\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
    r"[ \t]{1,2}\d{1,2}\b|\b[IWEF]\d{4}\b"
)
"""Dates and times of day, even as the C++ libraries of machine learning begin their lines."""
_COLOUR = re.compile(r"\x1b\[[\d;]{0,40}m")
_UNFINISHED = re.compile(r"^.{0,200}?(?<!\d)(\d{1,15})/(?!\1 )\d{1,15} (?:\[\d\d:[^]]{0,1000}\]|(?:\[[=>]|━).{0,4000})")
"""A progress bar before its end, whose states depend on the clock, and whose count may start again after a restart."""
_FINISHED = re.compile(r"(?<!\d)(\d{1,15})/\1 (?:\[=|━)")
"""Keras prints it twice, the first time without the validation and only if the last step took long."""
_ABOUT_STARTS = re.compile(r"resum|restor|load|start|checkpoint|ckpt|sav|recover|continu|begin", re.I)


@dataclass(frozen=True, kw_only=True)
class Point:
    """A value that a run has left."""

    name: str
    """Its origin, and its own name after the last `|`."""
    key: Key = ()
    """When it was measured, such as epoch and step; empty if the line does not say."""
    process: int = 0
    """Number of the process in the replica, from 0; always 0 for a file."""
    line: int = 0
    """Number of its line in the log, from 0."""
    value: Any
    """An array of numbers, or a text such as a digest."""


def is_start(line: str) -> bool:
    """Return whether a line of a log separates two processes."""
    return bool(_START.search(line))


def is_measure(name: str) -> bool:
    """Return whether a name is of what differs between equal trainings, such as a duration."""
    return not _MEASURES.isdisjoint(re.findall(r"[a-z]+", name.lower()))


def pattern(text: str) -> re.Pattern[str]:
    """Return the expression for a part of a line as users write it: `loss is {loss} after {step} steps`.

    Raises:
        UserError: It has no names, the same name twice, or names without a text between them.
    """
    parts = re.split(r"\{([A-Za-z_]\w{0,59})\}", text)
    words, names = parts[::2], parts[1::2]
    if not names or len({*names}) < len(names) or "" in words[1:-1] or re.search(r"[{}]", "".join(words)):
        example = "'loss is {loss} after {step} steps'"
        raise UserError(f"--number {text!r}: expected a part of a line with names for its numbers, such as {example}")
    parts[::2] = [r"\s{1,8}".join(map(re.escape, re.split(r"\s+", each))) for each in words]
    parts[1::2] = [f"(?P<{name}>{_NUMBER})" for name in names]
    return re.compile("".join(parts))


def read_log(source: str, lines: Iterable[str], patterns: Sequence[re.Pattern[str]]) -> Iterator[Point]:
    """Yield the values of a log; with patterns, only the values that match them."""
    process = 0
    # Of a progress bar, each state is a part.
    parts = [(at, _COLOUR.sub("", part[:_MAX_LINE])) for at, line in enumerate(lines) for part in line.split("\r")]
    for (at, part), (_, following) in zip(parts, [*parts[1:], (0, "")], strict=False):
        if is_start(part):
            process += 1
        elif not (_FINISHED.search(part) and _FINISHED.search(following)):
            if patterns:
                found = [
                    pair for each in patterns if (match := each.search(part)) for pair in match.groupdict().items()
                ]
                words = ""
            else:
                own = _CLOCK.sub("", _UNFINISHED.sub("", part))
                found = _PAIR.findall(own)
                words = re.sub(r"\s+", " ", _ANY_NUMBER.sub("#", _DIGEST.sub("@", own))).strip()
            key = tuple(float(text.split()[0].replace(",", "")) for name, text in found if _COUNTERS.fullmatch(name))
            values: JsonObject = {}
            for name, text in found:
                if not (_COUNTERS.fullmatch(name) or is_measure(name)):
                    numbers = np.array([float(each) for each in re.split(r"[, \t]+", text)])
                    # A list of whole numbers names examples.
                    is_list = numbers.size > 1 and not (numbers % 1).any()
                    # The second of `train loss 0.5, validation loss 0.6` has another name.
                    values[f"{name} {len(values)}" if name in values else name] = (
                        numbers.astype(int) if is_list else numbers
                    )
            values |= {f"digest {n}": each for n, each in enumerate(() if patterns else _DIGEST.findall(part))}
            if key or not _ABOUT_STARTS.search(part):
                for name, value in values.items():
                    yield Point(name=f"{source}|{words}|{name}", key=key, process=process, line=at, value=value)
