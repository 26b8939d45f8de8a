"""The Content-Security-Policy of a page with the form in it. Pure.

Source: Part A, What the service does, 8: style-src, frame-src, script-src, connect-src and img-src each need the
service's host and self; inline wallets need their provider's domains too. Browsers report what the policy stopped to
the service (PCI DSS 6.4.3, 11.6.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

WITH_PROVIDERS: Final = ("frame-src", "script-src", "connect-src", "img-src")
REPORTS_PATH: Final = "/v1/widget/policy-reports"
NONCE: Final = "'nonce-{a random value for each answer}'"


def policy(host: str, brands: Sequence[str], providers: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Directive → sources. ``host``: scheme and host of the base address; ``providers``: brand → origins."""
    extra = list(dict.fromkeys(origin for brand in brands for origin in providers.get(brand, ())))
    found = {
        "style-src": ["'self'", host, "'unsafe-inline'"],
        "frame-src": ["'self'", host],
        "script-src": ["'self'", host, NONCE],
        "connect-src": ["'self'", host],
        "img-src": ["'self'", host],
        "report-uri": [host + REPORTS_PATH],
    }
    return {name: sources + (extra if name in WITH_PROVIDERS else []) for name, sources in found.items()}


def header(directives: Mapping[str, Sequence[str]]) -> str:
    """As the header is sent, one directive a line."""
    return ";\n  ".join(f"{name} {' '.join(sources)}" for name, sources in directives.items())
