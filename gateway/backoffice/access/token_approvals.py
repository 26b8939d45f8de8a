"""Approval (four eyes) of access tokens: a token that moves money needs one, unless its maker has no limits.

Otherwise a token would be a way around its maker's limits, or around a role that moves no money. Source:
docs/decisions/0053.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access import audit_log, permissions, tokens
from gateway.access.permissions import RowOwner
from gateway.backoffice.access.independence import NotIndependentError, is_unlimited_person, list_common_actors
from gateway.backoffice.follow_ups import second_person
from gateway.backoffice.follow_ups.second_person import MAX_SHOWN_OF_A_KIND, WaitingRequest
from gateway.core import clock
from gateway.models import AccessToken

TOKEN_ISSUE_PERMISSION: Final = "gateway.issue_accesstoken"  # noqa: S105 - a name or a mask, no password
MONEY_MOVING_SCOPE: Final = "payments"
MAX_JUDGED_TOKENS: Final = 500
"""Waiting tokens that a list looks through for those its reader may approve."""


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


def list_waiting_tokens(user: User) -> list[AccessToken]:
    """Tokens that wait for an approval and that ``user`` can approve, the oldest first; at most MAX_SHOWN_OF_A_KIND of
    the MAX_JUDGED_TOKENS oldest."""
    scope = permissions.find_access_scope(user, TOKEN_ISSUE_PERMISSION)
    if not scope:
        return []
    rows = AccessToken.objects.filter(scope.where("merchant", "channel"), approved_at=None, revoked_at=None, lent=False)
    rows = rows.exclude(ends_at__lte=clock.real_now()).exclude(requested_by=user.pk)
    refused: dict[tuple[Any, ...], bool] = {}  # many tokens of one person at one place are judged once
    found = []
    for token in rows.select_related("merchant", "requested_by").order_by("created_at")[:MAX_JUDGED_TOKENS]:
        key = (token.requested_by_id, token.merchant_id, token.channel_id)
        if key not in refused:
            refused[key] = bool(explain_approval_refusal(token, user))
        if not refused[key]:
            found.append(token)
        if len(found) == MAX_SHOWN_OF_A_KIND:
            break
    return found


def list_token_requests(user: User) -> list[WaitingRequest]:
    """Tokens that wait for this user's approval, as rows of the page of approvals."""
    return [
        WaitingRequest(
            kind=_("Access token"),
            subject=f"{token.name} (…{token.hint})",
            merchant=token.merchant.name,
            asked_by=token.created_by,
            asked_at=token.created_at,
            address=reverse("admin:gateway_accesstoken_change", args=[token.pk]),
        )
        for token in list_waiting_tokens(user)
    ]


second_person.register_request_source("tokens", list_token_requests)


def approve_waiting_token(token: AccessToken, *, by: User, actor: audit_log.Actor) -> bool:
    """Approve the token; False if it was not waiting any more. Raises NotIndependentError."""
    if why := explain_approval_refusal(token, by):
        raise NotIndependentError(why)
    return tokens.approve_token(token, by=actor)
