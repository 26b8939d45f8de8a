"""Every action that the product records in the audit trail is told in a sentence, in headings and histories too."""

from __future__ import annotations

import ast
import io
import re
from decimal import Decimal
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.utils import translation
from django.utils.translation import gettext

from chargebacks import evidence, ledger
from chargebacks.states import DisputeEvent
from gateway.access import audit_log
from gateway.access.unused_accounts import DISABLE
from gateway.backoffice.access.audit_sentences import describe_entries
from gateway.backoffice.schedules.schedule_details import SCHEDULE_ACTIONS
from gateway.models import AccessToken, AuditEntry, Merchant, Notification, Role
from gateway.payments.operation_table import OPERATIONS
from tests.chargebacks.test_alerts import alerted
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.settlement import payment_of

ROOT = Path(__file__).parents[3]
RECORDING = frozenset({"record_audit_entry", "record"})


@cache
def recorded_actions() -> frozenset[str]:
    """Actions that are written out where an entry is recorded."""
    found = set()
    for app in ("gateway", "reporting", "chargebacks", "checkout", "config"):
        for file in (ROOT / app).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or len(node.args) < 3:
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                action = node.args[1]
                if name in RECORDING and isinstance(action, ast.Constant) and isinstance(action.value, str):
                    found.add(action.value)
    return frozenset(found)


@pytest.mark.django_db
def test_every_recorded_action_has_a_sentence_in_every_language() -> None:
    """An action without one was told in English to everybody: "boss: export, pagesnapshot"."""
    actions = sorted(recorded_actions())
    assert len(actions) > 50
    for language in ("en", "de", "fr"):
        with translation.override(language):
            entries = [
                AuditEntry(pk=number, actor="boss", action=action, subject="payment", subject_id="")
                for number, action in enumerate(actions)
            ]
            told = describe_entries(entries)
            assert [actions[number] for number, text in told.items() if text.startswith("boss: ")] == []


@pytest.mark.parametrize("language", ["de", "fr"])
def test_every_recorded_action_has_a_word_for_the_list(language: str) -> None:
    """Beside German sentences stood "forget shopper" and "erasure carried out"."""
    same = {"export", "import"}
    works = {f"work {verb}" for verb in ("asked", "cancelled")}
    with translation.override(language):
        assert {action for action in {*recorded_actions(), *works} if translation.gettext(action) == action} <= same


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_an_action_whose_name_is_put_together_has_a_sentence_as_well(language: str) -> None:
    """What a clerk does most was none: "max: refund sent, Debit 92.00 EUR"."""
    by_hand = [DisputeEvent.SUBMIT, DisputeEvent.ACCEPT, DisputeEvent.ESCALATE, DisputeEvent.WIN, DisputeEvent.LOSE]
    moves = [
        (f"{OPERATIONS[code].title.lower()} {word}", {"operation": code, "amount": "60.00", "currency": "EUR"})
        for code in ("CP", "RF", "RV", "RB")
        for word in ("sent", "made", "refused")
    ]
    others = [*SCHEDULE_ACTIONS, *by_hand, DISABLE, "event acted on again", "event settled by hand"]
    actions = [*moves, *((str(action), {}) for action in (*others, "end mandate", "release mandate", "on", "off"))]
    with translation.override(language):
        entries = [
            AuditEntry(pk=number, actor="boss", action=action, subject="payment", subject_id="", after=after)
            for number, (action, after) in enumerate(actions)
        ]
        told = describe_entries(entries)
    assert [actions[number] for number, text in told.items() if text.startswith("boss: ")] == []


@pytest.mark.django_db
def test_a_refund_is_told_with_its_amount_and_order_in_the_language_of_who_reads(shop: Shop) -> None:
    """The sums before and after were kept in the language of the clerk, who reads German here."""
    paid = shop.api.pay(merchantTransactionId="order-4711")
    clerk = signed_in(person("clara", Role.CLERK, shop.merchant))
    clerk.post("/admin/language", {"language": "de", "next": "/admin/"})
    form = f"/admin/gateway/payment/{UUID(paid.id)}/do/RF/"
    key = re.search(r'name="key" value="([^"]+)"', clerk.get(form).content.decode())
    assert key is not None
    assert clerk.post(form, {"key": key[1], "amount": "60,00", "reason": "duplicate"}).status_code == 302
    sent, made = AuditEntry.objects.get(action="refund sent"), AuditEntry.objects.get(action="refund made")
    kept = [(each or {})["Still to refund"] for each in (sent.before, made.after)]
    assert kept == ["92.00", "32.00"]
    translation.activate("en")
    assert describe_entries([sent, made]) == {
        sent.pk: "clara sent Refund 60.00 EUR, Debit 92.00 EUR, order-4711",
        made.pk: "Refund 60.00 EUR, Debit 92.00 EUR, order-4711, sent by clara: Approved",
    }
    manager = signed_in(person("max", Role.MANAGER, shop.merchant))
    manager.post("/admin/language", {"language": "de", "next": "/admin/"})
    page = manager.get(f"/admin/gateway/auditentry/{sent.pk}/change/").content.decode()
    assert "Noch zu erstatten" in page
    translation.activate("en")


