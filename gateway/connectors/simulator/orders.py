"""Orders at the simulated bank, wallet, shop wallet and invoice house: opened, decided once, read, taken back.

An order is decided by compare-and-set on its state: two tabs, a double click, the back button and the deadline make
one decision. The kinds are data; the pages, the test-data page and the tests read the same table.
Source: Part A, What the service does, 6; Part B, Asynchronous payment parameters, Payment response
(merchant.bankAccount.*); decisions, section 5; docs/decisions/0014.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef

from gateway import clock, languages
from gateway.brands import BRANDS
from gateway.connectors.port import AcquirerRequest, Redirect
from gateway.connectors.simulator.accounts import iban_of
from gateway.connectors.simulator.cards import APPROVED
from gateway.models import OpenPayment, SimulatedOrder, Suspension

KEPT: Final = timedelta(days=90)
"""How long an order is kept after it was decided, real time."""
State = SimulatedOrder.State

WAITING: Final = "000.200.000"
CANCELLED: Final = "100.396.101"
RAN_OUT: Final = "100.396.103"
OUTSTANDING: Final = "800.400.500"
DEBIT_OUTSTANDING: Final = "800.400.501"

OUTCOMES: Final[Mapping[str, State]] = MappingProxyType(
    {"approve": State.APPROVED, "decline": State.DECLINED, "cancel": State.CANCELLED}
)
"""What a shopper (or, for a transfer, a test) may decide → the order's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of order. ``party``: who decides, as its page says. ``pending``: the code while it is open.
    ``declined``: the code of a decline. ``has_page``: a shopper decides on a page; else the money comes or does not.
    """

    name: str
    party: str
    pending: str
    declined: str
    has_page: bool = True

    def code(self, state: str) -> str:
        """The result code of an order in ``state``."""
        return {
            State.OPEN: self.pending, State.APPROVED: APPROVED, State.DECLINED: self.declined,
            State.CANCELLED: CANCELLED, State.EXPIRED: RAN_OUT,
        }[State(state)]  # fmt: skip


BANK: Final = Kind(name="bank", party="Arch Bank", pending=WAITING, declined="100.395.102")
WALLET: Final = Kind(name="wallet", party="Purse", pending=WAITING, declined="800.100.203")
SHOP_WALLET: Final = Kind(name="shopwallet", party="Market Pay", pending=WAITING, declined="800.100.172")
INVOICE: Final = Kind(name="invoice", party="Later Invoices", pending=WAITING, declined="100.396.106")
TRANSFER: Final = Kind(name="transfer", party="Arch Bank", pending=OUTSTANDING, declined="100.397.102", has_page=False)
DEBIT: Final = Kind(name="debit", party="Arch Bank", pending=DEBIT_OUTSTANDING, declined="100.397.102", has_page=False)

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {kind.name: kind for kind in (BANK, WALLET, SHOP_WALLET, INVOICE, TRANSFER, DEBIT)}
)
BY_BRAND: Final[Mapping[str, Kind]] = MappingProxyType(
    {"ONLINETRANSFER": BANK, "WEBWALLET": WALLET, "SHOPWALLET": SHOP_WALLET, "INVOICE": INVOICE, "PREPAYMENT": TRANSFER}
)
"""Brands whose first answer is always pending. A bank account of the table of accounts may make a DEBIT, too."""

OUR_ACCOUNT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "holder": "Tollhouse Test Merchant", "number": iban_of("DE", "100000000000471100"), "bic": "MARKDEF1100",
        "country": "DE",
    }
)  # fmt: skip
"""Where a shopper sends a prepayment to. Source: Part B, Payment response (merchant.bankAccount)."""


def open_order(request: AcquirerRequest, kind: Kind) -> SimulatedOrder:
    """The order of a question; asked again it is the same one, in whatever state it is by now."""
    sent = request.parameters
    order, _ = SimulatedOrder.objects.get_or_create(
        payment=request.payment,
        defaults={
            "kind": kind.name,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "brand": request.brand,
            "reference": sent.get("merchantTransactionId", ""),
            "descriptor": sent.get("descriptor", ""),
            "language": language_of(sent.get("locale", "")),
            "return_url": request.return_url,
        },
    )
    return order


def find(payment: UUID) -> SimulatedOrder | None:
    """The order of a payment; None when it never came."""
    return SimulatedOrder.objects.filter(pk=payment).first()


def decide(order: SimulatedOrder, state: State) -> bool:
    """Decide an open order. False when somebody else decided first; ``order`` is then as they left it."""
    moved = SimulatedOrder.objects.filter(pk=order.pk, state=State.OPEN).update(state=state, decided_at=clock.real())
    order.refresh_from_db()
    return bool(moved)


def take_back(request: AcquirerRequest) -> SimulatedOrder:
    """End an order that is open, or that never came: it can no longer be approved. The order as it then stands."""
    order, created = SimulatedOrder.objects.get_or_create(
        payment=request.payment,
        defaults={
            "kind": kind_of(request).name, "state": State.EXPIRED, "amount": request.money.amount,
            "currency": request.money.currency, "brand": request.brand, "decided_at": clock.real(),
        },
    )  # fmt: skip
    if not created:
        decide(order, State.EXPIRED)
    return order


def forget(*, limit: int) -> int:
    """Throw away at most ``limit`` orders that were decided KEPT ago, whose payments have long had that answer."""
    old = SimulatedOrder.objects.exclude(state=State.OPEN).filter(decided_at__lt=clock.real() - KEPT)
    open_ones = (OpenPayment.objects.filter(pk=OuterRef("pk")), Suspension.objects.filter(pk=OuterRef("pk")))
    for rows in open_ones:
        old = old.exclude(Exists(rows))
    ids = list(old.order_by("decided_at").values_list("pk", flat=True)[:limit])
    return SimulatedOrder.objects.filter(pk__in=ids).delete()[0] if ids else 0


def kind_of(request: AcquirerRequest) -> Kind:
    return BY_BRAND.get(request.brand, DEBIT)


def may_have_order(request: AcquirerRequest) -> bool:
    """Whether the question may have made an order: without one, nobody looks into the books."""
    brand = BRANDS.get(request.brand)
    return request.brand in BY_BRAND or (brand is not None and brand.means == "bankAccount")


def redirect_of(order: SimulatedOrder) -> Redirect | None:
    """Where the shopper decides; None for an order that no shopper decides about."""
    if not KINDS[order.kind].has_page:
        return None
    return Redirect(
        url=f"{settings.GATEWAY_BASE_URL}/simulator/{order.handle.hex}", parameters=(("locale", order.language),)
    )


def facts_of(order: SimulatedOrder) -> Mapping[str, Any]:
    """What the answer tells beside the redirect: for a prepayment, the account to pay into."""
    if order.kind != TRANSFER.name:
        return {}
    return {"merchant": {"bankAccount": dict(OUR_ACCOUNT)}}


def evidence(order: SimulatedOrder) -> dict[str, str]:
    """The order as the exchange keeps it."""
    told = {"order": order.state.lower(), "party": KINDS[order.kind].party}
    return told | ({"decidedAt": clock.wire(order.decided_at)} if order.decided_at is not None else {})


def language_of(locale: str) -> str:
    """The page's language for a ``locale`` such as de, de_DE or de-DE: English where there is no other."""
    return languages.known(locale) or languages.DEFAULT
