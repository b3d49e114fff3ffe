"""Decodes and resizes images for serving, as TensorFlow operations: the counterpart of trainer.data.images.

A file that TensorFlow would decode to other pixels than `prepare`, without an error, is refused.

Legend: B batch, H and W of the original, S image size.
"""

import tensorflow as tf

from trainer.data import images

_PNG_BITS = 24
"""Position of the number of bits per sample in a PNG file."""
_BMP_HEADER, _BMP_BITS, _BMP_COMPRESSION = 14, 28, 30
"""Positions of the length of the second header, of the bits per pixel, and of the compression in a BMP file."""
_GREY_PALETTE = b"".join(bytes((level, level, level, 0)) for level in range(256))
_ORIENTATION_TAG, _SHORT = 0x0112, 3
_METADATA = r"\C*(?:[Ee][Xx][Ii][Ff]|tiff:Orientation|XML:com\.adobe\.xmp)\C*"
"""Matches all files that may have an orientation, in one pass."""
_TEXTS = (b"Raw profile type exif\0", b"XML:com.adobe.xmp\0\1")
"""Begin texts of a PNG that are compressed, or in hexadecimal."""


def decode_and_resize(image_bytes: tf.Tensor, image_size: int) -> tf.Tensor:
    """Decode JPEG, PNG, GIF (first frame), BMP or WebP files and resize them as prepare does.

    Args:
        image_bytes: Encoded images, string [B]; a file that is refused is an `InvalidArgumentError`.
        image_size: S.

    Returns:
        Pixels uint8 [B, S, S, 3].
    """
    return tf.map_fn(lambda data: _prepared(data, image_size), image_bytes, fn_output_signature=tf.uint8)


def _prepared(data: tf.Tensor, image_size: int) -> tf.Tensor:
    start, tables = images.stored_header(image_size)
    if not tables:
        return _resize(_decode(data), image_size)
    length = tf.where(_substr(data, len(start), 2) == images.COMMENT, 2 + _integer(data, len(start) + 2, 2), 0)
    is_stored = (_substr(data, 0, len(start)) == start) & (_substr(data, len(start) + length, len(tables)) == tables)

    def stored() -> tf.Tensor:
        resized = _resize(_decode(data), image_size)
        return tf.io.encode_jpeg(resized, "rgb", quality=images.JPEG_QUALITY, chroma_downsampling=False)

    pixels = _jpeg(tf.cond(is_stored, lambda: data, stored))
    return tf.ensure_shape(pixels, [image_size, image_size, 3])


def _decode(data: tf.Tensor) -> tf.Tensor:
    """Return the pixels uint8 [H, W, 3] of one file."""
    kinds = {
        b"\xff\xd8": lambda: _reorient(_jpeg(data), exif_orientation(data)),
        b"\x89P": lambda: _png(data),
        b"BM": lambda: _bmp(data),
        b"GI": lambda: _gif(data),
    }
    start = _substr(data, 0, 2)
    pixels = tf.case([(start == magic, kind) for magic, kind in kinds.items()], default=lambda: _webp(data))
    return tf.ensure_shape(pixels, [None, None, 3])


def _jpeg(data: tf.Tensor) -> tf.Tensor:
    # Pillow also uses the accurate transform, so the pixels are equal. The default differs by several levels.
    return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")


def _png(data: tf.Tensor) -> tf.Tensor:
    _refuse_rotated(data, b"eXIf")
    pixels = tf.cast(tf.io.decode_png(data, channels=4), tf.float32)
    opacity = pixels[:, :, 3:]
    # A file with 1, 2 or 4 bits per sample and without transparency gets the largest sample as opacity, not 255.
    bits = tf.cast(tf.io.decode_raw(tf.strings.substr(data, _PNG_BITS, 1), tf.uint8)[0], tf.float32)
    largest = tf.pow(2.0, bits) - 1.0
    alpha = tf.cond(
        tf.reduce_all(opacity == largest) & (bits < 8.0), lambda: tf.ones_like(opacity), lambda: opacity / 255.0
    )
    return tf.cast(tf.round(pixels[:, :, :3] * alpha + 255.0 * (1.0 - alpha)), tf.uint8)


