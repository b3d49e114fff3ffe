"""Decode the same files by several libraries to RGB, and compare each with Pillow's `convert("RGB")`."""

import io
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import cv2
import imageio
import imageio.v3
import numpy as np
import PIL
import tensorflow as tf
from _files import FILES
from PIL import Image


def by_opencv(data):
    """Return RGB; OpenCV's order is BGR."""
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


READERS = {
    "`tf.io.decode_image`": lambda data: tf.io.decode_image(data, channels=3, expand_animations=False).numpy(),
    "`tf.io.decode_jpeg`": lambda data: tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE").numpy(),
    "OpenCV": by_opencv,
    "imageio": lambda data: imageio.v3.imread(data, index=0),
}


def compare(read, data):
    """Return 0 if the pixels are those of Pillow, by how many levels one differs, or what is wrong."""
    expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    try:
        found = np.asarray(read(data))
    except Exception:
        return "error"
    if found.shape != expected.shape or found.dtype != np.uint8:
        return f"{found.dtype} {'x'.join(map(str, found.shape))}"
    gap = int(np.abs(found.astype(int) - expected).max())
    return f"up to {gap}" if gap else 0


cases = {
    f"{name} | {reader}": compare(read, data)
    for name, data in FILES.items()
    for reader, read in READERS.items()
    if name.startswith("JPEG") or "jpeg" not in reader
}
versions = {"pillow": PIL.__version__, "tensorflow": tf.__version__}
versions |= {"opencv-python-headless": cv2.__version__, "imageio": imageio.__version__}
continued = "file"
print(json.dumps({"library": "Decoders", "versions": versions, "continued": continued, "cases": cases}))
