"""Which structures each endpoint takes, and the conditions between them.

One :class:`Endpoint` per method and path: the views parse with it, OpenAPI and the docs are made from it. Facts that
conditions may ask for: ``threeds`` (the channel authenticates cards), ``cvv`` (the channel wants a CVV), ``live``
(the live environment), ``alone`` (an authentication without a payment), ``stored-card`` (the registration that is used
is a card), ``today:yyyy-MM`` (the month it is for the merchant).
Source: Part A, Endpoints; ruling D16 for what is left off where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.catalogue import conditions as c
from gateway.catalogue import structures as s
from gateway.catalogue.formats import AMOUNT, CURRENCY, N, literal, number_between, one_of, worded
from gateway.catalogue.parse import Catalogue
from gateway.catalogue.rules import Breach, Rule, Sent, condition
from gateway.catalogue.structure import ALWAYS, C, Echo, O, R, Structure, structure


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one path. ``operation`` is what throttling counts; ``scope`` what the token must have."""

    name: str
    method: str
    path: str
    title: str
    about: str
    operation: str
    scope: str
    structures: tuple[Structure, ...]
    rules: tuple[Rule, ...] = ()
    answers: tuple[int, ...] = (200, 400, 401, 403, 404, 429)
    test_only: bool = False
    catalogue: Catalogue = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        catalogue = Catalogue(
            self.structures, self.rules, elsewhere=s.ALL_STRUCTURES, aliases={"authentication.entityId": "entityId"}
        )
        object.__setattr__(self, "catalogue", catalogue)


ENTITY = s.ENTITY.needing(entityId=R).demanding(ALWAYS)


def _live_has_no_test_mode(sent: Sent) -> Iterator[Breach]:
    if "live" in sent.facts and "testMode" in sent:
        yield "testMode", "is not allowed in the live environment"


NO_TEST_MODE_IN_LIVE = condition(
    "testMode is refused in the live environment",
    ("testMode",),
    _live_has_no_test_mode,
    keeps={"amount": "92.00"},
    breaks={"testMode": "INTERNAL"},
    facts=frozenset({"live"}),
)


_FIRST_TYPES = frozenset({"CP", "RV", "RF", "RB", "RC", "CB", "CR"})


def _follow_ups_need_an_id(sent: Sent) -> Iterator[Breach]:
    if sent.get("paymentType") in _FIRST_TYPES:
        yield "paymentType", f"{sent['paymentType']} follows an earlier payment: send it to POST /v1/payments/{{id}}"


FIRST_PAYMENT = condition(
    "CP, RV, RF, RB, RC, CB and CR follow an earlier payment and are sent to POST /v1/payments/{id}",
    ("paymentType",),
    _follow_ups_need_an_id,
    keeps={"paymentType": "DB"},
    breaks={"paymentType": "CP"},
)


def _amount_unless_reversal(sent: Sent) -> Iterator[Breach]:
    kind = sent.get("paymentType")
    if kind is not None and kind != "RV" and "amount" not in sent:
        yield "amount", f"is required with paymentType {kind}, e.g. 92.00"


FOLLOW_UP_AMOUNT = condition(
    "amount is required, except with RV, which then reverses all that remains",
    ("amount", "paymentType"),
    _amount_unless_reversal,
    keeps={"paymentType": "RV"},
    breaks={"paymentType": "CP"},
)

PAYMENTS = Endpoint(
    name="payment",
    method="POST",
    path="/v1/payments",
    title="Make a payment",
    about="Pay (DB), authorise (PA) or credit (CD) in one request, or check the risk alone (RI).",
    operation="payment",
    scope="payments",
    structures=(
        ENTITY,
        s.BASIC_PAYMENT.without("overridePaymentType[brand]").demanding(ALWAYS),
        s.TEST_MODE,
        *s.REQUEST_STRUCTURES_OF_PAYMENTS,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, FIRST_PAYMENT, *c.FOR_PAYMENTS),
)

