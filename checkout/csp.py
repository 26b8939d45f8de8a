"""Builds the Content-Security-Policy for a page with the widget. Pure.

Source: Part A, What the service does, 8: style-src, frame-src, script-src, connect-src and img-src each need the
service's host and self; inline wallets need their provider's domains too. Browsers report violations to the service
(PCI DSS 6.4.3, 11.6.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

PROVIDER_DIRECTIVES: Final = ("frame-src", "script-src", "connect-src", "img-src")
CSP_REPORTS_PATH: Final = "/v1/widget/policy-reports"
NONCE_PLACEHOLDER: Final = "'nonce-{a random value for each answer}'"


def build_widget_csp(
    host: str, brands: Sequence[str], providers: Mapping[str, Sequence[str]], *, own_styles: bool
) -> dict[str, list[str]]:
    """Directive → sources. ``host``: scheme and host of the base address; ``providers``: brand → origins;
    ``own_styles``: the page has inline styles of its own, as the specification's policy allows. The form has none."""
    extra = list(dict.fromkeys(origin for brand in brands for origin in providers.get(brand, ())))
    found = {
        "style-src": ["'self'", host, *(["'unsafe-inline'"] if own_styles else [])],
        "frame-src": ["'self'", host],
        "script-src": ["'self'", host, NONCE_PLACEHOLDER],
        "connect-src": ["'self'", host],
        "img-src": ["'self'", host],
        "report-uri": [host + CSP_REPORTS_PATH],
    }
    return {name: sources + (extra if name in PROVIDER_DIRECTIVES else []) for name, sources in found.items()}


def format_csp(directives: Mapping[str, Sequence[str]]) -> str:
    """The header's text, one directive a line."""
    return ";\n  ".join(f"{name} {' '.join(sources)}" for name, sources in directives.items())
