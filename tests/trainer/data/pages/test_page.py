"""Pages of the reports: escaped, self-contained, legible in light and dark."""

import re

import numpy as np

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


def test_bars_are_as_long_as_their_numbers_and_all_lies_within_the_drawing() -> None:
    stacks = {"train": [800, 0, 19_000], "test": [200, 0, 900]}
    svg = charts.bars("t", ["a", "$b", "c" * 40], stacks, x_label="images")
    box = re.search(r'viewBox="0 0 (\S+) (\S+)"', svg)
    found = [[float(value) for value in rect] for rect in re.findall(r'<rect x="(\S+)" y="(\S+)" width="(\S+)"', svg)]
    assert box is not None
    # One row after the other, each stack where the one before ends; then the legend.
    starts, _, widths = zip(*found[:6], strict=True)
    scale = widths[4] / 19_000
    assert [round(width / scale, -1) for width in widths] == [800, 200, 0, 0, 19_000, 900]
    assert starts[1] == starts[0] + widths[0]
    assert all(0 <= x <= x + width <= float(box[1]) and y < float(box[2]) for x, y, width in found)
    assert re.findall(r'text-anchor="middle"[^>]*>([^<]+)', svg) == [
        "0",
        "5,000",
        "10,000",
        "15,000",
        "20,000",
        "images",
    ]
    assert ">$b<" in svg


def test_bars_of_nothing_are_drawn() -> None:
    assert ">0<" in charts.bars("t", ["a"], {"x": [0], "y": [0]}, x_label="x")


def test_equal_charts_are_equal_bytes() -> None:
    drawn = [charts.bars("t", ["a"], {"one": [1]}, x_label="x") for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_floats_are_rounded_and_the_rest_is_not() -> None:
    html = page.render(title="x", blocks=[page.Table(title="t", columns=["a", "b"], rows=[[0.123456, 1234]])])
    assert "0.1235" in html
    assert "1234" in html
