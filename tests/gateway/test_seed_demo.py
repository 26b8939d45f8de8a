"""The demo's data: made once, and found again whatever its user has made beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from gateway.models import AcquirerAccount, Channel, Division, Merchant, Psp

pytestmark = pytest.mark.django_db


def seed(out: Path) -> dict[str, Any]:
    call_command("seed_demo", base_url="http://127.0.0.1:8000", out=out)
    facts: dict[str, Any] = json.loads(out.read_text())
    return facts


def test_a_second_start_keeps_what_the_first_made(tmp_path: Path) -> None:
    first = seed(tmp_path / "demo.json")
    assert seed(tmp_path / "demo.json") == first
    assert (Merchant.objects.count(), AcquirerAccount.objects.count()) == (2, 5)


def test_rows_of_the_same_names_beside_it_keep_no_start_from_going_on(tmp_path: Path) -> None:
    """Found in use: a second account at the stub acquirer, and `make run` did not start any more."""
    first = seed(tmp_path / "demo.json")
    plain = Channel.objects.get(name="plain")
    AcquirerAccount.objects.create(channel=plain, connector="stub", name="second", acquirer_merchant_id="STUB-second")
    Channel.objects.create(name="plain", merchant=plain.merchant)
    Merchant.objects.create(name="Demo shop", division=plain.merchant.division)
    psp = Psp.objects.create(name="Tollhouse Demo PSP")
    Division.objects.create(name="Demo", psp=plain.merchant.division.psp)
    Division.objects.create(name="Demo", psp=psp)
    assert seed(tmp_path / "demo.json") == first
