"""What a developer's machine fetches in the test environment: webhooks and the request log. docs/decisions/0081."""

from __future__ import annotations

import json

import pytest

from gateway.api import developer
from gateway.core import clock
from gateway.models import AuditEntry, InspectedWebhook, Merchant, WebhookEndpoint
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications import claims, endpoints
from gateway.portal.webhook_receiver import read_encrypted, read_signed
from tests.support.fixtures import Shop
from tests.support.webhook_delivery import deliver


@pytest.mark.parametrize(("mode", "read"), [("signed", read_signed), ("encrypted", read_encrypted)])
def test_webhooks_are_read_as_they_would_have_been_sent(shop: Shop, mode: str, read: object) -> None:
    opened = shop.api.post("/v1/test/webhooks", {"mode": mode})
    assert (opened.status, opened.body["state"], opened.body["mode"]) == (200, "active", mode)
    paid = shop.api.pay()
    deliver()
    asked = {"mode": mode, "after": str(opened.body["newest"])}
    (found,) = shop.api.get("/v1/test/webhooks", asked).body["webhooks"]
    headers = {name.lower(): value for name, value in found["headers"].items()}
    assert callable(read)
    message = read(headers, found["body"].encode(), [opened.body["secret"]])
    assert (message["type"], message["payload"]["id"]) == ("PAYMENT", paid.id)
    asked["after"] = str(found["number"])
    assert shop.api.get("/v1/test/webhooks", asked).body["webhooks"] == []
    # Without a number: the newest, the message that opened the inspector among them.
    newest = shop.api.get("/v1/test/webhooks", {"mode": mode}).body["webhooks"]
    assert [one["number"] for one in newest] == [opened.body["newest"], found["number"]]


def test_an_inspector_is_opened_once_and_by_whom_is_in_the_trail(shop: Shop) -> None:
    first, second = (shop.api.post("/v1/test/webhooks", {}) for _ in range(2))
    assert first.body["secret"] == second.body["secret"]
    (row,) = WebhookEndpoint.objects.filter(merchant=shop.merchant)
    assert (row.mode, row.channel_id) == ("signed", shop.channel.pk)
    assert set(row.kinds) == set(WEBHOOK_KINDS), "it shows also what an endpoint has to ask for"
    actors = AuditEntry.objects.filter(subject_id=str(row.pk)).values_list("actor", flat=True)
    assert set(actors)
    assert all(actor.startswith("access token ") for actor in actors)


def test_another_channels_webhooks_are_not_read(shop: Shop) -> None:
    other = shop.open_channel()
    shop.api.post("/v1/test/webhooks", {})
    shop.api.pay()
    deliver()
    assert shop.api_of(other).get("/v1/test/webhooks").body["webhooks"] == []


def test_the_request_log_has_the_newest_first_and_not_its_own_readers(shop: Shop) -> None:
    paid = shop.api.pay()
    refused = shop.api.pay(amount="9.1")
    shop.api.get("/v1/test/webhooks")
    shop.api.get("/v1/test/requests")
    found = shop.api.get("/v1/test/requests").body["requests"]
    assert [(one["status"], one["resultCode"]) for one in found] == [(400, "200.300.404"), (200, "000.100.110")]
    assert found[0]["ndc"] == refused.body["ndc"]
    assert (found[1]["payment"], found[1]["path"], found[1]["method"]) == (paid.id, "/v1/payments", "POST")
    assert "4200000000000000" not in json.dumps(found)


def test_of_many_webhooks_the_newest_are_read_or_the_next_after_a_number(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(developer, "MAX_KEPT_WEBHOOKS", 2)
    opened = shop.api.post("/v1/test/webhooks", {}).body["newest"]
    for _ in range(4):
        shop.api.pay()
    deliver()
    numbers = list(InspectedWebhook.objects.order_by("pk").values_list("pk", flat=True))
    assert numbers[0] == opened

    def read(**asked: str) -> list[int]:
        return [one["number"] for one in shop.api.get("/v1/test/webhooks", asked).body["webhooks"]]

    assert read() == numbers[-2:]
    assert read(after=str(opened)) == numbers[1:3]
    assert read(after=str(numbers[2])) == numbers[3:]
    assert read(after="0") == numbers[:2]


def test_of_many_requests_the_newest_are_listed_and_none_of_another_entity(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(developer, "MAX_LISTED_REQUESTS", 2)
    other = shop.api_of(shop.open_channel())
    first, second, third = (shop.api.pay().id for _ in range(3))
    theirs = other.pay().id
    listed = shop.api.get("/v1/test/requests").body["requests"]
    assert [one["payment"] for one in listed] == [third, second]
    assert first not in str(listed)
    assert [one["payment"] for one in other.get("/v1/test/requests").body["requests"]] == [theirs]


def test_every_answer_to_a_developers_machine_says_how_often_it_may_still_ask(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 9, "window_s": 86_400}}))
    for answer in (api.post("/v1/test/webhooks", {}), api.get("/v1/test/webhooks"), api.get("/v1/test/requests")):
        assert answer.status == 200
        assert answer.headers["RateLimit-Limit"] == "9"


