"""For which payment a mandate's mail is due, and which of two mails it is: each condition by itself.

Source: Part A, Customer (email), Bank account; docs/decisions/0030.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.core import mail

from gateway.connectors.sepa.creditor import NOTICE_BY_MAIL
from gateway.core import clock, languages
from gateway.models import BankOrder, MandateMail, Merchant, Payment, SepaMandate
from gateway.payments import mandate_mails
from gateway.payments.mandate_mails import (
    MailContent,
    build_mandate_mail_row,
    find_next_mandate_mail,
    resolve_mandate_id,
    send_due_mandate_mails,
)
from tests.gateway.payments.test_mandate_mails import debit
from tests.support.fixtures import Shop

NOW = datetime(2035, 11, 15, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MAIL = {"customer": {"email": "jane@mail.example"}}
REPEATED = {"standingInstruction": {"mode": "REPEATED"}}
INITIAL = {"standingInstruction": {"mode": "INITIAL"}}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "MANDATE"),
        ({"connector": "sepa"}, "MANDATE"),
        ({"brand": "DIRECTDEBIT"}, None),
        ({"brand": "VISA"}, None),
        ({"referenced": UUID(int=2)}, None),
        ({"request": {}}, None),
        ({"request": MAIL | INITIAL}, "MANDATE"),
        ({"request": MAIL | REPEATED}, None),
        ({"request": MAIL | REPEATED, "connector": "sepa"}, "NOTICE"),
        ({"request": REPEATED, "connector": "sepa"}, None),
        ({"registration": UUID(int=3)}, None),
        ({"registration": UUID(int=3), "connector": "sepa"}, "NOTICE"),
    ],
    ids=str,
)
def test_a_first_debit_mails_its_mandate_and_a_later_collection_by_a_bank_its_notice(
    values: dict[str, Any], kind: str | None
) -> None:
    row = Payment(**{
        "id": UUID(int=1), "merchant_id": UUID(int=9), "brand": "DIRECTDEBIT_SEPA", "connector": "simulator",
        "request": MAIL, **values,
    })  # fmt: skip
    found = build_mandate_mail_row(row, NOW)
    assert found == (
        None
        if kind is None
        else {
            "payment_id": UUID(int=1), "merchant_id": UUID(int=9), "kind": kind, "mandate": UUID(int=1).hex.upper(),
            "due_at": NOW,
        }
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mandate", "name"), [({"id": "M-1"}, "M-1"), ({"id": ""}, UUID(int=1).hex.upper()), ({}, UUID(int=1).hex.upper())]
)
def test_a_mandate_is_named_as_it_was_sent_or_by_its_payment(mandate: dict[str, str], name: str) -> None:
    assert resolve_mandate_id(Payment(id=UUID(int=1), request={"bankAccount": {"mandate": mandate}})) == name


def due(shop: Shop, at: datetime, **values: Any) -> MandateMail:
    payment = debit(shop.api, bankAccount__mandate__id=f"M-{chr(65 + MandateMail.objects.count())}").id
    MandateMail.objects.filter(pk=payment).update(due_at=at, **values)
    return MandateMail.objects.get(pk=payment)


@pytest.mark.django_db
@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=40), -timedelta(days=40)])
@pytest.mark.parametrize(("left", "sent"), [(-SECOND, 1), (timedelta(0), 1), (SECOND, 0)])
def test_a_mail_is_sent_when_it_is_due_by_its_merchants_clock(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch, ahead: timedelta, left: timedelta, sent: int
) -> None:
    own, other = due(shop, NOW), due(stranger, NOW)
    now = clock.real_now()
    monkeypatch.setattr(clock, "real_now", lambda: now)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    MandateMail.objects.filter(pk=own.pk).update(due_at=now + ahead + left)
    MandateMail.objects.filter(pk=other.pk).update(due_at=now + SECOND)
    assert send_due_mandate_mails() == sent
    assert set(MandateMail.objects.values_list("pk", "state")) == {
        (own.pk, "SENT" if sent else "DUE"),
        (other.pk, "DUE"),
    }


@pytest.mark.django_db
def test_mails_are_sent_once_of_one_merchant_or_of_all(shop: Shop, stranger: Shop) -> None:
    past = clock.real_now() - 60 * SECOND
    own, other = due(shop, past), due(stranger, past)
    leased = due(shop, past, lease_until=clock.real_now() + 60 * SECOND)
    over = [due(shop, past, state=state) for state in ("SENT", "GIVEN_UP")]
    assert send_due_mandate_mails(stranger.merchant) == 1
    assert send_due_mandate_mails() == 1
    assert send_due_mandate_mails() == 0
    states = dict(MandateMail.objects.values_list("pk", "state"))
    assert [states[row.pk] for row in (own, other, leased, *over)] == ["SENT", "SENT", "DUE", "SENT", "GIVEN_UP"]
    MandateMail.objects.filter(pk=leased.pk).update(lease_until=past)
    assert send_due_mandate_mails() == 1


@pytest.mark.django_db
def test_the_next_mail_is_the_merchants_earliest_that_is_due(shop: Shop, stranger: Shop) -> None:
    due(stranger, NOW)
    due(shop, NOW - SECOND, state="SENT")
    assert find_next_mandate_mail(shop.merchant) is None
    for seconds in (3, 1, 2):
        due(shop, NOW + seconds * SECOND)
    assert find_next_mandate_mail(shop.merchant) == NOW + SECOND


# --- what becomes of a row --------------------------------------------------------------------------------------------


def state_of(row: MandateMail) -> tuple[str, str]:
    kept = MandateMail.objects.get(pk=row.pk)
    return kept.state, kept.kind


BY_MAIL, BY_MERCHANT = BankOrder(notice=NOTICE_BY_MAIL), BankOrder(notice="")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "known", "order", "becomes"),
    [
        ("MANDATE", False, None, ("SENT", "MANDATE")),
        ("MANDATE", False, BY_MERCHANT, ("SENT", "MANDATE")),
        ("MANDATE", True, None, ("KNOWN", "MANDATE")),
        ("MANDATE", True, BY_MAIL, ("SENT", "NOTICE")),
        ("MANDATE", True, BY_MERCHANT, ("KNOWN", "NOTICE")),
        ("NOTICE", False, None, ("KNOWN", "NOTICE")),
        ("NOTICE", True, BY_MAIL, ("SENT", "NOTICE")),
        ("NOTICE", False, BY_MERCHANT, ("KNOWN", "NOTICE")),
    ],
)
def test_a_mandate_that_is_known_becomes_the_notice_of_a_collection_where_its_creditor_mails_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str, known: bool, order: BankOrder | None, becomes: Any
) -> None:
    row, other = due(shop, NOW, kind=kind), due(shop, NOW)
    monkeypatch.setattr(mandate_mails, "_find_order", lambda payment: order)
    monkeypatch.setattr(mandate_mails, "_is_mandate_known", lambda one: known)
    assert mandate_mails._send_mandate_mail(row) is True
    assert state_of(row) == becomes
    assert len(mail.outbox) == (becomes[0] == "SENT")
    assert state_of(other) == ("DUE", "MANDATE")


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["SENT", "KNOWN", "GIVEN_UP"])
@pytest.mark.parametrize("to", ["jane@mail.example", "no address"])
def test_a_row_that_another_worker_ended_stays_as_it_is(shop: Shop, state: str, to: str) -> None:
    row = due(shop, NOW)
    MandateMail.objects.filter(pk=row.pk).update(state=state)
    Payment.objects.filter(pk=row.pk).update(request={"customer": {"email": to}})
    assert mandate_mails._send_mandate_mail(MandateMail.objects.get(pk=row.pk)) is False
    assert MandateMail.objects.get(pk=row.pk).state == state


@pytest.mark.django_db
def test_a_sent_mail_is_kept_as_it_was_sent(shop: Shop, settings: Any) -> None:
    settings.GATEWAY_MAIL_FROM = "mandates@tollhouse.example"
    row = due(shop, NOW, failure="SMTPServerDisconnected")
    Payment.objects.filter(pk=row.pk).update(request={"customer": {"email": "jane@mail.example", "language": "FR"}})
    assert mandate_mails._send_mandate_mail(MandateMail.objects.get(pk=row.pk)) is True
    [sent] = mail.outbox
    assert (sent.from_email, sent.to) == ("mandates@tollhouse.example", ["jane@mail.example"])
    assert sent.extra_headers == {"Message-ID": f"<mandate-{row.pk.hex}@tollhouse>"}
    kept = MandateMail.objects.get(pk=row.pk)
    assert (kept.sent_to, kept.language, kept.subject, kept.body, kept.failure) == (
        "jane@mail.example", "fr", sent.subject, sent.body, "",
    )  # fmt: skip
    Payment.objects.filter(pk=row.pk).update(request={})
    shown = mandate_mails.render_mandate_mail(MandateMail.objects.get(pk=row.pk))
    assert (shown["to"], shown["language"]) == ("jane@mail.example", "fr")
    assert (shown["subject"], shown["text"], shown["failure"]) == (sent.subject, sent.body, None)


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["DUE", "KNOWN", "GIVEN_UP"])
def test_a_mail_that_was_not_sent_is_shown_as_it_would_be(shop: Shop, state: str) -> None:
    row = due(shop, NOW, state=state, failure="Away", tries=3, sent_to="x", subject="x", body="x", language="fr")
    shown = mandate_mails.render_mandate_mail(row)
    would = mandate_mails.compose_mandate_mail(row)
    assert shown == {
        "kind": "MANDATE", "state": state, "mandate": row.mandate, "to": "jane@mail.example", "language": "en",
        "subject": would.subject, "text": would.body, "tries": 3, "failure": "Away", "at": None,
    }  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tries", "ended", "state"),
    [(18, False, "DUE"), (19, False, "DUE"), (20, True, "GIVEN_UP"), (21, True, "GIVEN_UP")],
)
def test_a_mail_is_given_up_after_its_twentieth_try(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tries: int, ended: bool, state: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(mandate_mails.EmailMessage, "send", fail)
    row, other = due(shop, NOW, tries=tries), due(shop, NOW)
    assert mandate_mails._send_mandate_mail(row) is ended
    kept = MandateMail.objects.get(pk=row.pk)
    assert (kept.state, kept.failure, kept.sent_at) == (state, "ConnectionRefusedError", None)
    assert MandateMail.objects.get(pk=other.pk).failure == ""


@pytest.mark.django_db
def test_what_is_no_address_says_so(shop: Shop) -> None:
    row = due(shop, NOW)
    Payment.objects.filter(pk=row.pk).update(request={"customer": {"email": "jane"}})
    assert mandate_mails._send_mandate_mail(MandateMail.objects.get(pk=row.pk)) is True
    assert MandateMail.objects.get(pk=row.pk).failure == "customer.email is no e-mail address"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "known"),
    [
        ({}, True),
        ({"state": "SENT"}, True),
        ({"state": "KNOWN"}, False),
        ({"state": "GIVEN_UP"}, False),
        ({"kind": "NOTICE"}, False),
        ({"mandate": "another"}, False),
    ],
    ids=str,
)
def test_a_mandate_is_known_by_an_earlier_mail_of_it(
    shop: Shop, stranger: Shop, changed: dict[str, str], known: bool
) -> None:
    first, row, later, theirs = due(shop, NOW), due(shop, NOW), due(shop, NOW), due(stranger, NOW)
    MandateMail.objects.update(mandate="M-1")
    MandateMail.objects.filter(pk=first.pk).update(**changed)
    assert mandate_mails._is_mandate_known(MandateMail.objects.get(pk=row.pk)) is known
    assert mandate_mails._is_mandate_known(MandateMail.objects.get(pk=later.pk)), "by the one between"
    assert not mandate_mails._is_mandate_known(MandateMail.objects.get(pk=theirs.pk))


# --- what it says -----------------------------------------------------------------------------------------------------


MANDATE = SepaMandate(
    creditor="DE98ZZZ09999999999", creditor_name="The Creditor", mandate="M-77", signed_on=date(2030, 2, 3),
    instrument="CORE",
)  # fmt: skip
ORDER = BankOrder(name="Joe Payer", iban_shown="AT61••••7890", due_on=date(2033, 4, 5), mandate=MANDATE)
SENT: dict[str, Any] = {
    "customer": {"email": "jane@mail.example"},
    "bankAccount": {
        "holder": "Jane Jones", "iban": "DE89370400440532013000", "country": "DE",
        "mandate": {"id": "SENT-1", "dateOfSignature": "2029-01-02"},
    },
    "transactionDueDate": "2033-06-07",
}  # fmt: skip


def compose(
    monkeypatch: pytest.MonkeyPatch,
    order: BankOrder | None = None,
    stored: SepaMandate | None = None,
    kind: str = "MANDATE",
    **values: Any,
) -> MailContent:
    monkeypatch.setattr(mandate_mails, "_find_order", lambda payment: order)
    monkeypatch.setattr(mandate_mails, "_find_stored_mandate", lambda payment: stored)
    payment = Payment(**{
        "id": UUID(int=1), "merchant": Merchant(name="The Shop", time_zone="Asia/Tokyo"), "brand": "DIRECTDEBIT_SEPA",
        "amount": Decimal("12.50"), "currency": "EUR", "request": SENT,
        "created_at": datetime(2033, 5, 6, 20, tzinfo=UTC), **values,
    })  # fmt: skip
    return mandate_mails.compose_mandate_mail(MandateMail(payment=payment, kind=kind))


def lines(mail_: MailContent) -> dict[str, str]:
    shown = mail_.body.split("\n\n")[-1]
    return dict(line.split(": ", 1) for line in shown.strip().splitlines())


OF_PAYMENT = {
    "Creditor": "The Shop", "Mandate reference": "SENT-1", "Date of the mandate": "2029-01-02",
    "Account holder": "Jane Jones", "IBAN": "DE •••• 3000", "Amount": "€12.50", "Collected on": "2033-06-07",
}  # fmt: skip
OF_MANDATE = OF_PAYMENT | {
    "Creditor": "The Creditor", "Creditor identifier": "DE98ZZZ09999999999", "Mandate reference": "M-77",
    "Date of the mandate": "2030-02-03",
}  # fmt: skip
OF_ORDER = OF_MANDATE | {"Account holder": "Joe Payer", "IBAN": "AT •••• 7890", "Collected on": "2033-04-05"}
LABELS = [
    "Creditor", "Creditor identifier", "Mandate reference", "Date of the mandate", "Account holder", "IBAN", "Amount",
    "Collected on",
]  # fmt: skip
UNNAMED = {
    "request": {"customer": {"email": "jane@mail.example"}, "bankAccount": {"iban": "DE89370400440532013000"}},
}


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, OF_PAYMENT),
        ({"stored": MANDATE}, OF_MANDATE),
        ({"order": ORDER, "stored": SepaMandate(mandate="not this")}, OF_ORDER),
        (
            {"order": BankOrder(name="Joe Payer", iban_shown="", mandate=MANDATE)},
            OF_MANDATE | {"Account holder": "Joe Payer"},
        ),
        ({"stored": SepaMandate(mandate="M-77", signed_on=date(2030, 2, 3))}, {
            **OF_PAYMENT, "Mandate reference": "M-77", "Date of the mandate": "2030-02-03",
        }),
        ({"amount": Decimal(0)}, {name: OF_PAYMENT[name] for name in list(OF_PAYMENT)[:5]}),
        (UNNAMED, {
            "Creditor": "The Shop", "Mandate reference": UUID(int=1).hex.upper(), "Date of the mandate": "2033-05-07",
            "IBAN": "•••• 3000", "Amount": "€12.50", "Collected on": "2033-05-07",
        }),
    ],
    ids=["payment", "stored mandate", "order", "order without a day", "mandate without a name", "nothing", "unnamed"],
)  # fmt: skip
def test_a_mail_names_the_collection_before_the_mandate_before_the_payment(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], shown: dict[str, str]
) -> None:
    """The date of the payment is that of the merchant's zone."""
    composed = compose(monkeypatch, **values)
    assert lines(composed) == shown
    assert list(lines(composed)) == [name for name in LABELS if name in shown]
    assert (composed.to, composed.language) == ("jane@mail.example", "en")
    assert composed.body.endswith("\n")


