"""A collection whose file is with the bank is cancelled before its day by a request, where the bank takes such."""

from __future__ import annotations

from datetime import date
from html import unescape
from pathlib import Path
from uuid import UUID

import pytest
from django.urls import reverse

from gateway.connectors.port import AcquirerRequest, ConnectorAccount, NotFoundAtAcquirer, VoidRefusedError
from gateway.connectors.sepa import file_delivery
from gateway.connectors.sepa.connector import SEPA
from gateway.core import clock
from gateway.core.money import Money
from gateway.models import BankFile, BankOrder, Payment, Role, SepaMandate
from gateway.timers import registry
from tests.gateway.connectors.sepa.message_forms import CANCELLATION_FORMS, list_form_faults
from tests.support import sepa
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.sepa import Entry

pytestmark = pytest.mark.django_db
State = BankOrder.State
OUTSTANDING = "800.400.500"
LEAD_DAYS = "10"
"""TARGET days from the file to the day of collection, so that days are left in which the bank can be asked."""


@pytest.fixture
def cancelling(shop: Shop, outbox: Path) -> Shop:
    sepa.account_at_bank(shop.channel, cancelBy="request", leadDays=LEAD_DAYS)
    return shop


def filed(shop: Shop, amount: str = "92.00", **more: str | None) -> str:
    """A collection whose file the bank has, and whose day is still to come."""
    paid = sepa.debit(shop.api, amount, **more).id
    sepa.pass_to_file(shop.api)
    assert order(paid).state == State.FILED
    return paid


def cancel(shop: Shop, paid: str) -> str:
    """The reversal of a filed collection, whose request goes to the bank at once."""
    asked = shop.api.follow(paid, "RV")
    assert (asked.status, asked.code) == (200, OUTSTANDING)
    registry.run_timer_now("bank files")
    assert order(asked.id).state == State.FILED
    return asked.id


def order(ident: str) -> BankOrder:
    return BankOrder.objects.get(pk=ident)


def settle() -> None:
    registry.run_timer_now("bank answers")


def requests_in(outbox: Path) -> list[sepa.File]:
    return [file for file in sepa.files_in(outbox) if b"camt.055" in file.xml]


def states(shop: Shop, *idents: str) -> list[str]:
    settle()
    return [shop.api.read(ident).code for ident in idents]


# --- the request --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["pain.008.001.08", "pain.008.001.02"])
def test_the_request_names_the_file_the_batch_and_the_collection(shop: Shop, outbox: Path, schema: str) -> None:
    sepa.account_at_bank(shop.channel, cancelBy="request", leadDays=LEAD_DAYS, schema=schema)
    paid = filed(shop)
    asked = cancel(shop, paid)
    (file,), original = requests_in(outbox), order(paid).file
    assert original is not None
    version = {"pain.008.001.08": "camt.055.001.08", "pain.008.001.02": "camt.055.001.01"}[schema]
    assert list_form_faults(file.tree, CANCELLATION_FORMS[version], f"urn:iso:std:iso:20022:tech:xsd:{version}") == []
    assert (file.text("OrgnlGrpInf/OrgnlMsgId"), file.text("OrgnlGrpInf/OrgnlMsgNmId")) == (original.message_id, schema)
    assert file.text("OrgnlPmtInfId") == order(paid).batch
    assert (file.text("TxInf/CxlId"), file.text("OrgnlEndToEndId")) == (asked, paid)
    due = order(paid).due_on
    assert due is not None
    assert (file.text("OrgnlInstdAmt"), file.text("OrgnlReqdColltnDt")) == ("92.00", due.isoformat())
    assert order(asked).file is not None
    assert file_delivery.render_bank_file(order(asked).file) == file.xml  # type: ignore[arg-type]


def test_without_a_bic_the_bank_is_not_provided(shop: Shop, outbox: Path) -> None:
    sepa.account_at_bank(shop.channel, cancelBy="request", leadDays=LEAD_DAYS, creditorBic="")
    cancel(shop, filed(shop))
    (file,) = requests_in(outbox)
    assert file.text("Assgne/Agt/FinInstnId/Othr/Id") == "NOTPROVIDED"
    assert list_form_faults(file.tree, CANCELLATION_FORMS["camt.055.001.08"]) == []


