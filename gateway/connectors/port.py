"""The connector port: what payments ask an acquirer, what it can answer, and how an unknown outcome is reported.

A connector maps messages in pure functions and does I/O only in ``submit``, ``inquire`` and ``void``. It receives
values, never models.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Protocol
from uuid import UUID

from gateway.connectors.capabilities import TRANSFER_PARAMETER, SentParameter
from gateway.connectors.means import Card, Means, TokenAccount, resolve_means_brand
from gateway.connectors.point_of_service import PointOfService, build_point_of_service
from gateway.core.clock import Deadline
from gateway.core.money import Money
from gateway.core.secret import Secret


@dataclass(frozen=True, slots=True)
class ConnectorSetting:
    """One setting that a connector needs for a merchant's account, besides the merchant's id at the processor.

    ``pattern``: full match of a value; ``allowed``: the same in words, for the error; ``default`` '' means none. A
    ``secret`` is encrypted and never shown again. ``place``: the setting identifies the account at the processor, so it
    cannot be changed while a payment of the account is undecided; another host would not know that payment. A secret
    that identifies the account is checked with :class:`AccountProbe`.
    """

    name: str
    about: str
    pattern: str
    allowed: str
    _: KW_ONLY
    default: str = ""
    required: bool = False
    secret: bool = False
    place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorAccount:
    """A merchant's account at a processor, as its connector needs it.

    ``merchant``: the merchant's id there; ``settings`` and ``secrets``: values by setting name; ``channel``: owner of
    the account, which distinguishes accounts of the same id.
    """

    merchant: str = ""
    channel: UUID | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)


class ReversalReason(enum.StrEnum):
    """Why a payment is reversed: the merchant asked (or takes no approval in part), its answer did not come in time, or
    its approval was refused (the issuer's address or security code answer did not satisfy the rule set)."""

    CUSTOMER = "customer"
    TIMEOUT = "timeout"
    SUSPECTED_FRAUD = "suspected fraud"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquirerRequest:
    """A request to an acquirer. Inquiries and voids carry the request of the payment that they are about.

    - ``payment``: our payment's id.
    - ``operation``: the payment type.
    - ``at``: when this authorization attempt began, by the merchant's clock: a later one, and one that waited for its
      shopper, has a time of its own, and so has the void of an authorization that a renewal has replaced.
    - ``reference``: the connector's id of the payment that a follow-up refers to.
    - ``parameters``: forwardable parameters by full name.
    - ``account``: the merchant's account at the acquirer.
    - ``return_url``: where a redirected shopper comes back to, empty for a card.
    - ``known_transaction_id``: the connector's own id of this payment, where an earlier attempt with an unknown outcome
      got one.
    - ``amount_already_reversed``: for a reversal, what other reversals have taken, or may have, from the same payment.
    - ``authorized_amount``: for a reversal of an authorization, all that was authorized in its chain, increments
      included; ``reference`` then names the first authorization, as for increments and renewals (docs/decisions/0068).
    - ``cryptogram``: the proof of an authentication (CAVV, AAV).
    - ``party_accounts``: numbers of a transfer's sender and recipient in clear, by parameter name (PARTY_ACCOUNTS), of
      a first payment on its way only.
    - ``stored``, ``stores``: of a first payment, it is made with a registration, or makes one.
    - ``original``: of a follow-up, the point of service that it has from the payment it follows.
    - ``clearing``: of a capture, which of numberOfCaptures it is, (0, 0) without that number.
    - ``authorization_kind``: ESTIMATED or FINAL of a PA; of an increment or renewal, that of the authorization.
    - ``not_after``: a payment that has not been sent by then is not sent any more, because recovery may have voided it
      (checked by :meth:`check_in_time`).
    - ``reversal_reason``: of a reversal or void.
    - ``trace_number``: the number of this payment's message, from :meth:`MessageNumbering.take_trace_number`, 0 for
      connectors without one.
    - ``renewed_amount``, ``reversed_since_renewal``: for a reversal of an authorization that was renewed, what its
      newest renewal authorized with increments since, and what reversals since have taken; ``reference`` then names
      that renewal.
    - ``renewable_amount``: for a renewal, all that is left to capture.
    - ``kept_amount``: for the void of an authorization that a renewal has replaced, what of it was captured and stays
      (docs/decisions/0093).
    - ``attempt``: which authorization of the same payment this is; 2 and more after a soft decline or a cascade, to
      distinguish it from the declined ones before (docs/decisions/0104, 0108).
    - ``called_at``: of an inquiry, real time, when the acquirer was called, if that is later than the payment's
      beginning: after a challenge, a step-up, a failover or a cascade.
    - ``asks_for_part``: of a first payment, the issuer may approve a part of the amount (docs/decisions/0131).
    - ``asked_for``: of an inquiry or void of a payment whose answer did not come, for how long its acquirer has been
      asked already: nothing of the payment was sent since. None where it was answered.
    - ``earlier_void_answers``: of a void, what the acquirer answered to voids of the same payment before, as stored.
    - ``undecided_answer``: of an inquiry or void, what the acquirer answered to the payment's own message, as stored,
      where it answered but decided nothing.
    - ``take_late_answer``: of a payment that is sent, takes an answer that comes after ``submit`` has given up; one
      with OUTCOME_UNKNOWN_CODE decides nothing.
    """

    payment: UUID
    operation: str
    money: Money
    brand: str
    at: datetime
    means: Means | None = None
    reference: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    account: ConnectorAccount = field(default_factory=ConnectorAccount)
    return_url: str = ""
    known_transaction_id: str = ""
    amount_already_reversed: Decimal = Decimal(0)
    authorized_amount: Decimal = Decimal(0)
    cryptogram: Secret | None = None
    party_accounts: Mapping[str, Secret] = field(default_factory=dict)
    stored: bool = False
    stores: bool = False
    original: PointOfService | None = None
    clearing: tuple[int, int] = (0, 0)
    authorization_kind: str = ""
    asks_for_part: bool = False
    not_after: Deadline | None = None
    reversal_reason: ReversalReason = ReversalReason.CUSTOMER
    trace_number: int = 0
    renewed_amount: Decimal = Decimal(0)
    reversed_since_renewal: Decimal = Decimal(0)
    renewable_amount: Decimal = Decimal(0)
    kept_amount: Decimal = Decimal(0)
    attempt: int = 1
    called_at: datetime | None = None
    asked_for: timedelta | None = None
    earlier_void_answers: Sequence[Mapping[str, Any]] = ()
    undecided_answer: Mapping[str, Any] = field(default_factory=dict)
    take_late_answer: Callable[[AcquirerReply], None] | None = field(default=None, compare=False, repr=False)

    @property
    def attempt_key(self) -> str:
        """What names this authorization attempt at an acquirer that books a key once: the payment's id, from the second
        on with its number."""
        return self.payment.hex if self.attempt == 1 else f"{self.payment.hex}-{self.attempt}"

    def check_in_time(self) -> None:
        """Raise RequestTooLateError after ``not_after``. Called as late as possible before a payment is sent."""
        if self.not_after is not None and self.not_after.has_passed():
            raise RequestTooLateError("not sent: this process was stopped until after recovery's deadline", {})

    @property
    def point_of_service(self) -> PointOfService:
        """Who initiates the payment, and whether its card is on file: what every connector marks it by."""
        return self.original or build_point_of_service(
            self.parameters,
            stored=self.stored,
            stores=self.stores,
            token=isinstance(self.means, TokenAccount),
            brand=self.network_brand,
        )

    def get_repeated(self, name: str) -> str:
        """A parameter of REPEATED_PARAMETERS: as sent with this payment, else with the one that it follows; '' if with
        neither. The kind of a transfer is always that of the first payment."""
        sent = self.parameters.get(name, "") if name != TRANSFER_PARAMETER else ""
        return sent or self.point_of_service.repeated.get(name, "")

    @property
    def network_brand(self) -> str:
        """The card network's brand: of a wallet, that of the card in it."""
        return resolve_means_brand(self.brand, self.means)

    @property
    def card(self) -> Card | None:
        """The means, if it is a card."""
        return self.means if isinstance(self.means, Card) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """A request that the shopper's browser makes in the background before the redirect, e.g. a 3DS method call.

    ``origin``: the party that wants it.
    """

    origin: str
    url: str
    method: str = "GET"
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Where the shopper is redirected. ``parameters``: (name, value) pairs, values up to 255 characters.

    Source: Part B, Asynchronous payment parameters.
    """

    url: str
    method: str = "GET"
    parameters: tuple[tuple[str, str], ...] = ()
    preconditions: tuple[Precondition, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The redirect object of an API answer."""
        return {"url": self.url, "method": self.method, "parameters": _pairs(self.parameters)} | (
            {
                "preconditions": [
                    {"origin": one.origin, "url": one.url, "method": one.method, "parameters": _pairs(one.parameters)}
                    for one in self.preconditions
                ]
            }
            if self.preconditions
            else {}
        )


def _pairs(parameters: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in parameters]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquirerReply:
    """An acquirer's answer.

    - ``code``: our result code.
    - ``approved``: the amount granted, None for none.
    - ``details`` become resultDetails (``ExtendedDescription``: the processor's own words, instead of the code's text).
    - ``facts`` are merged into the answer (nested, e.g. merchant.bankAccount).
    - ``redirect``: where the shopper goes while the answer is pending.
    - ``sent`` and ``received``: the masked messages for the stored exchange.
    - ``network_reference``: the card scheme's transaction id, by which later payments of an agreement name this one at
      any processor (gateway.connectors.acquirer_message.parse_scheme_reference).
    - ``transaction_link``: Mastercard's own id of it, which follow-ups and merchant-initiated payments name beside that
      (parse_transaction_link).
    - ``retryable_elsewhere``: the request was not judged and cannot have been accepted (no connection, no room, the
      processor is out of order), so payments may fail over to another acquirer. Never set after an unknown outcome.
    - ``not_sent``: in addition, it was not sent because of the request or the account, which says nothing about the
      acquirer's health.
    - ``pending_until``: merchant's clock; a pending payment waits at least as long (a bank that collects weeks from
      now).
    - ``valid_for``: how long the acquirer holds an authorization, where it says so.
    - ``reopens_authorization``: of the reversal of a capture, that the acquirer goes on holding what was captured.
    - ``has_own_advice``: of a decline, that the acquirer says in words of its own what to do next, where the network's
      MerchantAdviceCode may be missing: no other acquirer is asked at once.
    - ``may_stand``: of the void of an approval that came late, that the acquirer says there is nothing left to take
      back, which does not prove it: nothing more is sent, and a person has to ask.
    """

    code: str
    approved: Money | None = None
    connector_tx_id: str = ""
    network_reference: str = ""
    transaction_link: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    avs: str = ""
    cvv: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    redirect: Redirect | None = None
    sent: Mapping[str, Any] = field(default_factory=dict)
    received: Mapping[str, Any] = field(default_factory=dict)
    retryable_elsewhere: bool = False
    not_sent: bool = False
    pending_until: datetime | None = None
    valid_for: timedelta | None = None
    reopens_authorization: bool = False
    has_own_advice: bool = False
    may_stand: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFoundAtAcquirer:
    """Answer to an inquiry: the acquirer does not know the request. It may still arrive, so it is voided next."""

    sent: Mapping[str, Any] = field(default_factory=dict)
    received: Mapping[str, Any] = field(default_factory=dict)


class OutcomeUnknownError(Exception):
    """The acquirer may have accepted the request and did not say so: the payment is in doubt, and is inquired about
    later.

    ``connector_tx_id``: the connector's id of the transaction, if it is known; ``received``: the answer, masked, where
    there was one that decides nothing.
    """

    def __init__(
        self,
        why: str,
        sent: Mapping[str, Any],
        *,
        connector_tx_id: str = "",
        received: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(why)
        self.sent = sent
        self.connector_tx_id = connector_tx_id
        self.received = received


class RequestTooLateError(OutcomeUnknownError):
    """The payment was not sent, because recovery may already have voided it: recovery decides about it."""


class ApprovalNotVoidedError(OutcomeUnknownError):
    """An approval that we refuse was to be voided, and the void is not confirmed. ``code``, ``details``: of the
    decline; ``connector_tx_id``, ``transaction_link``: of the approval, for the void's repeat."""

    def __init__(
        self, unknown: OutcomeUnknownError, code: str, details: Mapping[str, str], approval: AcquirerReply
    ) -> None:
        known = approval.connector_tx_id or unknown.connector_tx_id
        super().__init__(str(unknown), unknown.sent, connector_tx_id=known)
        self.code = code
        self.details = details
        self.transaction_link = approval.transaction_link


class VoidRefusedError(OutcomeUnknownError):
    """The acquirer answered a void, but keeps the transaction, now and if the void arrives again.

    The outcome is still to be inquired, and the answer to that is final. ``ask_again_after``: until then nobody can
    know more; None: as after any other inquiry.
    """

    def __init__(self, why: str, sent: Mapping[str, Any], *, ask_again_after: timedelta | None = None) -> None:
        super().__init__(why, sent)
        self.ask_again_after = ask_again_after


class NotFoundYetError(OutcomeUnknownError):
    """The acquirer does not know what was to be voided, which may still be under way: it is voided again later, by a
    message of its own, since a repeat of this one may have its answer repeated."""


class AccountProbe(Protocol):
    """Optional for connectors whose secrets identify the account."""

    def owns_transaction(self, account: ConnectorAccount, connector_tx_id: str) -> bool | None:
        """Whether the secrets of ``account`` belong to the processor account that made an earlier transaction. None:
        not known."""
        ...


class MessageNumbering(Protocol):
    """Optional for connectors whose messages carry a number that a terminal may use only once a day."""

    def take_trace_number(self, account: ConnectorAccount) -> int:
        """A number that no other message of the account's terminal has today, 1 or more; 0 where the account has no
        terminal. The connector may use the one after it for the reversal of the same payment."""
        ...


class RenewalHolds(Protocol):
    """Optional for connectors whose acquirers may hold an authorization and its renewal as two amounts."""

    def holds_renewals_apart(self, account: ConnectorAccount) -> bool:
        """Whether the account's acquirer does: then the renewed authorization is voided (docs/decisions/0093)."""
        ...


class ReversedCaptureHolds(Protocol):
    """Optional for connectors whose acquirers may go on holding what a reversed capture had taken."""

    def holds_reversed_captures(self, account: ConnectorAccount) -> bool:
        """Whether the account's acquirer does: then the authorization is reopened (docs/decisions/0096)."""
        ...


class CaptureBatching(Protocol):
    """Optional for connectors whose captures may wait for a batch of their acquirer."""

    def find_capture_arrival(self, account: ConnectorAccount, at: datetime) -> datetime:
        """When a capture that is made at ``at`` reaches the account's acquirer: with the next batch, or at once."""
        ...


class DayCounting(Protocol):
    """Optional for connectors whose acquirers may count an authorization's days by the calendar."""

    def find_day_zone(self, account: ConnectorAccount) -> str:
        """The time zone with whose days the account's acquirer ends an authorization; '' for days of 24 hours."""
        ...


class ExemptionClaims(Protocol):
    """Optional for connectors that cannot tell their acquirer each exemption of a payment without an authentication."""

    def claims_exemption(self, exemption: str, brand: str) -> bool:
        """Whether an authorization without a proof can claim ``exemption`` (PointOfService.exemption). ``brand``: of
        the network."""
        ...


class Connector(Protocol):
    """The interface of a connector.

    ``operations``: payment types it can do; ``takes``: kinds of means it accepts (gateway.connectors.means, '' for
    none); ``required``: parameters it needs; ``sends``: which of the parameters that mean something to banks it sends,
    and where; ``redirects``: it can redirect the shopper, so it accepts brands whose first answer is pending;
    ``settings``: what it needs to know about an account; ``asks_with_means``: its inquiries and voids need the means
    again.
    """

    name: str
    operations: frozenset[str]
    takes: frozenset[str]
    required: frozenset[str]
    sends: tuple[SentParameter, ...]
    redirects: bool
    settings: tuple[ConnectorSetting, ...]
    asks_with_means: bool

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Send a payment. Raises OutcomeUnknownError if the acquirer may have accepted it."""
        ...

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Ask for the outcome of an earlier request, by payment id. Never moves money.

        Raises OutcomeUnknownError if the outcome is still unknown. A connector whose acquirer has no inquiry returns
        NotFoundAtAcquirer, and the request is voided.
        """
        ...

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Void an earlier request, by payment id: reversed if it was accepted, refused if it arrives later. Repeatable.

        Raises OutcomeUnknownError if the void is not confirmed, VoidRefusedError if the acquirer keeps the transaction.
        """
        ...
