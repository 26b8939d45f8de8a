"""Each condition of network tokens by itself: when one is sent, what follows its decline, what its service is asked.

Source: docs/decisions/0126; docs/network-tokens.md.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card, TokenAccount, VirtualAccount
from gateway.connectors.port import AcquirerReply, AcquirerRequest
from gateway.connectors.simulator.token_service import SimulatedTokenService
from gateway.connectors.token_service import (
    ProvisionedToken,
    TokenEvent,
    TokenNotUsableError,
    TokenRefusedError,
    TokenServiceUnavailableError,
)
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, NetworkToken, Notification, Payment, PaymentToken, Registration
from gateway.payments import network_tokens, registrations
from gateway.payments.network_tokens import (
    MAX_TOKEN_EVENT_TRIES,
    PROVISION_LEASE,
    PROVISION_RETRIES,
    TIMER,
    apply_token_event,
    attach_network_token,
    call_token_service_when_due,
    fall_back_to_number,
    is_token_decline,
    replace_sent_means,
    restore_token_use,
)
from gateway.payments.outcomes import Approved, Declined
from gateway.payments.stored_answer import TokenUse, set_token_use
from gateway.vault.sealing import current_vault
from tests.support.acquirers import Acquirer
from tests.support.client import Api
from tests.support.fixtures import Shop

PAN, OTHER_PAN = "4200000000000000", "4111111111111111"
CARD = Card(number=Secret(PAN), expiry_month="05", expiry_year="2034", holder="Jane Jones")
NOW = datetime(2034, 5, 20, 12, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
USED = set_token_use({}, TokenUse.USED)
MIT = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}
STATES = NetworkToken.Status
UNAVAILABLE = TokenServiceUnavailableError("nobody")


def ask(payment: Payment, **values: Any) -> AcquirerRequest:
    return AcquirerRequest(**{
        "payment": payment.id, "operation": "DB", "money": Money(Decimal("92.00"), "EUR"), "brand": "VISA", "at": NOW,
        "means": CARD, **values,
    })  # fmt: skip


# --- which decline is the token's -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "response", "is_tokens"),
    [
        ("800.100.307", "", True),
        ("800.100.307", "51", True),
        ("800.100.153", "N7", True),
        ("800.100.153", "82", True),
        ("800.100.153", "54", False),
        ("800.100.153", "", False),
        ("800.100.157", "54", True),
        ("800.100.157", "82", False),
        ("800.100.155", "", False),
        ("800.100.301", "N7", False),
    ],
)
def test_a_decline_is_the_tokens_by_its_code_and_the_acquirers_own(code: str, response: str, is_tokens: bool) -> None:
    assert is_token_decline(code, response) is is_tokens


def declined(code: str = "800.100.307", *, sent: bool = True, **details: str) -> Declined:
    return Declined(reply=AcquirerReply(code=code, sent={"a": "message"} if sent else {}, details=details), at=NOW)


class Watch:
    def __init__(self, over: bool) -> None:
        self.over = over

    def __repr__(self) -> str:
        return f"Watch({self.over})"

    def verdict_after_decline(self) -> object | None:
        return object() if self.over else None


@pytest.mark.parametrize(
    ("changed", "follows"),
    [
        ({}, True),
        ({"outcome": Approved(reply=declined().reply, at=NOW)}, False),
        ({"answer": {}}, False),
        ({"answer": set_token_use({}, TokenUse.DECLINED)}, False),
        ({"answer": set_token_use({}, TokenUse.UNAVAILABLE)}, False),
        ({"status": "IN_DOUBT"}, False),
        ({"outcome": declined(sent=False)}, False),
        ({"outcome": declined("800.100.153", AcquirerResponse="N7")}, True),
        ({"outcome": declined("800.100.153")}, False),
        ({"outcome": declined("800.100.155")}, False),
        ({"outcome": declined(MerchantAdviceCode="03")}, False),
        ({"outcome": declined(MerchantAdviceCode="00")}, True),
        ({"means": VirtualAccount(account=Secret("me"))}, False),
        ({"means": None}, False),
        ({"at": datetime(2034, 5, 31, 12, tzinfo=UTC)}, True),
        ({"at": datetime(2034, 6, 1, 12, tzinfo=UTC)}, False),
        ({"called_s_ago": 10_000.0}, False),
        ({"plan": SimpleNamespace(retries=Watch(over=False))}, True),
        ({"plan": SimpleNamespace(retries=Watch(over=True))}, False),
        ({"written": False}, False),
    ],
    ids=str,
)
def test_the_number_follows_a_declined_token_where_every_condition_is_kept(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], follows: bool
) -> None:
    payment = Payment(id=UUID(int=1), status=changed.get("status", "STARTED"), answer=changed.get("answer", USED))
    outcome, plan = changed.get("outcome", declined()), changed.get("plan")
    written: list[Any] = []

    def record(*given: Any, **named: Any) -> bool:
        written.append((*given, named))
        return changed.get("written", True)  # type: ignore[no-any-return]

    monkeypatch.setattr(network_tokens.store, "record_token_fallback", record)
    acquirer = Acquirer("first")
    asked = ask(payment, **{name: value for name, value in changed.items() if name in ("means", "at")})
    since = time.perf_counter() - changed.get("called_s_ago", 0.0)
    found = fall_back_to_number(payment, acquirer, outcome, asked, plan, since=since)
    assert found is (acquirer if follows else None)
    assert written == ([(payment, outcome, {"plan": plan})] if follows or "written" in changed else [])


# --- which payment is made with a token -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, True),
        ({"payment_type": "PA"}, True),
        ({"registration": None}, False),
        ({"referenced": UUID(int=3)}, False),
        ({"payment_type": "CD"}, False),
        ({"payment_type": "RB"}, False),
        ({"channel": Channel(network_tokens=False)}, False),
        ({"answer": set_token_use({}, TokenUse.DECLINED)}, False),
        ({"answer": USED}, True),
        ({"answer": set_token_use({}, TokenUse.UNAVAILABLE)}, True),
        ({"brand": "PAYPAL"}, False),
        ({"means": VirtualAccount(account=Secret("me"))}, False),
        ({"means": None}, False),
        ({"means": replace(CARD, number_type="DPAN")}, False),
        ({"means": replace(CARD, number_type="PAN")}, True),
        ({"means": replace(CARD, wallet="APPLEPAY")}, False),
    ],
    ids=str,
)
def test_a_token_is_wanted_where_every_condition_is_kept(changed: dict[str, Any], wanted: bool) -> None:
    values: dict[str, Any] = {
        "id": UUID(int=1), "registration": UUID(int=2), "payment_type": "DB", "brand": "VISA", "answer": {},
        "channel": Channel(network_tokens=True),
    }  # fmt: skip
    means = changed.get("means", CARD)
    payment = Payment(**values | {name: value for name, value in changed.items() if name != "means"})
    assert network_tokens._is_token_wanted(payment, ask(payment, means=means)) is wanted


# --- what is sent ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tokens(shop: Shop) -> Shop:
    """A shop whose channel has network tokens."""
    Channel.objects.filter(pk=shop.channel.pk).update(network_tokens=True)
    return shop


class Service(SimulatedTokenService):
    """A token service that a test asks for more: ``gives``, of a cryptogram or a token, or what it raises."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.deleted: list[str] = []
        self.gives: Any = None
        self.delete_fault: Exception | None = None
        self.meanwhile: Any = lambda: None

    def provision(self, request: Any) -> ProvisionedToken:
        return self._answer(request) or super().provision(request)  # type: ignore[no-any-return]

    def fetch_cryptogram(self, request: Any) -> Secret:
        return self._answer(request) or Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA=")  # type: ignore[no-any-return]

    def delete(self, reference: str) -> None:
        if self.delete_fault is not None:
            raise self.delete_fault
        self.deleted.append(reference)

    def _answer(self, request: Any) -> Any:
        self.asked.append(request)
        self.meanwhile()
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    found = Service()
    monkeypatch.setattr(network_tokens, "load_token_service", lambda: found)
    return found


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(network_tokens, "wakeup", SimpleNamespace(notify_timer=found.append))
    return found


