"""Which means of payment a request carries, and what each of them requires.

Source: Part A, Mobile wallets, Card account, Token account, Basic payment (paymentBrand); rulings D29, D30.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gateway.catalogue.conditions.request_facts import find_card_brand, is_merchant_initiated, is_wallet_payment
from gateway.catalogue.rules import ParameterRule, RuleBreach, RuleInput, build_rule, required_when
from gateway.core import brands

MEANS_PARAMETERS: tuple[tuple[str, ...], ...] = (
    ("card.number",),
    ("bankAccount.iban", "bankAccount.number"),
    ("virtualAccount.accountId",),
    ("tokenAccount.number",),
    ("wallet1.paymentToken",),
    ("wallet2.paymentToken",),
    ("wallet3.paymentToken",),
)
"""One line per means; the fact ``registration`` (paying with a stored one) counts too."""

MEANS_NAMES = tuple(name for names in MEANS_PARAMETERS for name in names)

REQUIRED_BY_MEANS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "card": (("card.number",), ("card.expiryMonth",), ("card.expiryYear",)),
    "bankAccount": (
        ("bankAccount.holder",),
        ("bankAccount.iban", "bankAccount.number"),
        ("bankAccount.bic", "bankAccount.bankCode"),
    ),
    "virtualAccount": (("virtualAccount.accountId",),),
    "wallet1": (("wallet1.paymentToken",),),
    "wallet2": (("wallet2.paymentToken",),),
    "wallet3": (("wallet3.paymentToken",),),
    "giftCard": (("giftCard.number",),),
}
"""Means of a brand (gateway.core.brands) → the parameters to ask for, all at once; any one of a group."""


def find_missing_of_means(sent: RuleInput, means: str, why: str) -> Iterator[RuleBreach]:
    """A breach for every parameter of a means that was not sent at all."""
    for group in REQUIRED_BY_MEANS[means]:
        if not sent.any(*group):
            for name in group:
                other = [each for each in group if each != name]
                yield name, f"{'or ' + other[0] + ' ' if other else ''}is required {why}"


_DEMANDING = (
    "card.expiryMonth", "card.expiryYear",
    "bankAccount.bankCode", "bankAccount.bic", "bankAccount.bankName", "bankAccount.country",
    "tokenAccount.type", "tokenAccount.cryptogram", "tokenAccount.dtvc",
    "wallet1.source", "wallet2.source", "wallet3.source", "wallet1.cardNetwork", "wallet1.cardType",
)  # fmt: skip
"""If one of these is sent, its own structure or path requires the number: no second error then."""

_CARD = {"card.number": "4200000000000000"}
_EXPIRY = {"card.expiryMonth": "05", "card.expiryYear": "2034"}
_PROOF = {"threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=", "threeDSecure.eci": "05"}
_BANK = {"bankAccount.iban": "DE23100000001234567890"}
_REGISTRATION = "registration"


def _present(sent: RuleInput) -> list[str]:
    """The first name sent of each means."""
    return [found[0] for names in MEANS_PARAMETERS if (found := [name for name in names if name in sent])]


def _one_at_most(sent: RuleInput) -> Iterator[RuleBreach]:
    present = _present(sent)
    if _REGISTRATION in sent.facts:
        for name in present:
            yield name, "cannot be sent with a registration: it is the means of payment"
    elif len(present) > 1:
        for name in present:
            yield name, f"only one means of payment may be sent; {' and '.join(present)} were"


def _one_at_least(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.any(*MEANS_NAMES, *_DEMANDING) or _REGISTRATION in sent.facts or "referenceUuid" in sent:
        return
    code = sent.get("paymentBrand")
    brand = brands.find_brand(code or "")
    if brand is None and code is not None:
        return  # an unknown brand is reported as such, and what it would need is not known
    if brand is None:
        yield "card.number", "is required, or another means: a bank, virtual or token account, a wallet"
        if "paymentBrand" not in sent:
            yield "paymentBrand", "is required, unless it can be detected from card.number"
    elif not brand.redirect and brand.means is not None:
        yield from find_missing_of_means(sent, brand.means, f"with paymentBrand {brand.code}")


ONE_AT_MOST = build_rule(
    "Only one means of payment is sent: " + ", ".join(MEANS_NAMES), MEANS_NAMES, _one_at_most,
    when=MEANS_NAMES, keeps=_CARD, breaks=_CARD | _BANK,
)  # fmt: skip
ONE_AT_LEAST = build_rule(
    "A payment needs one means of payment, unless its brand needs none or sends the shopper away to pay",
    (
        "paymentBrand",
        *MEANS_NAMES,
        *(name for groups in REQUIRED_BY_MEANS.values() for group in groups for name in group),
    ),
    _one_at_least,
    keeps={"paymentBrand": "VISA"} | _CARD,
    breaks={"paymentBrand": "VISA"},
)

AT_MOST_ONE_MEANS: tuple[ParameterRule, ...] = (ONE_AT_MOST,)
MEANS_FOR_PAYMENT: tuple[ParameterRule, ...] = (ONE_AT_MOST, ONE_AT_LEAST)


def _brand_undetectable(sent: RuleInput) -> bool:
    return "card.number" not in sent and _REGISTRATION not in sent.facts and sent.any(*MEANS_NAMES)


BRAND_NEEDED: tuple[ParameterRule, ...] = (
    required_when(
        "unless it can be detected from card.number", _brand_undetectable, "paymentBrand",
        keeps=_CARD, breaks=_BANK,
    ),
)  # fmt: skip


def _wallet_rules(wallet: str, brand: str) -> tuple[ParameterRule, ...]:
    """The two forms of one wallet: an encrypted token, or ``source`` with the decrypted card data."""
    token, source = f"{wallet}.paymentToken", f"{wallet}.source"
    card = ("card.number", "card.expiryMonth", "card.expiryYear")
    proof = tuple(_PROOF)
    # A stored device number is charged again by the merchant without a new proof.
    data = required_when(
        f"with {source}: the decrypted card data",
        lambda sent: source in sent and token not in sent,
        *card,
        when=(source,),
        keeps={source: "web"} | _CARD | _EXPIRY,
        breaks={source: "web"},
    )
    proved = required_when(
        f"with {source}, unless the merchant initiates the payment",
        lambda sent: source in sent and token not in sent and not is_merchant_initiated(sent),
        *proof,
        when=(source,),
        keeps={source: "web"} | _CARD | _EXPIRY | _PROOF,
        breaks={source: "web"} | _CARD | _EXPIRY,
    )
    origin = required_when(
        f"when paymentBrand {brand} comes with card data",
        lambda sent: sent.get("paymentBrand") == brand and "card.number" in sent and token not in sent,
        source,
        when=("card.number",),
        keeps={"paymentBrand": brand, source: "web"} | _CARD,
        breaks={"paymentBrand": brand} | _CARD,
    )
    return data, proved, origin


def _only_with_a_token(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.any("wallet1.cardNetwork", "wallet1.cardType") and "wallet1.paymentToken" not in sent:
        yield "wallet1.paymentToken", "is required with wallet1.cardNetwork or wallet1.cardType"


_SOURCES = ("wallet1.source", "wallet2.source", "wallet3.source")


def _one_wallet(sent: RuleInput) -> Iterator[RuleBreach]:
    present = [name for name in _SOURCES if name in sent]
    if len(present) > 1:
        for name in present:
            yield name, f"card data come out of one wallet; {' and '.join(present)} were sent"


WALLET_WAYS: tuple[ParameterRule, ...] = (
    *(rule for brand in brands.PAYMENT_BRANDS.values()
      if brand.means in ("wallet1", "wallet2", "wallet3")
      for rule in _wallet_rules(brand.means, brand.code)),
    build_rule(
        "wallet1.cardNetwork and wallet1.cardType require wallet1.paymentToken",
        ("wallet1.paymentToken", "wallet1.cardNetwork", "wallet1.cardType"), _only_with_a_token,
        when=("wallet1.cardNetwork", "wallet1.cardType"),
        keeps={"wallet1.cardNetwork": "Visa", "wallet1.paymentToken": "{}"},
        breaks={"wallet1.cardNetwork": "Visa"},
    ),
    build_rule(
        "Only one of " + ", ".join(_SOURCES) + " is sent", _SOURCES, _one_wallet,
        when=_SOURCES,
        keeps={"wallet2.source": "app"}, breaks={"wallet1.source": "web", "wallet2.source": "app"},
    ),
)  # fmt: skip

DPAN_PROOF: tuple[ParameterRule, ...] = (
    required_when(
        "with card.numberType DPAN, unless the merchant initiates the payment",
        lambda sent: sent.get("card.numberType") == "DPAN" and not is_merchant_initiated(sent),
        "threeDSecure.verificationId", "threeDSecure.eci",
        when=("card.numberType",),
        keeps={"card.numberType": "DPAN"} | _PROOF, breaks={"card.numberType": "DPAN"},
    ),
)  # fmt: skip


def _network_token_unproved(sent: RuleInput) -> Iterator[RuleBreach]:
    if sent.get("tokenAccount.type") != "NETWORK" or sent.any("tokenAccount.cryptogram", "tokenAccount.dtvc"):
        return
    if not is_merchant_initiated(sent):
        yield "tokenAccount.cryptogram", "or dtvc is required with type NETWORK when the shopper pays"


NETWORK_TOKEN_PROOF: tuple[ParameterRule, ...] = (
    build_rule(
        "tokenAccount.type NETWORK needs cryptogram or dtvc, unless the merchant initiates the payment",
        ("tokenAccount.type", "tokenAccount.cryptogram", "tokenAccount.dtvc"),
        _network_token_unproved,
        when=("tokenAccount.type",),
        keeps={"tokenAccount.type": "NETWORK", "standingInstruction.source": "MIT"},
        breaks={"tokenAccount.type": "NETWORK", "standingInstruction.source": "CIT"},
    ),
)


def _cvv_wanted(sent: RuleInput) -> bool:
    return (
        "cvv" in sent.facts
        and "card.number" in sent
        and sent.get("paymentType") in ("PA", "DB")
        and sent.get("card.numberType") != "DPAN"
        and not is_wallet_payment(sent)
        and not is_merchant_initiated(sent)
        and ((code := find_card_brand(sent)) is None or brands.is_cvv_required(code))
    )


CVV_REQUIRED: tuple[ParameterRule, ...] = (
    required_when(
        "on this channel when the shopper pays by card", _cvv_wanted, "card.cvv",
        keeps={"paymentType": "DB", "card.cvv": "123"} | _CARD, breaks={"paymentType": "DB"} | _CARD,
        facts=frozenset({"cvv"}),
    ),
)  # fmt: skip
