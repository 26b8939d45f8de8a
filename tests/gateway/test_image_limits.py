"""Uploaded images of many parts are not opened. Source: gateway.core.image_limits; docs/decisions/0050."""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable

import pytest
from PIL import Image

from gateway.core import image_limits
from gateway.core.image_limits import MAX_IMAGE_PARTS, count_pixels, open_image


def png(parts: int) -> bytes:
    """A PNG of 10 × 10 with so many chunks before its data; its own head is one of them."""
    whole = io.BytesIO()
    Image.new("L", (10, 10)).save(whole, "PNG")
    found = whole.getvalue()
    empty = (0).to_bytes(4) + b"teSt" + zlib.crc32(b"teSt").to_bytes(4)
    return found[:33] + empty * (parts - 1) + found[33:]


def jpeg(part: bytes) -> Callable[[int], bytes]:
    whole = io.BytesIO()
    Image.new("L", (10, 10)).save(whole, "JPEG")
    found = whole.getvalue()
    first, own = b"\xff\xfe\0\2", 5  # the first one, and the image's own
    return lambda parts: found[:2] + first + part * (parts - own - 1) + found[2:]


KINDS = {
    "chunks": png,
    "comments": jpeg(b"\xff\xfe\0\2"),
    "segments without a length": jpeg(b"\xff\xd0"),
    "a marker that Pillow reads without a length": jpeg(b"\xff\xf0"),
    "fill bytes": jpeg(b"\xff"),
    "bytes that mean nothing": jpeg(b"\0"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_of_many_parts_is_not_opened(kind: str) -> None:
    few, many = KINDS[kind](MAX_IMAGE_PARTS - 1), KINDS[kind](5_000_000 // 4)
    assert count_pixels(few) == 100
    assert count_pixels(many) == 0
    with pytest.raises(ValueError, match="parts"):
        open_image(many)


def test_what_is_walked_costs_little() -> None:
    """The bound of decision 0050 is a second; the walk itself takes hundredths."""
    began = time.process_time()
    assert count_pixels(KINDS["comments"](5_000_000 // 4)) == 0
    assert time.process_time() - began < 0.5


def test_what_is_cut_off_ends_the_walk() -> None:
    for whole in (png(3), KINDS["comments"](10)):
        for end in range(len(whole)):
            assert not image_limits.has_too_many_parts(whole[:end])
