"""A dataset of TensorFlow Datasets, by name, such as cassava or mnist."""

import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.data.sources.remarks import Remarks
from trainer.data.sources.source import SourceImage
from trainer.data.splits import SPLITS


class TfdsSource:
    """A classification dataset that TensorFlow Datasets downloads and prepares on first use.

    The environment variable TFDS_DATA_DIR names the folder of prepared data (default ~/tensorflow_datasets).
    """

    unreadable: tuple[tuple[str, str], ...] = ()

    def __init__(self, name: str) -> None:
        """Find the dataset, and prepare it if necessary.

        Args:
            name: As TensorFlow Datasets writes it: `cassava`, `cifar10:3.0.2`, `dataset/config`.

        Raises:
            UserError: The name is unknown, the examples do not have one image and one label each, or the download
                fails.
        """
        self.remarks = Remarks()
        self._builder = _prepare_builder(name)
        self._image_key, self._label_key = _keys(name, self._builder.info)
        self.class_names = list(self._builder.info.features[self._label_key].names)
        self._splits = [split for split in SPLITS if split in self._builder.info.splits]
        if "train" not in self._splits:
            found = ", ".join(sorted(self._builder.info.splits))
            raise UserError(f"tfds:{name} has no split train (it has {found}); give a dataset that has one")
        self.num_images = sum(int(self._builder.info.splits[split].num_examples) for split in self._splits)
        if len(self.class_names) < 2:
            raise UserError(f"tfds:{name} has only one class, {self.class_names[0]!r}; expected two or more")

    def images(self) -> Iterator[SourceImage]:
        """Yield all images, split by split, in the stored order."""
        # The splits are kept only if one of them is test; otherwise all images are divided by content.
        fixed = "test" in self._splits
        for split in self._splits:
            for index, example in enumerate(self._examples(split)):
                yield SourceImage(
                    name=f"{split}/{index:07d}",
                    label=int(example[self._label_key]),
                    split=split if fixed else "",
                    read=functools.partial(_encode, example[self._image_key]),
                )

    def _examples(self, split: str) -> Iterator[Any]:
        import tensorflow_datasets as tfds
        from tensorflow_datasets.core import file_adapters

        decoders = {self._image_key: tfds.decode.SkipDecoding()}
        # Each of the two readers refuses the file formats of the other.
        if self._builder.info.file_format in file_adapters.FileFormat.with_random_access():
            source = self._builder.as_data_source(split=split, decoders=decoders)
            return (source[index] for index in range(len(source)))
        return iter(tfds.as_numpy(self._builder.as_dataset(split=split, shuffle_files=False, decoders=decoders)))


def _encode(image: Any) -> bytes:
    """Return the stored bytes; a feature that is not stored encoded is an array."""
    if isinstance(image, np.ndarray) and image.ndim >= 2:
        from PIL import Image

        from trainer.data import images

        return images.encode_image(Image.fromarray(np.squeeze(image)).convert("RGB"))
    return bytes(image)


def _prepare_builder(name: str) -> Any:
    import tensorflow_datasets as tfds

    try:
        builder = tfds.builder(name, try_gcs=False)
    except Exception as error:
        raise UserError(f"tfds:{name} is not a dataset of TensorFlow Datasets: {on_one_line(error, 200)}") from error
    try:
        builder.download_and_prepare()
    except Exception as error:
        raise UserError(
            f"tfds:{name} is not prepared under {os.path.dirname(str(builder.data_dir))} and cannot be downloaded"
            f" ({on_one_line(error, 200)}); prepare it on a machine with network access (`tfds build {name}`) and set"
            " TFDS_DATA_DIR"
        ) from error
    return builder


def _keys(name: str, info: Any) -> tuple[str, str]:
    """Return the names of the image and the label in each example."""
    import tensorflow_datasets as tfds

    images, labels = (
        [key for key, feature in info.features.items() if isinstance(feature, kind)]
        for kind in (tfds.features.Image, tfds.features.ClassLabel)
    )
    if info.supervised_keys and info.supervised_keys[0] in images and info.supervised_keys[1] in labels:
        return str(info.supervised_keys[0]), str(info.supervised_keys[1])
    if len(images) != 1 or len(labels) != 1:
        raise UserError(
            f"tfds:{name} has {len(images)} image and {len(labels)} class features; expected one of each"
            f" (features: {', '.join(info.features)})"
        )
    return images[0], labels[0]
