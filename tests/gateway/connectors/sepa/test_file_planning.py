"""Collection files: valid, each order in one of them, the same bytes after a crash, laid out once."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.urls import reverse
from sepaxml.validation import try_valid_xml

from gateway.connectors import accounts
from gateway.connectors.sepa import file_delivery, file_planning, order_records
from gateway.connectors.sepa.connector import SEPA
from gateway.core import clock
from gateway.models import AcquirerAccount, AuditEntry, BankFile, BankOrder, Merchant, Payment, Role, SepaMandate
from gateway.payments import recovery
from gateway.timers import registry
from gateway.vault.sealing import current_vault
from tests.support import sepa
from tests.support.acquirers import Killed
from tests.support.clock import jump, pass_time
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.recovery import recover_after
from tests.support.threads import at_once

DAYS = 24 * 3600.0


def run(shop: Shop) -> BankFile:
    """Some days later a file is decided; nobody has made it yet."""
    jump(sepa.A_RUN * DAYS)
    assert file_planning.plan_due_bank_files(SEPA, shop.merchant)
    return BankFile.objects.latest("id")


@pytest.mark.django_db
@pytest.mark.parametrize("schema", ["pain.008.001.08", "pain.008.001.02"])
@pytest.mark.parametrize("instrument", ["CORE", "B2B"])
def test_files_are_valid_by_the_messages_schema(shop: Shop, outbox: Path, schema: str, instrument: str) -> None:
    sepa.account_at_bank(shop.channel, schema=schema, instrument=instrument)
    sepa.debit(shop.api, bankAccount__holder="Zoë Müller-Łukasz & Söhne <Ltd>", descriptor="Größe 4 – „Hallo“")
    sepa.debit(shop.api, "0.01", bankAccount__iban=sepa.OTHER_DEBTOR, bankAccount__mandate__id="A" * 200)
    pass_time(shop.api, days=sepa.A_RUN)
    (file,) = sepa.files_in(outbox)
    try_valid_xml(file.xml, schema)
    assert f"urn:iso:std:iso:20022:tech:xsd:{schema}".encode() in file.xml
    assert file.texts("PmtTpInf/LclInstrm/Cd")[0] == instrument
    assert "Zoe Muller-Lukasz   Sohne  Ltd" in file.texts("Dbtr/Nm")
    assert (file.text("GrpHdr/NbOfTxs"), file.text("GrpHdr/CtrlSum")) == ("2", "92.01")
    assert all(len(one) <= 35 for path in ("MndtId", "PmtInfId", "MsgId") for one in file.texts(path))


@pytest.mark.django_db
def test_a_mandate_is_first_then_recurs_and_is_first_again_when_the_bank_rejected_it(
    banked: Shop, outbox: Path
) -> None:
    """FRST, RCUR; OOFF for a mandate that we made up for one payment."""
    first = sepa.debit(banked.api, bankAccount__mandate__id="M-A")
    once = sepa.debit(banked.api, bankAccount__iban=sepa.OTHER_DEBTOR, bankAccount__country="NL")
    file = run(banked)
    told = dict(BankOrder.objects.values_list("payment", "sequence"))
    assert (told[UUID(first.id)], told[UUID(once.id)]) == ("FRST", "OOFF")
    sepa.take(sepa.status(file.message_id, orders={first.id: ("RJCT", "AM04")}))
    again, later = (sepa.debit(banked.api, bankAccount__mandate__id="M-A") for _ in range(2))
    run(banked)
    told = dict(BankOrder.objects.values_list("payment", "sequence"))
    assert sorted((told[UUID(again.id)], told[UUID(later.id)])) == ["FRST", "RCUR"]


@pytest.mark.django_db
def test_a_stored_account_keeps_the_mandate_of_its_storing(banked: Shop) -> None:
    fields = {name.replace("__", "."): value for name, value in sepa.JANE.items() if value}
    stored = banked.api.post("/v1/registrations", fields)
    assert stored.code == "000.100.112", stored
    for _ in range(2):
        paid = banked.api.post(
            f"/v1/registrations/{stored.id}/payments",
            {"paymentType": "DB", "amount": "12.00", "currency": "EUR", "testMode": "EXTERNAL"},
        )
        assert paid.code == "800.400.501", paid
    run(banked)
    assert {order.mandate.mandate for order in BankOrder.objects.all() if order.mandate} == {stored.id.upper()}
    assert sorted(BankOrder.objects.values_list("sequence", flat=True)) == ["FRST", "RCUR"]


@pytest.mark.django_db
def test_a_mandate_of_another_account_is_refused(banked: Shop) -> None:
    sepa.debit(banked.api, bankAccount__mandate__id="M-A")
    other = banked.api.pay(**{**sepa.JANE, "bankAccount__mandate__id": "M-A", "bankAccount__iban": sepa.OTHER_DEBTOR})
    assert (other.status, other.code) == (400, "600.200.500")


@pytest.mark.django_db
def test_a_file_made_again_has_the_same_bytes_though_the_account_was_changed(banked: Shop) -> None:
    for number in range(3):
        sepa.debit(banked.api, f"{number + 1}.00", bankAccount__mandate__id="M-A")
    file = run(banked)
    before = file_delivery.render_bank_file(file)
    banked.channel.acquirer_accounts.update(settings=sepa.SETTINGS | {"creditorName": "Somebody else"})
    accounts.clear_account_cache()
    assert file_delivery.render_bank_file(BankFile.objects.get(pk=file.pk)) == before
    assert b"Shop Ltd" in before


@pytest.mark.django_db
@pytest.mark.parametrize("moment", ["before the bytes", "before the commit", "before the rename", "after the rename"])
def test_a_run_that_is_killed_lays_its_file_out_once(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """At each step between the decision and the delivery. A file that was fetched meanwhile is not laid out again."""

    class Killed(BaseException):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Killed

    sepa.debit(banked.api)
    file = run(banked)
    with monkeypatch.context() as patch:
        step = {
            "before the bytes": (file_delivery, "render_bank_file"),
            "before the commit": (file_delivery, "_sync"),
            "before the rename": (Path, "rename"),
        }
        if moment in step:
            patch.setattr(*step[moment], die)
        else:
            rename = Path.rename
            patch.setattr(Path, "rename", lambda path, to: (rename(path, to), die()))
        with pytest.raises(Killed):
            file_delivery.deliver_due_bank_files(SEPA)
    file.refresh_from_db()
    assert file.state != BankFile.State.DELIVERED
    fetched = 0
    for path in outbox.rglob("TH*.xml"):
        path.unlink()
        fetched += 1
    assert file_delivery.deliver_due_bank_files(SEPA) == 0
    BankFile.objects.update(lease_until=clock.real_now() - timedelta(seconds=1))
    assert file_delivery.deliver_due_bank_files(SEPA) == 1
    assert len(sepa.files_in(outbox)) + fetched == 1
    assert file_delivery.deliver_due_bank_files(SEPA) == 0


@pytest.mark.django_db
def test_files_are_readable_by_their_owner_alone_and_go_after_a_while(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api)
    pass_time(banked.api, days=sepa.A_RUN)
    (path,) = outbox.rglob("*.xml")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert file_delivery.delete_old_bank_files() == 0
    BankFile.objects.update(delivered_at=clock.real_now() - timedelta(days=15))
    assert (file_delivery.delete_old_bank_files(), file_delivery.delete_old_bank_files()) == (1, 0)
    assert not path.exists()


@pytest.mark.django_db
def test_a_file_whose_bytes_would_differ_stays_here_and_says_why(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api)
    file = run(banked)
    BankFile.objects.update(sha256="0" * 64)
    assert file_delivery.deliver_due_bank_files(SEPA) == 0
    file.refresh_from_db()
    assert (file.state, file.failure) == ("FAILED", "made again it has other bytes, so it stays here")
    assert sepa.files_in(outbox) == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"bankAccount__bic": "12345678"}, "100.200.103"),
        ({"bankAccount__bic": "MARKDE1O"}, "100.200.103"),
        ({"amount": "1000000000.00"}, "100.550.301"),
    ],
    ids=str,
)
def test_an_order_that_fits_into_no_file_is_declined_and_the_others_go(
    banked: Shop, outbox: Path, wrong: dict[str, str], code: str
) -> None:
    """The file of the day is valid as a whole or stays here: one shopper's nonsense must not keep everybody's money."""
    small = sepa.debit(banked.api, bankAccount__bic="cobadeff")
    refused = banked.api.pay(**{**sepa.JANE, "amount": "92.00", **wrong})
    assert (refused.status, refused.code) == (400, code)
    most = sepa.debit(banked.api, "999999999.99")
    pass_time(banked.api, days=4)
    (file,) = sepa.files_in(outbox)
    try_valid_xml(file.xml, "pain.008.001.08")
    assert sorted(file.texts("EndToEndId")) == sorted([small.id, most.id])
    assert "COBADEFF" in file.texts("DbtrAgt/FinInstnId/BICFI")


@pytest.mark.django_db
def test_files_that_were_claimed_together_are_each_held_while_their_turn_comes(
    shop: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow bank takes longer for some of them than one lease lasts: nobody sends what another one is sending."""
    for name in ("bank-a", "bank-b"):
        sepa.account_at_bank(shop.channel, name, delivery="http", uploadUrl="http://127.0.0.1:9/payments")
        sepa.debit(shop.api)
        AcquirerAccount.objects.filter(acquirer_merchant_id=name).update(active=False)
    jump(4 * DAYS)
    assert file_planning.plan_due_bank_files(SEPA, shop.merchant) == 2
    sent: list[str] = []

    def slow(file: BankFile, connector: object) -> None:
        sent.append(file.message_id)
        if len(sent) == 1:
            # As long as it takes for the lease of those claimed together to run out; then somebody else looks.
            BankFile.objects.filter(tries__gt=0).exclude(pk=file.pk).update(
                lease_until=clock.real_now() - file_delivery.BANK_FILE_LEASE
            )
            assert file_delivery.deliver_due_bank_files(SEPA) == 1

    monkeypatch.setattr(file_delivery, "_upload", slow)
    assert file_delivery.deliver_due_bank_files(SEPA) == 1
    assert sorted(sent) == sorted(BankFile.objects.values_list("message_id", flat=True))
    assert set(BankFile.objects.values_list("state", flat=True)) == {"DELIVERED"}


