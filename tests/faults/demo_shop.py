"""The merchants that a run pays at: those of the demo, configured so that the load's cards find their way."""

from __future__ import annotations

from typing import Final

from tests.faults.races import Shop
from tests.faults.stack import Stack

FIRST, SECOND = ({"connector": "stub", "merchant": f"STUB-{name}"} for name in ("plain", "second"))
SECOND_ACQUIRER: Final = {
    "acquirers": {"accounts": [SECOND]},
    "routing": {
        "rules": [
            {
                "name": "A second after a decline",
                "when": {"bins": ["40000183"]},
                "to": [FIRST, {**SECOND, "weight": 0}],
                "maxCascades": 1,
            },
            {"name": "All others", "to": [FIRST]},
        ]
    },
}
"""Of the channel of plain cards: those of load.CASCADED go on to a second account, all others have one as before."""
LOW_VALUE: Final = {"lowValue": True, "askedAt": "better"}
"""Exemptions of the channel that authenticates: asked for in turn at the authentication and at the authorization."""


def open_demo_shop(stack: Stack) -> Shop:
    """The demo merchant, with a second acquirer and exemptions, and the other one, whose channel is made to
    authenticate, too."""
    demo = stack.facts("demo.json")
    other = demo["other"]["entity_id"]
    for entity in (other, demo["channels"]["3ds"]):
        stack.configure(entity, {"threeDSecure": {"enabled": True, "onSoftDecline": "challenge"}})
    stack.configure(demo["channels"]["3ds"], {"exemptions": LOW_VALUE})
    stack.configure(demo["entity_id"], SECOND_ACQUIRER)
    return Shop(
        port=stack.port,
        entity=demo["entity_id"],
        token=demo["access_token"],
        authenticating=demo["channels"]["3ds"],
        other_entity=other,
        other_token=demo["other"]["access_token"],
    )


def count_open(stack: Stack) -> int:
    """Payments without a final answer, those that wait for their shopper, and releases that are due."""
    with stack.connect() as connection:
        row = connection.execute(
            "SELECT (SELECT count(*) FROM gateway_openpayment) + (SELECT count(*) FROM gateway_suspension)"
            " + (SELECT count(*) FROM gateway_authorizationrelease WHERE state = 'OPEN')"
        ).fetchone()
    return int(row[0]) if row else -1
