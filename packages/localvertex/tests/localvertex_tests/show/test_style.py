"""The colours of the pages: texts have enough contrast, and states differ also without colour, in light and dark."""

import re
from itertools import combinations
from pathlib import Path

import pytest

from localvertex.jobs.goodput.timeline import SegmentKind
from localvertex.show import job_report
from localvertex.show.jinja import templates
from localvertex.store.task import State

STYLE = (Path(templates.__file__).parent / "run.css").read_text()
DARK = "@media (prefers-color-scheme: dark)"
Colours = dict[str, dict[str, str]]
"""Selector -> property -> colour."""


def blocks(dark: bool) -> str:
    """Return the rules inside the blocks for dark pages, or those outside of them."""
    # A block ends at the first brace after that of its last rule.
    pattern = re.compile(re.escape(DARK) + r"\s*\{((?:[^{}]*\{[^{}]*\})*)\s*\}")
    return "".join(pattern.findall(STYLE)) if dark else pattern.sub("", STYLE)


def colours(dark: bool) -> Colours:
    found: Colours = {}
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", re.sub(r"/\*.*?\*/", "", blocks(dark), flags=re.S)):
        values = dict(re.findall(r"([\w-]+):\s*(#[0-9a-f]{3,6})\b", body))
        for selector in selectors.split(","):
            found.setdefault(selector.strip(), {}).update(values)
    return found


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    digits = colour.removeprefix("#")
    digits = "".join(2 * each for each in digits) if len(digits) == 3 else digits
    channels = [int(digits[index : index + 2], 16) / 255 for index in (0, 2, 4)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(share * each for share, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def brightness(colour: str) -> float:
    """Return L* of CIELAB, 0 to 100."""
    value = luminance(colour)
    return float(116 * value ** (1 / 3) - 16) if value > 0.008856 else 903.3 * value


@pytest.mark.parametrize("dark", [False, True])
def test_texts_have_a_contrast_of_4_5(dark: bool) -> None:
    root = colours(dark)[":root"]
    for text in ("text", "muted", "accent", "bad", "good", "warn"):
        for back in ("back", "soft"):
            assert contrast(root[f"--{text}"], root[f"--{back}"]) >= 4.5, (text, back)
    for state in State:
        found = colours(dark)[f".{state}"]
        assert contrast(found["--ink"], found["--fill"]) >= 4.5, state


@pytest.mark.parametrize("dark", [False, True])
def test_states_differ_in_brightness(dark: bool) -> None:
    # What has not run looks the same; its label has the reason.
    states = [each for each in State if each != State.PENDING]
    fills = {state: brightness(colours(dark)[f".{state}"]["--fill"]) for state in states}
    assert [pair for pair in combinations(fills, 2) if abs(fills[pair[0]] - fills[pair[1]]) < 8] == []


@pytest.mark.parametrize("dark", [False, True])
def test_what_replicas_do_differs_in_brightness(dark: bool) -> None:
    kinds = {kind: brightness(colours(dark)[f"i.{kind}"]["background"]) for kind in job_report.MEANING}
    assert [pair for pair in combinations(kinds, 2) if abs(kinds[pair[0]] - kinds[pair[1]]) < 6] == []


def test_every_kind_of_a_timeline_has_a_meaning() -> None:
    assert {str(each) for each in SegmentKind} == set(job_report.MEANING)
