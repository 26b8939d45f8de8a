"""What a merchant's server does, with the installed Python package; prints what became of it as JSON."""

import asyncio
import json
import sys
import traceback
from decimal import Decimal

import tollhouse
from tollhouse import webhooks

url, token, entity, messages = sys.argv[1:]
gateway = tollhouse.Tollhouse(url, token=token, entity_id=entity)
order = {
    "amount": Decimal("92.00"),
    "currency": "EUR",
    "paymentBrand": "VISA",
    "paymentType": "PA",
    "merchantTransactionId": "order-4711",
    "customParameters": {"order.kind": "gift"},
    "cart": {"items": [{"name": "Pen"}]},
}
card = {"number": "4200000000000000", "holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034"}
told = {}
paid = gateway.payments.create(**order, card=card, idempotency_key="python-1")
again = gateway.payments.create(**order, card=card, idempotency_key="python-1")
assert again.replayed
kind, item = paid["customParameters"]["order.kind"], paid["cart"]["items"][0]["name"]
told["paid"] = [paid.outcome, paid.id == again.id, kind, item]
assert paid.amount == Decimal("92.00")
capture = gateway.payments.capture(paid.id, amount="50.00", currency="EUR")
told["capture"] = capture.outcome
told["refund"] = gateway.payments.refund(capture.id, amount=Decimal("10.00"), currency="EUR").outcome
told["reverse"] = gateway.payments.reverse(paid.id).outcome
linked = gateway.transactions.get(paid.id, includeLinkedTransactions=True)
told["found"] = sorted(one.paymentType for one in linked.records)
period = {"from": "2026-05-14", "to": "2026-05-15"}
told["settlements"] = len(list(gateway.reports.settlements(date=period, testMode="INTERNAL")))
told["declined"] = gateway.payments.create(**order, card={**card, "number": "4000015500000005"}).outcome


async def read() -> str:
    async with tollhouse.AsyncTollhouse(url, token=token, entity_id=entity) as other:
        return str((await other.payments.get(paid.id)).amount)


told["read"] = asyncio.run(read())
try:
    gateway.payments.create(**{**order, "amount": "ninety"}, card=card)
except tollhouse.ParameterErrors as error:
    told["refused"] = [error.status, [one.name for one in error.errors], bool(error.ndc)]
    told["hidden"] = card["number"] not in "".join(traceback.format_exception(error)) + repr(paid) + repr(gateway)
try:
    tollhouse.Tollhouse(url, token="wrong", entity_id=entity).payments.get(paid.id)
except tollhouse.AuthenticationError as error:
    told["stranger"] = error.status
try:
    gateway.payments.get("0" * 32)
except tollhouse.NotFoundError as error:
    told["missing"] = error.status
try:
    gateway.payments.create(**{**order, "amount": 9.99}, card=card)
except TypeError:
    told["fraction"] = True
try:
    gateway.registrations.pay("..", **order)
except ValueError:
    told["dots"] = True
try:
    tollhouse.Tollhouse("http://127.0.0.1:9", token="t", max_retries=0).payments.reverse(paid.id, idempotency_key="k")
except tollhouse.NoAnswerError as error:
    told["away"] = error.idempotency_key == "k"
with open(messages) as file:
    received = json.load(file)
for mode, one in received.items():
    event = webhooks.verify(one["body"], one["headers"], ["00" * 32, one["secret"]])
    told[mode] = [event.type, event.payment.amount == Decimal("7.00")]
forged = 0
for one in received.values():
    for body, secret in ((one["body"].replace("7", "8"), one["secret"]), (one["body"], "00" * 32)):
        try:
            webhooks.verify(body, one["headers"], secret)
        except tollhouse.WebhookVerificationError:
            forged += 1
told["forged"] = forged == 4
sys.stdout.write(json.dumps(told))
