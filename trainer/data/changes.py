"""The page of `prepare` on what changed since the previous dataset, by both lists of images."""

import heapq
import itertools
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.data.pages import page
from trainer.data.preparing import image_list
from trainer.files import outputs

_TITLE = "Changes"
_MAX_ROWS = 200
_NUM_NAMED = 20
"""Number of images that are named per kind of change; all are counted."""


class Image(NamedTuple):
    """A usable image."""

    name: str
    label: str
    content_hash: str


Pair = tuple[Image | None, Image | None]
"""An image before (None if it was added) and now (None if it was removed)."""
ADDED, REMOVED, REPLACED, RELABELLED, RENAMED = KINDS = ("added", "removed", "replaced", "relabelled", "renamed")
_STAGES: tuple[tuple[str, Callable[[Image], tuple[str, ...]]], ...] = (
    (RENAMED, lambda image: (image.content_hash, image.label)),
    (RELABELLED, lambda image: (image.content_hash,)),
    (REPLACED, lambda image: (image.name, image.label)),
)
"""Kind of change and what matched images have in common; each image is matched by one stage at most."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All differences of two datasets."""

    num_before: Counter[str] = field(default_factory=Counter)
    """Class -> number of usable images."""
    num_now: Counter[str] = field(default_factory=Counter)
    pairs: dict[str, list[Pair]] = field(default_factory=dict)
    """Kind of change -> the images that changed, by name."""

    def metrics(self) -> dict[str, float]:
        """Return the figures as metrics."""
        return {
            "images_before": self.num_before.total(),
            "images_now": self.num_now.total(),
            **{f"images_{kind}": len(self.pairs[kind]) for kind in KINDS},
        }


def write(path: str, metrics: MutableMapping[str, Any], folder: str, address: str, directory: str) -> None:
    """Write the page; an error of the comparison is noted on it and does not fail `prepare`.

    Args:
        path: File of the page; empty for none.
        metrics: Receives the figures; stays empty without a readable previous dataset.
        folder: Folder with the list of images of the previous dataset; empty without a previous dataset.
        address: Address of the previous dataset.
        directory: The new dataset.
    """
    if not path:
        return
    text = "There is no previous dataset of this source and image size, or it can no longer be used."
    try:
        if folder:
            found = between(folder, directory)
            outputs.write(path, render(found, previous=address))
            metrics.update(found.metrics())
            return
    # The dataset is good, whatever is wrong with the previous one or with the comparison.
    except Exception as error:
        if not isinstance(error, UserError | OSError):
            traceback.print_exc()
        text = f"Not compared with the previous dataset {address}: {on_one_line(error)}"
        print(f"note: {text}", file=sys.stderr)
    outputs.write(path, page.render(title=_TITLE, blocks=[page.Text(title="Nothing to compare with", text=text)]))


def between(previous_directory: str, new_directory: str) -> Changes:
    """Compare two datasets by their lists of images.

    Both lists are sorted by name, so only images that are not in both are in memory.

    Args:
        previous_directory: Local or on gs://.
        new_directory: Local or on gs://.
    """
    found, before, now = Changes(), list[Image](), list[Image]()
    lists = heapq.merge(
        _images(previous_directory, -1, found.num_before),
        _images(new_directory, 1, found.num_now),
        key=lambda pair: pair[0].name,
    )
    for _, group in itertools.groupby(lists, lambda pair: pair[0].name):
        balance = Counter[Image]()
        for image, sign in group:
            balance[image] += sign
        before += (-balance).elements()
        now += (+balance).elements()
    for kind, key in _STAGES:
        found.pairs[kind], before, now = _match(before, now, key)
    found.pairs[REMOVED] = [(image, None) for image in before]
    found.pairs[ADDED] = [(None, image) for image in now]
    return found


def _images(directory: str, sign: int, counts: Counter[str]) -> Iterator[tuple[Image, int]]:
    """Yield the usable images of a dataset by name, each with the sign, and count them by class."""
    for line in image_list.read(directory):
        if "content_hash" in line:
            counts[line["label"]] += 1
            yield Image(line["name"], line["label"], line["content_hash"]), sign


def _match(
    before: list[Image], now: list[Image], key: Callable[[Image], tuple[str, ...]]
) -> tuple[list[Pair], list[Image], list[Image]]:
    """Return pairs of images with the same key, in the order of their names, and the remaining images of both lists."""
    remaining: dict[tuple[str, ...], list[Image]] = {}
    for image in reversed(before):
        remaining.setdefault(key(image), []).append(image)
    pairs: list[Pair] = []
    unmatched = []
    for image in now:
        if same := remaining.get(key(image)):
            pairs.append((same.pop(), image))
        else:
            unmatched.append(image)
    return pairs, sorted(itertools.chain(*remaining.values())), unmatched


def render(found: Changes, *, previous: str) -> str:
    """Return the HTML of the page.

    Args:
        found: The differences of two datasets.
        previous: Address of the previous dataset, for the subtitle.
    """
    changed = sorted(name for name in found.num_before | found.num_now if found.num_before[name] != found.num_now[name])
    return page.render(
        title=_TITLE,
        subtitle=f"Compared with {previous}",
        blocks=[
            page.KeyFigures(
                figures=[(name.replace("_", " "), f"{value:,}") for name, value in found.metrics().items()]
            ),
            page.Table(
                title="Classes",
                note=f"{len(changed):,} classes have another number of images. At most {_MAX_ROWS} are listed.",
                columns=["class", "before", "now"],
                rows=[[name, found.num_before[name], found.num_now[name]] for name in changed[:_MAX_ROWS]],
            ),
            page.Table(
                title="Names",
                note=f"The first {_NUM_NAMED} of each kind, by name.",
                columns=["what", "before", "class before", "now", "class now"],
                rows=[
                    [kind, *(text for image in pair for text in (image[:2] if image else ("", "")))]
                    for kind in KINDS
                    for pair in found.pairs[kind][:_NUM_NAMED]
                ],
            ),
        ],
    )
