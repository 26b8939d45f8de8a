"""The back office's site.

It stands apart from gateway.admin: importing that package registers models, and the site has to exist before.
"""

from __future__ import annotations

from django.contrib import admin


class BackOffice(admin.AdminSite):
    site_header = "Tollhouse"
    site_title = "Tollhouse back office"
    index_title = "Back office"
    enable_nav_sidebar = True
