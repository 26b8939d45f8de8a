"""Faults between a redirect and the return: what is done while a shopper is away, or while their answer is taken on."""

from __future__ import annotations

import secrets
import threading
import time
from functools import partial
from typing import Any, Final

from tests.faults.browser import PASS, RESULT_URL, Browser
from tests.faults.client import Answer, Client, Journal, payment
from tests.faults.faults import BACK_WITHIN_S, Fault, Seen, Stage, is_settled, keeps, kill, serves
from tests.faults.processes import eventually
from tests.faults.shoppers import CHALLENGED, PAGE

ACQUIRER_THINKS_MS: Final = 1_500
RESUMED_WITHIN_S: Final = 5.0
JOURNAL: Final = "journal-away.jsonl"


def _kill_while_away(stage: Stage, *, everything: bool = False) -> Seen:
    """Two shoppers are away, one at the challenge, one at a bank. All web workers (or everything) die; both come back
    to new ones and go on, and what was sealed for the first is still opened."""
    client = _merchant(stage)
    challenged, banked = _challenged(stage, client), _at_bank(client)
    if challenged is None or banked is None:
        return Seen(False, True, "nobody was sent away")
    moment = time.time()
    if everything:
        fired = stage.stack.kill()
        stage.stack.start()
        stage.steers_again()
    else:
        fired = _kill_all_workers(stage)
    whole = serves(stage)
    browser = Browser(port=stage.shop.port)
    browser.answer(challenged.body["redirect"], PASS)
    browser.follow(browser.decide(banked.body["redirect"], "approve"))
    paid = [
        eventually(partial(_is_settled, client, banked.id, ""), BACK_WITHIN_S, 0.2),
        eventually(partial(_is_settled, client, challenged.id, stage.shop.authenticating), BACK_WITHIN_S, 0.2),
    ]
    whole = whole and (not everything or keeps(stage))
    ends = [_events(stage, ident)[-1:] for ident in (challenged.id, banked.id)]
    client.close()
    return Seen(fired, whole and all(paid), f"challenge and bank: {', '.join(end[0] for end in ends if end)}", moment)


def _kill_when_resumed(stage: Stage) -> Seen:
    """The shopper has answered and the acquirer is asked, slowly: all web workers die before its answer comes."""
    client = _merchant(stage)
    stage.slow_down(ACQUIRER_THINKS_MS)
    told = _challenged(stage, client)
    if told is None:
        return Seen(False, True, "nobody was sent away")
    browser = Browser(port=stage.shop.port)
    shopper = threading.Thread(target=browser.answer, args=(told.body["redirect"], PASS))
    shopper.start()
    resumed = eventually(lambda: _events(stage, told.id)[-1:] == ["resume"], RESUMED_WITHIN_S, 0.01)
    moment = time.time()
    gone = _kill_all_workers(stage)
    # Its submission is cut off: nothing but recovery can end it now.
    fired = resumed and gone and _events(stage, told.id)[-1:] == ["resume"]
    eventually(stage.steers_again, BACK_WITHIN_S, 0.1)
    whole = serves(stage)
    shopper.join(BACK_WITHIN_S)
    ended = eventually(partial(_is_settled, client, told.id, stage.shop.authenticating), BACK_WITHIN_S, 0.2)
    client.close()
    return Seen(fired, whole and ended, f"{', '.join(_events(stage, told.id))}", moment)


def _kill_all_workers(stage: Stage) -> bool:
    gone = [kill(one) for one in stage.stack.below("web")]
    return bool(gone) and all(gone)


def _merchant(stage: Stage) -> Client:
    return stage.shop.client(Journal(path=stage.stack.folder / JOURNAL))


def _challenged(stage: Stage, client: Client) -> Answer | None:
    order = f"away-{secrets.token_hex(6)}"
    fields = payment("DB", "12.00", mode="EXTERNAL", order=order, card=CHALLENGED) | PAGE
    fields |= {"entityId": stage.shop.authenticating, "createRegistration": "true"}
    return _redirected(client.pay(order, fields))


def _at_bank(client: Client) -> Answer | None:
    order = f"away-{secrets.token_hex(6)}"
    fields = {
        "amount": "13.00",
        "currency": "EUR",
        "paymentType": "DB",
        "paymentBrand": "ONLINETRANSFER",
        "testMode": "INTERNAL",
        "merchantTransactionId": order,
        "shopperResultUrl": RESULT_URL,
    }
    return _redirected(client.pay(order, fields))


def _redirected(told: Answer | None) -> Answer | None:
    return told if told is not None and "redirect" in told.body else None


def _is_settled(client: Client, ident: str, entity: str) -> bool:
    return is_settled(client.read(ident, entity))


def _events(stage: Stage, ident: str) -> list[str]:
    rows: list[Any] = []
    with stage.stack.connect() as connection:
        rows = connection.execute(
            "SELECT event FROM gateway_paymentevent WHERE payment_id = %s ORDER BY sequence", (ident,)
        ).fetchall()
    return [row[0] for row in rows]


AWAY: Final = (
    Fault(name="web workers, shoppers away: kill -9", group="shopper", strike=_kill_while_away),
    Fault(name="web workers, answer taken on: kill -9", group="shopper", strike=_kill_when_resumed),
    Fault(name="everything, shoppers away: kill -9", group="shopper", stops_ticks=True, stops_acquirer=True,
          strike=partial(_kill_while_away, everything=True)),
)  # fmt: skip
