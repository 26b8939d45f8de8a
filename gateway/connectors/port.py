"""The port between payments and processors: what is asked, what is answered, and silence.

A connector maps messages in pure functions and does its I/O in ``submit``, ``inquire`` and ``void`` only. It never
sees a model and never touches the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

from gateway.connectors.means import Card, Means
from gateway.core.money import Money
from gateway.core.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSetting:
    """What a connector wants to know about a merchant's account at its processor, beyond the merchant's id there.

    ``pattern``: what a value matches as a whole; ``allowed``: the same in words, for the error; ``default`` '' means
    none. A ``secret`` is sealed in the vault and never shown again. ``place``: it says who is asked, and so where the
    account's payments are; it stays as it is while one has no answer: another host knows nothing of it. A secret that
    does is compared by whom the processor takes it for (:class:`AccountProbe`)."""

    name: str
    about: str
    pattern: str
    allowed: str
    default: str = ""
    required: bool = False
    secret: bool = False
    place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorAccount:
    """A merchant's account at a processor, as its connector needs it: ``merchant`` is the id there, ``settings`` and
    ``secrets`` what the connector's settings name. Empty where a connector has none. ``channel``: whose it is, so that
    accounts of the same name are told apart."""

    merchant: str = ""
    channel: UUID | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquirerRequest:
    """One question. ``operation`` is the payment type; ``reference`` the connector's id of the payment a follow-up
    speaks of; ``parameters`` what may go onwards, by full name: what the merchant sent, and the proof of an
    authentication whoever made it; ``at`` when it was begun, the merchant's clock; ``account`` the merchant's account
    at the acquirer; ``return_url`` where a shopper comes back to who has to be sent elsewhere; ``learnt`` the
    connector's own id of this very payment, where an earlier silence told one; ``reversed_besides`` of a reversal: what
    others took back, or may have, of the payment it speaks of, where the connector's messages are made anew
    (``asks_with_means``); ``cryptogram`` the value that proves an authentication (CAVV, AAV), which is no parameter."""

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
    cryptogram: Secret | None = None

    @property
    def card(self) -> Card | None:
        """The means, where it is a card."""
        return self.means if isinstance(self.means, Card) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """Something the shopper's browser loads, unseen, before it goes on (e.g. a 3DS method). ``origin``: who asks."""

    origin: str
    url: str
    method: str = "GET"
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Where the shopper is sent to. ``parameters``: (name, value) pairs, values up to 255 characters.
    Source: Part B, Asynchronous payment parameters."""

    url: str
    method: str = "GET"
    parameters: tuple[tuple[str, str], ...] = ()
    preconditions: tuple[Precondition, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As answers carry it (decisions, section 5)."""
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
    """One answer. ``code`` is a result code of ours; ``approved`` is None unless money was granted. ``details`` go
    into resultDetails (``ExtendedDescription``: the processor's own words; without it the code's text stands there),
    ``facts`` into the answer itself (nested, e.g. merchant.bankAccount). ``redirect``: where the shopper is sent to
    while the answer is pending. ``sent`` and ``received`` are the messages themselves,
    masked, as the exchange keeps them. ``network_reference``: the card scheme's own id of the transaction, by which
    a payment at any processor names the first one of an agreement
    (gateway.connectors.acquirer_message.parse_scheme_reference). ``elsewhere``: nobody judged the question and nobody
    can have accepted it (no link, no room, a processor that says it is out of order), so another acquirer may be asked;
    never after silence. ``unsent``: with that, that nothing was sent for a reason of the question or the account, which
    says nothing about the acquirer. ``until``: the merchant's clock; a pending answer is waited for at least as long (a
    bank that collects weeks from now)."""

    code: str
    approved: Money | None = None
    connector_tx_id: str = ""
    network_reference: str = ""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFoundAtAcquirer:
    """The answer to an inquiry about a question that the acquirer never got. It may still arrive: see ``void``."""

    sent: Mapping[str, Any] = field(default_factory=dict)
    received: Mapping[str, Any] = field(default_factory=dict)


class OutcomeUnknownError(Exception):
    """The acquirer may have accepted and did not say so: the payment is in doubt, and must be asked about.
    ``connector_tx_id``: the connector's id of it, where one is known already."""

    def __init__(self, why: str, sent: Mapping[str, Any], *, connector_tx_id: str = "") -> None:
        super().__init__(why)
        self.sent = sent
        self.connector_tx_id = connector_tx_id


class VoidRefusedError(OutcomeUnknownError):
    """Of a void alone: whoever holds the question answered, and does not give it back, now or when a void that is still
    on its way arrives. What becomes of it is still to be asked, and the answer to that stands."""


class AccountProbe(Protocol):
    """What a connector can do beside, whose secrets say who is asked."""

    def sees(self, account: ConnectorAccount, connector_tx_id: str) -> bool | None:
        """Whether the processor, asked with the secrets of ``account``, knows an object of an earlier payment: True for
        the account that made it, False for another one, None when it could not be told."""
        ...


class Connector(Protocol):
    """A way money moves. ``operations``: the payment types it can do; ``takes``: the kinds of means it can do them
    with (gateway.connectors.means, '' for none at all). ``required``: parameters it cannot do without. ``redirects``:
    it can send the shopper away to decide, so it takes brands whose first answer is pending. ``settings``: what it
    wants to know about an account. ``asks_with_means``: its inquiries and voids carry the means, opened once more."""

    name: str
    operations: frozenset[str]
    takes: frozenset[str]
    required: frozenset[str]
    redirects: bool
    settings: tuple[ConnectorSetting, ...]
    asks_with_means: bool

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Ask. Raises OutcomeUnknownError when it cannot be known whether the acquirer accepted."""
        ...

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Ask what became of an earlier question, by its payment's id. Raises OutcomeUnknownError when nobody could
        tell.

        A processor that cannot be asked answers NotFoundAtAcquirer, and its question is taken back."""
        ...

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Take an earlier question back, by its payment's id: reversed when it was accepted, refused when it arrives
        later. May be repeated. The reply is the acquirer's word for it; raises OutcomeUnknownError when it gave
        none."""
        ...