def store(api: Api, number: str = PAN) -> Registration:
    """A stored card without a token."""
    fields = {"card.number": number, "card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones"}
    stored = api.post("/v1/registrations", {"paymentBrand": "VISA", **fields})
    assert stored.status == 200, stored
    NetworkToken.objects.filter(registration=stored.id).delete()
    return Registration.objects.select_related("merchant", "channel").get(pk=stored.id)


def give_token(owner: Registration, number: str = "4289000000000001", **values: Any) -> NetworkToken:
    row = NetworkToken(registration=owner, changed_at=NOW - 9 * DAY)
    sealed = {"number_sealed": current_vault().seal(Secret(number), row.id), "last4": number[-4:]}
    active = {
        "status": "ACTIVE", "reference": f"R-{row.id.hex}", "expiry_month": "07", "expiry_year": "2039",
        "requestor": "40010030999", **sealed,
    }  # fmt: skip
    for name, value in (active | values).items():
        setattr(row, name, value)
    row.save()
    return row


def wait_for_token(owner: Registration, due_at: datetime | None, **values: Any) -> NetworkToken:
    return NetworkToken.objects.create(registration=owner, changed_at=NOW - 9 * DAY, due_at=due_at, **values)


def pay(owner: Registration, **values: Any) -> Payment:
    """A payment with a stored card, which is not written."""
    return Payment(**{
        "id": identifiers.row_id(), "registration": owner.id, "channel": owner.channel, "payment_type": "DB",
        "brand": "VISA", "answer": {}, "created_at": NOW, **values,
    })  # fmt: skip


