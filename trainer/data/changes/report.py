"""The page on what changed since the previous dataset."""

from trainer.data.changes import shifts
from trainer.data.changes.changes import NUM_NAMED, Changes, ClassChanges
from trainer.data.changes.images import ADDED, KINDS, RELABELLED, REMOVED, RENAMED, REPLACED, Change
from trainer.data.changes.measures import MEASURES, UNITS, Counts, value_of
from trainer.data.changes.shifts import ShiftTest
from trainer.data.pages import charts, page

_TITLE = "Changes"
_MAX_ROWS = 200
_TEST = (
    f"Two-sample Kolmogorov-Smirnov test on histograms, over all classes and per class. A shift has a p-value of at"
    f" most {shifts.MAX_P_VALUE} after Holm's correction for all tests, and a distance of at least"
    f" {shifts.MIN_DISTANCE}. Samples of fewer than {shifts.MIN_IMAGES} images are not tested."
)


def render(changes: Changes, *, previous: str) -> str:
    """Return the HTML of the page.

    Args:
        changes: The differences of two datasets.
        previous: Address of the previous dataset, for the subtitle.
    """
    blocks: list[page.Block] = [
        page.KeyFigures(figures=[(name.replace("_", " "), f"{value:,}") for name, value in changes.metrics().items()]),
        _shifts(changes),
        *_classes(changes),
        *_moves(changes),
        page.Chart(title="All images, before and now", svgs=_charts(changes)),
        *_names(changes),
        page.Table(
            title="Datasets",
            columns=["", "before", "now"],
            rows=[
                ["fingerprint", changes.before.fingerprint, changes.now.fingerprint],
                [
                    "pixels per image",
                    *(f"{each.image_size}x{each.image_size}" for each in (changes.before, changes.now)),
                ],
            ],
        ),
    ]
    return page.render(title=_TITLE, subtitle=f"Compared with {previous}", blocks=blocks)


def render_without(reason: str) -> str:
    """Return the page of a dataset that is not compared, with the reason."""
    return page.render(title=_TITLE, blocks=[page.Text(title="Nothing to compare with", text=reason)])


def _shifts(changes: Changes) -> page.Block:
    found, num_tests = changes.shifts, len(changes.comparisons)
    is_resized = changes.before.image_size != changes.now.image_size
    test = f"{_TEST} The image sizes differ, and contrast depends on them." if is_resized else _TEST
    title = "Shifts of brightness, contrast and size"
    if not found:
        return page.Text(title=title, text=f"No shift in {num_tests:,} tests. {test}")
    ranked = sorted(found, key=lambda each: (bool(each.class_name), -each.distance, each.class_name))
    more = f" The {_MAX_ROWS} largest of {len(ranked):,} are listed." if len(ranked) > _MAX_ROWS else ""
    return page.Table(
        title=title,
        note=f"{len(found):,} in {num_tests:,} tests. {test}{more}",
        columns=[
            "measure",
            "class",
            "images",
            "median before",
            "median now",
            "distance",
            "p-value",
            "images before",
            "images now",
        ],
        rows=[_shift(each) for each in ranked[:_MAX_ROWS]],
    )


def _shift(found: ShiftTest) -> list[page.Cell]:
    return [
        f"{found.name} ({UNITS[found.measure]})",
        found.class_name or "(all)",
        found.sample,
        f"{found.median_before:.0f}",
        f"{found.median_now:.0f}",
        f"{found.distance:.2f}",
        f"{found.p_value:.1e}",
        found.num_before,
        found.num_now,
    ]


def _classes(changes: Changes) -> list[page.Block]:
    """Return the table of the classes with changes, those with most changes first."""
    changed = sorted(filter(_num_changes, changes.classes), key=lambda each: (-_num_changes(each), each.name))
    if not changed:
        return [page.Text(title="Classes", text=f"No image of the {len(changes.classes):,} classes has changed.")]
    shown = changed[:_MAX_ROWS]
    note = f"{len(changed):,} of {len(changes.classes):,} classes have changes." + (
        f" The {_MAX_ROWS} with most changes are listed." if len(changed) > _MAX_ROWS else ""
    )
    kinds = (ADDED, REMOVED, REPLACED, RENAMED)
    return [
        page.Table(
            title="Classes",
            note=note,
            columns=["class", "", "before", "now", *kinds, "relabelled to it", "relabelled from it"],
            rows=[
                [
                    each.name,
                    _state(each)[0],
                    each.num_before,
                    each.num_now,
                    *(each.counts[kind] for kind in kinds),
                    each.counts[RELABELLED],
                    each.num_left,
                ]
                for each in shown
            ],
            states=[_state(each)[1] for each in shown],
        )
    ]


def _num_changes(each: ClassChanges) -> int:
    return sum(each.counts.values()) + each.num_left


def _state(each: ClassChanges) -> tuple[str, str]:
    if not each.num_before:
        return "new", "good"
    return ("", "") if each.num_now else ("gone", "bad")


def _moves(changes: Changes) -> list[page.Block]:
    if not changes.moves:
        return []
    return [
        page.Table(
            title="Relabelled images",
            note="The same content in another class than before.",
            columns=["from", "to", "images"],
            rows=changes.moves,
        )
    ]


def _charts(changes: Changes) -> list[str]:
    """Draw the distribution of each measure, before and now."""
    drawn = []
    for measure, (name, unit) in enumerate(zip(MEASURES, UNITS, strict=True)):
        histograms = zip(("before", "now"), changes.distributions, strict=True)
        series = {label: _points(measure, counts[measure]) for label, counts in histograms}
        drawn.append(charts.lines(name.capitalize(), series, x_label=unit, y_label="% of the images"))
    return drawn


def _points(measure: int, counts: Counts) -> list[tuple[float, float]]:
    """Return value and percentage of each pair of bins, from the first to the last one with images."""
    pairs = counts.reshape(-1, 2).sum(axis=1)
    used = pairs.nonzero()[0]
    shown = range(max(0, int(used[0]) - 1), min(len(pairs), int(used[-1]) + 2)) if len(used) else range(0)
    return [(value_of(measure, 2 * number + 0.5), 100 * int(pairs[number]) / int(counts.sum())) for number in shown]


def _names(changes: Changes) -> list[page.Block]:
    """Return the first names of each kind of change."""
    rows = [[kind, *_name(change)] for kind in KINDS for change in changes.first[kind]]
    _, rejected = changes.newly_rejected
    rows += [["newly rejected", name, reason] for name, reason in rejected]
    if not rows:
        return []
    note = f"The first {NUM_NAMED} of each kind, by name. Newly rejected images also count as removed."
    return [page.Table(title="Names", note=note, columns=["what", "image", "details"], rows=rows)]


def _name(change: Change) -> tuple[str, str]:
    """Return the current name of an image, and its change."""
    if not change.new_name or not change.name:
        return change.name or change.new_name, change.label or change.new_label
    if change.label != change.new_label:
        return change.new_name, f"{change.label} → {change.new_label}"
    return change.new_name, f"was {change.name}" if change.name != change.new_name else change.label