@pytest.mark.parametrize(
    ("sent", "locale", "language"), [("FR", "de", "fr"), ("XX", "de", "de"), ("", "it", "it"), ("", "", "en")]
)
def test_a_mail_speaks_the_shoppers_language_before_that_of_the_page(
    monkeypatch: pytest.MonkeyPatch, sent: str, locale: str, language: str
) -> None:
    composed = compose(monkeypatch, request={"customer": {"language": sent}, "locale": locale})
    assert composed.language == language
    assert languages.load_mail_texts(language)["reference"] in composed.body


@pytest.mark.parametrize("length", [119, 120, 121])
def test_a_long_creditor_is_cut(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    mandate = SepaMandate(creditor_name="C" * length, mandate="M", signed_on=date(2030, 2, 3))
    assert lines(compose(monkeypatch, stored=mandate))["Creditor"] == "C" * min(length, 120)


@pytest.mark.parametrize("is_live", [True, False])
@pytest.mark.parametrize(
    ("kind", "instrument", "subject", "text"),
    [
        ("MANDATE", "CORE", "subject", "text"),
        ("MANDATE", "B2B", "subject", "textB2B"),
        ("MANDATE", None, "subject", "text"),
        ("NOTICE", "CORE", "noticeSubject", "noticeText"),
        ("NOTICE", "B2B", "noticeSubject", "noticeText"),
    ],
)
def test_a_mail_has_the_words_of_its_kind_and_says_where_it_is_a_test(
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    is_live: bool,
    kind: str,
    instrument: str | None,
    subject: str,
    text: str,
) -> None:
    settings.IS_LIVE = is_live
    mandate = SepaMandate(mandate="M", signed_on=date(2030, 2, 3), instrument=instrument) if instrument else None
    composed = compose(monkeypatch, stored=mandate, kind=kind)
    texts = languages.load_mail_texts("en")
    words = {"merchant": "The Shop", "amount": "€12.50", "due": "2033-06-07"}
    assert composed.subject == ("" if is_live else "[Test] ") + texts[subject].format(**words)
    assert composed.body.startswith(texts[text].format(**words) + "\n\n")


# --- what is read for it ----------------------------------------------------------------------------------------------


def mandate_of(shop: Shop, name: str, creditor: str) -> SepaMandate:
    return SepaMandate.objects.create(
        merchant=shop.merchant, mandate=name, creditor=creditor, named_by_merchant=True, recurring=True,
        signed_on=date(2030, 2, 3), iban_fingerprint=creditor.encode(),
    )  # fmt: skip


@pytest.mark.django_db
def test_a_stored_account_has_the_newest_mandate_of_its_name_where_a_bank_collects(shop: Shop, stranger: Shop) -> None:
    mandate_of(shop, "M-1", "first")
    newest = mandate_of(shop, "M-1", "second")
    mandate_of(shop, "M-2", "another")
    mandate_of(stranger, "M-1", "stranger")
    named = {"bankAccount": {"mandate": {"id": "M-1"}}}
    row = Payment(merchant=shop.merchant, connector="sepa", request=named)
    assert mandate_mails._find_stored_mandate(row) == newest
    row.connector = "simulator"
    assert mandate_mails._find_stored_mandate(row) is None
    row = Payment(merchant=shop.merchant, connector="sepa", request={})
    assert mandate_mails._find_stored_mandate(row) is None


@pytest.mark.django_db
def test_a_collection_is_its_payments(shop: Shop) -> None:
    mandate = mandate_of(shop, "M-1", "first")
    for ident in (UUID(int=1), UUID(int=2)):
        BankOrder.objects.create(
            payment=ident, merchant=shop.merchant, channel=shop.channel, acquirer_merchant_id="M", kind="DEBIT",
            mandate=mandate, amount=Decimal(ident.int), currency="EUR", name="x", iban_shown="x", text="x",
            created_at=NOW,
        )  # fmt: skip
    found = mandate_mails._find_order(Payment(id=UUID(int=2)))
    assert found is not None
    assert (found.pk, found.mandate) == (UUID(int=2), mandate)
    assert mandate_mails._find_order(Payment(id=UUID(int=3))) is None


@pytest.mark.django_db
def test_no_more_mails_are_sent_at_once_than_a_batch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest due go first."""
    monkeypatch.setattr(mandate_mails, "MANDATE_MAIL_BATCH_SIZE", 2)
    past = clock.real_now() - 60 * SECOND
    last, first, middle = (due(shop, past + seconds * SECOND) for seconds in (3, 1, 2))
    assert send_due_mandate_mails() == 2
    assert [state_of(one)[0] for one in (first, middle, last)] == ["SENT", "SENT", "DUE"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tries", "wait"),
    [(0, timedelta(minutes=2)), (1, timedelta(minutes=4)), (7, timedelta(minutes=256)), (8, timedelta(hours=6))],
)
def test_a_lease_doubles_with_each_try(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tries: int, wait: timedelta
) -> None:
    monkeypatch.setattr(mandate_mails, "_send_mandate_mail", lambda row: False)
    row = due(shop, clock.real_now() - SECOND, tries=tries)
    other = due(shop, clock.real_now() + 3_600 * SECOND)
    assert send_due_mandate_mails() == 0
    kept = MandateMail.objects.get(pk=row.pk)
    assert kept.tries == tries + 1
    assert kept.lease_until is not None
    assert abs(kept.lease_until - clock.real_now() - wait) < timedelta(minutes=1)
    assert MandateMail.objects.get(pk=other.pk).lease_until is None
