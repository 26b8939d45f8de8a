"""The admin site of the back office.

It is separate from gateway.admin: importing that package registers models, and the site has to exist before.
"""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite


class BackOffice(UnfoldAdminSite):
    """The admin site: our pages besides the models', and our own sign-in."""

    site_title = "Tollhouse"
    index_title = _("Home")
    index_template = "admin/home.html"

    def extra_urls(self) -> list[URLPattern | URLResolver]:
        from checkout import page_security
        from gateway.backoffice.kit import entity_names
        from gateway.backoffice.operations import live_board, saved_view_pages, system_views
        from gateway.backoffice.sign_in import account_views
        from reporting.admin import approval_rates

        return [
            *account_views.build_account_urls(self),
            *system_views.build_system_urls(self),
            *live_board.build_board_urls(self),
            *saved_view_pages.build_saved_view_urls(self),
            *entity_names.build_entity_name_urls(self),
            *page_security.build_page_security_urls(self),
            *approval_rates.build_rate_urls(self),
        ]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[dict[str, Any]]:
        """The models of an app. Of all apps nothing: Django asks for them on every page, and the pages show the
        navigation of :mod:`config.navigation` instead."""
        return list(super().get_app_list(request, app_label)) if app_label else []

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # Django's own answers are of a narrower type
        from gateway.backoffice.operations import dashboard

        context = {**dashboard.build_dashboard_context(request), **(extra_context or {})}
        response: HttpResponse = super().index(request, context)
        return response

    def autocomplete_view(self, request: HttpRequest) -> HttpResponse:
        from gateway.backoffice.kit.autocomplete import NamedAutocomplete

        return cast(HttpResponse, NamedAutocomplete.as_view(admin_site=self)(request))

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The theme's palette, filled by our own search: nothing of what was typed is kept."""
        from config import navigation
        from gateway.backoffice.kit import standby_pages
        from gateway.backoffice.operations import office_search
        from gateway.db import standby

        pages = [
            office_search.OfficeHit(title=title, description=group, link=address, icon=icon)
            for title, group, address, icon in navigation.list_reachable_pages(request)
        ]
        try:
            found, as_of = standby.read_elsewhere(
                lambda: office_search.search_office(request, request.GET.get("s", ""), pages),
                written=request.session.get(standby_pages.WRITTEN_SESSION_KEY, 0),
            )
        except office_search.FullCardNumberError:
            found, as_of = [], None
        response = TemplateResponse(request, "admin/search_results.html", {"results": found})
        standby.add_as_of_header(response, as_of)
        return response

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        from gateway.backoffice.sign_in import sign_in_views

        return sign_in_views.show_sign_in(request)

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # Django's own answers are of a narrower type
        """Signing out also ends the row of the session, so that lists of sessions are right."""
        from gateway.backoffice.sign_in import session

        if request.method == "POST":
            session.end_current_session(request)
        response: HttpResponse = super().logout(request, extra_context)
        return response

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # Django's own answers are of a narrower type
        from gateway.backoffice.sign_in import sign_in_views

        return sign_in_views.change_password(request, super().password_change, extra_context)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Without Django's page that leads from a content type and an id to a row: it reveals which rows exist."""
        return [each for each in super().get_urls() if getattr(each, "name", None) != "view_on_site"]
