"""The operations that Keras' layers call, for one image at a time: some replaced by faster ones with equal bits.

TensorFlow computes a projection once per channel; XLA makes one loop of it. XLA may round a product and the sum that
follows only once (FMA), while TensorFlow's operations for x86-64 round both. So each product passes through an integer
operation that changes nothing, which no compiler can know. On other processors Keras' operations stay.
"""

import functools
import platform
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

_ROUNDS_TWICE = platform.machine() == "x86_64"
"""Whether TensorFlow's own operations round each product and each sum."""
_SMALLEST_COMPILED = 64
"""Height and width in pixels, below which a call of what XLA has compiled takes longer than it saves."""
_REFLECT, _CONSTANT = "reflect", "constant"
Zero = Callable[[], tf.Tensor]
"""Returns an int32 that is always 0, though no compiler can know it."""


class Operations:
    """Keras' operations, some of them replaced."""

    def __init__(self, wrapped: Any, **replaced: Any) -> None:
        """Replace the operations that are given."""
        self._wrapped = wrapped
        vars(self).update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)


def _is_compiled(image_size: int) -> bool:
    return _ROUNDS_TWICE and image_size >= _SMALLEST_COMPILED and _compiles()


@functools.cache
def _compiles() -> bool:
    """Return whether XLA compiles here for the host, in a pipeline of `tf.data`, whatever devices there are."""
    with tf.init_scope():
        try:
            tf.data.Dataset.from_tensors(0.0).map(_compiled(tf.negative)).get_single_element()
        except (tf.errors.OpError, ValueError):
            return False
    return True


def fast(backend: Any, zero: Zero, image_size: int) -> Operations:
    """Return the operations of Keras' backend of TensorFlow, those with faster equals replaced.

    `flip`, `gaussian_blur` and `perspective_transform` of one large image return a function, which the `where` that
    follows calls only if it chooses the result.
    """
    image, numpy = backend.image, backend.numpy
    if not _is_compiled(image_size):
        return Operations(backend, numpy=Operations(numpy, where=where))
    # These only move numbers, or choose among them.
    compiled = {name: _compiled(getattr(numpy, name)) for name in ("flip", "repeat", "stack", "min", "max")}
    later = {"flip": functools.partial(_later, compiled["flip"])}
    per_column = {
        name: functools.partial(_per_column, operation)
        for name, operation in (("mean", numpy.mean), ("min", compiled["min"]), ("max", compiled["max"]))
    }

    def perspective_transform(images: tf.Tensor, start: tf.Tensor, end: tf.Tensor, **options: Any) -> tf.Tensor:
        return _affine_transform(image, zero, images, image.compute_homography_matrix(start, end), **options)

    return Operations(
        backend,
        image=Operations(
            image,
            affine_transform=functools.partial(_affine_transform, image, zero),
            perspective_transform=functools.partial(_later, perspective_transform),
            rgb_to_hsv=functools.partial(_rgb_to_hsv, image, zero),
            rgb_to_grayscale=functools.partial(_rgb_to_grayscale, image, compiled["repeat"]),
            gaussian_blur=functools.partial(_later, image.gaussian_blur),
        ),
        numpy=Operations(numpy, where=where, **compiled | later | per_column),
    )


