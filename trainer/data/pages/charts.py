"""Charts as inline SVG: texts and axes use the page's text colour, so they are legible in light and dark."""

import contextlib
import io
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from localvertex._base.userinput.cli import one_line

_ACCENT, _SECOND, _WRONG = "#1a73e8", "#e8710a", "#c5221f"
_OPACITIES = (1.0, 0.6, 0.3)
"""Opacities of the bars of a stack."""
_INK = "#010203"
"""Placeholder for the page's text colour while drawing; replaced by currentColor afterwards."""

_BARS_WIDTH = 374
_TEXT = Markup('<text x="{x:.5g}" y="{y}" font-size="{size}" text-anchor="{anchor}">{text}</text>')
_LINE = Markup('<path d="M{x:.5g} {top}V{bottom}" stroke="currentColor" stroke-opacity=".25" stroke-width=".6"/>')
_BAR = Markup(  # noqa: S704 - of constants
    f'<rect x="{{x:.9g}}" y="{{y}}" width="{{width:.9g}}" height="{{height}}" fill="{_ACCENT}"'
    ' fill-opacity="{opacity}"/>'
)

_STYLE = pathlib.Path(__file__).with_suffix(".mplstyle")
"""The style of all charts, as matplotlib reads it."""


def lines(
    title: str, series: Mapping[str, Iterable[tuple[float, float]]], *, x_label: str, y_label: str, mark: float = 0
) -> str:
    """Draw lines over a common axis.

    Args:
        title: Title above the chart.
        series: Name -> points (x, y), at most two; empty series are left out.
        x_label: Label below the axis, with unit.
        y_label: Label next to the axis, with unit.
        mark: Step from which the base is also trained; 0: no mark.
    """
    with _axes(title, 5.2, 3.1) as (figure, axes):
        if mark:
            axes.axvline(mark, color=_INK, linestyle="--", label="base also trained")
        drawn = [(name, points) for name, points in series.items() if points]
        for (name, points), colour in zip(drawn, (_ACCENT, _SECOND), strict=False):
            xs, ys = zip(*points, strict=True)
            marker = "o" if len(xs) < 40 else ""
            axes.plot(xs, ys, "-", color=colour, label=name, linewidth=1.6, marker=marker, markersize=3)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        if len(drawn) > 1:
            axes.legend()
        return _svg(figure)


def bars(title: str, names: Sequence[str], stacks: Mapping[str, Sequence[int]], *, x_label: str) -> str:
    """Draw horizontal stacked bars, one per name, from top to bottom.

    Without matplotlib, which takes longer for it than `prepare` for thousands of unchanged images.
    """
    shown = [_shortened(name) for name in names]
    left, top, height = 10 + max(map(_width, shown), default=0), 22, 19
    bottom = top + height * len(names) + 2
    # An integer number of steps of 1, 2 or 5 times a power of ten, of which at most five are drawn.
    end = max(1, *map(sum, zip(*stacks.values(), strict=True))) * 1.05
    step = next(
        each for power in itertools.count() for each in (10**power, 2 * 10**power, 5 * 10**power) if end <= 5 * each
    )
    scale = (_BARS_WIDTH - 15 - left) / end
    drawn = [_TEXT.format(x=left, y=14, size=11, anchor="start", text=one_line(title))]
    for tick in range(0, int(end) + 1, step):
        x = left + tick * scale
        drawn.append(_LINE.format(x=x, top=top, bottom=bottom))
        drawn.append(_TEXT.format(x=x, y=bottom + 12, size=9, anchor="middle", text=f"{tick:,}"))
    starts = [0] * len(names)
    for opacity, numbers in zip(_OPACITIES, stacks.values(), strict=False):
        for place, number in enumerate(numbers):
            x, y = left + starts[place] * scale, top + height * place + 3
            drawn.append(_BAR.format(x=x, y=y, width=number * scale, height=height - 4, opacity=opacity))
            starts[place] += number
    for place, name in enumerate(shown):
        drawn.append(_TEXT.format(x=left - 5, y=top + height * place + 14, size=9, anchor="end", text=name))
    drawn.append(_TEXT.format(x=(left + _BARS_WIDTH) / 2, y=bottom + 26, size=10, anchor="middle", text=x_label))
    bottom += 32
    if len(stacks) > 1:
        for place, (name, opacity) in enumerate(zip(stacks, _OPACITIES, strict=False)):
            x = left + 80 * place
            drawn.append(_BAR.format(x=x, y=bottom + 1, width=16, height=8, opacity=opacity))
            drawn.append(_TEXT.format(x=x + 21, y=bottom + 9, size=9, anchor="start", text=name))
        bottom += 16
    inside = Markup("").join(drawn)
    return str(Markup('<svg viewBox="0 0 {} {}" fill="currentColor">{}</svg>').format(_BARS_WIDTH, bottom, inside))


def confusion(title: str, matrix: npt.NDArray[np.int64], names: Sequence[str]) -> str:
    """Draw a confusion matrix: rows are true classes, columns predictions, the shade is the fraction of the row.

    Args:
        title: Title above the chart.
        matrix: Counts int64 [K, K].
        names: K class names.
    """
    from matplotlib.colors import to_rgba_array

    size = min(7.5, 2.2 + 0.42 * len(names))
    with _axes(title, size, size) as (figure, axes):
        fractions = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
        # One image, however many classes there are.
        cells = to_rgba_array([_WRONG, _ACCENT])[np.eye(len(names), dtype=int)]
        cells[..., 3] = np.where(matrix, fractions.clip(0.25), 0)
        axes.imshow(cells, interpolation="none")
        if len(names) <= 20:
            for row, column in zip(*np.nonzero(matrix), strict=True):
                colour = "white" if fractions[row, column] > 0.6 else _INK
                axes.text(column, row, str(matrix[row, column]), ha="center", va="center", color=colour, size=8)
        rotated = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 2 else {}
        shown = range(0, len(names), 1 + len(names) // 31)
        labels = [_short(names[each]) for each in shown]
        axes.set_xticks(shown, labels, **rotated)
        axes.set_yticks(shown, labels)
        axes.grid(visible=False)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")
        return _svg(figure)


@contextlib.contextmanager
def _axes(title: str, width_inches: float, height_inches: float) -> Iterator[tuple[Any, Any]]:
    import matplotlib

    # Not pyplot, which keeps global state and looks for a display.
    from matplotlib.figure import Figure

    with matplotlib.rc_context(fname=_STYLE):
        figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title(one_line(title).replace("$", r"\$"))
        axes.spines[["left", "bottom"]].set_alpha(0.4)
        yield figure, axes


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # The page sets the width, and the viewBox keeps the proportions.
    for size in ("width", "height"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    return svg.replace(_INK, "currentColor")


def _width(text: str) -> float:
    """Return at least the width of a text of size 9 in usual fonts; ideographs and emoji are square."""
    return sum(9.5 if letter >= "\u2e80" else 7.5 if letter.isupper() or letter in "mw%@…" else 5.3 for letter in text)


def _shortened(name: str) -> str:
    name = one_line(name)
    return name if len(name) <= 18 else name[:17] + "…"


def _short(name: str) -> str:
    # A dollar sign would start a formula in matplotlib.
    return _shortened(name).replace("$", r"\$")
