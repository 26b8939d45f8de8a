"""Mandates: which one a debit is collected under, and how they are amended, blocked, ended and lapse.

Source: EPC 016-06, 4.1 and 4.6.4; EPC 131-17; docs/connectors/sepa.md.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.urls import reverse
from sepaxml.validation import try_valid_xml

from gateway.connectors import accounts
from gateway.connectors.means import BankAccount
from gateway.connectors.port import ConnectorAccount
from gateway.connectors.sepa import file_delivery, file_planning, mandates
from gateway.connectors.sepa.bank_reasons import BANK_REASONS, MandateEffect
from gateway.connectors.sepa.connector import SEPA
from gateway.connectors.sepa.creditor import parse_creditor
from gateway.core.secret import Secret
from gateway.models import AcquirerAccount, AuditEntry, BankFile, BankOrder, Payment, Role, SepaMandate
from gateway.timers import registry
from tests.gateway.connectors.sepa.test_file_planning import run
from tests.support import sepa
from tests.support.client import Answer
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.sepa import Entry
from tests.support.subscriptions import started

pytestmark = pytest.mark.django_db
NAMED = {"bankAccount__mandate__id": "M-A", "bankAccount__mandate__dateOfSignature": "2026-01-15"}
SWISS = {
    "bankAccount__iban": "CH9300762011623852957", "bankAccount__country": "CH", "bankAccount__bic": "UBSWCHZH80A",
}  # fmt: skip
HOME = {
    "billing__street1": "Bahnhofstraße", "billing__houseNumber1": "12", "billing__postcode": "8001",
    "billing__city": "Zürich", "billing__country": "CH",
}  # fmt: skip


def refused(shop: Shop, **more: str | None) -> Answer:
    answer = shop.api.pay(**{**sepa.JANE, "amount": "92.00", **more})
    assert answer.status == 400, answer
    return answer


def why(answer: Answer) -> str:
    return str(answer.body["resultDetails"]["ExtendedDescription"])


def laid_out(outbox: Path) -> sepa.File:
    """The newest file that lies in the outbox."""
    file_delivery.deliver_due_bank_files(SEPA)
    newest = BankFile.objects.latest("id").message_id
    (found,) = (file for file in sepa.files_in(outbox) if file.message == newest)
    return found


def store(shop: Shop, **more: str) -> str:
    fields = {name.replace("__", "."): value for name, value in {**sepa.JANE, **more}.items() if value}
    stored = shop.api.post("/v1/registrations", fields)
    assert stored.status == 200, stored
    return stored.id


def pay_stored(shop: Shop, registration: str, **more: str) -> Answer:
    fields = {"paymentType": "DB", "amount": "12.00", "currency": "EUR", "testMode": "EXTERNAL"}
    return shop.api.post(f"/v1/registrations/{registration}/payments", fields | more)


def returned(shop: Shop, payment: str, reason: str) -> None:
    sepa.take(sepa.statement([Entry(order=payment)], number=1))
    sepa.take(sepa.statement([Entry(order=payment, into=False, reason=reason, on="2026-03-09")], number=2))
    registry.run_timer_now("bank answers")


# --- which one ----------------------------------------------------------------------------------------------------


def test_a_guests_debit_of_a_stored_account_is_a_one_off_of_its_own(banked: Shop) -> None:
    """The same IBAN was stored before; the guest gave no mandate that may be used again."""
    registration = store(banked)
    guest = sepa.debit(banked.api).id
    member = pay_stored(banked, registration).id
    run(banked)
    orders = BankOrder.objects.select_related("mandate").in_bulk([UUID(guest), UUID(member)])
    assert [orders[UUID(one)].sequence for one in (guest, member)] == ["OOFF", "FRST"]
    assert orders[UUID(guest)].mandate_reference == guest.upper()
    assert orders[UUID(member)].mandate_reference == registration.upper()


def test_an_account_that_is_stored_again_gives_a_mandate_of_its_own(banked: Shop) -> None:
    first = store(banked)
    pay_stored(banked, first)
    second = store(banked)
    paid = pay_stored(banked, second).id
    order = BankOrder.objects.select_related("mandate").get(pk=paid)
    assert (order.mandate.mandate if order.mandate else "", SepaMandate.objects.count()) == (second.upper(), 2)


@pytest.mark.parametrize(("given", "wanted"), [("CORE", "B2B"), ("B2B", "CORE")])
def test_a_mandate_of_one_scheme_is_not_collected_in_the_other(
    shop: Shop, outbox: Path, given: str, wanted: str
) -> None:
    """EPC 222-07: a business debit has a mandate of its own, which the debtor's bank was told of. After a change of the
    account's scheme, what waits for a file is declined, and what comes under the old mandates is refused."""
    account = sepa.account_at_bank(shop.channel, instrument=given)
    registration = store(shop)
    waiting = sepa.debit(shop.api, **NAMED).id
    AcquirerAccount.objects.filter(pk=account.pk).update(settings=sepa.SETTINGS | {"instrument": wanted})
    accounts.clear_account_cache()
    named, stored = refused(shop, **NAMED), pay_stored(shop, registration)
    assert (named.code, stored.code) == ("600.200.500", "600.200.500")
    assert why(named) == f"the mandate was given for {given} debits, and the account makes {wanted} ones"
    pass_time(shop.api, days=sepa.A_RUN)
    assert shop.api.read(waiting).code == "800.100.205"
    assert not sepa.files_in(outbox)
    sepa.debit(shop.api, **{**NAMED, "bankAccount__mandate__id": "M-B"})
    pass_time(shop.api, days=sepa.A_RUN)
    (file,) = sepa.files_in(outbox)
    assert (file.texts("LclInstrm/Cd"), file.texts("MndtId")) == ([wanted], ["M-B"])