@functools.cache
def _compiled(operation: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Return an operation that XLA compiles; sums of products need `_times`."""
    compiled: Callable[..., tf.Tensor] = tf.function(operation, jit_compile=True, autograph=False)
    return compiled


def to_bytes(images: tf.Tensor) -> tf.Tensor:
    """Return images float32 [B, S, S, 3] as uint8: rounded, and from 0 to 255."""
    return (_compiled(_to_bytes) if _is_compiled(images.shape[1]) else _to_bytes)(images)


def _to_bytes(images: tf.Tensor) -> tf.Tensor:
    # Two passes over the pixels instead of the three of `saturate_cast`.
    bounded = tf.raw_ops.ClipByValue(t=tf.round(images), clip_value_min=0.0, clip_value_max=255.0)
    return tf.cast(bounded, tf.uint8)


def _later(operation: Callable[..., tf.Tensor], images: tf.Tensor, *arguments: Any, **options: Any) -> Any:
    """Return the call of an operation on one image, or its result for several."""
    call = functools.partial(operation, images, *arguments, **options)
    return call if images.shape[0] == 1 else call()


def _per_column(operation: Callable[..., tf.Tensor], images: tf.Tensor, **options: Any) -> tf.Tensor:
    """Return what an operation makes of all pixels once for each column.

    TensorFlow takes ten times as long to combine an image with one number per channel.
    """
    found = operation(images, **options)
    is_one_pixel = found.shape.rank == images.shape.rank == 4 and found.shape[1:3] == (1, 1)
    return tf.repeat(found, images.shape[2], axis=2) if is_one_pixel else found


def _rgb_to_grayscale(keras_image: Any, repeat: Callable[..., tf.Tensor], images: tf.Tensor, **options: Any) -> Any:
    """Return the grey images with as many channels, for the same reason."""
    return repeat(keras_image.rgb_to_grayscale(images, **options), 3, axis=-1)


def where(condition: tf.Tensor, first: Any, second: Any) -> tf.Tensor:
    """Return Keras' `where`.

    TensorFlow's `where` takes ten times as long, because it looks for a broadcast at each number.

    Args:
        condition: Any shape.
        first: A tensor, a number, or a function that returns a tensor of the shape of `second`.
        second: A tensor or a number.
    """
    if callable(first):
        return tf.cond(tf.reshape(condition, []), first, lambda: second)
    values = [tf.convert_to_tensor(each) for each in (first, second)]
    shape = values[0].shape
    if values[0].dtype != values[1].dtype or shape != values[1].shape or not shape.is_fully_defined():
        return keras.ops.where(condition, first, second)
    is_single = condition.shape.num_elements() == 1
    condition = tf.reshape(condition, []) if is_single else tf.broadcast_to(condition, shape)
    return tf.raw_ops.Select(condition=condition, x=values[0], y=values[1])


def _affine_transform(
    keras_image: Any,
    zero: Zero,
    images: tf.Tensor,
    transform: tf.Tensor,
    interpolation: str = "bilinear",
    fill_mode: str = _CONSTANT,
    fill_value: float = 0,
    data_format: Any = None,
) -> tf.Tensor:
    shape, options = images.shape, (interpolation, images.dtype, data_format)
    is_known = options == ("bilinear", tf.float32, "channels_last") and fill_mode in (_REFLECT, _CONSTANT)
    if is_known and shape.is_fully_defined() and shape[0] == 1 and min(shape[1:3]) > 1:
        transform = tf.cast(tf.reshape(transform, [8]), tf.float32)
        return _project(images[0], transform, zero(), fill_value=float(fill_value), fill_mode=fill_mode)[None]
    return keras_image.affine_transform(images, transform, interpolation, fill_mode, fill_value, data_format)


def _times(first: Any, second: Any, zero: tf.Tensor) -> tf.Tensor:
    """Return a product that no compiler fuses with a sum."""
    return tf.bitcast(tf.bitwise.bitwise_xor(tf.bitcast(first * second, tf.int32), zero), tf.float32)


@_compiled
def _project(
    image: tf.Tensor, transform: tf.Tensor, zero: tf.Tensor, *, fill_value: float, fill_mode: str
) -> tf.Tensor:
    """Return the pixels of an image float32 [H, W, C] where a transform [8] projects each place of the result.

    All sums, products and quotients are in the order of TensorFlow's ImageProjectiveTransformV3.
    """
    height, width, channels = image.shape
    times = functools.partial(_times, zero=zero)
    column, row = tf.range(width, dtype=tf.float32)[None], tf.range(height, dtype=tf.float32)[:, None]

    factors = tf.unstack(transform)

    def project(first: int) -> tf.Tensor:
        return times(factors[first], column) + times(factors[first + 1], row)

    depth = project(6) + 1.0
    x, y = (project(0) + factors[2]) / depth, (project(3) + factors[5]) / depth
    if fill_mode == _REFLECT:
        x, y = (_reflect(place, float(size), zero) for place, size in ((x, width), (y, height)))
    # Outside, where the projection is at infinity; a choice of the result instead takes longer than all of the rest.
    x, y = (tf.where(depth == 0.0, -2.0, place) for place in (x, y))
    left, top = tf.floor(x), tf.floor(y)
    # One more pixel is outside on each side, another one is next to it, and below the last row another row.
    padded = tf.pad(image, [[2, 3], [2, 2], [0, 0]], constant_values=fill_value)
    stride = width + 4
    clipped_left, clipped_top = tf.clip_by_value(left, -2.0, width), tf.clip_by_value(top, -2.0, height)
    index = (tf.cast(clipped_top, tf.int32) + 2) * stride + tf.cast(clipped_left, tf.int32) + 2
    pixels = tf.reshape(padded, [-1, channels])

    def between(first: Any, second: Any, place: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
        weights = before + 1.0 - place, place - before
        return times(weights[0][..., None], first) + times(weights[1][..., None], second)

    upper, lower = (
        between(tf.gather(pixels, index + below), tf.gather(pixels, index + below + 1), x, left)
        for below in (0, stride)
    )
    return between(upper, lower, y, top)


def _reflect(place: tf.Tensor, size: float, zero: tf.Tensor) -> tf.Tensor:
    """Return the place inside an image where its mirrored copies have what is at a place."""
    period = 2 * size
    negative = _times(period, tf.floor(-place / period), zero) + place
    negative = tf.where(negative < -size, negative + period, -negative - 1.0)
    large = place - _times(period, tf.floor(place / period), zero)
    large = tf.where(large >= size, period - large - 1.0, large)
    inside = tf.where(place < 0.0, negative, tf.where(place > size - 1, large, place))
    return tf.clip_by_value(inside, 0.0, size - 1)


def _rgb_to_hsv(keras_image: Any, zero: Zero, images: tf.Tensor, data_format: Any = None) -> tf.Tensor:
    if images.dtype != tf.float32 or data_format != "channels_last":
        return keras_image.rgb_to_hsv(images, data_format=data_format)
    return _hue_saturation_value(images, zero())


@_compiled
def _hue_saturation_value(images: tf.Tensor, zero: tf.Tensor) -> tf.Tensor:
    """Return TensorFlow's RGBToHSV, with its sums, products and quotients in their order."""
    red, green, blue = (images[..., channel] for channel in range(3))
    value = tf.maximum(tf.maximum(red, green), blue)
    spread = value - tf.minimum(tf.minimum(red, green), blue)
    sixth = 1.0 / spread * tf.constant(1 / 6)
    third = tf.constant(1.0) / 3
    from_green = _times(sixth, blue - red, zero) + third
    from_blue = _times(sixth, red - green, zero) + 2 * third
    hue = tf.where(red == value, sixth * (green - blue), tf.where(green == value, from_green, from_blue))
    hue = tf.where(spread > 0.0, hue, 0.0)
    saturation = tf.where(value > 0.0, spread / value, 0.0)
    return tf.stack([tf.where(hue < 0.0, hue + 1.0, hue), saturation, value], axis=-1)
