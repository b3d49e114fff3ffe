"""Each way to train ends as docs/ends.md has it; what the service restarts then trains to its end."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_testing import ends

PAGE = Path(__file__).parents[1] / "docs" / "ends.md"
SLOW = ("frozen", "another job's lease")
OF_WORKERS = (*SLOW, "error", "SIGTERM, then error", "SIGTERM, full disk", "full disk at the last save", "lost peer")
SHORT = ("infinite loss", "SIGTERM", "SIGTERM, then error")
MARKS = {"slow": [pytest.mark.slow], "soak": [pytest.mark.slow, pytest.mark.soak], "": []}


@pytest.mark.parametrize(
    ("way", "chosen"),
    [
        pytest.param(way, chosen, id=f"{way}-{mark or 'quick'}", marks=MARKS[mark])
        for way, mark, chosen in (
            ("run", "", [end for end in ends.ENDS if end not in SLOW]),
            ("run", "slow", SLOW),
            ("blocks", "", [end for end in ends.ENDS if end not in SLOW]),
            ("blocks", "slow", SLOW),
            ("run, 2 workers", "", [end for end in ends.ENDS if end not in OF_WORKERS]),
            ("run, 2 workers", "slow", OF_WORKERS),
            ("wrapper", "slow", ends.ENDS),
            ("keras_fit", "slow", SHORT),
            ("keras_fit", "soak", [end for end in ends.ENDS if end not in SHORT]),
        )
    ],
)
def test_a_training_ends_as_the_page_has_it(tmp_path: Path, way: str, chosen: list[str]) -> None:
    if way == "keras_fit":
        pytest.importorskip("keras")
    words = [sys.executable, Path(__file__).with_name("ends.py"), tmp_path, way, *chosen]
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {end: tuple(cell) for end, cell in json.loads(done.stdout.splitlines()[-1]).items()}
    of_page = ends.read(PAGE, way)
    assert found == {end: of_page[end] for end in chosen}, done.stderr


def test_the_page_has_each_end_of_each_way_once(tmp_path: Path) -> None:
    text = PAGE.read_text()
    copy = tmp_path / PAGE.name
    copy.write_text(text)
    ends.write(copy, {})
    assert copy.read_text() == text
    assert all(set(ends.read(PAGE, way)) == set(ends.ENDS) for way in ends.WAYS)
