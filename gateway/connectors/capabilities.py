"""What a connector can tell its acquirer: a table per connector, of the parameters that mean something to banks.

SPECIAL_PARAMETERS says which parameters these are and what becomes of one that a connector cannot send. One that
changes what the payment is (account funding, payout, payment facilitator) is binding: an account that cannot send it
is not chosen, and without any other the payment is refused before an acquirer is asked. One that only describes the
payment (cart, flight) is not sent, and the answer names it in ignoredParameters. All other parameters are either for
the gateway (risk, 3-D Secure, reports) or sent by every connector (amount, means, address).
Source: Part A, Basic payment; Part B, Sender, Recipient, Merchant, Cart items, Airline; docs/decisions/0070.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.core.secret import Secret, reveal_text

TRANSFER_PARAMETER: Final = "transactionProcessingCode"
FUNDING_TRANSFER: Final = "FUNDING"
PAYOUT_TRANSFER: Final = "PAYMENT"
TRANSFERS: Final = frozenset({FUNDING_TRANSFER, PAYOUT_TRANSFER})
"""Values of TRANSFER_PARAMETER that are no purchase: account funding (AFT) and push to card (OCT)."""
PARTY_ACCOUNTS: Final = ("sender.accountNumber", "recipient.accountNumber", "recipient.identificationValue")
"""Account and document numbers of a transfer's parties. Stored masked; acquirers are sent them in clear."""
_INDEX: Final = re.compile(r"\[([0-9]+)\]")
_NO_MONEY: Final = frozenset({"RG"})

SentParameters = Mapping[str, str | Secret]
"""Parameters by full name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialParameter:
    """A parameter that means something to banks. ``name``: ending with a dot or bracket, all that begin so; ``values``:
    only these mean something, any by default; ``binding``: a payment without it would be another payment."""

    name: str
    group: str
    values: frozenset[str] = frozenset()
    binding: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalNeed:
    """Parameters (``names``) without which another one cannot be sent: where ``when`` is sent, with one of ``values``
    if there are any, and ``instead`` is not."""

    names: tuple[str, ...]
    when: str = ""
    values: frozenset[str] = frozenset()
    instead: str = ""

    def applies(self, sent: SentParameters) -> bool:
        """Whether a payment with these parameters needs the names."""
        if self.instead in sent:
            return False
        return not self.when or (self.when in sent and (not self.values or sent[self.when] in self.values))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentParameter:
    """A parameter that a connector sends. ``name``: as in SpecialParameter, '' for all; list items as ``[n]``.
    ``place``: where in its message. What limits it: ``values``, ``brands`` (of the card) and ``operations`` (payment
    types), empty for all; ``max_chars``; ``max_items``, of each list in the name. ``needs``: parameters without which
    it cannot be sent; ``conditional_needs``: those that depend on what else is sent."""

    name: str
    place: str
    values: frozenset[str] = frozenset()
    brands: frozenset[str] = frozenset()
    operations: frozenset[str] = frozenset()
    max_chars: int = 0
    max_items: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()
    conditional_needs: tuple[ConditionalNeed, ...] = ()

    def list_needs(self, sent: SentParameters) -> Iterator[str]:
        """The parameters without which it cannot be sent beside ``sent``."""
        yield from self.needs
        for need in self.conditional_needs:
            if need.applies(sent):
                yield from need.names

    def is_about(self, name: str) -> bool:
        """Whether this row is about the parameter ``name``."""
        pattern = _INDEX.sub("[n]", name) if "[" in name else name
        return _is_named(self.name, pattern)

    def can_send(self, name: str, value: str | Secret, brand: str, operation: str) -> bool:
        """Whether the parameter is sent in such a payment. ``brand``: of the card, '' if it is not known."""
        text = reveal_text(value)
        return (
            self.is_about(name)
            and (not self.values or text in self.values)
            and (not self.brands or not brand or brand in self.brands)
            and (not self.operations or operation in self.operations)
            and (not self.max_chars or len(text) <= self.max_chars)
            and all(int(index) < most for index, most in zip(_INDEX.findall(name), self.max_items, strict=False))
        )


SENDS_EVERYTHING: Final[tuple[SentParameter, ...]] = (SentParameter(name="", place="all parameters"),)
"""The capabilities of a connector whose other side is ours."""

SPECIAL_PARAMETERS: Final = (
    SpecialParameter(name=TRANSFER_PARAMETER, group="transfers", values=TRANSFERS, binding=True),
    SpecialParameter(name="transactionBai", group="transfers"),
    SpecialParameter(name="transactionTti", group="transfers"),
    SpecialParameter(name="transactionPurposeCode", group="transfers"),
    SpecialParameter(name="sender.", group="transfers"),
    SpecialParameter(name="recipient.", group="transfers"),
    SpecialParameter(name="merchant.payFacId", group="payment facilitators", binding=True),
    SpecialParameter(name="merchant.payFacName", group="payment facilitators"),
    SpecialParameter(name="merchant.submerchantId", group="payment facilitators"),
    SpecialParameter(name="merchant.isoId", group="payment facilitators"),
    SpecialParameter(name="merchant.marketplaceId", group="payment facilitators"),
    SpecialParameter(name="marketPlace.", group="payment facilitators"),
    SpecialParameter(name="taxAmount", group="level 3"),
    SpecialParameter(name="discountAmount", group="level 3"),
    SpecialParameter(name="cart.", group="level 3"),
    SpecialParameter(name="airline.", group="airline"),
    SpecialParameter(name="lifecycleId", group="links"),
    SpecialParameter(name="threeDSecure.acsTransactionId", group="links"),
    SpecialParameter(name="transactionCategory", group="mail and telephone orders", values=frozenset({"MO", "TO"})),
)
"""``merchant.submerchantId`` is for one network's facilitators only (Part B, Merchant), so elsewhere it is ignored."""
_BINDING: Final = tuple(one for one in SPECIAL_PARAMETERS if one.binding)
_ROOTS: Final = frozenset(re.split(r"[.\[]", one.name)[0] for one in SPECIAL_PARAMETERS)


