"""How many inquiries one account and one processor may have on their way: the others' payments do not wait."""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.models import Payment
from gateway.payments.recovery import MAX_BATCHES_PER_CONNECTOR, RECOVERY_BATCH_SIZE, _list_busy_targets

CHANNEL = UUID(int=1)
PLENTY = 10 * RECOVERY_BATCH_SIZE
WHOLE, ONE = ("stub", None, ""), ("stub", CHANNEL, "a0")


def asked(number: int, accounts: int = 1, channel: UUID = CHANNEL, connector: str = "stub") -> list[Payment]:
    return [
        Payment(connector=connector, channel_id=channel, acquirer_merchant_id=f"a{place % accounts}")
        for place in range(number)
    ]


@pytest.mark.parametrize(
    ("inquiries", "free", "busy"),
    [
        ([], PLENTY, []),
        (asked(RECOVERY_BATCH_SIZE - 1), PLENTY, []),
        (asked(RECOVERY_BATCH_SIZE), PLENTY, [ONE]),
        # Each of these accounts is below its share, and the processor is not.
        (asked(MAX_BATCHES_PER_CONNECTOR * RECOVERY_BATCH_SIZE - 1, accounts=8), PLENTY, []),
        (asked(MAX_BATCHES_PER_CONNECTOR * RECOVERY_BATCH_SIZE, accounts=8), PLENTY, [WHOLE]),
        # One account number at two channels is two accounts, and one processor.
        (asked(RECOVERY_BATCH_SIZE - 1) + asked(RECOVERY_BATCH_SIZE - 1, channel=UUID(int=2)), PLENTY, []),
        (asked(RECOVERY_BATCH_SIZE) + asked(RECOVERY_BATCH_SIZE, connector="other")[1:], PLENTY, [ONE]),
        # Where few are free, they are the share.
        (asked(4), 5, []),
        (asked(5), 5, [ONE, WHOLE]),
        (asked(5, accounts=5), 5, [WHOLE]),
    ],
)
def test_what_has_its_share_is_left_out(
    inquiries: list[Payment], free: int, busy: list[tuple[str, UUID | None, str]]
) -> None:
    assert sorted(_list_busy_targets(inquiries, free), key=str) == sorted(busy, key=str)
