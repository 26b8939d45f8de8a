"""A mail to the shopper about their payment, written in the shopper's language for the clerk to send.

Nothing is sent from here: the page has the text to copy, and a link that opens the clerk's own mail program. Languages
are those of the back office's texts; any other shopper gets English.
"""

from __future__ import annotations

from urllib.parse import quote

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.payments.chain_words import describe_chain
from gateway.core import languages
from gateway.core.advice import get_shopper_message
from gateway.core.compact_json import get_json_object
from gateway.core.masking import mask_text
from gateway.models import Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import ChainStatus
from gateway.payments.rendering import resolve_result_code


def resolve_shopper_language(payment: Payment) -> str:
    """The language of the back office's texts that the shopper reads: customer.language, else the request's locale,
    else the browser's, else English."""
    customer = get_json_object(payment.request, "customer")
    sent = (
        customer.get("language"),
        payment.request.get("locale"),
        get_json_object(customer, "browser").get("language"),
    )
    known = {code for code, _name in settings.LANGUAGES}
    for text in sent:
        code = languages.resolve_language(str(text or ""))
        if code is not None:
            return code if code in known else languages.DEFAULT_LANGUAGE
    return languages.DEFAULT_LANGUAGE


def build_shopper_mail(payment: Payment, chain: Chain, status: ChainStatus) -> dict[str, str] | None:
    """Subject and text for the shopper, the language, and a mailto: address; None if only the merchant can act."""
    first = chain.first
    language = resolve_shopper_language(first)
    with translation.override(language):
        said = describe_chain(status, chain)[1] if first.status == Status.APPROVED else None
        if said is None and (message := get_shopper_message(resolve_result_code(first))):
            said = _(message)
        if not said:
            return None
        name = _get_name(first)
        subject = _("Your payment of %(amount)s at %(merchant)s") % {
            "amount": format_money(first.amount, first.currency),
            "merchant": payment.merchant.name,
        }
        lines = [_("Dear %s,") % name if name else _("Hello,"), "", str(said)]
        if first.merchant_transaction_id:
            lines += ["", _("Your order: %s") % first.merchant_transaction_id]
        lines += ["", _("Kind regards"), payment.merchant.name]
    # Card numbers are masked here, not on the page alone: the link to the mail program has the texts, too.
    subject, text = mask_text(subject), mask_text("\n".join(lines))
    to = str(get_json_object(first.request, "customer").get("email") or "")
    return {
        "language": language,
        "subject": subject,
        "text": text,
        "address": f"mailto:{quote(to, safe='@')}?subject={quote(subject)}&body={quote(text)}" if to else "",
    }


def _get_name(payment: Payment) -> str:
    customer = get_json_object(payment.request, "customer")
    return " ".join(str(customer[name]) for name in ("givenName", "surname") if customer.get(name))
