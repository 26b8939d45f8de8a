"""Orders at the simulated bank, wallet, shop wallet and invoice provider: opened, decided once, read, voided.

An order is decided by compare-and-set on its state, so two tabs, a double click, the back button and the deadline make
one decision. The kinds are data, read by the pages, the test-data page and the tests. Source: Part A, What the service
does, 6; Part B, Asynchronous payment parameters, Payment response (merchant.bankAccount.*); docs/decisions/0014.
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

from gateway.connectors.port import AcquirerRequest, Redirect
from gateway.connectors.simulator.accounts import build_iban
from gateway.connectors.simulator.cards import SIMULATED_SUCCESS
from gateway.core import clock, languages
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.result_codes import AWAITING_SHOPPER_CODE, SHOPPER_CANCELLED_CODE, SHOPPER_TIMEOUT_CODE
from gateway.models import OpenPayment, SimulatedOrder, Suspension
from gateway.timers.registry import MAX_SWEPT_ROWS, Timer

SIMULATED_ORDER_RETENTION: Final = timedelta(days=90)
"""How long a decided order is kept, real time."""
SimulatedOrderState = SimulatedOrder.State

PREPAYMENT_OUTSTANDING: Final = "800.400.500"
DEBIT_OUTSTANDING: Final = "800.400.501"

ORDER_OUTCOMES: Final[Mapping[str, SimulatedOrderState]] = MappingProxyType(
    {
        "approve": SimulatedOrderState.APPROVED,
        "decline": SimulatedOrderState.DECLINED,
        "cancel": SimulatedOrderState.CANCELLED,
    }
)
"""Decision of the shopper (or, for a transfer, of a test) → the order's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOrderKind:
    """One kind of order. ``party``: who decides, as its page says; ``pending``: the code while it is open;
    ``declined``: the code of a decline; ``has_page``: a shopper decides on a page, otherwise the money arrives or does
    not."""

    name: str
    party: str
    pending: str
    declined: str
    has_page: bool = True

    def code(self, state: str) -> str:
        """The result code of an order in ``state``."""
        return {
            SimulatedOrderState.OPEN: self.pending,
            SimulatedOrderState.APPROVED: SIMULATED_SUCCESS,
            SimulatedOrderState.DECLINED: self.declined,
            SimulatedOrderState.CANCELLED: SHOPPER_CANCELLED_CODE,
            SimulatedOrderState.EXPIRED: SHOPPER_TIMEOUT_CODE,
        }[SimulatedOrderState(state)]


BANK_ORDER: Final = SimulatedOrderKind(
    name="bank", party="Arch Bank", pending=AWAITING_SHOPPER_CODE, declined="100.395.102"
)
WALLET_ORDER: Final = SimulatedOrderKind(
    name="wallet", party="Purse", pending=AWAITING_SHOPPER_CODE, declined="800.100.203"
)
SHOP_WALLET_ORDER: Final = SimulatedOrderKind(
    name="shopwallet", party="Market Pay", pending=AWAITING_SHOPPER_CODE, declined="800.100.172"
)
INVOICE_ORDER: Final = SimulatedOrderKind(
    name="invoice", party="Later Invoices", pending=AWAITING_SHOPPER_CODE, declined="100.396.106"
)
TRANSFER_ORDER: Final = SimulatedOrderKind(
    name="transfer", party="Arch Bank", pending=PREPAYMENT_OUTSTANDING, declined="100.397.102", has_page=False
)
DEBIT_ORDER: Final = SimulatedOrderKind(
    name="debit", party="Arch Bank", pending=DEBIT_OUTSTANDING, declined="100.397.102", has_page=False
)

SIMULATED_ORDER_KINDS: Final[Mapping[str, SimulatedOrderKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (BANK_ORDER, WALLET_ORDER, SHOP_WALLET_ORDER, INVOICE_ORDER, TRANSFER_ORDER, DEBIT_ORDER)
    }
)
ORDER_KIND_BY_BRAND: Final[Mapping[str, SimulatedOrderKind]] = MappingProxyType(
    {
        "ONLINETRANSFER": BANK_ORDER,
        "WEBWALLET": WALLET_ORDER,
        "SHOPWALLET": SHOP_WALLET_ORDER,
        "INVOICE": INVOICE_ORDER,
        "PREPAYMENT": TRANSFER_ORDER,
    }
)
"""Brands whose first answer is always pending. A bank account of the table of accounts may make a DEBIT_ORDER, too."""

