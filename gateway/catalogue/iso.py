"""ISO code lists that formats are checked against: ISO 4217 currencies, ISO 3166-1 countries.

Codes are accepted in upper case only. XK/XKX (Kosovo) is user-assigned, yet card schemes and banks use it.
"""

from __future__ import annotations

import pycountry

from gateway.core import money

ISO_CURRENCIES: frozenset[str] = money.CURRENCY_CODES
COUNTRIES_2: frozenset[str] = frozenset(c.alpha_2 for c in pycountry.countries) | {"XK"}
COUNTRIES_3: frozenset[str] = frozenset(c.alpha_3 for c in pycountry.countries) | {"XKX"}
COUNTRY_NUMBERS: frozenset[str] = frozenset(c.numeric for c in pycountry.countries)
