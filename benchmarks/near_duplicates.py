"""Near-duplicates: the recall of planted copies, and the number of false pairs.

    python -m benchmarks.near_duplicates [--image-size 32]

Compare `prepare` with dHash, and with imagehash, pdqhash and perception as far as these are installed.
Each has the threshold given here; all see the prepared image. The originals are the sample photos of scikit-learn, of
scikit-image and perception if installed, and tiles of them. False pairs are counted among scikit-learn's
digits at 96 pixels and drawings of one object on white.
"""

import argparse
import glob
import importlib
import io
import itertools
import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

from benchmarks.measuring import Clock, parse
from trainer.data import images
from trainer.data.preparing.quality import likeness, signatures
from trainer.data.preparing.quality.kinds import Channels

Bits = npt.NDArray[np.uint8]
_PHOTOS = {
    "sklearn": "datasets/images/*.jpg",
    "skimage": "data/*.[jp][pn]g",
    "perception": "testing/images/*.jpg",
}
_SAME = ("motorcycle_right.png", "clock_motion.png")
"""Photos with the same content as another photo."""
_NUM_OBJECTS = 1000
_TILE = 128


def _photos() -> Iterator[Image.Image]:
    for package, pattern in _PHOTOS.items():
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        for path in sorted(glob.glob(os.path.join(os.path.dirname(str(module.__file__)), pattern))):
            if os.path.basename(path) not in _SAME:
                yield Image.open(path).convert("RGB")


def _natural() -> Iterator[Image.Image]:
    for photo in _photos():
        yield photo
        corners = [(x, y) for x in range(0, photo.width - _TILE, _TILE) for y in range(0, photo.height - _TILE, _TILE)]
        tiles = [photo.crop((x, y, x + _TILE, y + _TILE)) for x, y in corners[:40]]
        yield from (tile for tile in tiles if np.asarray(tile.convert("L")).std() > 8)


