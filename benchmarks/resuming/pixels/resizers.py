"""Resize the same pixels by several libraries, and compare each with each."""

import json
import os

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
import cv2
import keras
import numpy as np
import PIL
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_sample_image

PHOTO = load_sample_image("china.jpg")[:240, :320]


def rounded(values):
    """Return uint8 of floating point, as most programs do."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def by_tensorflow(size, antialias):
    """Return `tf.image.resize`, bilinear."""
    return rounded(tf.image.resize(PHOTO, [size, size], "bilinear", antialias=antialias).numpy())


def by_keras(size, antialias):
    """Return the layer Resizing, bilinear."""
    layer = keras.layers.Resizing(size, size, "bilinear", antialias=antialias, dtype="float32")
    return rounded(np.asarray(layer(PHOTO[None].astype("float32")))[0])


def by_opencv(size, interpolation):
    """Return `cv2.resize`."""
    return cv2.resize(PHOTO, (size, size), interpolation=interpolation)


RESIZERS = {
    "TensorFlow, bilinear": lambda size: by_tensorflow(size, False),
    "TensorFlow, bilinear, antialias": lambda size: by_tensorflow(size, True),
    "Keras Resizing, bilinear": lambda size: by_keras(size, False),
    "Keras Resizing, bilinear, antialias": lambda size: by_keras(size, True),
    "OpenCV, INTER_LINEAR": lambda size: by_opencv(size, cv2.INTER_LINEAR),
    "OpenCV, INTER_AREA": lambda size: by_opencv(size, cv2.INTER_AREA),
    "Pillow, BILINEAR, reducing_gap 2": lambda size: np.asarray(
        Image.fromarray(PHOTO).resize((size, size), Image.Resampling.BILINEAR, reducing_gap=2.0)
    ),
    "Pillow, BOX": lambda size: np.asarray(Image.fromarray(PHOTO).resize((size, size), Image.Resampling.BOX)),
}
BASES = {
    "Pillow, BILINEAR": lambda size: np.asarray(Image.fromarray(PHOTO).resize((size, size), Image.Resampling.BILINEAR)),
    "TensorFlow, bilinear": RESIZERS["TensorFlow, bilinear"],
}
cases = {}
for name, resize in RESIZERS.items():
    for base, other in BASES.items():
        for size in (64, 480):
            if name != base:
                gaps = np.abs(resize(size).astype(int) - other(size))
                cases[f"{name} | {base.partition(',')[0]} to {size}"] = (
                    f"up to {gaps.max()}, {gaps.mean():.1g}" if gaps.any() else 0
                )
versions = {"pillow": PIL.__version__, "tensorflow": tf.__version__, "keras": keras.__version__}
versions |= {"opencv-python-headless": cv2.__version__}
continued = "a photograph of 320x240"
print(json.dumps({"library": "Resizing", "versions": versions, "continued": continued, "cases": cases}))
