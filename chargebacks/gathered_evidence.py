"""Evidence that the gateway has itself: what it recorded about the disputed payment and earlier ones of the same card.

Each finding names a row of the table of proofs (chargebacks.dispute_strength), which says how much it counts for a
reason, and the item of the checklist that it proves. Findings that speak for the shopper are shown too: the bank may
know them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chargebacks.compelling_evidence import EarlierPayment, find_earlier_payments
from chargebacks.models import Chargeback
from gateway.core.compact_json import get_json_object
from gateway.core.masking import mask_text
from gateway.core.money import format_amount
from gateway.models import MandateMail, Payment, Status
from gateway.payments.payment_receipts import find_shown_receipt
from gateway.threeds.authentications import find_authentication_of_payment

MAX_EARLIER_COUNTED: Final = 100
MAX_SAME_AMOUNT_READ: Final = 10
SAME_AMOUNT_WINDOW: Final = timedelta(days=30)
"""The time before and after the disputed payment: another one of the same card and amount may be the first of a
duplicate."""
WANTED_EARLIER_PAYMENTS: Final = 2
"""Visa, "Compelling Evidence 3.0 Merchant Readiness": two earlier payments."""
AUTHENTICATED_ECIS: Final = frozenset({"05", "02"})
ATTEMPTED_ECIS: Final = frozenset({"06", "01"})
"""Source: https://docs.solidgate.com/payments/payments-insights/eci/."""
_FIRST_TYPES: Final = ("DB", "PA")
_ADDRESS: Final = ("street1", "postcode", "city", "country")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProof:
    """One thing that was recorded. ``proof``: row of PROOFS; ``value``: what was recorded, in words; ``supports``:
    False if it speaks for the shopper."""

    proof: str
    value: str
    supports: bool = True


def gather_evidence(case: Chargeback, earlier: Sequence[EarlierPayment] | None = None) -> list[RecordedProof]:
    """What the gateway can show about the case. It reads at most MAX_EARLIER_COUNTED earlier payments of the card.
    ``earlier``: by find_earlier_payments, which is asked where it is None."""
    earlier = find_earlier_payments(case) if earlier is None else earlier
    disputed = Payment.objects.get(pk=case.disputed)
    first = disputed if disputed.chain == disputed.id else Payment.objects.get(pk=disputed.chain)
    return [
        *_find_authentication(first),
        *_find_acquirer_checks(first),
        *_find_shopper(first),
        *_find_order(first),
        *_find_receipt(first),
        *_find_delivery(first),
        *_find_authorization(first),
        *_find_mandate(first, disputed),
        *_find_refund(case),
        *_find_earlier(first, earlier),
        *_find_same_amount(first),
    ]


def _find_authentication(first: Payment) -> Iterator[RecordedProof]:
    row = find_authentication_of_payment(first.id)
    if row is not None:
        eci, words = row.eci, [f"3-D Secure {row.version}".strip(), f"transStatus {row.trans_status or '–'}", row.flow]
        proved, attempted = row.trans_status == "Y", row.trans_status == "A"
        words += [f"ECI {eci}" if eci else "", row.ds_transaction]
    else:
        sent = get_json_object(first.request, "threeDSecure")
        eci = str(sent.get("eci") or "")
        words, proved, attempted = [_("by another provider, ECI %s") % (eci or "–")], False, False
    if proved or eci in AUTHENTICATED_ECIS:
        yield RecordedProof(proof="authenticated", value=", ".join(filter(None, words)))
    elif attempted or eci in ATTEMPTED_ECIS:
        yield RecordedProof(proof="attempted", value=", ".join(filter(None, words)))