@pytest.mark.django_db
def test_a_request_to_erase_names_whom_it_is_about() -> None:
    """It was "the data of erasure request email"."""
    facts = {"kind": "email", "shown": "j•••@shop.example"}
    entry = AuditEntry(pk=1, actor="maja", action="erasure asked", subject="erasurerequest", subject_id="", after=facts)
    assert describe_entries([entry])[1] == "maja asked to erase the data of e-mail address j•••@shop.example"


@pytest.mark.django_db
def test_work_that_was_started_is_told_whatever_its_kind() -> None:
    entries = [
        AuditEntry(pk=number, actor="boss", action=action, subject="backgroundwork", subject_id="")
        for number, action in enumerate(("payments export asked", "trial cancelled"))
    ]
    assert [text.partition(" background")[0] for text in describe_entries(entries).values()] == [
        "boss started",
        "boss cancelled",
    ]


@pytest.mark.parametrize(
    ("action", "shown"), [("payments export asked", "work asked"), ("export fetched", "export fetched")]
)
def test_the_pill_of_long_work_has_words_of_the_readers_language(action: str, shown: str) -> None:
    page: Any = admin.site.get_model_admin(AuditEntry)
    with translation.override("de"):
        words = gettext(shown)
        assert words != shown
        assert words in page.action_pill(AuditEntry(action=action, subject="backgroundwork"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("after", "told"),
    [
        ({"subject": "clara-1", "issuer": "https://login.example"}, "clara connected the single sign-on of"),
        ({"subject": None, "links": 1}, "clara undid the single sign-on of"),
    ],
)
def test_an_identity_that_was_connected_is_not_told_as_undone(after: dict[str, object], told: str) -> None:
    entry = AuditEntry(pk=1, actor="clara", action="single sign-on", subject="user", subject_id="", after=after)
    assert describe_entries([entry])[1].startswith(told)


@pytest.mark.django_db
def test_an_actor_that_is_no_user_is_named_in_the_readers_language() -> None:
    """A German sentence began with "command line"."""
    actors = ("command line", "the processor", "access token 01a2", "settlement file a b.csv", "clara", "SFTP")
    entries = [
        AuditEntry(pk=number, actor=actor, action="add", subject="merchant", subject_id="")
        for number, actor in enumerate(actors)
    ]
    with translation.override("de"):
        told = [sentence.partition(" hat ")[0] for sentence in describe_entries(entries).values()]
    assert told[:3] == ["Befehlszeile", "der Prozessor", "Zugriffstoken 01a2"]
    assert told[3:] == ["Abrechnungsdatei a b.csv", "clara", "SFTP"]


@pytest.mark.django_db
def test_what_an_entry_is_about_has_its_name(shop: Shop) -> None:
    """A dispute had no amount, work no title, and an alert, which has no page, the name of its table."""
    disputed = payment_of(shop.api.pay().id)
    case = ledger.record_chargeback(disputed, Decimal("92.00"), reason="000.100.221", by=BY)
    evidence.add_evidence(case, "delivery", "delivery.pdf", io.BytesIO(b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"), BY)
    alerted(payment_of(shop.api.pay().id))
    boss = User.objects.create_superuser("boss")
    signed_in(boss).post("/admin/gateway/payment/export/", {"format": "csv", "which": "all"})
    told = describe_entries(AuditEntry.objects.exclude(subject="accesstoken")).values()
    assert "tests added evidence to dispute 92.00 EUR, delivery.pdf" in told
    assert "boss started background work “Payments as CSV”" in told
    assert "tests recorded alert" in told
    with translation.override("fr"):
        told = describe_entries(AuditEntry.objects.all()).values()
        assert "tests a ajouté une preuve : contestation 92,00 EUR, delivery.pdf" in told
        assert not any("disputealert" in text for text in told)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "rows"),
    [
        ("en", [("What", "Refund"), ("Amount", "30.00 EUR"), ("Reason", "the shopper asked for it"),
                ("Without a second person", "Yes"), ("Refunded", "0.00 EUR")]),
        ("de", [("Was", "Erstattung"), ("Betrag", "30,00 EUR"), ("Grund", "der Käufer hat darum gebeten"),
                ("Ohne zweite Person", "Ja"), ("Erstattet", "0,00 EUR")]),
        ("fr", [("Quoi", "Remboursement"), ("Montant", "30,00 EUR"), ("Motif", "demandé par l'acheteur"),
                ("Sans seconde personne", "Oui"), ("Remboursé", "0,00 EUR")]),
    ],
)  # fmt: skip
def test_what_a_follow_up_kept_is_shown_in_words(shop: Shop, language: str, rows: list[tuple[str, str]]) -> None:
    """Beside "Still to refund" stood "operation RF", "alone true" and "reason requested", in every language."""
    paid = payment_of(shop.api.pay().id)
    clara = person("clara", Role.CLERK, shop.merchant)
    client = signed_in(clara)
    form = f"/admin/gateway/payment/{paid.pk}/do/RF/"
    key = re.search(r'name="key" value="([^"]+)"', client.get(form).content.decode())
    assert key is not None
    client.post(form, {"key": key[1], "amount": "30.00", "reason": "requested", "note": "lamp"})
    entry = AuditEntry.objects.get(action="refund sent")
    manager = signed_in(person("max", Role.MANAGER, shop.merchant))
    manager.post("/admin/language", {"language": language, "next": "/admin/"})
    page = manager.get(f"/admin/gateway/auditentry/{entry.pk}/change/").content.decode()
    translation.activate("en")
    table = page[page.index('<table class="th-facts th-rows">') :]
    shown = {
        unescape(name): unescape(after if after != "–" else before)
        for name, before, after in re.findall(
            r'<th scope="row">([^<]+)</th><td[^>]*><pre>([^<]*)</pre></td><td[^>]*><pre>([^<]*)</pre></td>', table
        )
    }
    assert {name: shown.get(name) for name, _value in rows} == dict(rows)
    assert "history" not in page[page.index('id="header-inner"') :][:6000]


@pytest.mark.django_db
def test_columns_of_a_change_are_called_as_on_their_form(shop: Shop) -> None:
    audit_log.record_audit_entry(BY, "change", shop.channel, before={"active": True}, after={"active": False})
    entry = AuditEntry.objects.get(subject="channel")
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    page = client.get(f"/admin/gateway/auditentry/{entry.pk}/change/").content.decode()
    changed = '<td data-label="Before"><pre>Yes</pre></td><td data-label="After"><pre>No</pre></td>'
    assert f'<th scope="row">Active</th>{changed}' in page


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "language", "rows"),
    [
        ("UTC", "en", [("Merchant", "Shop\n{merchant}"), ("Scopes", "payments, read"), ("Operations", "–"),
                       ("Approved at", "2026-07-01 22:30:00 UTC"), ("Revoked at", "soon")]),
        ("Europe/Berlin", "de", [("Händler", "Shop\n{merchant}"), ("Freigegeben am", "2026-07-02 00:30:00 CEST")]),
    ],
)  # fmt: skip
def test_values_of_a_change_are_written_as_on_other_pages(
    shop: Shop, zone: str, language: str, rows: list[tuple[str, str]]
) -> None:
    """A token's entry had the merchant's id alone, lists as code and times of the database."""
    token, ident = AccessToken.objects.get(merchant=shop.merchant), shop.merchant.pk.hex
    Merchant.objects.update(name="Shop")
    kept = {"merchant": ident, "scopes": ["payments", "read"], "operations": []}
    times = {"approved_at": "2026-07-01T22:30:00.642827+00:00", "revoked_at": "soon"}
    audit_log.record_audit_entry(BY, "issue", token, after={**kept, **times})
    entry = AuditEntry.objects.filter(subject="accesstoken").latest("pk")
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    client.post("/admin/account/", {"act": "zone", "zone": zone})
    client.post("/admin/language", {"language": language, "next": "/admin/"})
    page = unescape(client.get(f"/admin/gateway/auditentry/{entry.pk}/change/").content.decode())
    page = re.sub("<td data-label=[^>]+>", "<td>", page)
    translation.activate("en")
    for name, words in rows:
        shown = f'<th scope="row">{name}</th><td><pre>–</pre></td><td><pre>{words.format(merchant=ident)}</pre></td>'
        assert shown in page, name


