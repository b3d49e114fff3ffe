"""The colours of the page: texts have enough contrast, and what replicas do differs in brightness, light and dark."""

import re
from itertools import combinations

import pytest

from localvertex.jobs.goodput.timeline import SegmentKind
from localvertex.show import bundle

DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{(.*?\})\s*\}", re.S)


def colours(selector: str, *, dark: bool) -> dict[str, str]:
    """Return the variables of a selector that are colours, in the last rule of a scheme that has some."""
    style = re.sub(r"/\*.*?\*/", "", bundle.style(), flags=re.S)
    text = "".join(DARK.findall(style)) if dark else DARK.sub("", style)
    rules = re.findall(rf"(?:^|\}})\s*{re.escape(selector)} \{{(.*?)\}}", text, re.S)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})\b", "".join(rules)))


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
    root = colours(":root", dark=dark)
    for text in ("text", "muted", "accent", "bad", "good", "warn", "busy", "idle"):
        for back in ("back", "soft"):
            assert contrast(root[text], root[back]) >= 4.5, (text, back)


@pytest.mark.parametrize("dark", [False, True])
def test_what_replicas_do_differs_in_brightness(dark: bool) -> None:
    kinds = {kind: brightness(colour) for kind, colour in colours(".job", dark=dark).items()}
    assert set(kinds) == {str(each) for each in SegmentKind}
    assert [pair for pair in combinations(kinds, 2) if abs(kinds[pair[0]] - kinds[pair[1]]) < 6] == []


def test_every_kind_of_a_timeline_has_a_meaning() -> None:
    kinds = re.search(r"const KINDS = \{(.*?)\};", (bundle.FOLDER / "jobs" / "replicas.js").read_text(), re.S)
    assert kinds
    assert set(re.findall(r"^  (\w+): ", kinds[1], re.M)) == {str(each) for each in SegmentKind}
