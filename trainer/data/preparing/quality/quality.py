"""All warnings about the images of a dataset, with counts and first names."""

import sys
from collections.abc import Iterator
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.data.preparing.quality.kinds import (
    ADVICE,
    FEW_IMAGES,
    IMBALANCE,
    LABEL_CONFLICTS,
    LEAKS,
    MAX_IMBALANCE,
    MIN_IMAGES,
    NEAR_DUPLICATES,
    SIMILAR_LABELS,
    TEXTS,
    kinds_of,
)
from trainer.data.preparing.quality.near_duplicates import Finder, NearDuplicates
from trainer.data.preparing.rows import Row, Rows
from trainer.data.sources import labels
from trainer.data.sources.remarks import MAX_NAMES, Remarks, first_names


class Quality:
    """Collects all rows, sorted by name, and then reports the warnings about them."""

    def __init__(self, rows: Rows, class_names: list[str], image_size: int) -> None:
        self._rows = rows
        self._class_names = class_names
        self._image_size = image_size
        self._finder = Finder(class_names)
        self._found = Remarks()
        self._near: NearDuplicates | None = None

    def add(self, row: Row) -> None:
        """Check one image; rejected ones are skipped."""
        if row.content_hash:
            for kind in kinds_of(row.content, self._image_size):
                self._found.add(kind, row.name)
            self._finder.add(row)

    def report(self, strict: frozenset[str], directory: storage.Path) -> None:
        """Find all warnings, once the splits are set, write the near-duplicates, and print one line per kind.

        Args:
            strict: Names of the warnings that count as errors.
            directory: Folder for the list of all near-duplicates.

        Raises:
            UserError: One of these kinds was found.
        """
        self._near = self._finder.find(directory)
        self._add_pairs(self._near)
        self._add_conflicts()
        self._add_classes()
        for kind in self._find():
            if kind not in strict:
                print(f"warning: {kind}: {self._describe(kind)}", file=sys.stderr)
        if refused := [f"{kind}: {self._describe(kind)}" for kind in self._find() if kind in strict]:
            raise UserError(f"{'; '.join(refused)}; or prepare without strict: the report then shows them")

    def to_dict(self) -> dict[str, Any]:
        """Return the warnings, ready for JSON."""
        return {
            "warnings": [
                [kind, TEXTS[kind], self._found.counts[kind], self._found.names[kind]] for kind in self._find()
            ],
            "near_duplicates": vars(self._near),
            "label_conflicts": [
                {"content_hash": content_hash, "images": [[name, self._class_names[label]] for name, label in images]}
                for content_hash, images in self._rows.conflicts(MAX_NAMES)
            ],
        }

    def shown_images(self) -> Iterator[Row]:
        """Yield the images of the pairs that the report shows."""
        images = [image for pair in self._near.pairs for image in pair["images"]] if self._near else []
        for split, content_hash, name in sorted({(i["split"], i["content_hash"], i["name"]) for i in images}):
            yield from (row for row in self._rows.used_rows(split, content_hash, content_hash) if row.name == name)

    def _find(self) -> list[str]:
        return [kind for kind in TEXTS if self._found.counts[kind]]

    def _describe(self, kind: str) -> str:
        # Each name is a pair of images, so the number of further pairs is not known.
        count = self._found.counts[kind]
        names = first_names(self._found.names[kind], 0 if kind in (LEAKS, NEAR_DUPLICATES) else count)
        return f"{TEXTS[kind]}: {count:,} ({names}); {ADVICE[kind]}"

    def _add_pairs(self, near: NearDuplicates) -> None:
        for kind, number, is_across in ((LEAKS, near.num_across, True), (NEAR_DUPLICATES, near.num_within, False)):
            pairs = [pair["images"] for pair in near.pairs]
            chosen = [pair for pair in pairs if (pair[0]["split"] != pair[1]["split"]) == is_across]
            self._found.add(kind, *(" ~ ".join(image["name"] for image in pair) for pair in chosen), count=number)

    def _add_conflicts(self) -> None:
        names = [" = ".join(name for name, _ in images[:2]) for _, images in self._rows.conflicts(MAX_NAMES)]
        self._found.add(LABEL_CONFLICTS, *names, count=self._rows.num_contents()[1])

    def _add_classes(self) -> None:
        counts = {self._class_names[label]: count for label, count in self._rows.label_counts().items()}
        smallest = min(counts.values())
        for name, count in sorted(counts.items(), key=lambda pair: (pair[1], pair[0])):
            if count < MIN_IMAGES:
                self._found.add(FEW_IMAGES, f"{name}: {count:,}")
            if count > MAX_IMBALANCE * smallest:
                self._found.add(IMBALANCE, f"{name}: {count:,}")
        spellings: dict[str, list[str]] = {}
        for name in counts:
            spellings.setdefault(labels.spelling(name).casefold(), []).append(name)
        for names in spellings.values():
            if len(names) > 1:
                self._found.add(SIMILAR_LABELS, ", ".join(names), count=len(names))
