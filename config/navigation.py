"""The back office's navigation, grouped by work, not by app. Users see the pages they have the permission for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.contrib.admin import site
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

from gateway.access import permissions


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationItem:
    """A line of the navigation. ``page``: the model's label, or a URL name; ``right``: the permission to see it.
    ``count``: dotted name of a function that counts the user's urgent items; shown in red next to the title."""

    title: str | Promise
    icon: str
    page: str
    right: str
    count: str = ""

    def is_for(self, request: HttpRequest) -> bool:
        """True if the user has the permission and the page admits them: some require access to every merchant."""
        if not permissions.has_permission(request.user, self.right):
            return False
        app, dot, model = self.page.partition(".")
        page = site.get_model_admin(apps.get_model(app, model)) if dot and self.address is not None else None
        return page is None or bool(page.has_view_permission(request))

    @property
    def address(self) -> str | None:
        """The page's URL; None if the page does not exist."""
        return _find_address(self.page)


@cache
def _find_address(page: str) -> str | None:
    """Looked up once: every page shows the whole navigation, and the URL table does not change."""
    app, dot, model = page.partition(".")
    try:
        return reverse(f"admin:{app}_{model.lower()}_changelist" if dot else f"admin:{page}")
    except NoReverseMatch:
        return None


NAVIGATION: Final[Sequence[tuple[str | Promise, Sequence[NavigationItem]]]] = (
    (
        _("Money"),
        (
            NavigationItem(title=_("Payments"), icon="payments", page="gateway.Payment", right="gateway.view_payment"),
            NavigationItem(
                title=_("Approval rate"),
                icon="trending_up",
                page="approval_rates",
                right="gateway.view_payment",
            ),
            NavigationItem(
                title=_("Approvals"),
                icon="how_to_reg",
                page="gateway.Approval",
                right="gateway.view_approval",
                count="gateway.backoffice.follow_ups.approval_pages.count_waiting_approvals",
            ),
            NavigationItem(
                title=_("Exports"), icon="download", page="gateway.BackgroundWork", right="gateway.export_payment"
            ),
            NavigationItem(
                title=_("Checkouts"), icon="shopping_cart", page="checkout.Checkout", right="checkout.view_checkout"
            ),
            NavigationItem(
                title=_("Payment links"), icon="link", page="checkout.PaymentLink", right="checkout.view_paymentlink"
            ),
            NavigationItem(
                title=_("Registrations"),
                icon="credit_card",
                page="gateway.Registration",
                right="gateway.view_registration",
            ),
            NavigationItem(
                title=_("Schedules"), icon="event_repeat", page="scheduling.Job", right="scheduling.view_job"
            ),
            NavigationItem(
                title=_("Authentications"),
                icon="verified_user",
                page="gateway.Authentication",
                right="gateway.view_authentication",
            ),
        ),
    ),
    (
        _("Books"),
        (
            NavigationItem(
                title=_("Month end"),
                icon="event_available",
                page="reporting.MonthClosing",
                right="reporting.view_monthclosing",
                count="reporting.admin.month_end.count_waiting_months",
            ),
            NavigationItem(
                title=_("Payouts"),
                icon="account_balance_wallet",
                page="reporting.Settlement",
                right="reporting.view_settlement",
            ),
            NavigationItem(
                title=_("Settlement files"),
                icon="upload_file",
                page="reporting.SettlementFile",
                right="reporting.view_settlementfile",
            ),
            NavigationItem(
                title=_("Exceptions"),
                icon="rule_folder",
                page="reporting.SettlementRecord",
                right="reporting.view_settlementrecord",
                count="reporting.admin.exception_queue.count_open_exceptions",
            ),
            NavigationItem(
                title=_("Reconciliation files"),
                icon="table_view",
                page="reporting.ReconciliationFile",
                right="reporting.view_reconciliationfile",
            ),
            NavigationItem(
                title=_("Bank orders"), icon="account_balance", page="gateway.BankOrder", right="gateway.view_bankorder"
            ),
            NavigationItem(
                title=_("Mandates"), icon="signature", page="gateway.SepaMandate", right="gateway.view_sepamandate"
            ),
            NavigationItem(
                title=_("Bank files"), icon="upload_file", page="gateway.BankFile", right="gateway.view_bankfile"
            ),
            NavigationItem(
                title=_("Bank messages"),
                icon="mark_email_read",
                page="gateway.BankMessage",
                right="gateway.view_bankmessage",
            ),
            NavigationItem(
                title=_("Account updater"),
                icon="update",
                page="gateway.AccountUpdateFile",
                right="gateway.view_accountupdatefile",
            ),
            NavigationItem(
                title=_("Capture batches"),
                icon="inventory",
                page="gateway.CaptureBatch",
                right="gateway.view_capturebatch",
            ),
            NavigationItem(
                title=_("Captures by batch"),
                icon="pending_actions",
                page="gateway.BatchedCapture",
                right="gateway.view_batchedcapture",
            ),
            NavigationItem(
                title=_("Released authorizations"),
                icon="lock_open",
                page="gateway.AuthorizationRelease",
                right="gateway.view_authorizationrelease",
            ),
            NavigationItem(
                title=_("Disputes"),
                icon="gavel",
                page="chargebacks.Chargeback",
                right="chargebacks.view_chargeback",
                count="chargebacks.admin.disputes.count_urgent_disputes",
            ),
        ),
    ),
    (
        _("Requests and events"),
        (
            NavigationItem(
                title=_("Request log"), icon="receipt_long", page="gateway.RequestLog", right="gateway.view_requestlog"
            ),
            NavigationItem(
                title=_("Webhooks"),
                icon="webhook",
                page="gateway.WebhookEndpoint",
                right="gateway.view_webhookendpoint",
            ),
            NavigationItem(
                title=_("Deliveries"),
                icon="outgoing_mail",
                page="gateway.WebhookDelivery",
                right="gateway.view_webhookdelivery",
            ),
            NavigationItem(
                title=_("Notifications"),
                icon="notifications",
                page="gateway.Notification",
                right="gateway.view_notification",
            ),
            NavigationItem(
                title=_("Processors' events"),
                icon="call_received",
                page="gateway.ProcessorEvent",
                right="gateway.view_processorevent",
            ),
        ),
    ),
    (
        _("Account data"),
        (
            NavigationItem(
                title=_("Merchants"), icon="storefront", page="gateway.Merchant", right="gateway.view_merchant"
            ),
            NavigationItem(title=_("Channels"), icon="hub", page="gateway.Channel", right="gateway.view_channel"),
            NavigationItem(
                title=_("Access tokens"), icon="key", page="gateway.AccessToken", right="gateway.view_accesstoken"
            ),
            NavigationItem(
                title=_("3-D Secure"),
                icon="lock_person",
                page="gateway.ThreeDSecureConfiguration",
                right="gateway.view_threedsecureconfiguration",
            ),
            NavigationItem(
                title=_("Acquirer accounts"),
                icon="account_balance",
                page="gateway.AcquirerAccount",
                right="gateway.view_acquireraccount",
            ),
            NavigationItem(
                title=_("Acquirer costs"),
                icon="price_change",
                page="gateway.AcquirerCost",
                right="gateway.view_acquirercost",
            ),
            NavigationItem(
                title=_("Routing rules"), icon="alt_route", page="gateway.RoutingRule", right="gateway.view_routingrule"
            ),
            NavigationItem(
                title=_("Live board"), icon="browse_activity", page="live_board", right="gateway.view_acquireraccount"
            ),
            NavigationItem(
                title=_("Acquirers' health"),
                icon="monitor_heart",
                page="gateway_acquireraccount_health",
                right="gateway.view_acquireraccount",
            ),
            NavigationItem(
                title=_("Wallet keys"), icon="wallet", page="gateway.WalletKey", right="gateway.view_walletkey"
            ),
            NavigationItem(
                title=_("Offer rules"), icon="tune", page="checkout.OfferRule", right="checkout.view_offerrule"
            ),
            NavigationItem(
                title=_("Payment page"),
                icon="palette",
                page="checkout.PaymentPageStyle",
                right="checkout.view_paymentpagestyle",
            ),
        ),
    ),
    (
        _("Risk"),
        (
            NavigationItem(title=_("Rule sets"), icon="rule", page="gateway.RiskSet", right="gateway.view_riskset"),
            NavigationItem(title=_("Trials"), icon="science", page="gateway.RiskTrial", right="gateway.view_risktrial"),
            NavigationItem(
                title=_("Risk observations"),
                icon="query_stats",
                page="gateway.RiskObservation",
                right="gateway.view_riskobservation",
            ),
            NavigationItem(
                title=_("Lists"), icon="playlist_add_check", page="gateway.RiskList", right="gateway.view_risklist"
            ),
        ),
    ),
    (
        _("People"),
        (
            NavigationItem(title=_("Users and rights"), icon="group", page="auth.User", right="auth.view_user"),
            NavigationItem(
                title=_("Shoppers' data"),
                icon="person_off",
                page="gateway.ErasureRequest",
                right="gateway.view_erasurerequest",
                count="gateway.backoffice.personal_data.erasure_request_pages.count_waiting_erasures",
            ),
            NavigationItem(title=_("Sign-ins"), icon="login", page="gateway.SignIn", right="gateway.view_signin"),
            NavigationItem(
                title=_("Audit trail"), icon="history", page="gateway.AuditEntry", right="gateway.view_auditentry"
            ),
        ),
    ),
    (
        _("Installation"),
        (
            NavigationItem(
                title=_("Divisions"), icon="account_tree", page="gateway.Division", right="gateway.view_division"
            ),
            NavigationItem(title=_("PSP"), icon="domain", page="gateway.Psp", right="gateway.view_psp"),
            NavigationItem(
                title=_("Payment page security"),
                icon="gpp_good",
                page="payment_page_security",
                right="checkout.view_pagesnapshot",
                count="checkout.page_security.count_unreviewed_changes",
            ),
            NavigationItem(title=_("Vault keys"), icon="encrypted", page="vault_keys", right="gateway.view_vault"),
            NavigationItem(title=_("Throttle"), icon="speed", page="throttle", right="gateway.view_throttlewindow"),
            NavigationItem(title=_("Test clock"), icon="schedule", page="test_clock", right="gateway.move_clock"),
            NavigationItem(
                title=_("Ticks"),
                icon="timer",
                page="django_celery_beat.PeriodicTask",
                right="django_celery_beat.view_periodictask",
            ),
        ),
    ),
)
"""Grouped by work. A line appears for users with its permission, if its page exists."""


