"""Responses for a checkout's page: how to draw its form, its state, and the result of a submission.

None contains a payment object: that needs the merchant's token. Source: decisions, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings

from checkout import session, stored_means, wallet_providers, wallet_sheets
from checkout.brand_selection import resolve_form_kind, select_brands
from checkout.form_parameters import may_offer_storing
from checkout.models import Checkout
from checkout.parts import REST_FORM_KIND, HeldAmount, find_held_amount, is_part_in_doubt, render_held_amount
from gateway.catalogue.conditions.authentication import ADDRESS_FIELDS
from gateway.core import brands, languages, result_codes
from gateway.core.brands import Brand, CardBrand
from gateway.core.money import format_amount
from gateway.core.result_codes import AWAITING_SHOPPER_CODE
from gateway.models import Payment, Status
from gateway.payments import shopper_return
from gateway.payments.held_parts import is_held, was_held
from gateway.payments.rendering import render_payment, resolve_result_code
from gateway.payments.stored_answer import read_earlier_parts

MAX_REQUESTED_BRANDS: Final = 60
"""Codes of one data-brands attribute."""
DEFAULT_WIDGET_BRANDS: Final = ("VISA", "MASTER")
WIDGET_STATE_BY_STATUS: Final[Mapping[str | None, str]] = {
    None: "open",
    Status.DECLINED: "open",
    Status.STARTED: "processing",
    Status.IN_DOUBT: "processing",
    Status.PENDING: "action",
    Status.APPROVED: "done",
}
"""A payment's status → the state that the page shows."""
OTHER_MEANS_TEXTS: Final = frozenset({
    "accountHolder", "accountHolderError", "accountId", "accountIdError", "brand.CREDITTRANSFER", "brand.DIRECTDEBIT",
    "brand.ONLINETRANSFER", "brand.SHOPWALLET", "brand.USERACCOUNT", "brand.VIRTUALACCOUNT", "brand.WALLET",
    "brand.WEBWALLET", "cancel", "continueTo", "createFailed", "estimated", "expired", "expires", "fullName", "iban",
    "ibanError", "left", "mandate", "methods", "otherCard", "payWith", "phone", "remove", "removeAsk", "removed",
    "replaceCard", "savedCard", "testApproved", "testDeclined", "testSheet", "total", "tryAgainLater", "windowOpen",
    "windowShow",
})  # fmt: skip
"""Texts that a form says only where there is more than a card to type in."""
HELD_TEXTS: Final = frozenset({"giveBack", "givenBack", "heldPart", "heldRest"})
"""Texts that a form says only where a part of the amount is held."""
ADDRESS_TEXTS: Final = frozenset({"billingAddress", "city", "country", "postcode", "state", "street1", "street2"})
_CODE: Final = re.compile(r"[A-Za-z0-9_]{1,32}")
_HEAD: Final = len("billing.")


