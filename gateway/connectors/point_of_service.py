"""Point of service of a card payment: who initiates it, whether the card is on file, how the order came in.

All connectors take it from :func:`build_point_of_service`, so that they mark the same payment alike. A follow-up has
the point of service of the payment that it follows: clearing and reversals repeat what the authorization said.
Source: Part B, Card on file; Visa Stored Credential Transaction Framework; Mastercard Transaction Processing Rules,
"Cardholder-Initiated Transactions (CITs)" and "Merchant-Initiated Transactions (MITs)"; docs/decisions/0067.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from gateway.catalogue.conditions.request_facts import MAIL_OR_TELEPHONE, is_merchant_initiated
from gateway.catalogue.rules import RuleInput
from gateway.connectors.capabilities import TRANSFER_PARAMETER, TRANSFERS
from gateway.core.brands import MASTERCARD_BRANDS

UNSCHEDULED: Final = "UNSCHEDULED"
REPEATED_PARAMETERS: Final = (
    TRANSFER_PARAMETER, "transactionBai", "transactionTti", "lifecycleId",
    "merchant.payFacId", "merchant.isoId", "merchant.submerchantId", "merchant.marketplaceId",
)  # fmt: skip
"""Parameters that follow-ups repeat of their payment: what kind of payment it is, and for whom it was taken."""

EXEMPTION_BY_FLAG: Final[Mapping[str, str]] = MappingProxyType(
    {"01": "LOW_VALUE", "02": "LOW_RISK", "03": "TRUSTED_MERCHANT", "04": "SECURE_CORPORATE"}
)
"""threeDSecure.exemptionFlag → the exemption of the RTS on SCA (EU 2018/389, articles 16, 18, 13, 17). The
specification gives the four values no meaning: docs/decisions/0067."""
EXEMPTION_BY_CHALLENGE: Final[Mapping[str, str]] = MappingProxyType(
    {"05": "LOW_RISK", "07": "DELEGATED", "08": "TRUSTED_MERCHANT"}
)
"""threeDSecure.challengeIndicator → the exemption that it asks for, where no flag is sent. Source: EMV 3-D Secure 2.2,
threeDSRequestorChallengeInd: 05 no challenge, risk analysis performed; 07 authentication performed; 08 trust list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOfService:
    """Who initiates a payment, and whether its card is on file.

    - ``merchant_initiated``: the cardholder takes no part.
    - ``stored``: the card is on file.
    - ``stores``: this payment puts it there, or makes an agreement for later ones.
    - ``reason``: standingInstruction.recurringType or type.
    - ``practice``: its industryPractice.
    - ``order``: MO or TO for a mail or telephone order.
    - ``token``: paid with a network token and its cryptogram.
    - ``eci``: of an authentication.
    - ``exemption``: a value of EXEMPTION_BY_FLAG or EXEMPTION_BY_CHALLENGE.
    - ``repeated``: those of REPEATED_PARAMETERS that were sent.
    - ``link``: the id by which Mastercard links what follows the payment to it (AcquirerReply.transaction_link).
    - ``related_link``: of a rebill, that of the payment that it charges again.
    """

    merchant_initiated: bool = False
    stored: bool = False
    stores: bool = False
    reason: str = ""
    practice: str = ""
    order: str = ""
    token: bool = False
    eci: str = ""
    exemption: str = ""
    repeated: Mapping[str, str] = field(default_factory=dict, hash=False)
    link: str = ""
    related_link: str = ""

    @property
    def transfer(self) -> str:
        """FUNDING_TRANSFER or PAYOUT_TRANSFER; '' for a purchase."""
        code = self.repeated.get(TRANSFER_PARAMETER, "")
        return code if code in TRANSFERS else ""

    @property
    def marked(self) -> bool:
        """Whether the schemes want to know that a stored credential is used or made."""
        return self.stored or self.stores


def is_initiated_by_merchant(parameters: Mapping[str, str], *, follows: bool = False) -> bool:
    """Whether the cardholder takes no part. ``follows``: it authorizes anew on an earlier payment (increment, renewal,
    rebill), which is the merchant's unless ``source`` says that the cardholder asked for it."""
    if follows:
        return parameters.get("standingInstruction.source") != "CIT"
    return is_merchant_initiated(RuleInput(parameters))


def build_point_of_service(
    parameters: Mapping[str, str],
    *,
    stored: bool = False,
    stores: bool = False,
    token: bool = False,
    brand: str = "",
) -> PointOfService:
    """The point of service of a first payment. ``parameters``: by full name; ``stored``: it is made with a
    registration; ``stores``: it makes one; ``token``: its means is a network token; ``brand``: its network's."""
    instruction = {
        name: parameters.get(f"standingInstruction.{name}", "")
        for name in ("mode", "type", "recurringType", "industryPractice")
    }
    merchant = is_initiated_by_merchant(parameters)
    category = parameters.get("transactionCategory", "")
    order = category if category in MAIL_OR_TELEPHONE else ""
    return PointOfService(
        merchant_initiated=merchant,
        stored=stored or merchant or instruction["mode"] == "REPEATED",
        stores=not merchant and (stores or instruction["mode"] == "INITIAL"),
        reason=instruction["recurringType"] or instruction["type"],
        practice=instruction["industryPractice"],
        order=order,
        token=token and not merchant,
        eci=parameters.get("threeDSecure.eci", ""),
        # Neither wants a strong authentication: nothing is to be exempted (EU 2015/2366, article 97, recital 95).
        exemption="" if merchant or order else _resolve_exemption(parameters, brand),
        repeated={name: parameters[name] for name in REPEATED_PARAMETERS if name in parameters},
    )


def continue_point_of_service(
    original: PointOfService, practice: str, parameters: Mapping[str, str] = MappingProxyType({})
) -> PointOfService:
    """The point of service of a payment that the merchant makes on an earlier one of the chain: an increment or renewal
    (``practice``) or, without one, a rebill. ``parameters``: its own, by full name."""
    return replace(
        original,
        merchant_initiated=is_initiated_by_merchant(parameters, follows=True),
        stored=True,
        stores=False,
        reason="" if practice else UNSCHEDULED,
        practice=practice,
        order="",
        token=False,
        eci="",
        exemption="",
    )


_AUTHENTICATED_STATUSES: Final = frozenset({"Y", "A"})
_AUTHENTICATED_ECI: Final = frozenset({"05", "02", "01"})
"""ECIs that show an authentication where the proof names no status."""
_ATTEMPT_ECI: Final = "06"
"""An attempt, which shifts the liability as an authentication does; but at Mastercard an accepted exemption."""


def _resolve_exemption(parameters: Mapping[str, str], brand: str) -> str:
    """The exemption that the acquirer is sent: the one asked for, but none where the issuer has authenticated instead
    of accepting it. Claimed together with an authentication, it would give up the shift of liability."""
    status, eci = parameters.get("threeDSecure.authenticationStatus", ""), parameters.get("threeDSecure.eci", "")
    is_attempt = eci == _ATTEMPT_ECI and brand != "" and brand not in MASTERCARD_BRANDS
    if status in _AUTHENTICATED_STATUSES or (not status and (eci in _AUTHENTICATED_ECI or is_attempt)):
        return ""
    flag = EXEMPTION_BY_FLAG.get(parameters.get("threeDSecure.exemptionFlag", ""), "")
    return flag or EXEMPTION_BY_CHALLENGE.get(parameters.get("threeDSecure.challengeIndicator", ""), "")
