"""Where the law wants strong customer authentication."""

from __future__ import annotations

from typing import Final

SCA_COUNTRIES: Final = frozenset(
    {
        "AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GB", "GR", "HR", "HU", "IE", "IS", "IT",
        "LI", "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK",
        "AX", "GF", "GP", "MF", "MQ", "RE", "YT",
    }
)  # fmt: skip
"""ISO 3166-1 codes of the countries whose payment services authenticate strongly: the European Economic Area (EU
2018/389), with the parts of member states that have codes of their own and where its law holds (Treaty on the
Functioning of the EU, article 355, 1 and 4), and the United Kingdom (the same standards, kept by the FCA)."""
