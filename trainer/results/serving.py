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
    little = _byte_after(head, b"\x12\x01\x03\x00\x01\x00\x00\x00", 0)
    big = _byte_after(head, b"\x01\x12\x00\x03\x00\x00\x00\x01", 1)
    has_exif = tf.size(tf.strings.split(head, b"Exif\x00\x00")) > 1
    found = tf.where(has_exif, tf.maximum(little, big), 1)
    return tf.where((found >= 1) & (found <= 8), found, 1)


def _byte_after(data: tf.Tensor, pattern: bytes, distance: int) -> tf.Tensor:
    """Return the byte `distance` after the first occurrence of a pattern, 0 if there is none: int32 scalar."""
    following = tf.concat([tf.strings.split(data, pattern, maxsplit=1), [""]], 0)[1]
    return tf.cast(tf.io.decode_raw(following + bytes(1 + distance), tf.uint8)[distance], tf.int32)


def _reorient(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Undo an EXIF orientation (EXIF 2.3, tag 0x0112): 2 to 4 mirror or rotate, 5 to 8 also swap the axes."""
    result = tf.cond(orientation >= 5, lambda: tf.transpose(pixels, [1, 0, 2]), lambda: pixels)
    result = tf.cond(tf.reduce_any(orientation == [3, 4, 7, 8]), lambda: result[::-1], lambda: result)
    return tf.cond(tf.reduce_any(orientation == [2, 3, 6, 7]), lambda: result[:, ::-1], lambda: result)
