"""The playground of the docs: choices in an address, each checked, and what the page makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client, RequestFactory, override_settings

from checkout.theming import expand_colour, list_theme_properties, read_theme

HOSTILE = ("red;}body{display:none", "#12", "</style><script>", "url(//evil.example)", "12em", "x" * 200, "é")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[None]:
    """A demo shop is set up."""
    file = tmp_path / "demo.json"
    file.write_text(json.dumps({"access_token": "x", "channels": {"plain": "0" * 32}}))
    with override_settings(GATEWAY_DEMO_FILE=str(file)):
        yield


def test_the_forms_own_values_make_no_rule() -> None:
    own = {one.name: expand_colour(one.light) for one in list_theme_properties()}
    theme = read_theme(RequestFactory().get("/docs/theming", own))
    assert (theme.values, theme.format_css(), theme.format_options()) == ({}, "", "")
    assert all(len(value) == 7 for value in own.values() if value.startswith("#"))


def test_choices_are_in_the_rule_the_options_and_the_address() -> None:
    asked = {"accent": "#7C3AED", "radius": "12px", "style": "logos", "locale": "de", "brand": ["AMEX", "VISA", "AMEX"]}
    theme = read_theme(RequestFactory().get("/docs/theming", asked))
    assert theme.format_css() == ".wpwl-widget {\n  --wpwl-accent: #7C3AED;\n  --wpwl-radius: 12px;\n}\n"
    assert theme.format_options() == 'window.widgetOptions = {"style": "logos", "locale": "de"};'
    assert theme.brands == ("AMEX", "VISA")
    assert read_theme(RequestFactory().get(f"/docs/theming?{theme.build_query()}")) == theme


@pytest.mark.parametrize("value", HOSTILE)
def test_what_fits_no_pattern_is_the_default(client: Client, demo: None, value: str) -> None:
    asked = dict.fromkeys([*(one.name for one in list_theme_properties()), "style", "locale", "brand"], value)
    theme = read_theme(RequestFactory().get("/docs/theming", asked))
    assert set(theme.values) <= {"font"}
    assert (theme.style, theme.locale, theme.brands) == ("card", "en", ("VISA", "MASTER"))
    for path in ("/docs/theming/preview.css", "/docs/theming/preview.js", "/docs/theming/preview", "/docs/theming"):
        answer = client.get(path, asked)
        assert answer.status_code == 200
        assert value in theme.values.values() or value not in answer.content.decode()
    checkout = client.get("/docs/theming/preview", {"checkoutId": value})
    assert b"paymentWidgets.js" not in checkout.content


def test_the_preview_is_framed_by_this_site_alone(client: Client, demo: None) -> None:
    page = client.get("/docs/theming/preview")
    assert page["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in page["Content-Security-Policy"]
    assert client.get("/docs/theming")["X-Frame-Options"] == "DENY"


def test_without_a_demo_shop_there_is_no_preview(client: Client) -> None:
    with override_settings(GATEWAY_DEMO_FILE="/nowhere"):
        for path in ("/docs/theming/preview.css", "/docs/theming/preview.js", "/docs/theming/preview"):
            assert client.get(path).status_code == 404
        assert b"<iframe" not in client.get("/docs/theming").content