# --- addresses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["pain.008.001.08", "pain.008.001.02"])
def test_a_debtor_of_a_bank_outside_the_eea_has_an_address_in_the_file(shop: Shop, outbox: Path, schema: str) -> None:
    sepa.account_at_bank(shop.channel, schema=schema)
    sepa.debit(shop.api, **SWISS, **HOME)
    run(shop)
    file = laid_out(outbox)
    try_valid_xml(file.xml, schema)
    (address,) = file.tree.iterfind(".//{*}Dbtr/{*}PstlAdr")
    assert [(one.tag.rpartition("}")[2], one.text) for one in address] == [
        ("StrtNm", "Bahnhofstrasse"), ("BldgNb", "12"), ("PstCd", "8001"), ("TwnNm", "Zurich"), ("Ctry", "CH"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("billing__street1", "100.800.100"),
        ("billing__city", "100.800.300"),
        ("billing__country", "100.800.500"),
    ],
)
@pytest.mark.parametrize("iban", ["CH9300762011623852957", "GB29NWBK60161331926819"])
def test_without_an_address_it_is_refused_at_once_and_the_parameter_is_named(
    banked: Shop, name: str, code: str, iban: str
) -> None:
    sent = {**SWISS, **HOME, "bankAccount__iban": iban, "bankAccount__country": iban[:2], name: None}
    if name == "billing__street1":
        sent |= {"billing__houseNumber1": None}
    answer = refused(banked, **sent)
    assert answer.code == code
    assert why(answer) == (
        f"{name.replace('__', '.')} is required: the account's bank is in {iban[:2]}, outside the EEA"
    )
    assert not BankOrder.objects.exists()


def test_a_bank_outside_the_eea_is_named_by_its_bic(banked: Shop, outbox: Path) -> None:
    """As sent, else as the registers of the library have it; an account without one is refused at once."""
    swiss = {**SWISS, **HOME, "bankAccount__bic": None, "bankAccount__bankCode": "00762"}
    answer = refused(banked, **swiss)
    assert (answer.code, why(answer)) == (
        "100.200.103",
        "bankAccount.bic is required: the account's bank is in CH, outside the EEA",
    )
    assert not BankOrder.objects.exists()
    british = {"bankAccount__iban": "GB29NWBK60161331926819", "bankAccount__country": "GB"}
    sepa.debit(banked.api, **{**swiss, **british})
    assert BankOrder.objects.get().bic == "NWBKGB2LXXX"
    run(banked)
    assert laid_out(outbox).text("DbtrAgt/FinInstnId/BICFI") == "NWBKGB2LXXX"
    assert refused(banked, **swiss, paymentType="CD").code == "100.200.103"


def test_an_account_inside_the_eea_needs_none_and_its_address_goes_into_no_file(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api, **HOME)
    run(banked)
    assert laid_out(outbox).texts("Dbtr/PstlAdr") == []


@pytest.mark.parametrize(
    ("name", "value", "code", "told"),
    [
        ("billing__city", "Z" * 36, "100.800.301", "billing.city is longer than 35 characters"),
        (
            "billing__houseNumber1",
            "1" * 100,
            "100.800.101",
            "billing.street1 does not fit into 2 lines of 70 characters with its house number",
        ),
    ],
)
@pytest.mark.parametrize("operation", ["DB", "RG"])
def test_an_address_that_no_file_can_carry_is_refused_at_once(
    banked: Shop, name: str, value: str, code: str, told: str, operation: str
) -> None:
    sent = {**sepa.JANE, **SWISS, **HOME, "billing__street1": "S" * 70, name: value}
    if operation == "RG":
        fields = {field.replace("__", "."): text for field, text in sent.items() if text}
        answer = banked.api.post("/v1/registrations", fields)
        assert answer.status == 400, answer
    else:
        answer = refused(banked, **sent)
    assert (answer.code, why(answer)) == (code, f"{told}: the account's bank is in CH, outside the EEA")
    assert not BankOrder.objects.exists()
    assert not SepaMandate.objects.exists()