def _find_acquirer_checks(first: Payment) -> Iterator[RecordedProof]:
    match first.answer.get("cvv"):
        case "M":
            yield RecordedProof(proof="cvv", value=_("M: it matches"))
        case "N":
            yield RecordedProof(proof="cvv", value=_("N: it does not match"), supports=False)
    match first.answer.get("avs"):
        case "F":
            yield RecordedProof(proof="avs", value=_("F: street and postcode match"))
        case "A" | "Z" as code:
            words = _("the street matches") if code == "A" else _("the postcode matches")
            yield RecordedProof(proof="avs_part", value=f"{code}: {words}")
        case "N":
            yield RecordedProof(proof="avs", value=_("N: neither street nor postcode matches"), supports=False)


def _find_shopper(first: Payment) -> Iterator[RecordedProof]:
    customer = get_json_object(first.request, "customer")
    named = [mask_text(str(customer[key])) for key in ("email", "ip", "mobile", "phone") if customer.get(key)]
    if len(named) > 1:
        yield RecordedProof(proof="shopper", value=", ".join(named))
    billing, shipping = _join_address(first.request, "billing"), _join_address(first.request, "shipping")
    if billing and shipping:
        same = billing.casefold() == shipping.casefold()
        words = _("they are the same: %s") if same else _("they differ; delivered to %s")
        yield RecordedProof(proof="same_address", value=words % mask_text(shipping), supports=same)


def _find_order(first: Payment) -> Iterator[RecordedProof]:
    items = get_json_object(first.request, "cart").get("items")
    words = [mask_text(one) for one in (first.merchant_transaction_id, first.merchant_invoice_id) if one]
    if isinstance(items, list) and items:
        words.append(ngettext("%d item in the cart", "%d items in the cart", len(items)) % len(items))
    if words:
        yield RecordedProof(proof="order", value=", ".join(words))


def _find_receipt(first: Payment) -> Iterator[RecordedProof]:
    receipt = find_shown_receipt(first)
    if receipt is not None:
        words = [_("there for 24 hours after the payment")]
        if receipt.mails:
            mailed = ngettext("%d mail, as the shopper asked", "%d mails, as the shopper asked", receipt.mails)
            words.append(mailed % receipt.mails)
        yield RecordedProof(proof="receipt", value=", ".join(words))


def _find_delivery(first: Payment) -> Iterator[RecordedProof]:
    shipping, cart = get_json_object(first.request, "shipping"), get_json_object(first.request, "cart")
    items = cart.get("items")
    numbers = [shipping.get("trackingNumber")]
    numbers += [one.get("shippingTrackingNumber") for one in items or () if isinstance(one, dict)]
    found = [mask_text(str(one)) for one in numbers if one]
    if found:
        carrier = mask_text(str(shipping.get("logisticsProvider") or ""))
        yield RecordedProof(
            proof="tracking", value=" ".join(filter(None, [carrier, ", ".join(found[:MAX_SAME_AMOUNT_READ])]))
        )


def _find_authorization(first: Payment) -> Iterator[RecordedProof]:
    if first.means == "card" and first.status == Status.APPROVED and first.payment_type in _FIRST_TYPES:
        granted = first.amount if first.approved_amount is None else first.approved_amount
        money = f"{format_amount(granted)} {first.currency}"
        named = first.connector_tx_id or first.id.hex
        yield RecordedProof(proof="authorization", value=f"{first.created_at:%Y-%m-%d %H:%M} UTC, {money}, {named}")


def _find_mandate(first: Payment, disputed: Payment) -> Iterator[RecordedProof]:
    account = get_json_object(first.request, "bankAccount")
    mandate = account.get("mandate")
    if isinstance(mandate, dict) and mandate.get("id"):
        signed = mandate.get("dateOfSignature")
        words = mask_text(str(mandate["id"])) + (f", {_('signed on %s') % signed}" if signed else "")
        yield RecordedProof(proof="mandate", value=words)
    mails = MandateMail.objects.filter(payment__in=[first.pk, disputed.pk], state=MandateMail.State.SENT)
    for mail in mails.order_by("sent_at"):
        at = f"{mail.sent_at:%Y-%m-%d %H:%M} UTC" if mail.sent_at else ""
        yield RecordedProof(
            proof="mandate_mail", value=", ".join(filter(None, [at, mask_text(mail.sent_to), mail.subject]))
        )


