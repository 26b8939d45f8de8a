"""What the demo shop sells. Prices are in cents, so that a cart adds up exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOST_OF_ONE: Final = 9
CURRENCY: Final = "EUR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    sku: str
    name: str
    about: str
    cents: int

    @property
    def price(self) -> str:
        return amount(self.cents)


PRODUCTS: Final = (
    Product(sku="mug", name="Harbour mug", about="Stoneware, glazed by hand. Holds a long morning.", cents=1_800),
    Product(sku="notebook", name="Field notebook", about="96 pages, stitched to lie flat.", cents=1_200),
    Product(sku="tote", name="Canvas tote", about="Heavy cotton with room for the market.", cents=2_400),
)
BY_SKU: Final = {product.sku: product for product in PRODUCTS}


def amount(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def cart_of(wanted: Mapping[str, str]) -> list[tuple[Product, int]]:
    """What is in the cart: product and number. Unknown names and numbers that are none are left out; nothing at all
    is one of the first."""
    found = []
    for product in PRODUCTS:
        text = wanted.get(product.sku, "")
        number = min(int(text), MOST_OF_ONE) if text.isascii() and text.isdigit() and len(text) < 4 else 0
        if number:
            found.append((product, number))
    return found or [(PRODUCTS[0], 1)]


def checkout_fields(cart: list[tuple[Product, int]]) -> dict[str, str]:
    """The cart as parameters of a checkout."""
    fields = {"amount": amount(sum(product.cents * number for product, number in cart)), "currency": CURRENCY}
    for at, (product, number) in enumerate(cart):
        fields |= {
            f"cart.items[{at}].name": product.name,
            f"cart.items[{at}].merchantItemId": product.sku,
            f"cart.items[{at}].quantity": str(number),
            f"cart.items[{at}].price": product.price,
            f"cart.items[{at}].currency": CURRENCY,
        }
    return fields