def test_a_mandate_without_town_and_country_is_as_one_without_an_address(banked: Shop, outbox: Path) -> None:
    """However it came there: banks take no lines alone, so the address has to be sent with the payment."""
    registration = store(banked, **SWISS, **HOME)
    SepaMandate.objects.update(address={"country": "CH", "lines": ["Bahnhofstrasse 12", "8001 Zurich"]})
    answer = pay_stored(banked, registration)
    assert (answer.code, why(answer)) == (
        "100.800.100",
        "billing.street1 is required: the account's bank is in CH, outside the EEA",
    )
    assert not BankOrder.objects.exists()
    sent = {name.replace("__", "."): value for name, value in HOME.items()}
    assert pay_stored(banked, registration, **sent).code == "800.400.501"
    run(banked)
    file = laid_out(outbox)
    assert (file.text("Dbtr/PstlAdr/TwnNm"), file.texts("Dbtr/PstlAdr/AdrLine")) == ("Zurich", [])


def test_a_stored_account_keeps_its_address(banked: Shop, outbox: Path) -> None:
    registration = store(banked, **SWISS, **HOME)
    assert pay_stored(banked, registration).code == "800.400.501"
    run(banked)
    assert laid_out(outbox).text("Dbtr/PstlAdr/TwnNm") == "Zurich"


# --- blocked and ended --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("booked", [True, False], ids=["returned", "rejected"])
def test_a_banks_reason_blocks_or_ends_the_mandate_or_leaves_it(banked: Shop, outbox: Path, booked: bool) -> None:
    """Over the whole table: one message about a debit of each reason."""
    letters = {reason: f"M-{''.join(chr(ord('A') + ord(one) % 26) for one in reason)}" for reason in BANK_REASONS}
    assert len(set(letters.values())) == len(letters)
    paid = {sepa.debit(banked.api, bankAccount__mandate__id=name).id: reason for reason, name in letters.items()}
    file = run(banked)
    laid_out(outbox)
    if booked:
        sepa.take(sepa.statement([Entry(order=one) for one in paid]))
        back = [Entry(order=one, into=False, reason=reason, on="2026-03-09") for one, reason in paid.items()]
        assert sepa.take(sepa.statement(back, number=2)).orders_changed == len(paid)
    else:
        assert sepa.take(
            sepa.status(file.message_id, orders={one: ("RJCT", reason) for one, reason in paid.items()})
        ).orders_changed == len(paid)
    states = {MandateEffect.NONE: "ACTIVE", MandateEffect.BLOCK: "BLOCKED", MandateEffect.END: "ENDED"}
    for order in BankOrder.objects.select_related("mandate"):
        assert order.mandate is not None
        effect = BANK_REASONS[order.reason].mandate
        told = (order.mandate.state, order.mandate.state_reason)
        assert told == (states[effect], order.reason if effect else ""), order.reason


def test_reasons_that_revoke_are_those_of_the_rulebook() -> None:
    """The money, the file or a bank's own system was the matter with all others."""
    by_effect = {
        effect: {code for code, row in BANK_REASONS.items() if row.mandate is effect} for effect in MandateEffect
    }
    assert by_effect[MandateEffect.END] == {"AC13", "MD01", "MD07"}
    assert by_effect[MandateEffect.BLOCK] == {
        "AC01", "AC02", "AC04", "AC06", "AG01", "BE01", "CUST", "FR01", "FRAD", "LEGL", "MD02", "MD06", "MS02", "RR04",
        "SL01",
    }  # fmt: skip


def test_no_debit_follows_a_revoked_mandate_and_what_waits_is_rejected(banked: Shop, outbox: Path) -> None:
    paid = sepa.debit(banked.api, **NAMED).id
    run(banked)
    laid_out(outbox)
    waiting = sepa.debit(banked.api, **NAMED).id
    returned(banked, paid, "MD01")
    answer = refused(banked, **NAMED)
    assert (answer.code, why(answer)) == ("800.100.205", "the mandate has ended: MD01")
    run(banked)
    registry.run_timer_now("bank answers")
    assert banked.api.read(waiting).code == "800.100.205"
    assert BankOrder.objects.get(pk=waiting).file is None


def test_a_mandate_that_the_merchant_ended_collects_no_more_and_a_blocked_one_can_be_released(banked: Shop) -> None:
    sepa.debit(banked.api, **NAMED)
    mandate = SepaMandate.objects.get()
    SepaMandate.objects.update(state="BLOCKED", state_reason="MS02")
    answer = refused(banked, **NAMED)
    assert (answer.code, why(answer)) == (
        "800.100.205",
        "the mandate is blocked: MS02, the debtor says no, without a reason",
    )
    assert (mandates.release_mandate(mandate), mandates.release_mandate(mandate)) == (True, False)
    sepa.debit(banked.api, **NAMED)
    assert (mandates.end_mandate(mandate), mandates.end_mandate(mandate)) == (True, False)
    assert not mandates.release_mandate(mandate)
    assert why(refused(banked, **NAMED)) == "the mandate has ended: MERCHANT"


