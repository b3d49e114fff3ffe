"""Which folders of a source are splits and classes; the same for a local folder and one in a bucket."""

import functools
import os
from collections.abc import Iterable, Iterator

from localvertex._base.userinput.errors import UserError
from trainer.data import images
from trainer.data.sources import opening
from trainer.data.sources.labels import sorted_unlike
from trainer.data.sources.remarks import IRREGULAR, OTHER, OUTSIDE, Remarks, first_names
from trainer.data.sources.source import Identity, SourceImage

_SPLIT_FOLDERS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}
"""Names of top-level folders that mean a split, in lower case."""
_SYSTEM_NAMES = frozenset(
    {
        *("__macosx", "lost+found", "@eadir", "#recycle", "#snapshot", "@recycle", "@recently-snapshot"),
        *("$recycle.bin", "recycler", "system volume information", "thumbs.db", "ehthumbs.db", "desktop.ini"),
        *("network trash folder", "temporary items", "__pycache__"),
    }
)
"""Names in lower case that operating systems and file servers give to what they add to the user's files."""


class Listing:
    """The files and folders of a source, without system files."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        """Path in messages."""
        self.images: list[tuple[str, str, Identity | None]] = []
        """Path below the source, where to read it, and its identity if the listing has it."""
        self.unreadable: list[tuple[str, str]] = []
        """Path below the source, and why it cannot be read."""
        self.folders: set[str] = set()
        """Paths below the source."""
        self.manifests: list[str] = []
        """Names of files beside the folders that may be manifests, which are sources of their own."""
        self.remarks = Remarks()

    def add_file(self, name: str, location: str, identity: Identity | None = None) -> None:
        """Add a file by its extension; the identity is None if it is determined when the file is read."""
        extension = os.path.splitext(name)[1].lower()
        if extension in images.EXTENSIONS:
            self.images.append((name, location, identity))
        elif extension in images.NOT_READ:
            self.unreadable.append((name, images.not_read(images.NOT_READ[extension])))
        elif "/" in name:
            self.remarks.add(OTHER, name)
        elif extension in (".csv", ".jsonl"):
            self.manifests.append(name)

    def add_irregular(self, name: str, reason: str) -> None:
        """Add an entry that is neither a file nor a folder; with the name of an image, it is an unreadable image."""
        if os.path.splitext(name)[1].lower() in {*images.EXTENSIONS, *images.NOT_READ}:
            self.unreadable.append((name, reason))
        else:
            self.remarks.add(IRREGULAR, name)


class ListedSource:
    """Images in `<folder>/<class>/...`, `<folder>/<split>/<class>/...` or `<folder>/<class>/<split>/...`."""

    def __init__(self, listing: Listing) -> None:
        """Sort the files into splits and classes.

        Args:
            listing: What the folder contains.

        Raises:
            UserError: The folders are ambiguous, a class has no image, or there are fewer than two classes.
        """
        self.remarks, directory = listing.remarks, listing.directory
        self._listed = listing.images
        self._splits, self._class_position = _splits(listing), 1
        if not self._splits:
            self._splits, self._class_position = _splits_of_classes(listing), 0
        self._depth = depth = 2 if self._splits else 1
        present, self.num_images = set(), 0
        for name, _, _ in self._listed:
            if found := self._split_and_class(name):
                present.add(found)
                self.num_images += 1
            else:
                self.remarks.add(OUTSIDE, name)
        self.unreadable = [pair for pair in listing.unreadable if pair[0].count("/") >= depth]
        folders = [name.split("/") for name in sorted(listing.folders)]
        self._hint = f"; to read its manifest, give {directory}/{min(listing.manifests)}" if listing.manifests else ""
        self._refuse_untrainable(
            directory,
            {parts[-1]: "/".join(parts) for parts in folders if len(parts) == self._class_position + 1},
            present,
        )
        self.class_names = sorted_unlike({class_name for _, class_name in present}, directory)

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, in the order of the listing."""
        labels = {name: label for label, name in enumerate(self.class_names)}
        for name, location, identity in self._listed:
            if not (found := self._split_and_class(name)):
                continue
            split, class_name = found
            yield SourceImage(
                name=name,
                label=labels[class_name],
                split=split,
                read=functools.partial(opening.read, location),
                identity=functools.partial(opening.identity, location)
                if identity is None
                else functools.partial(dict, identity),
                location=location,
            )

    def _split_and_class(self, name: str) -> tuple[str, str] | None:
        parts = name.split("/")
        if len(parts) <= self._depth:
            return None
        return self._splits.get(parts[1 - self._class_position], ""), parts[self._class_position]

    def _refuse_untrainable(
        self, directory: str, class_folders: dict[str, str], found_in: set[tuple[str, str]]
    ) -> None:
        """Refuse a source without images, with an empty class, with one class, or with one that is not in train."""
        if not found_in:
            found = "; ".join([*self._unreadable_in(""), *self.remarks.describe()]) or "it has no files"
            raise UserError(
                f"no images in {directory}: expected one sub-folder per class with files such as .jpg or .png ({found})"
                f"{self._hint}"
            )
        present = {class_name for _, class_name in found_in}
        if empty := sorted(class_folders.keys() - present):
            path = class_folders[empty[0]]
            found = "; ".join(self._unreadable_in(f"{path}/")) or "it is empty or has only other files"
            raise UserError(
                f"class folder {path!r} of {directory} has no image that can be read ({found}); add images or remove"
                " the folder"
            )
        filled = {split for split, _ in found_in}
        for name, _, _ in self._listed:
            folder, _, rest = name.partition("/")
            if rest and "/" not in rest and self._splits.get(folder, "train") not in filled | {"train"}:
                raise UserError(
                    f"folder {folder!r} of {directory} has images, but no class folders; sort its images into one"
                    " sub-folder per class, or give only the class folders, so that prepare makes the splits"
                )
        if len(present) < 2:
            raise UserError(
                f"only one class in {directory}: {min(present)!r}; expected two or more sub-folders, one per class"
                f"{self._hint}"
            )
        if missing := sorted(present - {name for split, name in found_in if split in ("", "train")}):
            raise UserError(f"class {missing[0]!r} of {directory} has no images in train; add some or remove the class")

    def _unreadable_in(self, prefix: str) -> list[str]:
        """Return a phrase on the images that cannot be read, if there are any."""
        found = [f"{name}: {reason}" for name, reason in self.unreadable if name.startswith(prefix)]
        return [f"unreadable images: {len(found):,} ({first_names(found, len(found))})"] if found else []


