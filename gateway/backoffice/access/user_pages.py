"""Users and their grants. A manager manages the users of their merchants and grants no more than they have."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, Model, OuterRef, Prefetch, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.admin import StackedInline
from unfold.decorators import display

from gateway.access import permissions, signin, unused_accounts
from gateway.backoffice.access import independence
from gateway.backoffice.kit.base import (
    BackofficePage,
    OwnedPage,
    actor_from_request,
    collect_audit_values,
    name_channel_choices,
    remove_popups,
)
from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.sign_in import lockout, session
from gateway.backoffice.sign_in.account_views import build_invitation_link
from gateway.backoffice.sign_in.user_agent import describe_browser
from gateway.core.money import format_amount
from gateway.models import ENTITY_LEVELS, Channel, Division, Grant, Merchant, Role, SignIn

# Rights come from grants, not groups; the libraries' own models are shown on the pages of users and accounts.
admin.site.unregister([Group, User, Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken])
ADD_USER_PERMISSION, CHANGE_USER_PERMISSION, VIEW_USER_PERMISSION = (
    "auth.add_user",
    "auth.change_user",
    "auth.view_user",
)


def build_grants_condition(user: Any, right: str) -> Q:
    """The condition on grants within the part of the entity tree where ``user`` has the permission."""
    scope = permissions.find_access_scope(user, right)
    if scope.everything:
        return Q()
    psps = permissions.list_permitted_psps(user, right)
    return (
        Q(merchant__in=scope.merchants)
        | Q(channel__in=scope.channels)
        | Q(channel__merchant__in=scope.merchants)
        | Q(psp__in=psps)
        | Q(division__psp__in=psps)
    )


class UserForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta:
        model = User
        fields = ("username", "first_name", "last_name", "email", "is_active")
        help_texts = {
            "username": gettext_lazy("At most 150 letters, digits and @ . + - _; it stays."),
            "is_active": gettext_lazy("Only active users can sign in. Users are switched off, never deleted."),
        }

    def clean_username(self) -> str:
        """Refuse a name that differs from another only in case: readers of the audit log would take the two for one."""
        name = str(self.cleaned_data["username"])
        if User.objects.filter(username__iexact=name).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(_("A user of this name is there already, or was."))
        return name


class GrantForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """One grant: a role on an entity, with clerk limits."""

    giver: Any = None

    class Meta:
        model = Grant
        fields = ("role", *ENTITY_LEVELS, *permissions.FOUR_EYES_LIMITS)
        help_texts = {
            "four_eyes_above": gettext_lazy(
                "What this person moves by hand on one payment, all in all and in the payment's own currency; above it "
                "somebody else approves. Empty: no limit."
            ),
            "four_eyes_day": gettext_lazy(
                "What this person moves by hand in 24 hours, all in all in one merchant and currency, with what they "
                "approve for others; above it somebody else approves. Empty: no limit."
            ),
        }

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        nodes = [name for name in ENTITY_LEVELS if found.get(name) is not None]
        role = found.get("role")
        if len(nodes) != 1:
            raise forms.ValidationError(_("Choose one place for the role: a PSP, division, merchant or channel."))
        if role == Role.PSP and nodes != ["psp"]:
            raise forms.ValidationError({"role": _("PSP staff belongs to a PSP, not to a part of it.")})
        if role and self.has_changed():
            limits = {name: found.get(name) for name in permissions.FOUR_EYES_LIMITS}
            grant = Grant(role=role, **limits, **{nodes[0]: found[nodes[0]]})
            if not permissions.can_grant_role(self.giver, grant):
                raise forms.ValidationError(_("You can grant no more than you have there yourself."))
            words = _("Give a limit of at most %s: that is your own one there, and nobody grants more.")
            above = {
                name: words % format_amount(most)
                for name, most in permissions.find_excessive_limits(self.giver, grant).items()
                if name not in self.errors
            }
            if above:
                raise forms.ValidationError(above)
        return found


class GrantFormSet(forms.BaseInlineFormSet):  # type: ignore[type-arg]  # not generic at run time
    """A user's grants. ``without``: whether a new user may be made without a grant."""

    without = False

    def clean(self) -> None:
        super().clean()
        kept = [form for form in self.forms if form.has_changed() and form not in self.deleted_forms]
        if self.instance._state.adding and not kept and not self.without and not any(self.errors):
            # Without a grant the new user would not be visible to the manager who made them.
            raise forms.ValidationError(_("Give the new user a role: without one nobody here would see them again."))