FOLLOW_UP = Endpoint(
    name="follow-up",
    method="POST",
    path="/v1/payments/{id}",
    title="Follow up on a payment",
    about="Capture (CP), refund (RF) or reverse (RV) an earlier payment; brand, means and currency come from it.",
    operation="follow-up",
    scope="payments",
    structures=(
        ENTITY,
        s.BASIC_PAYMENT.without("overridePaymentType[brand]")
        .needing(amount=C, currency=C, paymentBrand=O)
        .demanding(ALWAYS),
        s.TEST_MODE,
        *s.REQUEST_STRUCTURES_OF_FOLLOW_UPS,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, FOLLOW_UP_AMOUNT, *c.FOR_FOLLOW_UPS),
)

STATUS = Endpoint(
    name="status",
    method="GET",
    path="/v1/payments/{id}",
    title="Read a payment",
    about="The payment object as it stands. A declined payment answers 400 with the same object.",
    operation="status",
    scope="read",
    structures=(ENTITY,),
)

_PAYMENT_ONLY = (
    "taxAmount", "discountAmount", "integrity", "overridePaymentType[brand]", "descriptor", "merchantInvoiceId",
    "merchantMemo", "transactionCategory", "sequence", "numberOfCaptures", "promotionCode", "locale",
    "transactionPurposeCode", "integrationType", "transactionBai", "transactionTti", "transactionProcessingCode",
    "lifecycleId", "referenceUuid",
)  # fmt: skip


def _only_3d(sent: Sent) -> Iterator[Breach]:
    if sent.get("paymentType") not in (None, "3D"):
        yield "paymentType", "must be 3D, or left out: no money moves here"


ONLY_3D = condition(
    "paymentType is 3D, or left out", ("paymentType",), _only_3d,
    keeps={"paymentType": "3D"}, breaks={"paymentType": "DB"},
)  # fmt: skip

AUTHENTICATE = Endpoint(
    name="three-d-secure",
    method="POST",
    path="/v1/threeDSecure",
    title="Authenticate a cardholder",
    about="3-D Secure without a payment: the proof can be sent with a payment later, to whichever acquirer.",
    operation="payment",
    scope="payments",
    structures=(
        ENTITY,
        s.BASIC_PAYMENT.without(*_PAYMENT_ONLY).needing(paymentType=O, merchantTransactionId=O).demanding(ALWAYS),
        s.TEST_MODE,
        s.CARD.demanding(ALWAYS),
        s.CUSTOMER,
        s.BILLING,
        s.SHIPPING,
        s.MERCHANT,
        s.THREE_D_SECURE[0].without("disable"),
        s.EXEMPTION,
        s.CUSTOM_PARAMETERS,
        s.SCHEME_DATA,
        s.ASYNCHRONOUS,
        s.RISK,
        s.STANDING_INSTRUCTION,
    ),
    rules=(NO_TEST_MODE_IN_LIVE, ONLY_3D, *c.FOR_AUTHENTICATIONS),
)

READ_AUTHENTICATION = Endpoint(
    name="read-three-d-secure",
    method="GET",
    path="/v1/threeDSecure/{id}",
    title="Read an authentication",
    about="The authentication as it stands, with its proof once there is one.",
    operation="status",
    scope="read",
    structures=(ENTITY,),
)

_MOMENT = literal(
    "ISO 8601",
    r"(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:Z|[+-][0-9]{2}:?[0-9]{2})",
    expects="must be a moment of ISO 8601 with its zone",
    example="2027-01-01T00:00:00Z",
    bad="tomorrow",
)
TEST_CLOCK = structure(
    "Test clock", "test environment", "",
    ("advance", number_between(1, 1_600_000_000, words="seconds"), C, "How far to move the merchant's clock forward."),
    ("now", _MOMENT, C, "The moment to move the clock to; it may not go back behind the present."),
)  # fmt: skip


def _advance_or_now(sent: Sent) -> Iterator[Breach]:
    if ("advance" in sent) == ("now" in sent):
        for name in ("advance", "now"):
            yield name, "send exactly one of advance and now"


