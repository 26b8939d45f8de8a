"""A processor's webhooks: signed, kept once, acted on by asking the processor. docs/connectors/card-api.md."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from datetime import time as day_time
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, override_settings

from chargebacks import cases
from chargebacks.models import Chargeback, DisputeAlert
from chargebacks.stages import choose_next_stage
from gateway.access.audit_log import Actor
from gateway.backoffice.payments.chain_sums import summarize_chain
from gateway.backoffice.payments.chain_words import sum_chain
from gateway.connectors.accounts import seal_connector_secrets
from gateway.connectors.card_api import webhook_signature
from gateway.connectors.card_api.client import ObjectNotFoundError
from gateway.core import clock, identifiers
from gateway.core.result_codes import OUTCOME_UNKNOWN_CODE
from gateway.core.secret import Secret
from gateway.models import (
    AcquirerAccount,
    AuditEntry,
    Notification,
    OpenPayment,
    Payment,
    PaymentEvent,
    ProcessorEvent,
    Status,
    ThreeDSecureConfiguration,
)
from gateway.payments import store
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import ChainStatus, resolve_chain_status
from gateway.payments.stored_answer import begin_next_attempt
from gateway.processor_events import event_processing
from gateway.processor_events.event_outcomes import EventOutcome
from gateway.processor_events.intake import MAX_EVENT_BYTES
from tests.support.card_api import AUTHENTICATES, KEY, SIGNING, CardApi, account_at, card_api, second_account_at
from tests.support.client import Answer
from tests.support.clock import jump
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.office import signed_in
from tests.support.recovery import recover_after
from tests.support.threeds import Shopper, buy

pytestmark = pytest.mark.django_db

State = ProcessorEvent.State
APPROVED = "000.100.112"


def signed(body: bytes, secret: str = SIGNING, at: int | None = None) -> str:
    """The documented scheme, written down once more: HMAC-SHA256 of the time, a dot and the body."""
    moment = int(time.time()) if at is None else at
    text = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={text}"


@dataclass(frozen=True, kw_only=True)
class Sender:
    """The processor's side of the webhook."""

    account: AcquirerAccount
    http: Client

    def send(self, body: bytes, header: str | None = None, **more: Any) -> HttpResponse:
        headers = {"Stripe-Signature": signed(body) if header is None else header}
        path = f"/connectors/stripe/{self.account.pk}"
        answer: Any = self.http.post(path, body, content_type="application/json", headers=headers, **more)
        return answer

    def tell(self, kind: str, ident: str, event: str = "") -> ProcessorEvent:
        """An event about an object is sent, and acted on."""
        name = event or f"evt_{identifiers.row_id().hex}"
        assert self.send(body_of(kind, ident, name)).status_code == 200
        event_processing.process_due_events()
        return ProcessorEvent.objects.get(event_id=name)


def body_of(kind: str, ident: str, event: str = "evt_1") -> bytes:
    return json.dumps({"id": event, "object": "event", "type": kind, "data": {"object": {"id": ident}}}).encode()


@pytest.fixture
def sender(card_shop: Shop) -> Sender:
    return Sender(account=AcquirerAccount.objects.get(), http=Client(raise_request_exception=False))


def pay(shop: Shop, kind: str = "DB", **more: str) -> Answer:
    return shop.api.pay(testMode="EXTERNAL", paymentType=kind, card__number="4242424242424242", **more)


def intent_of(processor: CardApi, answer: Answer) -> dict[str, Any]:
    return next(one for one in processor.of("payment_intent") if one["metadata"]["tollhouse_payment"] == answer.id)


# --- the signature ------------------------------------------------------------------------------------------------

AT = 1_700_000_000
BODY = b'{"id":"evt_1"}'


def test_the_documented_scheme_fits_a_signature_made_elsewhere() -> None:
    """Made with: printf '%s' '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_of_the_example"""
    header = f"t={AT},v1=62eb50816705414de65cf6e1d1770543b0f016d09d6ebde015c4a16477b58c51"
    assert webhook_signature.explain_bad_signature(header, BODY, [Secret("whsec_of_the_example")], AT) == ""


@pytest.mark.parametrize("at", [AT - 300, AT, AT + 300])
def test_a_signature_is_good_for_five_minutes_either_way(at: int) -> None:
    assert webhook_signature.explain_bad_signature(signed(BODY, at=AT), BODY, [Secret(SIGNING)], at) == ""
    assert "older than 300 seconds" in webhook_signature.explain_bad_signature(
        signed(BODY, at=AT), BODY, [Secret(SIGNING)], AT + 301
    )
    assert "future" in webhook_signature.explain_bad_signature(signed(BODY, at=AT), BODY, [Secret(SIGNING)], AT - 301)


def test_one_of_several_signatures_and_secrets_is_enough() -> None:
    """While the secret is rotated, on either side."""
    old, new = signed(BODY, "whsec_old", AT), signed(BODY, "whsec_new", AT).partition(",")[2]
    both = f"{old},{new},v0={'0' * 64}"
    for secrets in (["whsec_old"], ["whsec_new"], ["whsec_other", "whsec_new"]):
        assert webhook_signature.explain_bad_signature(both, BODY, [Secret(one) for one in secrets], AT) == ""
    assert webhook_signature.explain_bad_signature(both, BODY, [Secret("whsec_other")], AT) == "no signature fits"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "t=1",
        f"t={AT}",
        f"v1={'0' * 64}",
        f"t={AT},v0={'0' * 64}",
        f"t={AT},v1=zz",
        f"t={AT},t={AT},v1={'0' * 64}",
        f"t=-1,v1={'0' * 64}",
        f"t={'9' * 400},v1={'0' * 64}",
        "=,=,=",
        "v1" * 3_000,
        f"t={AT},v1={'0' * 64}",
        f"t=\u0661,v1={'0' * 64}",
    ],
)
def test_what_is_no_signature_is_refused_in_words(header: str) -> None:
    assert webhook_signature.explain_bad_signature(header, BODY, [Secret(SIGNING)], AT)


