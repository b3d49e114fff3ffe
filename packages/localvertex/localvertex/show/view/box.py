"""A box of the graph: its text, and a width that is the same in every state."""

from dataclasses import dataclass
from unicodedata import east_asian_width

PADDING, HEADER, HEIGHT = 10.0, 28.0, 44.0

_MIN_WIDTH, _MAX_UNITS = 148.0, 26
"""Width of a box, and most characters of its title."""

_TITLE_UNIT, _LABEL_UNIT = 7.8, 6.5
"""Width of a character in pixels, in bold type and in the small type of the other texts."""

_LABEL, _LABEL_IN_A_LOOP, _LABEL_OF_A_LINE = (
    len("NOT_TRIGGERED 9999.9 s"),
    len("10,000 of 10,000 NOT_TRIGGERED"),
    len("Not triggered"),
)
"""Most characters that a state takes."""

_ICON, _BUTTON, _ITEMS = 24.0, 20.0, 140.0
"""Room for the icon of the state, the button that closes a group, and the choice of an iteration of a loop."""

STEP, IMPORTER, GROUP, CONDITION, LOOP, EXIT_HANDLER = "step", "importer", "group", "if", "for each", "exit handler"
"""Kinds of boxes."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """One box of the drawing; a group contains others."""

    id: str = ""
    """Names of the tasks from the root, joined by slashes, without the numbers of iterations."""
    title: str = ""
    """As much of the name as fits."""
    name: str = ""
    kind: str = ""
    """One of the kinds; empty for the drawing itself."""
    note: str = ""
    """Further facts, independent of its state."""
    groups: tuple[str, ...] = ()
    """Ids of the groups around it that have nothing else inside: they are drawn as this box."""
    is_open: bool = False
    """Whether it is a group whose tasks are drawn."""
    x: float = 0.0
    y: float = 0.0
    """The top left corner, relative to the box around it."""
    width: float = 0.0
    height: float = HEIGHT
    boxes: tuple["Box", ...] = ()
    lines: tuple[str, ...] = ()
    """The `d` of each path between the inner boxes, relative to this box."""


def shorten(title: str) -> str:
    """Return as much of a title as fits into a box."""
    room = _MAX_UNITS
    for index, character in enumerate(title):
        room -= _units(character)
        if room < 0:
            return f"{title[: index - 1]}…"
    return title


def width_of(title: str, kind: str, note: str, *, is_open: bool, is_in_loop: bool, is_line: bool = False) -> float:
    """Return the width of a box for its title and any state; the texts of an open group are in one line.

    A line is what a run did not take.
    """
    most = _LABEL_OF_A_LINE if is_line else _LABEL_IN_A_LOOP if is_in_loop else _LABEL
    label = (most + _units(note) + 2 * bool(note)) * _LABEL_UNIT
    name = _units(title) * _TITLE_UNIT + (len(kind) + 4) * _LABEL_UNIT * (kind != STEP)
    around = _ICON + 2 * PADDING + _BUTTON * (kind not in (STEP, IMPORTER))
    if is_open:
        return name + label + around + _ITEMS * (kind == LOOP)
    return max(_MIN_WIDTH, name, label) + around


def _units(text: str) -> int:
    """Return how many characters wide a text is; East Asian ones are twice as wide."""
    return sum(2 if east_asian_width(each) in "WF" else 1 for each in text)
