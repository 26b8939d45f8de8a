"""Every test of the kit runs once for each rig."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.test import override_settings

from tests.connectors.card_api import CARD_API_RIG
from tests.connectors.iso8583 import ISO8583_BATCH_RIG, ISO8583_RIG
from tests.connectors.rig import Processor, Rig
from tests.connectors.sepa import SEPA_RIG
from tests.connectors.stub import STUB_RIG

RIGS: Final[tuple[Rig, ...]] = (
    STUB_RIG,
    ISO8583_RIG,
    ISO8583_BATCH_RIG,
    CARD_API_RIG,
    SEPA_RIG,
)
PATIENCE_S: Final = 20.0
"""What an acquirer may take here: a busy machine takes its time. Silences are waited for with less (SILENCE_S)."""


def _param(rig: Rig) -> Any:
    """What one keeps in the database is committed, so that threads see it."""
    marks = [pytest.mark.django_db(transaction=True)] if rig.answers_later else []
    return pytest.param(rig, marks=marks, id="-".join(filter(None, (rig.connector.name, rig.variant))))


@pytest.fixture(params=[_param(rig) for rig in RIGS])
def rig(request: pytest.FixtureRequest) -> Rig:
    found: Rig = request.param
    return found


@pytest.fixture
def processor(rig: Rig, db: None) -> Iterator[Processor]:
    """The rig's processor, running."""
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S), rig.start() as running:
        yield running
