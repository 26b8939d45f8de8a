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


@dataclass(frozen=True, slots=True)
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
            NavigationItem(_("Payments"), "payments", "gateway.Payment", "gateway.view_payment"),
            NavigationItem(_("Approval rate"), "trending_up", "approval_rates", "gateway.view_payment"),
            NavigationItem(
                _("Approvals"),
                "how_to_reg",
                "gateway.Approval",
                "gateway.view_approval",
                count="gateway.backoffice.follow_ups.approval_pages.count_waiting_approvals",
            ),
            NavigationItem(_("Exports"), "download", "gateway.BackgroundWork", "gateway.export_payment"),
            NavigationItem(_("Checkouts"), "shopping_cart", "checkout.Checkout", "checkout.view_checkout"),
            NavigationItem(_("Payment links"), "link", "checkout.PaymentLink", "checkout.view_paymentlink"),
            NavigationItem(_("Registrations"), "credit_card", "gateway.Registration", "gateway.view_registration"),
            NavigationItem(_("Schedules"), "event_repeat", "scheduling.Job", "scheduling.view_job"),
            NavigationItem(
                _("Authentications"), "verified_user", "gateway.Authentication", "gateway.view_authentication"
            ),
        ),
    ),
    (
        _("Books"),
        (
            NavigationItem(
                _("Month end"),
                "event_available",
                "reporting.MonthClosing",
                "reporting.view_monthclosing",
                count="reporting.admin.month_end.count_waiting_months",
            ),
            NavigationItem(_("Payouts"), "account_balance_wallet", "reporting.Settlement", "reporting.view_settlement"),
            NavigationItem(
                _("Settlement files"), "upload_file", "reporting.SettlementFile", "reporting.view_settlementfile"
            ),
            NavigationItem(
                _("Exceptions"),
                "rule_folder",
                "reporting.SettlementRecord",
                "reporting.view_settlementrecord",
                count="reporting.admin.exception_queue.count_open_exceptions",
            ),
            NavigationItem(
                _("Reconciliation files"),
                "table_view",
                "reporting.ReconciliationFile",
                "reporting.view_reconciliationfile",
            ),
            NavigationItem(_("Bank orders"), "account_balance", "gateway.BankOrder", "gateway.view_bankorder"),
            NavigationItem(_("Mandates"), "signature", "gateway.SepaMandate", "gateway.view_sepamandate"),
            NavigationItem(_("Bank files"), "upload_file", "gateway.BankFile", "gateway.view_bankfile"),
            NavigationItem(_("Bank messages"), "mark_email_read", "gateway.BankMessage", "gateway.view_bankmessage"),
            NavigationItem(
                _("Account updater"), "update", "gateway.AccountUpdateFile", "gateway.view_accountupdatefile"
            ),
            NavigationItem(_("Capture batches"), "inventory", "gateway.CaptureBatch", "gateway.view_capturebatch"),
            NavigationItem(
                _("Captures by batch"), "pending_actions", "gateway.BatchedCapture", "gateway.view_batchedcapture"
            ),
            NavigationItem(
                _("Released authorizations"),
                "lock_open",
                "gateway.AuthorizationRelease",
                "gateway.view_authorizationrelease",
            ),
            NavigationItem(
                _("Disputes"),
                "gavel",
                "chargebacks.Chargeback",
                "chargebacks.view_chargeback",
                count="chargebacks.admin.disputes.count_urgent_disputes",
            ),
        ),
    ),
    (
        _("Requests and events"),
        (
            NavigationItem(_("Request log"), "receipt_long", "gateway.RequestLog", "gateway.view_requestlog"),
            NavigationItem(_("Webhooks"), "webhook", "gateway.WebhookEndpoint", "gateway.view_webhookendpoint"),
            NavigationItem(_("Deliveries"), "outgoing_mail", "gateway.WebhookDelivery", "gateway.view_webhookdelivery"),
            NavigationItem(_("Notifications"), "notifications", "gateway.Notification", "gateway.view_notification"),
            NavigationItem(
                _("Processors' events"), "call_received", "gateway.ProcessorEvent", "gateway.view_processorevent"
            ),
        ),
    ),
    (
        _("Account data"),
        (
            NavigationItem(_("Merchants"), "storefront", "gateway.Merchant", "gateway.view_merchant"),
            NavigationItem(_("Channels"), "hub", "gateway.Channel", "gateway.view_channel"),
            NavigationItem(_("Access tokens"), "key", "gateway.AccessToken", "gateway.view_accesstoken"),
            NavigationItem(
                _("3-D Secure"),
                "lock_person",
                "gateway.ThreeDSecureConfiguration",
                "gateway.view_threedsecureconfiguration",
            ),
            NavigationItem(
                _("Acquirer accounts"), "account_balance", "gateway.AcquirerAccount", "gateway.view_acquireraccount"
            ),
            NavigationItem(_("Acquirer costs"), "price_change", "gateway.AcquirerCost", "gateway.view_acquirercost"),
            NavigationItem(_("Routing rules"), "alt_route", "gateway.RoutingRule", "gateway.view_routingrule"),
            NavigationItem(_("Live board"), "browse_activity", "live_board", "gateway.view_acquireraccount"),
            NavigationItem(
                _("Acquirers' health"),
                "monitor_heart",
                "gateway_acquireraccount_health",
                "gateway.view_acquireraccount",
            ),
            NavigationItem(_("Wallet keys"), "wallet", "gateway.WalletKey", "gateway.view_walletkey"),
            NavigationItem(_("Offer rules"), "tune", "checkout.OfferRule", "checkout.view_offerrule"),
            NavigationItem(_("Payment page"), "palette", "checkout.PaymentPageStyle", "checkout.view_paymentpagestyle"),
        ),
    ),
    (
        _("Risk"),
        (
            NavigationItem(_("Rule sets"), "rule", "gateway.RiskSet", "gateway.view_riskset"),
            NavigationItem(_("Trials"), "science", "gateway.RiskTrial", "gateway.view_risktrial"),
            NavigationItem(
                _("Risk observations"), "query_stats", "gateway.RiskObservation", "gateway.view_riskobservation"
            ),
            NavigationItem(_("Lists"), "playlist_add_check", "gateway.RiskList", "gateway.view_risklist"),
        ),
    ),
    (
        _("People"),
        (
            NavigationItem(_("Users and rights"), "group", "auth.User", "auth.view_user"),
            NavigationItem(
                _("Shoppers' data"),
                "person_off",
                "gateway.ErasureRequest",
                "gateway.view_erasurerequest",
                count="gateway.backoffice.personal_data.erasure_request_pages.count_waiting_erasures",
            ),
            NavigationItem(_("Sign-ins"), "login", "gateway.SignIn", "gateway.view_signin"),
            NavigationItem(_("Audit trail"), "history", "gateway.AuditEntry", "gateway.view_auditentry"),
        ),
    ),
    (
        _("Installation"),
        (
            NavigationItem(_("Divisions"), "account_tree", "gateway.Division", "gateway.view_division"),
            NavigationItem(_("PSP"), "domain", "gateway.Psp", "gateway.view_psp"),
            NavigationItem(
                _("Payment page security"),
                "gpp_good",
                "payment_page_security",
                "checkout.view_pagesnapshot",
                count="checkout.page_security.count_unreviewed_changes",
            ),
            NavigationItem(_("Vault keys"), "encrypted", "vault_keys", "gateway.view_vault"),
            NavigationItem(_("Throttle"), "speed", "throttle", "gateway.view_throttlewindow"),
            NavigationItem(_("Test clock"), "schedule", "test_clock", "gateway.move_clock"),
            NavigationItem(
                _("Ticks"), "timer", "django_celery_beat.PeriodicTask", "django_celery_beat.view_periodictask"
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
