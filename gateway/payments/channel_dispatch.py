"""Channel dispatching: for a merchant's entityId, choose the channel that takes the brand and the currency.

Source: Part A, Authentication, 4.
"""

from __future__ import annotations

from collections.abc import Iterable

from gateway.core.card_number import detect_brand_of_number
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant


def choose_channel(merchant: Merchant, pairs: Iterable[tuple[str, str | Secret]]) -> Channel | None:
    """The merchant's first active channel, by position, that takes the brand and the currency that were sent.

    ``pairs``: the raw parameters. The channel is chosen before they are validated, since it says how strict validation
    is; a brand that was not sent is detected from the card number, of a co-badged card's by the channel's own brand
    order. None when no channel takes the payment.
    """
    sent = dict(pairs)
    number = number if isinstance(number := sent.get("card.number"), Secret) else None
    currency = sent.get("currency")
    for channel in Channel.objects.filter(merchant=merchant, active=True).order_by("position", "created_at"):
        brand = sent.get("paymentBrand") or detect_brand_of_number(number, channel.accepted_brand_order, channel.brands)
        if (not channel.brands or brand in channel.brands) and (
            not channel.currencies or currency in channel.currencies
        ):
            channel.merchant = merchant
            return channel
    return None