# --- taking in ----------------------------------------------------------------------------------------------------


def test_a_signed_event_is_kept_once_however_often_it_comes(sender: Sender) -> None:
    body = body_of("payment_intent.succeeded", "pi_1")
    for _ in range(3):
        answer = sender.send(body)
        assert (answer.status_code, json.loads(answer.content)) == (200, {"received": True})
    row = ProcessorEvent.objects.get()
    assert (row.event_id, row.kind, row.object_id, row.state) == (
        "evt_1",
        "payment_intent.succeeded",
        "pi_1",
        State.NEW,
    )


def test_events_of_no_concern_are_acknowledged_and_forgotten(sender: Sender) -> None:
    assert sender.send(body_of("customer.created", "cus_1")).status_code == 200
    assert not ProcessorEvent.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"7",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"id": "evt_1"}',
        b'{"id": 7, "type": "refund.created", "data": {"object": {"id": "re_1"}}}',
        b'{"id": "evt_1", "type": "refund.created", "data": {"object": {"id": "re 1"}}}',
        b'{"id": "evt_\\u0000", "type": "refund.created", "data": {"object": {"id": "re_1"}}}',
        b'{"id": "evt_1", "type": "refund.created", "data": []}',
        b'{"id": "evt_1", "type": ["refund.created"], "data": {"object": {"id": "re_1"}}}',
    ],
)
def test_garbage_is_refused_and_nothing_is_kept(sender: Sender, body: bytes) -> None:
    assert sender.send(body).status_code == 400
    assert not ProcessorEvent.objects.exists()


def test_a_stranger_a_recorded_message_and_a_changed_one_are_refused(sender: Sender) -> None:
    body = body_of("payment_intent.succeeded", "pi_1")
    old = signed(body, at=int(time.time()) - 3_600)
    for header in (signed(body, "whsec_another"), old, signed(body + b" "), ""):
        answer = sender.send(body, header)
        assert answer.status_code == 400
        assert "error" in json.loads(answer.content)
    assert not ProcessorEvent.objects.exists()


def test_bodies_have_a_limit(sender: Sender) -> None:
    assert sender.send(b" " * (MAX_EVENT_BYTES + 1)).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "/connectors/stripe/",
        "/connectors/stripe/4711",
        "/connectors/other/1",
        f"/connectors/stripe/{'0' * 32}",
        "/connectors/stripe/00000000-0000-0000-0000-000000000000",
    ],
)
def test_an_address_of_nobody_is_not_found(sender: Sender, path: str) -> None:
    body = body_of("payment_intent.succeeded", "pi_1")
    answer = sender.http.post(path, body, content_type="application/json", headers={"Stripe-Signature": signed(body)})
    assert answer.status_code == 404


def test_another_connectors_account_and_other_methods_take_no_events(sender: Sender) -> None:
    path = f"/connectors/stripe/{sender.account.pk}"
    assert sender.http.get(path).status_code == 405
    AcquirerAccount.objects.update(connector="stub")
    assert sender.send(body_of("payment_intent.succeeded", "pi_1")).status_code == 404


def test_an_account_without_a_signing_secret_takes_no_events(sender: Sender) -> None:
    account = sender.account
    AcquirerAccount.objects.update(secrets_sealed=seal_connector_secrets({"api_key": KEY}, account.pk))
    assert sender.send(body_of("payment_intent.succeeded", "pi_1")).status_code == 400


def test_the_signing_secret_stands_nowhere(sender: Sender) -> None:
    sender.send(body_of("payment_intent.succeeded", "pi_1"), "t=1,v1=2")
    assert not places_of(SIGNING, KEY)


# --- acting -------------------------------------------------------------------------------------------------------


