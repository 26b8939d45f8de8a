"""Colours and logo of the hosted payment page: checked when they are set, so that a page need not judge them.

A logo is measured by its head before it is decoded, and drawn anew as a small PNG: no uploaded byte reaches a browser.
Source: docs/decisions/0050, docs/decisions/0083.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Final

from checkout.models import PaymentPageStyle
from gateway.core.image_limits import is_cheap_to_decode, open_image
from gateway.models import Channel

MAX_LOGO_FILE_BYTES: Final = 1024 * 1024
MAX_LOGO_SIZE_PX: Final = (480, 160)
"""Width and height: twice what the page shows, for sharp screens."""
_DARK_TEXT: Final = "#000000"
_LIGHT_TEXT: Final = "#ffffff"


class LogoRejectedError(ValueError):
    """The uploaded file is no picture, or one that is too large to decode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLook:
    """The style of one page. Colours are #rrggbb, '' for the page's own; ``on_…``: the text on that colour;
    ``logo``: a data: address."""

    accent: str = ""
    on_accent: str = ""
    header: str = ""
    on_header: str = ""
    logo: str = ""


def choose_text_colour(background: str) -> str:
    """Black or white, whichever has more contrast on ``background``: at least 4.58, whatever the colour (WCAG asks for
    4.5)."""
    return max((_DARK_TEXT, _LIGHT_TEXT), key=lambda text: measure_contrast(text, background))


def measure_contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2.2, contrast ratio)."""
    low, high = sorted((_measure_luminance(first), _measure_luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _measure_luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def render_logo(octets: bytes) -> bytes:
    """An uploaded picture (PNG, JPEG) as a small PNG. Raises LogoRejectedError."""
    from PIL import Image, ImageOps

    try:
        with open_image(octets) as opened:
            if not is_cheap_to_decode(opened):
                raise LogoRejectedError("too many pixels")
            opened.draft("RGB", MAX_LOGO_SIZE_PX)
            opened.thumbnail(MAX_LOGO_SIZE_PX)
            picture = ImageOps.exif_transpose(opened).convert("RGBA")
    except LogoRejectedError:
        raise
    except Exception as fault:  # a decoder raises anything on a broken upload
        raise LogoRejectedError("no picture") from fault
    written = io.BytesIO()
    # A new image: colours alone, none of the file's comments and profiles.
    clean = Image.new("RGBA", picture.size)
    clean.paste(picture)
    clean.save(written, "PNG", optimize=True)
    return written.getvalue()


def load_page_look(channel: Channel) -> PageLook:
    """The style of a channel's payment page."""
    row = PaymentPageStyle.objects.filter(pk=channel.pk).first()
    if row is None:
        return PageLook()
    logo = base64.b64encode(bytes(row.logo)).decode() if row.logo else ""
    return PageLook(
        accent=row.accent,
        on_accent=choose_text_colour(row.accent) if row.accent else "",
        header=row.header,
        on_header=choose_text_colour(row.header) if row.header else "",
        logo=f"data:image/png;base64,{logo}" if logo else "",
    )
