"""Inquiries and voids against a processor of a few lines: what is found, what is proved, what stays unknown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.connectors.card_api.inquiry import (
    MAX_REQUEST_LIFE_S,
    PROCESSOR_CLOCK_SKEW_S,
    inquire_payment,
    void_payment,
)
from gateway.connectors.card_api.operation import CardApiOperation
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse
from gateway.connectors.port import AcquirerReply, NotFoundAtAcquirer, OutcomeUnknownError, VoidRefusedError
from tests.gateway.connectors.card_api.asking import PAYMENT, asked
from tests.gateway.connectors.card_api.scripted import Script, calls_of, operation_of

INTENTS, SETUPS, REFUNDS = "/v1/payment_intents", "/v1/setup_intents", "/v1/refunds"
LIST, SEARCH, READ, CREATE = f"GET {INTENTS}", f"GET {INTENTS}/search", f"GET {INTENTS}/pi_1", f"POST {INTENTS}"
CANCEL, GIVE_BACK = f"{CREATE}/pi_1/cancel", f"POST {REFUNDS}"
REVERSED = "900.100.301"
BEGAN_S = (PAYMENT.int >> 80) // 1000
"""When the payment began, as its id says."""
TAKEN = CardApiResponse(kind=CallVerdict.TAKEN, status=409)
MARK = {"tollhouse_payment": PAYMENT.hex}


def page(*objects: dict[str, Any], more: bool = False) -> dict[str, Any]:
    return {"data": list(objects), "has_more": more}


def intent(status: str = "succeeded", ident: str = "pi_1", **more: Any) -> dict[str, Any]:
    values = {"amount": 9200, "amount_received": 9200, "currency": "eur", "capture_method": "automatic"}
    return {"id": ident, "status": status, "metadata": MARK, **values, **more}


def other(ident: str) -> dict[str, Any]:
    return intent(ident=ident, metadata={"tollhouse_payment": "f" * 32})


def question(script: Script, operation: str = "DB", *, full: bool = True, **changes: Any) -> CardApiOperation:
    return operation_of(asked(operation, **changes), script, full=full)


def inquire(script: Script, operation: str = "DB", **changes: Any) -> str:
    """``approved``, the code of a decline, ``not found`` or ``unknown``."""
    try:
        found = inquire_payment(question(script, operation, **changes))
    except OutcomeUnknownError:
        return "unknown"
    if isinstance(found, NotFoundAtAcquirer):
        return "not found"
    return "approved" if found.approved is not None else found.code


# --- finding ----------------------------------------------------------------------------------------------------------


def test_a_known_id_is_read_and_nothing_is_listed() -> None:
    asking = question({READ: intent()}, known_transaction_id="pi_1")
    assert isinstance(inquire_payment(asking), AcquirerReply)
    assert [name for name, _ in calls_of(asking).calls] == [READ]


def test_what_a_known_id_names_has_to_be_of_this_payment() -> None:
    script = {f"GET {INTENTS}/pi_0": other("pi_0"), LIST: page(intent()), READ: intent()}
    asking = question(script, known_transaction_id="pi_0")
    found = inquire_payment(asking)
    assert isinstance(found, AcquirerReply)
    assert found.connector_tx_id == "pi_1"


def test_the_list_begins_before_the_payment_by_the_difference_of_clocks() -> None:
    asking = question({LIST: page(intent()), READ: intent()})
    inquire_payment(asking)
    (asked_for,) = calls_of(asking).asked(LIST)
    assert int(asked_for["created[gte]"]) == BEGAN_S - PROCESSOR_CLOCK_SKEW_S
    core = question({LIST: page(intent()), READ: intent()}, full=False)
    inquire_payment(core)
    assert "created[gte]" not in calls_of(core).asked(LIST)[0], "servers of the core profile do not know it"


def test_a_list_goes_on_behind_its_last_object() -> None:
    script = {LIST: [page(other("pi_8"), other("pi_9"), more=True), page(intent())], READ: intent()}
    asking = question(script)
    assert isinstance(inquire_payment(asking), AcquirerReply)
    assert [sent.get("starting_after") for sent in calls_of(asking).asked(LIST)] == [None, "pi_9"]
    assert SEARCH not in [name for name, _ in calls_of(asking).calls]


def test_what_is_found_in_a_list_is_read_as_it_stands_now() -> None:
    assert inquire({LIST: page(intent("processing")), READ: intent()}) == "approved"


def test_behind_the_last_page_that_is_read_the_search_is_asked() -> None:
    pages = [page(other("pi_9"), more=True)] * 20
    script = {LIST: pages, SEARCH: page(other("pi_8"), intent()), READ: intent()}
    assert inquire(script) == "approved"
    assert inquire({LIST: [*pages], SEARCH: page(), CREATE: TAKEN}) == "unknown", "it was not seen to its end"
    assert inquire({LIST: [*pages]}, full=False) == "unknown"


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (intent(), "approved"),
        (intent("requires_payment_method"), "not found"),
        (intent("requires_confirmation"), "not found"),
        (intent("requires_action"), "not found"),
        (intent("requires_payment_method", last_payment_error={"decline_code": "do_not_honor"}), "800.100.183"),
        (intent("canceled"), REVERSED),
        (intent("processing"), "unknown"),
    ],
)
def test_the_state_of_an_intent_is_the_outcome(found: dict[str, Any], outcome: str) -> None:
    assert inquire({LIST: page(found), READ: found}) == outcome


def test_a_setup_that_failed_is_a_decline() -> None:
    failed = intent("requires_payment_method", "seti_1", last_setup_error={"decline_code": "do_not_honor"})
    script = {f"GET {SETUPS}": page(failed), f"GET {SETUPS}/seti_1": failed}
    assert inquire(script, "RG", amount="0.00") == "800.100.183"


def test_a_processor_that_does_not_answer_leaves_it_unknown() -> None:
    assert inquire({LIST: CardApiResponse(kind=CallVerdict.UNCLEAR)}) == "unknown"


# --- proving "not found" ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age_s", "outcome"), [(MAX_REQUEST_LIFE_S - 60, "unknown"), (MAX_REQUEST_LIFE_S + 60, "not found")]
)
def test_a_key_that_was_used_without_an_object_proves_it_once_no_request_can_run_any_more(
    age_s: int, outcome: str
) -> None:
    called = datetime.now(UTC) - timedelta(seconds=age_s)
    assert inquire({LIST: page(), CREATE: TAKEN}, called_at=called) == outcome
    assert inquire({LIST: page(other("pi_9")), CREATE: TAKEN}, called_at=called) == outcome


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (intent("requires_payment_method", "pi_2"), "not found"),
        (CardApiResponse(kind=CallVerdict.REFUSED, status=404), "not found"),
        (CardApiResponse(kind=CallVerdict.REFUSED, status=400), "unknown"),
        (CardApiResponse(kind=CallVerdict.SHUT, status=401), "unknown"),
        (CardApiResponse(kind=CallVerdict.UNCLEAR), "unknown"),
    ],
)
def test_a_payment_is_not_there_when_its_key_is_used_up(answer: Any, outcome: str) -> None:
    assert inquire({LIST: page(), CREATE: answer}) == outcome


def test_what_used_up_the_key_is_cancelled() -> None:
    asking = question({LIST: page(), CREATE: intent("requires_payment_method", "pi_2")})
    inquire_payment(asking)
    assert [name for name, _ in calls_of(asking).calls] == [LIST, CREATE, f"{CREATE}/pi_2/cancel"]


@pytest.mark.parametrize(("reference", "path"), [("pi_1", f"{CREATE}/pi_1"), ("ch_1", "POST /v1/charges/ch_1")])
def test_the_key_of_a_follow_up_is_used_up_by_a_mark_on_what_it_refers_to(reference: str, path: str) -> None:
    script = {READ: intent(latest_charge="ch_1"), f"GET {REFUNDS}": page(), path: intent()}
    asking = question(script, "RF", reference=reference)
    assert isinstance(inquire_payment(asking), NotFoundAtAcquirer)
    assert calls_of(asking).asked(path) == [{f"metadata[closed_{PAYMENT.hex}]": "1"}]


# --- follow-ups -------------------------------------------------------------------------------------------------------

CAPTURED = {f"capture_{PAYMENT.hex}": "9200"}
REFUND = {"id": "re_1", "status": "succeeded", "amount": 9200, "metadata": MARK}


@pytest.mark.parametrize(
    ("operation", "found", "refunds", "full", "outcome"),
    [
        ("CP", intent(metadata=CAPTURED), [], True, "approved"),
        ("CP", intent("requires_capture", metadata=CAPTURED), [], True, "approved"),
        ("CP", intent(metadata=CAPTURED), [], False, "approved"),
        ("CP", intent("requires_capture", metadata=CAPTURED), [], False, "not found"),
        ("CP", intent(), [], True, "not found"),
        ("RF", intent(latest_charge="ch_1"), [REFUND], True, "approved"),
        ("RF", intent(latest_charge="ch_1"), [{**REFUND, "metadata": {}}], True, "not found"),
        ("RF", intent("canceled"), [], True, "not found"),
        ("RV", intent("canceled"), [], True, "approved"),
        ("RV", intent("requires_capture"), [], True, "not found"),
    ],
)
def test_a_follow_up_is_found_by_its_mark_or_by_what_it_leads_to(
    operation: str, found: dict[str, Any], refunds: list[dict[str, Any]], full: bool, outcome: str
) -> None:
    script = {READ: found, f"GET {REFUNDS}": page(*refunds), f"{CREATE}/pi_1": found}
    assert inquire(script, operation, reference="pi_1", full=full) == outcome


def test_a_follow_up_without_a_reference_or_with_endless_refunds_is_unknown() -> None:
    assert inquire({}, "RF", reference="") == "unknown"
    endless = [page({"id": "re_9"}, more=True)] * 20
    assert inquire({READ: intent(latest_charge="ch_1"), f"GET {REFUNDS}": endless}, "RF", reference="pi_1") == "unknown"


# --- voids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "calls"),
    [
        (intent("canceled"), []),
        (intent("requires_capture"), [CANCEL]),
        (intent("requires_action"), [CANCEL]),
        (intent(), [GIVE_BACK]),
    ],
)
def test_a_void_takes_back_what_it_finds(found: dict[str, Any], calls: list[str]) -> None:
    given = {"id": "re_1", "status": "pending"}
    script = {LIST: page(found), READ: found, CANCEL: intent("canceled"), f"GET {REFUNDS}": page(), GIVE_BACK: given}
    asking = question(script)
    assert void_payment(asking).code == REVERSED
    assert [name for name, _ in calls_of(asking).calls if name.startswith("POST")] == calls


def test_a_void_gives_back_what_was_received_once() -> None:
    found = intent(amount=9200, amount_received=4000)
    script = {LIST: page(found), READ: found, f"GET {REFUNDS}": page(), GIVE_BACK: {"id": "re_1", "status": "pending"}}
    asking = question(script)
    void_payment(asking)
    (sent,) = calls_of(asking).asked(GIVE_BACK)
    assert sent == {"payment_intent": "pi_1", "amount": "4000", "metadata[tollhouse_void]": PAYMENT.hex}
    given = {"id": "re_1", "status": "succeeded", "metadata": {"tollhouse_void": PAYMENT.hex}}
    again = question({**script, f"GET {REFUNDS}": page(given)})
    assert void_payment(again).code == REVERSED
    assert calls_of(again).asked(GIVE_BACK) == []


@pytest.mark.parametrize(
    "script",
    [
        {CANCEL: intent("requires_capture")},
        {CANCEL: CardApiResponse(kind=CallVerdict.REFUSED, status=400)},
    ],
)
def test_a_void_that_was_not_made_is_unknown(script: Script) -> None:
    held = intent("requires_capture")
    with pytest.raises(OutcomeUnknownError):
        void_payment(question({LIST: page(held), READ: held, **script}))


@pytest.mark.parametrize("given", [{"id": "re_1", "status": "failed"}, CardApiResponse(kind=CallVerdict.UNCLEAR)])
def test_money_that_was_not_given_back_is_no_void(given: Any) -> None:
    with pytest.raises(OutcomeUnknownError):
        void_payment(question({LIST: page(intent()), READ: intent(), f"GET {REFUNDS}": page(), GIVE_BACK: given}))


def test_a_verification_moved_nothing_and_is_void_as_it_is() -> None:
    made = intent("succeeded", "seti_1")
    asking = question({f"GET {SETUPS}": page(made), f"GET {SETUPS}/seti_1": made}, "RG", amount="0.00")
    assert void_payment(asking).code == REVERSED
    assert all(name.startswith("GET") for name, _ in calls_of(asking).calls)


def test_a_void_of_a_capture_gives_it_back_and_of_a_refund_is_refused() -> None:
    made = intent(metadata=CAPTURED, latest_charge="ch_1")
    script = {READ: made, f"GET {REFUNDS}": page(), GIVE_BACK: {"id": "re_2", "status": "succeeded"}}
    asking = question(script, "CP", amount="40.00", reference="pi_1")
    assert void_payment(asking).code == REVERSED
    (sent,) = calls_of(asking).asked(GIVE_BACK)
    assert (sent["charge"], sent["amount"]) == ("ch_1", "4000")
    for operation, found in (("RF", intent(latest_charge="ch_1")), ("RV", intent("canceled"))):
        with pytest.raises(VoidRefusedError):
            void_payment(question({READ: found, f"GET {REFUNDS}": page(REFUND)}, operation, reference="pi_1"))


def test_a_void_of_a_refund_that_failed_is_done() -> None:
    failed = {**REFUND, "status": "failed"}
    script = {READ: intent(latest_charge="ch_1"), f"GET {REFUNDS}": page(failed)}
    assert void_payment(question(script, "RF", reference="pi_1")).code == REVERSED