def test_an_event_wakes_the_payment_it_names_and_is_not_believed(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    processor.fault("silent_after")
    answer = pay(card_shop)
    assert answer.code == OUTCOME_UNKNOWN_CODE
    OpenPayment.objects.update(recover_at="2099-01-01T00:00:00Z")
    row = sender.tell("payment_intent.payment_failed", intent_of(processor, answer)["id"])
    assert row.state == State.NEW  # and looked at again, once its payment has a result
    assert Payment.objects.get().status == Status.IN_DOUBT
    assert OpenPayment.objects.get().recover_at.year < 2099


def test_an_event_about_nothing_of_ours_is_ignored(card_shop: Shop, processor: CardApi, sender: Sender) -> None:
    assert sender.tell("payment_intent.succeeded", "pi_unknown").state == State.IGNORED
    with processor.lock:
        other = processor.make("payment_intent", "pi", {}, status="succeeded", amount=100, currency="eur")
    assert sender.tell("payment_intent.succeeded", other["id"]).state == State.IGNORED


def test_another_merchants_account_says_nothing_about_this_ones_payments(
    card_shop: Shop, stranger: Shop, processor: CardApi, sender: Sender
) -> None:
    """R11."""
    paid = pay(card_shop)
    AcquirerAccount.objects.filter(pk=sender.account.pk).update(channel=stranger.channel)
    intent = intent_of(processor, paid)
    refund = processor.refund(intent, 1_000)
    assert sender.tell("refund.created", refund["id"]).state == State.IGNORED
    assert Payment.objects.count() == 1


def test_a_refund_made_in_the_processors_own_pages_is_recorded_once(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    paid = pay(card_shop)
    intent = intent_of(processor, paid)
    refund = processor.refund(intent, 1_250)
    first = sender.tell("refund.created", refund["id"])
    again = sender.tell("charge.refunded", intent["latest_charge"]["id"])
    (made,) = Payment.objects.filter(payment_type="RF")
    assert (made.approved_amount, made.status, made.connector_tx_id) == (
        Decimal("12.50"),
        Status.APPROVED,
        refund["id"],
    )
    assert (first.state, first.recorded, again.state, again.recorded) == (State.DONE, made.pk, State.DONE, made.pk)
    assert card_shop.api.follow(paid.id, "RF", "79.51").code == "700.400.200"
    assert card_shop.api.follow(paid.id, "RF", "79.50").code == "000.100.112"


def test_a_refund_of_a_capture_goes_to_the_capture(card_shop: Shop, processor: CardApi, sender: Sender) -> None:
    held = pay(card_shop, "PA")
    captured = card_shop.api.follow(held.id, "CP", "40.00")
    refund = processor.refund(intent_of(processor, held), 500)
    assert sender.tell("refund.created", refund["id"]).state == State.DONE
    assert Payment.objects.get(payment_type="RF").referenced == Payment.objects.get(pk=captured.id).pk


def test_our_own_refunds_are_not_recorded_a_second_time(card_shop: Shop, processor: CardApi, sender: Sender) -> None:
    paid = pay(card_shop)
    assert card_shop.api.follow(paid.id, "RF", "10.00").code == "000.100.112"
    (refund,) = processor.of("refund")
    assert sender.tell("refund.created", refund["id"]).state == State.DONE
    assert sender.tell("charge.refunded", refund["charge"]).state == State.DONE
    assert Payment.objects.filter(payment_type="RF").count() == 1


@pytest.mark.parametrize("made", ["by us", "in the processor's pages", "as a reversal"])
@pytest.mark.parametrize(("status", "reason"), [("failed", "lost_or_stolen_card"), ("canceled", "")])
def test_a_refund_that_fails_after_it_was_approved_can_be_made_again(
    card_shop: Shop, processor: CardApi, sender: Sender, made: str, status: str, reason: str
) -> None:
    """Its money goes back into what can be refunded, with an event and a webhook, and a person is told once."""
    paid = pay(card_shop)
    if made == "by us":
        assert card_shop.api.follow(paid.id, "RF", "92.00").code == APPROVED
    elif made == "as a reversal":
        assert card_shop.api.follow(paid.id, "RV").code == APPROVED
    else:
        assert sender.tell("refund.created", processor.refund(intent_of(processor, paid), 9_200)["id"]).recorded
    row = Payment.objects.exclude(pk=paid.id).get()
    (refund,) = processor.of("refund")
    assert card_shop.api.follow(paid.id, "RF", "1.00").code == "700.400.200"
    refund["status"], refund["failure_reason"] = status, reason or None
    told = Notification.objects.filter(payment=row.pk, action="UPDATED")
    assert not told.exists()
    flagged = sender.tell("refund.failed", refund["id"])
    assert (flagged.state, flagged.payment) == (State.FLAGGED, row.pk)
    for kind in ("refund.updated", "charge.refund.updated"):
        assert sender.tell(kind, refund["id"]).state == State.DONE
    row.refresh_from_db()
    assert (row.status, row.returned_at is not None, told.count()) == (Status.APPROVED, True, 1)
    details = card_shop.api.read(row.id.hex).body["resultDetails"]
    assert (details["transferReturned"], details["transferReturnReason"]) == ("true", reason or status)
    first = Payment.objects.select_related("standing").get(pk=paid.id)
    assert resolve_chain_status(first) == ChainStatus.CAPTURED
    assert sum_chain(Chain([first, row]))["kept"] == Decimal("92.00")
    assert {one.name: one.amount for one in summarize_chain(Chain([first, row]))}["Still to refund"] == Decimal("92.00")
    again = card_shop.api.follow(paid.id, "RF", "92.00")
    assert again.code == APPROVED
    assert resolve_chain_status(Payment.objects.select_related("standing").get(pk=paid.id)) == ChainStatus.REFUNDED


def test_a_refund_that_changes_while_its_failure_is_written_is_looked_at_again(
    card_shop: Shop, processor: CardApi, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two workers with two events of one failure, one writes; the other reads what it wrote."""
    assert card_shop.api.follow(pay(card_shop).id, "RF", "20.00").code == APPROVED
    (refund,) = processor.of("refund")
    refund["status"] = "failed"
    record = store.record_returned_transfer

    def overtaken(payment: Payment, reason: str, **more: Any) -> None:
        record(Payment.objects.get(pk=payment.pk), reason, **more)
        record(payment, reason, **more)

    monkeypatch.setattr(store, "record_returned_transfer", overtaken)
    row = sender.tell("refund.failed", refund["id"])
    assert row.state == State.NEW
    ProcessorEvent.objects.update(due_at="2020-01-01T00:00:00Z")
    event_processing.process_due_events()
    row.refresh_from_db()
    assert (row.state, row.payment) == (State.FLAGGED, Payment.objects.get(payment_type="RF").pk)
    assert sender.tell("refund.updated", refund["id"]).why == "recorded before"
    assert PaymentEvent.objects.filter(event="return").count() == 1


def process_again(row: ProcessorEvent) -> ProcessorEvent:
    ProcessorEvent.objects.filter(pk=row.pk).update(due_at="2020-01-01T00:00:00Z")
    event_processing.process_due_events()
    return ProcessorEvent.objects.get(pk=row.pk)


def test_a_worker_that_dies_after_it_recorded_a_failed_refund_leaves_its_flag_to_the_next(
    card_shop: Shop, processor: CardApi, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert card_shop.api.follow(pay(card_shop).id, "RF", "20.00").code == APPROVED
    (refund,) = processor.of("refund")
    refund["status"] = "failed"
    with monkeypatch.context() as dying:
        dying.setattr(event_processing, "_finish_event", lambda *args: None)
        row = sender.tell("refund.failed", refund["id"])
    refunded = Payment.objects.get(payment_type="RF")
    assert (row.state, refunded.returned_at is not None) == (State.NEW, True)
    row = process_again(row)
    assert (row.state, row.payment) == (State.FLAGGED, refunded.pk)
    assert sender.tell("charge.refunded", refund["charge"]).why == "recorded before"
    ProcessorEvent.objects.filter(pk=row.pk).update(state=State.DONE)  # settled by hand
    assert sender.tell("refund.updated", refund["id"]).why == "recorded before"
    assert PaymentEvent.objects.filter(event="return").count() == 1


@pytest.mark.parametrize("first", ["failed", "open"])
def test_a_refund_that_waits_hides_no_failed_one_of_its_charge(
    card_shop: Shop, processor: CardApi, sender: Sender, first: str
) -> None:
    """In whatever order the processor lists them: the failure is recorded at once, and flagged once all is known."""
    paid = pay(card_shop)
    ours = [card_shop.api.follow(paid.id, "RF", amount).id for amount in ("20.00", "30.00")]
    refunds = processor.of("refund")
    for refund in refunds:
        refund["status"] = "failed"
    failed, waiting = ours if first == "failed" else ours[::-1]
    Payment.objects.filter(pk=waiting).update(status=Status.IN_DOUBT)
    row = sender.tell("charge.refunded", refunds[0]["charge"])
    assert row.state == State.NEW
    assert Payment.objects.get(pk=failed).returned_at is not None
    Payment.objects.filter(pk=waiting).update(status=Status.DECLINED)
    row = process_again(row)
    assert (row.state, row.payment) == (State.FLAGGED, Payment.objects.get(pk=failed).pk)


def test_a_refund_that_fits_nowhere_is_flagged(card_shop: Shop, processor: CardApi, sender: Sender) -> None:
    refund = processor.refund(intent_of(processor, pay(card_shop)), 99_999)
    row = sender.tell("refund.created", refund["id"])
    assert row.state == State.FLAGGED
    assert "700.400.200" in row.why


@pytest.mark.parametrize(("reason", "code"), [("fraudulent", "000.100.220"), ("a_word_of_tomorrow", "000.100.200")])
def test_a_dispute_becomes_a_chargeback_with_a_case_and_one_that_is_won_its_reversal(
    card_shop: Shop, processor: CardApi, sender: Sender, reason: str, code: str
) -> None:
    paid = pay(card_shop)
    dispute = processor.dispute(intent_of(processor, paid), 9_200, reason, "needs_response")
    opened = sender.tell("charge.dispute.created", dispute["id"])
    charged = Payment.objects.get(payment_type="CB")
    assert (charged.result_code, charged.approved_amount, charged.referenced) == (
        code,
        Decimal("92.00"),
        Payment.objects.get(pk=paid.id).pk,
    )
    assert (opened.state, opened.recorded) == (State.DONE, charged.pk)
    assert cases.adopt_all_payments() == 1
    assert Chargeback.objects.get().pk == charged.pk
    dispute["status"] = "won"
    for _ in range(2):
        assert sender.tell("charge.dispute.closed", dispute["id"]).state == State.DONE
    won = Payment.objects.get(payment_type="CR")
    assert (won.approved_amount, won.referenced) == (Decimal("92.00"), charged.pk)
    assert Payment.objects.count() == 3


@pytest.mark.parametrize(
    ("days", "at", "left"),
    [(9, "23:59", 9), (9, "16:59", 8), (9, "17:00", 9), (None, "", 6), (0, "", 6), (99_999, "12:00", 6)],
)
def test_the_processors_time_to_answer_is_the_cases(
    card_shop: Shop, processor: CardApi, sender: Sender, days: int | None, at: str, left: int
) -> None:
    """It is shorter than the network's, and a later answer is lost. Without it the network's days stand: Visa's
    6 where no country of the merchant is known."""
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 9_200, "fraudulent", "needs_response")
    today = clock.merchant_now(card_shop.merchant).date()
    due = 0
    if days:
        due = int(datetime.combine(today + timedelta(days=days), day_time.fromisoformat(at), UTC).timestamp())
    dispute["evidence_details"] = {"due_by": None if days is None else due}
    dispute["payment_method_details"] = {"type": "card", "card": {"brand": "visa", "network_reason_code": "10.4"}}
    sender.tell("charge.dispute.created", dispute["id"])
    cases.adopt_all_payments()
    case = Chargeback.objects.get()
    # The network's days count from the case, which may have been opened after midnight.
    since = today if left != 6 else case.opened_at.date()
    assert case.due_at == datetime.combine(since + timedelta(days=left), day_time(17), UTC)
    assert (case.scheme_reason, choose_next_stage("VISA", case.scheme_reason, case.stage)) == ("10.4", "ARBITRATION")
    assert "dispute" not in card_shop.api.read(case.pk.hex).body


def test_evidence_is_taken_until_the_processors_time_where_no_17_00_is_left(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    """The processor told of it late: its last half hour is the merchant's."""
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 9_200, "fraudulent", "needs_response")
    due = clock.merchant_now(card_shop.merchant).replace(microsecond=0) + timedelta(minutes=30)
    dispute["evidence_details"] = {"due_by": int(due.timestamp())}
    sender.tell("charge.dispute.created", dispute["id"])
    cases.adopt_all_payments()
    case = Chargeback.objects.get()
    assert case.opened_at < case.due_at <= due
    cases.expire_overdue_cases()
    assert Chargeback.objects.get().state == Chargeback.State.OPEN


@pytest.mark.parametrize("details", [None, "10.4", {"card": None}, {"card": {"network_reason_code": "not a code!"}}])
def test_a_dispute_without_a_networks_code_has_none(
    card_shop: Shop, processor: CardApi, sender: Sender, details: Any
) -> None:
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 9_200, "fraudulent", "needs_response")
    dispute |= {"payment_method_details": details, "evidence_details": details}
    sender.tell("charge.dispute.created", dispute["id"])
    cases.adopt_all_payments()
    assert Chargeback.objects.get().scheme_reason == ""


CaseState = Chargeback.State


def test_a_dispute_that_is_heard_of_when_it_is_lost_is_a_lost_case(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 1_000, "general", "lost")
    assert sender.tell("charge.dispute.closed", dispute["id"]).state == State.DONE
    assert [one.payment_type for one in Payment.objects.order_by("id")] == ["DB", "CB"]
    case = Chargeback.objects.get()
    assert (case.state, case.note) == (CaseState.LOST, "The processor says that the dispute is lost.")
    assert case.closed_at is not None
    assert cases.adopt_all_payments() == 0


@pytest.mark.parametrize(
    ("states", "ends", "moves"),
    [
        (["needs_response", "lost"], CaseState.LOST, ["open", "lose"]),
        (["needs_response", "under_review"], CaseState.SUBMITTED, ["open", "submit"]),
        (["needs_response", "under_review", "lost"], CaseState.LOST, ["open", "submit", "lose"]),
        (["under_review", "under_review", "lost", "lost"], CaseState.LOST, ["open", "submit", "lose"]),
        (["needs_response", "under_review", "won"], CaseState.WON, ["open", "submit", "reverse"]),
        (["lost", "won"], CaseState.WON, ["open", "lose", "reverse"]),
    ],
)
def test_what_the_processor_says_of_a_dispute_moves_its_case(
    card_shop: Shop, processor: CardApi, sender: Sender, states: list[str], ends: str, moves: list[str]
) -> None:
    """docs/decisions/0156. Evidence that was submitted there keeps the case from its deadline here."""
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 9_200, "fraudulent", "")
    for state in states:
        dispute["status"] = state
        assert sender.tell("charge.dispute.updated", dispute["id"]).state == State.DONE
        cases.adopt_all_payments()
    case = Chargeback.objects.get()
    assert case.state == ends
    assert list(case.events.order_by("sequence").values_list("event", flat=True)) == moves
    assert (case.submitted_at is not None) is ("under_review" in states)
    if "under_review" in states:
        jump(400 * 86_400)
        assert cases.expire_overdue_cases() == 0