def test_opening_an_inspector_says_what_it_is_and_which_message_is_its_newest(shop: Shop) -> None:
    """Of this inspector, not of another that is newer."""
    first = shop.api.post("/v1/test/webhooks", {"colour": "red"})
    other = shop.api_of(shop.open_channel()).post("/v1/test/webhooks", {"mode": "encrypted"}).body
    row = WebhookEndpoint.objects.get(merchant=shop.merchant, channel=shop.channel)
    assert (first.code, first.body["mode"], first.body["state"]) == ("000.000.100", "signed", "active")
    assert first.body["ignoredParameters"] == ["colour"]
    keys = claims.unseal_signing_keys(row.pk, row.secret_sealed, None)
    assert keys is not None
    assert first.body["secret"] == keys.current.reveal().hex()
    assert first.body["ndc"]
    again = shop.api.post("/v1/test/webhooks", {}).body
    assert (again["newest"], again["newest"] < other["newest"]) == (first.body["newest"], True)
    InspectedWebhook.objects.filter(endpoint=row).delete()
    assert shop.api.post("/v1/test/webhooks", {}).body["newest"] == 0
    (made,) = AuditEntry.objects.filter(subject_id=str(row.pk), action="add")
    assert (made.actor, made.ip) == (f"access token {shop.token.pk.hex}", "127.0.0.1")


def test_an_inspector_that_cannot_be_opened_is_refused_by_its_field(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 0)
    refused = shop.api.post("/v1/test/webhooks", {})
    assert (refused.status, refused.code) == (400, "200.300.404")
    assert refused.errors == {"entityId": "a merchant has at most 0 webhook endpoints"}
    monkeypatch.undo()
    assert shop.api.post("/v1/test/webhooks", {}).status == 200
    WebhookEndpoint.objects.update(secret_sealed=b"sealed by a key that is gone")
    lost = shop.api.post("/v1/test/webhooks", {})
    assert (lost.status, lost.code) == (400, "200.300.404")
    assert lost.errors == {"mode": "the inspector's secret cannot be opened"}


def test_only_the_own_inspector_of_the_asked_mode_is_read(shop: Shop, stranger: Shop) -> None:
    """Not one of another mode, entity or merchant, and not an endpoint that is called."""
    for api in (shop.api, stranger.api):
        Merchant.objects.filter(pk__in=(shop.merchant.pk, stranger.merchant.pk)).update(dispatching=True)
        for entity in (api.entity, None):
            for mode in ("signed", "encrypted"):
                owner = shop if api is shop.api else stranger
                asks = api.as_entity(entity or owner.merchant.entity_id)
                assert asks.post("/v1/test/webhooks", {"mode": mode}).status == 200
    own = WebhookEndpoint.objects.get(channel=shop.channel, mode="signed")
    called = WebhookEndpoint.objects.get(channel=shop.channel, mode="encrypted")
    for api, channel in ((shop.api, shop.channel), (shop.api.as_entity(shop.merchant.entity_id), None)):
        for mode in ("signed", "encrypted"):
            mine = InspectedWebhook.objects.filter(
                endpoint__merchant=shop.merchant, endpoint__channel=channel, endpoint__mode=mode
            ).order_by("pk")
            listed = api.get("/v1/test/webhooks", {"mode": mode})
            assert [one["number"] for one in listed.body["webhooks"]] == [one.pk for one in mine] != []
            assert [one["at"] for one in listed.body["webhooks"]] == [clock.format_timestamp(one.at) for one in mine]
    WebhookEndpoint.objects.filter(pk=called.pk).update(mode="signed", url="https://shop.example/hooks")
    listed = shop.api.get("/v1/test/webhooks", {"colour": "red"})
    assert {one["number"] for one in listed.body["webhooks"]} == {
        one.pk for one in InspectedWebhook.objects.filter(endpoint=own)
    }
    assert (listed.code, listed.body["ignoredParameters"]) == ("000.000.100", ["colour"])


def test_a_request_is_listed_with_its_payment_if_it_made_one(shop: Shop) -> None:
    paid = shop.api.pay()
    refused = shop.api.pay(amount="9.1")
    listed = shop.api.get("/v1/test/requests", {"colour": "red"})
    assert (listed.code, listed.body["ignoredParameters"]) == ("000.000.100", ["colour"])
    newest, older = listed.body["requests"]
    assert newest.keys() == {"ndc", "at", "method", "path", "status", "resultCode", "durationMs"}
    assert older.keys() == newest.keys() | {"payment"}
    assert (older["payment"], older["ndc"], newest["ndc"]) == (paid.id, paid.body["ndc"], refused.body["ndc"])
