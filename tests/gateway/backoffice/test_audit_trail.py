"""The audit trail: in sentences, looks hidden, sealed entry by entry, checked, and exported with a signature."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.background import queue
from gateway.backoffice.access import audit_seals
from gateway.backoffice.access.audit_log_pages import find_first_entry_id
from gateway.core import clock
from gateway.models import AuditEntry, AuditSeal, BackgroundWork, Channel, Merchant, Payment
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
TRAIL = "/admin/gateway/auditentry/"


@pytest.fixture(autouse=True)
def places(settings: Any, tmp_path: Path) -> None:
    settings.GATEWAY_WORK_DIR = str(tmp_path / "work")


@pytest.fixture
def boss() -> Client:
    return signed_in(User.objects.create_superuser("boss"))


def entry(action: str, **values: Any) -> AuditEntry:
    plain = {"actor": "max", "subject": "channel", "subject_id": "1", "action": action}
    return AuditEntry.objects.create(**{**plain, **values})


def tampered(sql: str, *values: Any) -> None:
    """Change the tables as somebody who owns them can."""
    with connection.cursor() as cursor:
        for table in ("gateway_auditentry", "gateway_auditseal"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(sql, values)
        for table in ("gateway_auditentry", "gateway_auditseal"):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def check() -> str:
    said = io.StringIO()
    call_command("audit_trail", "check", stdout=said)
    return said.getvalue()


def done(client: Client, answer: Any) -> BackgroundWork:
    assert answer.status_code == 302
    while queue.run_background_work():
        pass
    return BackgroundWork.objects.latest("asked_at")


def test_every_entry_is_sealed_once_with_the_one_before(shop: Shop) -> None:
    first = [entry("change", after={"name": "é", "rate": 1.10}).pk, entry("delete", ip="2001:db8::1").pk]
    assert audit_seals.seal_new_entries() >= 2
    third = entry("create").pk
    assert audit_seals.seal_new_entries() == 1
    assert audit_seals.seal_new_entries() == 0
    seals = list(AuditSeal.objects.order_by("number"))
    assert [seal.number for seal in seals] == list(range(1, len(seals) + 1))
    assert {*first, third} <= {seal.entry for seal in seals}
    assert "are as they were sealed" in check()


def test_an_entry_that_was_committed_late_is_sealed_after_younger_ones() -> None:
    """Keys are given in the order of the statements, and transactions end in another."""
    late, young = entry("change"), entry("change")
    AuditSeal.objects.create(
        number=1,
        entry=young.pk,
        digest=audit_seals.compute_digest(audit_seals.CHAIN_START, young),
        sealed_at=young.at,
    )
    assert audit_seals.seal_new_entries() == 1
    assert AuditSeal.objects.get(number=2).entry == late.pk
    assert "2 entries" in check()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE gateway_auditentry SET actor = 'somebody else' WHERE id = %s", "is not as it was sealed"),
        ('UPDATE gateway_auditentry SET after = \'{"amount": "1.00"}\' WHERE id = %s', "is not as it was sealed"),
        ("DELETE FROM gateway_auditentry WHERE id = %s", "is missing"),
        ("DELETE FROM gateway_auditseal WHERE entry = %s", "is missing"),
    ],
)
def test_what_was_changed_or_taken_out_breaks_the_chain(sql: str, said: str) -> None:
    made = [entry("change", after={"amount": "100.00"}) for _ in range(3)]
    audit_seals.seal_new_entries()
    tampered(sql, made[1].pk)
    with pytest.raises(CommandError, match=f"broken at seal 2: .*{said}"):
        check()


def test_a_chain_that_was_made_anew_lacks_the_digest_that_was_noted() -> None:
    entry("change")
    audit_seals.seal_new_entries()
    noted = AuditSeal.objects.get().digest
    call_command("audit_trail", "check", "--noted", noted, stdout=io.StringIO())
    tampered("DELETE FROM gateway_auditseal")
    tampered("UPDATE gateway_auditentry SET actor = 'nobody'")
    assert "1 entries are" in check()
    with pytest.raises(CommandError, match="noted digest"):
        call_command("audit_trail", "check", "--noted", noted, stdout=io.StringIO())


def test_the_page_checks_the_chain_and_says_what_is_wrong(boss: Client, shop: Shop) -> None:
    made = entry("change")
    audit_seals.seal_new_entries()
    page = boss.get(TRAIL).content.decode()
    assert AuditSeal.objects.order_by("-number")[0].digest in page
    row = done(boss, boss.post(f"{TRAIL}check/"))
    assert row.state == "DONE"
    assert "are as they were sealed" in row.message
    tampered("UPDATE gateway_auditentry SET actor = 'x' WHERE id = %s", made.pk)
    row = done(boss, boss.post(f"{TRAIL}check/"))
    assert row.state == "FAILED"
    assert f"entry {made.pk} is not as it was sealed" in row.message
    # The chain is the installation's: a merchant's people see neither its digest nor its length.
    auditor = signed_in(person("ada", "auditor", shop.merchant))
    assert "Last digest" not in auditor.get(TRAIL).content.decode()
    assert auditor.post(f"{TRAIL}check/").status_code == 403


def test_the_export_is_signed_and_has_only_what_its_owner_sees(
    shop: Shop, stranger: Shop, boss: Client, tmp_path: Path
) -> None:
    entry("change", merchant=shop.merchant.pk, after={"mine": True})
    entry("change", merchant=stranger.merchant.pk)
    audit_seals.seal_new_entries()
    auditor = signed_in(person("ada", "auditor", shop.merchant))
    row = done(auditor, auditor.post(f"{TRAIL}export/"))
    octets = b"".join(auditor.get(f"/admin/gateway/backgroundwork/{row.pk}/file/").streaming_content)
    packed = zipfile.ZipFile(io.BytesIO(octets))
    entries = [json.loads(text) for text in packed.read("entries.jsonl").decode().splitlines()]
    assert {one["merchant"] for one in entries} == {shop.merchant.pk.hex}
    (mine,) = (one for one in entries if one["after"] == {"mine": True})
    found = AuditEntry.objects.get(pk=mine["id"])
    assert audit_seals.compute_digest(mine["seal"]["digestBefore"], found) == mine["seal"]["digest"]
    file = tmp_path / "audit.zip"
    file.write_bytes(octets)
    said = io.StringIO()
    call_command("audit_trail", "verify", str(file), stdout=said)
    assert f"{len(entries)} entries, signed" in said.getvalue()
    for name, wrong in (("entries.jsonl", "not what was signed"), ("manifest.json", "signature is wrong")):
        with zipfile.ZipFile(file, "w") as forged:
            for each in packed.namelist():
                text = packed.read(each)
                forged.writestr(each, text.replace(b"max", b"eva").replace(b"ada", b"eva") if each == name else text)
        with pytest.raises(CommandError, match=wrong):
            call_command("audit_trail", "verify", str(file))
    file.write_bytes(b"nothing")
    with pytest.raises(CommandError, match="no export"):
        call_command("audit_trail", "verify", str(file))


def test_the_trail_speaks_in_sentences_and_hides_looks(shop: Shop, boss: Client) -> None:
    paid = Payment.objects.get(pk=shop.api.pay(merchantTransactionId="order-4711").id)
    entry("view", subject="payment", subject_id=str(paid.pk))
    asked = {"operation": "RF", "amount": "80.00", "currency": "EUR", "asked by": "clara"}
    entry("approval given", subject="approval", subject_id="0", after=asked)
    entry("link", subject="something", subject_id="7")
    entry("never heard of")
    page = boss.get(TRAIL).content.decode()
    assert "max approved Refund 80.00 EUR, asked by clara" in page
    assert "max: never heard of, channel" in page
    assert "max looked at" not in page
    for looks in ("all", "only"):
        assert "max looked at payment Debit 92.00 EUR, order-4711" in boss.get(TRAIL, {"looks": looks}).content.decode()
    assert "asked by clara" not in boss.get(TRAIL, {"looks": "only"}).content.decode()
    assert "max looked at" in boss.get(TRAIL, {"action__exact": "view"}).content.decode()


def test_the_trail_of_a_period_is_found_along_its_ids(boss: Client) -> None:
    """Its times have no index, and nothing is ever deleted of it."""
    now = clock.real_now()
    tampered("UPDATE gateway_auditentry SET at = %s", now - timedelta(days=400))
    rows = [entry(f"act{number}") for number in range(9)]
    for hours, row in zip((200, 100, 99, 50, 49, 3, 3, 2, 0), rows, strict=True):
        tampered("UPDATE gateway_auditentry SET at = %s WHERE id = %s", now - timedelta(hours=hours), row.pk)
    assert find_first_entry_id(now - timedelta(hours=300)) <= rows[0].pk
    for index, hours in ((1, 150), (5, 40), (8, 1)):
        assert find_first_entry_id(now - timedelta(hours=hours)) == rows[index].pk, hours
    with CaptureQueriesContext(connection) as asked:
        assert find_first_entry_id(now + timedelta(hours=1)) > rows[-1].pk
    assert len(asked) == 1, "one statement, however long the trail is"
    ends = {name: f"{now - timedelta(hours=hours):%Y-%m-%dT%H:%MZ}" for name, hours in (("from", 99.5), ("to", 2.5))}
    for asked, some in (({"period": "hour"}, rows[8:]), ({"period": "day"}, rows[5:]), (ends, rows[2:7])):
        shown = boss.get(TRAIL, asked).context["cl"].result_list
        assert {row.pk for row in shown if row.actor == "max"} == {row.pk for row in some}, asked
    assert "give a date as" in boss.get(TRAIL, {"from": "yesterday"}).content.decode()


def test_the_names_on_a_page_of_the_trail_cost_the_same_for_many_rows(shop: Shop, boss: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as asked:
            assert boss.get(TRAIL).status_code == 200
        return len(asked)

    def make(count: int) -> None:
        for _ in range(count):
            entry("change", subject="payment", subject_id=str(shop.api.pay().id))
            entry("change", subject="channel", subject_id=str(shop.channel.pk))

    make(1)
    statements()
    before = statements()
    make(4)
    assert statements() == before


def test_an_entry_reads_all_merchants_and_all_channels_it_names_at_once(shop: Shop, boss: Client) -> None:
    merchants = [Merchant.objects.create(division=shop.merchant.division, name=f"Shop {at}") for at in "AB"]
    channels = [Channel.objects.create(merchant=merchant, name="main") for merchant in merchants]
    before, after = (
        {"merchant": str(merchant.pk), "channel": str(channel.pk)}
        for merchant, channel in zip(merchants, channels, strict=True)
    )
    asked = []
    for kept in (None, None, before):  # the first also fills what is kept between requests
        row = entry("change", subject="accesstoken", before=kept, after=after)
        with CaptureQueriesContext(connection) as captured:
            page = boss.get(f"{TRAIL}{row.pk}/change/").content.decode()
        asked.append(len(captured))
    for merchant, channel in zip(merchants, channels, strict=True):
        assert f"{merchant.name}\n{merchant.pk.hex}" in page
        assert f"{merchant.name}: main\n{channel.pk.hex}" in page
    assert asked[2] == asked[1]
