"""A folder in a bucket (gs://...), laid out like a local one; each image is fetched when it is read."""

import functools
from collections.abc import Iterator

from trainer.data.sources.folder import SPLIT_FOLDERS, is_image_name, refuse_untrainable
from trainer.data.sources.source import SourceImage
from trainer.files import bucket
from vertex_gpu_training.userinput.errors import UserError


class BucketSource:
    """Images in `<directory>/<class>/...` or `<directory>/<split>/<class>/...`; hidden objects are skipped."""

    def __init__(self, directory: str) -> None:
        """List the folder.

        Raises:
            UserError: The folder is empty, contains no images, or only one class.
            OSError: The bucket does not exist or is not readable.
        """
        self.directory = directory.rstrip("/")
        visible = [name for name in bucket.tree(self.directory) if not _is_hidden(name)]
        if not visible:
            raise UserError(
                f"source {directory!r} not found: no object name starts with {self.directory}/; check the path"
            )
        inside = [name for name in visible if "/" in name.rstrip("/")]
        images = [name for name in inside if is_image_name(name.rpartition("/")[2])]
        self.num_ignored_files = sum(not name.endswith("/") for name in inside) - len(images)
        self._files = self._sorted_into_classes(images)
        refuse_untrainable(self.directory, self._files, self.num_ignored_files)
        self.class_names = sorted({class_name for _, class_name, _ in self._files})

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, sorted by path."""
        labels = {name: label for label, name in enumerate(self.class_names)}
        for split, class_name, name in self._files:
            read = functools.partial(bucket.read, f"{self.directory}/{name}")
            yield SourceImage(name=name, label=labels[class_name], split=split, read=read)

    @staticmethod
    def _sorted_into_classes(images: list[str]) -> list[tuple[str, str, str]]:
        """Return the split (or empty), class name and path of each image."""
        splits = {name.split("/")[0]: SPLIT_FOLDERS.get(name.split("/")[0].lower(), "") for name in images}
        # Only if every top-level folder is a split, because a class may be called "test".
        if not ("train" in splits.values() and all(splits.values())):
            return [("", name.split("/")[0], name) for name in images]
        return [(splits[parts[0]], parts[1], name) for name in images if len(parts := name.split("/")) > 2]


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
