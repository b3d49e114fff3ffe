"""Decodes and resizes images for serving, as TensorFlow operations: the counterpart of trainer.data.images.

Legend: B batch, H and W of the original, S image size.
"""

import tensorflow as tf

_EXIF_BYTES = 65_536
"""Maximum length of the first segment of a JPEG, which contains the EXIF block."""

_PNG_BITS = 24
"""Position of the number of bits per sample in a PNG file."""


def decode_and_resize(image_bytes: tf.Tensor, image_size: int) -> tf.Tensor:
    """Decode JPEG, PNG, GIF (first frame), BMP or WebP files and resize them as prepare does.

    Args:
        image_bytes: Encoded images, string [B].
        image_size: S.

    Returns:
        Pixels uint8 [B, S, S, 3].
    """
    return tf.map_fn(lambda data: _resize(_decode(data), image_size), image_bytes, fn_output_signature=tf.uint8)


def _decode(data: tf.Tensor) -> tf.Tensor:
    """Return the pixels uint8 [H, W, 3] of one file."""
    is_jpeg = tf.strings.substr(data, 0, 2) == b"\xff\xd8"
    is_png = tf.strings.substr(data, 0, 4) == b"\x89PNG"
    pixels = tf.case([(is_jpeg, lambda: _jpeg(data)), (is_png, lambda: _png(data))], default=lambda: _other(data))
    return tf.ensure_shape(pixels, [None, None, 3])


def _jpeg(data: tf.Tensor) -> tf.Tensor:
    # Pillow uses the accurate transform, too, so the pixels are equal. The default differs by several levels.
    pixels = tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")
    return _reorient(pixels, exif_orientation(data))


def _png(data: tf.Tensor) -> tf.Tensor:
    pixels = tf.cast(tf.io.decode_png(data, channels=4), tf.float32)
    opacity = pixels[:, :, 3:]
    # A file with 1, 2 or 4 bits per sample and without transparency gets the largest sample as opacity, not 255.
    bits = tf.cast(tf.io.decode_raw(tf.strings.substr(data, _PNG_BITS, 1), tf.uint8)[0], tf.float32)
    largest = tf.pow(2.0, bits) - 1.0
    alpha = tf.cond(
        tf.reduce_all(opacity == largest) & (bits < 8.0), lambda: tf.ones_like(opacity), lambda: opacity / 255.0
    )
    return tf.cast(tf.round(pixels[:, :, :3] * alpha + 255.0 * (1.0 - alpha)), tf.uint8)


def _other(data: tf.Tensor) -> tf.Tensor:
    pixels = tf.io.decode_image(data, channels=3, expand_animations=False)
    # WebP images have a dimension for their frames.
    pixels = tf.cond(tf.rank(pixels) == 4, lambda: pixels[0], lambda: pixels)
    return tf.reshape(pixels, tf.concat([tf.shape(pixels)[:2], [3]], 0))


def _resize(pixels: tf.Tensor, image_size: int) -> tf.Tensor:
    resized = tf.image.resize(pixels, [image_size, image_size], "bilinear", antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)


def exif_orientation(data: tf.Tensor) -> tf.Tensor:
    """Return the orientation 1 to 8 from a JPEG file's EXIF block, 1 if it has none: int32 scalar.

    Searches for the bytes of the entry (tag 0x0112, type 3, count 1, in either byte order) after the word Exif. The
    first entry is the photograph's; a thumbnail's follows later.
    """
    head = tf.strings.substr(data, 0, tf.minimum(tf.strings.length(data), _EXIF_BYTES))
    values = tf.cast(tf.io.decode_raw(head, tf.uint8), tf.int32)
    little = _value_after(values, (0x12, 0x01, 0x03, 0x00, 0x01, 0x00, 0x00, 0x00), 0)
    big = _value_after(values, (0x01, 0x12, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01), 1)
    found = tf.where(_find(values, (0x45, 0x78, 0x69, 0x66, 0x00, 0x00)) >= 0, tf.maximum(little, big), 1)
    return tf.where((found >= 1) & (found <= 8), found, 1)


def _find(values: tf.Tensor, pattern: tuple[int, ...]) -> tf.Tensor:
    """Return the index of the first occurrence of a pattern, -1 if there is none: int32 scalar."""
    length = tf.maximum(tf.size(values) - len(pattern) + 1, 0)
    hits = tf.ones([length], tf.bool)
    for offset, wanted in enumerate(pattern):
        hits &= values[offset : offset + length] == wanted
    return tf.cond(
        tf.reduce_any(hits),
        lambda: tf.argmax(tf.cast(hits, tf.uint8), output_type=tf.int32),
        lambda: tf.constant(-1, tf.int32),
    )


def _value_after(values: tf.Tensor, pattern: tuple[int, ...], distance: int) -> tf.Tensor:
    """Return the value `distance` after the first occurrence of a pattern, 0 if there is none."""
    start = _find(values, pattern)
    index = start + len(pattern) + distance
    return tf.cond((start >= 0) & (index < tf.size(values)), lambda: values[index], lambda: tf.constant(0))


def _reorient(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Undo an EXIF orientation (EXIF 2.3, tag 0x0112): 2 to 4 mirror or rotate, 5 to 8 also swap the axes."""
    result = tf.cond(orientation >= 5, lambda: tf.transpose(pixels, [1, 0, 2]), lambda: pixels)
    upside_down = (orientation == 3) | (orientation == 4) | (orientation == 7) | (orientation == 8)
    mirrored = (orientation == 2) | (orientation == 3) | (orientation == 6) | (orientation == 7)
    result = tf.cond(upside_down, lambda: result[::-1], lambda: result)
    return tf.cond(mirrored, lambda: result[:, ::-1], lambda: result)