class GrantInline(StackedInline):
    """A user's grants, one below the other: seven columns side by side would cut every choice to three letters."""

    model = Grant
    form = GrantForm
    formset = GrantFormSet
    autocomplete_fields = ("merchant", "channel")
    fields = ("role", ("merchant", "channel"), ("psp", "division"), tuple(permissions.FOUR_EYES_LIMITS))

    def get_extra(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> int:
        """One empty form for a new user, who needs a grant."""
        return 1 if obj is None else 0

    def get_queryset(self, request: HttpRequest) -> QuerySet[Grant]:
        """Only grants within the viewer's own part of the entity tree."""
        return super().get_queryset(request).filter(build_grants_condition(request.user, "gateway.view_grant"))

    def _can_change_grants(self, request: HttpRequest, user: User | None) -> bool:
        return permissions.has_permission(request.user, "gateway.change_grant") and (
            user is None or can_manage_user(request, user)
        )

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._can_change_grants(request, obj) and (
            obj is None or obj.pk != request.user.pk or request.user.is_superuser
        )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_add_permission(request, obj)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return permissions.has_permission(request.user, "gateway.view_grant")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs["form"] = type("GrantFormOf", (GrantForm,), {"giver": request.user})
        kwargs["formset"] = type("GrantsOf", (GrantFormSet,), {"without": request.user.is_superuser})
        return super().get_formset(request, obj, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return remove_popups(super().formfield_for_dbfield(db_field, request, **kwargs))

    def formfield_for_choice_field(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Preselect no role: the first one may do everything."""
        return super().formfield_for_choice_field(
            db_field, request, **kwargs, choices=[("", _("Choose a role")), *db_field.get_choices(include_blank=False)]
        )

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer only entities that the granting user reaches."""
        scope = permissions.find_access_scope(request.user, "gateway.add_grant")
        psps = permissions.list_permitted_psps(request.user, "gateway.add_grant")
        offered = {
            "psp": psps,
            "division": Division.objects.filter(psp__in=psps),
            "merchant": Merchant.objects.filter(scope.where("pk", None)),
            "channel": Channel.objects.filter(scope.where("merchant", "pk")),
        }
        if db_field.name in offered:
            kwargs["queryset"] = offered[db_field.name]
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if db_field.name == "channel" and field is not None:
            name_channel_choices(field)
        return field


def can_manage_user(request: HttpRequest, user: User) -> bool:
    """Whether the request's user may change ``user`` or reset their password: never to gain rights or a higher
    limit."""
    if request.user.is_superuser:
        return True
    grants = list(
        Grant.objects.filter(user=user.pk).select_related(
            "psp", "division__psp", "merchant__division__psp", "channel__merchant__division__psp"
        )
    )
    scope = permissions.find_access_scope(request.user, CHANGE_USER_PERMISSION)
    if user.is_superuser or not scope or not (grants or scope.everything):
        return False
    return all(permissions.can_grant_with_limits(request.user, grant) for grant in grants)


@admin.register(User)
class UserAdmin(BackofficePage):
    """Users are deactivated, never deleted: audit entries name them."""

    sensitive = True
    form = UserForm
    nothing = gettext_lazy("Whoever works here needs a user and a role.")
    list_display = ("username", "email", "roles", "second_factor_is_on", "last_login", "is_active")
    list_filter = ("is_active",)
    search_fields = ("username", "email", "first_name", "last_name")
    search_help_text = gettext_lazy("Name or e-mail")
    ordering = ("username",)
    fields = ("username", "first_name", "last_name", "email", "is_active", "last_login", "deactivation_notice", "roles")
    add_fields = ("username", "first_name", "last_name", "email", "is_active")
    readonly_fields = ("last_login", "deactivation_notice", "roles")
    inlines = (GrantInline,)
    change_form_outer_after_template = "admin/user_acts.html"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A user's name cannot change: audit entries name users by it."""
        return self.readonly_fields if obj is None else (*self.readonly_fields, "username")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A new user has neither a last sign-in nor grants yet, so those fields are left out."""
        return self.add_fields if obj is None else self.fields

    # --- who is seen ----------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        seen = build_grants_condition(request.user, VIEW_USER_PERMISSION)
        nodes = Grant.objects.filter(seen).select_related("psp", "division", "merchant", "channel")
        elsewhere = Exists(Grant.objects.filter(user=OuterRef("pk")).exclude(pk__in=Grant.objects.filter(seen)))
        factors = Authenticator.objects.filter(
            user=OuterRef("pk"), type__in=(signin.TOTP_FACTOR, signin.PASSKEY_FACTOR)
        )
        rows: QuerySet[User] = (
            super()
            .get_queryset(request)
            .annotate(elsewhere=elsewhere, factor=Exists(factors))
            .prefetch_related(Prefetch("grants", nodes, to_attr="seen_grants"))
        )
        scope = permissions.find_access_scope(request.user, VIEW_USER_PERMISSION)
        if scope.everything:
            return rows if request.user.is_superuser else rows.filter(is_superuser=False)
        if not scope:
            return rows.none()
        reached = Grant.objects.filter(seen).values("user")
        return rows.filter(Q(pk__in=reached), is_superuser=False)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        found = permissions.has_permission(request.user, VIEW_USER_PERMISSION)
        return found if obj is None else found and self.get_queryset(request).filter(pk=_pk(obj)).exists()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return permissions.has_permission(request.user, ADD_USER_PERMISSION)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is None:
            return permissions.has_permission(request.user, CHANGE_USER_PERMISSION)
        user = obj if isinstance(obj, User) else User.objects.filter(pk=_pk(obj)).first()
        return user is not None and can_manage_user(request, user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return permissions.has_permission(request.user, VIEW_USER_PERMISSION)

    @display(description=gettext_lazy("roles"))
    def roles(self, user: User) -> str:
        grants = getattr(user, "seen_grants", ())
        names = [format_labelled(grant.get_role_display(), str(grant.node)) for grant in grants]
        if names and getattr(user, "elsewhere", False):
            names.append(str(_("and elsewhere")))
        return ", ".join(names) or (_("superuser") if user.is_superuser else "–")

    @display(description=gettext_lazy("use"))
    def deactivation_notice(self, user: User) -> str:
        """When an unused account will be deactivated (PCI DSS 8.2.6)."""
        if (at := unused_accounts.disabled_at(user)) is not None:
            return _("Switched off on %s: it was not used. Switch it on to let the user in again.") % f"{at:%Y-%m-%d}"
        if (at := unused_accounts.ends_at(user)) is not None:
            return _("Is switched off on %s, unless it is used until then.") % f"{at:%Y-%m-%d}"
        return "–"

    @display(description=gettext_lazy("second factor"), boolean=True)
    def second_factor_is_on(self, user: User) -> bool:
        return bool(getattr(user, "factor", False))

    # --- changes --------------------------------------------------------------------------------------------------

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Making users and changing rights need a recent authentication."""
        if request.method == "POST" and (ask := session.require_reauthentication(request)) is not None:
            return ask
        user = User.objects.filter(pk=object_id).first() if object_id and object_id.isdecimal() else None
        context = {
            "ruled": user is not None and user.pk != request.user.pk and can_manage_user(request, user),
            "handlings": [
                (row, independence.explain_confirmation_refusal(row, request.user))  # type: ignore[arg-type]
                for row in independence.list_open_handlings(user)
            ]
            if user is not None
            else [],
        }
        return super().changeform_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def save_model(self, request: HttpRequest, obj: User, form: forms.ModelForm[User], change: bool) -> None:
        if not change:
            # A new user is audited in save_related, once its grants say which merchant it belongs to.
            obj.is_staff = True
            obj.set_unusable_password()
            obj.save()
            return
        if obj.pk == request.user.pk and not obj.is_active:
            messages.warning(request, _("You cannot switch yourself off."))
            obj.is_active = True
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            signin.end_sessions(SignIn.objects.filter(user=obj.pk), by=request.user.get_username())

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        if not change:
            self.record(request, "create", form.instance, after=collect_audit_values(form.instance))
        if not change or form.has_changed() or any(formset.has_changed() for formset in formsets):
            independence.record_handling(request.user, form.instance, "change" if change else "create")

    def response_add(self, request: HttpRequest, obj: User, post_url_continue: str | None = None) -> HttpResponse:
        return self._render_invitation_link(request, obj)

    # --- acts -------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = path("<path:object_id>/act/", self.admin_site.admin_view(self.act), name="auth_user_act")
        return [own, *super().get_urls()]

    def act(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The page's actions: password link, removing a second factor or single sign-on, unlocking, ending sessions."""
        user = self.get_object(request, object_id)
        if user is None:
            raise Http404
        if not can_manage_user(request, user) or user.pk == request.user.pk:
            raise PermissionDenied
        back = reverse("admin:auth_user_change", args=(user.pk,))
        if request.method != "POST":
            return HttpResponseRedirect(back)
        if (ask := session.require_reauthentication(request, back)) is not None:
            return ask
        verb = request.POST.get("act", "")
        if verb == "link":
            self.record(request, "password link", user)
            independence.record_handling(request.user, user, "password link")
            return self._render_invitation_link(request, user)
        if verb == "remove factor":
            signin.remove_second_factors(user, by=actor_from_request(request))
            independence.record_handling(request.user, user, "remove factor")
            signin.end_sessions(SignIn.objects.filter(user=user.pk), by=request.user.get_username())
            messages.success(request, _("The second factor was removed; the next sign-in sets up another."))
        elif verb == "confirm":
            self._confirm_independence(request, user)
        elif verb == "unlock":
            lockout.unlock_sign_in(user.get_username())
            self.record(request, "unlock", user)
            messages.success(request, _("The wrong tries to sign in were forgotten."))
        elif verb == "unlink":
            gone = SocialAccount.objects.filter(user=user.pk).delete()[0]
            self.record(request, "single sign-on", user, after={"subject": None, "links": gone})
            messages.success(request, _("Single sign-on does not lead to this account any more."))
        elif verb == "end sessions":
            count = signin.end_sessions(SignIn.objects.filter(user=user.pk), by=request.user.get_username())
            self.record(request, "end sessions", user, after={"sessions": count})
            messages.success(request, ngettext("%d session was ended.", "%d sessions were ended.", count) % count)
        return HttpResponseRedirect(back)

    def _confirm_independence(self, request: HttpRequest, user: User) -> None:
        """Confirm that ``user`` and a user who handled it are two people."""
        pk = request.POST.get("handling", "")
        row = next((each for each in independence.list_open_handlings(user) if str(each.pk) == pk), None)
        if row is None:
            messages.warning(request, _("This was confirmed before, or changed since."))
            return
        try:
            independence.confirm_independence(row, by=request.user, actor=actor_from_request(request))  # type: ignore[arg-type]
        except independence.NotIndependentError as fault:
            messages.error(request, str(fault))
            return
        messages.success(request, _("Confirmed: these are two people."))

    def _render_invitation_link(self, request: HttpRequest, user: User) -> HttpResponse:
        """The one page that shows the invitation link; whoever has the link sets the password."""
        context = session.build_page_context(
            self.admin_site,
            request,
            title=_("A link for %s") % user.get_username(),
            opts=self.opts,
            name=user,
            link=settings.GATEWAY_BASE_URL + build_invitation_link(user),
            back=reverse("admin:auth_user_changelist"),
        )
        answer = TemplateResponse(request, "admin/link_once.html", context)
        answer["Cache-Control"] = "no-store"
        return answer


def _pk(obj: Any) -> Any:
    if isinstance(obj, User):
        return obj.pk
    return int(obj) if str(obj).isdecimal() else None


@admin.register(SignIn)
class SignInAdmin(OwnedPage):
    """Sign-in records: who signed in, from where, and which sessions are open."""

    changeable = False
    nothing = gettext_lazy("Every sign-in leaves a row here.")
    list_display = ("at", "user", "ip", "browser", "second_factor", "last_seen_at", "ended_at", "ended_by")
    list_filter = ("second_factor",)
    list_select_related = ("user",)
    search_fields = ("user__username", "=ip")
    search_help_text = gettext_lazy("Name, or an address as a whole")
    ordering = ("-at",)

    @display(description=gettext_lazy("browser"))
    def browser(self, row: SignIn) -> str:
        return describe_browser(row.agent)

    def own(self, request: HttpRequest, rows: QuerySet[Any], verb: str = "view") -> QuerySet[Any]:
        scope = permissions.find_access_scope(request.user, self.right(verb))
        if scope.everything:
            return rows
        if not scope:
            return rows.none()
        seen = Grant.objects.filter(build_grants_condition(request.user, self.right(verb))).values("user")
        return rows.filter(user__in=seen, user__is_superuser=False)

    def may(self, request: HttpRequest, verb: str, row: Model | None = None) -> bool:
        return permissions.has_permission(request.user, self.right(verb))
