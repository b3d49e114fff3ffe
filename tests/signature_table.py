"""Write the table of the files that the model's signature reads: `python -m tests.signature_table`.

Each file of `tests.support.odd_files` is read by the signature, and by the server as in training.
"""

import functools
import re
import textwrap
from pathlib import Path

import numpy as np
import tensorflow as tf

from tests.support import odd_files
from trainer.data import images
from trainer.results import serving

PAGE = Path(__file__).resolve().parents[1] / "docs" / "serving.md"
START, END = "<!-- files: written by tests/signature_table.py -->\n\n", "\n<!-- end of files -->\n"
_MAX_COLUMNS = 95
IMAGE_SIZES = (32, 96)
"""One that is stored as PNG, one as JPEG."""


def difference(data: bytes, image_size: int) -> tuple[int, float] | None:
    """Return by how many levels the pixels differ from those of training, at most and on average; None: refused."""
    try:
        found = signature(image_size)(tf.constant([data]))[0].numpy().astype(int)
    # TensorFlow's binding fails on messages that quote bytes of the file.
    except (tf.errors.InvalidArgumentError, UnicodeDecodeError):
        return None
    levels = np.abs(found - images.to_pixels(data, image_size))
    return int(levels.max()), float(levels.mean())


@functools.cache
def signature(image_size: int) -> tf.types.experimental.GenericFunction:
    return tf.function(
        lambda data: serving.decode_and_resize(data, image_size),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )


@functools.cache
def differences() -> dict[tuple[str, str], list[tuple[int, float] | None]]:
    """Return (format, kind of file) -> the difference at each image size."""
    return {
        (kind, name): [difference(data, image_size) for image_size in IMAGE_SIZES]
        for kind, files in odd_files.made().items()
        for name, data in files.items()
    }


def table() -> str:
    rows = [["format", "", "files"], ["---"] * 3]
    for kind in odd_files.made():
        for result in ("read", "refused"):
            found = {name: None in each for (of, name), each in differences().items() if of == kind}
            names = "; ".join(name for name, is_refused in found.items() if is_refused == (result == "refused"))
            lines = textwrap.wrap(re.sub("EXIF 1; .*EXIF 8", "EXIF 1 to 8", names), _MAX_COLUMNS)
            rows += [[kind, result, line] if line == lines[0] else ["", "", line] for line in lines]
    return "".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|\n" for row in rows)


def page() -> str:
    """Return the page with the present table."""
    before, _, rest = PAGE.read_text().partition(START)
    return f"{before}{START}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