def _bmp(data: tf.Tensor) -> tf.Tensor:
    bits, header = _integer(data, _BMP_BITS, 2, little=True), _integer(data, _BMP_HEADER, 4, little=True)
    is_grey = (bits == 8) & (_substr(data, _BMP_HEADER + header, len(_GREY_PALETTE)) == _GREY_PALETTE)
    is_plain = (_substr(data, _BMP_COMPRESSION, 4) == bytes(4)) & ((bits == 24) | (bits == 32) | is_grey)
    _refuse(~is_plain, "a BMP with a palette, compression, or other than 8 bits per channel")
    return _other(data)


def _gif(data: tf.Tensor) -> tf.Tensor:
    # TensorFlow has no transparency, and takes the first frame for the whole.
    is_transparent = _integer(_after(data, b"\x21\xf9\x04"), 0, 1) % 2 == 1
    is_whole = _contains(data, b"\x2c\0\0\0\0" + _substr(data, 6, 4))
    _refuse(is_transparent | ~is_whole, "a GIF with transparency, or with a first frame smaller than the image")
    return _other(data)


def _webp(data: tf.Tensor) -> tf.Tensor:
    _refuse_rotated(data, b"EXIF")
    return _other(data)


def _other(data: tf.Tensor) -> tf.Tensor:
    pixels = tf.io.decode_image(data, channels=3, expand_animations=False)
    # WebP images have a dimension for their frames.
    pixels = tf.cond(tf.rank(pixels) == 4, lambda: pixels[0], lambda: pixels)
    return tf.reshape(pixels, tf.concat([tf.shape(pixels)[:2], [3]], 0))


def _resize(pixels: tf.Tensor, image_size: int) -> tf.Tensor:
    resized = tf.image.resize(pixels, [image_size, image_size], "bilinear", antialias=True)
    return tf.cast(tf.clip_by_value(tf.round(resized), 0, 255), tf.uint8)


def exif_orientation(data: tf.Tensor) -> tf.Tensor:
    """Return the orientation 1 to 8 from a JPEG file's EXIF block, 1 if it has none: int32 scalar."""

    def is_exif(at: tf.Tensor) -> tf.Tensor:
        return (_substr(data, at, 2) == b"\xff\xe1") & (_substr(data, at + 4, 6) == b"Exif\0\0")

    def continues(at: tf.Tensor) -> tf.Tensor:
        is_header = (_substr(data, at, 1) == b"\xff") & (_substr(data, at, 2) != b"\xff\xda")
        return is_header & ~is_exif(at)

    def found() -> tf.Tensor:
        # Segment by segment, because a comment or a thumbnail may contain the same bytes.
        (at,) = tf.while_loop(continues, lambda at: [at + 2 + _integer(data, at + 2, 2)], [tf.constant(2)])
        block = tf.where(is_exif(at), _substr(data, at + 10, _integer(data, at + 2, 2) - 8), "")
        orientation = _orientation(block)
        _refuse((orientation == 0) & _is_rotated_in_xmp(data), "a JPEG with an orientation in XMP only")
        return tf.where((orientation >= 1) & (orientation <= 8), orientation, 1)

    return tf.cond(tf.strings.regex_full_match(data, _METADATA), found, lambda: 1)


