"""What a page may know of a checkout: how to draw its form, how it stands, and what came of a submission.

Nothing here tells a payment object: that is for the merchant's token. Source: decisions, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings

from checkout import cards, providers, session, sheets
from checkout.choice import choose, kind_of
from checkout.form import may_store
from checkout.models import Checkout
from gateway import brands, languages, results
from gateway.brands import Brand, CardBrand
from gateway.catalogue.conditions.authentication import ADDRESS_FIELDS
from gateway.models import Payment, Status
from gateway.money import amount_text
from gateway.payments import resume
from gateway.payments.answer import code_of, payment_object

WAITING: Final = "000.200.000"
MOST_BRANDS: Final = 60
"""Codes of one data-brands attribute."""
DEFAULT_BRANDS: Final = ("VISA", "MASTER")
STATES: Final[Mapping[str | None, str]] = {
    None: "open",
    Status.DECLINED: "open",
    Status.STARTED: "processing",
    Status.IN_DOUBT: "processing",
    Status.PENDING: "action",
    Status.APPROVED: "done",
}
"""A payment's status → what a page does next."""
_CODE: Final = re.compile(r"[A-Za-z0-9_]{1,32}")
_HEAD: Final = len("billing.")


def config(row: Checkout, wanted: Sequence[str], locale: str, *, asks_address: bool = False) -> dict[str, Any]:
    """Everything a form needs. ``wanted``: the page's data-brands in order; ``locale``: a code of languages.LOCALES;
    ``asks_address``: the page wants an address where the channel does not."""
    prepared = session.plain_values_of(row)
    offer = choose(row, [code for code in wanted if _CODE.fullmatch(code)][:MOST_BRANDS])
    amount = prepared.get("amount")
    body: dict[str, Any] = {
        "checkout": {
            "id": row.public_id,
            "kind": row.kind,
            "amount": amount_text(Decimal(amount)) if amount else None,
            "currency": prepared.get("currency"),
            "secondsLeft": session.seconds_left(row),
            "attempts": row.attempts,
            "paid": state_of(row) == "done",
        },
        "locale": locale,
        "lang": languages.iso(locale),
        "dir": languages.direction(locale),
        "texts": languages.form_texts(locale),
        "brands": [brand_facts(brands.BRANDS[code]) for code in offer.brands],
        "cvvRequired": row.channel.cvv_required,
        "createRegistration": row.kind == Checkout.Kind.PAYMENT and may_store(prepared),
        "registrations": cards.offered_cards(row, prepared),
        "billing": billing_fields(row, prepared, asks_address),
        "threeDSecure": row.channel.three_d_secure,
        "frames": frames(row),
        "wallets": wallets(row, offer.brands, prepared),
        "test": not settings.IS_LIVE,
        "shopperResultUrl": prepared.get("shopperResultUrl"),
    }
    if not settings.IS_LIVE:
        body["hidden"] = [{"code": code, "reason": reason} for code, reason in offer.hidden.items()]
    return body


def wallets(row: Checkout, codes: Sequence[str], prepared: Mapping[str, str]) -> dict[str, Any]:
    """Brand → how its sheet opens: with its provider, else (test environment) with our cards."""
    wanted = {code: kind_of(brands.BRANDS[code]) for code in codes}
    wanted = {code: kind for code, kind in wanted.items() if kind.startswith("wallet")}
    there = providers.providers_of(row.channel) if wanted else {}
    found: dict[str, Any] = {}
    for code, kind in wanted.items():
        if kind in there:
            found[code] = {"simulated": False, "provider": providers.shown_to_a_page(there[kind]), "testTokens": []}
        else:
            cards_of = sheets.simulated(row, code, prepared.get("amount"), prepared.get("currency", ""))
            found[code] = {"simulated": True, "provider": None, "testTokens": cards_of}
    return found


def brand_facts(brand: Brand) -> dict[str, Any]:
    """A brand as the script reads it: what to draw, and what its numbers look like."""
    facts: dict[str, Any] = {
        "code": brand.code, "label": brand.label, "kind": kind_of(brand), "method": brand.method,
    }  # fmt: skip
    if isinstance(brand, CardBrand):
        facts |= {
            "cvv": sorted(brand.cvv_lengths - {0}),
            "cvvOptional": 0 in brand.cvv_lengths,
            "lengths": sorted(brand.lengths),
            "ranges": [list(ends) for ends in brand.ranges],
            "detect": [list(ends) for ends in brand.detected],
            "luhn": brand.luhn,
            "beside": list(brand.beside),
            "afterScheme": brand.after_scheme,
        }
    return facts


def billing_fields(row: Checkout, prepared: Mapping[str, str], asks: bool = False) -> list[str]:
    """The address fields that a card payment of this channel needs, or the page ``asks`` for, and the merchant did not
    send."""
    needs = row.channel.three_d_secure and prepared.get("threeDSecure.disable") != "true"
    if not (needs or asks):
        return []
    return [name[_HEAD:] for name in ADDRESS_FIELDS if name not in prepared]


def frames(row: Checkout) -> dict[str, str]:
    """Where the number's and the security code's frames are; the script adds the page's origin as ``parent``."""
    address = f"{settings.GATEWAY_BASE_URL}/v1/widget/frame.html?{urlencode({'checkout': row.public_id})}"
    return {"number": address, "cvv": address}


def state_of(row: Checkout) -> str:
    """open, processing, action (the shopper has to go somewhere), done or expired. A payment that was begun in time
    goes on after the checkout's end: nobody may read that they were not charged while it does."""
    return _standing(row, row.payment.status if row.payment is not None else None)


def _standing(row: Checkout, status: str | None) -> str:
    now = STATES[status]
    return "expired" if now == "open" and session.is_expired(row) else now


def state(row: Checkout) -> dict[str, Any]:
    """How the checkout stands, for the page that waits."""
    now = state_of(row)
    payment = row.payment
    return {
        "state": now,
        "secondsLeft": session.seconds_left(row),
        "attempts": row.attempts,
        "redirect": redirect_of(payment) if payment is not None and now == "action" else None,
        "returnTo": resume.result_url(payment) if payment is not None and now == "done" else None,
    }


def last_code(row: Checkout) -> str:
    """The code of the last attempt, so that a page can say why it failed; pending before any."""
    return code_of(row.payment) if row.payment is not None else WAITING


def redirect_of(payment: Payment) -> dict[str, Any] | None:
    """Where the shopper has to go, as answers carry it."""
    found: dict[str, Any] | None = payment_object(payment).get("redirect")
    return found


def submitted(row: Checkout, payment: Payment) -> tuple[int, dict[str, Any]]:
    """What a browser learns of its submission: the code in words, the state, where to go. Status and body."""
    code = code_of(payment)
    now = _standing(row, payment.status)
    final = payment.status in (Status.APPROVED, Status.DECLINED, Status.IN_DOUBT)
    return results.http_status(code), {
        "result": {"code": code, "description": results.result(code).description},
        "state": now,
        "redirect": redirect_of(payment) if payment.status == Status.PENDING else None,
        "returnTo": resume.result_url(payment) if final else None,
    }
