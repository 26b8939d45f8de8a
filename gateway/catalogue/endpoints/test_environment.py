"""The test environment's own endpoints: the clock, acquirer messages, transfers, wallet tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gateway.catalogue import conditions as c
from gateway.catalogue.endpoints.endpoint import REQUIRED_ENTITY, Endpoint
from gateway.catalogue.formats import AMOUNT, CURRENCY, N, literal, number_between, one_of, with_words
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, C, Echo, O, R, structure

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


def _advance_or_now(sent: RuleInput) -> Iterator[RuleBreach]:
    if ("advance" in sent) == ("now" in sent):
        for name in ("advance", "now"):
            yield name, "send exactly one of advance and now"


MOVE_CLOCK_ENDPOINT = Endpoint(
    name="move-clock",
    method="POST",
    path="/v1/test/clock",
    title="Move the clock",
    about="Move the merchant's clock forward. What falls due on the way is done first, in the order of its time: the "
    "answer tells what ran, or, with complete=false, how far it came in 20 seconds; then send the rest.",
    operation="test",
    scope="test",
    structures=(REQUIRED_ENTITY, TEST_CLOCK),
    answers=(200, 400, 401, 403, 404, 409, 429),
    rules=(
        build_rule(
            "Exactly one of advance and now is sent", ("advance", "now"), _advance_or_now,
            keeps={"advance": "60"}, breaks={"advance": "60", "now": "2027-01-01T00:00:00Z"},
        ),
    ),
    test_only=True,
)  # fmt: skip
READ_CLOCK_ENDPOINT = Endpoint(
    name="read-clock", method="GET", path="/v1/test/clock", title="Read the clock",
    about="The merchant's time and how far it is from the real one.",
    operation="test", scope="test", structures=(REQUIRED_ENTITY,), test_only=True,
)  # fmt: skip
RESET_CLOCK_ENDPOINT = Endpoint(
    name="reset-clock",
    method="DELETE",
    path="/v1/test/clock",
    title="Reset the clock",
    about="Put the merchant's clock back to the real time. What is due later by then stays due at its time.",
    operation="test",
    scope="test",
    structures=(REQUIRED_ENTITY,),
    test_only=True,
    answers=(200, 400, 401, 403, 404, 409, 429),
)
_PAYMENT: Final = (
    "id",
    literal(
        "AN 32",
        "[0-9A-Za-z]{32}",
        expects="must be a payment id of 32 letters and digits",
        example="8ac7a4a19ad9a7a3019ada4b7c6d5e4f",
        bad="42",
    ),
    R,
    "The payment.",
)
TEST_MAILS_ENDPOINT = Endpoint(
    name="mails", method="GET", path="/v1/test/mails", title="Read mails",
    about="The mails that a payment's shopper was sent, or will be: the mandate of a direct debit.",
    operation="test", scope="test", test_only=True,
    structures=(REQUIRED_ENTITY, structure("Mails", "test environment", "", _PAYMENT, demand=ALWAYS)),
)  # fmt: skip
ACQUIRER_MESSAGES_ENDPOINT = Endpoint(
    name="acquirer-messages", method="GET", path="/v1/test/acquirer/messages", title="Read acquirer messages",
    about="What was sent on for a payment and what came back, masked.",
    operation="test", scope="test", test_only=True,
    structures=(
        REQUIRED_ENTITY,
        structure(
            "Acquirer messages", "test environment", "",
            _PAYMENT,
            demand=ALWAYS,
        ),
    ),
)  # fmt: skip

OPEN_INSPECTOR_ENDPOINT = Endpoint(
    name="open-inspector", method="POST", path="/v1/test/webhooks", title="Open the webhook inspector",
    about="Keep webhooks of this channel, or of all channels of this merchant, to be read from here: for a developer's "
    "machine, which the gateway cannot call. The secret is the one they are signed or encrypted with.",
    operation="test", scope="test", test_only=True,
    structures=(
        REQUIRED_ENTITY,
        structure(
            "Webhook inspector", "test environment", "",
            ("mode", one_of("signed", "encrypted"), O, "How webhooks are made.", {"default": "signed"}),
        ),
    ),
)  # fmt: skip
READ_WEBHOOKS_ENDPOINT = Endpoint(
    name="read-webhooks", method="GET", path="/v1/test/webhooks", title="Read webhooks",
    about="What the inspector has kept, the earliest first, exactly as it would have been sent: at most 50 messages.",
    operation="test", scope="test", test_only=True,
    structures=(
        REQUIRED_ENTITY,
        structure(
            "Kept webhooks", "test environment", "",
            ("mode", one_of("signed", "encrypted"), O, "Of which inspector.", {"default": "signed"}),
            ("after", number_between(0, 10**18, words="a number"), O, "Messages above this number; else the newest."),
        ),
    ),
)  # fmt: skip
READ_REQUESTS_ENDPOINT = Endpoint(
    name="read-requests", method="GET", path="/v1/test/requests", title="Read the request log",
    about="The newest 100 requests of this entityId, the newest first, without those that read webhooks and this log.",
    operation="test", scope="test", test_only=True, structures=(REQUIRED_ENTITY,),
)  # fmt: skip

_FORMATS = {"wallet1": ("ec_v1", "rsa_v1"), "wallet2": ("ecv2", "ecv1"), "wallet3": ("jwe",)}


def _format_of_another_wallet(sent: RuleInput) -> Iterator[RuleBreach]:
    formats = _FORMATS.get(sent.get("wallet") or "", ())
    if formats and (chosen := sent.get("format")) is not None and chosen not in formats:
        yield "format", f"is no format of {sent['wallet']}, which has {', '.join(formats)}"


TEST_TOKEN = structure(
    "Test token of a wallet", "test environment", "",
    ("wallet", one_of(*_FORMATS), R, "The wallet that the token is for."),
    ("format", one_of(*(name for names in _FORMATS.values() for name in names)), O, "The wallet's first one, if none."),
    ("amount", AMOUNT, R, "What the shopper agreed to pay."),
    ("currency", with_words("A3 ISO 4217", CURRENCY), R),
    ("number", N(12, 19).eg("4200000000000000"), O, "The card in the token; see the test data.",
     {"echo": Echo.NEVER, "default": "4200000000000000"}),
    ("proof", one_of("cryptogram", "none"), O, "none: wallet2's PAN_ONLY, the card's own number without a proof."),
    ("defect", one_of("expired", "tampered"), O, "A token that must be refused."),
    demand=ALWAYS,
)  # fmt: skip
MAKE_WALLET_TOKEN_ENDPOINT = Endpoint(
    name="make-wallet-token", method="POST", path="/v1/test/wallet-token", title="Make a wallet token",
    about="A token as the shopper's device makes it, encrypted for a test key of this channel. It pays once, and soon.",
    operation="test", scope="test", structures=(REQUIRED_ENTITY, TEST_TOKEN), test_only=True,
    rules=(
        *c.CURRENCY_FITS,
        build_rule(
            "format is one of the wallet's", ("format", "wallet"), _format_of_another_wallet,
            keeps={"wallet": "wallet1", "format": "rsa_v1"}, breaks={"wallet": "wallet1", "format": "jwe"},
        ),
    ),
)  # fmt: skip

CHANGE_NETWORK_TOKEN_ENDPOINT = Endpoint(
    name="change-network-token", method="POST", path="/v1/test/network-tokens/{id}", title="Change a network token",
    about="What the simulated card network tells of the token of a stored card: it is suspended, works again, has a "
    "later expiry date, or is deleted. The id is the registration's.",
    operation="test", scope="test", test_only=True,
    structures=(
        REQUIRED_ENTITY,
        structure(
            "Network token", "test environment", "",
            ("event", one_of("SUSPENDED", "RESUMED", "REPLACED", "DELETED"), R,
             "The answer is the registration as it then stands. REPLACED: the token is valid three years longer."),
            demand=ALWAYS,
        ),
    ),
)  # fmt: skip

DECIDE_TRANSFER_ENDPOINT = Endpoint(
    name="decide-transfer", method="POST", path="/v1/test/transfers/{id}", title="Let money arrive",
    about="What the simulated bank reports of a prepayment, or of a debit that is confirmed later: it arrived, or it "
    "was sent back.",
    operation="test", scope="test", test_only=True,
    structures=(
        REQUIRED_ENTITY,
        structure(
            "Transfer", "test environment", "",
            ("outcome", one_of("arrived", "returned"), R, "The answer is the payment as it then stands."),
            demand=ALWAYS,
        ),
    ),
)  # fmt: skip