def _orientation(block: tf.Tensor) -> tf.Tensor:
    """Return the orientation in an EXIF block, which begins with its byte order; 0 if there is none: int32 scalar."""
    little = _substr(block, 0, 2) == b"II"
    entries_at = tf.where(little, _integer(block, 4, 4, little=True), _integer(block, 4, 4))
    count = tf.where(little, _integer(block, entries_at, 2, little=True), _integer(block, entries_at, 2))
    raw = tf.cast(tf.io.decode_raw(_substr(block, entries_at + 2, 12 * count), tf.uint8), tf.int32)
    # Each entry has a tag and a type of two bytes each, a count of four, and the value.
    entries = tf.reshape(raw[: tf.size(raw) // 12 * 12], [-1, 12])
    # In big-endian order, the last byte of a value is at the end of its two or four bytes.
    of_little, of_big = (tf.gather(entries, order, axis=1) for order in ([1, 0, 2, 8, 8], [0, 1, 3, 9, 11]))
    ordered = tf.where(little, of_little, of_big)
    is_orientation = ordered[:, 0] * 256 + ordered[:, 1] == _ORIENTATION_TAG
    value = tf.where(ordered[:, 2] == _SHORT, ordered[:, 3], ordered[:, 4])
    return tf.reduce_max(tf.concat([tf.where(is_orientation, value, 0), [0]], 0))


def _refuse_rotated(data: tf.Tensor, chunk: bytes) -> None:
    """Refuse a PNG or WebP with an orientation in EXIF, behind the name of its chunk, in XMP, or in unreadable text."""

    def is_rotated() -> tf.Tensor:
        rest = _after(data, chunk)
        in_exif = [_orientation(order + _after(rest, order)) > 1 for order in (b"II*\0", b"MM\0*")]
        return tf.reduce_any([*in_exif, _is_rotated_in_xmp(data), *(_contains(data, text) for text in _TEXTS)])

    is_refused = tf.cond(tf.strings.regex_full_match(data, _METADATA), is_rotated, lambda: False)
    _refuse(is_refused, "a PNG or WebP that is rotated by its metadata")


def _is_rotated_in_xmp(data: tf.Tensor) -> tf.Tensor:
    digits = [_integer(_after(data, b"tiff:Orientation" + end), 0, 1) for end in (b'="', b">")]
    return tf.reduce_any((tf.stack(digits) >= ord("2")) & (tf.stack(digits) <= ord("8")))


def _refuse(is_refused: tf.Tensor, what: str) -> None:
    tf.debugging.Assert(~is_refused, [f"{what} is not read by this signature; convert it to a plain JPEG or PNG"])


def _substr(data: tf.Tensor, at: tf.Tensor | int, length: tf.Tensor | int) -> tf.Tensor:
    """Return bytes of a file, fewer at its end."""
    return tf.strings.substr(data, tf.clip_by_value(at, 0, tf.strings.length(data)), tf.maximum(length, 0))


def _integer(data: tf.Tensor, at: tf.Tensor | int, length: int, *, little: bool = False) -> tf.Tensor:
    """Return the integer in some bytes of a file, of which those after its end are 0: int32 scalar."""
    found = tf.cast(tf.io.decode_raw(_substr(data, at, length) + bytes(length), tf.uint8)[:length], tf.int32)
    return tf.reduce_sum(found * [256**place for place in (range(length) if little else reversed(range(length)))])


def _after(data: tf.Tensor, pattern: bytes | tf.Tensor) -> tf.Tensor:
    """Return what follows the first occurrence of a pattern, empty if there is none."""
    return tf.concat([tf.strings.split(data, pattern, maxsplit=1), [""]], 0)[1]


def _contains(data: tf.Tensor, pattern: bytes | tf.Tensor) -> tf.Tensor:
    return tf.size(tf.strings.split(data, pattern, maxsplit=1)) > 1


def _reorient(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Undo an EXIF orientation (EXIF 2.3, tag 0x0112): 2 to 4 mirror or rotate, 5 to 8 also swap the axes."""
    result = tf.cond(orientation >= 5, lambda: tf.transpose(pixels, [1, 0, 2]), lambda: pixels)
    result = tf.cond(tf.reduce_any(orientation == [3, 4, 7, 8]), lambda: result[::-1], lambda: result)
    return tf.cond(tf.reduce_any(orientation == [2, 3, 6, 7]), lambda: result[:, ::-1], lambda: result)
