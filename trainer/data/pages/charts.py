"""Charts as inline SVG: texts and axes use the page's text colour, so they are legible in light and dark."""

import html
import io
import itertools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from localvertex_base.userinput.cli import one_line

_ACCENT, _SECOND, _WRONG = "#1a73e8", "#e8710a", "#c5221f"
_OPACITIES = (1.0, 0.6, 0.3)
"""Of the bars of a stack."""
_BARS_WIDTH = 374
_BAR_PITCH = 18.7
_INK = "#010203"
"""Placeholder for the page's text colour while drawing; replaced by currentColor afterwards."""


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], *, x_label: str, y_label: str) -> str:
    """Draw lines over a common axis.

    Args:
        title: Above the chart.
        series: Name -> points (x, y), at most two; empty series are left out.
        x_label: Below the axis, with unit.
        y_label: Next to the axis, with unit.
    """
    figure, axes = _axes(title, 5.2, 3.1)
    drawn = [(name, points) for name, points in series.items() if points]
    for (name, points), colour in zip(drawn, (_ACCENT, _SECOND), strict=False):
        xs, ys = zip(*points, strict=True)
        marker = "o" if len(xs) < 40 else ""
        axes.plot(xs, ys, "-", color=colour, label=name, linewidth=1.6, marker=marker, markersize=3)
    axes.set_xlabel(x_label, color=_INK)
    axes.set_ylabel(y_label, color=_INK)
    if len(drawn) > 1:
        axes.legend(frameon=False, labelcolor=_INK)
    return _svg(figure)


def bars(title: str, names: Sequence[str], stacks: Mapping[str, Sequence[int]], *, x_label: str) -> str:
    """Draw horizontal stacked bars, one per name, from top to bottom.

    Without matplotlib, whose import and layout take half a second: as long as `prepare` has for thousands of images
    that it knows.
    """
    largest = max(map(sum, zip(*stacks.values(), strict=True)), default=0)
    step = _step(largest)
    end = step * max(1, -(-largest // step))
    left, right = 14 + max(map(_text_width, names), default=0), _BARS_WIDTH - _text_width(f"{end:,}") / 2
    top, bottom = 26.0, 26 + _BAR_PITCH * len(names)
    scale = (right - left) / end
    drawn = [_text(left, 15, title, size=11, anchor="start")]
    for value in range(0, end + 1, step):
        x, opacity = left + value * scale, 0.25 if value else 0.4
        drawn.append(
            f'<path d="M{x:.2f} {top}V{bottom + 4:.2f}" stroke="currentColor" stroke-width="0.6"'
            f' stroke-opacity="{opacity}"/>'
        )
        drawn.append(_text(x, bottom + 15, f"{value:,}", size=9))
    for number, name in enumerate(names):
        y, x = top + _BAR_PITCH * number, left
        drawn.append(_text(left - 6, y + 13, _cut(name), size=9, anchor="end"))
        for values, opacity in zip(stacks.values(), _OPACITIES, strict=False):
            width = values[number] * scale
            drawn.append(_bar(x, y + 3, width, _BAR_PITCH - 6, opacity))
            x += width
    drawn.append(_text((left + right) / 2, bottom + 29, x_label, size=10))
    height = bottom + 38
    if len(stacks) > 1:
        drawn += _legend(list(stacks), height)
        height += 16
    return f'<svg viewBox="0 0 {_BARS_WIDTH} {height:.2f}" font-family="sans-serif">{"".join(drawn)}</svg>'


def confusion(title: str, matrix: npt.NDArray[np.int64], names: Sequence[str]) -> str:
    """Draw a confusion matrix: rows are true classes, columns predictions, the shade is the fraction of the row.

    Args:
        title: Above the chart.
        matrix: Counts int64 [K, K].
        names: K class names.
    """
    size = min(7.5, 2.2 + 0.42 * len(names))
    figure, axes = _axes(title, size, size)
    fractions = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    for row, column in zip(*np.nonzero(matrix), strict=True):
        fraction = float(fractions[row, column])
        axes.add_patch(_square(column, row, _ACCENT if row == column else _WRONG, max(fraction, 0.25)))
        if len(names) <= 20:
            colour = "white" if fraction > 0.6 else _INK
            axes.text(column, row, str(matrix[row, column]), ha="center", va="center", color=colour, size=8)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if len(names) <= 50:
        rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 2 else {}
        axes.set_xticks(range(len(names)), [_short(name) for name in names], **rotated)
        axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.grid(visible=False)
    axes.set_xlabel("predicted", color=_INK)
    axes.set_ylabel("true", color=_INK)
    return _svg(figure)


def _axes(title: str, width_inches: float, height_inches: float) -> tuple[Any, Any]:
    # Not pyplot, which keeps global state and looks for a display.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, color=_INK, fontsize=11, loc="left")
    axes.tick_params(colors=_INK, labelsize=9)
    axes.set_facecolor("none")
    axes.grid(visible=True, alpha=0.25, linewidth=0.6, color=_INK)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(_INK)
        axes.spines[side].set_alpha(0.4)
    return figure, axes


def _square(x: int, y: int, colour: str, alpha: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, alpha=alpha, linewidth=0)


def _svg(figure: Any) -> str:
    import matplotlib

    buffer = io.StringIO()
    # Text stays text (small, selectable, in the page's font). A fixed salt makes the bytes of equal charts equal.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "report", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # The page sets the width, and the viewBox keeps the proportions.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace(_INK, "currentColor")


def _short(name: str) -> str:
    # A dollar sign would start a formula in matplotlib.
    return _cut(name).replace("$", r"\$")


def _cut(name: str) -> str:
    name = one_line(name)
    return name if len(name) <= 18 else name[:17] + "…"


def _step(largest: int) -> int:
    """Return the distance of at most six round numbers from 0 to the first that is not below the largest."""
    power: int = 10 ** max(0, len(str(largest)) - 2)
    return next(factor * power for factor in (1, 2, 5, 10, 20) if factor * power * 5 >= largest)


def _legend(names: Sequence[str], y: float) -> list[str]:
    """Draw a square and a name for each stack, in the middle."""
    widths = [_text_width(name) + 30 for name in names]
    starts = itertools.accumulate(widths, initial=(_BARS_WIDTH - sum(widths)) / 2)
    return [
        _bar(x, y, 14, 8, opacity) + _text(x + 19, y + 8, name, size=9, anchor="start")
        for x, name, opacity in zip(starts, names, _OPACITIES, strict=False)
    ]


def _bar(x: float, y: float, width: float, height: float, opacity: float) -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
    return f'<rect {place} fill="{_ACCENT}" fill-opacity="{opacity}"/>'


def _text(x: float, y: float, text: str, *, size: int, anchor: str = "middle") -> str:
    place = f'x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}" fill="currentColor"'
    return f"<text {place}>{html.escape(text)}</text>"


def _text_width(name: str) -> float:
    """Return about the width of a text of size 9, shortened as it is drawn; ideographs are square."""
    return sum(9.0 if unicodedata.east_asian_width(letter) in "WF" else 5.5 for letter in _cut(name))
