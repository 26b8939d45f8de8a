"""Each limit and block of an agreement by itself, and which references of it a network is told.

Source: Part B, Card on file; docs/decisions/0015.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.models import Agreement, Merchant, Payment
from gateway.payments.agreements import (
    AgreementUse,
    drop_references_of_other_network,
    find_agreement_violation,
    has_agreement_limits,
    is_agreement_blocked,
)
from tests.support.client import Api
from tests.support.fixtures import Shop

NOW = datetime(2035, 11, 15, 12, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
TODAY = NOW.date()
MERCHANT = Merchant(time_zone="UTC")
INITIAL_ID, LINK_ID = "standingInstruction.initialTransactionId", "standingInstruction.agreementId"


def use(agreement: Agreement | None = None, **values: Any) -> AgreementUse:
    return AgreementUse(**{
        "agreement": agreement, "counts_towards_limits": False, "expiry": None, "scheme_references": {}, **values,
    })  # fmt: skip


# --- references -----------------------------------------------------------------------------------------------------

SAID = {INITIAL_ID: "first", LINK_ID: "link"}


@pytest.mark.parametrize(
    ("began", "link", "brand", "told"),
    [
        ("VISA", "", "VISA", SAID),
        ("VISA", "", "VISADEBIT", SAID),
        ("MASTER", "", "MAESTRO", SAID),
        ("AMEX", "", "AMEX", SAID),
        ("VISA", "", "AMEX", {INITIAL_ID: "", LINK_ID: ""}),
        ("AMEX", "", "DINERS", {INITIAL_ID: "", LINK_ID: ""}),
        ("VISA", "", "MASTER", {INITIAL_ID: "", LINK_ID: ""}),
        ("VISA", "newer", "MASTER", {INITIAL_ID: "", LINK_ID: "newer"}),
        ("VISA", "newer", "MASTERDEBIT", {INITIAL_ID: "", LINK_ID: "newer"}),
        ("MASTER", "newer", "VISA", {INITIAL_ID: "", LINK_ID: ""}),
        ("", "", "VISA", SAID),
        ("WALLET1", "", "VISA", SAID),
        ("VISA", "", "WALLET1", SAID),
    ],
)
def test_a_network_is_told_no_reference_of_another_one(began: str, link: str, brand: str, told: dict[str, str]) -> None:
    """But Mastercard the link that a payment with a card of its own has brought since."""
    asked = use(Agreement(transaction_link=link), scheme_references=SAID, brand=began)
    found = drop_references_of_other_network(asked, brand)
    assert found is not None
    assert (found.scheme_references, found.agreement, found.brand) == (told, asked.agreement, began)


def test_without_an_agreement_there_is_no_link_to_tell() -> None:
    found = drop_references_of_other_network(use(scheme_references=SAID, brand="VISA"), "MASTER")
    assert found is not None
    assert found.scheme_references == {INITIAL_ID: "", LINK_ID: ""}
    assert drop_references_of_other_network(None, "MASTER") is None
    plain = use(Agreement(transaction_link="newer"), brand="VISA")
    assert drop_references_of_other_network(plain, "MASTER") is plain


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agreed", "own", "past"),
    [
        (None, None, None),
        (TODAY, None, None),
        (TODAY - DAY, None, TODAY - DAY),
        (None, TODAY, None),
        (None, TODAY - DAY, TODAY - DAY),
        (TODAY + DAY, TODAY - DAY, TODAY - DAY),
        (TODAY - 2 * DAY, TODAY - DAY, TODAY - 2 * DAY),
        (TODAY + DAY, TODAY + DAY, None),
    ],
)
def test_no_authorization_after_the_earlier_of_both_expiries(
    agreed: date | None, own: date | None, past: date | None
) -> None:
    found = find_agreement_violation(use(Agreement(expiry=agreed), expiry=own), MERCHANT, NOW)
    assert (found is not None) is (past is not None)
    if found is not None:
        assert (found.name, found.code) == ("standingInstruction.expiry", "700.500.002")
        assert found.message.endswith(f"after {past}")


def test_without_an_agreement_nothing_is_limited() -> None:
    assert find_agreement_violation(None, MERCHANT, NOW) is None
    assert find_agreement_violation(use(counts_towards_limits=True, merchant_initiated=True), MERCHANT, NOW) is None


@pytest.mark.parametrize(
    ("values", "limited"), [({}, False), ({"max_payments": 0}, True), ({"frequency": 0}, True)], ids=str
)
def test_an_agreement_has_limits_where_a_number_or_days_were_agreed(values: dict[str, int], limited: bool) -> None:
    assert has_agreement_limits(Agreement(**values)) is limited


@pytest.fixture
def agreement(shop: Shop, api: Api) -> Agreement:
    """One that began ten days ago, and was charged three days ago; another one and plain payments are beside it."""
    one, other = (
        Agreement.objects.create(
            id=UUID(int=number), merchant=shop.merchant, channel=shop.channel, reference=f"r{number}",
            registration=UUID(int=number + 10), created_at=NOW - 10 * DAY, first_at=NOW - 10 * DAY,
        )
        for number in (1, 2)
    )  # fmt: skip
    for of, status, ago in ((one, "APPROVED", 3), (one, "DECLINED", 1), (other, "APPROVED", 0), (None, "APPROVED", 0)):
        Payment.objects.filter(pk=api.pay().id).update(
            agreement=of.pk if of is not None else None, status=status, created_at=NOW - ago * DAY
        )
    return one


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, None),
        ({"max_payments": 3}, None),
        ({"max_payments": 2}, "numberOfInstallments"),
        ({"max_payments": 1}, "numberOfInstallments"),
        ({"max_payments": 2, "first_at": None}, None),
        ({"max_payments": 1, "first_at": None}, "numberOfInstallments"),
        ({"frequency": 3}, None),
        ({"frequency": 4}, "frequency"),
        ({"max_payments": 3, "frequency": 4}, "frequency"),
        ({"max_payments": 2, "frequency": 4}, "numberOfInstallments"),
    ],
    ids=str,
)
def test_authorizations_that_were_not_declined_count_with_the_first(
    agreement: Agreement, values: dict[str, Any], name: str | None
) -> None:
    for field, value in values.items():
        setattr(agreement, field, value)
    counted = use(agreement, counts_towards_limits=True, merchant_initiated=True)
    found = find_agreement_violation(counted, MERCHANT, NOW)
    assert (found.name if found is not None else None) == (f"standingInstruction.{name}" if name else None)
    if found is not None:
        assert found.code == "700.500.001"
    assert find_agreement_violation(use(agreement, merchant_initiated=True), MERCHANT, NOW) is None


@pytest.mark.django_db
@pytest.mark.parametrize(("frequency", "broken"), [(10, False), (11, True)])
def test_the_days_are_counted_from_the_first_where_none_followed(
    agreement: Agreement, frequency: int, broken: bool
) -> None:
    Payment.objects.filter(agreement=agreement.pk).update(agreement=None)
    agreement.frequency = frequency
    found = find_agreement_violation(use(agreement, counts_towards_limits=True), MERCHANT, NOW)
    assert (found is not None) is broken
    agreement.first_at = None
    assert find_agreement_violation(use(agreement, counts_towards_limits=True), MERCHANT, NOW) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("since", "registration", "again", "blocked"),
    [
        (None, UUID(int=11), None, False),
        (NOW, UUID(int=11), None, True),
        (NOW, None, None, True),
        (NOW, UUID(int=11), NOW + SECOND, False),
        (NOW, UUID(int=11), NOW, True),
        (NOW, UUID(int=11), NOW - SECOND, True),
        (NOW, None, NOW + SECOND, True),
    ],
)
def test_a_chargeback_for_fraud_stops_the_merchant_until_the_holder_agrees_again(
    agreement: Agreement, since: datetime | None, registration: UUID | None, again: datetime | None, blocked: bool
) -> None:
    """``again``: when the next agreement was made with the same means. That of other means says nothing."""
    agreement.merchant_use_blocked_at, agreement.registration = since, registration
    agreement.merchant_use_code = "000.100.203"
    Agreement.objects.filter(pk=UUID(int=2)).update(created_at=NOW + DAY)
    if again is not None:
        Agreement.objects.create(
            id=UUID(int=3), merchant_id=agreement.merchant_id, channel_id=agreement.channel_id, reference="r3",
            registration=registration, created_at=again,
        )  # fmt: skip
    assert is_agreement_blocked(agreement) is blocked
    found = find_agreement_violation(use(agreement, merchant_initiated=True), MERCHANT, NOW)
    assert (found is not None) is blocked
    if found is not None:
        assert (found.name, found.code) == (INITIAL_ID, "000.100.203")
    assert find_agreement_violation(use(agreement), MERCHANT, NOW) is None, "its holder may pay"