def test_collections_of_two_batches_are_cancelled_in_their_batches(cancelling: Shop, outbox: Path) -> None:
    one = sepa.debit(cancelling.api, "1.00").id
    stored = sepa.debit(cancelling.api, "2.00", createRegistration="true").id
    sepa.pass_to_file(cancelling.api)
    asked = {paid: cancelling.api.follow(paid, "RV").id for paid in (one, stored)}
    registry.run_timer_now("bank files")
    (file,) = requests_in(outbox)
    parts = file.tree.findall(".//{*}OrgnlPmtInfAndCxl")
    found = {
        (part.findtext("{*}OrgnlPmtInfId"), part.findtext("{*}TxInf/{*}OrgnlEndToEndId"), part.findtext("{*}NbOfTxs"))
        for part in parts
    }
    assert found == {(order(paid).batch, paid, "1") for paid in asked}
    assert len({part.findtext("{*}PmtCxlId") for part in parts}) == 2


def test_collections_of_two_files_are_cancelled_in_two(cancelling: Shop, outbox: Path) -> None:
    first = filed(cancelling)
    second = filed(cancelling)
    asked = [cancelling.api.follow(paid, "RV").id for paid in (first, second)]
    for _ in range(2):
        registry.run_timer_now("bank files")
    files = requests_in(outbox)
    assert {file.text("OrgnlEndToEndId") for file in files} == {first, second}
    assert {order(one).state for one in asked} == {State.FILED}


def test_a_bank_that_takes_no_requests_is_not_asked(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api).id
    sepa.pass_to_file(banked.api)
    assert banked.api.follow(paid, "RV").code == "700.300.700"
    assert requests_in(outbox) == []


def test_a_collection_without_a_file_is_taken_out_and_no_bank_is_asked(cancelling: Shop, outbox: Path) -> None:
    paid = sepa.debit(cancelling.api).id
    taken_out = cancelling.api.follow(paid, "RV")
    assert taken_out.code == "000.100.112"
    assert states(cancelling, paid) == ["100.396.201"]
    assert not BankOrder.objects.filter(kind=BankFile.Kind.CANCEL).exists()


def test_on_its_day_it_is_too_late(cancelling: Shop, outbox: Path) -> None:
    paid = filed(cancelling)
    pass_time(cancelling.api, days=(order(paid).due_on - today(cancelling)).days)  # type: ignore[operator]
    assert cancelling.api.follow(paid, "RV").code == "700.300.700"


def test_a_request_that_cannot_leave_before_the_day_is_declined(cancelling: Shop, outbox: Path) -> None:
    """Its worker was away: nothing is asked for that can only be refused."""
    paid = filed(cancelling)
    asked = cancelling.api.follow(paid, "RV").id
    BankOrder.objects.filter(pk=paid).update(due_on=today(cancelling))
    registry.run_timer_now("bank files")
    assert (order(asked).state, order(asked).reason) == (State.REJECTED, "TM01")
    assert states(cancelling, paid, asked) == ["800.400.501", "700.300.700"]
    assert requests_in(outbox) == []


def test_a_request_waits_until_the_file_of_its_collection_has_left(cancelling: Shop, outbox: Path) -> None:
    paid = filed(cancelling)
    BankFile.objects.update(state=BankFile.State.FAILED)
    asked = cancelling.api.follow(paid, "RV").id
    registry.run_timer_now("bank files")
    assert order(asked).state == State.WAITING
    BankFile.objects.update(state=BankFile.State.DELIVERED)
    registry.run_timer_now("bank files")
    assert order(asked).state == State.FILED


def test_a_part_of_a_collection_is_not_cancelled(cancelling: Shop) -> None:
    paid = filed(cancelling)
    assert cancelling.api.follow(paid, "RV", "10.00").code == "700.100.200"


def test_a_second_request_waits_for_the_answer_to_the_first(cancelling: Shop) -> None:
    paid = filed(cancelling)
    cancel(cancelling, paid)
    second = cancelling.api.follow(paid, "RV")
    assert second.status == 400
    assert BankOrder.objects.filter(kind=BankFile.Kind.CANCEL).count() == 1


