"""Four eyes for access tokens: a token that moves money is issued alone only by who may move any amount alone.

Else it would be a way around its maker's limits, or around a role that moves no money. Source: docs/decisions/0053.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from gateway import audit, rights, tokens
from gateway.desk.independence import NotIndependentError, in_common, is_unlimited_person
from gateway.models import AccessToken
from gateway.rights import Place

ISSUE: Final = "gateway.issue_accesstoken"
MOVES_MONEY: Final = "payments"


def needs_approval(user: User, place: Place, scopes: Sequence[str]) -> bool:
    """Whether a token of these scopes, made by ``user``, waits for a second person."""
    return MOVES_MONEY in scopes and not is_unlimited_person(user, place)


def place_of(token: AccessToken) -> Place:
    return Place(merchant=token.merchant_id, channel=token.channel_id)


def waits(token: AccessToken) -> bool:
    return token.approved_at is None and token.revoked_at is None


def why_not_approve(token: AccessToken, by: User) -> str:
    """Why ``by`` cannot approve the token, for a person; "" when they can."""
    place = place_of(token)
    if token.requested_by_id == by.pk:
        return _("You asked for this token yourself: somebody else has to approve it.")
    if not rights.allowed(by, ISSUE, place) or not is_unlimited_person(by, place):
        return _("Only somebody who issues tokens and moves money here without a limit can approve it.")
    if token.requested_by_id is not None and (names := in_common(token.requested_by_id, by.pk, place)):
        words = _("%s made or changed the user who asked or yours, so this would not be a second person.")
        return words % ", ".join(names)
    return ""


def approve(token: AccessToken, *, by: User, actor: audit.Actor) -> bool:
    """Let the token work from now on; False when it no longer waited. Raises NotIndependentError."""
    if why := why_not_approve(token, by):
        raise NotIndependentError(why)
    return tokens.approve(token, by=actor)
