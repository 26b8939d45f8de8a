"""The simulated account updater: how a published test card is renewed or closed is its ``updating`` (cards.py).

It keeps no state: a card that was renewed has another number or date, of which nothing is new. Any other card is
unchanged. Source: docs/decisions/0135.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from django.conf import settings

from gateway.connectors.account_update_files import AccountUpdateFileError, build_answer_file, parse_question_file
from gateway.connectors.account_updater import (
    AccountUpdaterUnavailableError,
    CardInquiry,
    CardUpdate,
    UpdaterAnswer,
)
from gateway.connectors.simulator.cards import find_simulated_card
from gateway.core import clock
from gateway.core.secret import Secret

RENEWED_UNTIL: Final = ("12", "2040")
"""The date of every renewed card."""
RENEWED_NUMBERS: Final = {"VISA": "4200000202000006", "MASTER": "5200000202000003"}


class SimulatedAccountUpdater:
    """The account updater of the test environment."""

    def get_file_key(self) -> Secret:
        """A key of this installation: the simulator's files leave it never."""
        digest = hashlib.blake2b(settings.SECRET_KEY.encode(), digest_size=32, person=b"account updater").digest()
        return Secret(base64.urlsafe_b64encode(digest).decode().rstrip("="))

    def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
        """The answer about a card; the published card with a silent updater gets none."""
        known = find_simulated_card(inquiry.number.reveal())
        behaviour = known.updating if known is not None else ""
        if behaviour == "silent":
            raise AccountUpdaterUnavailableError(f"the simulated updater gives no answer within {deadline_s} s")
        month, year = RENEWED_UNTIL
        match behaviour:
            case "new number" if inquiry.brand in RENEWED_NUMBERS:
                number = Secret(RENEWED_NUMBERS[inquiry.brand])
                return CardUpdate(answer=UpdaterAnswer.NEW_NUMBER, number=number, expiry_month=month, expiry_year=year)
            case "new expiry" if (inquiry.expiry_year, inquiry.expiry_month) < (year, month):
                return CardUpdate(answer=UpdaterAnswer.NEW_EXPIRY, expiry_month=month, expiry_year=year)
            case "closed":
                return CardUpdate(answer=UpdaterAnswer.CLOSED)
            case "contact holder":
                return CardUpdate(answer=UpdaterAnswer.CONTACT_HOLDER)
        return CardUpdate(answer=UpdaterAnswer.NO_CHANGE)

    def send_file(self, name: str, content: bytes) -> None:
        """Read the file as a network would. Raises AccountUpdaterUnavailableError for one that cannot be read."""
        try:
            parse_question_file(content, self.get_file_key())
        except AccountUpdateFileError as fault:
            raise AccountUpdaterUnavailableError(f"{name}: {fault}") from None

    def fetch_answer(self, name: str, content: bytes) -> bytes | None:
        """The answer, at once. Of a card with a silent updater it says nothing."""
        file, inquiries = parse_question_file(content, self.get_file_key())
        updates = {}
        for one in inquiries:
            try:
                updates[one.key] = self.ask(one, deadline_s=0)
            except AccountUpdaterUnavailableError:
                continue
        return build_answer_file(file, clock.real_now(), updates, self.get_file_key())


SIMULATED_ACCOUNT_UPDATER: Final = SimulatedAccountUpdater()