def is_system_name(name: str) -> bool:
    """Return whether a file or folder is hidden or was added by an operating system."""
    return name.startswith(".") or name.lower() in _SYSTEM_NAMES


def has_splits(top_folders: Iterable[str]) -> bool:
    """Return whether the names of all top-level folders mean splits, one of them train."""
    splits = {_SPLIT_FOLDERS.get(name.lower(), "") for name in top_folders}
    return "train" in splits and "" not in splits


def _splits(listing: Listing) -> dict[str, str]:
    """Return the split of each top-level folder; none if these are classes.

    A class may be called test or train: then all its images are directly in its folder. A split has folders.

    Raises:
        UserError: Some are splits, and others are not.
    """
    top = {name for name in listing.folders if "/" not in name}
    splits = {name: _SPLIT_FOLDERS[name.lower()] for name in sorted(top) if name.lower() in _SPLIT_FOLDERS}
    if not splits or has_splits(top):
        return splits
    depths: dict[str, int] = {}
    for name, _, _ in listing.images:
        folder, depth = name.split("/")[0], name.count("/")
        depths[folder] = max(depths.get(folder, 0), depth)
    nested = [name for name in splits if depths.get(name) != 1]
    if "train" not in {splits[name] for name in nested} and len({splits[name] for name in nested}) < 2:
        return {}
    named = ", ".join(map(repr, nested))
    if others := sorted(top - set(nested)):
        found = first_names(others, len(others))
        raise UserError(
            f"{listing.directory} has split folders ({named}) beside other folders ({found}); move the others"
            " elsewhere, or rename the split folders if they are classes"
        )
    raise UserError(
        f"{listing.directory} has split folders ({named}) but no train; add it, or rename them if they are classes"
    )


def _splits_of_classes(listing: Listing) -> dict[str, str]:
    """Return the split of each folder in the class folders; none if these are other folders, or only one.

    Raises:
        UserError: Only some of the images are in them.
    """
    paths = (name.split("/") for name, _, _ in listing.images)
    folders = {(parts[0], parts[1] if len(parts) > 2 else "") for parts in paths if len(parts) > 1}
    if len(names := {name for _, name in folders}) > 1 and has_splits(names):
        return {name: _SPLIT_FOLDERS[name.lower()] for name in names}
    found = {(top, _SPLIT_FOLDERS.get(name.lower(), "")) for top, name in folders}
    if mixed := [top for top, split in found if split == "train" and {(top, "validation"), (top, "test")} & found]:
        raise UserError(
            f"class {min(mixed)!r} of {listing.directory} has split folders, but other images are in none; move all"
            " into train, validation or test, or rename the folders if they are not splits"
        )
    return {}