def keep_sent(payment: UUID, number: str = "4289000000000002") -> PaymentToken:
    return PaymentToken.objects.create(
        payment_id=payment, number_sealed=current_vault().seal(Secret(number), payment), expiry_month="02",
        expiry_year="2036", requestor="40010030222",
    )  # fmt: skip


def kept(payment: Payment) -> tuple[str, str, str, str] | None:
    """The token that a payment was sent with, as it is written."""
    row = PaymentToken.objects.filter(pk=payment.pk).first()
    if row is None:
        return None
    number = current_vault().open(row.number_sealed, payment.id).reveal()
    return number, row.expiry_month, row.expiry_year, row.requestor


@pytest.mark.django_db
@pytest.mark.parametrize("parameters", [{}, MIT], ids=["the shopper's", "the merchant's"])
def test_the_token_is_sent_as_its_network_gave_it_and_kept(
    tokens: Shop, service: Service, woken: list[str], parameters: dict[str, str]
) -> None:
    owner, other = store(tokens.api), store(tokens.api, OTHER_PAN)
    row = give_token(owner)
    give_token(other, "4289000000000009")
    payment = pay(owner)
    asked = ask(payment, parameters=parameters, stored=True)
    sent = attach_network_token(payment, Acquirer("first"), asked)
    cryptogram = None if parameters else Secret("AgAAAAAAAIR8CQrXcIhbQAAAAAA=")
    token = TokenAccount(
        account=Secret("4289000000000001"), type="NETWORK", expiry_month="07", expiry_year="2039",
        cryptogram=cryptogram, requestor="40010030999",
    )  # fmt: skip
    assert sent == replace(asked, means=token)
    assert kept(payment) == ("4289000000000001", "07", "2039", "40010030999")
    assert payment.answer == USED
    assert [(one.reference, one.number, one.payment, one.money) for one in service.asked] == (
        [] if parameters else [(row.reference, token.account, payment.id, asked.money)]
    )
    assert woken == []