def render_form_config(row: Checkout, wanted: Sequence[str], locale: str, *, asks_address: bool) -> dict[str, Any]:
    """Everything a form needs. ``wanted``: the page's data-brands in order; ``locale``: a code of languages.LOCALES;
    ``asks_address``: the page wants an address where the channel does not."""
    prepared = session.load_plain_values(row)
    offer = select_brands(row, [code for code in wanted if _CODE.fullmatch(code)][:MAX_REQUESTED_BRANDS])
    registrations = stored_means.list_offered_registrations(row, prepared)
    held, state = find_held_amount(row), resolve_checkout_state(row)
    if held is not None:
        prepared["amount"] = format_amount(held.rest)
        offer = replace(
            offer,
            brands=tuple(
                code for code in offer.brands if resolve_form_kind(brands.PAYMENT_BRANDS[code]) == REST_FORM_KIND
            ),
        )
        registrations = [one for one in registrations if one["kind"] == "card"]
    amount = prepared.get("amount")
    billing = list_billing_fields(row, prepared, asks_address)
    is_card_alone = not registrations and all(
        resolve_form_kind(brands.PAYMENT_BRANDS[code]) == "card" for code in offer.brands
    )
    shown_held = render_held_amount(row, held)
    if held is None and state == "processing" and (row.parts or was_held(row.payment)):
        # Being given back: the form waits until it is, and asks for nothing before.
        shown_held = {"currency": prepared.get("currency"), "rest": format_amount(Decimal(amount or 0)), "parts": []}
    body: dict[str, Any] = {
        "checkout": {
            "id": row.public_id,
            "kind": row.kind,
            "amount": format_amount(Decimal(amount)) if amount else None,
            "currency": prepared.get("currency"),
            "secondsLeft": session.count_seconds_left(row),
            "attempts": row.attempts,
            "paid": state == "done",
        },
        "locale": locale,
        "lang": languages.iso_language_code(locale),
        "dir": languages.text_direction(locale),
        "texts": _select_texts(
            locale, is_card_alone=is_card_alone, has_address=bool(billing), is_held=shown_held is not None
        ),
        "brands": [render_brand(brands.PAYMENT_BRANDS[code]) for code in offer.brands],
        "brandOrder": row.channel.accepted_brand_order,
        "cvvRequired": row.channel.cvv_required,
        "createRegistration": row.kind == Checkout.Kind.PAYMENT and may_offer_storing(prepared),
        "registrations": registrations,
        "billing": billing,
        "threeDSecure": row.channel.three_d_secure,
        "frames": build_hosted_field_urls(row),
        "wallets": render_wallets(row, offer.brands, prepared),
        "test": not settings.IS_LIVE,
        "shopperResultUrl": prepared.get("shopperResultUrl"),
    }
    if shown_held is not None:
        body["held"] = shown_held
    if brands.are_brands_in_bin_table():
        body["cardBrands"] = f"v1/checkouts/{row.public_id}/card-brands"
    if not settings.IS_LIVE:
        body["hidden"] = [{"code": code, "reason": reason} for code, reason in offer.hidden.items()]
    return body


def _select_texts(locale: str, *, is_card_alone: bool, has_address: bool, is_held: bool) -> dict[str, str]:
    """The texts that this form can say. A form that is not of cards alone gets all but those of a held part."""
    texts = languages.load_form_texts(locale)
    if is_held:
        return dict(texts)
    if not is_card_alone:
        return {key: text for key, text in texts.items() if key not in HELD_TEXTS}
    unsaid = HELD_TEXTS | (OTHER_MEANS_TEXTS if has_address else OTHER_MEANS_TEXTS | ADDRESS_TEXTS)
    return {key: text for key, text in texts.items() if key not in unsaid}


def render_wallets(row: Checkout, codes: Sequence[str], prepared: Mapping[str, str]) -> dict[str, Any]:
    """Brand → how its sheet opens: the provider's or, in the test environment, the simulated one with test cards."""
    wanted = {code: resolve_form_kind(brands.PAYMENT_BRANDS[code]) for code in codes}
    wanted = {code: kind for code, kind in wanted.items() if kind.startswith("wallet")}
    there = wallet_providers.map_wallet_providers(row.channel) if wanted else {}
    found: dict[str, Any] = {}
    for code, kind in wanted.items():
        if kind in there:
            found[code] = {
                "simulated": False,
                "provider": wallet_providers.render_wallet_provider(there[kind]),
                "testTokens": [],
            }
        else:
            cards_of = wallet_sheets.build_simulated_sheet(
                row, code, prepared.get("amount"), prepared.get("currency", "")
            )
            found[code] = {"simulated": True, "provider": None, "testTokens": cards_of}
    return found


def render_brand(brand: Brand) -> dict[str, Any]:
    """A brand for the script: what to draw, and the patterns of its numbers."""
    facts: dict[str, Any] = {
        "code": brand.code,
        "label": brand.label,
        "kind": resolve_form_kind(brand),
        "method": brand.method,
    }
    if isinstance(brand, CardBrand):
        facts |= {
            "cvv": sorted(brand.cvv_lengths - {0}),
            "cvvOptional": 0 in brand.cvv_lengths,
            "lengths": sorted(brand.lengths),
            "ranges": [list(ends) for ends in brand.ranges],
            "detect": [list(ends) for ends in brand.detected],
            "luhn": brand.luhn,
            "beside": list(brand.co_badges),
            "afterScheme": brand.after_scheme,
        }
    return facts


