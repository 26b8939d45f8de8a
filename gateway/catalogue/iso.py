"""ISO 3166-1 country codes that formats are checked against (currencies: gateway.core.money).

Codes are accepted in upper case only. XK/XKX (Kosovo) is user-assigned, yet card schemes and banks use it.
"""

from __future__ import annotations

import pycountry

COUNTRIES_2: frozenset[str] = frozenset(c.alpha_2 for c in pycountry.countries) | {"XK"}
COUNTRIES_3: frozenset[str] = frozenset(c.alpha_3 for c in pycountry.countries) | {"XKX"}
COUNTRY_NUMBERS: frozenset[str] = frozenset(c.numeric for c in pycountry.countries)