@pytest.mark.django_db
def test_another_attempt_keeps_the_token_as_it_is_now(tokens: Shop, service: Service) -> None:
    owner = store(tokens.api)
    give_token(owner)
    payment, other = pay(owner, answer=USED), pay(owner)
    keep_sent(payment.id)
    keep_sent(other.id)
    attach_network_token(payment, Acquirer("second"), ask(payment))
    assert kept(payment) == ("4289000000000001", "07", "2039", "40010030999")
    assert kept(other) == ("4289000000000002", "02", "2036", "40010030222")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("of_token", "gives", "takes", "use"),
    [
        ({"status": "SUSPENDED"}, None, TokenAccount.kind, {}),
        ({"number_sealed": None}, None, TokenAccount.kind, {}),
        ({"number_sealed": b"broken"}, None, TokenAccount.kind, {}),
        ({"expiry_month": "04", "expiry_year": "2034"}, None, TokenAccount.kind, {}),
        ({}, None, "virtualAccount", {}),
        ({}, UNAVAILABLE, TokenAccount.kind, set_token_use({}, TokenUse.UNAVAILABLE)),
        ({}, TokenNotUsableError(TokenEvent.SUSPENDED), TokenAccount.kind, set_token_use({}, TokenUse.UNAVAILABLE)),
        ({}, ValueError("broken"), TokenAccount.kind, set_token_use({}, TokenUse.UNAVAILABLE)),
    ],
    ids=str,
)
def test_an_attempt_with_the_number_forgets_the_token_of_the_one_before(
    tokens: Shop, service: Service, of_token: dict[str, Any], gives: Any, takes: str, use: dict[str, Any]
) -> None:
    owner = store(tokens.api)
    give_token(owner, **of_token)
    service.gives = gives
    payment, other = pay(owner, answer=USED), pay(owner)
    keep_sent(payment.id)
    keep_sent(other.id)
    acquirer = Acquirer("second")
    acquirer.takes = frozenset({"", Card.kind, takes})
    asked = ask(payment)
    assert attach_network_token(payment, acquirer, asked) is asked
    assert (kept(payment), payment.answer) == (None, use)
    assert kept(other) is not None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "due_at", "asked"),
    [
        (None, None, True),
        ("REQUESTED", None, True),
        ("REQUESTED", NOW + DAY, False),
        ("REFUSED", None, False),
        ("DELETED", None, False),
        ("ACTIVE", None, False),
    ],
)
def test_a_payment_asks_for_a_token_that_nobody_asks_for(
    tokens: Shop,
    service: Service,
    woken: list[str],
    monkeypatch: pytest.MonkeyPatch,
    status: str | None,
    due_at: datetime | None,
    asked: bool,
) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    owner, other = store(tokens.api), store(tokens.api, OTHER_PAN)
    wait_for_token(other, None, tries=6)
    if status is not None:
        wait_for_token(owner, due_at, tries=6, status=status)
    payment = pay(owner)
    attach_network_token(payment, Acquirer("first"), ask(payment))
    row = NetworkToken.objects.get(registration=owner)
    if asked:
        assert (row.status, row.due_at, row.tries) == ("REQUESTED", NOW, 0)
    else:
        assert (row.status, row.due_at, row.tries) == (status, due_at, 6)
    assert woken == (["network tokens"] if asked else [])
    untouched = NetworkToken.objects.get(registration=other)
    assert (untouched.due_at, untouched.tries) == (None, 6)


