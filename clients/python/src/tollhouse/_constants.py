"""Tables of the API. Generated from the OpenAPI document by `make clients`. Do not edit."""

import re

MAP_PARAMETERS = frozenset({"customParameters", "merchant.data", "overridePaymentType", "risk.parameters", "threeDSecure.schemeData"})
OUTCOME_PATTERNS = (
    ("approved", re.compile(r"^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)")),
    ("review", re.compile(r"^(000\.400\.0[^3]|000\.400\.100)")),
    ("pending", re.compile(r"^(000\.200)")),
    ("pending", re.compile(r"^(800\.400\.5|100\.400\.500)")),
    ("declined", re.compile(r"^(000\.400\.[1][0-9][1-9]|000\.400\.2)")),
    ("declined", re.compile(r"^(800\.[17]00|800\.800\.[123])")),
    ("declined", re.compile(r"^(900\.[1234]00|000\.400\.030)")),
    ("declined", re.compile(r"^(800\.[56]|999\.|600\.1|800\.800\.[84])")),
    ("declined", re.compile(r"^(100\.39[765])")),
    ("declined", re.compile(r"^(300\.100\.100)")),
    ("declined", re.compile(r"^(100\.400\.[0-3]|100\.380\.100|100\.380\.11|100\.380\.4|100\.380\.5)")),
    ("declined", re.compile(r"^(800\.400\.1)")),
    ("declined", re.compile(r"^(800\.400\.2|100\.390)")),
    ("declined", re.compile(r"^(800\.[32])")),
    ("declined", re.compile(r"^(800\.1[123456]0)")),
    ("declined", re.compile(r"^(600\.[23]|500\.[12]|800\.121)")),
    ("declined", re.compile(r"^(100\.[13]50)")),
    ("declined", re.compile(r"^(100\.250|100\.360)")),
    ("declined", re.compile(r"^(700\.[1345][05]0)")),
    ("declined", re.compile(r"^(200\.[123]|100\.[53][07]|800\.900|100\.[69]00\.500)")),
    ("declined", re.compile(r"^(100\.800)")),
    ("declined", re.compile(r"^(100\.[97]00)")),
    ("declined", re.compile(r"^(100\.100|100\.2[01])")),
    ("declined", re.compile(r"^(100\.55)")),
    ("declined", re.compile(r"^(100\.380\.[23]|100\.380\.101)")),
    ("chargeback", re.compile(r"^(000\.100\.2)")),
)
