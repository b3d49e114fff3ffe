"""Charts as inline SVG: texts and axes use the page's text colour, so they are legible in light and dark."""

import contextlib
import io
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from localvertex._base.userinput.cli import one_line

_ACCENT, _SECOND, _WRONG = "#1a73e8", "#e8710a", "#c5221f"
_OPACITIES = (1.0, 0.6, 0.3)
"""Opacities of the bars of a stack."""
_INK = "#010203"
"""Placeholder for the page's text colour while drawing; replaced by currentColor afterwards."""

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
    """Draw horizontal stacked bars, one per name, from top to bottom."""
    from matplotlib.ticker import MaxNLocator

    with _axes(title, 5.2, 1.2 + 0.26 * len(names)) as (figure, axes):
        starts = np.zeros(len(names), np.int64)
        for (name, numbers), opacity in zip(stacks.items(), _OPACITIES, strict=False):
            axes.barh(range(len(names)), numbers, left=starts, color=_ACCENT, alpha=opacity, label=name)
            starts += numbers
        axes.set_yticks(range(len(names)), [_short(name) for name in names])
        axes.invert_yaxis()
        axes.set_xlim(0, max(1, starts.max(initial=0)) * 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel(x_label)
        if len(stacks) > 1:
            figure.legend(loc="outside lower center", ncols=len(stacks))
        return _svg(figure)


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


def _short(name: str) -> str:
    name = one_line(name)
    # A dollar sign would start a formula in matplotlib.
    return (name if len(name) <= 18 else name[:17] + "…").replace("$", r"\$")
