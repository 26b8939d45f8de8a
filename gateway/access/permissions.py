"""Permissions: the roles, the permissions of each, and which rows a user may see. Read-only.

A user has grants: one role on one node of the entity tree (PSP, division, merchant, channel), valid for everything
below it. Permissions are named as Django names them, ``app.verb_model``, so that the admin's own checks
(``user.has_perm``) use the table below; there is no other source, but a superuser has all permissions everywhere.
Source: Part A, Authentication, 2; docs/decisions/0024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import AbstractUser
from django.db import models

from gateway.models import Channel, Grant, Merchant, Psp, Role

_LETTERS: Final = {
    "P": Role.PSP, "M": Role.MANAGER, "C": Role.CLERK, "D": Role.DEVELOPER, "A": Role.AUDITOR,
}  # fmt: skip
_TABLE: Final[Mapping[str, str]] = {
    # Payments: a clerk's work.
    "gateway.view_payment": "PMCDA",
    "gateway.view_paymentevent": "PMCDA",
    "gateway.view_acquirerexchange": "PMCDA",
    "gateway.view_riskdecision": "PMCDA",
    "gateway.operate_payment": "PMC",
    "gateway.approve_payment": "PM",
    "gateway.export_payment": "PMCA",
    "gateway.view_approval": "PMCA",
    "gateway.view_authorizationrelease": "PMCA",
    "gateway.view_bankorder": "PMCA",
    "gateway.change_bankorder": "PM",
    "gateway.view_sepamandate": "PMCA",
    "gateway.change_sepamandate": "PM",
    "gateway.view_bankfile": "PMA",
    "gateway.change_bankfile": "PM",
    "gateway.view_bankmessage": "P",
    "gateway.view_capturebatch": "PMCA",
    "gateway.change_capturebatch": "PM",
    "gateway.view_batchedcapture": "PMCA",
    "gateway.view_registration": "PMCDA",
    "gateway.delete_registration": "PMC",
    "gateway.view_accountupdatefile": "P",
    "gateway.view_authentication": "PMCDA",
    # Erasing a shopper's data cannot be undone, and an export has all of it.
    "gateway.view_erasurerequest": "PMCA",
    "gateway.add_erasurerequest": "PMC",
    "gateway.change_erasurerequest": "PM",
    "gateway.export_erasurerequest": "PM",
    "gateway.view_riskobservation": "PMCDA",
    "checkout.view_checkout": "PMCDA",
    "checkout.view_paymentlink": "PMCDA",
    "checkout.add_paymentlink": "PMC",
    "checkout.change_paymentlink": "PMC",
    "scheduling.view_job": "PMCDA",
    "scheduling.change_job": "PMC",
    "checkout.view_resultcall": "PMCDA",
    # Settlement and disputes.
    "reporting.view_settlementfile": "PMA",
    "reporting.add_settlementfile": "PM",
    "reporting.view_sftpsource": "PMA",
    "reporting.change_sftpsource": "PM",
    "reporting.view_settlement": "PMCA",
    "reporting.view_settlementrecord": "PMCA",
    "reporting.change_settlementrecord": "PMC",
    "reporting.view_reconciliationfile": "PMCA",
    "reporting.export_reconciliationfile": "PMCA",
    "reporting.change_reconciliationfile": "PM",
    "reporting.view_monthclosing": "PMCA",
    "reporting.add_monthclosing": "PMC",
    "reporting.change_monthclosing": "PM",
    "reporting.view_sftptarget": "PMA",
    "reporting.change_sftptarget": "PM",
    "chargebacks.view_chargeback": "PMCA",
    "chargebacks.add_chargeback": "PM",
    "chargebacks.change_chargeback": "PMC",
    "chargebacks.change_contact": "PM",
    # Requests and webhooks: a developer's work.
    "gateway.view_requestlog": "PMCDA",
    "gateway.view_notification": "PMCDA",
    "gateway.view_processorevent": "PMCDA",
    "gateway.change_processorevent": "PM",
    "gateway.view_webhookendpoint": "PMDA",
    "gateway.add_webhookendpoint": "PMD",
    "gateway.change_webhookendpoint": "PMD",
    "gateway.view_webhookdelivery": "PMCDA",
    "gateway.change_webhookdelivery": "PMCD",
    "gateway.view_accesstoken": "PMDA",
    "gateway.issue_accesstoken": "PMD",
    "gateway.view_throttlewindow": "PMDA",
    "gateway.move_clock": "PMD",
    # Configuration of merchants and channels.
    "gateway.view_psp": "P",
    "gateway.change_psp": "P",
    "gateway.view_division": "P",
    "gateway.add_division": "P",
    "gateway.change_division": "P",
    "gateway.view_merchant": "PMCDA",
    "gateway.add_merchant": "P",
    "gateway.change_merchant": "PM",
    "gateway.view_channel": "PMCDA",
    "gateway.add_channel": "PM",
    "gateway.change_channel": "PM",
    "gateway.view_acquireraccount": "PMDA",
    "gateway.add_acquireraccount": "P",
    "gateway.change_acquireraccount": "P",
    "gateway.view_acquirercost": "PMDA",
    "gateway.add_acquirercost": "PM",
    "gateway.change_acquirercost": "PM",
    "gateway.view_routingrule": "PMDA",
    "gateway.add_routingrule": "PM",
    "gateway.change_routingrule": "PM",
    "gateway.delete_routingrule": "PM",
    "gateway.view_threedsecureconfiguration": "PMDA",
    "gateway.add_threedsecureconfiguration": "PM",
    "gateway.change_threedsecureconfiguration": "PM",
    # Card numbers are sent there, as to an acquirer: the address is not the merchant's to choose.
    "gateway.operate_threedsserver": "P",
    "gateway.view_walletkey": "PMDA",
    "gateway.change_walletkey": "PM",
    "gateway.view_riskset": "PMDA",
    "gateway.add_riskset": "PM",
    "gateway.change_riskset": "PM",
    "gateway.view_risktrial": "PMDA",
    "gateway.view_risklist": "PMCDA",
    "gateway.add_risklist": "PM",
    "gateway.change_risklist": "PM",
    "gateway.view_risklistentry": "PMCDA",
    "checkout.view_offerrule": "PMDA",
    "checkout.add_offerrule": "PM",
    "checkout.change_offerrule": "PM",
    "checkout.delete_offerrule": "PM",
    "checkout.view_paymentpagestyle": "PMDA",
    "checkout.add_paymentpagestyle": "PM",
    "checkout.change_paymentpagestyle": "PM",
    # What the payment page loads and sends, and what browsers blocked there (PCI DSS 6.4.3, 11.6.1).
    "checkout.view_pagesnapshot": "PMA",
    "checkout.export_pagesnapshot": "PMA",
    # Users and the audit log.
    "auth.view_user": "PMA",
    "auth.add_user": "PM",
    "auth.change_user": "PM",
    "gateway.view_grant": "PMA",
    "gateway.add_grant": "PM",
    "gateway.change_grant": "PM",
    "gateway.delete_grant": "PM",
    "gateway.view_signin": "PMA",
    "gateway.view_auditentry": "PMA",
    # The installation.
    "gateway.view_vault": "P",
    "django_celery_beat.view_periodictask": "P",
    "django_celery_beat.change_periodictask": "P",
}
ROLES_BY_PERMISSION: Final[Mapping[str, frozenset[Role]]] = MappingProxyType(
    {right: frozenset(_LETTERS[letter] for letter in letters) for right, letters in _TABLE.items()}
)
"""Permission → roles that have it."""
INSTALLATION_PERMISSIONS: Final = frozenset(
    {"gateway.view_vault", "django_celery_beat.view_periodictask", "django_celery_beat.change_periodictask"}
)
"""Permissions on objects that belong to no merchant and no PSP: a user has them everywhere or not at all. With several
PSPs, the staff of one of them must not run the installation of the others."""
PERMISSIONS_BY_ROLE: Final[Mapping[Role, frozenset[str]]] = MappingProxyType(
    {role: frozenset(right for right, roles in ROLES_BY_PERMISSION.items() if role in roles) for role in Role}
)
"""Role → its permissions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOwner:
    """The owner of a row. ``channel`` None: the merchant as a whole; both None: the installation."""

    merchant: UUID | None = None
    channel: UUID | None = None