@pytest.mark.django_db
def test_a_file_that_was_given_up_while_it_was_delivered_is_delivered(
    shop: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first sender's lease ran out, another one gave the file up, and then the bank took the first one's."""
    sepa.account_at_bank(shop.channel, delivery="http", uploadUrl="http://127.0.0.1:9/payments")
    sepa.debit(shop.api)
    file = run(shop)

    def taken_late(file: BankFile, connector: object) -> None:
        BankFile.objects.filter(pk=file.pk).update(state=BankFile.State.FAILED, failure="answered with 503")

    monkeypatch.setattr(file_delivery, "_upload", taken_late)
    assert file_delivery.deliver_due_bank_files(SEPA) == 1
    file.refresh_from_db()
    assert (file.state, file.failure) == ("DELIVERED", "")


@pytest.mark.django_db
def test_a_file_that_was_given_up_is_sent_by_hand(banked: Shop, outbox: Path) -> None:
    """After a week without its bank nobody tries any more; its orders wait for it."""
    sepa.debit(banked.api)
    file = run(banked)
    BankFile.objects.update(
        state=BankFile.State.FAILED, tries=file_delivery.MAX_BANK_FILE_TRIES, failure="answered with 503"
    )
    boss = person("boss@shop", Role.MANAGER, banked.merchant)
    page = reverse("admin:gateway_bankfile_changelist")
    data = {"action": "send_again", "_selected_action": str(file.pk)}
    assert signed_in(boss, fresh=False).post(page, data)["Location"].startswith("/admin/again/")
    assert BankFile.objects.get().state == BankFile.State.FAILED
    answer = signed_in(boss).post(page, data, follow=True)
    assert "1 file is tried again" in answer.content.decode()
    assert AuditEntry.objects.filter(action="send again", subject_id=str(file.pk)).exists()
    assert not file_delivery.retry_bank_file(file)
    assert file_delivery.deliver_due_bank_files(SEPA) == 1
    assert len(sepa.files_in(outbox)) == 1


@pytest.mark.django_db
def test_an_upload_without_an_answer_is_tried_again(shop: Shop, outbox: Path) -> None:
    sepa.account_at_bank(shop.channel, delivery="http", uploadUrl="http://127.0.0.1:9/payments")
    sepa.debit(shop.api)
    file = run(shop)
    assert file_delivery.deliver_due_bank_files(SEPA) == 0
    file.refresh_from_db()
    assert (file.state, file.tries) == ("DECIDED", 1)
    assert file.failure
    assert file.due_at is not None
    assert file.due_at > clock.real_now()


@pytest.mark.django_db
def test_no_account_stands_in_clear_in_the_books(banked: Shop) -> None:
    """Sealed for its row; shown masked; and what the exchange keeps is masked too."""
    paid = sepa.debit(banked.api)
    run(banked)
    order = BankOrder.objects.get()
    assert order.iban_sealed is not None
    assert current_vault().open(order.iban_sealed, order.pk).reveal() == sepa.DEBTOR
    tables = ("bankorder", "bankfile", "sepamandate", "acquirerexchange", "payment", "bankorderevent")
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"SELECT count(*) FROM gateway_{table} t WHERE t::text LIKE %s", [f"%{sepa.DEBTOR}%"])
            assert cursor.fetchone() == (0,), table
    assert order.iban_shown == "DE89**************3000"
    assert paid.id


@pytest.mark.django_db
def test_an_account_that_is_not_set_up_any_more_leaves_its_orders_waiting(banked: Shop) -> None:
    sepa.debit(banked.api)
    banked.channel.acquirer_accounts.update(settings=sepa.SETTINGS | {"creditorIban": "DE00"})
    accounts.clear_account_cache()
    jump(sepa.A_RUN * DAYS)
    assert file_planning.plan_due_bank_files(SEPA, banked.merchant) == 0
    assert BankOrder.objects.get().state == BankOrder.State.WAITING
    refused = banked.api.pay(**sepa.JANE)
    assert (refused.status, refused.code) == (400, "600.200.501")


@pytest.mark.django_db
def test_an_account_whose_secrets_do_not_open_keeps_nobody_else_waiting(shop: Shop, outbox: Path) -> None:
    """Neither when files are decided nor when they are sent; each waits for the key."""
    locked = sepa.account_at_bank(shop.channel, delivery="http", uploadUrl="http://127.0.0.1:9/x", uploadUser="shop")
    sepa.debit(shop.api)
    first = run(shop)
    sepa.debit(shop.api)
    sepa.account_at_bank(shop.channel, "zz-bank")
    AcquirerAccount.objects.filter(pk=locked.pk).update(secrets_sealed=b"of another key", active=False)
    accounts.clear_account_cache()
    paid = sepa.debit(shop.api).id
    second = run(shop)
    assert second.acquirer_merchant_id == "zz-bank"
    assert BankOrder.objects.filter(state=BankOrder.State.WAITING).count() == 1
    assert file_delivery.deliver_due_bank_files(SEPA, shop.merchant) == 1
    first.refresh_from_db()
    assert (first.state, first.failure) == ("DECIDED", "the account's secrets do not open: the vault has lost its key")
    assert [file.texts("EndToEndId") for file in sepa.files_in(outbox)] == [[paid]]


@pytest.mark.django_db
def test_accounts_that_cannot_be_filed_for_do_not_stand_before_the_others(
    banked: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round looks at so many accounts at most; those that are never filed for are due at every round."""
    monkeypatch.setattr(file_planning, "MAX_FILES_PER_ROUND", 1)
    shops = sorted((banked, stranger), key=lambda shop: shop.channel.pk)
    sepa.account_at_bank(stranger.channel)
    for shop in shops:
        sepa.debit(shop.api)
    shops[0].channel.acquirer_accounts.update(settings=sepa.SETTINGS | {"creditorIban": "DE00"})
    accounts.clear_account_cache()
    jump(sepa.A_RUN * DAYS)
    assert any(file_planning.plan_due_bank_files(SEPA) for _ in range(100))


@pytest.fixture
def of_two(committed: Shop, tmp_path: Path) -> Iterator[Shop]:
    """A merchant whose rows threads of their own see."""
    accounts.clear_account_cache()
    sepa.account_at_bank(committed.channel)
    with override_settings(GATEWAY_SEPA_OUTBOX=str(tmp_path)):
        yield committed
    accounts.clear_account_cache()


def test_a_reversal_and_the_run_at_the_same_moment_leave_one_winner(of_two: Shop) -> None:
    """Taken out and in no file, or filed and refused: never both, never neither."""
    payments = [sepa.debit(of_two.api).id for _ in range(6)]
    jump(sepa.A_RUN * DAYS)

    def reverse(payment: str) -> bool:
        return of_two.api.follow(payment, "RV").code == "000.100.112"

    def decide() -> bool:
        return bool(file_planning.plan_due_bank_files(SEPA, Merchant.objects.get(pk=of_two.merchant.pk)))

    won = at_once(*[lambda one=one: reverse(one) for one in payments], decide)
    if not won[-1]:
        decide()
    registry.run_timer_now("bank answers")
    for payment, reversed_one in zip(payments, won, strict=False):
        order = BankOrder.objects.get(pk=payment)
        assert order.state == ("WITHDRAWN" if reversed_one else "FILED")
        assert (order.file is None) == reversed_one
        assert of_two.api.read(payment).code == ("100.396.201" if reversed_one else "800.400.501")


def reversal_of_a_worker_that_died(shop: Shop, payment: str, at: str, monkeypatch: pytest.MonkeyPatch) -> Payment:
    """It dies ``at`` a step of the line; recovery has asked about the reversal since."""

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"gateway.payments.{at}", kill)
        with pytest.raises(Killed):
            shop.api.follow(payment, "RV")
    assert recover_after(60).settled == 1
    return Payment.objects.get(payment_type="RV")