def test_a_dispute_that_is_lost_after_its_money_came_back_waits_for_a_person(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    """Its reversal is recorded here, and no second chargeback is: whether the money went again nobody says."""
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 9_200, "fraudulent", "")
    for state in ("needs_response", "won"):
        dispute["status"] = state
        assert sender.tell("charge.dispute.updated", dispute["id"]).state == State.DONE
    dispute["status"] = "lost"
    told = sender.tell("charge.dispute.closed", dispute["id"])
    assert (told.state, "now it is lost" in told.why) == (State.FLAGGED, True)
    assert [one.payment_type for one in Payment.objects.order_by("id")] == ["DB", "CB", "CR"]


def test_a_case_that_was_accepted_is_not_lost_once_more(card_shop: Shop, processor: CardApi, sender: Sender) -> None:
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 9_200, "fraudulent", "needs_response")
    sender.tell("charge.dispute.created", dispute["id"])
    cases.adopt_all_payments()
    cases.accept_dispute(Chargeback.objects.select_related("merchant").get(), Actor(name="ann"), "")
    dispute["status"] = "lost"
    told = sender.tell("charge.dispute.closed", dispute["id"])
    assert (told.state, told.why) == (State.DONE, "recorded before; lost, as its case says")
    assert Chargeback.objects.get().state == CaseState.ACCEPTED