# --- the answer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["batch", "file"])
def test_an_answer_that_fits_two_requests_decides_neither(cancelling: Shop, at: str) -> None:
    """Two collections of one file, asked for one after the other: the answer names the collections' file or batch."""
    one, other = (sepa.debit(cancelling.api, amount).id for amount in ("1.00", "2.00"))
    sepa.pass_to_file(cancelling.api)
    asked = [cancel(cancelling, paid) for paid in (one, other)]
    taken = sepa.take(sepa.resolution(order(one).file, order(one), status="ACCR", at=at))  # type: ignore[arg-type]
    assert (taken.orders_changed, len(taken.findings)) == (0, 1)
    assert {order(ident).state for ident in (one, other, *asked)} == {State.FILED}


def test_a_refused_request_is_not_decided_by_a_later_answer_about_its_file(cancelling: Shop) -> None:
    one, other = (sepa.debit(cancelling.api, amount).id for amount in ("1.00", "2.00"))
    sepa.pass_to_file(cancelling.api)
    refused = cancel(cancelling, one)
    sepa.take(sepa.resolution(order(one).file, order(one), status="RJCR", at="order"))  # type: ignore[arg-type]
    asked = cancel(cancelling, other)
    answer = sepa.resolution(order(other).file, order(other), status="ACCR", at="file")  # type: ignore[arg-type]
    sepa.take(answer.replace("RESOLUTION-1", "RESOLUTION-2"))
    assert (order(one).state, order(refused).state) == (State.FILED, State.REJECTED)
    assert (order(other).state, order(asked).state) == (State.WITHDRAWN, State.CONFIRMED)


@pytest.mark.parametrize("at", ["order", "batch", "file", "message"])
def test_what_the_bank_cancels_is_never_collected(cancelling: Shop, outbox: Path, at: str) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    answer = sepa.resolution(order(paid).file, order(paid), status="ACCR", at=at)  # type: ignore[arg-type]
    for number in (1, 2):
        taken = sepa.take(answer.replace("RESOLUTION-1", f"RESOLUTION-{number}"))
        assert (taken.orders_changed, taken.findings) == ((2, []) if number == 1 else (0, []))
    assert (taken.kind, taken.message_id) == ("camt.029", "RESOLUTION-2")
    assert states(cancelling, paid, asked) == ["100.396.201", "000.100.112"]
    assert (order(paid).state, order(asked).state) == (State.WITHDRAWN, State.CONFIRMED)
    assert {row.status for row in Payment.objects.filter(pk=paid)} == {"DECLINED"}


@pytest.mark.parametrize("at", ["order", "batch", "file"])
def test_what_the_bank_does_not_cancel_is_collected(cancelling: Shop, outbox: Path, at: str) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    taken = sepa.take(sepa.resolution(order(paid).file, order(paid), status="RJCR", reason="PTNA", at=at))  # type: ignore[arg-type]
    assert (taken.orders_changed, taken.findings) == (1, [])
    assert states(cancelling, paid, asked) == ["800.400.501", "700.300.700"]
    why = cancelling.api.read(asked).body["resultDetails"]
    assert (why["AcquirerResponse"], "gone on to the next bank" in why["ExtendedDescription"]) == ("PTNA", True)
    sepa.take(sepa.statement([Entry(order=paid)]))
    assert states(cancelling, paid) == ["000.100.112"]


def test_a_pending_answer_decides_nothing(cancelling: Shop) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    taken = sepa.take(sepa.resolution(order(paid).file, order(paid), status="PDCR"))  # type: ignore[arg-type]
    assert (taken.orders_changed, taken.findings) == (0, [])
    assert states(cancelling, paid, asked) == ["800.400.501", OUTSTANDING]


def test_without_an_answer_the_booking_decides(cancelling: Shop) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    taken = sepa.take(sepa.statement([Entry(order=paid)]))
    assert (taken.orders_changed, taken.findings) == (2, [])
    assert states(cancelling, paid, asked) == ["000.100.112", "700.300.700"]


