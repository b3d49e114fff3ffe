"""Classify image files with an exported model: `python -m trainer.predict MODEL_DIR [IMAGE...]`."""

import contextlib
import os
import sys

import numpy as np

from localvertex._base.userinput import cli, paths
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote
from trainer import command_line
from trainer.data import images
from trainer.data.images import Pixels
from trainer.serve import model as models


def _pixels(path: str, image_size: int) -> Pixels:
    """Return the pixels uint8 [image_size, image_size, 3] of one image file.

    Raises:
        UserError: The file does not exist, or is not an image.
    """
    try:
        with open(path, "rb") as file:
            return images.to_pixels(file.read(), image_size)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}; current folder: {os.getcwd()})") from error
    except images.BadImage as error:
        raise UserError(f"{path}: {error}; expected an image such as JPEG or PNG") from error


def _ask() -> str:
    """Return the image file that the user types.

    Raises:
        UserError: No file was typed.
    """
    with contextlib.suppress(EOFError):
        if path := input("Image file: ").strip():
            return path
    raise UserError("no image file; expected at least one, such as python -m trainer.predict MODEL_DIR photo.jpg")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.predict", description=__doc__)
    parser.add_argument("model_directory", metavar="MODEL_DIR", help="folder that `python -m trainer.export` wrote")
    parser.add_argument("images", metavar="IMAGE", nargs="*", help="image files; without one, the program asks")
    parser.add_argument("--top", type=int, default=3, metavar="N", help="classes to print per image [%(default)s]")
    options = parser.parse_args(arguments)
    if options.top < 1:
        raise UserError(f"--top={quote(options.top)} is too small; use at least 1")
    given = options.images or [_ask()]
    for path in given:
        paths.check("IMAGE", path, is_local=True)
    # For a few images oneDNN gains nothing, and its start-up messages would precede the answer.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    model = models.load(options.model_directory)
    num_refused = 0
    for path in given:
        try:
            probabilities = model.predict(_pixels(path, model.image_size)[np.newaxis])[0]
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            num_refused += 1
            continue
        best = np.argsort(-probabilities, kind="stable")[: options.top]
        print(f"{path}: " + ", ".join(f"{model.class_names[k]} {probabilities[k]:.1%}" for k in best))
    return 2 if num_refused else 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
