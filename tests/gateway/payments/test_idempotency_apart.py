"""Each condition of an idempotency key by itself: its form, its body, what is found under it and what is written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now

from gateway.core import identifiers
from gateway.core.secret import Secret
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import IdempotencyKey, Payment, Status
from gateway.payments import idempotency
from gateway.payments.idempotency import (
    IDEMPOTENCY_RETENTION,
    JOIN_IDEMPOTENCY_KEY,
    SELECT_IDEMPOTENCY_KEY,
    TIMER,
    IdempotencyClaim,
    StoredResponse,
    build_idempotency_lookup,
    parse_idempotency_claim,
)
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.responses import RenderedResponse
from gateway.timers.registry import MAX_SWEPT_ROWS, SWEEP_INTERVAL_S
from gateway.vault.sealing import current_vault
from tests.gateway.payments.test_store import begun
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

TOKEN, PAYMENT = UUID(int=1), UUID(int=2)
PATH = "/v1/payments"
LONG_PATH = f"/v1/payments/{'a' * 51}"
MINUTE = timedelta(minutes=1)


def parse(header: str | None, *pairs: tuple[str, str | Secret], path: str = PATH) -> IdempotencyClaim | None:
    return parse_idempotency_claim(header, pairs, token=TOKEN, method="POST", path=path)


def claim(**values: Any) -> IdempotencyClaim:
    whole: dict[str, Any] = {
        "token": TOKEN,
        "method": "POST",
        "path": PATH,
        "key": "key-1",
        "body": Secret("body"),
        **values,
    }
    return IdempotencyClaim(**whole)


# The header.

WELL_FORMED = ["a", "!", "~", "order-4711", "x" * 255]
MALFORMED = ["", "x" * 256, "a b", " a", "a\n", "\x7f", "é"]


@pytest.mark.parametrize("key", WELL_FORMED)
def test_a_key_is_looked_up_by_its_method_and_path(key: str) -> None:
    looked_up = {"method": "PUT", "path": "/here", "key": key}
    assert build_idempotency_lookup(key, method="PUT", path="/here") == looked_up
    assert parse_idempotency_claim(key, [], token=TOKEN, method="PUT", path="/here") == IdempotencyClaim(
        token=TOKEN, method="PUT", path="/here", key=key, body=Secret("")
    )


def test_a_path_is_cut_where_its_column_ends() -> None:
    assert len(LONG_PATH) == 64
    for path in (LONG_PATH, f"{LONG_PATH}b"):
        assert build_idempotency_lookup("a", method="POST", path=path) == {
            "method": "POST", "path": LONG_PATH, "key": "a",
        }  # fmt: skip
        found = parse("a", path=path)
        assert found is not None
        assert found.path == LONG_PATH


@pytest.mark.parametrize("key", MALFORMED)
def test_a_malformed_key_is_not_looked_up_and_is_refused(key: str) -> None:
    assert build_idempotency_lookup(key, method="POST", path=PATH) is None
    assert_is_refused(key)


def test_a_key_that_is_a_card_number_is_refused_and_not_told() -> None:
    assert_is_refused("4200000000000000")


def assert_is_refused(key: str) -> None:
    with pytest.raises(RequestRefusedError) as told:
        parse(key)
    [error] = told.value.errors
    assert (told.value.code, told.value.status, error.name, error.value) == (
        "200.300.404", 400, "Idempotency-Key", None,
    )  # fmt: skip
    assert error.message == "must be 1 to 255 printable ASCII characters without spaces, and no card number"


def test_without_a_key_there_is_no_claim() -> None:
    assert parse(None) is None
    assert build_idempotency_lookup(None, method="POST", path=PATH) is None


# The body.


def body(*pairs: tuple[str, str | Secret]) -> str:
    found = parse("a", *pairs)
    assert found is not None
    return found.body.reveal()


def test_a_body_is_its_parameters_in_order_each_with_its_lengths() -> None:
    assert body(("amount", "92.00"), ("a", "")) == "1:a0:6:amount5:92.00"
    assert body(("card.number", Secret("4200"))) == "11:card.number4:4200"
    assert body(("b", "1"), ("a", "2"), ("a", "1")) == body(("a", "1"), ("b", "1"), ("a", "2")) == "1:a1:11:a1:21:b1:1"


@pytest.mark.parametrize("name, is_left_out", [("card.cvv", True), ("tokenAccount.dtvc", True), ("card.holder", False)])
def test_what_may_not_be_stored_is_no_part_of_the_body(name: str, is_left_out: bool) -> None:
    assert (body(("a", "1"), (name, Secret("123"))) == body(("a", "1"))) is is_left_out


# What is found.


def insert(age: timedelta = MINUTE, **values: Any) -> None:
    IdempotencyKey.objects.create(
        **{
            "token": TOKEN, "method": "POST", "path": PATH, "key": "key-1", "payment": PAYMENT, "status": 400,
            "answer": "{}", "fingerprint": current_vault().fingerprint("body"), "created_at": Now() - age, **values,
        }
    )  # fmt: skip


def read_row(key: str = "key-1") -> Any:
    rows = execute_sql(
        f"SELECT {SELECT_IDEMPOTENCY_KEY} FROM gateway_idempotencykey k WHERE key = %(key)s AND path = %(path)s"
        " AND token = %(token)s AND method = 'POST'",
        {"key": key, "path": PATH, "token": TOKEN},
    )
    return rows[0] if rows else None


OTHERS: list[dict[str, Any]] = [{"token": UUID(int=9)}, {"method": "PUT"}, {"path": "/v1/registrations"}, {"key": "2"}]


def test_a_free_key_has_no_response() -> None:
    assert claim().find_stored_response(None) is None


@pytest.mark.parametrize(("status", "http"), [(400, 400), (200, 200), (None, 200)])
def test_a_stored_response_is_found(status: int | None, http: int) -> None:
    insert(status=status)
    assert claim().find_stored_response(read_row()) == StoredResponse(status=http, body="{}", payment=PAYMENT)


@pytest.mark.parametrize(
    ("age", "kept"), [(IDEMPOTENCY_RETENTION - MINUTE, True), (IDEMPOTENCY_RETENTION + MINUTE, False)]
)
def test_a_key_that_has_expired_is_deleted_alone(age: timedelta, kept: bool) -> None:
    """Others are as old."""
    insert(age=age)
    for other in OTHERS:
        insert(age=age, **other)
    assert (claim().find_stored_response(read_row()) is not None) is kept
    assert (read_row() is not None) is kept
    assert IdempotencyKey.objects.count() == len(OTHERS) + kept


def test_a_key_of_exactly_its_age_is_kept() -> None:
    insert()
    fingerprint, payment, status, answer, created_at, _ = read_row()
    for age, found in ((IDEMPOTENCY_RETENTION, True), (IDEMPOTENCY_RETENTION + timedelta(microseconds=1), False)):
        row = (fingerprint, payment, status, answer, created_at, age)
        assert (claim().find_stored_response(row) is not None) is found


def test_a_key_that_was_claimed_anew_since_it_was_read_is_not_deleted() -> None:
    insert(age=IDEMPOTENCY_RETENTION + MINUTE)
    stale = read_row()
    IdempotencyKey.objects.update(created_at=Now())
    assert claim().find_stored_response(stale) is None
    assert IdempotencyKey.objects.count() == 1


def test_a_key_with_another_body_is_refused() -> None:
    insert()
    with pytest.raises(RequestRefusedError) as told:
        claim(body=Secret("another")).find_stored_response(read_row())
    [error] = told.value.errors
    assert (told.value.code, told.value.status) == ("200.300.404", 400)
    assert (error.name, error.value, error.message) == ("Idempotency-Key", "key-1", "was used with another body")


def test_a_key_whose_payment_is_being_made_is_refused_for_now(shop: Shop) -> None:
    payment = begun(shop)
    insert(answer=None, status=None, payment=payment.pk)
    with pytest.raises(RequestRefusedError) as told:
        claim().find_stored_response(read_row())
    [error] = told.value.errors
    assert (told.value.code, told.value.status) == ("800.120.402", 409)
    assert (error.name, error.value) == ("Idempotency-Key", "key-1")
    assert error.message == "belongs to a request still being made"


def test_a_response_that_is_stored_is_given_while_its_payment_goes_on(shop: Shop) -> None:
    """Its shopper is back from a challenge, and its acquirer is asked."""
    insert(payment=begun(shop).pk)
    found = claim().find_stored_response(read_row())
    assert found is not None
    assert found.body == "{}"


@pytest.mark.parametrize("values", [{}, *OTHERS], ids=str)
def test_an_admission_reads_the_key_of_its_own_token_method_and_path(values: dict[str, Any]) -> None:
    insert(**values)
    looked_up = {"token": TOKEN, "method": "POST", "path": PATH, "key": "key-1"}
    [[payment]] = execute_sql(
        f"SELECT k.payment FROM (SELECT %(token)s::uuid AS id) t {JOIN_IDEMPOTENCY_KEY}", looked_up
    )
    assert payment == (None if values else PAYMENT)


def test_a_key_whose_payment_ended_meanwhile_is_read_once_more(shop: Shop) -> None:
    """Keys of others are in other states, and so are their payments."""
    payment, other = begun(shop), begun(shop)
    insert(answer=None, status=None, payment=payment.pk)
    stale = read_row()
    for values in OTHERS:
        insert(answer="of another", payment=other.pk, **values)
    Payment.objects.filter(pk=payment.pk).update(status=Status.IN_DOUBT, result_code="000.200.001")
    assert claim().find_stored_response(stale) == StoredResponse(status=200, body=None, payment=payment.pk)
    IdempotencyKey.objects.filter(payment=payment.pk).update(answer="late", status=400)
    assert claim().find_stored_response(stale) == StoredResponse(status=400, body="late", payment=payment.pk)
    IdempotencyKey.objects.filter(payment=payment.pk).delete()
    assert claim().find_stored_response(stale) is None


# What is written.


@pytest.mark.parametrize("response", [RenderedResponse(status=400, text="sent", stored_text="stored"), None])
def test_a_claim_is_written_with_its_fingerprint_and_the_response_there_is(response: RenderedResponse | None) -> None:
    write = WriteStatement()
    claim(method="PUT", path="/here", key="key-7").insert(write, PAYMENT, response)
    assert write.run()
    row = IdempotencyKey.objects.get()
    assert (row.token, row.method, row.path, row.key, row.payment) == (TOKEN, "PUT", "/here", "key-7", PAYMENT)
    assert (row.status, row.answer) == ((400, "stored") if response is not None else (None, None))
    assert current_vault().matches("body", row.fingerprint)
    [[age]] = execute_sql("SELECT clock_timestamp() - created_at FROM gateway_idempotencykey", {})
    assert timedelta(0) <= age < MINUTE


def test_a_response_is_stored_with_its_own_key_and_payment() -> None:
    insert(answer=None, status=None)
    for values in OTHERS:
        insert(answer=None, status=None, **values)
    for payment, written in ((identifiers.row_id(), 0), (PAYMENT, 1)):
        write = WriteStatement()
        claim().store_response(write, payment, RenderedResponse(status=201, text="sent", stored_text="stored"))
        write.run()
        assert IdempotencyKey.objects.filter(answer="stored", status=201).count() == written
    assert claim().find_stored_response(read_row()) == StoredResponse(status=201, body="stored", payment=PAYMENT)


def test_the_timer_sweeps_as_many_as_all_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "delete_expired_idempotency_keys", lambda *, limit: limit)
    assert (TIMER.run(), TIMER.every_s) == (MAX_SWEPT_ROWS, SWEEP_INTERVAL_S)
