"""One record of a prepared dataset: its fields, and its bytes as TensorFlow Datasets lays them out."""

import base64
import dataclasses
import io
from typing import Any

import numpy as np
from PIL import Image

from trainer.data.images import Pixels


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figures:
    """Figures of an image besides its pixels; all are exact integers, so the order of sums has no effect."""

    content_hash: str
    """SHA-256 of the encoded original, in hexadecimal."""
    perceptual_hash: str
    """64 low frequencies of the brightness, one byte each, in hexadecimal; similar for near-duplicates."""
    width: int
    """Width of the original in pixels."""
    height: int
    """Height of the original in pixels."""
    num_bytes: int
    """Size of the encoded original."""
    pixel_sums: tuple[int, ...]
    """Sums of red, green and blue over the prepared pixels."""
    pixel_sums_of_squares: tuple[int, ...]
    """Sums of the squares of red, green and blue over the prepared pixels."""


_FIGURES = dataclasses.fields(Figures)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """One prepared example."""

    image_bytes: bytes
    """PNG or JPEG of image_size x image_size RGB pixels."""
    label: int
    """Index into class_names."""
    file_name: str
    """Name of the image in the source."""
    figures: Figures

    def pixels(self) -> Pixels:
        """Return uint8 [image_size, image_size, 3]."""
        with Image.open(io.BytesIO(self.image_bytes)) as image:
            return np.asarray(image.convert("RGB"))


def data_uri(image_bytes: bytes) -> str:
    """Return an image, PNG or JPEG, as an address that contains it."""
    media = "image/png" if image_bytes.startswith(b"\x89PNG") else "image/jpeg"
    return f"data:{media};base64,{base64.b64encode(image_bytes).decode()}"


def serialize(record: Record) -> bytes:
    """Return a record as a `tf.train.Example`, in the layout of TensorFlow Datasets for `prepare`'s features."""
    from tensorflow_datasets.proto import tf_example_pb2

    example = tf_example_pb2.Example()
    content = {
        "file_name": record.file_name,
        "image": record.image_bytes,
        "label": record.label,
        **vars(record.figures),
    }
    for name, value in content.items():
        feature = example.features.feature[name]
        if isinstance(value, str | bytes):
            feature.bytes_list.value.append(value.encode() if isinstance(value, str) else value)
        else:
            feature.int64_list.value.extend(value if isinstance(value, tuple) else (value,))
    return bytes(example.SerializeToString(deterministic=True))


def image_of(data: bytes) -> bytes:
    """Return only the image of a record, faster than `parse`."""
    return bytes(_features(data)["image"].bytes_list.value[0])


def parse(data: bytes) -> Record:
    """Return the record that `serialize` wrote."""
    feature = _features(data)

    def value(name: str, kind: Any = str) -> Any:
        if kind is str:
            return feature[name].bytes_list.value[0].decode()
        numbers = tuple(feature[name].int64_list.value)
        return numbers[0] if kind is int else numbers

    return Record(
        image_bytes=feature["image"].bytes_list.value[0],
        label=value("label", int),
        file_name=value("file_name"),
        figures=Figures(**{field.name: value(field.name, field.type) for field in _FIGURES}),
    )


def _features(data: bytes) -> Any:
    from tensorflow_datasets.proto import tf_example_pb2

    return tf_example_pb2.Example.FromString(data).features.feature


def features(class_names: list[str], image_size: int, encoding_format: str) -> Any:
    """Return the features of a record for TensorFlow Datasets.

    Raises:
        ValueError: They cannot hold a class name.
    """
    import tensorflow_datasets as tfds

    number, numbers = tfds.features.Scalar(dtype=np.int64), tfds.features.Tensor(shape=(3,), dtype=np.int64)
    return tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(image_size, image_size, 3), encoding_format=encoding_format),
            "label": tfds.features.ClassLabel(names=class_names),
            "file_name": tfds.features.Text(),
            "content_hash": tfds.features.Text(),
            "perceptual_hash": tfds.features.Text(),
            **dict.fromkeys(("width", "height", "num_bytes"), number),
            **dict.fromkeys(("pixel_sums", "pixel_sums_of_squares"), numbers),
        }
    )
