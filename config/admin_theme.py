"""Theme settings of the back office. Colours are those of docs and widget."""

from __future__ import annotations

from typing import Any, Final

from django.templatetags.static import static
from django.urls import reverse_lazy
from django.utils.translation import gettext_lazy as _

_TEAL: Final = {
    "50": "#f0fdfa", "100": "#d5f5ef", "200": "#a8e6dc", "300": "#7de3d5", "400": "#4fd1bf", "500": "#2bb3a3",
    "600": "#0f766e", "700": "#0b5c56", "800": "#16403d", "900": "#11302f", "950": "#0a2322",
}  # fmt: skip
_INK: Final = {
    "50": "#f6f8fb", "100": "#eef2f7", "200": "#e2e8f0", "300": "#cbd5e1", "400": "#93a1b5", "500": "#667085",
    "600": "#475467", "700": "#344054", "800": "#1b2537", "900": "#0d1422", "950": "#080d18",
}  # fmt: skip

ADMIN_THEME: Final[dict[str, Any]] = {
    "SITE_TITLE": "Tollhouse",
    "SITE_HEADER": "Tollhouse",
    "SITE_SUBHEADER": _("Back office"),
    "SITE_URL": "/",
    "SITE_ICON": lambda _request: static("mark.svg"),
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda _request: static("mark.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_LANGUAGES": True,
    "ENVIRONMENT": "config.navigation.environment",
    "BORDER_RADIUS": "8px",
    "COLORS": {"base": _INK, "primary": _TEAL},
    "STYLES": [lambda _request: static("admin-tollhouse.css"), lambda _request: static("composed.css")],
    "SCRIPTS": [lambda _request: static("admin-tollhouse.js")],
    "ACCOUNT": {
        "navigation": [
            {"title": _("Your account"), "link": reverse_lazy("admin:account")},
            {"title": _("Change password"), "link": reverse_lazy("admin:password_change")},
        ]
    },
    "SIDEBAR": {"show_search": False, "navigation": "config.navigation.navigation"},
}
"""Settings of the theme."""
