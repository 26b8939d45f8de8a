"""A bank's file is checked against its message's schema before it leaves, and the schema is built once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import pytest

from gateway.connectors.sepa import payment_files
from gateway.connectors.sepa.creditor import COLLECTION_SCHEMAS
from gateway.connectors.sepa.payment_files import InvalidPaymentFileError, render_payment_file
from gateway.models import BankFile, BankOrder, SepaMandate

IBAN = "DE98500105177584213542"


def render(schema: str) -> bytes:
    """A file of one collection, with the account number in clear as a bank gets it."""
    creditor = {
        "name": "Shop Ltd", "id": "DE98ZZZ09999999999", "iban": "DE23100000001234567890", "bic": "MARKDEF1100",
        "instrument": "CORE", "schema": schema, "zone": "Europe/Berlin",
    }  # fmt: skip
    stamped = datetime(2026, 11, 23, 9, tzinfo=UTC)
    file = BankFile(message_id="TH1", kind="COLLECT", creditor=creditor, stamped_at=stamped)
    order = BankOrder(
        payment=UUID(int=1), kind="COLLECT", name="Jane Jones", amount=Decimal("92.00"), currency="EUR", text="Order",
        due_on=date(2026, 11, 26), sequence="OOFF", batch="TH-1", bic="", address={},
        mandate=SepaMandate(mandate="M-1", signed_on=date(2026, 11, 23)),
    )  # fmt: skip
    return render_payment_file(file, [order])


@pytest.mark.parametrize("schema", COLLECTION_SCHEMAS)
def test_an_invalid_file_is_refused_with_the_place_and_without_the_value(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payment_files, "_open_iban", lambda _: IBAN)
    assert IBAN.encode() in render(schema)
    spoiled = f"{IBAN}-of-nobody"
    monkeypatch.setattr(payment_files, "_open_iban", lambda _: spoiled)
    with pytest.raises(InvalidPaymentFileError) as refused:
        render(schema)
    assert "IBAN" in str(refused.value).rpartition("/")[2]
    assert IBAN not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_schema_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payment_files, "_open_iban", lambda _: IBAN)
    payment_files._load_schema.cache_clear()
    for _ in range(3):
        render("pain.008.001.02")
    assert payment_files._load_schema.cache_info().misses == 1
