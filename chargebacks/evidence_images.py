"""Thumbnails and packet images of evidence: size checked before decoding, and always re-encoded, so that no uploaded
bytes reach a browser or a packet."""

from __future__ import annotations

import io
from typing import Final

from chargebacks.evidence import load_thumbnail, store_thumbnail, stream_evidence
from chargebacks.models import Evidence
from gateway.core import image_limits

THUMBNAIL_PX: Final = 160
PACKET_IMAGE_PX: Final = 1_800
"""Longer side of an image in a packet: A4 at about 200 dpi."""
JPEG_QUALITY: Final = 80


def render_thumbnail(file: Evidence) -> bytes | None:
    """A JPEG thumbnail. None if the file is no image, is too large to decode within a request, cannot be opened, or
    was erased."""
    if not file.is_picture or file.is_erased:
        return None
    kept = load_thumbnail(file)
    if kept is None:
        kept = _reencode_image(file, THUMBNAIL_PX) or b""
        store_thumbnail(file, kept)
    return kept or None


def render_packet_image(file: Evidence) -> bytes | None:
    """A JPEG for the packet's page, or None."""
    return _reencode_image(file, PACKET_IMAGE_PX) if file.is_picture else None


def _reencode_image(file: Evidence, side: int) -> bytes | None:
    from PIL import Image, ImageOps

    try:
        with image_limits.open_image(b"".join(stream_evidence(file))) as opened:
            if not image_limits.is_cheap_to_decode(opened):
                return None
            opened.draft("RGB", (side, side))
            # Shrunk before it is rotated: rotating copies the whole image.
            opened.thumbnail((side, side))
            picture = ImageOps.exif_transpose(opened)
            shown = Image.new("RGB", picture.size, "white")
            clear = picture.convert("RGBA")
            shown.paste(clear, mask=clear.getchannel("A"))
    except Exception:  # a decoder raises anything on a broken upload: then there is no image
        return None
    written = io.BytesIO()
    shown.save(written, "JPEG", quality=JPEG_QUALITY)
    return written.getvalue()
