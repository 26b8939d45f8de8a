"""The back office's site. Registered models follow in gateway.admin, imported by Django's autodiscovery."""

from __future__ import annotations

from django.contrib import admin


class BackOffice(admin.AdminSite):
    site_header = "Tollhouse"
    site_title = "Tollhouse back office"
    index_title = "Back office"
    enable_nav_sidebar = True
