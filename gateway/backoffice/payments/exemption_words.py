"""Exemptions in words: what was asked for a payment, where, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.formatting import format_money
from gateway.models import ExemptionRequest
from gateway.threeds.exemption_rules import (
    LIMITS_CURRENCY,
    LOW_VALUE_LIMIT,
    Exemption,
    ExemptionStage,
)

EXEMPTION_NAMES: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        Exemption.SECURE_CORPORATE: gettext_lazy("secure corporate payment"),
        Exemption.DELEGATED: gettext_lazy("delegated authentication"),
        Exemption.LOW_RISK: gettext_lazy("low risk"),
        Exemption.LOW_VALUE: gettext_lazy("low value"),
        Exemption.TRUSTED_MERCHANT: gettext_lazy("trusted merchant"),
    }
)
STAGE_NAMES: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        ExemptionStage.AUTHENTICATION: gettext_lazy("at the authentication"),
        ExemptionStage.AUTHORIZATION: gettext_lazy("at the authorization, without 3-D Secure"),
    }
)
STAGE_REASONS: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        "set": gettext_lazy("There because the channel is set so."),
        "list": gettext_lazy("There because only the bank knows its shopper's list."),
        "no challenge": gettext_lazy("There because no challenge follows a soft decline on this channel."),
        "no claim": gettext_lazy("There because the acquirer can be told of it only after an authentication."),
        "measured": gettext_lazy("There to measure which place goes through more often."),
        "better": gettext_lazy("There because more payments went through without a challenge."),
        "explored": gettext_lazy("There as one of ten payments, so that the other place stays measured."),
    }
)
"""``StageChoice.why`` → its sentence. A test asks for every one."""


def describe_exemption(row: ExemptionRequest) -> str:
    """The title of a request for an exemption."""
    return _("Exemption asked for by rule: %(exemption)s, %(stage)s") % {
        "exemption": EXEMPTION_NAMES[row.exemption],
        "stage": STAGE_NAMES[row.stage],
    }


def explain_exemption(row: ExemptionRequest) -> list[str]:
    """Why it was asked for, one reason a line."""
    lines = []
    if row.euros is not None and row.amount_limit is not None:
        euros, limit = format_money(row.euros, LIMITS_CURRENCY), format_money(row.amount_limit, LIMITS_CURRENCY)
        lines.append(_("%(amount)s of at most %(limit)s") % {"amount": euros, "limit": limit})
    if row.payments is not None and row.amount is not None:
        lines.append(
            _("Payment %(count)s of %(most)s and %(amount)s of %(together)s since the card's last authentication")
            % {
                "count": row.payments,
                "most": LOW_VALUE_LIMIT.payments,
                "amount": format_money(row.amount, LIMITS_CURRENCY),
                "together": format_money(LOW_VALUE_LIMIT.together, LIMITS_CURRENCY),
            }
        )
    if row.score is not None:
        lines.append(_("Accepted by the risk rules with score %s") % f"{row.score:+d}")
    lines.append(str(STAGE_REASONS[row.stage_why]))
    return lines
