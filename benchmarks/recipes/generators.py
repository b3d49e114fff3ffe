"""Synthetic images for classification: shapes, textures, glyphs and crops of photographs, each from a seed.

An image is a function of (task, seed, split, number) alone. Training images have imbalanced classes, and some of their
labels are wrong; test images are as many for each class, with true labels, so that the balanced accuracy on them has a
small error. They are drawn in twice the size and halved, which smooths edges.

Legend: S image size, T = 2 S, rng the random numbers of an image.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_image

_Pixels = npt.NDArray[np.float64]
_Draw = Callable[[int, int, np.random.Generator], _Pixels]
"""(class, T, rng) -> pixels [T, T, 3], 0 to 255."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Synthetic images of a task. Equal settings give equal images."""

    task: str
    """A name in `TASKS`."""
    seed: int
    num_images: int = 1500
    """Images for training and validation; for test as many again, rounded down to whole classes."""
    imbalance: float = 5.0
    """Images of the first class for each one of the last class; those between form a geometric series."""
    label_noise: float = 0.1
    """Fraction of training and validation images that are filed under another class, chosen at random."""
    image_size: int = 96
    """Height and width in pixels."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Task:
    classes: tuple[str, ...]
    draw: _Draw


def write(settings: Settings, folder: Path) -> None:
    """Write train/CLASS and test/CLASS with PNG files into a new folder."""
    task = TASKS[settings.task]
    num_classes = len(task.classes)
    shares = settings.imbalance ** -(np.arange(num_classes) / (num_classes - 1))
    labels = np.searchsorted(
        np.cumsum(shares / shares.sum()), (np.arange(settings.num_images) + 0.5) / settings.num_images
    )
    tests = np.repeat(np.arange(num_classes), settings.num_images // num_classes)
    for split, true_labels in enumerate((labels, tests)):
        for number, label in enumerate(true_labels):
            rng = np.random.default_rng([settings.seed, sorted(TASKS).index(settings.task), split, number])
            image = _finish(task.draw(int(label), 2 * settings.image_size, rng), settings.image_size, rng)
            if split == 0 and rng.random() < settings.label_noise:
                label = (label + rng.integers(1, num_classes)) % num_classes
            path = folder / ("train", "test")[split] / task.classes[label] / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            image.save(path, compress_level=1)


def _finish(pixels: _Pixels, image_size: int, rng: np.random.Generator) -> Image.Image:
    """Halve the image, and add light that falls off to one side and noise."""
    small = pixels.reshape(image_size, 2, image_size, 2, 3).mean(axis=(1, 3))
    x, y = np.meshgrid(np.linspace(-1, 1, image_size), np.linspace(-1, 1, image_size))
    angle = rng.uniform(0, 2 * math.pi)
    light = rng.uniform(0.6, 1.2) * (1 + rng.uniform(0, 0.4) * (x * math.cos(angle) + y * math.sin(angle)))
    noise = rng.normal(0, rng.uniform(2, 14), small.shape)
    return Image.fromarray((small * light[..., None] + noise).clip(0, 255).astype(np.uint8))


def _background(size: int, rng: np.random.Generator) -> Image.Image:
    """Return light blotches [T, T] around a random colour."""
    blotches = (rng.integers(140, 226, 3) + rng.integers(-30, 31, (3, 3, 3))).astype(np.uint8)
    return Image.fromarray(blotches).resize((size, size), Image.Resampling.BICUBIC)


def _dark(rng: np.random.Generator) -> tuple[int, int, int]:
    """Return the colour of what is before a background."""
    red, green, blue = rng.integers(0, 110, 3)
    return int(red), int(green), int(blue)


def _polygon(corners: int, inner: float, radius: float, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return the corners of a polygon around 0; every other one is at `inner` times the radius."""
    turns = np.arange(2 * corners) / (2 * corners) * 2 * math.pi + rng.uniform(0, 2 * math.pi)
    radii = radius * np.where(np.arange(2 * corners) % 2, inner, 1.0)
    stretch = np.array([1.0, rng.uniform(0.75, 1.0)])
    corners_at: _Pixels = np.stack([radii * np.cos(turns), radii * np.sin(turns)], axis=1) * stretch
    return corners_at


_SHAPES = {
    # Number of corners and the inner radius, where that of a straight side is cos(pi / corners).
    "circle": (24, 1.0),
    "square": (4, math.cos(math.pi / 4)),
    "star": (5, 0.5),
    "triangle": (3, 0.5),
}


def _shape(label: int, size: int, rng: np.random.Generator) -> _Pixels:
    """Draw a coloured shape before lines and discs of other colours."""
    image = _background(size, rng)
    draw = ImageDraw.Draw(image)
    for _ in range(rng.integers(1, 5)):
        ends = [tuple(end) for end in rng.uniform(0, size, (2, 2))]
        draw.line(ends, fill=_dark(rng), width=int(rng.uniform(0.01, 0.04) * size))
    for _ in range(rng.integers(0, 4)):
        draw.circle(tuple(rng.uniform(0, size, 2)), rng.uniform(0.02, 0.06) * size, fill=_dark(rng))
    radius = rng.uniform(0.15, 0.35) * size
    centre = rng.uniform(radius, size - radius, 2)
    corners = _polygon(*list(_SHAPES.values())[label], radius, rng) + centre
    draw.polygon([tuple(corner) for corner in corners], fill=_dark(rng))
    return np.asarray(image, np.float64)


