"""A payment's request sorted for a reader: people, addresses, cart, sellers, references.

Read-only. Sums that disagree are shown as warnings, never errors (Part B, Cart items). Source: Part A, Customer …
Shipping address; Part B, Cart items, Marketplace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_money
from gateway.core.compact_json import get_json_object
from gateway.core.masking import mask_text
from gateway.models import Payment

ONE_CENT: Final = Decimal("0.01")
MAX_SHOWN_CART_ITEMS: Final = 200
"""Cart items that a page shows; the others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailCard:
    """A titled list of (name, value) in display order."""

    title: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CartLine:
    """One cart item. ``warnings``: sums that disagree."""

    name: str
    reference: str
    quantity: str
    price: str
    total: str
    seller: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SellerSplit:
    """A seller's part of a marketplace payment. ``items``: sum of the seller's items, None if there are none."""

    seller: str
    amount: str
    items: Decimal | None
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDetails:
    """A payment's request, sorted for a reader."""

    cards: Sequence[DetailCard]
    lines: Sequence[CartLine]
    more_lines: int
    splits: Sequence[SellerSplit]
    warnings: Sequence[str]


_NAMES: Final = ("salutation", "givenName", "middleName", "surname")
_PERSON: Final = (
    ("companyName", "Company"), ("email", "E-mail"), ("phone", "Phone"), ("mobile", "Mobile"), ("workPhone", "Work"),
    ("merchantCustomerId", "Customer id"), ("birthDate", "Born"), ("sex", "Sex"), ("language", "Language"),
    ("category", "Category"), ("status", "Status"), ("ip", "IP address"), ("identificationDocType", "Document"),
    ("identificationDocId", "Document id"), ("merchantReference", "Reference"),
)  # fmt: skip
_ADDRESS: Final = ("houseNumber1", "houseNumber2", "street2", "postcode", "city", "state", "country")
_SHIPPING: Final = (
    ("method", "Method"), ("cost", "Cost"), ("expectedDate", "Expected"), ("logisticsProvider", "Carrier"),
    ("trackingNumber", "Tracking"), ("returnTrackingNumber", "Return tracking"), ("comment", "Comment"),
    ("warehouse", "Warehouse"), ("type", "Type"), ("companyName", "Company"), ("phone", "Phone"), ("email", "E-mail"),
)  # fmt: skip


def build_request_details(payment: Payment) -> RequestDetails:
    """The details of ``payment``, which is loaded with its ``request``."""
    sent: Mapping[str, Any] = payment.request
    lines, more = _build_cart_lines(sent)
    splits = _build_splits(sent)
    cards = [_mask_card(card) for card in _build_cards(payment, sent) if card.facts]
    return RequestDetails(
        cards=cards, lines=lines, more_lines=more, splits=splits, warnings=list(_list_warnings(payment, sent, splits))
    )


def _mask_card(card: DetailCard) -> DetailCard:
    """Free text with card numbers masked (decision 0052)."""
    return replace(card, facts=[(mask_text(name), mask_text(value)) for name, value in card.facts])


def _build_cards(payment: Payment, sent: Mapping[str, Any]) -> Iterator[DetailCard]:
    yield DetailCard(title="Customer", facts=list(_list_person_facts(get_json_object(sent, "customer"))))
    yield DetailCard(title="Billing address", facts=list(_list_address_facts(get_json_object(sent, "billing"))))
    shipping = get_json_object(sent, "shipping")
    facts = list(_list_address_facts(shipping)) + [
        (_(name), str(shipping[key])) for key, name in _SHIPPING if shipping.get(key)
    ]
    yield DetailCard(title="Shipping address", facts=facts)
    # The recipient may be another person than the payer (Part A, Shipping customer).
    yield DetailCard(
        title="Shipped to another person", facts=list(_list_person_facts(get_json_object(shipping, "customer")))
    )
    references = (
        ("Order number", payment.merchant_transaction_id),
        ("Invoice number", payment.merchant_invoice_id),
        ("Memo (yours alone)", payment.merchant_memo),
        ("Statement text", str(sent.get("descriptor", ""))),
        ("Category", str(sent.get("transactionCategory", ""))),
    )
    yield DetailCard(title="References", facts=[(_(name), value) for name, value in references if value])
    custom = get_json_object(sent, "customParameters")
    yield DetailCard(title="Your own parameters", facts=[(name, str(value)) for name, value in custom.items()])


