"""Read files as this pipeline's steps and usual programs do, and compare with what `trainer.serve` gives to a model."""

import io
import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, str(Path(__file__).parents[3]))
import numpy as np
import PIL
import tensorflow as tf
from _files import FILES
from PIL import Image

from trainer.data import examples, images
from trainer.results import serving


def by_training(data, size):
    """Return what `prepare` stores of a file, as training reads it with TensorFlow."""
    stored = images.stored_form(data, images.stretch(images.decode(data), size))
    return examples._decode(tf.constant(stored), size).numpy()


def by_signature(data, size):
    """Return the pixels that the exported SavedModel's signature gives to the model."""
    return serving.decode_and_resize(tf.constant([data]), size)[0].numpy()


def by_pillow(data, size):
    """Return what a program with Pillow alone does."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize((size, size), Image.Resampling.BILINEAR))


def by_tf_data(data, size):
    """Return what most pipelines of tf.data do."""
    pixels = tf.image.resize(tf.io.decode_image(data, 3, expand_animations=False), [size, size])
    return np.clip(np.rint(pixels.numpy()), 0, 255).astype(np.uint8)


READERS = {
    "training": by_training,
    "signature": by_signature,
    "Pillow": by_pillow,
    "tf.data": by_tf_data,
}


def compare(read, data, size):
    """Return 0, or by how many levels a pixel differs and how many on average, or that the file is refused."""
    expected = images.to_pixels(data, size)
    try:
        gaps = np.abs(np.asarray(read(data, size)).astype(int) - expected)
    except Exception:
        return "refused" if read is by_signature else "error"
    return f"up to {gaps.max()}, {gaps.mean():.1f}" if gaps.any() else 0


cases = {
    f"{name} | {reader} {size}": compare(read, data, size)
    for name, data in FILES.items()
    for reader, read in READERS.items()
    for size in ((32, 96) if read in (by_training, by_signature) else (32,))
}
versions = {"pillow": PIL.__version__, "tensorflow": tf.__version__}
continued = "file"
print(json.dumps({"library": "This pipeline", "versions": versions, "continued": continued, "cases": cases}))
