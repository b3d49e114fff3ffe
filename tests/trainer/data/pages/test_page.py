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


def test_bars_are_as_long_as_their_numbers() -> None:
    stacks = {"train": [800, 0, 19_000], "test": [200, 0, 900]}
    svg = charts.bars("t", ["a", "$b", "c" * 40], stacks, x_label="images")
    found = re.findall(r'<path d="M (\S+) \S+ \nL (\S+) [^"]*"[^>]*fill: #1a73e8', svg)
    # All bars of the first stack, the others where those end; then the legend.
    bars = [(float(start), float(end)) for start, end in found[:6]]
    scale = (bars[2][1] - bars[2][0]) / 19_000
    assert [round((end - start) / scale) for start, end in bars] == [800, 0, 19_000, 200, 0, 900]
    assert [start for start, _ in bars[3:]] == [end for _, end in bars[:3]]
    assert re.findall(r">([^<>]+)</text>", svg) == [
        *("0", "5,000", "10,000", "15,000", "20,000", "images", "a", "$b", "c" * 17 + "…", "t", "train", "test"),
    ]


def test_bars_of_nothing_are_drawn() -> None:
    assert ">0<" in charts.bars("t", ["a"], {"x": [0], "y": [0]}, x_label="x")


def test_equal_charts_are_equal_bytes() -> None:
    drawn = [charts.bars("t", ["a"], {"one": [1]}, x_label="x") for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_floats_are_rounded_and_the_rest_is_not() -> None:
    html = page.render(title="x", blocks=[page.Table(title="t", columns=["a", "b"], rows=[[0.123456, 1234]])])
    assert "0.1235" in html
    assert "1234" in html
