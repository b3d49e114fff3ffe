"""The files that the programs decode: one photograph in many formats."""

import io

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

PHOTO = Image.fromarray(load_sample_image("china.jpg")[100:164, 200:280])
GREY = PHOTO.convert("L")
DEEP = Image.fromarray(np.asarray(GREY).astype(np.uint16) * 257)
ALPHA = PHOTO.copy()
ALPHA.putalpha(Image.linear_gradient("L").resize(PHOTO.size))
PALETTE = PHOTO.quantize(16)
ROTATED = Image.Exif()
ROTATED[0x0112] = 6


def file(image, kind, **options):
    """Return the bytes of a file."""
    target = io.BytesIO()
    image.save(target, kind, **options)
    return target.getvalue()


FILES = {
    "JPEG 4:2:0": file(PHOTO, "JPEG", subsampling="4:2:0"),
    "JPEG 4:4:4": file(PHOTO, "JPEG", subsampling="4:4:4"),
    "JPEG, progressive": file(PHOTO, "JPEG", progressive=True),
    "JPEG, grey": file(GREY, "JPEG"),
    "JPEG, CMYK": file(PHOTO.convert("CMYK"), "JPEG"),
    "JPEG, EXIF orientation 6": file(PHOTO, "JPEG", exif=ROTATED),
    "PNG": file(PHOTO, "PNG"),
    "PNG, 16 bits of grey": file(DEEP, "PNG"),
    "PNG, palette": file(PALETTE, "PNG"),
    "PNG, palette with transparency": file(PALETTE, "PNG", transparency=3),
    "PNG, alpha": file(ALPHA, "PNG"),
    "PNG, 1 bit": file(PHOTO.convert("1"), "PNG"),
    "BMP": file(PHOTO, "BMP"),
    "BMP, palette": file(PALETTE, "BMP"),
    "GIF": file(PALETTE, "GIF"),
    "GIF, transparent": file(PALETTE, "GIF", transparency=3),
    "WebP, lossy": file(PHOTO, "WEBP"),
    "WebP, lossless": file(PHOTO, "WEBP", lossless=True),
    "WebP, alpha": file(ALPHA, "WEBP", lossless=True),
    "TIFF": file(PHOTO, "TIFF"),
    "TIFF, 16 bits of grey": file(DEEP, "TIFF"),
}