@pytest.mark.parametrize("by", ["status", "booking"])
def test_a_collection_that_is_rejected_before_the_answer_is_cancelled_all_the_same(cancelling: Shop, by: str) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    file = order(paid).file
    assert file is not None
    rejected = {
        "status": sepa.status(file.message_id, orders={paid: ("RJCT", "AC04")}),
        "booking": sepa.statement([Entry(order=paid, into=False, reason="AC04")]),
    }[by]
    assert sepa.take(rejected).findings == []
    assert states(cancelling, paid, asked) == ["800.100.202", "000.100.112"]
    late = sepa.take(sepa.resolution(file, order(paid), status="ACCR"))
    assert (late.orders_changed, late.findings) == (0, [])


def test_a_collection_that_is_rejected_before_the_request_leaves_needs_none(cancelling: Shop, outbox: Path) -> None:
    paid = filed(cancelling)
    asked = cancelling.api.follow(paid, "RV").id
    file = order(paid).file
    assert file is not None
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AC04")}))
    registry.run_timer_now("bank files")
    assert requests_in(outbox) == []
    assert states(cancelling, paid, asked) == ["800.100.202", "000.100.112"]


def test_an_agreement_after_the_booking_is_a_finding_and_the_return_a_chargeback(cancelling: Shop) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    sepa.take(sepa.statement([Entry(order=paid)]))
    taken = sepa.take(sepa.resolution(order(paid).file, order(paid), status="ACCR"))  # type: ignore[arg-type]
    assert taken.orders_changed == 0
    assert [("'cancelled'" in text) for text in taken.findings] == [True, True]
    sepa.take(sepa.statement([Entry(order=paid, into=False, reason="FOCR", on="2026-03-09")], number=2))
    settle()
    (chargeback,) = Payment.objects.filter(payment_type="CB")
    assert (str(chargeback.referenced), chargeback.result_code) == (str(UUID(paid)), "000.100.207")
    assert states(cancelling, asked) == ["700.300.700"]


def test_money_for_a_cancelled_collection_is_a_finding(cancelling: Shop) -> None:
    paid = filed(cancelling)
    cancel(cancelling, paid)
    sepa.take(sepa.resolution(order(paid).file, order(paid), status="ACCR"))  # type: ignore[arg-type]
    taken = sepa.take(sepa.statement([Entry(order=paid)]))
    assert (taken.orders_changed, len(taken.findings)) == (0, 1)


@pytest.mark.parametrize("booked", ["2.00", "3.00"])
def test_a_batch_in_one_sum_is_booked_but_for_what_was_cancelled(cancelling: Shop, booked: str) -> None:
    """Net, or gross: with what was cancelled."""
    paid = [sepa.debit(cancelling.api, amount).id for amount in ("1.00", "2.00")]
    sepa.pass_to_file(cancelling.api)
    cancel(cancelling, paid[0])
    sepa.take(sepa.resolution(order(paid[0]).file, order(paid[0]), status="ACCR"))  # type: ignore[arg-type]
    taken = sepa.take(sepa.statement([Entry(batch=order(paid[1]).batch, amount=booked)]))
    assert (taken.orders_changed, taken.findings) == (1, [])
    assert states(cancelling, *paid) == ["100.396.201", "000.100.112"]


def test_a_rejected_request_file_declines_the_reversal_alone(cancelling: Shop, outbox: Path) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    (file,) = requests_in(outbox)
    request = file.text("Assgnmt/Id")
    assert sepa.take(sepa.status(request, group="RJCT", reason="FF01")).findings == []
    assert states(cancelling, paid, asked) == ["800.400.501", "700.300.700"]


def test_a_status_of_the_requests_file_that_names_the_collection_is_the_requests(
    cancelling: Shop, outbox: Path
) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    (file,) = requests_in(outbox)
    sepa.take(sepa.status(file.text("Assgnmt/Id"), orders={paid: ("RJCT", "FF01")}))
    assert (order(paid).state, order(asked).state) == (State.FILED, State.REJECTED)


def test_an_answer_without_a_request_is_a_finding(cancelling: Shop) -> None:
    paid = filed(cancelling)
    taken = sepa.take(sepa.resolution(order(paid).file, order(paid), status="ACCR"))  # type: ignore[arg-type]
    assert taken.findings == [f"order {paid}: answers no cancellation request of ours"]
    assert order(paid).state == State.FILED