def find_row_owner(row: models.Model) -> RowOwner:
    """The owner of ``row``, from its own columns, its payment or its channel."""
    if isinstance(row, Merchant):
        return RowOwner(merchant=row.pk)
    if isinstance(row, Channel):
        return RowOwner(merchant=row.merchant_id, channel=row.pk)
    if isinstance(row, AbstractUser):
        return _owner_of_user(row)
    columns = {field.name for field in row._meta.concrete_fields}
    if isinstance(row, Grant) and row.channel is not None:
        return find_row_owner(row.channel)
    if "merchant" in columns:
        merchant = getattr(row, "merchant_id", None) or getattr(row, "merchant", None)
        return RowOwner(merchant=merchant, channel=getattr(row, "channel_id", None))
    for name in ("channel", "payment", "list"):
        above = getattr(row, name, None) if name in columns else None
        if isinstance(above, models.Model):
            return find_row_owner(above)
    return RowOwner()


def _owner_of_user(user: models.Model) -> RowOwner:
    """A user with grants on one merchant only belongs to that merchant; any other user to the installation."""
    grants = Grant.objects.filter(user=user.pk).select_related("channel")
    merchants = {grant.channel.merchant_id if grant.channel is not None else grant.merchant_id for grant in grants}
    return RowOwner(merchant=merchants.pop() if len(merchants) == 1 else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessScope:
    """The rows a user may reach: all, or those of some merchants and some single channels.

    A row that belongs to a merchant as a whole is not reached through one of its channels.
    """

    everything: bool = False
    merchants: frozenset[UUID] = frozenset()
    channels: frozenset[UUID] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.merchants) or bool(self.channels)

    def covers(self, place: RowOwner) -> bool:
        return (
            self.everything
            or (place.merchant is not None and place.merchant in self.merchants)
            or (place.channel is not None and place.channel in self.channels)
        )

    def where(self, merchant: str = "merchant", channel: str | None = "channel") -> models.Q:
        """The filter on rows whose lookups to their merchant and channel are these. ``channel`` None: the rows belong
        to a merchant as a whole."""
        if self.everything:
            return models.Q()
        condition = models.Q(**{f"{merchant}__in": self.merchants})
        if channel is not None and self.channels:
            condition |= models.Q(**{f"{channel}__in": self.channels})
        return condition


