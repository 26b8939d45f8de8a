"""The card API connector against localstripe: a server of others, in a process of its own, with books of its own.

It knows a few parameters only and no idempotency keys, so the account has the core profile: what was lost is found by
listing, and nothing may be sent twice.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client, override_settings

from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.models import AcquirerAccount, AcquirerExchange, Payment, ProcessorEvent, Status
from gateway.payments import late_outcomes, recovery
from tests.external.peers import Peer, program, running
from tests.support.card_api import CARD, KEY, SIGNING, account_at
from tests.support.client import Answer
from tests.support.faulty_proxy import Cutting, cutting
from tests.support.fixtures import Shop
from tests.support.ports import free_port
from tests.support.receivers import answering, receiving
from tests.support.recovery import claim_after

pytestmark = pytest.mark.django_db

SUCCESS = "000.100.112"
IN_DOUBT = "000.200.001"
CHARGE_DECLINED = "4000000000000341"
CARD_DECLINED = "4000000000000002"
AUTHENTICATES = "4000002500003155"
LAUNCHER = Path(__file__).with_name("on_loopback.py")
INTENTS = r"POST /v1/payment_intents HTTP"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    folder, port = tmp_path_factory.mktemp("localstripe"), free_port()
    kept = f"/tmp/localstripe.pickle={folder / 'books.pickle'}"
    command = [program("python"), LAUNCHER, "--instead", kept, "localstripe", "--port", str(port), "--from-scratch"]
    with running(command, port=port, folder=folder) as found:
        yield found


@pytest.fixture
def between(peer: Peer) -> Iterator[Cutting]:
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=2.0), cutting(peer.port) as proxy:
        yield proxy


@pytest.fixture
def card_shop(shop: Shop, between: Cutting) -> Shop:
    account_at(shop.channel, between.url, profile="core")
    return shop


def ask(peer: Peer, path: str, **form: str) -> Any:
    """The peer itself, asked past our connector and the proxy."""
    body = urlencode(form).encode() if form else None
    request = urllib.request.Request(
        f"http://127.0.0.1:{peer.port}{path}", data=body, headers={"Authorization": f"Bearer {KEY}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read() or b"null")


def books(peer: Peer) -> dict[str, dict[str, Any]]:
    """The peer's intents by our payment's id; one for each, whatever happened on the way."""
    intents = ask(peer, "/v1/payment_intents?limit=1000")["data"]
    found: dict[str, dict[str, Any]] = {}
    for intent in intents:
        ours = intent["metadata"]["tollhouse_payment"]
        assert ours not in found, "made twice"
        found[ours] = intent
    return found


def stands(peer: Peer, intent: dict[str, Any]) -> Decimal:
    """What an intent holds or took, less what was given back."""
    charge = intent["latest_charge"]
    if intent["status"] not in ("requires_capture", "succeeded"):
        return Decimal(0)
    refunds = ask(peer, f"/v1/refunds?limit=1000&charge={charge['id']}")["data"]
    return Decimal(charge["amount"] - sum(one["amount"] for one in refunds)).scaleb(-2)


def agree(peer: Peer) -> None:
    """For every chain of ours: what we say stands is what stands there, and the ids are the same."""
    theirs = books(peer)
    firsts = [one for one in Payment.objects.all() if one.referenced is None and one.payment_type in ("PA", "DB")]
    assert firsts
    for first in firsts:
        members = list(Payment.objects.filter(chain=first.pk))
        assert not [one for one in members if one.status not in (Status.APPROVED, Status.DECLINED)]
        approved = {
            kind: sum(
                (one.approved_amount or Decimal(0))
                for one in members
                if one.payment_type == kind and one.status == Status.APPROVED
            )
            for kind in ("PA", "DB", "CP", "RF", "RV")
        }
        taken = (
            approved["CP"] or approved["PA"] - approved["RV"]
            if first.payment_type == "PA"
            else (approved["DB"] - approved["RV"])
        )
        intent = theirs.get(first.pk.hex)
        assert (stands(peer, intent) if intent else Decimal(0)) == taken - approved["RF"], first
        if first.status == Status.APPROVED:
            assert intent is not None
            assert (first.connector_tx_id, intent["amount"]) == (intent["id"], int(first.amount * 100))


def pay(shop: Shop, kind: str = "DB", number: str = CARD, amount: str = "92.00") -> Answer:
    return shop.api.pay(testMode="EXTERNAL", paymentType=kind, amount=amount, card__number=number)


def recovered(answer: Answer) -> Payment:
    """What ticks of recovery do, until the payment has its answer."""
    for _ in range(5):
        for payment in claim_after(600):
            late_outcomes.mark_outcome_unknown(payment)
            connector = CONNECTORS[payment.connector]
            recovery.record_outcome(
                payment, recovery.resolve_outcome(connector, recovery.build_inquiry(payment, connector), payment)
            )
        payment = Payment.objects.get(pk=answer.id)
        if payment.status != Status.IN_DOUBT:
            break
    return payment


def test_the_peer_listens_on_loopback_alone(peer: Peer) -> None:
    """What listens on the port, by the kernel's own tables: 127.0.0.1, written as either family writes it."""
    listening = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            host, _, port = local.partition(":")
            if state == "0A" and int(port, 16) == peer.port:
                listening.append(host)
    assert listening
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_money_is_held_captured_refunded_and_given_up(card_shop: Shop, peer: Peer) -> None:
    api = card_shop.api
    held = pay(card_shop, "PA")
    captured = api.follow(held.id, "CP", "40.00")
    assert (held.code, captured.code) == (SUCCESS, SUCCESS)
    assert api.follow(held.id, "CP", "10.00").code == "700.400.100"
    for part in ("15.00", "5.00"):
        assert api.follow(captured.id, "RF", part).code == SUCCESS
    whole = pay(card_shop, "PA")
    assert api.follow(whole.id, "CP", "92.00").code == SUCCESS
    given_up = pay(card_shop, "PA")
    assert api.follow(given_up.id, "RV", "10.00").code == "700.400.300"
    assert api.follow(given_up.id, "RV").code == SUCCESS
    paid = pay(card_shop)
    assert api.follow(paid.id, "RF", "2.00").code == SUCCESS
    assert api.follow(paid.id, "RV").code == SUCCESS
    agree(peer)


