"""An authorization that was ended is neither raised nor renewed nor captured: every end by every follow-up, by the path
and by referenceUuid.

Source: Part A, Basic payment (sequence, referenceUuid); decisions, section 4; docs/decisions/0007, 0047.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import product

import pytest

from gateway.models import Payment, Status
from gateway.payments.operation_table import (
    INDUSTRY_PRACTICE_OPERATIONS,
    OPERATIONS,
    REAUTHORIZATION_OPERATION,
    evaluate_operation,
)
from tests.support.chains import after, chain, first
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db

PRACTICE = "standingInstruction.industryPractice"
NOT_SUCCESSFUL, NOTHING_LEFT, OPEN = "700.400.510", "700.400.100", "700.400.570"
RAISE, RENEWAL, CAPTURE = "INCREMENTAL_AUTH", "REAUTHORIZATION", "CP"


def again(api: Api, held: str, practice: str, way: str, amount: str = "20.00", **more: str) -> Answer:
    """The authorization once more, or a capture of it."""
    fields = {"paymentType": "PA", "amount": amount, "currency": "EUR", PRACTICE: practice, **more}
    if practice == CAPTURE:
        fields = {"paymentType": "CP", "amount": amount, "currency": "EUR", **more}
    if way == "reference":
        return api.post("/v1/payments", {**fields, "referenceUuid": held})
    return api.post(f"/v1/payments/{held}", fields)


def _steps(*steps: tuple[str, str | None, str]) -> Callable[[Api, str], None]:
    def end(api: Api, held: str) -> None:
        for kind, amount, sequence in steps:
            more = {"sequence": sequence} if sequence else {}
            answer = again(api, held, kind, "path", str(amount)) if len(kind) > 2 else None
            answer = answer or api.follow(held, kind, amount, **more)
            assert answer.status == 200, answer

    return end


ENDS: dict[str, tuple[Callable[[Api, str], None], str]] = {
    # how it ends, and what an increment is told
    "reversed": (_steps(("RV", None, "")), NOT_SUCCESSFUL),
    "reversed by amount": (_steps(("RV", "50.00", "")), NOT_SUCCESSFUL),
    "reversed in parts": (_steps(("RV", "20.00", ""), ("RV", "30.00", "")), NOT_SUCCESSFUL),
    "raised and reversed": (_steps((RAISE, "5.00", ""), ("RV", None, "")), NOT_SUCCESSFUL),
    "renewed and reversed": (_steps((RENEWAL, "50.00", ""), ("RV", None, "")), NOT_SUCCESSFUL),
    "captured": (_steps(("CP", "50.00", "")), NOT_SUCCESSFUL),
    "captured in parts": (_steps(("CP", "20.00", ""), ("CP", "30.00", "")), NOT_SUCCESSFUL),
    "raised and captured": (_steps((RAISE, "5.00", ""), ("CP", "55.00", "")), NOT_SUCCESSFUL),
    "captured, the rest reversed": (_steps(("CP", "20.00", ""), ("RV", None, "")), NOT_SUCCESSFUL),
    "received": (_steps(("RC", "50.00", "")), NOT_SUCCESSFUL),
    "ended by a last capture": (_steps(("CP", "20.00", "FINAL")), NOTHING_LEFT),
    "ended by a last reversal": (_steps(("RV", "20.00", "FINAL")), NOTHING_LEFT),
}


@pytest.mark.parametrize("end", ENDS)
def test_what_was_ended_does_not_come_to_life(api: Api, end: str) -> None:
    held = api.pay(paymentType="PA", amount="50.00").id
    ending, told = ENDS[end]
    ending(api, held)
    members = [str(one) for one in Payment.objects.filter(chain=held, payment_type="PA").values_list("id", flat=True)]
    for named, practice, way in product(members, (RAISE, RENEWAL, CAPTURE), ("path", "reference")):
        if (practice, way) == (CAPTURE, "reference"):
            continue  # only an authorization is sent by referenceUuid
        refused = again(api, named.replace("-", ""), practice, way)
        expected = told if practice == RAISE else NOTHING_LEFT
        assert (refused.status, refused.code) == (400, expected), (practice, way, refused)
    tried = Payment.objects.filter(chain=held, status=Status.DECLINED)
    assert tried.count() == 5 * len(members)


@pytest.mark.parametrize("steps", [(), (("CP", "49.99", ""),), (("RV", "49.99", ""),)], ids=["all", "cp", "rv"])
@pytest.mark.parametrize("practice", [RAISE, RENEWAL])
@pytest.mark.parametrize("way", ["path", "reference"])
def test_what_has_a_cent_left_is_raised_and_renewed(
    api: Api, steps: tuple[tuple[str, str, str], ...], practice: str, way: str
) -> None:
    held = api.pay(paymentType="PA", amount="50.00").id
    _steps(*steps)(api, held)
    made = again(api, held, practice, way, "0.01")
    assert made.status == 200, made


@pytest.mark.parametrize("way", ["path", "reference"])
def test_what_was_captured_as_often_as_it_may_be_is_neither_raised_nor_renewed(api: Api, way: str) -> None:
    """numberOfCaptures: what were held beyond it could never be captured."""
    held = api.pay(paymentType="PA", amount="50.00", numberOfCaptures="2").id
    assert api.follow(held, "CP", "10.00").status == 200
    assert again(api, held, RAISE, way).status == again(api, held, RENEWAL, way).status == 200
    assert api.follow(held, "CP", "10.00").status == 200
    told = {practice: again(api, held, practice, way).code for practice in (RAISE, RENEWAL, CAPTURE)}
    if way == "reference":
        del told[CAPTURE]
    assert told == {RAISE: NOT_SUCCESSFUL, RENEWAL: NOTHING_LEFT} | ({CAPTURE: NOTHING_LEFT} if way == "path" else {})
    assert api.follow(held, "RV").status == 200


@pytest.mark.parametrize("way", ["path", "reference"])
@pytest.mark.parametrize("practice", [RAISE, RENEWAL, CAPTURE])
def test_a_number_of_captures_sent_later_changes_nothing_and_is_told_as_ignored(
    api: Api, practice: str, way: str
) -> None:
    """Part A, Basic payment: the first authorization sets it; docs/decisions/0007."""
    if (practice, way) == (CAPTURE, "reference"):
        return
    held = api.pay(paymentType="PA", amount="50.00", numberOfCaptures="3").id
    made = again(api, held, practice, way, "10.00", numberOfCaptures="1")
    assert (made.status, made.body["ignoredParameters"]) == (200, ["numberOfCaptures"]), made
    assert "numberOfCaptures" not in made.body
    assert "numberOfCaptures" not in Payment.objects.get(pk=made.id).request
    assert api.follow(held, "CP", "1.00").status == api.follow(held, "CP", "1.00").status == 200


@pytest.mark.parametrize("way", ["path", "reference"])
@pytest.mark.parametrize("practice", [RAISE, RENEWAL])
def test_final_on_an_increment_or_a_renewal_ends_nothing_and_is_named_as_ignored(
    api: Api, practice: str, way: str
) -> None:
    """Part A, Basic payment: FINAL marks the last of a chain (CP, RV, RF); more follows an authorization."""
    held = api.pay(paymentType="PA", amount="50.00").id
    made = again(api, held, practice, way, "10.00", sequence="FINAL")
    assert (made.status, made.body["ignoredParameters"]) == (200, ["sequence"]), made
    assert made.body["sequence"] == "FINAL"  # echoed like any accepted parameter (ruling D17)
    assert api.follow(held, "CP", "1.00").status == api.follow(held, "CP", "1.00").status == 200


@pytest.mark.parametrize(("kind", "amount"), [("RB", "5.00"), ("RC", "5.00"), ("CB", "5.00")])
def test_final_on_a_follow_up_that_ends_nothing_is_named_as_ignored(api: Api, kind: str, amount: str) -> None:
    paid = api.pay(amount="50.00").id
    made = api.follow(paid, kind, amount, sequence="FINAL")
    assert (made.status, made.body["ignoredParameters"]) == (200, ["sequence"]), made


@pytest.mark.parametrize("kind", ["CP", "RV"])
def test_a_chargeback_reason_on_another_follow_up_is_named_as_ignored(api: Api, kind: str) -> None:
    held = api.pay(paymentType="PA", amount="50.00").id
    made = api.follow(held, kind, "5.00", chargebackResultCode="000.100.203")
    assert (made.status, made.body["ignoredParameters"]) == (200, ["chargebackResultCode"]), made


@pytest.mark.parametrize("kind", ["CP", "RV"])
def test_final_on_a_follow_up_that_ends_is_not_named_as_ignored(api: Api, kind: str) -> None:
    held = api.pay(paymentType="PA", amount="50.00").id
    made = api.follow(held, kind, "5.00", sequence="FINAL")
    assert made.status == 200
    assert "ignoredParameters" not in made.body


@pytest.mark.parametrize("kind", ["DB", "CD", "PA", "RI"])
def test_what_has_no_effect_on_a_first_payment_is_named_as_ignored(api: Api, kind: str) -> None:
    """FINAL ends a chain, a first payment begins one; only an authorization is captured, and only CB has a reason."""
    sent = {"sequence": "FINAL", "chargebackResultCode": "000.100.203", "numberOfCaptures": "2"}
    made = api.pay(paymentType=kind, amount="50.00", **sent)
    ignored = [name for name in sent if kind != "PA" or name != "numberOfCaptures"]
    assert (made.status, made.body["ignoredParameters"]) == (200, ignored), made
    assert {name: made.body[name] for name in sent} == sent
    assert (Payment.objects.get(pk=made.id).max_captures == 2) is (kind == "PA")


def test_a_number_of_captures_sent_later_must_be_well_formed_all_the_same(api: Api) -> None:
    held = api.pay(paymentType="PA", amount="50.00").id
    assert "numberOfCaptures" in again(api, held, RAISE, "path", numberOfCaptures="99").errors


def test_a_declined_end_ends_nothing(api: Api) -> None:
    held = api.pay(paymentType="PA", amount="50.00").id
    assert api.follow(held, "CP", "50.01", sequence="FINAL").status == 400
    assert again(api, held, RAISE, "path").status == 200


@pytest.mark.parametrize("status", sorted({Status.STARTED, Status.PENDING, Status.IN_DOUBT}))
@pytest.mark.parametrize("practice", INDUSTRY_PRACTICE_OPERATIONS)
def test_an_end_waits_for_an_increment_that_has_no_answer_yet(practice: str, status: Status) -> None:
    """What were granted after the end would come to life."""
    held = first("PA", "50.00")
    raising = after(held, "PA", "20.00", status=status, practice=practice)
    found = chain(held, raising)

    def code(kind: str, amount: str | None, *, final: bool = False) -> str:
        asked = Decimal(amount) if amount is not None else None
        return evaluate_operation(OPERATIONS[kind], found, held, asked, "EUR", final=final).code

    assert code("RV", None) == code("RV", "50.00") == OPEN
    assert code("CP", "10.00", final=True) == code("RV", "10.00", final=True) == OPEN
    # A reversal in part says what is left, so it waits as well: docs/decisions/0068.
    assert code("RV", "49.99") == OPEN
    # A capture names the newest renewal, so it waits to know which that is: docs/decisions/0093.
    waits = OPEN if practice == "REAUTHORIZATION" else ""
    assert code("CP", "50.00") == code("CP", "10.00") == waits
    assert code("CP", "50.01") == NOTHING_LEFT
    raising.status = Status.DECLINED
    assert code("RV", None) == code("CP", "10.00", final=True) == ""


@pytest.mark.parametrize("status", sorted({Status.STARTED, Status.PENDING, Status.IN_DOUBT}))
@pytest.mark.parametrize("ending", ["RV", "CP", "RC"])
def test_an_end_that_has_no_answer_yet_counts(ending: str, status: Status) -> None:
    held = first("PA", "50.00")
    found = chain(held, after(held, ending, "50.00", status=status))
    assert (
        evaluate_operation(INDUSTRY_PRACTICE_OPERATIONS[RAISE], found, held, Decimal("20.00"), "EUR").code
        == NOT_SUCCESSFUL
    )
    assert evaluate_operation(REAUTHORIZATION_OPERATION, found, held, Decimal("20.00"), "EUR").code == NOTHING_LEFT


def test_nothing_is_captured_of_what_was_reversed_while_it_was_raised(committed: Shop) -> None:
    """Whoever comes second reads the chain again."""
    for way in ("path", "reference") * 3:
        held = committed.api.pay(paymentType="PA", amount="50.00").id

        def api() -> Api:
            return Api(token=committed.api.token, entity=committed.api.entity)

        raised, reversed_ = at_once(
            lambda held=held, way=way: again(api(), held, RAISE, way), lambda held=held: api().follow(held, "RV")
        )
        captured = committed.api.follow(held, "CP", "0.01")
        if reversed_.status == 200:
            assert captured.code == NOTHING_LEFT, (raised, reversed_)
            assert raised.code in ("000.100.110", NOT_SUCCESSFUL)
        else:
            assert (reversed_.code, raised.status, captured.status) == (OPEN, 200, 200)
