"""Pixel limits of uploaded images, checked before decoding: a file of 194 KB may hold 50 million pixels."""

from __future__ import annotations

import io
import warnings
from typing import Final

from PIL import Image

MAX_IMAGE_PIXELS: Final = 50_000_000
"""Pixels of an accepted image: photographs of phones have 12 to 50 million."""
MAX_FULL_DECODE_PIXELS: Final = 6_000_000
"""Pixels of a PNG, and of a progressive JPEG, that is decoded: they take up to eight bytes of memory a pixel before
they can be made smaller. A4 at 250 dpi has as many. Other JPEGs are decoded at an eighth of their size."""
IMAGE_FORMATS: Final = ("PNG", "JPEG")


def open_image(octets: bytes) -> Image.Image:
    """Open an image and read its header only. Raises what Pillow raises for anything else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(io.BytesIO(octets), formats=IMAGE_FORMATS)


def count_pixels(octets: bytes) -> int:
    """Number of pixels; 0 for a file that cannot be opened. Pillow itself opens none of more than 179 million pixels:
    those count as one above :data:`MAX_IMAGE_PIXELS`."""
    try:
        with open_image(octets) as picture:
            return picture.width * picture.height
    except Image.DecompressionBombError:
        return MAX_IMAGE_PIXELS + 1
    except Exception:  # a decoder raises anything on a broken upload
        return 0


def is_cheap_to_decode(picture: Image.Image) -> bool:
    """True if decoding fits into a web request, judged by the header alone."""
    whole = picture.format != "JPEG" or bool(picture.info.get("progressive"))
    return picture.width * picture.height <= (MAX_FULL_DECODE_PIXELS if whole else MAX_IMAGE_PIXELS)
