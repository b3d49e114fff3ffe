"""The groups of a form and the values that a parameter may have, read from descriptions.

The groups come from heading lines in the pipeline's description, or else from the names of its parameters.

A heading line is a line of the pipeline's docstring such as `Data: source, image_size; max_examples`. What follows the
semicolon is folded in the form, and lines with one title are one group. The console of Vertex AI shows these lines as
part of the description.
"""

import os
import re
from collections.abc import Mapping
from typing import Any

from localvertex._base.compiled.parameters import ParameterSpec, ParameterType
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import quote

_HEADING = re.compile(r"(?P<title>[A-Z][\w ]{0,30}): *(?P<names>(?:; *)?\w+(?: *[,;] *\w+)*)")
_WORDS = {
    "Machine": "machine accelerator gpu gpus tpu replica replicas cpu cpus memory disk spot container worker workers",
    "Deployment": "endpoint deploy deployed deployment serving traffic",
    "Release": "register registered registry champion threshold alias aliases promote promotion version display",
    "Data": "data dataset source table bq bigquery uri uris path bucket input inputs split query file column columns",
    "Training": "train training epoch epochs batch learning rate optimizer layers dropout seed steps model loss hp",
}
"""Group -> words of names, such as `batch` of `batch_size`; the first group that fits counts."""
_MAX_UNGROUPED, _MAX_UNFOLDED = 10, 20
"""Parameters up to which a form needs no groups, and no folded groups."""
_OTHER = "Other"
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"
_RANGE = re.compile(rf"\({_NUMBER} to {_NUMBER}\)")
_EXISTS = re.compile(r"\ban existing (?:file|folder)\b")

Group = JsonObject
"""A group for the page: `title`, `names`, and `more`, the names that are folded."""


def split_description(description: str, parameters: Mapping[str, ParameterSpec]) -> tuple[str, list[Group]]:
    """Return a pipeline's description without its heading lines, and the groups of its form.

    Args:
        description: Description of the pipeline.
        parameters: Parameters by name. Each is in one group, even if no line names it.
    """
    lines, by_title = list[str](), dict[str, Group]()
    left = dict.fromkeys(sorted(parameters, key=lambda name: (not parameters[name].is_required, name)))
    for line in description.split("\n"):
        found = _HEADING.fullmatch(line.strip())
        if not found or parameters.keys().isdisjoint(re.findall(r"\w+", found["names"])):
            lines.append(line)
            continue
        shown, _, more = found["names"].partition(";")
        names, folded = (
            [each for each in re.findall(r"\w+", part) if left.pop(each, each) is None] for part in (shown, more)
        )
        group = by_title.setdefault(found["title"], {"title": found["title"], "names": [], "more": []})
        group["names"] += names
        group["more"] += folded
    if not by_title and len(parameters) > _MAX_UNGROUPED:
        by_title = {title: _by_words(title, left, parameters) for title in (*_WORDS, _OTHER)}
    title = _OTHER if by_title else ""
    by_title.setdefault(title, {"title": title, "names": [], "more": []})["names"] += left
    return "\n".join(lines).strip(), [each for each in by_title.values() if each["names"] or each["more"]]


def _by_words(title: str, left: dict[str, None], parameters: Mapping[str, ParameterSpec]) -> Group:
    """Take the parameters of a group from those that are left; of many, only the required ones are unfolded."""
    wanted = set(_WORDS[title].split()) if title in _WORDS else None
    names = [each for each in left if wanted is None or wanted & set(each.lower().split("_"))]
    for each in names:
        del left[each]
    shown = [each for each in names if parameters[each].is_required or len(parameters) <= _MAX_UNFOLDED]
    return {"title": title, "names": shown, "more": [each for each in names if each not in shown]}


def documented_choices(spec: ParameterSpec) -> list[str]:
    """Return the values of a text that its description lists as `a, b or c`, if the default is one of them."""
    plain = re.sub(r" ?\([^()]*\)", "", spec.description)
    clause = re.split(r"[.;](?:\s|$)", plain, maxsplit=1)[0].rpartition(": ")[2]
    first, has_or, last = clause.rpartition(" or ")
    choices = [each.strip(" `'\"") for each in (*first.rstrip(", ").split(", "), last)]
    is_list = has_or and all(re.fullmatch(r"[\w.:-]+", each) for each in choices)
    return choices if is_list and spec.type is ParameterType.STRING and spec.default in choices else []


def documented_problem(spec: ParameterSpec, value: Any) -> str:
    """Return why a description excludes a value; empty if it does not.

    It excludes numbers outside of a range such as `(1 to 10)`, if the default is in the range. Where it asks for "an
    existing folder" or "an existing file", it excludes paths that do not exist; words in backquotes, addresses with a
    scheme and paths in mounted buckets do not count.
    """
    if isinstance(value, int | float) and (found := _RANGE.search(spec.description)):
        lowest, highest = map(float, found.groups())
        default = lowest if spec.default is None else spec.default
        is_in = lowest <= value <= highest or not lowest <= default <= highest
        return "" if is_in else f"found {value}; expected {found[0][1:-1]}"
    if not isinstance(value, str) or not _EXISTS.search(spec.description):
        return ""
    if value == spec.default or f"`{value}`" in spec.description or ":" in value or value.startswith("/gcs/"):
        return ""
    path = os.path.expanduser(value)
    if os.path.isabs(path) and os.path.exists(path):
        return ""
    return f"found {quote(value)}, which does not exist; expected the absolute path of an existing file or folder"
