"""Guides that answer the reader: the check of an old request, the list before going live, status, changelog, result."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from checkout.demo.page_source import render_page_source
from gateway.core import clock
from gateway.models import Channel, Role, TimerRun
from gateway.portal import guides
from gateway.portal.machine_texts import COLLECTION_SCHEMA
from gateway.portal.migration_check import MAX_CHECKED_CHARS, check_request, hide_pasted_secrets, read_pasted_request
from gateway.portal.pasted_request import UnreadableRequestError, parse_pasted_request
from gateway.portal.samples import API_SAMPLES
from gateway.portal.search import load_search_index
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.webhook_delivery import deliver, register
from tests.support.webhooks import hooked

CARD = "card.number=4111111111111111&card.holder=Jane+Jones&card.expiryMonth=05&card.expiryYear=2034&card.cvv=123"
BODY = f"authentication.userId=8a&authentication.password=sy6KJsT8&entityId={'8' * 32}&amount=92.00&currency=EUR&{CARD}"
PAYMENT = f"{BODY}&paymentType=DB&paymentBrand=VISA&recurringType=INITIAL&shopperId=4711"


def names(found: Any) -> set[str]:
    return {one.name for one in found}


# --- the check of an old client's request -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        PAYMENT,
        PAYMENT.replace("&", "\n"),
        f"POST /v1/payments HTTP/1.1\r\nHost: old.example\r\nAuthorization: Bearer abc\r\n\r\n{PAYMENT}",
        f"curl https://old.example/v1/payments -H 'Authorization: Bearer abc' \\\n  -d '{PAYMENT}'",
        f"curl --url https://old.example/v1/payments --max-time 30 -sSXPOST -d'{PAYMENT}'",
        f"$ curl -b 'a=/x' $BASE/v1/payments -d '{PAYMENT}' --cookie-jar /tmp/jar | jq .",
        "curl -X POST https://old.example/v1/payments --data-urlencode 'card.holder=Jane Jones' "
        + " ".join(f"-d {part}" for part in PAYMENT.split("&") if not part.startswith("card.holder")),
    ],
)
def test_an_old_request_is_read_in_every_form(text: str) -> None:
    report = check_request(parse_pasted_request(text))
    assert report.endpoint is not None
    assert report.endpoint.name == "payment"
    assert names(report.refused) == set()
    ignored = {"authentication.userId", "authentication.password", "recurringType", "shopperId"}
    assert names(report.ignored) == ignored
    assert {"amount", "card.number", "paymentType", "entityId"} <= names(report.taken)
    assert ("Authorization" in " ".join(report.changes)) == ("Bearer" not in text)


def test_a_commands_token_is_seen_however_it_is_sent() -> None:
    for sent in ("-H 'authorization: bearer x'", "-H'Authorization: Bearer x'", "--oauth2-bearer x"):
        assert parse_pasted_request(f"curl https://old.example/p {sent} -d a=1").has_token
    assert not parse_pasted_request("curl https://old.example/p -H 'Accept: */*' -d a=1").has_token


def test_what_is_refused_has_its_reason() -> None:
    report = check_request(
        parse_pasted_request(PAYMENT.replace("92.00", "92,0").replace("paymentBrand", "paymentBrnad"))
    )
    why = {one.name: (one.why, one.anchor) for one in report.refused}
    assert set(why) == {"amount", "paymentBrnad"}
    assert why["paymentBrnad"][1] == "paymentBrand"
    assert names(report.ignored) >= {"recurringType", "shopperId"}
    assert "amount" not in names(report.taken)


def test_a_strict_channel_and_one_with_3d_secure_refuse_more() -> None:
    request = parse_pasted_request(PAYMENT)
    assert {"recurringType", "shopperId"} <= names(check_request(request, strict=True).refused)
    assert any(name.startswith("customer.browser") for name in names(check_request(request, threeds=True).refused))


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", f"/v1/payments/{'8' * 32}", "follow-up"),
        ("POST", "/v1/payments/{id}", "follow-up"),
        ("POST", f"/v1/checkouts/{'8A' * 16}.node-1/payment", ""),
        ("POST", f"/v1/checkouts/{'8A' * 16}-node1", "update-checkout"),
        ("DELETE", f"/v1/registrations/{'8' * 32}", "delete-registration"),
        ("PUT", "/v1/payments", ""),
        ("POST", "/v1/payment", ""),
    ],
)
def test_its_path_is_found_or_named(method: str, path: str, name: str) -> None:
    report = check_request(parse_pasted_request(f"{method} {path}\n\n{PAYMENT}"))
    assert (report.endpoint.name if report.endpoint else "") == name
    assert any("There is no" in line for line in report.changes) == (not name)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "curl",
        "curl 'https://old.example",
        "curl https://old.example -d @body.txt",
        "curl https://old.example/v1/payments -F amount=92.00",
        "curl http://[::1 -d a=b",
        "a=b" * MAX_CHECKED_CHARS,
        "a=%FF",
        "&".join(f"a{n}=1" for n in range(500)),
    ],
)
def test_what_is_no_request_is_told(text: str) -> None:
    with pytest.raises(UnreadableRequestError) as fault:
        check_request(read_pasted_request(text))
    assert str(fault.value)


def test_the_form_comes_back_with_a_test_card_and_without_credentials() -> None:
    sent = f"'{PAYMENT}&customer.ip=4111111111111111'"
    shown = hide_pasted_secrets(f"curl https://a.example/v1/payments -H 'Authorization: Bearer secret1' -d {sent}")
    for secret in ("4111111111111111", "sy6KJsT8", "secret1"):
        assert secret not in shown
    assert "card.number=4200000000000000&" in shown
    assert "card.cvv=123&" in shown
    report = check_request(parse_pasted_request(shown))
    assert names(report.refused) == set()


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("card.number=4111 1111 1111 1111&card.cvv=987", "card.number=4200000000000000&card.cvv=123"),
        ("card.number=4111-1111-1111-1111", "card.number=4200000000000000"),
        ("card.number=4111+1111+1111+1112&a=b", "card.number=4200000000000000&a=b"),
        ("card.number=4111\t1111 1111 1112\na=1", "card.number=4200000000000000\na=1"),
        ("card.number=4111111111111111 -d a=b", "card.number=4200000000000000 -d a=b"),
        ("card.verificationCode=987&a=b", "card.verificationCode=123&a=b"),
        ("card.securityCode=987&card.cvc=986&cvv2=985", "card.securityCode=123&card.cvc=123&cvv2=123"),
        ("'authentication.password=a,b'", "'authentication.password=…'"),
    ],
)
def test_a_secret_in_another_notation_does_not_come_back(sent: str, shown: str) -> None:
    assert hide_pasted_secrets(sent) == shown


def test_the_page_answers_without_a_token_and_repeats_no_secret(client: Client) -> None:
    page = client.get("/docs/migrating")
    assert b"A request of your old client" in page.content
    answer = client.post("/docs/migrating", {"request": PAYMENT.replace("EUR", "eur"), "threeds": "1"})
    text = unescape(answer.content.decode())
    assert answer.status_code == 200
    assert "must be a currency of ISO 4217" in text
    assert "4111111111111111" not in text
    assert "sy6KJsT8" not in text
    assert "Not read:" in client.post("/docs/migrating", {"request": "hello"}).content.decode()
    assert "Nothing was pasted" in client.post("/docs/migrating", {"request": " "}).content.decode()
    assert client.put("/docs/migrating").status_code == 405


def test_in_live_nothing_is_checked(client: Client, live: None) -> None:
    assert b"<textarea" not in client.get("/docs/migrating", secure=True).content
    assert client.post("/docs/migrating", {"request": PAYMENT}, secure=True).status_code == 404


# --- from nothing to live ---------------------------------------------------------------------------------------------

LIST = "/admin/docs/go-live"


def read_list(browser: Client, channel: Channel) -> dict[str, bool]:
    answer = browser.get(LIST, {"entityId": channel.entity_id})
    assert answer.status_code == 200
    return {step.title: done for step, done in answer.context["steps"]}


@pytest.mark.django_db
def test_the_list_checks_itself(shop: Shop) -> None:
    browser = signed_in(person("dev", Role.DEVELOPER, shop.merchant))
    before = read_list(browser, shop.channel)
    assert {title for title, done in before.items() if done} == {
        "An access token that may pay",
        "No token ends within 14 days",
        "A challenge of 3-D Secure to its end",
        "Endpoints over https",
        "No request with a fault within 24 hours",
    }
    paid = shop.api.pay()
    shop.api.post(f"/v1/payments/{paid.id}", {"paymentType": "RF", "amount": "1.00", "currency": "EUR"})
    checkout = shop.api.post("/v1/checkouts", {"amount": "92.00", "currency": "EUR", "paymentType": "DB"})
    shop.api.post(f"/v1/checkouts/{checkout.id}/payment", API_SAMPLES["pay-checkout"].fields)
    shop.api.post("/v1/checkouts", {"amount": "wrong"})
    with hooked() as hook:
        register(shop, hook, mode="signed")
        shop.api.pay(**{"card.number": "4000015500000005"})
        deliver(shop)
    after = read_list(browser, shop.channel)
    changed = {title for title, done in after.items() if done != before[title]}
    assert changed == {
        "An approved payment",
        "A declined payment",
        "A refund or a reversal",
        "A payment by the form",
        "An active webhook endpoint of your own",
        "A webhook that your server took with 2xx",
        "Endpoints over https",
        "No request with a fault within 24 hours",
    }


@pytest.mark.django_db
def test_the_list_is_of_channels_in_the_users_scope(shop: Shop, stranger: Shop) -> None:
    assert Client().get(LIST).headers["Location"].startswith("/admin/login/")
    mine = signed_in(person("dev", Role.DEVELOPER, shop.merchant))
    for asked in (stranger.channel.entity_id, "0" * 32, "nonsense", ""):
        assert mine.get(LIST, {"entityId": asked}).context["channel"] == shop.channel
    nobody = signed_in(person("none", Role.DEVELOPER))
    assert b"You may not see" in nobody.get(LIST).content


# --- status -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_status_names_what_is_late(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guides, "STATUS_CACHE_S", float("inf"))
    guides._cached_status = None
    TimerRun.objects.all().delete()
    body = client.get("/docs/status.json").json()
    assert (body["status"], body["environment"]) == ("slow", "test")
    states = {part["name"]: part["status"] for part in body["parts"]}
    assert states == {"api": "ok", "timers": "slow", "webhooks": "ok", "testData": "ok"}
    TimerRun.objects.create(name="webhooks", last_at=clock.real_now(), last_ms=1)
    assert client.get("/docs/status.json").json()["status"] == "slow"  # what was seen is kept
    guides._cached_status = None
    assert client.get("/docs/status.json").json()["status"] == "ok"
    TimerRun.objects.update(last_at=clock.real_now() - timedelta(hours=1))
    guides._cached_status = None
    assert "1 of 1 timers are late" in client.get("/docs/status").content.decode()
    guides._cached_status = None


# --- result, changelog, ndc -------------------------------------------------------------------------------------------


def test_the_sample_page_ends_on_a_page_with_the_next_command(client: Client) -> None:
    checkout = f"{'8A' * 16}-node1"
    path = f"/v1/checkouts/{checkout}/payment"
    page = client.get("/docs/result", {"id": checkout, "resourcePath": path}).content.decode()
    assert checkout in page
    assert f"{path}?entityId=" in page
    for wrong in ("https://evil.example/", f"/v1/checkouts/{checkout}/payment?x=<script>", "/admin/"):
        other = client.get("/docs/result", {"id": checkout, "resourcePath": wrong})
        assert b"are not of the form" in other.content
        assert b"<script>" not in other.content.replace(b'<script type="module"', b"")
    assert b"sample page with the form" in client.get("/docs/result").content


def test_the_result_page_is_not_in_live(client: Client, live: None) -> None:
    assert client.get("/docs/result", secure=True).status_code == 404


def test_the_changelog_is_on_the_site(client: Client) -> None:
    page = client.get("/docs/changelog")
    assert (page.status_code, b"<h1>Changelog</h1>" in page.content) == (200, True)
    assert b'href="/docs/changelog"' in client.get("/docs/").content


def test_an_ndc_in_the_search_opens_its_request(client: Client) -> None:
    ndc = f"{'8' * 32}-01a1fe2a4b9d7306acdeb7adf6eb9330"
    page = "/admin/gateway/requestlog/01a1fe2a-4b9d-7306-acde-b7adf6eb9330/change/"
    assert client.get("/docs/search", {"q": f" {ndc.upper()} "}).headers["Location"] == page
    assert [hit["url"] for hit in client.get("/docs/search.json", {"q": ndc}).json()["found"]] == [page]
    load_search_index(live=False)  # a busy machine takes longer for it than the first search of a process waits
    assert client.get("/docs/search", {"q": ndc[:-1]}).status_code == 200


# --- for machines -----------------------------------------------------------------------------------------------------


def test_llms_txt_lists_pages_that_are_there_as_markdown(client: Client) -> None:
    text = client.get("/llms.txt").content.decode()
    assert text.startswith("# Tollhouse\n\n> ")
    addresses = re.findall(r"\]\((http[^)]+)\)", text)
    assert len(addresses) > 50
    for address in addresses:
        path = address.removeprefix(settings.GATEWAY_BASE_URL)
        if path in ("/testdata", "/docs/status"):
            continue
        assert client.get(path).status_code == 200, path
    page = client.get("/docs/follow-ups.md")
    assert page["Content-Type"] == "text/markdown; charset=utf-8"
    assert page.content.decode().startswith("# Follow-ups")
    for mark in ("<!--", "<a id", "gateway.example"):
        assert mark not in page.content.decode()
    assert client.get("/docs/no-such.md").status_code == 404
    assert client.get("/docs/../SECURITY.md").status_code == 404


def test_llms_txt_in_live_names_no_test_tools(client: Client, live: None) -> None:
    text = client.get("/llms.txt", secure=True).content.decode()
    assert "test-tools" not in text
    assert client.get("/docs/test-tools.md", secure=True).status_code == 404
    assert "var/demo.env" not in client.get("/docs/quick-start.md", secure=True).content.decode()


def test_a_result_code_is_explained_as_data(client: Client) -> None:
    found = client.get("/docs/result-codes.json", {"code": "800.100.155"}).json()
    assert (found["code"], found["httpStatus"], found["family"]) == ("800.100.155", 400, "Declined by the bank")
    assert found["whatToDo"]
    assert client.get("/docs/result-codes.json", {"code": "1"}).status_code == 404


def test_the_collection_has_a_request_for_each_operation(client: Client) -> None:
    document = client.get("/v1/openapi.json").json()
    collection = client.get("/docs/collection.json").json()
    assert collection["info"]["schema"] == COLLECTION_SCHEMA
    items = [one for folder in collection["item"] for one in folder["item"]]
    operations = [
        (method.upper(), path)
        for path, found in document["paths"].items()
        for method in found
        if method in ("get", "post", "delete")
    ]
    assert len(items) == len(operations) > 40
    (pay,) = [one for one in items if one["request"]["url"]["raw"] == "{{base}}/v1/payments"]
    sent = {one["key"]: one["value"] for one in pay["request"]["body"]["urlencoded"] if not one.get("disabled")}
    assert sent["entityId"] == "{{entityId}}"
    assert {"amount": "92.00", "paymentType": "DB"}.items() <= sent.items()


@pytest.mark.django_db
def test_a_request_of_the_collection_pays(shop: Shop, client: Client) -> None:
    items = [one for folder in client.get("/docs/collection.json").json()["item"] for one in folder["item"]]
    (pay,) = [one["request"] for one in items if one["request"]["url"]["raw"] == "{{base}}/v1/payments"]
    fields = {one["key"]: one["value"] for one in pay["body"]["urlencoded"] if not one.get("disabled")}
    del fields["entityId"]
    assert shop.api.post("/v1/payments", fields).status == 200


def test_the_sample_checkout_leaves_the_way_back_to_the_form() -> None:
    """An address of a shop that does not exist would end a first payment on a browser's error page."""
    assert "shopperResultUrl" not in API_SAMPLES["checkout"].fields
    assert 'action="http://gateway.test/docs/result"' in render_page_source("http://gateway.test")
    assert 'action="https://shop.example/result"' in render_page_source("http://gateway.test", live=True)
