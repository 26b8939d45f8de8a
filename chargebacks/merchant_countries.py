"""The country of the merchant behind a dispute, by which schemes' days differ."""

from __future__ import annotations

from gateway.connectors.acquirer_message import flatten_body
from gateway.models import AcquirerAccount, Payment
from gateway.threeds.server import load_threeds_configuration
from gateway.threeds_protocol.messages import resolve_merchant_country


def find_merchant_country(disputed: Payment) -> str:
    """The merchant's country in two letters: as sent with the payment, else as its channel's 3-D Secure has it, else as
    the acquirer account says; '' if none does."""
    first = disputed if disputed.id == disputed.chain else Payment.objects.get(pk=disputed.chain)
    own = load_threeds_configuration(disputed.channel).merchant_country
    if country := resolve_merchant_country(flatten_body(first.request), own):
        return country
    account = AcquirerAccount.objects.filter(
        channel=disputed.channel_id, connector=first.connector, acquirer_merchant_id=first.acquirer_merchant_id
    ).first()
    return str(account.settings.get("country", "")) if account is not None else ""