def list_reachable_pages(request: HttpRequest) -> list[tuple[str, str, str, str]]:
    """(title, group, address, icon) of the pages that this user may open."""
    return [
        (str(item.title), str(group), item.address, item.icon)
        for group, items in NAVIGATION
        for item in items
        if item.address is not None and item.is_for(request)
    ]


def list_page_titles() -> dict[str, tuple[str | Promise, str | Promise]]:
    """URL of a page of the navigation → its group and its title."""
    return {address: (group, item.title) for group, items in NAVIGATION for item in items if (address := item.address)}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The navigation of the current user."""
    home = {"title": _("Home"), "icon": "home", "link": reverse("admin:index")}
    groups: list[dict[str, Any]] = [{"items": [home]}]
    for title, items in NAVIGATION:
        mine = [
            {"title": item.title, "icon": item.icon, "link": address, **_badge(item, request)}
            for item in items
            if (address := item.address) is not None and item.is_for(request)
        ]
        if mine:
            groups.append({"title": title, "items": mine})
    return groups


def _badge(item: NavigationItem, request: HttpRequest) -> dict[str, Any]:
    pressing = import_string(item.count)(request.user) if item.count else 0
    return {"badge": pressing, "badge_variant": "danger", "badge_style": "solid"} if pressing else {}


def environment(_request: HttpRequest | None) -> list[str]:
    """The environment's name, shown in the header of every page."""
    return [str(_("live")), "danger"] if settings.IS_LIVE else [str(_("test")), "info"]