PREPAYMENT_ACCOUNT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "holder": "Tollhouse Test Merchant", "number": build_iban("DE", "100000000000471100"), "bic": "MARKDEF1100",
        "country": "DE",
    }
)  # fmt: skip
"""The bank account for prepayments. Source: Part B, Payment response (merchant.bankAccount)."""


def open_simulated_order(request: AcquirerRequest, kind: SimulatedOrderKind) -> SimulatedOrder:
    """Open the order of a request. Idempotent: a repeated request returns the same order in its present state."""
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
            "language": resolve_order_language(sent.get("locale", "")),
            "return_url": request.return_url,
        },
    )
    return order


def find_simulated_order(payment: UUID) -> SimulatedOrder | None:
    """The order of a payment; None if there is none."""
    return SimulatedOrder.objects.filter(pk=payment).first()


def decide_simulated_order(order: SimulatedOrder, state: SimulatedOrderState) -> bool:
    """Decide an open order. False if it was decided before; ``order`` then has that decision."""
    moved = SimulatedOrder.objects.filter(pk=order.pk, state=SimulatedOrderState.OPEN).update(
        state=state, decided_at=clock.real_now()
    )
    order.refresh_from_db()
    return bool(moved)


def void_simulated_order(request: AcquirerRequest) -> SimulatedOrder:
    """End an open or unknown order: it can no longer be approved. Returns the order as it then is."""
    order, created = SimulatedOrder.objects.get_or_create(
        payment=request.payment,
        defaults={
            "kind": resolve_order_kind(request).name,
            "state": SimulatedOrderState.EXPIRED,
            "amount": request.money.amount,
            "currency": request.money.currency,
            "brand": request.brand,
            "decided_at": clock.real_now(),
        },
    )
    if not created:
        decide_simulated_order(order, SimulatedOrderState.EXPIRED)
    return order


def delete_old_simulated_orders(*, limit: int) -> int:
    """Delete at most ``limit`` orders that were decided SIMULATED_ORDER_RETENTION ago."""
    old = SimulatedOrder.objects.exclude(state=SimulatedOrderState.OPEN).filter(
        decided_at__lt=clock.real_now() - SIMULATED_ORDER_RETENTION
    )
    open_ones = (OpenPayment.objects.filter(pk=OuterRef("pk")), Suspension.objects.filter(pk=OuterRef("pk")))
    for rows in open_ones:
        old = old.exclude(Exists(rows))
    ids = list(old.order_by("decided_at").values_list("pk", flat=True)[:limit])
    return SimulatedOrder.objects.filter(pk__in=ids).delete()[0] if ids else 0


def resolve_order_kind(request: AcquirerRequest) -> SimulatedOrderKind:
    """The kind of order that a request opens."""
    return ORDER_KIND_BY_BRAND.get(request.brand, DEBIT_ORDER)


def may_have_order(request: AcquirerRequest) -> bool:
    """True if the request may have opened an order; saves the query for all others."""
    brand = PAYMENT_BRANDS.get(request.brand)
    return request.brand in ORDER_KIND_BY_BRAND or (brand is not None and brand.means == "bankAccount")


def build_order_redirect(order: SimulatedOrder) -> Redirect | None:
    """The redirect to the page where the shopper decides; None if no shopper does."""
    if not SIMULATED_ORDER_KINDS[order.kind].has_page:
        return None
    return Redirect(
        url=f"{settings.GATEWAY_BASE_URL}/simulator/{order.handle.hex}", parameters=(("locale", order.language),)
    )


def build_order_facts(order: SimulatedOrder) -> Mapping[str, Any]:
    """Parts of the answer besides the redirect: for a prepayment, the account to pay into."""
    if order.kind != TRANSFER_ORDER.name:
        return {}
    return {"merchant": {"bankAccount": dict(PREPAYMENT_ACCOUNT)}}


def describe_simulated_order(order: SimulatedOrder) -> dict[str, str]:
    """The order for the stored exchange."""
    facts = {"order": order.state.lower(), "party": SIMULATED_ORDER_KINDS[order.kind].party}
    return facts | ({"decidedAt": clock.format_timestamp(order.decided_at)} if order.decided_at is not None else {})


def resolve_order_language(locale: str) -> str:
    """The page's language for a ``locale`` such as de, de_DE or de-DE: English if there is no other."""
    return languages.resolve_language(locale) or languages.DEFAULT_LANGUAGE


TIMER: Final = Timer(
    name="simulated orders",
    run=lambda: delete_old_simulated_orders(limit=MAX_SWEPT_ROWS),
    every_s=3600.0,
    about="Forget orders at the simulator 90 days after they were decided.",
)
