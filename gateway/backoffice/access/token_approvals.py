"""Approval (four eyes) of access tokens: a token that moves money needs one, unless its maker has no limits.

Otherwise a token would be a way around its maker's limits, or around a role that moves no money. Source:
docs/decisions/0053.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from gateway.access import audit_log, permissions, tokens
from gateway.access.permissions import RowOwner
from gateway.backoffice.access.independence import NotIndependentError, is_unlimited_person, list_common_actors
from gateway.models import AccessToken

TOKEN_ISSUE_PERMISSION: Final = "gateway.issue_accesstoken"  # noqa: S105 - a name or a mask, no password
MONEY_MOVING_SCOPE: Final = "payments"


def needs_token_approval(user: User, place: RowOwner, scopes: Sequence[str]) -> bool:
    """Whether a token with these scopes, made by ``user``, waits for an approval."""
    return MONEY_MOVING_SCOPE in scopes and not is_unlimited_person(user, place)


def place_from_token(token: AccessToken) -> RowOwner:
    """The merchant and channel that a token belongs to."""
    return RowOwner(merchant=token.merchant_id, channel=token.channel_id)


def is_awaiting_approval(token: AccessToken) -> bool:
    """Whether the token waits for an approval."""
    return token.approved_at is None and token.revoked_at is None


def explain_approval_refusal(token: AccessToken, by: User) -> str:
    """Why ``by`` cannot approve the token; "" if they can."""
    place = place_from_token(token)
    if token.requested_by_id == by.pk:
        return _("You asked for this token yourself: somebody else has to approve it.")
    if not permissions.has_permission(by, TOKEN_ISSUE_PERMISSION, place) or not is_unlimited_person(by, place):
        return _("Only somebody who issues tokens and moves money here without a limit can approve it.")
    if token.requested_by_id is not None and (names := list_common_actors(token.requested_by_id, by.pk, place)):
        words = _("%s made or changed the user who asked or yours, so this would not be a second person.")
        return words % ", ".join(names)
    return ""


def approve_waiting_token(token: AccessToken, *, by: User, actor: audit_log.Actor) -> bool:
    """Approve the token; False if it was not waiting any more. Raises NotIndependentError."""
    if why := explain_approval_refusal(token, by):
        raise NotIndependentError(why)
    return tokens.approve_token(token, by=actor)
