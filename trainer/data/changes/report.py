"""The page of `prepare` on what changed since the previous dataset. An error of it does not fail `prepare`."""

import sys
import traceback
from collections import Counter
from collections.abc import MutableMapping
from typing import Any

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line
from trainer.data.changes import changes
from trainer.data.changes.changes import ADDED, KINDS, RELABELLED, REMOVED, RENAMED, REPLACED, Changes, Image
from trainer.data.pages import page
from trainer.files import outputs

_TITLE = "Changes"
_MAX_ROWS = 200
_NUM_NAMED = 20
"""Number of images that are named per kind of change; all are counted."""


def write(path: str, metrics: MutableMapping[str, Any], folder: str, address: str, directory: str) -> None:
    """Write the page.

    Args:
        path: File of the page; empty for none.
        metrics: Receives the figures; stays empty without a readable previous dataset.
        folder: Has the list of images of the previous dataset; empty if there is none.
        address: Of the previous dataset.
        directory: The new dataset.
    """
    if path:
        outputs.write(path, _render(folder, address, directory, metrics))


def _render(folder: str, address: str, directory: str, metrics: MutableMapping[str, Any]) -> str:
    if not folder:
        return _without("There is no previous dataset of this source and image size, or it can no longer be used.")
    try:
        found = changes.between(folder, directory)
        rendered = render(found, previous=address)
    # The dataset is good, whatever is wrong with the previous one or with the comparison.
    except Exception as error:
        if not isinstance(error, UserError | OSError):
            traceback.print_exc()
        reason = f"not compared with the previous dataset {address}: {on_one_line(error)}"
        print(f"note: {reason}", file=sys.stderr)
        return _without(f"{reason[0].upper()}{reason[1:]}.")
    metrics.update(found.metrics())
    return rendered


def _without(reason: str) -> str:
    return page.render(title=_TITLE, blocks=[page.Text(title="Nothing to compare with", text=reason)])


def render(found: Changes, *, previous: str) -> str:
    """Return the HTML of the page.

    Args:
        found: The differences of two datasets.
        previous: Address of the previous dataset, for the subtitle.
    """
    figures = [(name.replace("_", " "), f"{value:,}") for name, value in found.metrics().items()]
    blocks: list[page.Block] = [page.KeyFigures(figures=figures), _classes(found)]
    if found.moved:
        blocks.append(
            page.Text(
                title="Splits",
                text=f"{len(found.moved):,} images are in another split than before. A hash of a file's bytes decides,"
                " so images that were exported again are divided anew: a model that was trained on the previous dataset"
                " may have seen test images of this one. Keep the files, or give the splits in the source.",
            )
        )
    rows = [[kind, *_name(before, now)] for kind in KINDS for before, now in found.pairs[kind][:_NUM_NAMED]]
    rows += [["newly rejected", name, reason] for name, reason in found.newly_rejected[:_NUM_NAMED]]
    rows += [
        ["in another split", now.name, f"{before.split} → {now.split}"] for before, now in found.moved[:_NUM_NAMED]
    ]
    if rows:
        note = f"The first {_NUM_NAMED} of each kind, by name. Newly rejected images also count as removed."
        blocks.append(page.Table(title="Names", note=note, columns=["what", "image", "details"], rows=rows))
    return page.render(title=_TITLE, subtitle=f"Compared with {previous}", blocks=blocks)


def _classes(found: Changes) -> page.Block:
    """Return the table of the classes with changes, those with most changes first."""
    came = {kind: Counter(now.label for _, now in found.pairs[kind] if now) for kind in KINDS}
    left = {kind: Counter(before.label for before, _ in found.pairs[kind] if before) for kind in KINDS}
    columns = [came[ADDED], left[REMOVED], came[REPLACED], came[RENAMED], came[RELABELLED], left[RELABELLED]]
    ranked = sum(columns, Counter[str]()).most_common()
    if not ranked:
        return page.Text(title="Classes", text=f"No image of the {len(found.num_now):,} classes has changed.")
    states = {
        **dict.fromkeys(found.new_classes, ("new", "good")),
        **dict.fromkeys(found.vanished_classes, ("gone", "bad")),
    }
    shown = [name for name, _ in ranked[:_MAX_ROWS]]
    kinds = (ADDED, REMOVED, REPLACED, RENAMED, "relabelled to it", "relabelled from it")
    return page.Table(
        title="Classes",
        note=f"{len(ranked):,} classes have changes."
        + (f" The {_MAX_ROWS} with most changes are listed." if len(ranked) > _MAX_ROWS else ""),
        columns=["class", "", "before", "now", *kinds],
        rows=[
            [
                name,
                states.get(name, ("", ""))[0],
                found.num_before[name],
                found.num_now[name],
                *(counts[name] for counts in columns),
            ]
            for name in shown
        ],
        states=[states.get(name, ("", ""))[1] for name in shown],
    )


def _name(before: Image | None, now: Image | None) -> tuple[str, str]:
    """Return the current name of an image, and its change."""
    if before is None or now is None:
        image = before or now
        return (image.name, image.label) if image else ("", "")
    if before.label != now.label:
        return now.name, f"{before.label} → {now.label}"
    return now.name, f"was {before.name}" if before.name != now.name else now.label
