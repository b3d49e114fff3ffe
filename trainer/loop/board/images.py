"""Images for TensorBoard: a grid of training images as the network sees them, and one of predictions.

Legend: N images of a grid, S image size, K classes.
"""

import io
import math
from collections.abc import Sequence

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont
from tensorboard.compat.proto.summary_pb2 import Summary

from trainer.data.augmentation import AUGMENTATIONS
from trainer.data.examples import Examples
from trainer.data.images import Pixels
from trainer.data.sampler import Sampler

_NUM_IMAGES = 16
_SMALLEST_EDGE, _LARGEST_EDGE = 96, 224
"""Height and width of an image in the grid, in pixels."""
_LINE_HEIGHT, _GAP = 14, 4
_PLAIN, _WRONG = "black", "firebrick"


def training_images(examples: Examples, sampler: Sampler, augment: str) -> tuple[Pixels, npt.NDArray[np.int32]]:
    """Return the first images of step 0 after augmentation, uint8 [N, S, S, 3], and their labels, int32 [N].

    Nothing is drawn from a random state: the images follow from (seed, step), as in training.
    """
    with tf.device("CPU:0"):
        indices, random_numbers = sampler.indices(0)[:_NUM_IMAGES], sampler.random_numbers(0)[:_NUM_IMAGES]
        images, labels = examples.gather(indices, random_numbers)
        return AUGMENTATIONS[augment](images, random_numbers).numpy(), labels.numpy()


def predictions(
    model: keras.Model, examples: Examples
) -> tuple[Pixels, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return images at equal distances in a split, as above, their labels, and probabilities float32 [N, K]."""
    indices = np.linspace(0, examples.num_examples - 1, min(_NUM_IMAGES, examples.num_examples)).astype(np.int64)
    images, labels = examples.gather(tf.constant(indices))
    return images.numpy(), labels.numpy(), tf.cast(model(images, training=False), tf.float32).numpy()


def labelled_grid(images: Pixels, labels: npt.NDArray[np.int32], class_names: Sequence[str]) -> Summary:
    """Return a grid of images with the names of their classes."""
    return _summary(_grid(images, [(class_names[label], _PLAIN) for label in labels]))


def prediction_grid(
    images: Pixels,
    labels: npt.NDArray[np.int32],
    probabilities: npt.NDArray[np.float32],
    class_names: Sequence[str],
) -> Summary:
    """Return a grid of images with the predicted class, and the true one where it is another."""
    texts = []
    for label, row in zip(labels, probabilities, strict=True):
        found = int(row.argmax())
        text = f"{class_names[found]} {row[found]:.0%}"
        texts.append((text, _PLAIN) if found == label else (f"{text}, is {class_names[label]}", _WRONG))
    return _summary(_grid(images, texts))


def _grid(images: Pixels, texts: Sequence[tuple[str, str]]) -> Image.Image:
    """Return the images in rows, each with a text in a colour below it."""
    size = images.shape[1]
    # Small images are enlarged by a whole factor, so that their pixels can be seen.
    edge = size * max(1, math.ceil(_SMALLEST_EDGE / size)) if size < _LARGEST_EDGE else _LARGEST_EDGE
    columns = math.ceil(math.sqrt(len(images)))
    width, height = edge + _GAP, edge + _LINE_HEIGHT + _GAP
    grid = Image.new("RGB", (columns * width + _GAP, -(-len(images) // columns) * height + _GAP), "white")
    draw, font = ImageDraw.Draw(grid), _font()
    for number, (image, (text, colour)) in enumerate(zip(images, texts, strict=True)):
        left, top = _GAP + number % columns * width, _GAP + number // columns * height
        method = Image.Resampling.NEAREST if edge >= size else Image.Resampling.BILINEAR
        grid.paste(Image.fromarray(image).resize((edge, edge), method), (left, top))
        draw.text((left, top + edge), _fit_text(text, font, edge), fill=colour, font=font)
    return grid


def _font() -> ImageFont.FreeTypeFont:
    """Return matplotlib's font, because Pillow's own has only the letters of English."""
    import matplotlib

    return ImageFont.truetype(f"{matplotlib.get_data_path()}/fonts/ttf/DejaVuSans.ttf", size=10)


def _fit_text(text: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    """Return as much of a text as fits into a width in pixels."""
    shown = " ".join(text.split())
    if font.getlength(shown) <= width:
        return shown
    while shown and font.getlength(f"{shown}\u2026") > width:
        shown = shown[:-1]
    return f"{shown}\u2026"


def _summary(grid: Image.Image) -> Summary:
    buffer = io.BytesIO()
    grid.save(buffer, "PNG")
    image = Summary.Image(width=grid.width, height=grid.height, colorspace=3, encoded_image_string=buffer.getvalue())
    return Summary(value=[Summary.Value(tag="images", image=image)])