def _list_person_facts(person: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if name := " ".join(str(person[key]) for key in _NAMES if person.get(key)):
        yield _("Name"), name
    for key, title in _PERSON:
        if value := person.get(key):
            yield _(title), str(value)


def _list_address_facts(address: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    street = " ".join(str(address[key]) for key in ("street1", *_ADDRESS[:2]) if address.get(key))
    place = " ".join(str(address[key]) for key in _ADDRESS[3:] if address.get(key))
    for name, value in ((_("Street"), street), ("", str(address.get("street2", ""))), (_("Place"), place)):
        if value:
            yield name, value


# --- cart and sellers ---------------------------------------------------------------------------------------------


def _read_items(sent: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = get_json_object(sent, "cart").get("items")
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _parse_number(value: Any) -> Decimal | None:
    try:
        return Decimal(str(value)) if value not in (None, "") else None
    except InvalidOperation:
        return None


def _build_cart_lines(sent: Mapping[str, Any]) -> tuple[list[CartLine], int]:
    items = _read_items(sent)
    found = [
        CartLine(
            name=mask_text(str(item.get("name", ""))),
            reference=mask_text(str(item.get("merchantItemId") or item.get("sku") or "")),
            quantity=str(item.get("quantity", "")),
            price=str(item.get("price", "")),
            total=str(item.get("totalAmount") or _multiply_price(item)),
            seller=mask_text(str(item.get("sellerId", ""))),
            warnings=tuple(_check_item(item)),
        )
        for item in items[:MAX_SHOWN_CART_ITEMS]
    ]
    return found, max(0, len(items) - MAX_SHOWN_CART_ITEMS)


def _multiply_price(item: Mapping[str, Any]) -> str:
    """The total of a line that came without one."""
    price, quantity = _parse_number(item.get("price")), _parse_number(item.get("quantity"))
    return f"{price * quantity:.2f}" if price is not None and quantity is not None else ""


def _check_item(item: Mapping[str, Any]) -> Iterator[str]:
    """A cart line. totalAmount must be price times quantity: price includes tax and discount, per unit. Half a cent of
    rounding is allowed."""
    price, quantity, total = (_parse_number(item.get(name)) for name in ("price", "quantity", "totalAmount"))
    if price is not None and quantity is not None and total is not None:
        product = (price * quantity).quantize(ONE_CENT)
        if abs(product - total) > ONE_CENT:
            values = {"quantity": quantity, "price": price, "product": product, "total": total}
            yield _("%(quantity)s × %(price)s is %(product)s, but totalAmount says %(total)s") % values
    tax, total_tax = _parse_number(item.get("taxAmount")), _parse_number(item.get("totalTaxAmount"))
    if tax is not None and quantity is not None and total_tax is not None:
        product = (tax * quantity).quantize(ONE_CENT)
        if abs(product - total_tax) > ONE_CENT * max(1, int(quantity)):
            values = {"quantity": quantity, "tax": tax, "product": product, "total": total_tax}
            yield _("%(quantity)s × tax %(tax)s is %(product)s, but totalTaxAmount says %(total)s") % values


def _list_warnings(payment: Payment, sent: Mapping[str, Any], splits: Sequence[SellerSplit]) -> Iterator[str]:
    totals = [total for item in _read_items(sent) if (total := _parse_number(item.get("totalAmount"))) is not None]
    if totals and len(totals) == len(_read_items(sent)):
        shipping = _parse_number(get_json_object(sent, "shipping").get("cost")) or Decimal(0)
        discount = _parse_number(sent.get("discountAmount")) or Decimal(0)
        total = sum(totals, Decimal(0))
        possible = {total, total + shipping, total - discount, total + shipping - discount}
        if payment.amount not in possible:
            values = {
                name: format_money(each, payment.currency)
                for name, each in (("total", total), ("amount", payment.amount))
            }
            yield _("The items come to %(total)s, but the payment is of %(amount)s.") % values
    for split in splits:
        if split.warning:
            yield split.warning


def _build_splits(sent: Mapping[str, Any]) -> list[SellerSplit]:
    sellers = get_json_object(sent, "marketPlace").get("sellers")
    found = []
    for seller in sellers if isinstance(sellers, list) else []:
        if not isinstance(seller, Mapping):
            continue
        name, amount = str(seller.get("id", "")), str(seller.get("amount", ""))
        own = [
            total
            for item in _read_items(sent)
            if str(item.get("sellerId", "")) == name and (total := _parse_number(item.get("totalAmount"))) is not None
        ]
        items = sum(own, Decimal(0)) if own else None
        warning = ""
        if items is not None and (said := _parse_number(amount)) is not None and said != items:
            values = {"name": name, "amount": amount, "items": items}
            warning = _("Seller %(name)s gets %(amount)s, but the seller's items come to %(items)s.") % values
        found.append(SellerSplit(seller=mask_text(name), amount=amount, items=items, warning=mask_text(warning)))
    return found
