"""The docs' page about the form's looks: the custom properties, and a playground whose address holds all choices.

A choice is text in an address that strangers may make: each value has to fit its pattern, or its default is taken. The
preview is a page of its own in a frame, which gets the choices as a style sheet and a script of this gateway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import urlencode, urlsplit

from csp.constants import SELF
from csp.decorators import csp_replace, csp_update
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from checkout import csp
from checkout.brand_selection import resolve_form_kind
from checkout.demo.merchant_server import load_demo_shop
from checkout.demo.page_source import LANGUAGE_NAMES
from gateway import widget_hash
from gateway.core import brands, languages
from gateway.portal.views import render_document

FORM_STYLES: Final = ("card", "logos", "none", "plain")
PROPERTY_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "accent": "The Pay button, the focus, what is chosen.",
        "on-accent": "Words on the accent.",
        "ink": "Text.",
        "soft": "Text of less weight, placeholders, symbols.",
        "line": "Lines that divide.",
        "edge": "Borders of fields and small buttons: at least 3:1 against the paper.",
        "paper": "Fields, and the card around the form.",
        "ground": "Notes, and fields that are still loading.",
        "danger": "Errors.",
        "danger-ground": "Behind errors.",
        "warning": "The last two minutes, the test environment.",
        "warning-ground": "Behind warnings.",
        "radius": "Corners of fields and buttons; the card's are 6px more.",
        "font": "The family of the font. One of the page's own web fonts does not reach the hosted fields.",
    }
)
"""Custom property without its ``--wpwl-`` -> what it colours or shapes."""

_STYLE_SHEET: Final = Path(__file__).parent / "widget" / "src" / "widget.css"
_PROPERTY: Final = re.compile(r"--wpwl-([a-z-]+): ([^;]+);")
_PROPERTY_RULE: Final = re.compile(r"^html body :where\([^)]*\) \{\n((?:  (?:--wpwl|color-scheme)[^\n]*\n)+)\}", re.M)
"""The rules of the style sheet that set custom properties: for light surroundings, then for dark ones."""
_COLOUR: Final = re.compile("#[0-9a-fA-F]{6}|#[0-9a-fA-F]{3}")
_LENGTH: Final = re.compile(r"[0-9]{1,2}px")
_FONT: Final = re.compile(r"[A-Za-z0-9 ,'-]{1,100}")
_CHECKOUT: Final = re.compile("[0-9A-F]{32}-[0-9A-Za-z]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeProperty:
    """A custom property of the form: its values in light and dark surroundings ("" where dark changes nothing)."""

    name: str
    light: str
    dark: str
    meaning: str

    @property
    def is_colour(self) -> bool:
        return self.light.startswith("#")


@cache
def list_theme_properties() -> tuple[ThemeProperty, ...]:
    """The custom properties as the form's style sheet sets them."""
    text = _STYLE_SHEET.read_text(encoding="utf-8")
    light, dark = (found[1] for found in _PROPERTY_RULE.finditer(text))
    in_dark = dict(_PROPERTY.findall(dark))
    return tuple(
        ThemeProperty(name=name, light=value, dark=in_dark.get(name, ""), meaning=PROPERTY_MEANINGS[name])
        for name, value in _PROPERTY.findall(light)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormTheme:
    """The choices of the playground. ``values``: property -> value, those that differ from the form's own."""

    style: str
    locale: str
    brands: tuple[str, ...]
    values: Mapping[str, str]

    def build_query(self) -> str:
        """The choices as a query string: the same for the same choices."""
        pairs = [("style", self.style), ("locale", self.locale), *(("brand", code) for code in self.brands)]
        return urlencode([*pairs, *self.values.items()])

    def format_css(self) -> str:
        """The rule for the page's style sheet; "" where nothing differs."""
        lines = "".join(f"  --wpwl-{name}: {value};\n" for name, value in self.values.items())
        return f".wpwl-widget {{\n{lines}}}\n" if lines else ""

    def format_options(self) -> str:
        """The script before the form's."""
        chosen = {"style": self.style} if self.style != FORM_STYLES[0] else {}
        chosen |= {"locale": self.locale} if self.locale != "en" else {}
        return f"window.widgetOptions = {json.dumps(chosen)};" if chosen else ""


def read_theme(request: HttpRequest) -> FormTheme:
    """The choices in an address; what does not fit is the default."""
    asked = request.GET
    offered = [brand.code for brand in list_offered_brands()]
    values = {}
    for one in list_theme_properties():
        value = asked.get(one.name, "").strip()
        if value and _find_pattern(one).fullmatch(value) and expand_colour(value) != expand_colour(one.light):
            values[one.name] = value
    style, locale = asked.get("style", ""), asked.get("locale", "")
    return FormTheme(
        style=style if style in FORM_STYLES else FORM_STYLES[0],
        locale=locale if locale in languages.LANGUAGE_CODES else "en",
        brands=tuple(dict.fromkeys(code for code in asked.getlist("brand") if code in offered)) or ("VISA", "MASTER"),
        values=values,
    )


def expand_colour(value: str) -> str:
    """A colour with six digits in lower case, as a browser's field for colours wants it; any other value as it is."""
    if not _COLOUR.fullmatch(value):
        return value
    digits = value[1:].lower()
    return "#" + ("".join(2 * digit for digit in digits) if len(digits) == 3 else digits)


def _find_pattern(one: ThemeProperty) -> re.Pattern[str]:
    if one.is_colour:
        return _COLOUR
    return _LENGTH if one.name == "radius" else _FONT


def list_offered_brands() -> list[brands.Brand]:
    """The brands that a form can show."""
    return [brand for brand in brands.PAYMENT_BRANDS.values() if resolve_form_kind(brand)]


@require_safe
@csp_update({"frame-src": [SELF]})
def theming_guide_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/theming: the properties, and the playground with the choices of the address."""
    theme = read_theme(request)
    base = urlsplit(settings.GATEWAY_BASE_URL)
    host, origins = f"{base.scheme}://{base.netloc}", settings.GATEWAY_WALLET_ORIGINS
    directives = csp.build_widget_csp(host, theme.brands, origins, own_styles=False)
    return render_document(
        request,
        "theming",
        theme=theme,
        styles=FORM_STYLES,
        locales=[(code, LANGUAGE_NAMES[code]) for code in languages.LANGUAGE_CODES],
        offered=list_offered_brands(),
        fields=[(one, expand_colour(theme.values.get(one.name, one.light))) for one in list_theme_properties()],
        lines=_format_lines(theme),
        css=theme.format_css(),
        policy=csp.format_csp(directives),
        link=f"{settings.GATEWAY_BASE_URL}/docs/theming?{theme.build_query()}",
        preview=f"/docs/theming/preview?{theme.build_query()}" if load_demo_shop() is not None else "",
    )


def _format_lines(theme: FormTheme) -> str:
    """The lines of the merchant's page."""
    options = theme.format_options()
    script = f'<script nonce="…">{options}</script>\n' if options else ""
    return (
        f"{script}"
        f'<script src="{settings.GATEWAY_BASE_URL}/v1/paymentWidgets.js?checkoutId={{checkout id}}"\n'
        f'        integrity="{{integrity}}" crossorigin="anonymous"></script>\n'
        f'<form action="https://shop.example/result" class="paymentWidgets"\n'
        f'      data-brands="{" ".join(theme.brands)}"></form>'
    )


@require_safe
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})
@csp_update({"frame-src": [SELF]})
def theme_preview_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/theming/preview: the form alone with the choices of the address. Without ``checkoutId`` its script asks
    the demo shop for a checkout. Test environment only."""
    _require_demo()
    checkout = request.GET.get("checkoutId", "")
    theme = read_theme(request)
    context = {
        "theme": theme,
        "query": theme.build_query(),
        "checkout": checkout if _CHECKOUT.fullmatch(checkout) else "",
        "integrity": widget_hash.widget_integrity(),
        "base": settings.GATEWAY_BASE_URL,
    }
    response = render(request, "docs/theme_preview.html", context)
    response["Cache-Control"] = "no-store"
    return response


@require_safe
def theme_style_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/theming/preview.css: the choices of the address as a style sheet."""
    _require_demo()
    return _serve_text(read_theme(request).format_css(), "text/css")


@require_safe
def theme_script_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/theming/preview.js: the choices of the address as options of the form."""
    _require_demo()
    return _serve_text(read_theme(request).format_options(), "text/javascript")


def _require_demo() -> None:
    if load_demo_shop() is None:
        raise Http404


def _serve_text(text: str, kind: str) -> HttpResponse:
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response["Cache-Control"] = "public, max-age=300"
    return response