NO_ACCESS: Final = AccessScope()
FULL_ACCESS: Final = AccessScope(everything=True)


class GrantHolder:
    """A user's grants, read once per request. Use the functions below."""

    def __init__(self, user: Any) -> None:
        self._user = user
        self._scopes: dict[frozenset[Role], AccessScope] = {}

    @cached_property
    def grants(self) -> tuple[Grant, ...]:
        if not self._user.is_active or self._user.pk is None:
            return ()
        # With the nodes, so that a grant's place and its limits need no further query.
        rows = Grant.objects.filter(user=self._user.pk).select_related("psp", "division", "merchant", "channel")
        return tuple(rows.order_by("id"))

    @cached_property
    def rights(self) -> frozenset[str]:
        return frozenset[str]().union(*(PERMISSIONS_BY_ROLE[Role(grant.role)] for grant in self.grants))

    def scope(self, roles: frozenset[Role]) -> AccessScope:
        if roles not in self._scopes:
            self._scopes[roles] = combine_grants([grant for grant in self.grants if grant.role in roles])
        return self._scopes[roles]


def _holder(user: Any) -> GrantHolder:
    if not hasattr(user, "_holder"):
        user._holder = GrantHolder(user)
    holder: GrantHolder = user._holder
    return holder


def combine_grants(grants: list[Grant]) -> AccessScope:
    """The combined scope of these grants."""
    psps = {grant.psp_id for grant in grants if grant.psp_id}
    divisions = {grant.division_id for grant in grants if grant.division_id}
    merchants = {grant.merchant_id for grant in grants if grant.merchant_id}
    channels = {grant.channel_id for grant in grants if grant.channel_id}
    if psps and not Psp.objects.exclude(pk__in=psps).exists():
        return FULL_ACCESS
    if psps or divisions:
        above = models.Q(division__in=divisions) | models.Q(division__psp__in=psps)
        merchants |= set(Merchant.objects.filter(above).values_list("pk", flat=True))
    return AccessScope(merchants=frozenset(merchants), channels=frozenset(channels))


