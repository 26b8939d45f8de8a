"""The demo shop's products. Prices are in cents, so that a cart adds up exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MAX_QUANTITY: Final = 9
DEMO_CURRENCY: Final = "EUR"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoProduct:
    """One product and its price in cents."""

    sku: str
    name: str
    about: str
    cents: int

    @property
    def price(self) -> str:
        return format_cents(self.cents)


DEMO_PRODUCTS: Final = (
    DemoProduct(sku="mug", name="Harbour mug", about="Stoneware, glazed by hand. Holds a long morning.", cents=1_800),
    DemoProduct(sku="notebook", name="Field notebook", about="96 pages, stitched to lie flat.", cents=1_200),
    DemoProduct(sku="tote", name="Canvas tote", about="Heavy cotton with room for the market.", cents=2_400),
)
PRODUCT_BY_SKU: Final = {product.sku: product for product in DEMO_PRODUCTS}


def format_cents(cents: int) -> str:
    """Cents as an amount with two decimals."""
    return f"{cents // 100}.{cents % 100:02d}"


def parse_cart(wanted: Mapping[str, str]) -> list[tuple[DemoProduct, int]]:
    """Products and quantities of a cart. Unknown names and invalid numbers are ignored; an empty cart gets one of the
    first product."""
    found = []
    for product in DEMO_PRODUCTS:
        text = wanted.get(product.sku, "")
        number = min(int(text), MAX_QUANTITY) if text.isascii() and text.isdigit() and len(text) < 4 else 0
        if number:
            found.append((product, number))
    return found or [(DEMO_PRODUCTS[0], 1)]


def build_checkout_fields(cart: list[tuple[DemoProduct, int]]) -> dict[str, str]:
    """The cart as parameters of a checkout."""
    fields = {
        "amount": format_cents(sum(product.cents * number for product, number in cart)),
        "currency": DEMO_CURRENCY,
    }
    for at, (product, number) in enumerate(cart):
        fields |= {
            f"cart.items[{at}].name": product.name,
            f"cart.items[{at}].merchantItemId": product.sku,
            f"cart.items[{at}].quantity": str(number),
            f"cart.items[{at}].price": product.price,
            f"cart.items[{at}].currency": DEMO_CURRENCY,
        }
    return fields
