"""Processing codes (DE3) of transfers by network: account funding (AFT) and push to card (OCT).

``checked``: whether the row was read in the network's manual; the others come from what acquirers publish of it, so ask
yours at the certification. Source: Part A, Basic payment (transactionProcessingCode); docs/decisions/0070.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gateway.connectors.capabilities import (
    FUNDING_TRANSFER,
    PAYOUT_TRANSFER,
    TRANSFER_PARAMETER,
    ConditionalNeed,
    SentParameter,
)
from gateway.connectors.iso8583.exemptions import NETWORK_BY_BRAND

PULLS: Final = frozenset({"PA", "DB"})
PUSHES: Final = frozenset({"CD"})
_PULLED: Final = PULLS | {"CP", "RB"}


_SENDER: Final = ("sender.givenName", "sender.surname")
_RECIPIENT: Final = ("recipient.givenName", "recipient.surname")
WHOLE_NAMES: Final = tuple(
    ConditionalNeed(names=(other,), when=name) for pair in (_SENDER, _RECIPIENT) for name, other in (pair, pair[::-1])
)
"""A name has both of its halves. Source: Visa Direct, quoted by https://developers.tabapay.com/docs/bulletins-20250616."""
SENDER_NAME: Final = ConditionalNeed(names=_SENDER, instead="sender.name")
"""Source, Visa's fundings: https://developer.cybersource.com/docs/cybs/en-us/api-fields/reference/all/so/api-fields/
sender-first-name.html; Mastercard's payouts: the same. A sender that is no person has a name alone."""
MONEY_TRANSFER_SENDER: Final = ConditionalNeed(
    names=_SENDER, when="transactionBai", values=frozenset({"AA", "PP", "FT"}), instead="sender.name"
)
"""Visa's payouts that are money transfers. Source: https://www.checkout.com/docs/card-payouts/
sender-data-for-card-payouts."""
RECIPIENT_NAME: Final = ConditionalNeed(names=_RECIPIENT)
"""All of Mastercard's fundings. Source: https://developers.tabapay.com/docs/recipient-data-requirements-1."""
CASH_RECIPIENT: Final = ConditionalNeed(names=_RECIPIENT, when="transactionTti", values=frozenset({"C53"}))
"""Mastercard's payouts that an agent pays in cash; of others only those to another country, which is not known here.
Source: as of RECIPIENT_NAME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingCode:
    """``code``: DE3 of a ``transfer`` in the ``network``; ``needs``: the parameter that says what kind of transfer it
    is, without which the network refuses it; ``names``: whose names it wants."""

    network: str
    transfer: str
    code: str
    needs: str
    source: str
    checked: bool = False
    names: tuple[ConditionalNeed, ...] = ()

    @property
    def brands(self) -> frozenset[str]:
        """The network's brands."""
        return frozenset(brand for brand, network in NETWORK_BY_BRAND.items() if network == self.network)


PROCESSING_CODES: Final = (
    ProcessingCode(
        network="Visa",
        transfer=FUNDING_TRANSFER,
        names=(SENDER_NAME, *WHOLE_NAMES),
        code="100000",
        needs="transactionBai",
        source="Visa, V.I.P. System BASE I Technical Specifications, field 3",
    ),
    ProcessingCode(
        network="Visa",
        transfer=PAYOUT_TRANSFER,
        names=(MONEY_TRANSFER_SENDER, *WHOLE_NAMES),
        code="260000",
        needs="transactionBai",
        source="Visa, V.I.P. System BASE I Technical Specifications, field 3",
    ),
    ProcessingCode(
        network="Mastercard",
        transfer=FUNDING_TRANSFER,
        names=(RECIPIENT_NAME, *WHOLE_NAMES),
        code="000000",
        needs="transactionTti",
        source="Mastercard, Customer Interface Specification, DE 3 and DE 48 subelement 77",
    ),
    ProcessingCode(
        network="Mastercard",
        transfer=PAYOUT_TRANSFER,
        names=(SENDER_NAME, CASH_RECIPIENT, *WHOLE_NAMES),
        code="280000",
        needs="transactionTti",
        source="Mastercard, Customer Interface Specification, DE 3 and DE 48 subelement 77",
    ),
)
"""Mastercard marks the funding side by the type identifier alone."""

TRANSFER_CAPABILITIES: Final = tuple(
    SentParameter(
        name=TRANSFER_PARAMETER,
        values=frozenset({row.transfer}),
        brands=row.brands,
        operations=PULLS if row.transfer == FUNDING_TRANSFER else PUSHES,
        place=f"DE3 {row.code}",
        needs=(row.needs,),
        conditional_needs=row.names,
    )
    for row in PROCESSING_CODES
)


def find_transfer_code(operation: str, transfer: str, brand: str) -> str:
    """DE3 of a payment type that moves a ``transfer``'s money; '' for one that does not, such as a refund. Raises
    ValueError for a transfer that the brand's network has no code for."""
    moves = _PULLED if transfer == FUNDING_TRANSFER else PUSHES
    if not transfer or operation not in moves:
        return ""
    network = NETWORK_BY_BRAND.get(brand, "")
    for row in PROCESSING_CODES:
        if (row.network, row.transfer) == (network, transfer):
            return row.code
    raise ValueError(f"{brand} has no processing code for {transfer}")
