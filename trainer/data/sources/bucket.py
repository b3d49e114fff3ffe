"""A folder in a bucket, gs://..., laid out as a local one; each image is fetched when it is read."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from trainer.data.sources import SourceImage
from trainer.data.sources.folder import SPLIT_FOLDERS, is_image_name, refuse_what_cannot_be_trained
from trainer.files import bucket
from userinput.errors import UserError


class BucketSource:
    """Images in `<directory>/<class>/...` or `<directory>/<split>/<class>/...`; hidden objects are passed over."""

    def __init__(self, directory: str) -> None:
        """List the folder.

        Raises:
            UserError: nothing is there, or no images, or one class only.
            OSError: the bucket is not there or not readable.
        """
        self.directory = directory.rstrip("/")
        visible = [name for name in bucket.tree(self.directory) if not _is_hidden(name)]
        if not visible:
            raise UserError(f"source {directory!r} not found: no object has a name that begins with {self.directory}/")
        inside = [name for name in visible if "/" in name.rstrip("/")]
        images = [name for name in inside if is_image_name(name.rpartition("/")[2])]
        self.num_ignored_files = sum(not name.endswith("/") for name in inside) - len(images)
        self._files = self._sorted_into_classes(images)
        refuse_what_cannot_be_trained(self.directory, self._files, self.num_ignored_files)
        self.class_names = sorted({class_name for _, class_name, _ in self._files})

    def images(self) -> Iterator[SourceImage]:
        """All images, sorted by path."""
        labels = {name: label for label, name in enumerate(self.class_names)}
        for split, class_name, name in self._files:
            read = functools.partial(bucket.read, f"{self.directory}/{name}")
            yield SourceImage(name=name, label=labels[class_name], split=split, read=read)

    @staticmethod
    def _sorted_into_classes(images: list[str]) -> list[tuple[str, str, str]]:
        """Split (or empty), class name and path of each image."""
        splits = {name.split("/")[0]: SPLIT_FOLDERS.get(name.split("/")[0].lower(), "") for name in images}
        # Only if every folder on top is a split: a class may well be called "test".
        if not ("train" in splits.values() and all(splits.values())):
            return [("", name.split("/")[0], name) for name in images]
        return [(splits[parts[0]], parts[1], name) for name in images if len(parts := name.split("/")) > 2]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