@pytest.mark.django_db
def test_what_came_meanwhile_is_not_asked_for_again(
    tokens: Shop, woken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row is read, and given up by its network before it is asked for."""
    owner = store(tokens.api)
    wait_for_token(owner, None, tries=6, status="REFUSED")
    network_tokens._request_token(pay(owner))
    row = NetworkToken.objects.get()
    assert (row.status, row.due_at, row.tries) == ("REFUSED", None, 6)


# --- what was sent --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_follows_names_the_token_of_its_own_payment() -> None:
    ident, other, neither = UUID(int=1), UUID(int=2), UUID(int=3)
    keep_sent(ident)
    keep_sent(other, "4289000000000009")
    assert replace_sent_means(CARD, ident) == TokenAccount(
        account=Secret("4289000000000002"), type="NETWORK", expiry_month="02", expiry_year="2036",
        requestor="40010030222",
    )  # fmt: skip
    account = VirtualAccount(account=Secret("me"))
    for means, payment in ((account, ident), (None, ident), (CARD, neither)):
        assert replace_sent_means(means, payment) is means


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("has_row", "before", "after"),
    [
        (True, {"a": 1}, {"a": 1} | USED),
        (True, set_token_use({}, TokenUse.UNAVAILABLE), USED),
        (False, {"a": 1} | USED, {"a": 1}),
        (False, set_token_use({}, TokenUse.DECLINED), set_token_use({}, TokenUse.DECLINED)),
        (False, set_token_use({}, TokenUse.UNAVAILABLE), set_token_use({}, TokenUse.UNAVAILABLE)),
        (False, {}, {}),
    ],
)
def test_a_payment_that_its_worker_left_says_how_it_was_sent(
    has_row: bool, before: dict[str, Any], after: dict[str, Any]
) -> None:
    payment = Payment(id=UUID(int=1), answer=before)
    keep_sent(UUID(int=2))
    if has_row:
        keep_sent(payment.id)
    restore_token_use(payment)
    assert payment.answer == after


# --- events ---------------------------------------------------------------------------------------------------------

_GONE = {"status": "DELETED", "number_sealed": None, "reference": "", "due_at": None}


@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("event", TokenEvent)
def test_an_event_changes_what_fits_the_tokens_state(event: TokenEvent, status: str) -> None:
    expected: dict[tuple[str, str], dict[str, Any]] = {
        ("SUSPENDED", "ACTIVE"): {"status": "SUSPENDED"},
        ("RESUMED", "SUSPENDED"): {"status": "ACTIVE"},
        ("REPLACED", "ACTIVE"): {"expiry_month": "07", "expiry_year": "2039"},
        ("REPLACED", "SUSPENDED"): {"expiry_month": "07", "expiry_year": "2039"},
        ("DELETED", "ACTIVE"): _GONE,
        ("DELETED", "SUSPENDED"): _GONE,
    }
    row = NetworkToken(status=status, expiry_month="05", expiry_year="2037")
    assert network_tokens._list_event_changes(row, event, "07", "2039") == expected.get((event, status), {})


@pytest.mark.parametrize(
    ("month", "year", "changes"),
    [
        ("05", "2037", False),
        ("06", "2037", True),
        ("05", "2038", True),
        ("", "2038", False),
        ("06", "", False),
    ],
)
def test_a_replacement_has_another_date(month: str, year: str, changes: bool) -> None:
    row = NetworkToken(status="ACTIVE", expiry_month="05", expiry_year="2037")
    expected = {"expiry_month": month, "expiry_year": year} if changes else {}
    assert network_tokens._list_event_changes(row, TokenEvent.REPLACED, month, year) == expected


@pytest.mark.django_db
def test_an_event_is_kept_by_the_merchants_clock_and_for_its_token_alone(
    tokens: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, other = store(tokens.api), store(tokens.api, OTHER_PAN)
    row, untouched = give_token(owner), give_token(other)
    Merchant.objects.filter(pk=tokens.merchant.pk).update(clock_offset=5 * DAY)
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    assert apply_token_event(row.reference, TokenEvent.REPLACED, expiry_month="08", expiry_year="2041")
    row.refresh_from_db()
    assert (row.status, row.expiry_month, row.expiry_year, row.changed_at) == ("ACTIVE", "08", "2041", NOW + 5 * DAY)
    assert row.history == [{"at": (NOW + 5 * DAY).isoformat(), "status": "ACTIVE", "expiry": "08/2041"}]
    untouched.refresh_from_db()
    assert (untouched.expiry_year, untouched.history) == ("2039", [])


@pytest.mark.django_db
def test_a_row_without_a_reference_is_no_token_of_an_event(tokens: Shop) -> None:
    row = give_token(store(tokens.api), reference="")
    assert not apply_token_event("", TokenEvent.SUSPENDED)
    row.refresh_from_db()
    assert row.status == "ACTIVE"


@pytest.mark.django_db
def test_an_event_of_a_card_that_is_stored_no_longer_is_told_nobody(tokens: Shop) -> None:
    owner = store(tokens.api)
    row = give_token(owner)
    Registration.objects.filter(pk=owner.pk).update(status="DELETED", means_sealed=None)
    before = Notification.objects.count()
    assert apply_token_event(row.reference, TokenEvent.SUSPENDED)
    row.refresh_from_db()
    assert (row.status, [one["status"] for one in row.history]) == ("SUSPENDED", ["SUSPENDED"])
    assert Notification.objects.count() == before


@pytest.mark.django_db
@pytest.mark.parametrize("changed", [{"changed_at": NOW - DAY}, {"status": "SUSPENDED"}], ids=str)
def test_an_event_of_a_deleted_card_is_not_written_over_another_change(tokens: Shop, changed: dict[str, Any]) -> None:
    owner, other = store(tokens.api), store(tokens.api, OTHER_PAN)
    row, untouched = give_token(owner), give_token(other)
    Registration.objects.filter(pk=owner.pk).update(status="DELETED", means_sealed=None)
    NetworkToken.objects.filter(pk=row.pk).update(**changed)
    assert not network_tokens._write_event(row, {"expiry_month": "08", "expiry_year": "2041"})
    assert set(NetworkToken.objects.values_list("pk", "expiry_year")) == {(row.pk, "2039"), (untouched.pk, "2039")}


@pytest.mark.django_db
def test_an_event_that_is_overtaken_each_time_is_given_up(tokens: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    row = give_token(store(tokens.api))
    tries: list[Any] = []
    monkeypatch.setattr(registrations, "record_registration_change", lambda *given, **_: bool(tries.append(given)))
    assert not apply_token_event(row.reference, TokenEvent.SUSPENDED)
    assert len(tries) == MAX_TOKEN_EVENT_TRIES


# --- the service ----------------------------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    return NOW


def read(row: NetworkToken) -> NetworkToken:
    return NetworkToken.objects.get(pk=row.pk)


def test_without_a_token_service_its_timer_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_tokens, "load_token_service", lambda: None)
    assert TIMER.is_off()
    assert call_token_service_when_due() == 0
    monkeypatch.setattr(network_tokens, "load_token_service", Service)
    assert not TIMER.is_off()
    assert TIMER.run is call_token_service_when_due


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("due_at", "asked"),
    [(NOW - SECOND, True), (NOW, True), (NOW + timedelta(microseconds=1), False), (None, False)],
)
def test_the_service_is_asked_when_it_is_due(
    tokens: Shop, service: Service, now: datetime, due_at: datetime | None, asked: bool
) -> None:
    row = wait_for_token(store(tokens.api), due_at)
    assert call_token_service_when_due() == int(asked)
    assert read(row).status == ("ACTIVE" if asked else "REQUESTED")


@pytest.mark.django_db
def test_the_longest_due_are_asked_for_first_and_so_many_at_a_time(
    tokens: Shop, service: Service, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_tokens, "PROVISION_BATCH", 2)
    numbers = (PAN, OTHER_PAN, "4222222222222220")
    for number, age in zip(numbers, (2, 1, 3), strict=True):
        wait_for_token(store(tokens.api, number), now - age * DAY)
    assert call_token_service_when_due() == 2
    assert [one.card.number.reveal() for one in service.asked] == [numbers[2], numbers[0]]


@pytest.mark.django_db
def test_what_is_asked_for_is_leased_meanwhile_and_another_workers_left_alone(
    tokens: Shop, service: Service, now: datetime
) -> None:
    first = wait_for_token(store(tokens.api), now - DAY)
    second = wait_for_token(store(tokens.api, OTHER_PAN), now)
    seen: list[datetime | None] = []

    def take_second() -> None:
        seen.append(read(first).due_at)
        NetworkToken.objects.filter(pk=second.pk).update(due_at=now + timedelta(minutes=1))

    service.meanwhile = take_second
    assert call_token_service_when_due() == 1
    assert seen == [now + PROVISION_LEASE]
    assert read(second).due_at == now + timedelta(minutes=1)


@pytest.mark.django_db
@pytest.mark.parametrize("fault", [UNAVAILABLE, ValueError("broken")], ids=str)
@pytest.mark.parametrize(("tries", "delay"), [*enumerate(PROVISION_RETRIES), (len(PROVISION_RETRIES), None)])
def test_a_service_without_an_answer_is_asked_again_by_the_table(
    tokens: Shop, service: Service, now: datetime, tries: int, delay: timedelta | None, fault: Exception
) -> None:
    row = wait_for_token(store(tokens.api), now, tries=tries)
    other = wait_for_token(store(tokens.api, OTHER_PAN), now + PROVISION_LEASE)
    service.gives = fault
    assert call_token_service_when_due() == 0
    found = read(row)
    assert (found.status, found.tries, found.due_at) == ("REQUESTED", tries + 1, now + delay if delay else None)
    assert (read(other).tries, read(other).due_at) == (0, now + PROVISION_LEASE)


@pytest.mark.django_db
def test_a_call_without_an_answer_leaves_what_changed_meanwhile(tokens: Shop, service: Service, now: datetime) -> None:
    row = wait_for_token(store(tokens.api), now)
    service.gives = UNAVAILABLE
    service.meanwhile = lambda: NetworkToken.objects.update(due_at=now + DAY)
    call_token_service_when_due()
    assert (read(row).due_at, read(row).tries) == (now + DAY, 0)


GIVEN = ProvisionedToken(
    reference="NEW", number=Secret("4289000000001234"), expiry_month="08", expiry_year="2042", requestor="40010030888"
)


@pytest.mark.django_db
def test_a_token_is_written_as_the_network_gave_it_for_the_card_that_was_shown(
    tokens: Shop, service: Service, now: datetime
) -> None:
    Merchant.objects.filter(pk=tokens.merchant.pk).update(clock_offset=5 * DAY)
    owner, other = store(tokens.api), store(tokens.api, OTHER_PAN)
    row, untouched = wait_for_token(owner, now, tries=3), wait_for_token(other, now + PROVISION_LEASE, tries=2)
    service.gives = GIVEN
    assert call_token_service_when_due() == 1
    [request] = service.asked
    assert (request.card, request.brand) == (CARD, "VISA")
    found = read(row)
    assert current_vault().open(found.number_sealed or b"", row.id) == GIVEN.number
    assert (found.status, found.reference, found.last4, found.expiry_month, found.expiry_year, found.requestor) == (
        "ACTIVE", "NEW", "1234", "08", "2042", "40010030888",
    )  # fmt: skip
    assert (found.due_at, found.tries, found.changed_at) == (None, 0, now + 5 * DAY)
    assert found.history == [{"at": (now + 5 * DAY).isoformat(), "status": "ACTIVE", "expiry": "08/2042"}]
    assert (read(untouched).due_at, read(untouched).tries) == (now + PROVISION_LEASE, 2)


@pytest.mark.django_db
def test_a_refusal_is_written_with_its_moment(tokens: Shop, service: Service, now: datetime) -> None:
    row = wait_for_token(store(tokens.api), now, tries=3)
    service.gives = TokenRefusedError("no")
    assert call_token_service_when_due() == 1
    found = read(row)
    assert (found.status, found.reference, found.number_sealed, found.due_at, found.tries, found.changed_at) == (
        "REFUSED", "", None, None, 0, now,
    )  # fmt: skip
    assert found.history == [{"at": now.isoformat(), "status": "REFUSED", "expiry": ""}]
    assert service.deleted == []


@pytest.mark.django_db
@pytest.mark.parametrize("why", ["deleted", "erased", "switched off"])
@pytest.mark.parametrize("reference", ["", "OLD"])
def test_no_token_is_asked_for_where_none_is_wanted_any_more(
    tokens: Shop, service: Service, now: datetime, why: str, reference: str
) -> None:
    Merchant.objects.filter(pk=tokens.merchant.pk).update(clock_offset=5 * DAY)
    owner = store(tokens.api)
    row = give_token(owner, due_at=now, status="DELETED" if why == "deleted" else "REQUESTED", reference=reference)
    if why == "erased":
        Registration.objects.update(means_sealed=None)
    if why == "switched off":
        Channel.objects.update(network_tokens=False)
    assert call_token_service_when_due() == 1
    found = read(row)
    assert (service.asked, service.deleted) == ([], [reference] if reference else [])
    assert (found.reference, found.number_sealed, found.due_at, found.status) == ("", None, None, row.status)
    gone = [{"at": (now + 5 * DAY).isoformat(), "status": "DELETED", "expiry": ""}]
    assert found.history == (gone if reference else [])


@pytest.mark.django_db
@pytest.mark.parametrize(
    "changed", [{"status": "DELETED"}, {"due_at": NOW + DAY}, {"status": "DELETED", "due_at": None}], ids=str
)
def test_a_token_of_a_row_that_changed_meanwhile_is_deleted_at_its_network(
    tokens: Shop, service: Service, now: datetime, changed: dict[str, Any]
) -> None:
    row = wait_for_token(store(tokens.api), now, tries=3)
    service.gives = GIVEN
    service.meanwhile = lambda: NetworkToken.objects.update(**changed)
    assert call_token_service_when_due() == 1
    found = read(row)
    assert (service.deleted, found.reference, found.tries) == (["NEW"], "", 3)
    assert {name: getattr(found, name) for name in changed} == changed


@pytest.mark.django_db
def test_a_refusal_of_a_row_that_changed_meanwhile_deletes_nothing(
    tokens: Shop, service: Service, now: datetime
) -> None:
    row = wait_for_token(store(tokens.api), now)
    service.gives = TokenRefusedError("no")
    service.meanwhile = lambda: NetworkToken.objects.update(due_at=now + DAY)
    call_token_service_when_due()
    assert (service.deleted, read(row).status) == ([], "REQUESTED")


@pytest.mark.django_db
@pytest.mark.parametrize(("has_another", "reference", "due_at"), [(False, "NEW", NOW), (True, "OTHER", NOW + DAY)])
def test_what_cannot_be_deleted_now_is_deleted_by_its_row_later(
    tokens: Shop, service: Service, now: datetime, has_another: bool, reference: str, due_at: datetime
) -> None:
    """But not where the row has another token by then. Others' rows stay."""
    row = wait_for_token(store(tokens.api), now)
    other = wait_for_token(store(tokens.api, OTHER_PAN), now + 2 * DAY)
    service.gives, service.delete_fault = GIVEN, UNAVAILABLE
    changed: dict[str, Any] = {"due_at": now + DAY} | ({"reference": "OTHER"} if has_another else {})
    service.meanwhile = lambda: NetworkToken.objects.filter(pk=row.pk).update(**changed)
    call_token_service_when_due()
    assert (read(row).reference, read(row).due_at) == (reference, due_at)
    assert (read(other).reference, read(other).due_at) == ("", now + 2 * DAY)


@pytest.mark.django_db
def test_the_key_of_a_request_is_of_the_row_its_change_and_the_number(tokens: Shop) -> None:
    owner = store(tokens.api)
    row = wait_for_token(owner, NOW)
    build = network_tokens._build_provision_key
    key = build(row, Secret(PAN))
    assert key == build(read(row), Secret(PAN))
    assert key != build(row, Secret(OTHER_PAN))
    assert key != build(NetworkToken(id=UUID(int=1), changed_at=row.changed_at), Secret(PAN))
    assert key != build(NetworkToken(id=row.id, changed_at=row.changed_at + SECOND), Secret(PAN))
