"""Random changes by Keras' layers, as a pure function of (seed, step, position in the global batch).

Keras' layers take random numbers from the state of a generator, some of them once per batch. Here the generator of each
layer follows from the random numbers of an example, and a layer sees one example at a time: whatever it draws belongs
to this position, for any number of workers.

Layers that mix see two neighbours of the global batch, each the other's partner. Neighbours are random, because the
order of the examples is. A replica has both in its part; where its part begins or ends between them, it reads one more.

All of it runs on the host, ahead of the training, so that the pixels do not depend on the device.

Legend: B examples of a batch, S image size, K classes, R = trainer.data.sampler.NUM_RANDOM_NUMBERS.
"""

import functools
import itertools
from typing import Any

import keras
import tensorflow as tf

from localvertex._base import kinds
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.data.augmentation import operations
from trainer.data.augmentation.presets import LAYERS, MIXING

_OURS = {"seed", "value_range", "data_format", "dtype"}
"""Keys of a layer's config that have only one right value."""
_KINDS = {
    **dict.fromkeys(("height", "width", "alpha"), kinds.Number(lowest=0.01, highest=1)),
    "mode": ("horizontal_and_vertical", "horizontal", "vertical"),
}
"""Keys of a layer's config -> their kind, where Keras itself takes values that change nothing or give no numbers."""


class Augmentation(keras.random.SeedGenerator):  # type: ignore[misc]
    """Augments the training images of a batch; also the seed generator of its layers."""

    def __init__(self, spec: Any = (), *, image_size: int = 0, num_classes: int = 0) -> None:
        """Make the layers; without any, images and labels stay as they are.

        Args:
            spec: A list as in `presets`.
            image_size: S.
            num_classes: K.

        Raises:
            UserError: A layer is not allowed, or Keras refuses its configuration.
        """
        # Without the state of Keras' generator.
        self._stages: dict[int, list[Any]] = {}
        self._num_classes = num_classes
        for entry in spec:
            choice = entry if isinstance(entry, list) else [entry]
            if not choice:
                raise UserError("augmentation: a list of layers to choose from is empty; give one, or leave it out")
            mixes = any(layer.get("class_name") in MIXING for layer in choice)
            layers = [self._layer(image_size, **{"class_name": "", "config": {}, **layer}) for layer in choice]
            self._stages.setdefault(2 if mixes else 1, []).append(layers)
        self.group_size = max(self._stages, default=1)

    def check(self, image_size: int) -> None:
        """Apply each layer once, because Keras checks many values only then.

        Args:
            image_size: S.

        Raises:
            UserError: A layer fails.
        """
        for size, choices in self._stages.items():
            images, labels = tf.fill((size, image_size, image_size, 3), 128.0), tf.zeros((size, self._num_classes))
            self._key, self._number = tf.constant([1, 2]), 0
            for change in itertools.chain.from_iterable(choices):
                try:
                    images.shape.assert_is_compatible_with(change(images, labels)[0].shape)
                except Exception as error:
                    raise UserError(f"augmentation: a layer fails: {on_one_line(error)}") from error

    def next(self, ordered: bool = True) -> tf.Tensor:
        """Return the next seed, int32 [2]: its number is counted while the graph is made, its key is the example's."""
        self._number += 1
        return tf.add(self._key, [0, self._number])

    def _zero(self) -> tf.Tensor:
        """Return 0: the key has the bits of a float32 from 0 to 1, of which the two highest are never set."""
        return tf.bitwise.right_shift(self._key[0], 30)

    def __call__(self, images: tf.Tensor, labels: tf.Tensor, random_numbers: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the changed images uint8 [B, S, S, 3] and the labels: as given, or float32 [B, K] if they are mixed.

        Args:
            images: Images uint8 [B, S, S, 3]; B is a multiple of `group_size`.
            labels: Labels int32 [B].
            random_numbers: Values float32 [B, R]; the first two of each row become the key of its example.
        """
        state = [images, tf.one_hot(labels, self._num_classes), tf.bitcast(random_numbers[:, :2], tf.int32)]
        self._number = 0
        for size, choices in sorted(self._stages.items()):
            changed = tf.map_fn(
                functools.partial(self._change, choices),
                [tf.reshape(part, (-1, size, *part.shape[1:])) for part in state],
            )
            state = [tf.reshape(part, (-1, *part.shape[2:])) for part in changed]
        return state[0], labels if self.group_size == 1 else state[1]

    def _change(self, choices: list[Any], group: list[tf.Tensor]) -> list[tf.Tensor]:
        images, labels, keys = group
        self._key = keys[0]
        images = tf.cast(images, tf.float32)
        for layers in choices:
            chosen = tf.random.stateless_uniform([], self.next(), maxval=len(layers), dtype=tf.int32)
            # Only the chosen branch is computed.
            images, labels = tf.switch_case(chosen, [functools.partial(layer, images, labels) for layer in layers])
        return [operations.to_bytes(images), labels, keys]

    def _layer(self, image_size: int, class_name: str, config: dict[str, Any]) -> Any:
        for name in _KINDS.keys() & config.keys():
            kinds.check(f"augmentation: {class_name}.{name}", config[name], _KINDS[name])
        sizes = {name: round(config[name] * image_size) for name in ("height", "width") if name in config}
        try:
            if class_name not in LAYERS or _OURS & config.keys():
                raise ValueError(f"expected one of {', '.join(LAYERS)} without {', '.join(_OURS)}")
            layer = getattr(keras.layers, class_name)(**config | sizes)
        except Exception as error:
            raise UserError(f"augmentation: {class_name} with {config}: {error}") from error
        vars(layer)["generator"] = self
        if hasattr(layer, "backend"):
            vars(layer)["backend"] = operations.fast(layer.backend, self._zero, image_size)

        def change(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            if class_name not in MIXING:
                return tf.image.resize(layer(images, training=True), images.shape[1:3]), labels
            drawn = layer.get_random_transformation(images, seed=self) | {"permutation_order": [1, 0]}
            return layer.transform_images(images, drawn), layer.transform_labels(labels, drawn)

        return change