@pytest.mark.parametrize("kind", ["DB", "PA"])
def test_declines_grant_nothing(card_shop: Shop, peer: Peer, kind: str) -> None:
    declined = pay(card_shop, kind, CHARGE_DECLINED)
    assert (declined.status, declined.code) == (400, "800.100.152")
    wants_more = pay(card_shop, kind, AUTHENTICATES)
    assert (wants_more.status, wants_more.code) == (400, "300.100.100")
    assert books(peer)[wants_more.id]["status"] == "canceled"
    agree(peer)


def test_a_card_is_verified_without_money(card_shop: Shop, peer: Peer) -> None:
    fields = {
        "card.number": CARD,
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
        "card.holder": "Jane Jones",
        "testMode": "EXTERNAL",
    }
    stored = card_shop.api.post("/v1/registrations", fields)
    assert stored.code == SUCCESS
    refused = card_shop.api.post("/v1/registrations", {**fields, "card.number": CARD_DECLINED})
    assert (refused.status, refused.code) == (400, "800.100.152")
    setups = ask(peer, "/v1/setup_intents?limit=1000")["data"]
    assert sorted(one["status"] for one in setups) == ["canceled", "succeeded"]


@pytest.mark.parametrize("kind", ["DB", "PA"])
@pytest.mark.parametrize("cut", ["silent_after", "hangs_up_after", "silent_before", "hangs_up_before"])
def test_what_was_lost_is_found_and_was_never_made_twice(
    card_shop: Shop, peer: Peer, between: Cutting, cut: str, kind: str
) -> None:
    between.cut(cut, INTENTS)
    answer = pay(card_shop, kind)
    assert (answer.status, answer.code) == (200, IN_DOUBT)
    payment = recovered(answer)
    accepted = cut.endswith("after")
    assert payment.status == (Status.APPROVED if accepted else Status.DECLINED)
    assert payment.result_code == (SUCCESS if accepted else "900.100.301")
    assert (answer.id in books(peer)) is accepted
    agree(peer)


@pytest.mark.parametrize("cut", ["silent_after", "hangs_up_before"])
@pytest.mark.parametrize("kind", ["CP", "RF", "RV"])
def test_a_follow_up_that_was_lost_is_found_or_made_anew(
    card_shop: Shop, peer: Peer, between: Cutting, kind: str, cut: str
) -> None:
    first = pay(card_shop, "DB" if kind == "RF" else "PA")
    amount = None if kind == "RV" else "40.00"
    between.cut(cut, r"POST /v1/(refunds|payment_intents/\w+/(capture|cancel)) ")
    answer = card_shop.api.follow(first.id, kind, amount)
    assert answer.code == IN_DOUBT
    accepted = cut.endswith("after")
    assert recovered(answer).status == (Status.APPROVED if accepted else Status.DECLINED)
    agree(peer)
    if not accepted:
        assert card_shop.api.follow(first.id, kind, amount).code == SUCCESS
        agree(peer)


def test_a_decline_that_was_lost_is_found(card_shop: Shop, peer: Peer, between: Cutting) -> None:
    between.cut("hangs_up_after", INTENTS)
    answer = pay(card_shop, number=CHARGE_DECLINED)
    assert answer.code == IN_DOUBT
    assert recovered(answer).result_code == "800.100.152"
    agree(peer)


def test_an_approval_is_taken_back_once_however_often_it_is_asked_for(card_shop: Shop, peer: Peer) -> None:
    connector = CONNECTORS["stripe"]
    for kind in ("PA", "DB"):
        answer = pay(card_shop, kind)
        payment = Payment.objects.select_related("merchant").get(pk=answer.id)
        for _ in range(2):
            assert connector.void(recovery.build_inquiry(payment, connector)).code == "900.100.301"
        assert stands(peer, books(peer)[answer.id]) == 0


def test_nothing_secret_is_kept_of_what_was_said(card_shop: Shop, peer: Peer) -> None:
    pay(card_shop)
    pay(card_shop, number=CHARGE_DECLINED)
    text = json.dumps(list(AcquirerExchange.objects.values_list("sent", "received")))
    for secret in (CARD, CHARGE_DECLINED, KEY):
        assert secret not in text


def test_its_webhooks_are_signed_as_ours_are_checked(card_shop: Shop, peer: Peer) -> None:
    """The peer signs by itself; its very bytes are handed to our door."""
    account = AcquirerAccount.objects.get()
    with receiving(answering()) as receiver:
        hook = {"url": receiver.url, "secret": SIGNING}
        ask(peer, "/_config/webhooks/ours", **hook)
        pay(card_shop)
        deadline = clock.real_now() + timedelta(seconds=20)
        while not receiver.requests:
            assert clock.real_now() < deadline, "no webhook came"
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    header = next(
        line.partition(b":")[2].strip().decode()
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"stripe-signature")
    )
    for sent, status in ((body, 200), (body + b" ", 400)):
        answer: Any = Client().post(
            f"/connectors/stripe/{account.pk}",
            sent,
            content_type="application/json",
            headers={"Stripe-Signature": header},
        )
        assert answer.status_code == status
    assert ProcessorEvent.objects.get().kind.startswith("payment_intent.")
