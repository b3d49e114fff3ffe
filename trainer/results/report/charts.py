"""Charts as inline SVG: texts and axes take the page's colour, so they are legible in light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ACCENT, SECOND = "#1a73e8", "#e8710a"
_INK = "#010203"
"""Stands for the page's text colour while drawing; replaced by currentColor afterwards."""


def lines(title: str, series: Mapping[str, Sequence[tuple[float, float]]], *, x_label: str, y_label: str) -> str:
    """Lines over a common axis.

    Args:
        title: above the chart.
        series: name -> points (x, y); empty series are left out.
        x_label: under the axis, with unit.
        y_label: beside the axis, with unit.
    """
    figure, axes = _axes(title, 5.2, 3.1)
    drawn = [(name, points) for name, points in series.items() if points]
    for (name, points), colour, style in zip(drawn, (ACCENT, SECOND), ("-", "-"), strict=False):
        xs, ys = zip(*points, strict=True)
        axes.plot(
            xs, ys, style, color=colour, label=name, linewidth=1.6, marker="o" if len(xs) < 40 else "", markersize=3
        )
    axes.set_xlabel(x_label, color=_INK)
    axes.set_ylabel(y_label, color=_INK)
    if len(drawn) > 1:
        axes.legend(frameon=False, labelcolor=_INK)
    return _svg(figure)


def bars(title: str, names: Sequence[str], stacks: Mapping[str, Sequence[int]], *, x_label: str) -> str:
    """Horizontal stacked bars, one for each name, from top to bottom."""
    figure, axes = _axes(title, 5.2, max(1.6, 0.9 + 0.26 * len(names)))
    left = np.zeros(len(names))
    for (stack, values), alpha in zip(stacks.items(), (1.0, 0.6, 0.3), strict=False):
        axes.barh(range(len(names)), values, left=left, color=ACCENT, alpha=alpha, label=stack, height=0.7)
        left += np.asarray(values)
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel(x_label, color=_INK)
    if len(stacks) > 1:
        figure.legend(frameon=False, labelcolor=_INK, ncols=3, loc="outside lower center", fontsize=9)
    return _svg(figure)


def confusion(title: str, matrix: npt.NDArray[np.int64], names: Sequence[str]) -> str:
    """Confusion matrix: rows are true classes, columns predicted ones, shade the share of the row.

    Args:
        title: above the chart.
        matrix: int [K, K], counts.
        names: K class names.
    """
    size = min(7.5, 2.2 + 0.42 * len(names))
    figure, axes = _axes(title, size, size)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    for row, column in zip(*np.nonzero(matrix), strict=True):
        colour = ACCENT if row == column else "#c5221f"
        share = float(shares[row, column])
        axes.add_patch(_square(column, row, colour, max(share, 0.25)))
        if len(names) <= 20:
            white = share > 0.6
            axes.text(
                column,
                row,
                str(matrix[row, column]),
                ha="center",
                va="center",
                color="white" if white else _INK,
                size=8,
            )
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    if len(names) <= 50:
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 2 else {}
        axes.set_xticks(range(len(names)), [_short(name) for name in names], **turned)
        axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.grid(visible=False)
    axes.set_xlabel("predicted", color=_INK)
    axes.set_ylabel("true", color=_INK)
    return _svg(figure)


def _axes(title: str, width_inches: float, height_inches: float) -> tuple[Any, Any]:
    # Not pyplot: it keeps global state and looks for a display.
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
    # Text stays text (small, selectable, in the page's font); a fixed salt makes equal charts equal bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "report", "font.family": "sans-serif"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # The width comes from the page; the viewBox keeps the proportions.
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace(_INK, "currentColor")


def _short(name: str) -> str:
    # A dollar sign would start a formula in matplotlib.
    return (name if len(name) <= 18 else name[:17] + "…").replace("$", r"\$")