MOVE_CLOCK = Endpoint(
    name="move-clock",
    method="POST",
    path="/v1/test/clock",
    title="Move the clock",
    about="Move the merchant's clock forward: everything that waits for a time follows it.",
    operation="test",
    scope="test",
    structures=(ENTITY, TEST_CLOCK),
    rules=(
        condition(
            "Exactly one of advance and now is sent", ("advance", "now"), _advance_or_now,
            keeps={"advance": "60"}, breaks={"advance": "60", "now": "2027-01-01T00:00:00Z"},
        ),
    ),
    test_only=True,
)  # fmt: skip
READ_CLOCK = Endpoint(
    name="read-clock", method="GET", path="/v1/test/clock", title="Read the clock",
    about="The merchant's time and how far it is from the real one.",
    operation="test", scope="test", structures=(ENTITY,), test_only=True,
)  # fmt: skip
RESET_CLOCK = Endpoint(
    name="reset-clock", method="DELETE", path="/v1/test/clock", title="Reset the clock",
    about="Put the merchant's clock back to the real time.",
    operation="test", scope="test", structures=(ENTITY,), test_only=True,
)  # fmt: skip
MESSAGES = Endpoint(
    name="acquirer-messages", method="GET", path="/v1/test/acquirer/messages", title="Read acquirer messages",
    about="What was sent on for a payment and what came back, masked.",
    operation="test", scope="test", test_only=True,
    structures=(
        ENTITY,
        structure(
            "Acquirer messages", "test environment", "",
            ("id", literal("AN 32", "[0-9A-Za-z]{32}", expects="must be a payment id of 32 letters and digits",
                           example="8ac7a4a19ad9a7a3019ada4b7c6d5e4f", bad="42"), R, "The payment."),
            demand=ALWAYS,
        ),
    ),
)  # fmt: skip

_FORMATS = {"wallet1": ("ec_v1", "rsa_v1"), "wallet2": ("ecv2", "ecv1"), "wallet3": ("jwe",)}


def _format_of_another_wallet(sent: Sent) -> Iterator[Breach]:
    formats = _FORMATS.get(sent.get("wallet") or "", ())
    if formats and (chosen := sent.get("format")) is not None and chosen not in formats:
        yield "format", f"is no format of {sent['wallet']}, which has {', '.join(formats)}"


TEST_TOKEN = structure(
    "Test token of a wallet", "test environment", "",
    ("wallet", one_of(*_FORMATS), R, "The wallet that the token is for."),
    ("format", one_of(*(name for names in _FORMATS.values() for name in names)), O, "The wallet's first one, if none."),
    ("amount", AMOUNT, R, "What the shopper agreed to pay."),
    ("currency", worded("A3 ISO 4217", CURRENCY), R),
    ("number", N(12, 19).eg("4200000000000000"), O, "The card in the token; see the test data.",
     {"echo": Echo.NEVER, "default": "4200000000000000"}),
    ("proof", one_of("cryptogram", "none"), O, "none: wallet2's PAN_ONLY, the card's own number without a proof."),
    ("defect", one_of("expired", "tampered"), O, "A token that must be refused."),
    demand=ALWAYS,
)  # fmt: skip
MAKE_TOKEN = Endpoint(
    name="make-wallet-token", method="POST", path="/v1/test/wallet-token", title="Make a wallet token",
    about="A token as the shopper's device makes it, encrypted for a test key of this channel. It pays once, and soon.",
    operation="test", scope="test", structures=(ENTITY, TEST_TOKEN), test_only=True,
    rules=(
        *c.CURRENCY_FITS,
        condition(
            "format is one of the wallet's", ("format", "wallet"), _format_of_another_wallet,
            keeps={"wallet": "wallet1", "format": "rsa_v1"}, breaks={"wallet": "wallet1", "format": "jwe"},
        ),
    ),
)  # fmt: skip

TRANSFER = Endpoint(
    name="decide-transfer", method="POST", path="/v1/test/transfers/{id}", title="Let money arrive",
    about="What the simulated bank reports of a prepayment, or of a debit that is confirmed later: it arrived, or it "
    "was sent back.",
    operation="test", scope="test", test_only=True,
    structures=(
        ENTITY,
        structure(
            "Transfer", "test environment", "",
            ("outcome", one_of("arrived", "returned"), R, "The answer is the payment as it then stands."),
            demand=ALWAYS,
        ),
    ),
)  # fmt: skip

ENDPOINTS: tuple[Endpoint, ...] = (
    PAYMENTS, FOLLOW_UP, STATUS, AUTHENTICATE, READ_AUTHENTICATION, READ_CLOCK, MOVE_CLOCK, RESET_CLOCK, MESSAGES,
    TRANSFER, MAKE_TOKEN,
)  # fmt: skip
