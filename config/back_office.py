"""The back office's site.

It stands apart from gateway.admin: importing that package registers models, and the site has to exist before.
"""

from __future__ import annotations

from django.urls import URLPattern, URLResolver
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite


class BackOffice(UnfoldAdminSite):
    site_title = "Tollhouse"
    index_title = _("Home")
    index_template = "admin/home.html"

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's page that leads from a content type and an id to a row tells strangers which rows there are."""
        return [each for each in super().get_urls() if getattr(each, "name", None) != "view_on_site"]
