"""Writes scikit-learn's handwritten digits, which are part of its package, as PNG files, one folder per class."""

import os

import numpy as np
from PIL import Image

_BRIGHTEST = 16
"""The digits are 8x8 counts from 0 to 16 (UCI optical recognition of handwritten digits)."""


def write(directory: str) -> str:
    """Write all 1797 digits as 8x8 grey PNG files: `<folder>/<digit>/<index>.png`.

    Returns:
        The folder.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    for index, (pixels, label) in enumerate(zip(digits.images, digits.target, strict=True)):
        folder = os.path.join(directory, str(label))
        os.makedirs(folder, exist_ok=True)
        grey = np.rint(pixels * (255 / _BRIGHTEST)).astype(np.uint8)
        Image.fromarray(grey).save(os.path.join(folder, f"{index:04d}.png"))
    return directory