@pytest.mark.django_db
def test_a_history_and_a_heading_are_sentences_in_the_readers_language(shop: Shop) -> None:
    audit_log.record_audit_entry(BY, "change", shop.channel, before={"active": True}, after={"active": False})
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    client.post("/admin/language", {"language": "de", "next": "/admin/"})
    history = client.get(f"/admin/gateway/channel/{shop.channel.pk}/history/").content.decode()
    assert "tests hat geändert: Kanal" in " ".join(history.split())
    entry = AuditEntry.objects.filter(action="change", subject="channel").latest("id")
    heading = client.get(f"/admin/gateway/auditentry/{entry.pk}/change/").content.decode()
    assert "tests hat geändert: Kanal" in heading[heading.index('id="header-inner"') :][:4000]
    translation.activate("en")


@pytest.mark.django_db
def test_a_notification_names_its_payment_in_words(shop: Shop) -> None:
    """It was "DB 92.00 EUR (APPROVED)"."""
    shop.api.pay()
    told = Notification.objects.filter(payment__isnull=False).latest("id")
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    page = client.get(f"/admin/gateway/notification/{told.pk}/change/").content.decode()
    assert f'href="/admin/gateway/payment/{told.payment_id}/change/">Debit 92.00 EUR</a>' in page
    assert "(APPROVED)" not in page


