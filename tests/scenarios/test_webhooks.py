"""A merchant who trusts webhooks: made by command, verified with other people's libraries, and never at odds with what
the API answers. Source: Part A, Events."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command

from gateway.payments import webhook_payloads
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.redirected_shopper import Visitor, order
from tests.support.shopper import open_checkout
from tests.support.webhooks import Hook, decrypted, hooked, verified

NUMBERS = ("4200000000000000", "4242424242424242", "5454545454545454", "4000015500000005", "4444444444444444")


def endpoint(shop: Shop, hook: Hook, *more: str) -> dict[str, str]:
    """What an operator types, and what is printed once."""
    out = StringIO()
    call_command(
        "webhook_endpoint", "--entity", shop.channel.entity_id, "--url", hook.url, "--activate", *more, stdout=out
    )
    made, active = map(json.loads, out.getvalue().splitlines())
    assert active["state"] == "active"
    return dict(made)


def test_redirect_answer_and_webhook_never_disagree(shop: Shop) -> None:
    """Cards that are approved, declined and refused, captures, refunds, checkouts, and shoppers who pay elsewhere: the
    last webhook of each payment says what its GET says."""
    api = shop.api
    with hooked() as hook:
        secret = endpoint(shop, hook, "--mode", "signed")["standard_secret"]
        ids = {api.pay(card__number=number, card__cvv="123").body.get("id") for number in NUMBERS * 260}
        for amount in ("10.00", "92.00", "100.00"):
            held = api.pay(paymentType="PA").id
            ids |= {held, api.follow(held, "CP", amount).body.get("id")}
        paid = api.pay().id
        ids |= {paid, *(api.follow(paid, "RF", "50.00").body.get("id") for _ in range(3))}
        for outcome in ("approve", "decline", "cancel") * 2:
            sent = order(api, "ONLINETRANSFER")
            webhook_payloads.TIMER.run()  # one webhook while the payment is pending, one more with its result
            assert Visitor.of(sent).decide(outcome)["id"] == sent.id
            ids.add(sent.id)
        for number in ("4200000000000000", "4242424242424242", "4000015500000005"):
            browser = open_checkout(api)
            browser.pay(card__number=number)
            status = api.get(f"/v1/checkouts/{browser.checkout}/payment")
            ids.add(status.body["id"])
        webhook_payloads.TIMER.run(shop.merchant)
        told: dict[str, dict[str, str]] = {}
        last: dict[str, int] = {}
        for message in (verified(one, secret) for one in hook.told):
            payload = message["payload"]
            if message["type"] == "PAYMENT" and payload["sequence"] > last.get(payload["id"], 0):
                last[payload["id"]] = payload["sequence"]
                told[payload["id"]] = payload
    ids.discard(None)
    assert len(ids) > 1000
    assert set(told) == ids
    for ident, payload in told.items():
        answer = api.read(str(ident)).body
        assert payload["result"] == answer["result"]
        assert (payload["amount"], payload["currency"]) == (answer["amount"], answer["currency"])
        assert payload["shortId"].count(".") == 2


def test_a_checkout_that_is_never_paid_tells_nothing(shop: Shop) -> None:
    """A29.4: a notification is sent only after the pay-now button was clicked."""
    with hooked() as hook:
        secret = endpoint(shop, hook)["secret"]
        open_checkout(shop.api)
        paid = open_checkout(shop.api)
        webhook_payloads.TIMER.run(shop.merchant)
        assert len(hook.told) == 1
        paid.pay()
        webhook_payloads.TIMER.run(shop.merchant)
        message = decrypted(hook.told[1], secret)
    assert message["payload"]["source"] == "CHECKOUT"
    assert len(hook.told) == 2


@pytest.mark.parametrize("mode", ["encrypted", "signed"])
def test_a_receiver_that_was_away_gets_everything_when_it_is_back(shop: Shop, mode: str) -> None:
    with hooked() as hook:
        made = endpoint(shop, hook, "--mode", mode)
        hook.always = 503
        ids = {shop.api.pay().id for _ in range(3)}
        for minutes in (0, 1, 2):
            pass_time(shop.api, minutes=minutes, seconds=1)
            webhook_payloads.TIMER.run(shop.merchant)
        assert len(hook.told) == 1 + 3 * 3
        hook.always = 204
        hook.answer_body = b""
        pass_time(shop.api, minutes=4, seconds=1)
        webhook_payloads.TIMER.run(shop.merchant)
        told = hook.told[-3:]
    got = [
        (decrypted(one, made["secret"]) if mode == "encrypted" else verified(one, made["standard_secret"]))
        for one in told
    ]
    assert {message["payload"]["id"] for message in got} == ids