def _find_refund(case: Chargeback) -> Iterator[RecordedProof]:
    if case.refunded_before <= 0:
        return
    whole = case.refunded_before >= case.amount
    money = f"{format_amount(case.refunded_before)} {case.currency}"
    yield RecordedProof(proof="refund" if whole else "refund_part", value=money)


def _find_earlier(first: Payment, listed: Sequence[EarlierPayment]) -> Iterator[RecordedProof]:
    if len(listed) >= WANTED_EARLIER_PAYMENTS:
        yield RecordedProof(proof="earlier_window", value="; ".join(_describe_earlier(one) for one in listed))
        return
    same = _find_same_card(first)
    if same is None:
        return
    older = same.filter(created_at__lt=first.created_at)
    dates = list(older.order_by("-created_at").values_list("created_at", flat=True)[:MAX_EARLIER_COUNTED])
    if dates:
        span = f"{dates[-1]:%Y-%m-%d} – {dates[0]:%Y-%m-%d}"
        yield RecordedProof(proof="earlier", value=_("%(count)d, %(span)s") % {"count": len(dates), "span": span})


def _describe_earlier(one: EarlierPayment) -> str:
    shared = ", ".join(_(name) for name in one.shared)
    return f"{one.payment.created_at:%Y-%m-%d} {format_amount(one.payment.amount)} {one.payment.currency} ({shared})"


def _find_same_amount(first: Payment) -> Iterator[RecordedProof]:
    """Whether there is a second payment that could be the same purchase."""
    same = _find_same_card(first, with_disputed=True)
    if same is None:
        return
    near = Q(
        created_at__gte=first.created_at - SAME_AMOUNT_WINDOW, created_at__lte=first.created_at + SAME_AMOUNT_WINDOW
    )
    equal = same.filter(near, amount=first.amount, currency=first.currency)
    count = len(equal.values_list("pk")[: MAX_SAME_AMOUNT_READ + 1])
    if not count:
        yield RecordedProof(proof="separate", value=_("no other payment of this card has the amount within 30 days"))
        return
    order = first.merchant_transaction_id
    apart = bool(order) and not equal.filter(merchant_transaction_id__in=("", order)).exists()
    if count > MAX_SAME_AMOUNT_READ:
        text = (
            _("%d or more other payments have the amount, each with an order number of its own")
            if apart
            else _("%d or more other payments have the amount, and are not told apart by their order numbers")
        )
        words = text % MAX_SAME_AMOUNT_READ
    elif apart:
        words = (
            ngettext(
                "%d other payment has the amount, with an order number of its own",
                "%d other payments have the amount, each with an order number of its own",
                count,
            )
            % count
        )
    else:
        words = (
            ngettext(
                "%d other payment has the amount, and its order number does not tell them apart",
                "%d other payments have the amount, and are not told apart by their order numbers",
                count,
            )
            % count
        )
    yield RecordedProof(proof="separate", value=words, supports=apart)


def _find_same_card(first: Payment, *, with_disputed: bool = False) -> QuerySet[Payment] | None:
    """Other approved payments at the merchant with the same means, undisputed ones unless ``with_disputed``; None if
    the means is not known."""
    if first.means_fingerprint is None or first.last4_key is None:
        return None
    undisputed = Q() if with_disputed else ~Exists(Chargeback.objects.filter(chain=OuterRef("chain")))
    return Payment.objects.filter(
        undisputed,
        last4_key=first.last4_key,
        merchant=first.merchant_id,
        means_fingerprint=bytes(first.means_fingerprint),
        payment_type__in=_FIRST_TYPES,
        status=Status.APPROVED,
    ).exclude(pk=first.pk)


def _join_address(request: Mapping[str, Any], name: str) -> str:
    group = get_json_object(request, name)
    return ", ".join(str(group[part]).strip() for part in _ADDRESS if group.get(part))