def list_billing_fields(row: Checkout, prepared: Mapping[str, str], asks: bool) -> list[str]:
    """The address fields that a card payment of this channel needs, or the page ``asks`` for, and that the merchant did
    not send."""
    needs = row.channel.three_d_secure and prepared.get("threeDSecure.disable") != "true"
    if not (needs or asks):
        return []
    return [name[_HEAD:] for name in ADDRESS_FIELDS if name not in prepared]


def build_hosted_field_urls(row: Checkout) -> dict[str, str]:
    """Addresses of the frames for card number and security code; the script adds the page's origin as ``parent``."""
    address = f"{settings.GATEWAY_BASE_URL}/v1/widget/frame.html?{urlencode({'checkout': row.public_id})}"
    return {"number": address, "cvv": address}


def resolve_checkout_state(row: Checkout) -> str:
    """open, processing, action (the shopper has to go somewhere), done or expired. A payment begun in time continues
    after the checkout's end: no page may claim that the shopper was not charged while it does. Nor while a part that
    was held may not have been given back."""
    return _resolve_payment_state(row, row.payment)[0]


def _resolve_payment_state(row: Checkout, payment: Payment | None) -> tuple[str, HeldAmount | None]:
    """The state after ``payment``, and what is held where the rest can be paid."""
    is_open_for_rest = payment is not None and is_held(payment)
    now = WIDGET_STATE_BY_STATUS[payment.status if payment is not None else None]
    if now != "open" and not is_open_for_rest:
        return now, None
    held = find_held_amount(row)
    is_ended = session.is_checkout_expired(row)
    # What is held when the checkout ends is given back by a timer: until then the shopper's money is not free.
    if is_part_in_doubt(row, held) or (is_ended and held is not None):
        return "processing", None
    return ("expired", None) if is_ended else ("open", held)


def render_state(row: Checkout) -> dict[str, Any]:
    """The checkout's state, for the page that polls it."""
    payment = row.payment
    now, held = _resolve_payment_state(row, payment)
    body = {
        "state": now,
        "secondsLeft": session.count_seconds_left(row),
        "attempts": row.attempts,
        "redirect": render_redirect(payment) if payment is not None and now == "action" else None,
        "returnTo": shopper_return.build_result_url(payment) if payment is not None and now == "done" else None,
    }
    return body | _render_held(row, held)


def _render_held(row: Checkout, held: HeldAmount | None) -> dict[str, Any]:
    """``held``: the parts that are held, of a checkout whose rest can be paid."""
    return {"held": render_held_amount(row, held)} if held is not None else {}


def get_last_result_code(row: Checkout) -> str:
    """The result code of the last attempt, so that a page can explain a failure; pending before any. A part that was
    given back is no failure of the card that a page asks about: its own was not tried."""
    if row.payment is None or (row.payment.status == Status.DECLINED and was_held(row.payment)):
        return AWAITING_SHOPPER_CODE
    return resolve_result_code(row.payment)


def render_redirect(payment: Payment) -> dict[str, Any] | None:
    """The redirect of a payment, as in API responses."""
    found: dict[str, Any] | None = render_payment(payment).get("redirect")
    return found


def count_attempts(checkout_id: UUID) -> int:
    """Attempts that the checkout counts by now, read from its row. The page compares it after a press whose answer got
    lost: without a further attempt that press never arrived."""
    count: int = Checkout.objects.values_list("attempts", flat=True).get(pk=checkout_id)
    return count


def render_submission(row: Checkout, payment: Payment) -> tuple[int, dict[str, Any]]:
    """The browser's answer to its submission: the code in words, the state, the attempts, the redirect. Returns status
    and body."""
    code = resolve_result_code(payment)
    if is_held(payment) or read_earlier_parts(payment.answer) or (row.payment is not None and is_held(row.payment)):
        row = session.find_checkout(row.public_id) or row  # as it stands after this payment
    now, held = _resolve_payment_state(row, payment)
    final = payment.status in (Status.APPROVED, Status.DECLINED, Status.IN_DOUBT)
    body = {
        "result": {"code": code, "description": result_codes.find_result_code(code).description},
        "state": now,
        "attempts": count_attempts(row.id),
        "redirect": render_redirect(payment) if payment.status == Status.PENDING else None,
        "returnTo": shopper_return.build_result_url(payment) if final else None,
    }
    return result_codes.http_status(code), body | _render_held(row, held)