@pytest.mark.parametrize(("used", "code"), [(date(2023, 1, 2), "800.100.204"), (date(2099, 1, 1), "800.400.501")])
def test_a_mandate_lapses_after_36_months_without_a_collection(banked: Shop, used: date, code: str) -> None:
    """One that was signed long ago and is new here may have been used elsewhere."""
    named = {**NAMED, "bankAccount__mandate__dateOfSignature": "2015-01-15"}
    sepa.debit(banked.api, **named)
    SepaMandate.objects.update(used_on=used)
    assert banked.api.pay(**{**sepa.JANE, "amount": "92.00", **named}).code == code


@pytest.mark.parametrize(
    ("day", "last"),
    [
        (date(2026, 1, 15), date(2029, 1, 15)),
        (date(2024, 2, 29), date(2027, 2, 28)),
        (date(2026, 12, 31), date(2029, 12, 31)),
    ],
)
def test_the_day_on_which_a_mandate_lapses(day: date, last: date) -> None:
    assert mandates.mandate_lapses_on(SepaMandate(named_by_merchant=False, signed_on=day)) == last
    used = SepaMandate(named_by_merchant=True, signed_on=date(2020, 1, 1), used_on=day)
    assert mandates.mandate_lapses_on(used) == last
    assert mandates.mandate_lapses_on(SepaMandate(named_by_merchant=True, signed_on=day)) is None


# --- amended ------------------------------------------------------------------------------------------------------


def amended(file: sepa.File) -> dict[str, str]:
    paths = {
        "mandate": "AmdmntInfDtls/OrgnlMndtId",
        "creditor": "AmdmntInfDtls/OrgnlCdtrSchmeId/Id/PrvtId/Othr/Id",
        "name": "AmdmntInfDtls/OrgnlCdtrSchmeId/Nm",
        "account": "AmdmntInfDtls/OrgnlDbtrAcct/Id/Othr/Id",
    }
    return {name: file.text(path) for name, path in paths.items() if file.texts(path)}


@pytest.mark.parametrize("schema", ["pain.008.001.08", "pain.008.001.02"])
def test_an_amendment_goes_with_the_next_collection_and_with_no_other(shop: Shop, outbox: Path, schema: str) -> None:
    account = sepa.account_at_bank(shop.channel, schema=schema)
    sepa.debit(shop.api, **NAMED)
    run(shop)
    assert amended(laid_out(outbox)) == {}
    assert mandates.amend_mandate(SepaMandate.objects.get(), iban=Secret(sepa.OTHER_DEBTOR), reference="M-B")
    account.settings = {
        **account.settings,
        "creditorId": "NL84ZZZ09999999999",
        "formerCreditorId": "DE98ZZZ09999999999",
    }
    account.save()
    accounts.clear_account_cache()
    new = {
        "bankAccount__mandate__id": "M-B",
        "bankAccount__iban": sepa.OTHER_DEBTOR,
        "bankAccount__country": "NL",
        "bankAccount__bic": None,
        "bankAccount__bankCode": "ABNA",
    }
    found = []
    for _ in range(2):
        sepa.debit(shop.api, **new)
        run(shop)
        file = laid_out(outbox)
        try_valid_xml(file.xml, schema)
        assert (file.text("MndtId"), file.text("DbtrAcct/Id/IBAN"), file.text("SeqTp")) == (
            "M-B",
            sepa.OTHER_DEBTOR,
            "RCUR",
        )
        found.append(amended(file))
    assert found == [
        {"mandate": "M-A", "creditor": "DE98ZZZ09999999999", "name": "Shop Ltd", "account": "SMNDA"},
        {},
    ]