AlertState = DisputeAlert.State


@pytest.mark.parametrize(
    ("states", "ends"),
    [
        (["warning_needs_response"], AlertState.OPEN),
        (["warning_needs_response", "warning_needs_response"], AlertState.OPEN),
        (["warning_needs_response", "warning_under_review"], AlertState.ANSWERED),
        (["warning_under_review", "warning_closed"], AlertState.ANSWERED),
        (["warning_needs_response", "warning_closed"], AlertState.LET_GO),
        (["warning_needs_response", "needs_response"], AlertState.DISPUTED),
    ],
)
def test_an_inquiry_takes_no_money_and_is_an_alert_of_its_payment(
    card_shop: Shop, processor: CardApi, sender: Sender, states: list[str], ends: str
) -> None:
    paid = Payment.objects.get(pk=pay(card_shop).id)
    dispute = processor.dispute(processor.of("payment_intent")[0], 1_000, "product_not_received", "")
    due = clock.merchant_now(card_shop.merchant).replace(microsecond=0) + timedelta(days=5)
    dispute["evidence_details"] = {"due_by": int(due.timestamp())}
    dispute["payment_method_details"] = {"type": "card", "card": {"brand": "visa", "network_reason_code": "13.1"}}
    for state in states:
        dispute["status"] = state
        assert sender.tell("charge.dispute.updated", dispute["id"]).state == State.DONE
        cases.adopt_all_payments()
    alert = DisputeAlert.objects.get()
    assert (alert.kind, alert.state, alert.disputed) == (DisputeAlert.Kind.INQUIRY, ends, paid.pk)
    assert (alert.provider, alert.reference, alert.amount) == ("stripe", dispute["id"], Decimal("10.00"))
    assert (alert.due_at, alert.scheme_reason, alert.reason_code) == (due, "13.1", "000.100.221")
    assert Payment.objects.count() == (2 if ends == AlertState.DISPUTED else 1)
    kinds = Notification.objects.filter(kind="ALERT").values_list("action", flat=True)
    assert list(kinds.order_by("id"))[:1] == ["CREATED"]


