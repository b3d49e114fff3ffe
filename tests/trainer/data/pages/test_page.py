"""Pages of the reports: escaped, self-contained, legible in light and dark."""

import itertools
import re

import numpy as np
import pytest

from trainer.data.pages import charts, page

HOSTILE = '<script>alert(1)</script> & "quotes" $x$'


def test_every_text_is_escaped() -> None:
    html = page.render(
        title=HOSTILE,
        subtitle=HOSTILE,
        blocks=[
            page.KeyFigures(figures=[(HOSTILE, HOSTILE)]),
            page.Table(title=HOSTILE, columns=[HOSTILE], rows=[[HOSTILE]], note=HOSTILE, states=["bad"]),
            page.Text(title=HOSTILE, text=HOSTILE),
            page.Gallery(
                title=HOSTILE, images=[page.Thumbnail(image_bytes=b"\x89PNG", caption=HOSTILE, detail=HOSTILE)]
            ),
            page.Chart(title=HOSTILE, svgs=[charts.bars(HOSTILE, [HOSTILE], {"x": [1]}, x_label=HOSTILE)]),
        ],
    )
    assert "<script" not in html
    # Page 3, figure 2, table 4, text 2, gallery 4 (the caption twice), chart 1; charts escape theirs.
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp;") >= 16


def test_no_text_turns_the_direction_or_breaks_the_line() -> None:
    name = "a\u202egnp.exe\n\u200b"
    blocks: list[page.Block] = [
        page.Table(title="t", columns=["x"], rows=[[name]], note=name),
        page.Text(title="t", text=name),
        page.Gallery(title="t", images=[page.Thumbnail(image_bytes=b"", caption=name, detail=name)], note=name),
        page.Chart(title="t", svgs=[charts.bars("t", [name], {"x": [1]}, x_label="x")], note=name),
    ]
    html = page.render(title="t", subtitle=name, blocks=blocks)
    assert not {"\u202e", "\u200b"} & set(html)
    # Subtitle, cell, three notes, text, caption twice, detail, and the label of a bar.
    assert html.count(r"a\u202egnp.exe\n") == 10


def test_a_page_needs_no_network() -> None:
    html = page.render(
        title="x",
        blocks=[page.Chart(title="x", svgs=[charts.lines("x", {"a": [(0, 1), (1, 2)]}, x_label="x", y_label="y")])],
    )
    without_names = re.sub(r'xmlns(:\w+)?="[^"]*"|<metadata>.*?</metadata>|<!DOCTYPE[^>]*>', "", html, flags=re.DOTALL)
    assert "http" not in without_names
    assert 'name="viewport"' in html


def test_charts_use_the_pages_colour_and_width() -> None:
    for svg in (
        charts.lines("t", {"a": [(0, 1)], "b": []}, x_label="x", y_label="y"),
        charts.bars("t", ["a", "b"], {"one": [1, 2], "two": [0, 3]}, x_label="x"),
        charts.confusion("t", np.array([[3, 1], [0, 2]]), ["a", "b"]),
    ):
        assert "currentColor" in svg
        head = svg[: svg.index(">")]
        assert "viewBox" in head
        assert " width=" not in head


def test_bars_are_as_long_as_their_numbers() -> None:
    stacks = {"train": [800, 0, 19_000], "test": [200, 0, 900]}
    svg = charts.bars("t", ["a", "$b", "c" * 40], stacks, x_label="images")
    found = re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)" height="15" fill="#1a73e8"', svg)
    # All bars of the first stack, then the others where those end.
    bars = [tuple(map(float, each)) for each in found]
    scale = bars[2][2] / 19_000
    assert [round(width / scale) for _, _, width in bars] == [800, 0, 19_000, 200, 0, 900]
    assert [start for start, _, _ in bars[3:]] == pytest.approx([start + width for start, _, width in bars[:3]])
    assert [y for _, y, _ in bars[3:]] == [y for _, y, _ in bars[:3]]
    # Each bar ends at the number that its axis has there, within the drawing.
    ticks = {number: float(x) for x, number in re.findall(r'<text x="(\S+)"[^>]*>([\d,]+)</text>', svg)}
    assert (ticks["20,000"] - ticks["0"]) / scale == pytest.approx(20_000, rel=1e-3)
    assert bars[0][0] == pytest.approx(ticks["0"], rel=1e-3)
    assert ticks["20,000"] < float(svg.split('viewBox="0 0 ')[1].split()[0])
    assert re.findall(r">([^<>]+)</text>", svg) == [
        *("t", "0", "5,000", "10,000", "15,000", "20,000", "a", "$b", "c" * 17 + "…", "images", "train", "test"),
    ]


@pytest.mark.parametrize("largest", [1, 3, 4, 5, 9, 10, 49, 99, 100, 476, 477, 10**6, 123_456_789])
def test_the_axis_of_bars_has_two_to_five_round_steps(largest: int) -> None:
    svg = charts.bars("t", ["a"], {"x": [largest]}, x_label="x")
    ticks = [int(number.replace(",", "")) for number in re.findall(r">([\d,]+)</text>", svg)]
    steps = {after - before for before, after in itertools.pairwise(ticks)}
    assert len(steps) == 1
    assert str(*steps).rstrip("0") in {"1", "2", "5"}
    assert 2 <= len(ticks) <= 6
    assert ticks[0] == 0
    assert largest * 0.7 <= ticks[-1] + min(steps) > largest


def test_bars_of_nothing_are_drawn() -> None:
    assert ">0<" in charts.bars("t", ["a"], {"x": [0], "y": [0]}, x_label="x")


def test_equal_charts_are_equal_bytes() -> None:
    drawn = [charts.bars("t", ["a"], {"one": [1]}, x_label="x") for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_floats_are_rounded_and_the_rest_is_not() -> None:
    html = page.render(title="x", blocks=[page.Table(title="t", columns=["a", "b"], rows=[[0.123456, 1234]])])
    assert "0.1235" in html
    assert "1234" in html
