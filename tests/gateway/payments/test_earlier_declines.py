"""The answer when an authorization attempt was voided: the issuer's decline of the attempt before it."""

from __future__ import annotations

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.core.result_codes import TIMEOUT_REVERSED_CODE
from gateway.models import Payment
from gateway.payments import recovery
from gateway.payments.stored_answer import EarlierDecline, PrivateFacts

NO_FUNDS = EarlierDecline(code="800.100.155", details={"AcquirerResponse": "51"})
TAKEN_BACK = AcquirerReply(code=TIMEOUT_REVERSED_CODE, connector_tx_id="second", details={"AcquirerResponse": "91"})


def prefer(earlier: EarlierDecline | None, reply: AcquirerReply | None) -> tuple[recovery.InquiryResult, bool]:
    """The result, and whether it is as it was."""
    payment = Payment(answer=PrivateFacts(earlier_decline=earlier).as_json())
    result = recovery.InquiryResult(exchanges=[], reply=reply)
    found = recovery._prefer_earlier_decline(payment, result)
    return found, found == result


def test_the_decline_before_is_what_is_known_of_the_card() -> None:
    found, same = prefer(NO_FUNDS, TAKEN_BACK)
    assert not same
    assert found.reply is not None
    assert (found.reply.code, found.reply.details) == (NO_FUNDS.code, NO_FUNDS.details)
    assert (found.reply.connector_tx_id, found.was_taken_back) == ("second", True)


@pytest.mark.parametrize(
    ("earlier", "reply"),
    [
        (None, TAKEN_BACK),
        (EarlierDecline(code=SOFT_DECLINE), TAKEN_BACK),
        (NO_FUNDS, None),
        (NO_FUNDS, AcquirerReply(code="000.000.000", connector_tx_id="second")),
        (NO_FUNDS, AcquirerReply(code="800.100.151", connector_tx_id="second")),
    ],
)
def test_what_was_not_taken_back_or_follows_an_authentication_stands(
    earlier: EarlierDecline | None, reply: AcquirerReply | None
) -> None:
    assert prefer(earlier, reply)[1]