def find_unsendable(
    sends: tuple[SentParameter, ...], brand: str, operation: str, sent: SentParameters
) -> tuple[str, ...]:
    """The binding parameters among ``sent`` that a connector with the table ``sends`` cannot send."""
    if sends is SENDS_EVERYTHING or operation in _NO_MONEY:
        return ()
    return tuple(
        name
        for name, value in _list_binding(sent)
        if not any(row.can_send(name, value, brand, operation) for row in sends)
    )


def find_needed(sends: tuple[SentParameter, ...], brand: str, operation: str, sent: SentParameters) -> frozenset[str]:
    """The parameters that a connector needs to send the binding ones among ``sent``."""
    if sends is SENDS_EVERYTHING or operation in _NO_MONEY:
        return frozenset()
    return frozenset(
        needed
        for name, value in _list_binding(sent)
        for row in sends
        if row.can_send(name, value, brand, operation)
        for needed in row.list_needs(sent)
    )


def list_unsent(sends: tuple[SentParameter, ...], brand: str, operation: str, sent: SentParameters) -> tuple[str, ...]:
    """The descriptive parameters among ``sent`` that a connector does not send, in order; those of list items once, as
    ``cart.items[n].name``. A value that is the parameter's default is not reported."""
    if sends is SENDS_EVERYTHING:
        return ()
    found: dict[str, None] = {}
    for name, value in sent.items():
        if name.partition(".")[0].partition("[")[0] not in _ROOTS:
            continue
        special = _find_special(name, value)
        if special is None or special.binding or _is_default(name, value):
            continue
        if not any(row.can_send(name, value, brand, operation) for row in sends):
            found[_INDEX.sub("[n]", name)] = None
    return tuple(found)


def _list_binding(sent: SentParameters) -> Iterator[tuple[str, str | Secret]]:
    for one in _BINDING:
        value = sent.get(one.name)
        if value is not None and (not one.values or value in one.values):
            yield one.name, value


def _find_special(name: str, value: str | Secret) -> SpecialParameter | None:
    for one in SPECIAL_PARAMETERS:
        if _is_named(one.name, name):
            return one if not one.values or value in one.values else None
    return None


def _is_named(known: str, name: str) -> bool:
    return name.startswith(known) if not known or known.endswith(".") else name == known


def _is_default(name: str, value: str | Secret) -> bool:
    row = PAYMENT_ENDPOINT.catalogue.find(name)
    return row is not None and row[0].param.default == value