def find_access_scope(user: Any, right: str) -> AccessScope:
    """The scope in which ``user`` has the permission ``right``."""
    if not user.is_active:
        return NO_ACCESS
    if user.is_superuser:
        return FULL_ACCESS
    scope = _holder(user).scope(ROLES_BY_PERMISSION.get(right, frozenset()))
    return NO_ACCESS if right in INSTALLATION_PERMISSIONS and not scope.everything else scope


def has_permission(user: Any, right: str, row: models.Model | RowOwner | None = None) -> bool:
    """True if ``user`` has the permission ``right`` on ``row`` (or an owner), or anywhere if no row is given."""
    scope = find_access_scope(user, right)
    if row is None:
        return bool(scope)
    return scope.covers(row if isinstance(row, RowOwner) else find_row_owner(row))


def serialize_access_scope(scope: AccessScope) -> dict[str, Any]:
    """A scope as JSON; :func:`still_has_permission` reads it."""
    return {
        "everything": scope.everything,
        "merchants": sorted(ident.hex for ident in scope.merchants),
        "channels": sorted(ident.hex for ident in scope.channels),
    }


def still_has_permission(user: Any, right: str, serialized: Mapping[str, Any]) -> bool:
    """True if ``user`` still has ``right`` on all of an earlier scope (:func:`serialize_access_scope`)."""
    now = find_access_scope(user, right)
    if now.everything or serialized["everything"]:
        return now.everything
    merchants, channels = (frozenset(UUID(text) for text in serialized[name]) for name in ("merchants", "channels"))
    own = Channel.objects.filter(pk__in=channels - now.channels, merchant__in=now.merchants)
    reached = now.channels | set(own.values_list("pk", flat=True))
    return merchants <= now.merchants and channels <= reached


def list_permitted_merchants(user: Any, right: str = "gateway.view_merchant") -> models.QuerySet[Merchant]:
    """The merchants on which ``user`` has ``right`` as a whole."""
    return Merchant.objects.filter(find_access_scope(user, right).where("pk", None))


def list_permitted_channels(user: Any, right: str = "gateway.view_channel") -> models.QuerySet[Channel]:
    """The channels on which ``user`` has ``right``."""
    return Channel.objects.filter(find_access_scope(user, right).where("merchant", "pk"))


def list_permitted_psps(user: Any, right: str) -> models.QuerySet[Psp]:
    """The PSPs on which ``user`` has ``right`` as a whole."""
    if find_access_scope(user, right).everything:
        return Psp.objects.all()
    return Psp.objects.filter(pk__in=_list_granted_psps(user, right))


def has_psp_permission(user: Any, right: str) -> bool:
    """True if ``user`` has ``right`` on a PSP as a whole."""
    return find_access_scope(user, right).everything or bool(_list_granted_psps(user, right))


def _list_granted_psps(user: Any, right: str) -> list[UUID]:
    roles = ROLES_BY_PERMISSION.get(right, frozenset())
    grants = _holder(user).grants if user.is_active else ()
    return [grant.psp_id for grant in grants if grant.psp_id and grant.role in roles]


def clear_grant_cache(user: Any) -> None:
    """Drop ``user``'s cached grants and scopes: a node of the tree was created or moved."""
    if hasattr(user, "_holder"):
        del user._holder


FOUR_EYES_LIMITS: Final = ("four_eyes_above", "four_eyes_day")
"""Columns of a grant with the amounts above which a second person is needed."""


