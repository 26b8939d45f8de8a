"""Result codes that several connectors answer with. Their texts stand in ``gateway/data/result-codes.tsv``."""

from typing import Final

SOFT_DECLINE: Final = "300.100.100"
"""The issuer wants the shopper to authenticate."""
WITHDRAWN: Final = "100.396.201"
"""The merchant reversed a capture or bank order before it was sent."""
REVERSAL_TOO_LATE: Final = "700.300.700"
"""The capture or bank order is in a batch or file already."""
PARTIAL_REVERSAL_NOT_POSSIBLE: Final = "700.100.200"
"""A capture or bank order that was not sent yet is reversed in full or not at all."""
