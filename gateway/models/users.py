"""Users of the back office: grants on the entity tree, sealed factor secrets, sign-ins. Functions are in
gateway.access.permissions, .signin.

Source: Part A, Authentication, 2; docs/decisions/0024.
"""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from gateway.core import identifiers
from gateway.models.entities import Channel, Division, Merchant, Psp

ENTITY_LEVELS: Final = ("psp", "division", "merchant", "channel")
"""From the top of the entity tree down: the nodes a grant may be on."""


class Role(models.TextChoices):
    """A user's role; gateway.access.permissions lists the permissions of each."""

    PSP = "psp", _("PSP staff")
    MANAGER = "manager", _("manager")
    CLERK = "clerk", _("clerk")
    DEVELOPER = "developer", _("developer")
    AUDITOR = "auditor", _("auditor")


_ONE_NODE = models.Q(
    *(models.Q(**{f"{name}__isnull": name != node for name in ENTITY_LEVELS}) for node in ENTITY_LEVELS),
    _connector=models.Q.OR,
)


class Grant(models.Model):
    """One role of one user on one node of the entity tree, and on everything below it.

    ``four_eyes_above``: the amount that this user may refund, capture or reverse by hand in one step, in the payment's
    currency; above it a second person has to approve. Empty: no limit. ``four_eyes_day``: the same for all that this
    user moves in one merchant and currency within 24 hours.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants")
    role = models.CharField(_("role"), max_length=9, choices=Role)
    psp = models.ForeignKey(Psp, on_delete=models.PROTECT, null=True, blank=True, related_name="+", verbose_name="PSP")
    division = models.ForeignKey(Division, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    merchant = models.ForeignKey(Merchant, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    four_eyes_above = models.DecimalField(
        _("second person above"),
        max_digits=14,
        decimal_places=2,
        null=True,
        blank=True,
        help_text=_("Amount of one capture, refund or reversal; above it somebody else approves. Empty: no limit."),
    )
    four_eyes_day = models.DecimalField(
        _("second person above, in 24 hours"),
        max_digits=14,
        decimal_places=2,
        null=True,
        blank=True,
        help_text=_("What this person moves by hand in 24 hours, all in all in one merchant and currency."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("grant")
        verbose_name_plural = _("grants")
        constraints = [
            models.CheckConstraint(condition=models.Q(role__in=Role.values), name="grant_role_known"),
            models.CheckConstraint(condition=_ONE_NODE, name="grant_one_node"),
            models.CheckConstraint(
                condition=~models.Q(role="psp") | models.Q(psp__isnull=False), name="grant_psp_staff_at_psp"
            ),
            models.CheckConstraint(
                condition=models.Q(four_eyes_above__isnull=True) | models.Q(four_eyes_above__gte=0),
                name="grant_four_eyes_not_negative",
            ),
            models.CheckConstraint(
                condition=models.Q(four_eyes_day__isnull=True) | models.Q(four_eyes_day__gte=0),
                name="grant_four_eyes_day_not_negative",
            ),
            models.UniqueConstraint(
                fields=["user", "role", "psp", "division", "merchant", "channel"],
                name="grant_once",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_role_display()}: {self.node}"

    @property
    def node(self) -> Psp | Division | Merchant | Channel:
        """The node that the grant is on."""
        node = self.psp or self.division or self.merchant or self.channel
        assert node is not None
        return node


class UserPreference(models.Model):
    """How one user wants the back office to look. ``time_zone``: a name of the IANA database, in which times are shown
    and read; '' for UTC. ``columns``: list → names of its columns, in their order, where they are not the usual ones.
    ``page_keys``: single letters are keys of a page (WCAG 2.1.4)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="preference"
    )
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True, default="")
    columns = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    page_keys = models.BooleanField(_("single letters are keys of a page"), default=True, db_default=True)

    class Meta:
        verbose_name = _("preference")
        verbose_name_plural = _("preferences")

    def __str__(self) -> str:
        return self.time_zone


class SavedView(models.Model):
    """A list of the back office as a user wants to see it again: search, filters, columns and order under a name.

    ``page``: the label of the list's model; ``query``: the parameters of its address.
    ``shared``: others see it, whose rights reach at least as far as its owner's did (``scope``) when it was saved.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    page = models.CharField(max_length=64)
    name = models.CharField(_("name"), max_length=60)
    query = models.JSONField(default=dict)
    shared = models.BooleanField(default=False)
    scope = models.JSONField(default=dict)
    saved_at = models.DateTimeField()

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        constraints = [models.UniqueConstraint(fields=["owner", "page", "name"], name="saved_view_once")]
        indexes = [models.Index(fields=["page"], name="saved_view_shared", condition=models.Q(shared=True))]

    def __str__(self) -> str:
        return self.name


class FactorSecret(models.Model):
    """A secret of a second factor (allauth.mfa.models.Authenticator), sealed for this row: the key of an app, the seed
    of recovery codes. The authenticator holds this row's id in place of the secret."""

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    sealed = models.BinaryField(editable=False)

    class Meta:
        verbose_name = _("secret of a second factor")
        verbose_name_plural = _("secrets of second factors")


class UsedPassword(models.Model):
    """A current or former password of a user, as Django hashed it; the newest ones must not be reused."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="used_passwords")
    hashed = models.CharField(max_length=255, editable=False)
    at = models.DateTimeField(editable=False)

    class Meta:
        indexes = [models.Index(fields=["user", "-at"], name="used_password_user_time")]


class SignIn(models.Model):
    """One sign-in and the session it began: the session refers to this row.

    ``ended_at``: when the session ended, ``ended_by``: by whom or what; it is refused from then on. Real time.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_ins")
    at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    ip = models.GenericIPAddressField(null=True)
    agent = models.CharField(max_length=200, default="")
    second_factor = models.BooleanField(default=False)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, default="")

    class Meta:
        verbose_name = _("sign-in")
        verbose_name_plural = _("sign-ins")
        ordering = ["-at"]
        indexes = [models.Index(fields=["user", "-at"], name="sign_in_user_time")]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.ip or ''}"


class UserHandling(models.Model):
    """One user of the back office created another one, or gave them a password link, a factor or permissions: the first
    may be acting as the second.

    One row per pair; ``at``: the last time. ``confirmed_by``: an independent third person, who knows that ``user`` and
    ``by`` are different people; handling the user again removes the confirmation. Functions:
    gateway.backoffice.access.independence. Real time. Source: docs/decisions/0053.
    """

    id = models.UUIDField(primary_key=True, default=identifiers.row_id, editable=False)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    action = models.CharField(max_length=32)
    at = models.DateTimeField()
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "by"], name="user_handling_once"),
            models.CheckConstraint(condition=~models.Q(by=models.F("user")), name="user_handling_of_another"),
            models.CheckConstraint(
                condition=models.Q(confirmed_by__isnull=True)
                | (~models.Q(confirmed_by=models.F("by")) & ~models.Q(confirmed_by=models.F("user"))),
                name="user_handling_confirmed_by_a_third",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.by_id} → {self.user_id}: {self.action}"