def test_an_amendment_that_the_bank_rejected_is_said_again(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    mandate = SepaMandate.objects.get()
    mandates.amend_mandate(mandate, reference="M-B")
    paid = sepa.debit(banked.api, bankAccount__mandate__id="M-B").id
    file = run(banked)
    laid_out(outbox)
    mandate.refresh_from_db()
    assert mandate.amendment == {}
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AM04")}))
    mandate.refresh_from_db()
    assert mandate.amendment == {"mandate": "M-A"}


def test_a_changed_account_takes_a_blocked_mandate_up_and_an_ended_one_is_not_amended(banked: Shop) -> None:
    sepa.debit(banked.api, **NAMED)
    other = sepa.debit(banked.api, bankAccount__mandate__id="M-B").id
    mandate = SepaMandate.objects.get(mandate="M-A")
    SepaMandate.objects.filter(pk=mandate.pk).update(state="BLOCKED", state_reason="AC04")
    assert not mandates.amend_mandate(mandate, reference="M-B"), "another mandate has that id"
    assert mandates.amend_mandate(mandate, iban=Secret(sepa.OTHER_DEBTOR))
    mandate.refresh_from_db()
    assert (mandate.state, mandate.amendment) == ("ACTIVE", {}), "no bank has seen it before"
    mandates.end_mandate(mandate)
    assert not mandates.amend_mandate(mandate, reference="M-C")
    assert why(refused(banked, bankAccount__mandate__id="M-B", bankAccount__iban=sepa.OTHER_DEBTOR)) == (
        "the mandate was given for another account; customParameters[SEPA_newAccount]=true amends it"
    )
    assert other


def test_an_order_made_before_the_account_changed_does_not_spend_the_amendment(banked: Shop) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    before = sepa.debit(banked.api, **NAMED).id
    mandates.amend_mandate(SepaMandate.objects.get(), iban=Secret(sepa.OTHER_DEBTOR))
    run(banked)
    assert BankOrder.objects.get(pk=before).amendment == {}
    assert SepaMandate.objects.get().amendment == {"account": "SMNDA"}


# --- the last one -------------------------------------------------------------------------------------------------


def test_the_last_collection_of_a_mandate_is_final_and_ends_it(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    paid = sepa.debit(banked.api, **NAMED).id
    BankOrder.objects.filter(pk=paid).update(last=True)
    file = run(banked)
    assert BankOrder.objects.get(pk=paid).sequence == "FNAL"
    assert why(refused(banked, **NAMED)) == "the mandate has ended: FINAL"
    laid_out(outbox)
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AM04")}))
    assert SepaMandate.objects.get().state == "ACTIVE"


def test_of_two_collections_in_one_file_the_last_one_is_final(banked: Shop) -> None:
    last, other = sepa.debit(banked.api, **NAMED).id, sepa.debit(banked.api, **NAMED).id
    BankOrder.objects.filter(pk=last).update(last=True)
    run(banked)
    found = dict(BankOrder.objects.values_list("payment", "sequence"))
    assert (found[UUID(other)], found[UUID(last)]) == ("FRST", "FNAL")
    assert file_planning.plan_due_bank_files(SEPA, banked.merchant) == 0


def test_a_mandate_that_was_amended_twice_says_what_it_was_when_a_bank_saw_it_last(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    laid_out(outbox)
    for name in ("M-B", "M-C"):
        assert mandates.amend_mandate(SepaMandate.objects.get(), reference=name)
    sepa.debit(banked.api, bankAccount__mandate__id="M-C")
    run(banked)
    assert amended(laid_out(outbox)) == {"mandate": "M-A"}


def test_a_mandate_that_was_amended_again_before_its_rejection_says_what_the_bank_knows(
    banked: Shop, outbox: Path
) -> None:
    """The bank took the collection with the first amendment for none: it has never heard of M-B."""
    sepa.debit(banked.api, **NAMED)
    run(banked)
    laid_out(outbox)
    mandates.amend_mandate(SepaMandate.objects.get(), reference="M-B")
    paid = sepa.debit(banked.api, bankAccount__mandate__id="M-B").id
    file = run(banked)
    assert amended(laid_out(outbox)) == {"mandate": "M-A"}
    mandates.amend_mandate(SepaMandate.objects.get(), reference="M-C")
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AM04")}))
    sepa.debit(banked.api, bankAccount__mandate__id="M-C")
    run(banked)
    assert amended(laid_out(outbox)) == {"mandate": "M-A"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the first one first", "the second one first"])
def test_of_two_amended_collections_that_are_both_rejected_the_first_says_what_the_bank_knows(
    banked: Shop, outbox: Path, order: tuple[int, int]
) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    laid_out(outbox)
    filed = []
    for name in ("M-B", "M-C"):
        mandates.amend_mandate(SepaMandate.objects.get(), reference=name)
        paid = sepa.debit(banked.api, bankAccount__mandate__id=name).id
        filed.append((run(banked).message_id, paid))
        laid_out(outbox)
    for which in order:
        message, paid = filed[which]
        sepa.take(sepa.status(message, orders={paid: ("RJCT", "AM04")}))
    sepa.debit(banked.api, bankAccount__mandate__id="M-C")
    run(banked)
    assert amended(laid_out(outbox)) == {"mandate": "M-A"}


def test_the_amendment_of_a_collection_that_was_returned_is_known_to_the_bank(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    laid_out(outbox)
    mandates.amend_mandate(SepaMandate.objects.get(), reference="M-B")
    paid = sepa.debit(banked.api, bankAccount__mandate__id="M-B").id
    run(banked)
    laid_out(outbox)
    returned(banked, paid, "AM04")
    assert SepaMandate.objects.get().amendment == {}


@pytest.mark.parametrize(
    ("state", "reason", "left"),
    [
        ("ENDED", "FINAL", ("ACTIVE", "", True)),
        ("ENDED", "MERCHANT", ("ENDED", "MERCHANT", True)),
        ("BLOCKED", "MS02", ("BLOCKED", "MS02", True)),
    ],
)
def test_a_last_collection_that_never_was_ends_nothing_but_a_mandate_that_was_ended_stays(
    banked: Shop, outbox: Path, state: str, reason: str, left: tuple[str, str, bool]
) -> None:
    paid = sepa.debit(banked.api, **NAMED, **{"customParameters[SEPA_lastCollection]": "true"}).id
    file = run(banked)
    laid_out(outbox)
    SepaMandate.objects.update(state=state, state_reason=reason)
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AM04")}))
    row = SepaMandate.objects.get()
    assert (row.state, row.state_reason, row.first_payment is None) == left


@pytest.mark.parametrize(("before", "left"), [("ENDED", ("ENDED", "MERCHANT")), ("ACTIVE", ("BLOCKED", "AC04"))])
def test_a_mandate_that_was_ended_is_blocked_by_no_return(
    banked: Shop, outbox: Path, before: str, left: tuple[str, str]
) -> None:
    """Else a release would take up again what the merchant has ended."""
    paid = sepa.debit(banked.api, **NAMED).id
    run(banked)
    laid_out(outbox)
    if before == "ENDED":
        assert mandates.end_mandate(SepaMandate.objects.get())
    returned(banked, paid, "AC04")
    row = SepaMandate.objects.get()
    assert (row.state, row.state_reason) == left


def test_an_id_is_taken_within_one_creditor_of_one_merchant_only(banked: Shop, stranger: Shop) -> None:
    sepa.account_at_bank(stranger.channel)
    for shop, name in ((banked, "M-A"), (stranger, "M-B"), (banked, "M-C")):
        sepa.debit(shop.api, bankAccount__mandate__id=name)
    SepaMandate.objects.filter(mandate="M-C").update(creditor="NL84ZZZ09999999999")
    own = SepaMandate.objects.get(mandate="M-A")
    assert mandates.amend_mandate(own, reference="M-B"), "another merchant's"
    assert mandates.amend_mandate(own, reference="M-C"), "of the merchant's other creditor"
    sepa.debit(banked.api, bankAccount__mandate__id="M-D")
    assert not mandates.amend_mandate(own, reference="M-D")


def change_creditor(ident: str, former: str = "") -> None:
    account = AcquirerAccount.objects.get()
    account.settings |= {"creditorId": ident, **({"formerCreditorId": former} if former else {})}
    account.save()
    accounts.clear_account_cache()


def test_what_waits_while_the_creditor_identifier_changes_goes_out_with_the_amendment(shop: Shop, outbox: Path) -> None:
    """The debtor's bank would not know the mandate under the new identifier."""
    sepa.account_at_bank(shop.channel)
    sepa.debit(shop.api, **NAMED)
    run(shop)
    waiting = [sepa.debit(shop.api, **NAMED).id for _ in range(2)]
    change_creditor("NL84ZZZ09999999999", "DE98ZZZ09999999999")
    run(shop)
    file = laid_out(outbox)
    assert (amended(file)["creditor"], file.text("CdtrSchmeId/Id/PrvtId/Othr/Id")) == (
        "DE98ZZZ09999999999",
        "NL84ZZZ09999999999",
    )
    assert len(file.texts("AmdmntInfDtls/OrgnlCdtrSchmeId/Id/PrvtId/Othr/Id")) == 1
    assert {BankOrder.objects.get(pk=one).state for one in waiting} == {"FILED"}
    assert SepaMandate.objects.get().creditor == "NL84ZZZ09999999999"


@pytest.mark.parametrize(
    ("ident", "state"), [("NL84ZZZ09999999999", ("REJECTED", "MD01")), ("DE98ABC09999999999", ("FILED", ""))]
)
def test_what_waits_is_not_collected_under_an_identifier_that_was_given_no_mandate(
    banked: Shop, ident: str, state: tuple[str, str]
) -> None:
    """A creditor stays the same with another business code (characters 5 to 7)."""
    waiting = sepa.debit(banked.api, **NAMED).id
    change_creditor(ident)
    sepa.pass_to_file(banked.api)
    order = BankOrder.objects.get(pk=waiting)
    assert (order.state, order.reason) == state


def test_what_waits_is_not_collected_where_another_mandate_has_its_id_at_the_new_identifier(banked: Shop) -> None:
    waiting = [sepa.debit(banked.api, **NAMED).id for _ in range(2)]
    old = SepaMandate.objects.get()
    SepaMandate.objects.create(
        merchant=banked.merchant, creditor="NL84ZZZ09999999999", mandate=old.mandate, signed_on=old.signed_on,
        named_by_merchant=True, recurring=True, iban_sealed=b"x", iban_fingerprint=b"x",
    )  # fmt: skip
    change_creditor("NL84ZZZ09999999999", old.creditor)
    sepa.pass_to_file(banked.api)
    assert {BankOrder.objects.get(pk=one).reason for one in waiting} == {"MD01"}
    old.refresh_from_db()
    assert (old.creditor, old.amendment) == ("DE98ZZZ09999999999", {})


def test_a_former_creditors_mandate_whose_id_is_taken_gives_way_to_a_new_one(banked: Shop) -> None:
    """A creditor's new identifier: the merchant's own mandate of the id that the stored account's has."""
    stored = store(banked)
    old = SepaMandate.objects.get()
    account = AcquirerAccount.objects.get()
    account.settings |= {"creditorId": "NL84ZZZ09999999999", "formerCreditorId": old.creditor}
    account.save()
    accounts.clear_account_cache()
    SepaMandate.objects.create(
        merchant=banked.merchant,
        creditor="NL84ZZZ09999999999",
        mandate=old.mandate,
        named_by_merchant=True,
        recurring=True,
        signed_on=old.signed_on,
        iban_sealed=b"x",
        iban_fingerprint=b"x",
    )
    click = {"amount": "1.00", "currency": "EUR", "paymentType": "DB", "testMode": "EXTERNAL"}
    paid = banked.api.post(f"/v1/registrations/{stored}/payments", click)
    assert paid.status == 200, paid
    used = BankOrder.objects.get().mandate
    assert used is not None
    assert (used.creditor, used.mandate) == ("NL84ZZZ09999999999", paid.id.upper())
    old.refresh_from_db()
    assert old.creditor == "DE98ZZZ09999999999"


@pytest.mark.parametrize(("day", "lapsed"), [(date(2029, 1, 15), False), (date(2029, 1, 16), True)])
def test_a_mandate_is_used_on_its_last_day(day: date, lapsed: bool) -> None:
    mandate = SepaMandate(named_by_merchant=False, signed_on=date(2026, 1, 15))
    if lapsed:
        with pytest.raises(mandates.MandateError) as refused:
            mandates.check_mandate_usable(mandate, day)
        assert refused.value.code == "800.100.204"
    else:
        mandates.check_mandate_usable(mandate, day)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, True),
        ({"named_by_merchant": True}, False),
        ({"recurring": False}, False),
        ({"creditor": "NL84ZZZ09999999999"}, False),
        ({"iban_fingerprint": b"of another account"}, False),
    ],
)
def test_a_repeated_instruction_takes_the_recurring_mandate_that_we_made_for_its_account(
    banked: Shop, values: dict[str, object], found: bool
) -> None:
    """A merchant's own mandate is used where the merchant names it."""
    creditor = parse_creditor(ConnectorAccount(settings=sepa.SETTINGS))
    paid = Payment.objects.get(pk=sepa.debit(banked.api, createRegistration="true").id)
    paid.registration = None
    SepaMandate.objects.update(**values)
    mandate = mandates._find_stored_mandate(paid, Secret(sepa.DEBTOR), creditor)
    assert (mandate is not None) == found


def test_a_mandate_without_a_day_was_signed_on_the_day_of_its_creditors_zone(banked: Shop) -> None:
    creditor = parse_creditor(ConnectorAccount(settings=sepa.SETTINGS))
    paid = Payment.objects.get(pk=sepa.debit(banked.api).id)
    means = BankAccount(account=Secret(sepa.DEBTOR), is_iban=True)
    request = SimpleNamespace(parameters={}, operation="DB", payment=paid.id)
    found = []
    for hour in (21, 23):  # 23:30 and 01:30 in Berlin
        at = datetime(2026, 5, 14, hour, 30, tzinfo=UTC)
        made = mandates._create_mandate(request, means, creditor, paid, at, f"M-{hour}")  # type: ignore[arg-type]
        found.append(made.signed_on)
    assert found == [date(2026, 5, 14), date(2026, 5, 15)]


# --- through the API ----------------------------------------------------------------------------------------------


def test_a_payment_says_that_its_debtor_has_a_new_account_or_its_mandate_a_new_id(banked: Shop, outbox: Path) -> None:
    sepa.debit(banked.api, **NAMED)
    run(banked)
    moved = {"bankAccount__iban": sepa.OTHER_DEBTOR, "bankAccount__country": "NL"}
    answer = refused(banked, **NAMED, **moved)
    assert (answer.code, why(answer)) == (
        "600.200.500",
        "the mandate was given for another account; customParameters[SEPA_newAccount]=true amends it",
    )
    flags = {"customParameters[SEPA_newAccount]": "true", "customParameters[SEPA_formerMandateId]": "M-A"}
    sepa.debit(banked.api, **{**NAMED, **moved, "bankAccount__mandate__id": "M-B", **flags})
    run(banked)
    assert amended(laid_out(outbox)) == {"mandate": "M-A", "account": "SMNDA"}
    unknown = {**NAMED, "bankAccount__mandate__id": "M-D", "customParameters[SEPA_formerMandateId]": "M-C"}
    assert refused(banked, **unknown).code == "800.100.205"


def test_an_updated_account_amends_its_mandate_and_a_deleted_one_ends_it(banked: Shop, outbox: Path) -> None:
    registration = store(banked)
    pay_stored(banked, registration)
    run(banked)
    update = {
        "bankAccount.iban": sepa.OTHER_DEBTOR, "bankAccount.holder": "Jane Jones", "bankAccount.country": "NL",
        "bankAccount.bic": "ABNANL2A",
    }  # fmt: skip
    changed = banked.api.post(f"/v1/registrations/{registration}", update)
    assert changed.status == 200, changed
    waiting = pay_stored(banked, registration)
    assert waiting.code == "800.400.501", waiting
    deleted = banked.api.delete(f"/v1/registrations/{registration}")
    assert deleted.status == 200, deleted
    mandate = SepaMandate.objects.get()
    assert (mandate.state, mandate.state_reason) == ("ENDED", "DELETED")
    run(banked)
    file = laid_out(outbox)
    assert (file.text("EndToEndId"), amended(file)) == (waiting.id, {"account": "SMNDA"})


@pytest.mark.parametrize("flag", ["true", "false"])
def test_the_merchants_word_makes_the_last_collection_final(banked: Shop, flag: str) -> None:
    paid = sepa.debit(banked.api, **NAMED, **{"customParameters[SEPA_lastCollection]": flag}).id
    run(banked)
    assert BankOrder.objects.get(pk=paid).sequence == ("FNAL" if flag == "true" else "FRST")


def test_the_last_run_of_a_schedule_is_the_last_collection(banked: Shop) -> None:
    registration = store(banked)
    job = started(
        banked.api,
        registration,
        testMode="EXTERNAL",
        job__hour="6",
        job__dayOfMonth="1",
        job__month="*",
        job__durationUnit="MONTH",
        job__durationNumber="2",
        **{"customParameters[SEPA_lastCollection]": "true"},
    )
    for _ in range(2):
        pass_time(banked.api, days=35)
    told = BankOrder.objects.order_by("created_at").values_list("last", flat=True)
    assert list(told) == [*[False] * (len(told) - 1), True], job
    assert len(told) > 1


def test_the_last_installment_leaves_the_mandate_to_other_payments(banked: Shop) -> None:
    """Three installments, the initial payment the first of them. The mandate is the account's: a subscription or a
    click may use it still, so only the merchant says which collection is its last."""
    registration = store(banked)
    initial = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
    repeated = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}
    plan = {"standingInstruction.type": "INSTALLMENT", "standingInstruction.numberOfInstallments": "3"}
    paid = []
    for instruction in (initial, repeated, repeated):
        answer = pay_stored(banked, registration, **plan, **instruction)
        assert answer.code == "800.400.501", answer
        paid.append(answer.id)
        run(banked)
        sepa.take(sepa.statement([Entry(order=answer.id, amount="12.00")], number=len(paid)))
        registry.run_timer_now("bank answers")
    told = [BankOrder.objects.get(pk=one) for one in paid]
    assert [(one.sequence, one.last) for one in told] == [("FRST", False), ("RCUR", False), ("RCUR", False)]
    assert SepaMandate.objects.get().state == "ACTIVE"


# --- in the back office -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "before", "after"), [("end_mandates", "ACTIVE", "ENDED"), ("release_mandates", "BLOCKED", "ACTIVE")]
)
def test_a_user_ends_and_releases_mandates(banked: Shop, stranger: Shop, action: str, before: str, after: str) -> None:
    sepa.debit(banked.api, **NAMED)
    mandate = SepaMandate.objects.get()
    SepaMandate.objects.update(state=before, state_reason="MS02" if before == "BLOCKED" else "")
    page = reverse("admin:gateway_sepamandate_changelist")
    data = {"action": action, "_selected_action": str(mandate.pk)}
    for shop, role in ((stranger, Role.MANAGER), (banked, Role.CLERK)):
        signed_in(person(f"{role}@{shop.merchant.pk}", role, shop.merchant)).post(page, data, follow=True)
        assert SepaMandate.objects.get().state == before
    client = signed_in(person("boss@shop", Role.MANAGER, banked.merchant))
    assert "M-A" in client.get(page).content.decode()
    detail = client.get(reverse("admin:gateway_sepamandate_change", args=[mandate.pk])).content.decode()
    assert "DE98ZZZ09999999999" in detail
    client.post(page, data, follow=True)
    assert SepaMandate.objects.get().state == after
    assert (
        AuditEntry.objects.filter(subject_id=str(mandate.pk), merchant=banked.merchant.pk)
        .exclude(action="view")
        .exists()
    )