def _texture(label: int, size: int, rng: np.random.Generator) -> _Pixels:
    """Draw a periodic pattern, turned, stretched and bent, in two colours."""
    angle, period = rng.uniform(0, math.pi), rng.uniform(0.1, 0.25)
    x, y = np.meshgrid(np.linspace(0, 1, size), np.linspace(0, 1, size))
    bend = rng.uniform(0, 0.04)
    x = x + bend * np.sin(2 * math.pi * (y * rng.uniform(1, 3) + rng.random()))
    u = (x * math.cos(angle) + y * math.sin(angle)) / period + rng.random()
    v = (y * math.cos(angle) - x * math.sin(angle)) / (period * rng.uniform(0.8, 1.25)) + rng.random()
    wave_u, wave_v = np.sin(2 * math.pi * u), np.sin(2 * math.pi * v)
    bricks = np.sin(2 * math.pi * (u + 0.5 * (np.floor(v) % 2)))
    patterns = (
        # bricks, checks, dots, stripes, waves, weave
        np.maximum(bricks, wave_v) - 0.4,
        wave_u * wave_v,
        wave_u + wave_v - 0.8,
        wave_u,
        np.sin(2 * math.pi * (u + 0.25 * wave_v)),
        np.where((np.floor(u) + np.floor(v)) % 2, wave_u, wave_v),
    )
    share = 0.5 + 0.5 * np.tanh(patterns[label] * rng.uniform(1, 4))[..., None]
    image = _background(size, rng)
    mixed: _Pixels = share * np.asarray(image, np.float64) + (1 - share) * np.array(_dark(rng))
    return mixed


_LETTERS = "BEFOPR"
_FONTS = (
    *(
        "DejaVuSans",
        "DejaVuSans-BoldOblique",
        "DejaVuSansMono",
        "DejaVuSerif",
        "DejaVuSerif-Bold",
        "DejaVuSerif-Italic",
    ),
    *("STIXGeneral", "STIXGeneralBol", "STIXGeneralBolIta", "STIXGeneralItalic", "cmb10", "cmr10", "cmss10", "cmtt10"),
)


@functools.cache
def _font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{name}.ttf", size)


def _glyph(label: int, size: int, rng: np.random.Generator) -> _Pixels:
    """Draw a letter, turned and moved, before parts of other letters."""
    image = _background(size, rng)
    # Strokes of letters outside the classes, so that a stroke alone decides nothing.
    for letter in (*rng.choice(list("ACDGHKMNQSTUVWXYZ"), 3), _LETTERS[label]):
        is_class = letter == _LETTERS[label]
        height = int((rng.uniform(0.45, 0.8) if is_class else rng.uniform(0.1, 0.2)) * size)
        mask = Image.new("L", (size, size))
        low, high = (0.35, 0.65) if is_class else (0.0, 1.0)
        place = tuple(rng.uniform(low * size, high * size, 2))
        font = _font(str(rng.choice(_FONTS)), height)
        ImageDraw.Draw(mask).text(place, str(letter), fill=int(rng.uniform(120, 255)), font=font, anchor="mm")
        mask = mask.rotate(rng.uniform(-30, 30), Image.Resampling.BILINEAR, center=place)
        image.paste(_dark(rng), mask=mask)
    return np.asarray(image, np.float64)


_NUM_COLUMNS = 3


@functools.cache
def _photographs() -> tuple[Image.Image, ...]:
    return tuple(Image.fromarray(load_sample_image(name)) for name in ("china.jpg", "flower.jpg"))


def _photograph(label: int, size: int, rng: np.random.Generator) -> _Pixels:
    """Cut a turned square out of a third of a photograph, in another scale, light and colour."""
    # Again where there is nothing to see, as in the dark behind the flower.
    while (pixels := _crop(label, size, rng)).std() < 15:
        pass
    pixels = 255 * (pixels / 255) ** rng.uniform(0.6, 1.6)
    grey = pixels.mean(axis=2, keepdims=True)
    tinted: _Pixels = (grey + rng.uniform(0.0, 1.0) * (pixels - grey)) * rng.uniform(0.7, 1.3, 3)
    return tinted


def _crop(label: int, size: int, rng: np.random.Generator) -> _Pixels:
    photograph = _photographs()[label // _NUM_COLUMNS]
    width, height = photograph.size
    side = rng.uniform(0.15, 0.4) * height
    half = side / math.sqrt(2)
    column = width / _NUM_COLUMNS
    x = np.clip((label % _NUM_COLUMNS + rng.random()) * column, half, width - half)
    y = rng.uniform(half, height - half)
    angle = rng.uniform(-0.5, 0.5)
    right = np.array([math.cos(angle), math.sin(angle)]) * side / size * rng.choice([-1, 1])
    down = np.array([-math.sin(angle), math.cos(angle)]) * side / size
    start = np.array([x, y]) - (right + down) * size / 2
    matrix = (right[0], down[0], start[0], right[1], down[1], start[1])
    crop = photograph.transform((size, size), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    return np.asarray(crop, np.float64)


TASKS: dict[str, _Task] = {
    "glyphs": _Task(classes=tuple(_LETTERS), draw=_glyph),
    "photographs": _Task(
        classes=tuple(f"{name}-{place}" for name in ("china", "flower") for place in ("left", "middle", "right")),
        draw=_photograph,
    ),
    "shapes": _Task(classes=tuple(_SHAPES), draw=_shape),
    "textures": _Task(classes=("bricks", "checks", "dots", "stripes", "waves", "weave"), draw=_texture),
}
"""The synthetic tasks by name."""
