"""Limits of uploaded images, checked before decoding: a file of 194 KB may hold 50 million pixels, and one of 5 MB a
million parts, which cost more than its picture. Pillow is imported where an image is opened, which is rare."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL import Image

MAX_IMAGE_PIXELS: Final = 50_000_000
"""Pixels of an accepted image: photographs of phones have 12 to 50 million."""
MAX_FULL_DECODE_PIXELS: Final = 6_000_000
"""Pixels of a PNG, and of a progressive JPEG, that is decoded: they take up to eight bytes of memory a pixel before
they can be made smaller. A4 at 250 dpi has as many. Other JPEGs are decoded at an eighth of their size."""
IMAGE_FORMATS: Final = ("PNG", "JPEG")
MAX_IMAGE_PARTS: Final = 20_000
"""Chunks and segments before the picture's data, each of which is looked at to open a file. Cameras write some dozens;
a large colour profile or thumbnail has hundreds."""
_PNG_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_MARKER_BYTE: Final = 0xFF
_START_OF_SCAN: Final = 0xFFDA


def open_image(octets: bytes) -> Image.Image:
    """Open an image and read its header only. Raises ValueError for one of too many parts, and what Pillow raises for
    anything else."""
    from PIL import Image

    if has_too_many_parts(octets):
        raise ValueError(f"the image has more than {MAX_IMAGE_PARTS} parts")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        return Image.open(io.BytesIO(octets), formats=IMAGE_FORMATS)


def has_too_many_parts(octets: bytes) -> bool:
    """Whether a PNG or JPEG has more than MAX_IMAGE_PARTS parts before its picture's data, as Pillow walks them."""
    is_png = octets.startswith(_PNG_SIGNATURE)
    at = len(_PNG_SIGNATURE) if is_png else 2
    for _ in range(MAX_IMAGE_PARTS):
        following = _skip_chunk(octets, at) if is_png else _skip_segment(octets, at)
        if following is None:
            return False
        at = following
    return True


def _skip_chunk(octets: bytes, at: int) -> int | None:
    """Where the chunk of a PNG at ``at`` ends; None at the picture's data, and at the end."""
    head = octets[at : at + 8]
    return None if len(head) < 8 or head[4:] == b"IDAT" else at + 12 + int.from_bytes(head[:4])


def _skip_segment(octets: bytes, at: int) -> int | None:
    """Where the segment of a JPEG at ``at`` ends, which may be a single byte that means nothing."""
    if at + 1 >= len(octets):
        return None
    if octets[at] != _MARKER_BYTE or octets[at + 1] == _MARKER_BYTE:
        return at + 1
    marker = int.from_bytes(octets[at : at + 2])
    if marker == _START_OF_SCAN:
        return None
    from PIL.JpegImagePlugin import MARKER

    *_names, reader = MARKER.get(marker, ("", "", None))
    return at + 2 if reader is None else at + 2 + max(2, int.from_bytes(octets[at + 2 : at + 4]))


def count_pixels(octets: bytes) -> int:
    """Number of pixels; 0 for a file that cannot be opened. Pillow itself opens none of more than 179 million pixels:
    those count as one above :data:`MAX_IMAGE_PIXELS`."""
    from PIL import Image

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
