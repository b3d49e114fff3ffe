"""Random changes by Keras' layers, as a pure function of (seed, step, position in the global batch).

Keras' layers take random numbers from the state of a generator, some of them once per batch. Here the generator of each
layer follows from the key of an example, and a layer sees one example at a time: whatever it draws belongs to this
position, for any number of workers.

Layers that mix see two neighbours of the global batch and mix each with the other. Neighbours are random partners,
because the order of the examples is random. A replica has both in its part; only where its part begins or ends between
the two, it reads one more.

It runs on the host, so the pixels do not depend on the device, and images of 300x300 are changed while others train.

Legend: B examples of a batch, S image size, K classes.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from localvertex_base.userinput.errors import UserError
from trainer.data.augmentation import presets

_State = tuple[tf.Tensor, tf.Tensor]
"""Images float32 [n, S, S, 3] and labels float32 [n, K] of one example, or of two that are mixed."""
_Change = Callable[[_State], _State]
_FIXED = {"value_range": [0, 255], "data_format": "channels_last", "compute_dtype": "float32"}
"""Attributes of layers that other values would make unfit for images uint8 [B, S, S, 3]."""


class _Seeds(keras.random.SeedGenerator):  # type: ignore[misc]
    """Seeds that follow from the key of an example instead of from a state."""

    def __init__(self) -> None:
        self.start(None)

    def start(self, key: tf.Tensor) -> None:
        """Begin with the first seed of a key, int32 [2]."""
        self._key, self._number = key, 0

    def next(self, ordered: bool = True) -> tf.Tensor:
        """Return the next seed, int32 [2]."""
        self._number += 1
        return self._key + [0, self._number]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Augmentation:
    """What happens to the training images of a batch; without changes, nothing."""

    changes: tuple[_Change | None, ...] = (None, None)
    """Of each example alone, then of each two."""
    seeds: _Seeds = dataclasses.field(default_factory=_Seeds)
    num_classes: int = 0
    """K."""

    @property
    def group_size(self) -> int:
        """Number of neighbours of the global batch that have to be given together: 2 if they are mixed, else 1."""
        return 2 if self.changes[1] else 1

    def __call__(self, images: tf.Tensor, labels: tf.Tensor, keys: tf.Tensor) -> _State:
        """Return the changed images uint8 [B, S, S, 3] and the labels: as given, or float32 [B, K] if they are mixed.

        Args:
            images: Images uint8 [B, S, S, 3]; B is a multiple of `group_size`.
            labels: Labels int32 [B].
            keys: Keys of the examples from `trainer.data.sampler.Sampler.keys`, int32 [B, 2, 2].
        """
        state = images, tf.one_hot(labels, self.num_classes)
        for size, change in enumerate(self.changes, 1):
            if change:
                groups = [tf.reshape(part, (-1, size, *part.shape[1:])) for part in state]
                changed = tf.map_fn(
                    functools.partial(self._group, change),
                    (*groups, keys[::size, size - 1]),
                    fn_output_signature=(tf.uint8, tf.float32),
                )
                state = tuple(tf.reshape(part, (-1, *part.shape[2:])) for part in changed)
        return (state[0], state[1] if self.changes[1] else labels)

    def _group(self, change: _Change, group: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> _State:
        images, labels, key = group
        self.seeds.start(key)
        changed, labels = change((tf.cast(images, tf.float32), labels))
        rounded = tf.round(tf.ensure_shape(changed, images.shape))
        return tf.cast(tf.clip_by_value(rounded, 0.0, 255.0), tf.uint8), labels


def build(spec: str | list[Any], *, image_size: int, num_classes: int) -> Augmentation:
    """Make the augmentation that a preset's name or a list of layers describes (see `presets`).

    Args:
        spec: Name, or list of {class_name, config} and choices; an empty list changes nothing.
        image_size: S.
        num_classes: K.

    Raises:
        UserError: A layer is not allowed, Keras refuses its configuration, or images do not keep their size.
    """
    presets.check(spec)
    entries = presets.PRESETS[spec](image_size) if isinstance(spec, str) else spec
    first = next((number for number, entry in enumerate(entries) if presets.mixes(entry)), len(entries))
    seeds = _Seeds()
    changes = tuple(_change(part, seeds) if part else None for part in (entries[:first], entries[first:]))
    made = Augmentation(changes=changes, seeds=seeds, num_classes=num_classes)
    try:
        _, labels = tf.function(made, autograph=False)(
            tf.zeros([2, image_size, image_size, 3], tf.uint8), tf.zeros([2], tf.int32), tf.zeros([2, 2, 2], tf.int32)
        )
        tf.debugging.assert_all_finite(tf.cast(labels, tf.float32), "labels are not finite")
    except (TypeError, ValueError, tf.errors.OpError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise UserError(f"augmentation does not work on {image_size}x{image_size} pixels: {reason}") from error
    return made


def _change(entry: Any, seeds: _Seeds) -> _Change:
    if isinstance(entry, dict) and "one_of" not in entry:
        return _layer(entry["class_name"], entry["config"], seeds)
    parts = [_change(part, seeds) for part in (entry if isinstance(entry, list) else entry["one_of"])]

    def in_order(state: _State) -> _State:
        return functools.reduce(lambda before, part: part(before), parts, state)

    def one_of(state: _State) -> _State:
        number = tf.random.stateless_uniform([], seed=seeds.next(), maxval=len(parts), dtype=tf.int32)
        # Only the chosen branch is computed.
        return tuple(tf.switch_case(number, [functools.partial(part, state) for part in parts]))

    return in_order if isinstance(entry, list) else one_of


def _layer(class_name: str, config: dict[str, Any], seeds: _Seeds) -> _Change:
    try:
        layer = getattr(keras.layers, class_name)(**config)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise UserError(f"augmentation: {class_name} with {config}: {str(error).splitlines()[0]}") from error
    for name, expected in _FIXED.items():
        if (found := getattr(layer, name, expected)) != expected and list(found) != expected:
            raise UserError(f"augmentation: {class_name} has {name}={found}; expected {expected}")
    layer.generator = seeds

    def change(state: _State) -> _State:
        images, labels = state
        if class_name not in presets.MIXING:
            return layer(images, training=True), labels
        drawn = layer.get_random_transformation(images, training=True, seed=seeds) | {"permutation_order": [1, 0]}
        return layer.transform_images(images, drawn), layer.transform_labels(labels, drawn)

    return change
