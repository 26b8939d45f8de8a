"""Which descriptor a payment has, what its acquirer is sent of it, and what answers show. docs/decisions/0047."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.models import Channel, Merchant, Payment
from gateway.payments.descriptors import (
    REQUEST_DESCRIPTOR,
    apply_descriptor,
    apply_target_descriptor,
    build_descriptor_parameter,
    prefetch_channels,
    resolve_default_descriptor,
    resolve_descriptor,
)
from tests.support.client import Api
from tests.support.database import statements
from tests.support.fixtures import Shop

MERCHANT = Merchant(name="Long name " * 20)
CONFIGURED, PLAIN = Channel(descriptor="CHANNEL"), Channel(descriptor="")
NAME = ("Long name " * 20)[:127]


@pytest.mark.parametrize(("channel", "shown"), [(CONFIGURED, "CHANNEL"), (PLAIN, NAME)])
def test_without_one_the_channels_is_shown_or_as_much_of_the_merchants_name_as_fits(
    channel: Channel, shown: str
) -> None:
    assert resolve_default_descriptor(channel, MERCHANT) == shown


@pytest.mark.parametrize(
    ("echo", "chosen", "request_", "answer"),
    [
        ({"a": "1"}, None, {"a": "1"}, {"descriptor": "NAME"}),
        ({"a": "1"}, "", {"a": "1"}, {"descriptor": "NAME"}),
        ({"a": "1"}, "CHANNEL", {"a": "1", "descriptor": "CHANNEL"}, {}),
        ({"a": "1", "descriptor": "SENT"}, "CHANNEL", {"a": "1", "descriptor": "SENT"}, {}),
        ({"a": "1", "descriptor": "SENT"}, None, {"a": "1", "descriptor": "SENT"}, {}),
    ],
)
def test_what_is_sent_goes_first_then_what_is_configured_and_the_name_is_only_shown(
    echo: dict[str, str], chosen: str | None, request_: dict[str, str], answer: dict[str, str]
) -> None:
    assert apply_descriptor(echo, chosen=chosen, otherwise="NAME") == (request_, answer)


@pytest.mark.parametrize(
    ("sent", "answer", "channel", "applied"),
    [
        ("SENT", {}, CONFIGURED, ({"descriptor": "SENT"}, {})),
        ("SENT", {"descriptor": "SHOWN"}, CONFIGURED, ({"descriptor": "SENT"}, {})),
        (None, {"descriptor": "SHOWN"}, CONFIGURED, ({}, {"descriptor": "SHOWN"})),
        (None, {}, CONFIGURED, ({}, {"descriptor": "CHANNEL"})),
        (None, {}, PLAIN, ({}, {"descriptor": NAME})),
    ],
)
def test_a_follow_up_has_the_descriptor_of_what_it_follows(
    sent: str | None, answer: dict[str, str], channel: Channel, applied: tuple[dict[str, str], dict[str, str]]
) -> None:
    target = Payment(channel=channel, merchant=MERCHANT, answer=answer)
    target.sent_descriptor = sent  # type: ignore[attr-defined]
    assert apply_target_descriptor({}, target) == applied
    assert apply_target_descriptor({"descriptor": "OWN"}, target) == ({"descriptor": "OWN"}, {})


@pytest.mark.parametrize(
    ("request_", "answer", "channel", "sent", "shown"),
    [
        ({"descriptor": "SENT"}, {"descriptor": "SHOWN"}, CONFIGURED, {"descriptor": "SENT"}, "SENT"),
        ({}, {"descriptor": "SHOWN"}, CONFIGURED, {}, "SHOWN"),
        ({}, {}, CONFIGURED, {}, "CHANNEL"),
        ({}, {}, PLAIN, {}, NAME),
    ],
)
def test_the_acquirer_is_sent_what_was_sent_and_answers_show_what_the_statement_says(
    request_: dict[str, str], answer: dict[str, str], channel: Channel, sent: dict[str, str], shown: str
) -> None:
    row = Payment(channel=channel, merchant=MERCHANT, request=request_, answer=answer)
    assert build_descriptor_parameter(row) == sent
    assert resolve_descriptor(row) == shown


@pytest.mark.django_db
def test_payments_without_one_cost_three_queries_however_many_they_are(shop: Shop, api: Api) -> None:
    """Those that have one cost none."""
    lacking, sent, shown = (UUID(api.pay().id) for _ in range(3))
    second = UUID(shop.api_of(shop.open_channel(descriptor="SECOND")).pay().id)
    Payment.objects.filter(pk__in=(lacking, second)).update(answer={}, request={})
    Payment.objects.filter(pk=sent).update(answer={}, request={"descriptor": "SENT"})
    Payment.objects.filter(pk=shown).update(answer={"descriptor": "SHOWN"}, request={})

    def read(*which: UUID) -> tuple[list[str], int]:
        rows = list(Payment.objects.filter(pk__in=which).order_by("id"))
        with statements() as seen:
            prefetch_channels(rows)
            found = [resolve_descriptor(row) for row in rows]
        return found, len(seen)

    assert read(lacking) == ([shop.merchant.name], 3)
    assert read(lacking, sent, shown, second) == ([shop.merchant.name, "SENT", "SHOWN", "SECOND"], 3)
    assert read(sent, shown) == (["SENT", "SHOWN"], 0)


@pytest.mark.django_db
@pytest.mark.parametrize("values", [{}, {"descriptor": "SENT"}], ids=str)
def test_what_was_sent_is_read_without_the_rest_of_the_request(api: Api, values: dict[str, Any]) -> None:
    api.pay(**values)
    row = Payment.objects.defer("request").annotate(sent_descriptor=REQUEST_DESCRIPTOR).get()
    assert row.sent_descriptor == values.get("descriptor")
