"""Classify image files with an exported model: `python -m trainer.predict MODEL_DIR IMAGE...`."""

import os
import sys
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from localvertex_base.userinput import cli, paths
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import quote
from trainer import command_line
from trainer.data import images
from trainer.learner import libraries
from trainer.results import exported
from trainer.serve import image_files

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel


def _predict(model: "LoadedModel", path: str) -> npt.NDArray[np.float32]:
    """Return the probabilities float32 [K] of one image file.

    Raises:
        UserError: The file does not exist, or is not an image.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}; current folder: {os.getcwd()})") from error
    try:
        images.decode(data)
    except images.BadImage as error:
        raise UserError(f"{path}: {error}; expected an image such as JPEG or PNG") from error
    servable = image_files.check(data, max_pixels=sys.maxsize).data
    probabilities: npt.NDArray[np.float32] = model.predict_files([servable])[0]
    return probabilities


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = cli.Parser("python -m trainer.predict", description=__doc__)
    parser.add_argument("model_directory", metavar="MODEL_DIR", help="folder that `python -m trainer.export` wrote")
    parser.add_argument("images", metavar="IMAGE", nargs="+", help="image files")
    parser.add_argument("--top", type=int, default=3, metavar="N", help="classes to print per image [%(default)s]")
    options = parser.parse_args(arguments)
    if options.top < 1:
        raise UserError(f"--top={quote(options.top)} is too small; use at least 1")
    for path in options.images:
        paths.check("IMAGE", path, is_local=True)
    exported.read(paths.check("MODEL_DIR", options.model_directory))
    # For a few images oneDNN gains nothing, and its start-up messages would precede the answer.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    libraries.load()
    from trainer.results import saved_model

    model = saved_model.load(options.model_directory)
    num_refused = 0
    for path in options.images:
        try:
            probabilities = _predict(model, path)
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
            num_refused += 1
            continue
        best = np.argsort(-probabilities, kind="stable")[: options.top]
        print(f"{path}: " + ", ".join(f"{model.class_names[k]} {probabilities[k]:.1%}" for k in best))
    return 2 if num_refused else 0


if __name__ == "__main__":
    sys.exit(command_line.run(main))