@pytest.mark.django_db
def test_a_new_merchants_time_zone_is_utc_until_another_is_chosen(shop: Shop) -> None:
    """The form began with the first of all names, and a merchant's days were those of Abidjan."""
    staff = signed_in(person("petra", Role.PSP, shop.merchant.division.psp))
    page = staff.get("/admin/gateway/merchant/add/").content.decode()
    assert '<option value="UTC" selected>' in page


_ASKED: dict[str, Any] = {
    "operation": "CD", "amount": "92.00", "currency": "EUR", "state": "DONE", "asked by": "ann", "decided by": "max",
    "follow-up": "", "code": "000.100.112", "over": "day", "reason": "not paid", "note": "",
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("action", "told"),
    [
        ("approval asked", "max asked to approve Outcome of a payment in doubt 92.00 EUR"),
        ("approval given", "max approved Outcome of a payment in doubt 92.00 EUR, asked by ann"),
        (
            "approval carried out",
            "Outcome of a payment in doubt 92.00 EUR was carried out, approved by max, asked by ann",
        ),
    ],
)
def test_an_outcome_of_a_payout_is_told_as_no_credit(action: str, told: str) -> None:
    """The trail said that a credit was carried out, also where nothing had been paid."""
    entry = AuditEntry(pk=1, actor="max", action=action, subject="approval", subject_id="", after=_ASKED)
    assert describe_entries([entry])[1] == told


@pytest.mark.parametrize(
    ("language", "rows"),
    [
        ("en", {"What": "Outcome of a payment in doubt", "State": "Carried out", "Asked by": "ann",
                "Over": "the limit for 24 hours",
                "Reason": "it was not carried out, and never will be"}),
        ("de", {"Was": "Ausgang einer ungeklärten Zahlung", "Stand": "Ausgeführt",
                "Angefragt von": "ann"}),
    ],
)  # fmt: skip
def test_what_an_approval_kept_is_shown_in_words(language: str, rows: dict[str, str]) -> None:
    page: Any = admin.site.get_model_admin(AuditEntry)
    with translation.override(language):
        table = page.changes(AuditEntry(subject="approval", after=_ASKED))
    shown = dict(re.findall(r'<th scope="row">([^<]+)</th><td[^>]*>.*?</td><td[^>]*><pre>([^<]*)</pre></td>', table))
    assert {name: unescape(shown.get(name, "")) for name in rows} == rows


def test_an_outcome_that_was_entered_is_shown_in_words() -> None:
    page: Any = admin.site.get_model_admin(AuditEntry)
    with translation.override("de"):
        table = page.changes(AuditEntry(subject="payment", after={"paid": True}))
    assert '<th scope="row">Hat die Karte erreicht</th>' in table
