"""What a velocity counts by: every value of a field that has several, an account once whatever the vault's keys are."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import override_settings

from gateway.models import RiskObservation
from tests.scenarios.test_risk import MAIL, a_rule, screened
from tests.support.client import Api
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

PHONE, OTHER, THIRD = "+49 89 1", "+49 89 2", "+49 89 3"
APPROVED, STOPPED = "000.100.110", "800.120.101"


def pay(api: Api, **numbers: str) -> str:
    return api.pay(**MAIL, **{f"customer__{name}": value for name, value in numbers.items()}).code


@pytest.mark.parametrize("name", ["mobile", "workPhone"])
def test_a_shopper_is_counted_by_each_of_several_numbers(shop: Shop, name: str) -> None:
    """customer.phone is three parameters; the number that was seen most decides."""
    api = screened(shop, a_rule(kind="velocity", per="customer.phone", count="payments", over=2, within="1h"))
    assert pay(api, phone=PHONE, **{name: OTHER}) == APPROVED
    assert pay(api, phone=THIRD, **{name: OTHER}) == APPROVED
    assert pay(api, phone=THIRD) == APPROVED
    assert pay(api, phone=PHONE, **{name: OTHER}) == STOPPED
    assert pay(api, phone=OTHER) == STOPPED
    assert pay(api, phone=PHONE) == STOPPED


def test_an_account_is_counted_once_while_the_vault_has_two_keys(shop: Shop, tmp_path: Path) -> None:
    """It has a fingerprint per key; the primary key's is the one that is counted."""
    with override_settings(GATEWAY_VAULT_KEYSET_FILE=str(tmp_path / "vault.json")):
        rule = a_rule(kind="velocity", per="account", count="payments", over=1, within="1h")
        api = screened(shop, rule)
        call_command("vault_key", "--create", stdout=StringIO())
        call_command("vault_key", "--rotate", stdout=StringIO())
        assert api.pay().code == APPROVED
        assert RiskObservation.objects.count() == 1
        assert api.pay().code == STOPPED