def test_an_answer_that_names_nothing_is_a_finding(cancelling: Shop) -> None:
    paid = filed(cancelling)
    cancel(cancelling, paid)
    taken = sepa.take(sepa.resolution(order(paid).file, order(paid), status="CNCL", at="nothing"))  # type: ignore[arg-type]
    assert (taken.orders_changed, len(taken.findings)) == (0, 1)
    assert order(paid).state == State.FILED


@pytest.mark.parametrize("named", ["batch", "file", "case: message", "case: batch", "case: request"])
@pytest.mark.parametrize(("said", "cancelled"), [("CNCL", True), ("RJCR", False)])
def test_a_confirmation_alone_is_about_what_its_answer_names(
    cancelling: Shop, outbox: Path, named: str, said: str, cancelled: bool
) -> None:
    """Some banks answer with Sts/Conf and the case, or with details that have no status of their own."""
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    behind, request = order(paid), order(asked)
    assert behind.file is not None
    assert request.file is not None
    cases = {"message": request.file.message_id, "batch": request.batch, "request": asked}
    told = {
        "batch": f"<OrgnlPmtInfAndSts><OrgnlPmtInfId>{behind.batch}</OrgnlPmtInfId></OrgnlPmtInfAndSts>",
        "file": f"<OrgnlGrpInfAndSts><OrgnlMsgId>{behind.file.message_id}</OrgnlMsgId></OrgnlGrpInfAndSts>",
    }
    answer = sepa.resolution(behind.file, behind, status=said, at="nothing")
    if named in told:
        answer = answer.replace("</Sts>", f"</Sts><CxlDtls>{told[named]}</CxlDtls>")
    else:
        case = f"<RslvdCase><Id>{cases[named.removeprefix('case: ')]}</Id></RslvdCase>"
        answer = answer.replace("<Sts>", f"{case}<Sts>")
    taken = sepa.take(answer)
    assert (taken.orders_changed, taken.findings) == (2 if cancelled else 1, [])
    found = (order(paid).state, order(asked).state)
    assert found == ((State.WITHDRAWN, State.CONFIRMED) if cancelled else (State.FILED, State.REJECTED))


@pytest.mark.parametrize("case", ["another-case", "0" * 32])
def test_a_case_that_is_not_ours_is_a_finding(cancelling: Shop, outbox: Path, case: str) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    answer = sepa.resolution(order(paid).file, order(paid), status="CNCL", at="nothing")  # type: ignore[arg-type]
    taken = sepa.take(answer.replace("<Sts>", f"<RslvdCase><Id>{case}</Id></RslvdCase><Sts>"))
    assert (taken.orders_changed, len(taken.findings)) == (0, 1)
    assert {order(paid).state, order(asked).state} == {State.FILED}


@pytest.mark.parametrize("status", ["PDCR", "PACR"])
@pytest.mark.parametrize("at", ["order", "batch", "file"])
def test_a_confirmation_beside_what_is_pending_decides_nothing(
    cancelling: Shop, outbox: Path, at: str, status: str
) -> None:
    """What has no final status of its own may still be collected."""
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    answer = sepa.resolution(order(paid).file, order(paid), status=status, at=at)  # type: ignore[arg-type]
    taken = sepa.take(answer.replace(f"<Conf>{status}</Conf>", "<Conf>CNCL</Conf>"))
    assert (taken.orders_changed, len(taken.findings)) == (0, 1)
    assert {order(paid).state, order(asked).state} == {State.FILED}


