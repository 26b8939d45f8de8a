"""Evidence as pictures: measured by its head before it is decoded, and always made anew, so that nothing of an uploaded
file's own bytes is shown by a browser or put into a packet."""

from __future__ import annotations

import io
from typing import Final

from PIL import Image, ImageOps

from chargebacks import measure
from chargebacks.evidence import content, keep_small, small_of
from chargebacks.models import Evidence

SMALL_PX: Final = 160
LARGE_PX: Final = 1_800
"""The longer side in a packet: A4 at about 200 dpi."""
QUALITY: Final = 80


def small(file: Evidence) -> bytes | None:
    """A JPEG to be shown beside the name, made once and kept; None for what is no picture, is too large to be decoded
    while a page waits, or cannot be opened."""
    if not file.is_picture:
        return None
    kept = small_of(file)
    if kept is None:
        kept = _made_anew(file, SMALL_PX) or b""
        keep_small(file, kept)
    return kept or None


def large(file: Evidence) -> bytes | None:
    """A JPEG for a page of paper, or None."""
    return _made_anew(file, LARGE_PX) if file.is_picture else None


def _made_anew(file: Evidence, side: int) -> bytes | None:
    try:
        with measure.opened(b"".join(content(file))) as opened:
            if not measure.is_decoded_cheaply(opened):
                return None
            opened.draft("RGB", (side, side))
            # Smaller first: turning it would copy the whole of it.
            opened.thumbnail((side, side))
            picture = ImageOps.exif_transpose(opened)
            shown = Image.new("RGB", picture.size, "white")
            clear = picture.convert("RGBA")
            shown.paste(clear, mask=clear.getchannel("A"))
    except Exception:  # whatever a decoder finds wrong with somebody's file: there is no picture of it
        return None
    written = io.BytesIO()
    shown.save(written, "JPEG", quality=QUALITY)
    return written.getvalue()