def test_an_inquiry_about_a_payment_that_is_charged_back_waits_for_a_person(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    intent = intent_of(processor, pay(card_shop))
    sender.tell("charge.dispute.created", processor.dispute(intent, 1_000, "general", "lost")["id"])
    inquiry = processor.dispute(intent, 1_000, "general", "warning_needs_response")
    told = sender.tell("charge.dispute.created", inquiry["id"])
    assert (told.state, "charged back already" in told.why) == (State.FLAGGED, True)
    assert not DisputeAlert.objects.exists()


def test_a_dispute_that_was_prevented_is_none(card_shop: Shop, processor: CardApi, sender: Sender) -> None:
    dispute = processor.dispute(intent_of(processor, pay(card_shop)), 1_000, "general", "prevented")
    assert sender.tell("charge.dispute.created", dispute["id"]).state == State.IGNORED
    assert (Payment.objects.count(), DisputeAlert.objects.exists()) == (1, False)


def test_an_authorization_that_ran_out_at_the_processor_is_reversed_here(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    intent = intent_of(processor, pay(card_shop, "PA"))
    intent |= {"status": "canceled", "amount_capturable": 0}
    for _ in range(2):
        assert sender.tell("payment_intent.canceled", intent["id"]).state == State.DONE
    (made,) = Payment.objects.filter(payment_type="RV")
    assert (made.approved_amount, made.status) == (Decimal("92.00"), Status.APPROVED)


def test_what_happens_to_the_intent_of_a_declined_attempt_moves_nothing(shop: Shop, processor: CardApi) -> None:
    """After a step-up both attempts' intents name the payment. docs/decisions/0104."""
    channel = shop.open_channel("stepping up", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    account_at(channel, processor.url)
    sender = Sender(account=AcquirerAccount.objects.get(channel=channel), http=Client(raise_request_exception=False))
    exempted = {"testMode": "EXTERNAL", "paymentType": "PA", "threeDSecure.challengeIndicator": "06"}
    held = buy(shop.api_of(channel), AUTHENTICATES, **exempted)
    first = intent_of(processor, held)
    first |= {"status": "canceled", "amount_capturable": 0}
    assert sender.tell("payment_intent.canceled", first["id"]).state == State.DONE
    Shopper.of(held).enter()
    assert Payment.objects.get(pk=held.id).status == Status.APPROVED
    assert sender.tell("payment_intent.canceled", first["id"]).state == State.DONE
    first |= {"status": "requires_capture", "amount_capturable": 9_200}
    row = sender.tell("payment_intent.amount_capturable_updated", first["id"])
    assert (row.state, row.why) == (State.FLAGGED, "stands at the processor, declined here")
    assert Payment.objects.count() == 1
    second = processor.of("payment_intent")[1]
    second |= {"status": "canceled", "amount_capturable": 0}
    assert sender.tell("payment_intent.canceled", second["id"]).state == State.DONE
    assert Payment.objects.get(payment_type="RV").approved_amount == Decimal("92.00")


def test_a_refund_or_dispute_of_a_declined_attempt_is_flagged(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    intent = intent_of(processor, pay(card_shop))
    row = Payment.objects.get()
    Payment.objects.update(answer=begin_next_attempt(row.answer))
    refund = processor.refund(intent, 1_000)
    dispute = processor.dispute(intent, 1_000, "fraudulent", "needs_response")
    told = (sender.tell("refund.created", refund["id"]), sender.tell("charge.dispute.created", dispute["id"]))
    assert [one.why for one in told] == [
        f"{one['id']} is of an attempt that was declined here" for one in (refund, dispute)
    ]
    assert {one.state for one in told} == {State.FLAGGED}
    assert Payment.objects.count() == 1


@pytest.mark.parametrize("declined", [{"4242424242424242": "do_not_honor"}, {}], ids=["cascade", "failover"])
def test_what_happens_at_the_account_that_was_tried_before_is_flagged(
    card_shop: Shop, processor: CardApi, declined: dict[str, str]
) -> None:
    """A payment that went on to another account of this processor. docs/decisions/0108."""
    with card_api() as other:
        second = second_account_at(card_shop.channel, other.url)
        first = AcquirerAccount.objects.get(acquirer_merchant_id="acct_1")
        processor.declines |= declined
        if not declined:
            processor.fault("401")
        paid = pay(card_shop)
        row = Payment.objects.get(pk=paid.id)
        assert (row.status, row.acquirer_merchant_id) == (Status.APPROVED, "acct_2")
        sender, later = (Sender(account=one, http=Client(raise_request_exception=False)) for one in (first, second))
        metadata = {"tollhouse_payment": paid.id}
        earlier = (
            intent_of(processor, paid)
            if declined
            else processor.make("payment_intent", "pi", {}, metadata=metadata, currency="eur")
        )
        earlier |= {"status": "requires_payment_method", "amount_received": 0}
        quiet = sender.tell("payment_intent.payment_failed", earlier["id"])
        assert (quiet.state, quiet.payment) == (State.DONE, row.pk)
        earlier |= {"status": "succeeded", "amount_received": 9_200, "latest_charge": {"id": "ch_of_the_first"}}
        standing = sender.tell("payment_intent.succeeded", earlier["id"])
        assert (standing.state, standing.payment) == (State.FLAGGED, row.pk)
        dispute = processor.dispute(earlier, 1_000, "fraudulent", "needs_response")
        assert sender.tell("charge.dispute.created", dispute["id"]).state == State.FLAGGED
        assert Payment.objects.count() == 1
        assert later.tell("refund.created", other.refund(intent_of(other, paid), 1_000)["id"]).state == State.DONE
        assert Payment.objects.filter(payment_type="RF").count() == 1


def test_a_capture_made_in_the_processors_own_pages_is_recorded(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    held = pay(card_shop, "PA")
    intent = intent_of(processor, held)
    intent |= {"status": "succeeded", "amount_capturable": 0, "amount_received": 5_000}
    for _ in range(2):
        assert sender.tell("payment_intent.succeeded", intent["id"]).state == State.DONE
    (made,) = Payment.objects.filter(payment_type="CP")
    assert (made.approved_amount, made.connector_tx_id) == (Decimal("50.00"), intent["latest_charge"]["id"])


@pytest.mark.parametrize("kind", ["captured", "canceled"])
def test_what_was_done_there_while_something_was_in_doubt_is_recorded_afterwards(
    card_shop: Shop, processor: CardApi, sender: Sender, kind: str
) -> None:
    held = pay(card_shop, "PA")
    intent = intent_of(processor, held)
    processor.fault("silent_before")
    refused = card_shop.api.follow(held.id, "CP", "20.00")
    assert refused.code == OUTCOME_UNKNOWN_CODE
    if kind == "captured":
        intent |= {"status": "succeeded", "amount_capturable": 0, "amount_received": 5_000}
    else:
        intent |= {"status": "canceled", "amount_capturable": 0}
    row = sender.tell("payment_intent.succeeded", intent["id"])
    assert (row.state, row.why) == (State.NEW, "a payment of the chain has no final result")
    assert Payment.objects.count() == 2
    Payment.objects.filter(pk=refused.id).update(status=Status.DECLINED, result_code="900.100.301")
    ProcessorEvent.objects.update(due_at="2020-01-01T00:00:00Z")
    event_processing.process_due_events()
    row.refresh_from_db()
    made = Payment.objects.get(payment_type="CP" if kind == "captured" else "RV", status=Status.APPROVED)
    assert (row.state, row.recorded) == (State.DONE, made.pk)


@pytest.mark.parametrize("what", ["refund", "dispute"])
def test_what_is_given_back_while_its_debit_is_in_doubt_is_recorded_afterwards(
    card_shop: Shop, processor: CardApi, sender: Sender, what: str
) -> None:
    """No person is asked: until the debit has its result there is no payment that the money could be of."""
    processor.fault("silent_after")
    paid = pay(card_shop)
    assert paid.code == OUTCOME_UNKNOWN_CODE
    intent = intent_of(processor, paid)
    if what == "refund":
        row = sender.tell("refund.created", processor.refund(intent, 1_000)["id"])
    else:
        row = sender.tell("charge.dispute.created", processor.dispute(intent, 1_000, "general", "lost")["id"])
    assert (row.state, Payment.objects.count()) == (State.NEW, 1)
    assert recover_after(60).settled == 1
    ProcessorEvent.objects.update(due_at="2020-01-01T00:00:00Z")
    event_processing.process_due_events()
    row.refresh_from_db()
    made = Payment.objects.get(payment_type="RF" if what == "refund" else "CB")
    assert (row.state, row.recorded, made.approved_amount) == (State.DONE, made.pk, Decimal("10.00"))


def test_a_refund_there_that_one_of_ours_in_doubt_leaves_no_room_for_waits(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    paid = pay(card_shop)
    processor.fault("silent_before")
    ours = card_shop.api.follow(paid.id, "RF", "92.00")
    assert ours.code == OUTCOME_UNKNOWN_CODE
    row = sender.tell("refund.created", processor.refund(intent_of(processor, paid), 9_200)["id"])
    assert row.state == State.NEW
    Payment.objects.filter(pk=ours.id).update(status=Status.DECLINED, result_code="900.100.301")
    ProcessorEvent.objects.update(due_at="2020-01-01T00:00:00Z")
    event_processing.process_due_events()
    row.refresh_from_db()
    assert (row.state, row.recorded) == (
        State.DONE,
        Payment.objects.get(payment_type="RF", status=Status.APPROVED).pk,
    )


def test_a_refund_of_ours_that_fails_while_it_is_in_doubt_is_looked_at_again(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    paid = pay(card_shop)
    processor.fault("silent_after")
    refund = card_shop.api.follow(paid.id, "RF", "20.00")
    (there,) = processor.of("refund")
    there["status"] = "failed"
    row = sender.tell("refund.failed", there["id"])
    assert row.state == State.NEW
    Payment.objects.filter(pk=refund.id).update(
        status=Status.APPROVED, result_code="000.100.112", approved_amount=Decimal("20.00")
    )
    ProcessorEvent.objects.update(due_at="2020-01-01T00:00:00Z")
    event_processing.process_due_events()
    row.refresh_from_db()
    assert row.state == State.FLAGGED


def test_what_stands_at_the_processor_and_was_declined_here_is_flagged(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    intent = intent_of(processor, pay(card_shop))
    Payment.objects.update(status=Status.DECLINED, result_code="900.100.301")
    assert sender.tell("payment_intent.succeeded", intent["id"]).state == State.FLAGGED
    processor.refund(intent, 9_200, metadata={"tollhouse_void": "x"})
    assert sender.tell("payment_intent.succeeded", intent["id"]).state == State.DONE


def test_while_the_processor_cannot_be_asked_an_event_waits(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    refund = processor.refund(intent_of(processor, pay(card_shop)), 100)
    processor.vanish()
    row = sender.tell("refund.created", refund["id"])
    assert (row.state, row.attempts) == (State.NEW, 1)
    assert row.due_at > row.created_at
    assert "could not be asked" in row.why
    ProcessorEvent.objects.update(attempts=event_processing.MAX_EVENT_TRIES - 1, due_at=row.created_at)
    event_processing.process_due_events()
    row.refresh_from_db()
    assert row.state == State.FLAGGED


@pytest.mark.parametrize(("status", "state"), [(404, State.IGNORED), (400, State.NEW)])
def test_only_an_object_that_is_not_there_is_of_no_concern(
    sender: Sender, monkeypatch: pytest.MonkeyPatch, status: int, state: str
) -> None:
    """A question that the processor does not take (another version, a parameter) tells nothing about the object."""

    def refused(event: object) -> EventOutcome:
        raise ObjectNotFoundError("/v1/disputes/dp_1", status)

    monkeypatch.setitem(event_processing._EVENT_HANDLERS, "charge.dispute", refused)  # type: ignore[misc]
    assert sender.tell("charge.dispute.created", "dp_1").state == state


def test_old_events_are_forgotten_but_not_those_that_wait_for_a_person(sender: Sender) -> None:
    for number, state in enumerate(State.values):
        ProcessorEvent.objects.create(
            account=sender.account,
            event_id=f"evt_{number}",
            kind="refund.created",
            object_id="re_1",
            state=state,
            due_at="2020-01-01T00:00:00Z",
            created_at="2020-01-01T00:00:00Z",
            done_at=None if state == State.NEW else "2020-01-01T00:00:00Z",
        )
    assert event_processing.delete_old_processor_events() == 2
    assert set(ProcessorEvent.objects.values_list("state", flat=True)) == {State.NEW, State.FLAGGED}


def test_in_live_an_event_over_plain_http_is_sent_to_https(sender: Sender) -> None:
    with override_settings(IS_LIVE=True, GATEWAY_BASE_URL="https://testserver"):
        assert sender.send(body_of("payment_intent.succeeded", "pi_1")).status_code == 307
    assert not ProcessorEvent.objects.exists()


def test_a_flagged_event_is_settled_by_a_person_or_acted_on_again(
    card_shop: Shop, processor: CardApi, sender: Sender
) -> None:
    """The back office's page, by somebody who may."""
    office = signed_in(User.objects.create_superuser("boss"))
    page = "/admin/gateway/processorevent/"
    intent = intent_of(processor, pay(card_shop))
    refund = processor.refund(intent, 99_999)
    row = sender.tell("refund.created", refund["id"])
    assert "700.400.200" in office.get(page + "?state__exact=flagged").content.decode()
    refund["amount"] = 1_000
    office.post(page, {"action": "ask_again", "_selected_action": [str(row.pk)]})
    event_processing.process_due_events()
    row.refresh_from_db()
    assert (row.state, row.recorded) == (State.DONE, Payment.objects.get(payment_type="RF").pk)
    ProcessorEvent.objects.update(state=State.FLAGGED)
    office.post(page, {"action": "mark_settled", "_selected_action": [str(row.pk)]})
    row.refresh_from_db()
    assert row.state == State.DONE
    actions = ["event acted on again", "event settled by hand"]
    assert (
        list(AuditEntry.objects.filter(action__in=actions).order_by("id").values_list("action", flat=True)) == actions
    )
