"""Evidence as pictures: opened within limits, and always made anew, so that nothing of an uploaded file's own bytes is
shown by a browser or put into a packet."""

from __future__ import annotations

import io
import warnings
from typing import Final

from PIL import Image, ImageOps

from chargebacks.evidence import content
from chargebacks.models import Evidence

MOST_PIXELS: Final = 50_000_000
"""Of a picture that is opened: a scan of A3 at 600 dpi has 70 million, a photograph of a phone 12 to 50."""
SMALL_PX: Final = 160
LARGE_PX: Final = 1_800
"""The longer side in a packet: A4 at about 200 dpi."""
QUALITY: Final = 80
FORMATS: Final = ("PNG", "JPEG")


def small(file: Evidence) -> bytes | None:
    """A JPEG to be shown beside the name; None for what is no picture, or cannot be opened."""
    return _made_anew(file, SMALL_PX)


def large(file: Evidence) -> bytes | None:
    """A JPEG for a page of paper, or None."""
    return _made_anew(file, LARGE_PX)


def _made_anew(file: Evidence, side: int) -> bytes | None:
    if not file.content_type.startswith("image/"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(b"".join(content(file))), formats=FORMATS) as opened:
                if opened.width * opened.height > MOST_PIXELS:
                    return None
                opened.draft("RGB", (side, side))
                picture = ImageOps.exif_transpose(opened)
                picture.thumbnail((side, side))
                shown = Image.new("RGB", picture.size, "white")
                clear = picture.convert("RGBA")
                shown.paste(clear, mask=clear.getchannel("A"))
    except Exception:  # whatever a decoder finds wrong with somebody's file: there is no picture of it
        return None
    written = io.BytesIO()
    shown.save(written, "JPEG", quality=QUALITY)
    return written.getvalue()
