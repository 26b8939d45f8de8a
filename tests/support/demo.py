"""The demo shop, set up for a merchant of the tests as `make run` sets it up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.test import override_settings

from tests.support.fixtures import Shop


@contextmanager
def demo_shop(shop: Shop, folder: Path) -> Iterator[None]:
    """Meanwhile ``/demo`` sells for ``shop``. Both of its channels are the shop's own."""
    file = folder / "demo.json"
    channels = dict.fromkeys(("plain", "3ds"), shop.channel.entity_id)
    file.write_text(json.dumps({"access_token": shop.api.token, "channels": channels}))
    with override_settings(GATEWAY_DEMO_FILE=str(file)):
        yield