@pytest.mark.parametrize(
    ("language", "refused", "returned"),
    [
        ("en", "PTNA: it has gone on to the next bank", "AC04: account closed"),
        ("de", "PTNA: sie ist schon bei der nächsten Bank", "AC04: Konto aufgelöst"),
        ("fr", "PTNA : déjà transmise à la banque suivante", "AC04 : compte clôturé"),
    ],
)
def test_what_a_bank_gives_as_its_reason_is_said_in_the_readers_language(
    cancelling: Shop, outbox: Path, language: str, refused: str, returned: str
) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    sepa.take(sepa.resolution(order(paid).file, order(paid), status="RJCR", reason="PTNA"))  # type: ignore[arg-type]
    sepa.take(sepa.status(order(paid).file.message_id, orders={paid: ("RJCT", "AC04")}))  # type: ignore[union-attr]
    client = signed_in(person("clara", Role.CLERK, cancelling.merchant))
    client.post("/admin/language", {"language": language, "next": "/admin/"})

    def page(row: str, model: str = "bankorder") -> str:
        text = unescape(client.get(reverse(f"admin:gateway_{model}_change", args=[row])).content.decode())
        return text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")

    assert refused in page(asked)
    assert returned in page(paid)
    assert returned in page(str(SepaMandate.objects.get().pk), "sepamandate")


# --- what stands beside it ----------------------------------------------------------------------------------------


def test_days_do_not_count_a_collection_as_paid_that_the_bank_was_asked_to_cancel(shop: Shop, outbox: Path) -> None:
    """The bank may have agreed: its silence says nothing any more."""
    sepa.account_at_bank(shop.channel, cancelBy="request", leadDays=LEAD_DAYS, finalAfter="1")
    paid = filed(shop)
    asked = cancel(shop, paid)
    pass_time(shop.api, days=40)
    assert order(paid).state == State.FILED
    sepa.take(sepa.resolution(order(paid).file, order(paid), status="RJCR", reason="NOOR"))  # type: ignore[arg-type]
    registry.run_timer_now("bank days")
    assert states(shop, paid, asked) == ["000.100.112", "700.300.700"]


def test_after_a_cancelled_first_collection_the_next_one_is_the_first(cancelling: Shop, outbox: Path) -> None:
    paid = filed(cancelling, bankAccount__mandate__id="MANDATE-A", bankAccount__mandate__dateOfSignature="2026-01-01")
    cancel(cancelling, paid)
    assert order(paid).sequence == "FRST"
    sepa.take(sepa.resolution(order(paid).file, order(paid), status="ACCR", reason="CUST"))  # type: ignore[arg-type]
    assert SepaMandate.objects.get().state == SepaMandate.State.ACTIVE
    again = filed(cancelling, bankAccount__mandate__id="MANDATE-A", bankAccount__mandate__dateOfSignature="2026-01-01")
    assert order(again).sequence == "FRST"


def question(paid: str, asked: str) -> AcquirerRequest:
    row = Payment.objects.get(pk=asked)
    return AcquirerRequest(
        payment=row.id,
        operation="RV",
        brand=row.brand,
        money=Money(row.amount, row.currency),
        account=ConnectorAccount(merchant="shop-bank", settings=sepa.SETTINGS | {"cancelBy": "request"}),
        reference=paid,
        at=row.created_at,
    )


def test_a_worker_that_died_leaves_a_request_that_recovery_finds(cancelling: Shop) -> None:
    paid = filed(cancelling)
    asked = cancelling.api.follow(paid, "RV").id
    found = SEPA.inquire(question(paid, asked))
    assert not isinstance(found, NotFoundAtAcquirer)
    assert found.code == OUTSTANDING
    assert SEPA.submit(question(paid, asked)).code == OUTSTANDING
    assert BankOrder.objects.filter(kind=BankFile.Kind.CANCEL).count() == 1


def test_a_request_is_taken_back_until_it_is_in_a_file(cancelling: Shop, outbox: Path) -> None:
    paid = filed(cancelling)
    asked = cancelling.api.follow(paid, "RV").id
    assert SEPA.void(question(paid, asked)).code == "900.100.301"
    registry.run_timer_now("bank files")
    assert requests_in(outbox) == []
    assert order(asked).state == State.WITHDRAWN


def test_a_request_that_is_with_the_bank_is_not_taken_back(cancelling: Shop) -> None:
    paid = filed(cancelling)
    asked = cancel(cancelling, paid)
    with pytest.raises(VoidRefusedError):
        SEPA.void(question(paid, asked))


def today(shop: Shop) -> date:
    shop.merchant.refresh_from_db()
    return clock.merchant_now(shop.merchant).date()