def test_a_reversal_that_took_its_order_out_is_known_to_recovery(of_two: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = sepa.debit(of_two.api).id
    row = reversal_of_a_worker_that_died(of_two, paid, "follow_ups.complete_unless_recovered", monkeypatch)
    assert (row.status, row.result_code) == ("APPROVED", "000.100.112")
    registry.run_timer_now("bank answers")
    assert of_two.api.read(paid).code == "100.396.201"
    assert BankOrder.objects.count() == 1


def test_a_reversal_that_recovery_gave_up_takes_nothing_out_when_it_comes(
    of_two: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = sepa.debit(of_two.api).id
    row = reversal_of_a_worker_that_died(of_two, paid, "process._call_acquirer", monkeypatch)
    assert (row.status, row.result_code) == ("DECLINED", "900.100.301")
    late = SEPA.submit(recovery.build_inquiry(Payment.objects.get(pk=row.pk), SEPA))
    assert late.code == "700.300.700"
    assert list(BankOrder.objects.values_list("pk", "state")) == [(UUID(paid), "WAITING")]
    assert of_two.api.follow(paid, "RV").code == "000.100.112"


def test_two_runs_at_once_file_every_order_once(of_two: Shop) -> None:
    payments = [sepa.debit(of_two.api, bankAccount__mandate__id="M-A").id for _ in range(5)]
    jump(sepa.A_RUN * DAYS)
    merchant = Merchant.objects.get(pk=of_two.merchant.pk)
    filed = at_once(*[lambda: file_planning.plan_due_bank_files(SEPA, merchant) for _ in range(3)])
    assert sum(filed) == len(payments)
    orders = BankOrder.objects.filter(pk__in=payments)
    assert all(order.file is not None for order in orders)
    assert sorted(orders.values_list("sequence", flat=True)) == ["FRST", "RCUR", "RCUR", "RCUR", "RCUR"]
    assert SepaMandate.objects.count() == 1


def test_a_withdrawal_waits_for_a_run_that_has_not_ended(of_two: Shop) -> None:
    """While a run holds the row, whoever takes it back learns what came of it."""
    payment = sepa.debit(of_two.api).id
    jump(sepa.A_RUN * DAYS)
    merchant = Merchant.objects.get(pk=of_two.merchant.pk)
    result: list[bool] = []

    def withdraw() -> None:
        try:
            result.append(order_records.withdraw_bank_order(UUID(payment), reason="", applied=False))
        finally:
            connection.close()

    with transaction.atomic():
        assert file_planning.plan_due_bank_files(SEPA, merchant) == 1
        thread = threading.Thread(target=withdraw)
        thread.start()
    thread.join()
    assert result == [False]


@pytest.mark.django_db
@pytest.mark.parametrize("stopped", ["before it wrote", "while it wrote", "before it committed"])
def test_a_sender_that_was_stopped_leaves_no_half_of_a_file_with_the_bank(
    shop: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    """It wakes up after its lease, while another sender is between its commit and its rename."""
    sepa.account_at_bank(shop.channel)
    sepa.debit(shop.api)
    planned = run(shop)
    BankFile.objects.update(tries=1)
    late = BankFile.objects.get(pk=planned.pk)
    whole = file_delivery.render_bank_file(late)
    if stopped == "before it committed":
        file_delivery._write(file_delivery._temporary_path(late, late.tries), whole)
    rename, half = Path.rename, whole[: len(whole) // 2]

    def wakes_up_before(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        if stopped == "while it wrote":
            file_delivery._write(file_delivery._temporary_path(late, late.tries), half)
        else:
            file_delivery._place_in_outbox(late)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", wakes_up_before)
    assert file_delivery.deliver_due_bank_files(SEPA) == 1
    (file,) = [path for path in outbox.rglob("*.xml") if path.is_file()]
    assert file.read_bytes() == whole
    assert BankFile.objects.get().state == "DELIVERED"
    BankFile.objects.update(delivered_at=clock.real_now() - timedelta(days=4000))
    assert file_delivery.delete_old_bank_files() == 1
    assert [path for path in outbox.rglob("*") if path.is_file()] == []
