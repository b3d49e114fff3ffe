"""Makes the images that benchmarks read: JPEGs of 800x600 pixels, the usual size in cassava, the codelab's dataset."""

from pathlib import Path

import numpy as np
from PIL import Image


def make(folder: Path, count: int, *, num_classes: int = 5) -> None:
    """Write noise whose amplitude is about 1 / frequency, as in photographs, into a folder per class."""
    random = np.random.default_rng(0)
    for number in range(count):
        pixels = np.full((600, 800, 3), 128.0)
        for scale in (2, 4, 8, 16, 32, 64, 128, 256):
            coarse = random.integers(0, 256, (600 // scale + 2, 800 // scale + 2, 3), dtype=np.uint8)
            fine = np.asarray(Image.fromarray(coarse).resize((800, 600), Image.Resampling.BICUBIC))
            pixels += (fine - 128.0) * scale / 256
        path = folder / str(number % num_classes) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=90)


def multiply(folder: Path, count: int) -> None:
    """Add copies with another last byte after the image, until there are `count` images with different bytes."""
    made = sorted(folder.rglob("*.jpg"))
    for number in range(len(made), count):
        path = made[number % len(made)]
        (path.parent / f"copy {number}.jpg").write_bytes(path.read_bytes() + number.to_bytes(4, "big"))
