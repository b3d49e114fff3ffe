"""The pages in a real browser, as wide as a telephone: no word is broken, and nothing is wider than the window."""

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.show.test_page import whole
from localvertex_tests.show.test_untrusted import HOSTILE, REORDERING, hostile

from vertex_testing.browser import CHROMIUM, needs_chromium
from vertex_testing.runs import Execute

pytestmark = [pytest.mark.slow, needs_chromium]

MEASURE = """
for (const part of document.querySelectorAll("details")) part.open = true;
const broken = [];
const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const node = texts.currentNode;
  for (const match of node.data.matchAll(/[A-Za-z0-9]{2,20}/g)) {
    const range = document.createRange();
    range.setStart(node, match.index);
    range.setEnd(node, match.index + match[0].length);
    if (new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size > 1) broken.push(match[0]);
  }
}
const target = document.getElementById("failure");
if (target) target.focus();
parent.document.title = JSON.stringify({ broken, width: document.documentElement.scrollWidth,
  focused: document.activeElement.id });
"""
"""Unfolds everything and puts what it finds into the title, which `--dump-dom` prints."""


def measured(page: Path, tmp_path: Path) -> dict[str, Any]:
    """Open a copy of a page with another script in a frame of 390 pixels, the width of a telephone."""
    text = page.read_text()
    start, end = text.rindex("<script>"), text.rindex("</script>")
    text = f"{text[:start]}<script>{MEASURE}{text[end:]}"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    # A window of Chromium is at least 500 pixels wide, a frame is not.
    frame = f'<iframe style="width: 390px; height: 3000px; border: 0" srcdoc="{html.escape(text)}"></iframe>'
    copy = page.with_name("measured.html")
    copy.write_text(f"<!doctype html><title></title>{frame}")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
    options += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=800,3000", "--dump-dom", copy.as_uri()]
    done = subprocess.run([CHROMIUM, *options], capture_output=True, text=True, timeout=120, check=True)
    found = re.match(r".*?<title>(\{.*?\})</title>", done.stdout, re.S)
    assert found, done.stdout[:2000]
    return dict(json.loads(html.unescape(found[1])))


def test_no_word_of_a_failed_run_is_broken_and_its_failure_takes_the_focus(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    execute(whole, run_id="image-training-20261122030201")
    found = measured(work_dir / "image-training-20261122030201" / "run.html", tmp_path)
    assert found == {"broken": [], "width": 390, "focused": "failure"}


def test_hostile_texts_widen_nothing(execute: Execute, work_dir: Path, tmp_path: Path) -> None:
    execute(hostile, {"texts": [*HOSTILE, REORDERING], "items": HOSTILE[:4]}, run_id="hostile")
    found = measured(work_dir / "hostile" / "run.html", tmp_path)
    assert found["width"] == 390
