"""Decodes any image file to uint8 RGB of a fixed size. trainer.results.serving does the same in TensorFlow."""

import contextlib
import functools
import io
import threading
import warnings
import zlib

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

_UNIT_FLOATS = "images of floating point, read as 0 to 1"
_BYTE_FLOATS = "images of floating point, read as 0 to 255"
"""Remarks: the file does not state its scale."""
_LARGEST_16_BITS = 65535


_MAX_PIXELS = 178_956_970
"""Larger images are refused as bad: a small file may unpack to many gigabytes (Pillow's own hard limit)."""
EXTENSIONS = frozenset(
    ".jpg .jpeg .jpe .jfif .mpo .png .apng .gif .bmp .dib .ico .webp .tif .tiff .ppm .pgm .pnm .pbm .pfm "
    ".tga .pcx .psd .dds .icns .qoi .sgi".split()
)
"""Endings of file names that count as images, in lower case."""
NOT_READ = {
    **dict.fromkeys((".heic", ".heif", ".hif"), "HEIC"),
    **dict.fromkeys((".jp2", ".j2k", ".jpx", ".jpf", ".jpc", ".j2c"), "JPEG 2000"),
    **dict.fromkeys((".avif", ".avifs"), "AVIF"),
    ".jxl": "JPEG XL",
    **dict.fromkeys((".eps", ".wmf", ".emf", ".svg"), "a drawing"),
    **dict.fromkeys((".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".raf", ".rw2"), "a raw photo"),
}
"""Endings of image files in formats that are not read, in lower case, with the name of the format."""
_REFUSED_FORMATS = {"AVIF": "AVIF", "JPEG2000": "JPEG 2000", **dict.fromkeys(("EPS", "WMF"), "a drawing")}
"""The same formats under any name, as far as Pillow reads them: Pillow's name -> this project's."""
SEVERAL_FRAMES = "images with several frames, of which only the first is used"
"""Remark on an animation, or on a TIFF of several pages."""
_LARGEST_LOSSLESS_SIZE = 64
"""Largest edge in pixels that is stored as PNG; above it, JPEG artefacts are small compared with the image."""
JPEG_QUALITY = 95
COMMENT, _SOS, _EOI = b"\xff\xfe", b"\xff\xda", b"\xff\xd9"
"""Markers of JPEG: a comment, the start of the coded pixels, and the end."""
_NUM_JFIF_BYTES, _NUM_SOS_BYTES = 20, 14
"""Length of the start of a JPEG with its first segment; of the segment before the coded pixels, for three channels."""
_LARGE_PIXELS = 2**26
"""Images above this size, larger than those of most cameras, are decoded one at a time: each may take gigabytes."""
_BITS_PER_SAMPLE = 258
"""Tag of TIFF."""
_COMPRESSION_TAG, _PHOTOMETRIC, _YCBCR = 259, 262, 6
"""Two more tags, and the value of the second for luminance and chrominance."""
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
"""The start of each file."""
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
Pixels = npt.NDArray[np.uint8]


class BadImage(Exception):
    """Bytes that are not an image, or an image that must not be decoded; the message gives the reason."""


def _to_rgb(image: Image.Image, num_bits: int) -> tuple[Image.Image, str]:
    """Return an RGB image of 8 bits per channel, with transparency composited on white, and a remark or "".

    Args:
        image: Any mode.
        num_bits: Bits of grey of the modes that begin with I.

    Raises:
        BadImage: The values have no known scale, or would turn black.
    """
    remark = ""
    if image.mode.startswith("I"):
        image = _integers(np.asarray(image), num_bits)
    elif image.mode == "F":
        image, remark = _floats(np.asarray(image))
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, (255, 255, 255, 255))
        return Image.alpha_composite(white, rgba).convert("RGB"), remark
    # A JPEG has one frame, so nothing that is read later changes its pixels, and no copy is needed.
    return image if (image.mode, image.format) == ("RGB", "JPEG") else image.convert("RGB"), remark


def _integers(values: npt.NDArray[np.integer], num_bits: int) -> Image.Image:
    """Return the upper byte of 16-bit grey, as viewers do; Pillow would clip."""
    low, high, shift = int(values.min()), int(values.max()), num_bits - 8
    if low < 0 or high > _LARGEST_16_BITS:
        raise BadImage(f"its integers from {low} to {high} do not fit 16 bits of grey; convert it to 8 or 16 bits")
    if high and not high >> shift:
        raise BadImage(f"its largest value {high} of {num_bits} bits would be black; scale the values, or use 8 bits")
    return Image.fromarray((values.astype(np.uint32) >> shift).clip(0, 255).astype(np.uint8))


def _floats(values: npt.NDArray[np.floating]) -> tuple[Image.Image, str]:
    """Return floating point as grey: from 0 to 1, as in most files, or else from 0 to 255, as Pillow writes it."""
    low, high = float(values.min()), float(values.max())
    # Not a number compares as false.
    if not (low >= 0 and high <= 255):
        raise BadImage(f"its floating point values from {low:g} to {high:g} have no known scale; scale them to 0 to 1")
    if high <= 1:
        return Image.fromarray(np.rint(values * 255).astype(np.uint8)), _UNIT_FLOATS
    return Image.fromarray(values.astype(np.uint8)), _BYTE_FLOATS


_one_large_image = threading.Lock()


# Pillow warns above half the size that it refuses, and about odd but harmless metadata. For the whole process, because
# catch_warnings of several threads restore each other's filters.
warnings.filterwarnings("ignore", module=r"PIL\.")


def decode(data: bytes, max_pixels: int = _MAX_PIXELS) -> Image.Image:
    """Decode an image: the first frame, rotated as its EXIF orientation says, transparency composited on white.

    Args:
        data: The file.
        max_pixels: Larger images are refused before they are decoded.

    Returns:
        An RGB image of 8 bits per channel.

    Raises:
        BadImage: The bytes are empty, damaged, truncated, not an image, of too many pixels or without a known scale.
    """
    return decode_with_remarks(data, max_pixels)[0]


def decode_with_remarks(data: bytes, max_pixels: int = _MAX_PIXELS) -> tuple[Image.Image, list[str]]:
    """Return the result of `decode`, and remarks on the unused parts of the file."""
    if not data:
        raise BadImage("the file is empty")
    try:
        with Image.open(io.BytesIO(data)) as image, _memory_for(image, max_pixels):
            _refuse_misread(image)
            image.load()
            _rotate(image)
            decoded, remark = _to_rgb(image, _num_bits(image))
            return decoded, [found for found in (remark, _remark_on_frames(image)) if found]
    except BadImage:
        raise
    # Damaged files reach deep into Pillow's decoders, which raise almost anything.
    except Exception as error:
        # Pillow refuses a file even for a text, a colour profile or a list of previews (its issues 8348 and 8363).
        if len(bare := _without_metadata(data)) < len(data):
            return decode_with_remarks(bare, max_pixels)
        raise BadImage(_reason(error, data)) from error


def _rotate(image: Image.Image) -> None:
    """Undo the EXIF orientation, if EXIF can be read."""
    try:
        # Without a copy of the pixels, which takes a tenth of the time of a large JPEG.
        ImageOps.exif_transpose(image, in_place=True)
    except MemoryError:
        raise
    # The pixels are rotated before EXIF is written again, which is the most frequent failure.
    except Exception:
        return


def _without_metadata(data: bytes) -> bytes:
    """Return a PNG or JPEG without the parts that decide neither its pixels nor their orientation."""
    if data.startswith(_PNG):
        kept, at = [_PNG], len(_PNG)
        while at < len(data):
            end = at + 12 + int.from_bytes(data[at : at + 4])
            kind = data[at + 4 : at + 8]
            is_intact = int.from_bytes(data[end - 4 : end]) == zlib.crc32(data[at + 4 : end - 4])
            # Chunks that a decoder must know begin with a capital.
            if kind[:1].isupper() or kind == b"tRNS" or (kind == b"eXIf" and is_intact):
                kept.append(data[at:end])
            at = end
        return b"".join(kept)
    if data.startswith(_JPEG):
        kept, at = [_JPEG], len(_JPEG)
        while data[at : at + 1] == b"\xff" and data[at : at + 2] != _SOS:
            end = at + 2 + int.from_bytes(data[at + 2 : at + 4])
            # Of the segments of applications, three are about the pixels: JFIF, EXIF and Adobe's.
            if not b"\xe2" <= (marker := data[at + 1 : at + 2]) <= b"\xef" or marker == b"\xee":
                kept.append(data[at:end])
            at = end
        return b"".join([*kept, data[at:]])
    return data


def stretch(image: Image.Image, image_size: int) -> Image.Image:
    """Stretch to image_size x image_size with an antialiased triangle filter (tf.image's bilinear with antialias)."""
    return image.resize((image_size, image_size), Image.Resampling.BILINEAR)


def to_pixels(data: bytes, image_size: int, max_pixels: int = _MAX_PIXELS) -> Pixels:
    """Return the pixels uint8 [image_size, image_size, 3] that training reads after `prepare` of an image file.

    Raises:
        BadImage: As `decode`.
    """
    prepared = stretch(decode(data, max_pixels), image_size)
    if encoding_format(image_size) == "jpeg":
        # PNG is lossless, so only JPEG needs the way through the file.
        prepared = Image.open(io.BytesIO(stored_form(data, prepared)), formats=["JPEG"])
    return np.asarray(prepared)


def stored_form(data: bytes, prepared: Image.Image) -> bytes:
    """Return the bytes that the dataset has of an image file.

    A file that is a stored image already is kept, because a second encoding would change its pixels. So an endpoint
    answers as `evaluate` did when it gets stored images.

    Args:
        data: The file.
        prepared: The decoded file, stretched to the size of the dataset.
    """
    return data if _is_stored(data, prepared.height) else encode_image(prepared)


def _is_stored(data: bytes, image_size: int) -> bool:
    start, tables = stored_header(image_size)
    # Earlier versions kept the comment of the original.
    is_comment = data[len(start) : len(start) + 2] == COMMENT
    at = len(start) + is_comment * (2 + int.from_bytes(data[len(start) + 2 : len(start) + 4]))
    end = at + len(tables)
    # The end marker cannot occur inside the coded pixels; nothing may follow it.
    return bool(tables) and data.startswith(start) and data[at:end] == tables and data.find(_EOI, end) == len(data) - 2


@functools.lru_cache(maxsize=16)
def stored_header(image_size: int) -> tuple[bytes, bytes]:
    """Return the start of all stored JPEGs of a size: two parts, between which a comment may be.

    Both are empty for sizes that are stored as PNG.
    """
    if encoding_format(image_size) == "png":
        return b"", b""
    blank = encode_image(Image.new("RGB", (image_size, image_size)))
    return blank[:_NUM_JFIF_BYTES], blank[_NUM_JFIF_BYTES : blank.index(_SOS) + _NUM_SOS_BYTES]


def encode_image(image: Image.Image) -> bytes:
    """Encode a prepared image as PNG or JPEG, whichever `encoding_format` chooses for its size."""
    buffer = io.BytesIO()
    if encoding_format(image.height) == "png":
        image.save(buffer, "PNG", compress_level=6)
    else:
        # Pillow would write the comment of the original.
        image.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=0, comment=b"")
    return buffer.getvalue()


