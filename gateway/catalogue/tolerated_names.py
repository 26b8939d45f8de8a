"""Parameter names that clients send although the specification lacks them.

They are accepted on every endpoint, not used, and listed in ``ignoredParameters``, so that these clients work
unchanged; a strict channel refuses them like any other unknown name.
Source: docs/decisions/0048-readings-of-names-booleans-and-pages.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TOLERATED_NAMES: Final[Mapping[str, str]] = {
    "shipping.givenName": "The receiver's given name. The specification has shipping.customer.givenName.",
    "shipping.surname": "The receiver's surname. The specification has shipping.customer.surname.",
    "threeDSecure.xid": "The transaction id of 3-D Secure 1. Proofs of version 2 have threeDSecure.dsTransactionId.",
    "recurringType": "An older form of standingInstruction.mode and standingInstruction.type.",
}
"""Name → what clients mean by it, and where the specification has it."""
