"""Which rows are read for the notifications of one round, and which of them are rendered."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest

from gateway.models import Notification, Payment, Registration, RiskDecision
from gateway.payments import webhook_payloads
from gateway.payments.webhook_payloads import build_webhook_payloads
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

URL = "https://shop.example/n"
_ids = itertools.count(1_000_000)


def pay(shop: Shop, **fields: str) -> Payment:
    return Payment.objects.get(pk=shop.api.pay(**fields).id)


def note(payment: Payment, **values: Any) -> Notification:
    """A notification of the present state of ``payment``, beside its own."""
    return Notification(
        **{
            "id": next(_ids),
            "merchant_id": payment.merchant_id, "channel_id": payment.channel_id, "kind": "PAYMENT",
            "action": "UPDATED", "payment_id": payment.pk, "sequence": payment.sequence,
            "created_at": payment.created_at, **values,
        }
    )  # fmt: skip


def build(notes: Iterable[Notification], rendered: Iterable[Notification]) -> dict[int, tuple[str, str]]:
    """Of each notification the id that its payload names, '' without one, and the URL that is called."""
    built = build_webhook_payloads(list(notes), {one.pk for one in rendered})
    return {
        ident: (json.loads(one.text)["payload"]["id"] if one.text else "", one.return_url)
        for ident, one in built.items()
    }


def url_of(payment: Payment) -> str:
    return f"{URL}?id={payment.pk.hex}&resourcePath=%2Fv1%2Fpayments%2F{payment.pk.hex}"


def test_a_payload_is_rendered_where_it_is_wanted_and_an_old_url_called_where_there_is_one(shop: Shop) -> None:
    plain, other = pay(shop), pay(shop)
    called, also_called = pay(shop, notificationUrl=URL), pay(shop, notificationUrl=URL)
    pay(shop, notificationUrl=URL)
    notes = {one.pk: note(one) for one in (plain, other, called, also_called)}
    wanted = [notes[plain.pk], notes[called.pk]]
    assert build(notes.values(), wanted) == {
        notes[plain.pk].pk: (plain.pk.hex, ""),
        notes[called.pk].pk: (called.pk.hex, url_of(called)),
        notes[also_called.pk].pk: ("", url_of(also_called)),
    }
    # All of them, none of them, and two notifications of one payment.
    assert set(build(notes.values(), notes.values())) == {one.pk for one in notes.values()}
    assert set(build(notes.values(), [])) == {notes[called.pk].pk, notes[also_called.pk].pk}
    again = note(plain)
    assert build([notes[plain.pk], again], [again]) == {
        notes[plain.pk].pk: ("", ""), again.pk: (plain.pk.hex, ""),
    }  # fmt: skip
    assert build([], []) == {}


def test_one_that_cannot_be_rendered_holds_no_other_back(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    failing, other = (note(pay(shop)) for _ in range(2))
    render = webhook_payloads.render_webhook_payload

    def fail_for_one(notification: Notification, *call: Any, **names: Any) -> dict[str, Any]:
        if notification.pk == failing.pk:
            raise RuntimeError
        return render(notification, *call, **names)

    monkeypatch.setattr(webhook_payloads, "render_webhook_payload", fail_for_one)
    assert list(build([failing, other], [failing, other])) == [other.pk]


@pytest.mark.parametrize("moved", [True, False])
def test_a_payment_that_moved_on_is_told_as_it_was_then(shop: Shop, moved: bool) -> None:
    """Another one moved, too, with events of the same numbers."""
    held = [Payment.objects.get(pk=shop.api.pay(paymentType="PA").id) for _ in range(2)]
    notes = [note(one) for one in held]
    if moved:
        Payment.objects.update(sequence=7, result_code="800.100.155", status="DECLINED", approved_amount=None)
    built = build_webhook_payloads(notes, {one.pk for one in notes})
    codes = [json.loads(built[one.pk].text)["payload"]["result"]["code"] for one in notes]
    assert codes == ["000.100.110"] * 2


def test_a_registration_is_told_as_it_is_stored_and_only_where_it_is_rendered(
    shop: Shop, django_assert_num_queries: Any
) -> None:
    paid, other = (pay(shop, createRegistration="true") for _ in range(2))
    assert Registration.objects.count() == 2
    notes = [note(one, kind="REGISTRATION", registration=one.registration) for one in (paid, other)]
    assert paid.registration is not None
    assert build(notes, notes[:1]) == {notes[0].pk: (paid.registration.hex, "")}
    assert webhook_payloads._load_registrations(notes, {notes[0].pk}).keys() == {paid.registration}
    assert webhook_payloads._load_registrations(notes, set()) == {}
    plain = note(pay(shop))
    with django_assert_num_queries(0):
        assert webhook_payloads._load_registrations([plain], {plain.pk}) == {}


def test_a_decision_is_read_for_notifications_of_risk_that_are_rendered(shop: Shop) -> None:
    checked, other, paid = (Payment.objects.get(pk=shop.api.pay(paymentType=kind).id) for kind in ("RI", "RI", "DB"))
    assert RiskDecision.objects.filter(pk__in=(checked.pk, other.pk)).count() == 2
    notes = [note(checked, kind="RISK"), note(other, kind="RISK"), note(paid)]
    cases: list[tuple[list[Notification], set[UUID]]] = [
        (notes, {checked.pk, other.pk}), (notes[:1], {checked.pk}), (notes[2:], set()), ([], set()),
    ]  # fmt: skip
    for rendered, found in cases:
        decisions = webhook_payloads._load_decisions(notes, {one.pk for one in rendered})
        assert decisions.keys() == found
        assert all(decisions[ident].pk == ident for ident in found)


def test_another_kind_is_rendered_by_its_own_source(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []

    def source(notifications: Any) -> dict[int, dict[str, Any]]:
        asked.append([one.pk for one in notifications])
        return {one.pk: {"id": f"of {one.kind}"} for one in notifications}

    monkeypatch.setattr(webhook_payloads, "_PAYLOAD_SOURCES", {"SCHEDULE": source, "CHECKOUT": source})
    paid = pay(shop)
    notes = [note(paid, kind="SCHEDULE"), note(paid, kind="SCHEDULE"), note(paid, kind="CHECKOUT"), note(paid)]
    assert build(notes, [notes[0], notes[3]]) == {notes[0].pk: ("of SCHEDULE", ""), notes[3].pk: (paid.pk.hex, "")}
    assert asked == [[notes[0].pk]]
    built = build_webhook_payloads(notes[:1], {notes[0].pk})
    told = json.loads(built[notes[0].pk].text)
    assert (told["type"], told["action"]) == ("SCHEDULE", "UPDATED")
    assert set(told["payload"]) == {"id", "buildNumber"}


def test_the_channels_of_all_that_is_rendered_are_read_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of payments that are still there."""
    asked: list[list[UUID]] = []
    monkeypatch.setattr(webhook_payloads, "prefetch_channels", lambda rows: asked.append([row.pk for row in rows]))
    paid, other = pay(shop), pay(shop, notificationUrl=URL)
    notes = [note(paid), note(paid, payment_id=UUID(int=9)), note(other)]
    assert build(notes, notes[:2]).keys() == {notes[0].pk, notes[2].pk}
    assert asked == [[paid.pk]]