def encoding_format(image_size: int) -> str:
    """Return how images of this size are stored: `png` or `jpeg`."""
    return "png" if image_size <= _LARGEST_LOSSLESS_SIZE else "jpeg"


def _memory_for(image: Image.Image, max_pixels: int) -> contextlib.AbstractContextManager[object]:
    num_pixels = image.width * image.height
    if num_pixels > max_pixels:
        raise BadImage(f"{image.width}x{image.height} is more than {max_pixels:,} pixels; make it smaller")
    return _one_large_image if num_pixels > _LARGE_PIXELS else contextlib.nullcontext()


def _refuse_misread(image: Image.Image) -> None:
    """Refuse formats that are not read, and uncompressed TIFFs in YCbCr: Pillow 12 reads their 3 bytes a pixel as 4."""
    if kind := _REFUSED_FORMATS.get(image.format or ""):
        raise BadImage(not_read(kind))
    tags = getattr(image, "tag_v2", {})
    if tags.get(_PHOTOMETRIC) == _YCBCR and tags.get(_COMPRESSION_TAG, 1) == 1:
        raise BadImage("an uncompressed TIFF in YCbCr is not read; convert it to JPEG")


def _num_bits(image: Image.Image) -> int:
    """Return the bits of grey in modes that begin with I: 16, or 12 in a TIFF that declares so."""
    declared = getattr(image, "tag_v2", {}).get(_BITS_PER_SAMPLE)
    return 12 if declared == (12,) else 16


def _remark_on_frames(image: Image.Image) -> str:
    # In the format of cameras, MPO, the further frames are previews of the first.
    if image.format == "MPO":
        return ""
    # The first frame is fine, so a damaged second one does no harm.
    with contextlib.suppress(Exception):
        return SEVERAL_FRAMES if getattr(image, "is_animated", False) else ""
    return SEVERAL_FRAMES


def _reason(error: Exception, data: bytes) -> str:
    if type(error).__name__ == "UnidentifiedImageError":
        if data[4:8] == b"ftyp" and data[8:12] in _HEIF_BRANDS:
            return not_read("HEIC")
        return "not an image, damaged at its start, or of a kind that is not read"
    if isinstance(error, Image.DecompressionBombError):
        return f"it has more than {_MAX_PIXELS:,} pixels"
    if isinstance(error, MemoryError):
        return "there is not enough memory to decode it"
    # All other errors are about Pillow's code and not about the file.
    return "the file is truncated" if "truncated" in str(error).lower() else "damaged: its pixels cannot be decoded"


def not_read(format_name: str) -> str:
    """Return the reason for which files of a format are bad."""
    return f"{format_name} is not read; convert it to JPEG"
