"""A folder with one sub-folder per class, optionally below folders train, validation and test."""

import functools
import os
from collections.abc import Iterator

from trainer.data.images import EXTENSIONS
from trainer.data.sources.source import SourceImage
from vertex_gpu_training.userinput.errors import UserError

SPLIT_FOLDERS = {
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


class FolderSource:
    """Images in `<directory>/<class>/...` or `<directory>/<split>/<class>/...`; hidden files are skipped."""

    def __init__(self, directory: str) -> None:
        """List the folder.

        Raises:
            UserError: It does not exist, contains no images, or only one class.
        """
        self.directory = os.path.abspath(os.path.expanduser(directory))
        self.num_ignored_files = 0
        if not os.path.isdir(self.directory):
            raise UserError(
                f"source {directory!r} not found: {self.directory} is not a folder (current directory: {os.getcwd()});"
                f" give digits, tfds:NAME, or a folder with one sub-folder per class"
            )
        self._files = self._list()
        self.class_names = sorted({class_name for _, class_name, _ in self._files})
        refuse_untrainable(self.directory, self._files, self.num_ignored_files)

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, sorted by path."""
        labels = {name: label for label, name in enumerate(self.class_names)}
        for split, class_name, path in self._files:
            yield SourceImage(
                name=_printable(os.path.relpath(path, self.directory).replace(os.sep, "/")),
                label=labels[class_name],
                split=split,
                read=functools.partial(_read, path),
            )

    def _list(self) -> list[tuple[str, str, str]]:
        """Return the split (or empty), class name and path of each image."""
        folders = _sub_folders(self.directory)
        splits = {name: SPLIT_FOLDERS.get(name.lower(), "") for name in folders}
        # Only if every top-level folder is a split, because a class may be called "test".
        if not ("train" in splits.values() and all(splits.values())):
            return self._classes("", self.directory)
        return [row for name in folders for row in self._classes(splits[name], os.path.join(self.directory, name))]

    def _classes(self, split: str, directory: str) -> list[tuple[str, str, str]]:
        return [
            (split, _printable(name), path)
            for name in _sub_folders(directory)
            for path in self._walk(os.path.join(directory, name))
        ]

    def _walk(self, directory: str) -> list[str]:
        """Return the image files below a folder. Links are followed, each real folder once: links may form a cycle."""
        found: list[str] = []
        entered: set[str] = set()
        for folder, names, files in os.walk(directory, followlinks=True):
            real = os.path.realpath(folder)
            if real in entered:
                names.clear()
                continue
            entered.add(real)
            names[:] = sorted(name for name in names if not name.startswith("."))
            images = [name for name in sorted(files) if is_image_name(name)]
            self.num_ignored_files += sum(not name.startswith(".") for name in files) - len(images)
            found += [os.path.join(folder, name) for name in images]
        return found


def refuse_untrainable(directory: str, files: list[tuple[str, str, str]], num_ignored_files: int) -> None:
    """Refuse a folder without images, with one class, or with a class that has no images to train on.

    Args:
        directory: For the message.
        files: Split (or empty), class name and path of each image.
        num_ignored_files: For the message.

    Raises:
        UserError: The folder is one of these.
    """
    class_names = sorted({class_name for _, class_name, _ in files})
    if not files:
        raise UserError(
            f"no images in {directory}: expected one sub-folder per class with files such as .jpg or .png"
            f" (its sub-folders contain {num_ignored_files} other files)"
        )
    if len(class_names) < 2:
        raise UserError(
            f"only one class in {directory}: {class_names[0]!r}; expected two or more sub-folders, one per class"
        )
    if missing := sorted({*class_names} - {name for split, name, _ in files if split in ("", "train")}):
        raise UserError(f"class {missing[0]!r} of {directory} has no images in train; add some or remove the class")


def _sub_folders(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def is_image_name(name: str) -> bool:
    """Return whether the name is that of a visible image file."""
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS


def _printable(name: str) -> str:
    """Return a name that UTF-8 can hold, because Linux allows any bytes in file names."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