def find_four_eyes_limits(user: Any, right: str, row: models.Model | RowOwner) -> tuple[Decimal | None, Decimal | None]:
    """The amounts above which ``user`` needs a second person for ``right`` on ``row``, in the order of
    FOUR_EYES_LIMITS; None: no limit.

    If several grants reach the row, the highest limit counts. Raises LookupError if no grant gives the permission.
    """
    if user.is_superuser:
        return None, None
    place = row if isinstance(row, RowOwner) else find_row_owner(row)
    reaching = [
        grant
        for grant in _holder(user).grants
        if grant.role in ROLES_BY_PERMISSION.get(right, frozenset()) and combine_grants([grant]).covers(place)
    ]
    if not reaching:
        raise LookupError(f"{user} has no right {right} there")
    single, day = (_highest_limit(reaching, name) for name in FOUR_EYES_LIMITS)
    return single, day


def _highest_limit(grants: Sequence[Grant], name: str) -> Decimal | None:
    limits: list[Decimal | None] = [getattr(grant, name) for grant in grants]
    return None if None in limits else max((limit for limit in limits if limit is not None), default=Decimal(0))


# --- granting -------------------------------------------------------------------------------------------------------

MONEY_PERMISSIONS: Final = ("gateway.operate_payment", "gateway.approve_payment")
"""Permissions that a grant's limits apply to."""


def _ancestor_ids(grant: Grant) -> frozenset[UUID]:
    """The ids of a grant's node and all nodes above it."""
    ids: list[UUID] = []
    node: Any = grant.node
    while node is not None:
        ids.append(node.pk)
        node = next((getattr(node, name) for name in ("merchant", "division", "psp") if hasattr(node, name)), None)
    return frozenset(ids)


def _covering_grants(giver: Any, right: str, line: frozenset[UUID]) -> list[Grant]:
    """The giver's own grants that give ``right`` on all of a node; ``line``: the node and those above it."""
    roles = ROLES_BY_PERMISSION.get(right, frozenset())
    grants = _holder(giver).grants if giver.is_active else ()
    return [grant for grant in grants if grant.role in roles and grant.node.pk in line]


def can_grant_role(giver: Any, grant: Grant) -> bool:
    """True if ``giver`` has every permission of the grant's role on everything that the grant reaches. Limits are
    checked by :func:`find_excessive_limits`."""
    if giver.is_superuser:
        return True
    line = _ancestor_ids(grant)
    return all(_covering_grants(giver, right, line) for right in PERMISSIONS_BY_ROLE[Role(grant.role)])


def max_grantable_limit(giver: Any, grant: Grant, name: str) -> Decimal | None:
    """The highest limit ``name`` of FOUR_EYES_LIMITS that ``giver`` may put into ``grant``: the giver's own limit
    there; None: no bound, or the limit does not apply."""
    if giver.is_superuser:
        return None
    line, most = _ancestor_ids(grant), []
    for right in MONEY_PERMISSIONS:
        if right in PERMISSIONS_BY_ROLE[Role(grant.role)]:
            limit = _highest_limit(_covering_grants(giver, right, line), name)
            if limit is not None:
                most.append(limit)
    return min(most) if most else None


def find_excessive_limits(giver: Any, grant: Grant) -> dict[str, Decimal]:
    """The limits of ``grant`` that exceed the giver's own there → the highest allowed."""
    excessive = {}
    for name in FOUR_EYES_LIMITS:
        most, given = max_grantable_limit(giver, grant, name), getattr(grant, name)
        if most is not None and (given is None or given > most):
            excessive[name] = most
    return excessive


def can_grant_with_limits(giver: Any, grant: Grant) -> bool:
    """True if ``giver`` could have given this grant as it is, limits included."""
    return can_grant_role(giver, grant) and not find_excessive_limits(giver, grant)


class GrantBackend(ModelBackend):
    """Authentication backend that answers ``user.has_perm`` from grants. Passwords are checked by Django."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous:
            return set()
        return {right for right in _holder(user_obj).rights if obj is None or has_permission(user_obj, right, obj)}

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        return bool(user_obj.is_active) and not user_obj.is_anonymous and has_permission(user_obj, perm, obj)

    def has_module_perms(self, user_obj: Any, app_label: str) -> bool:
        return any(right.startswith(f"{app_label}.") for right in self.get_all_permissions(user_obj))
