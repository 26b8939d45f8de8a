"""A merchant whose direct debits go to a bank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from gateway.connectors import accounts
from tests.support import sepa
from tests.support.fixtures import Shop


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Path]:
    """Where files for banks are laid; the watched folder lies beside it."""
    accounts.clear_account_cache()
    (tmp_path / "in").mkdir()
    with override_settings(GATEWAY_SEPA_OUTBOX=str(tmp_path / "out"), GATEWAY_SEPA_INBOX=str(tmp_path / "in")):
        yield tmp_path / "out"
    accounts.clear_account_cache()


@pytest.fixture
def banked(shop: Shop, outbox: Path) -> Shop:
    """The merchant of the test, with an account for direct debits."""
    sepa.account_at_bank(shop.channel)
    return shop
