"""The images of a source as instances of a batch prediction: JSON Lines with `b64` and `file_name`."""

import base64
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from exact_resume.files import overlap, storage
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.data import images
from trainer.data.sources.factory import open_source
from trainer.data.sources.source import Source, SourceImage
from trainer.settings import FRACTION, check

KEY_FIELD = "file_name"
"""Field that the service takes out of an instance, and adds to its prediction."""
_MAX_SHARD_BYTES = 64 * 2**20
_NUM_THREADS = 2 * (os.cpu_count() or 1)


class Instances(NamedTuple):
    """Outputs of the step `write-instances`."""

    uris: list[str]
    """Addresses of the files, for the service."""
    destination: str
    """Address of a folder for the predictions."""
    num_images: int
    num_bad: int


def write(
    *,
    source: str,
    image_size: int,
    directory: str,
    uri: str,
    bad_images_path: str,
    max_bad_fraction: float,
) -> Instances:
    """Write the instances in shards, and the images that cannot be read as a list; memory does not grow with them.

    Each image is decoded and resized as `prepare` does it, so that the model sees what it was trained on.

    Args:
        source: A folder, manifests or `tfds:NAME`.
        image_size: Height and width of the model's images.
        directory: A folder for the shards.
        uri: Its address for the service.
        bad_images_path: The file of bad images, JSON Lines.
        max_bad_fraction: Fraction of bad images (0 to 1) above which this fails.

    Raises:
        UserError: The source cannot be used, or too many of its images are bad.
    """
    check("max_bad_fraction", max_bad_fraction, FRACTION)
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="unpacked-"))
        bad, file = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        opened = open_source(source, scratch, is_labelled=False)
        shards = _Shards(directory, file)
        num_bad, first_bad = 0, ""
        for name, found in _read_all(opened, image_size):
            if isinstance(found, bytes):
                shards.add(found)
                continue
            num_bad += 1
            first_bad = first_bad or f"{name}: {found}"
            bad.write(json.dumps({KEY_FIELD: name, "reason": found}).encode() + b"\n")
        total = shards.num_lines + num_bad
        if not shards.num_lines or num_bad > max_bad_fraction * total:
            raise UserError(
                f"{num_bad:,} of {total:,} images cannot be read, more than max_bad_fraction {max_bad_fraction:g}"
                f" ({on_one_line(first_bad, 200)})"
            )
        shards.finish()
        storage.write_file(bad_images_path, bad)
    print(f"{shards.num_lines:,} images in {len(shards.names)} files, {num_bad:,} images not read")
    return Instances(
        uris=[f"{uri}/{name}" for name in shards.names],
        destination=f"{uri}-predictions",
        num_images=shards.num_lines,
        num_bad=num_bad,
    )


def _read_all(source: Source, image_size: int) -> Iterator[tuple[str, bytes | str]]:
    """Yield the name of each image with the line of its instance, or with the reason why there is none."""
    yield from source.unreadable

    def read(image: SourceImage) -> tuple[str, bytes | str]:
        try:
            data = image.read()
            content = images.stored_form(data, images.stretch(images.decode(data), image_size))
        except (images.BadImage, OSError) as error:
            return image.name, on_one_line(error)
        instance = {"b64": base64.b64encode(content).decode(), KEY_FIELD: image.name}
        return image.name, json.dumps(instance).encode() + b"\n"

    yield from overlap.in_order(read, source.images(), num_threads=_NUM_THREADS)


class _Shards:
    """Files of at most a given size; the lines of the present one are in a file on this machine."""

    def __init__(self, directory: str, file: BinaryIO) -> None:
        self._directory, self._file = directory, file
        self.names: list[str] = []
        self.num_lines = 0

    def add(self, line: bytes) -> None:
        """Append a line; a line that is larger than a shard gets its own."""
        if self._file.tell() + len(line) > _MAX_SHARD_BYTES:
            self.finish()
        self._file.write(line)
        self.num_lines += 1

    def finish(self) -> None:
        """Write the present shard, if it has lines."""
        if self._file.tell():
            self.names.append(f"instances-{len(self.names):05d}.jsonl")
            storage.write_file(storage.join(self._directory, self.names[-1]), self._file)
            self._file.seek(0)
            self._file.truncate()