def _objects(numbers: random.Random) -> Iterator[Image.Image]:
    """Yield ellipses and rectangles on white, each with another shape in it."""
    for _ in range(_NUM_OBJECTS):
        image = Image.new("RGB", (160, 160), "white")
        drawing = ImageDraw.Draw(image)
        for size in (numbers.randrange(30, 120), numbers.randrange(10, 30)):
            width, height = size, numbers.randrange(size // 2, size + 1)
            left, top = (80 - edge // 2 + numbers.randrange(-8, 9) for edge in (width, height))
            shape = numbers.choice([drawing.ellipse, drawing.rectangle])
            colour = tuple(numbers.randrange(200) for _ in range(3))
            shape((left, top, left + width, top + height), fill=colour)
        yield image


def _digits() -> Iterator[Image.Image]:
    from sklearn.datasets import load_digits

    for pixels in load_digits().images:
        yield (
            Image.fromarray((15.9 * pixels).astype(np.uint8)).resize((96, 96), Image.Resampling.BICUBIC).convert("RGB")
        )


def _jpeg(image: Image.Image, quality: int) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


def _cropped(image: Image.Image, fraction: float) -> Image.Image:
    left, top = (int(edge * fraction / 2) for edge in image.size)
    return image.crop((left, top, image.width - left, image.height - top))


_CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "JPEG 40": lambda image: _jpeg(image, 40),
    "half size": lambda image: _jpeg(image.resize((image.width // 2, image.height // 2)), 85),
    "x 0.7": lambda image: ImageEnhance.Brightness(image).enhance(0.7),
    "x 1.3": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
    "mirrored": ImageOps.mirror,
    "upside down": ImageOps.flip,
    "turned by 90°": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "crop 2%": lambda image: _cropped(image, 0.02),
    "crop 5%": lambda image: _cropped(image, 0.05),
    "border 2%": lambda image: ImageOps.expand(image, image.width // 50, "white"),
    "border 5%": lambda image: ImageOps.expand(image, image.width // 20, "white"),
    "blur 0.5%": lambda image: image.filter(ImageFilter.GaussianBlur(image.width / 200)),
    "blur 1%": lambda image: image.filter(ImageFilter.GaussianBlur(image.width / 100)),
    "blur 2%": lambda image: image.filter(ImageFilter.GaussianBlur(image.width / 50)),
    "rotated 1°": lambda image: image.rotate(1, Image.Resampling.BICUBIC),
    "rotated 3°": lambda image: image.rotate(3, Image.Resampling.BICUBIC),
    "blurred, JPEG 40": lambda image: _jpeg(image, 40),
}


class _Own:
    """The signatures of `prepare`."""

    def hashed(self, image: Image.Image) -> Bits:
        deviations = tuple(np.asarray(image, dtype=np.float64).std(axis=(0, 1)))
        line = {
            **dict.fromkeys(("width", "height"), signatures.SMALL),
            "perceptual_hash": signatures.hash_of(image),
            "appearance": signatures.appearance_of(image, Channels(means=(), deviations=deviations)),
        }
        return np.frombuffer(signatures.signature_of(line) or bytes(signatures.NUM_BYTES), dtype=np.uint8)

    def num_alike(self, hashes: Bits) -> int:
        return len(likeness.find(hashes, np.ones(len(hashes), bool)).pairs)

    def recall(self, hashes: Bits, number: int) -> float:
        pairs = likeness.find(hashes, np.arange(len(hashes)) >= number, are_others_paired=False).pairs
        return float((pairs[:, 1] - pairs[:, 0] == number).sum() / number)


class _Hamming:
    """A hash that is compared by its Hamming distance."""

    def __init__(self, compute: Callable[[Image.Image], Any], limit: int) -> None:
        self._compute = compute
        self._limit = limit

    def hashed(self, image: Image.Image) -> Bits:
        return np.packbits(np.asarray(self._compute(image)).astype(bool).ravel())

    def _alike(self, hashes: Bits, one: Any, other: Any) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = np.bitwise_count(hashes[one] ^ hashes[other]).sum(axis=1) <= self._limit
        return found

    def num_alike(self, hashes: Bits) -> int:
        number = len(hashes)
        return sum(
            int(self._alike(hashes, np.full(number - one - 1, one), np.arange(one + 1, number)).sum())
            for one in range(number - 1)
        )

    def recall(self, hashes: Bits, number: int) -> float:
        return float(self._alike(hashes, np.arange(number), np.arange(number, 2 * number)).mean())


def _difference_hash(image: Image.Image) -> Any:
    grey = np.asarray(image.convert("L").resize((9, 8), Image.Resampling.LANCZOS))
    return grey[:, 1:] > grey[:, :-1]


def _methods() -> Iterator[tuple[str, _Own | _Hamming]]:
    yield "prepare", _Own()
    for limit in (2, 6):
        yield f"dHash, {limit} of 64 bits", _Hamming(_difference_hash, limit)
    try:
        imagehash = importlib.import_module("imagehash")
        yield "imagehash.phash, 2 of 64 bits", _Hamming(lambda image: imagehash.phash(image).hash, 2)
        yield "imagehash.phash, 16 of 256 bits", _Hamming(lambda image: imagehash.phash(image, hash_size=16).hash, 16)
        yield "imagehash.whash, 2 of 64 bits", _Hamming(lambda image: imagehash.whash(image).hash, 2)
    except ImportError:
        print("imagehash is not installed")
    try:
        pdqhash = importlib.import_module("pdqhash")
        yield "pdqhash, 16 of 256 bits", _Hamming(lambda image: pdqhash.compute(np.asarray(image))[0], 16)
        yield "pdqhash, 31 of 256 bits", _Hamming(lambda image: pdqhash.compute(np.asarray(image))[0], 31)
    except ImportError:
        print("pdqhash is not installed")
    try:
        phash = importlib.import_module("perception.hashers").PHash()
        yield (
            "perception.PHash, 2 of 64 bits",
            _Hamming(lambda image: phash.compute(np.asarray(image), hash_format="vector"), 2),
        )
    except ImportError:
        print("perception is not installed")


def main() -> None:
    """Print a line per method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--images", type=int, default=1797, help="maximum number of images per kind")
    options = parse(parser, images=20)
    size = options.image_size
    numbers = random.Random(0)
    kinds = {"photos": _natural(), "objects": _objects(numbers), "digits": _digits()}
    sets = {name: list(itertools.islice(found, options.images)) for name, found in kinds.items()}
    print({name: len(found) for name, found in sets.items()})
    originals = numbers.sample(sets["photos"], min(200, len(sets["photos"])))
    blurred = [image.filter(ImageFilter.GaussianBlur(image.width / 20)) for image in originals]
    prepared = {name: [images.stretch(image, size) for image in found] for name, found in sets.items()}
    for name, method in _methods():
        clock = Clock()
        hashes = {key: np.stack([method.hashed(image) for image in found]) for key, found in prepared.items()}
        cost = clock.took()
        microseconds = 1e6 * cost.cpu_seconds / sum(map(len, prepared.values()))
        false = {key: method.num_alike(found) for key, found in hashes.items()}
        recall = {}
        for change, apply in _CHANGES.items():
            chosen = blurred if change.startswith("blurred") else originals
            both = [*chosen, *map(apply, chosen)]
            found = np.stack([method.hashed(images.stretch(image, size)) for image in both])
            recall[change] = f"{method.recall(found, len(chosen)):.2f}"
        print(
            f"{name}: {microseconds:.0f} us, all{cost}; pairs of different images {false}; found {recall}", flush=True
        )


if __name__ == "__main__":
    main()
