"""Webhooks without a tunnel: the inspector, endpoints, deliveries, replays and "verify this body" in the back office.

Source: docs/decisions/0029.
"""

from __future__ import annotations

import base64
import hmac
import re
import socket
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from gateway.background import queue
from gateway.core import clock
from gateway.models import (
    AuditEntry,
    BackgroundWork,
    InspectedWebhook,
    Merchant,
    Role,
    WebhookDelivery,
    WebhookEndpoint,
)
from gateway.models.webhooks import INSPECTOR_URL_PREFIX, WEBHOOK_KINDS
from gateway.notifications import claims, delivery, endpoints, inspector
from gateway.notifications.fan_out import fan_out_notifications
from gateway.outbound.page_calls import count_page_call
from gateway.payments.webhook_payloads import build_webhook_payloads
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.webhook_delivery import deliver, the_delivery

pytestmark = pytest.mark.django_db
ENDPOINTS = "/admin/gateway/webhookendpoint/"
DELIVERIES = "/admin/gateway/webhookdelivery/"
State = WebhookEndpoint.State


@pytest.fixture
def dora(shop: Shop) -> Client:
    return signed_in(person("dora", Role.DEVELOPER, shop.merchant))


def inspected(shop: Shop, mode: str = "signed") -> WebhookEndpoint:
    row, _secret = endpoints.create_endpoint(shop.merchant, INSPECTOR_URL_PREFIX, by=BY, mode=mode)
    assert endpoints.activate_endpoint(row, by=BY).active
    return row


def form(shop: Shop, **values: object) -> dict[str, object]:
    return {
        "place": shop.merchant.pk.hex,
        "url": "https://shop.example/hooks",
        "kinds": list(WEBHOOK_KINDS),
        "mode": "signed",
        "wrapper": "none",
        "secret": "",
        **values,
    }


def test_an_endpoint_is_made_for_a_merchant_behind_two_hundred_others(shop: Shop) -> None:
    """The form offers two hundred, and those of a name."""
    Merchant.objects.bulk_create(
        Merchant(name=f"A {number:03d}", division=shop.merchant.division) for number in range(201)
    )
    staff = signed_in(person("staff", Role.PSP, shop.merchant.division.psp))
    for page in ("add/", "inspector/"):
        shown = staff.get(f"{ENDPOINTS}{page}").content.decode()
        assert "There are more merchants or channels" in shown, page
        assert f'value="{shop.merchant.pk.hex}"' not in shown, page
        narrowed = staff.get(f"{ENDPOINTS}{page}", {"merchant": shop.merchant.name.lower()}).content.decode()
        assert f'value="{shop.merchant.pk.hex}"' in narrowed, page
        assert "There are more merchants or channels" not in narrowed, page
        assert (
            "There is no merchant of this name"
            in staff.get(f"{ENDPOINTS}{page}", {"merchant": "nobody"}).content.decode()
        )
    made = staff.post(f"{ENDPOINTS}add/?merchant={shop.merchant.name}", form(shop))
    assert made.status_code == 200
    assert WebhookEndpoint.objects.get().merchant_id == shop.merchant.pk


def test_a_webhook_form_names_the_wrong_field_and_keeps_what_was_typed(dora: Client, shop: Shop) -> None:
    typed = {"url": "https://shop.example/my-hooks", "kinds": ["PAYMENT"], "mode": "encrypted", "wrapper": "json"}
    for name, value in (
        ("url", ""), ("url", "ftp://shop.example"), ("url", "https://127.0.0.1:1/x" * 200), ("kinds", ["NO"]),
        ("kinds", []), ("mode", "open"), ("wrapper", "xml"), ("place", "x"), ("secret", "short"),
    ):  # fmt: skip
        sent = form(shop, **typed) | {name: value}
        answer = dora.post(f"{ENDPOINTS}add/", sent)
        assert answer.status_code == 200
        shown = answer.context["form"]
        assert list(shown.errors) == [name], (name, value)
        for kept in {"url", "kinds", "mode", "wrapper", "place"} - {name}:
            assert shown[kept].value() == sent[kept], (name, kept)
    assert not WebhookEndpoint.objects.exists()
    back = dora.post(f"{ENDPOINTS}inspector/", {"place": "x", "mode": "signed"})
    assert back["Location"] == f"{ENDPOINTS}inspector/"


# --- the inspector --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["signed", "encrypted"])
def test_the_inspector_shows_a_payment_as_it_would_have_gone_out(dora: Client, shop: Shop, mode: str) -> None:
    """Headers, raw body, decoded body, signature result; no HTTP out of the house."""
    answer = dora.post(f"{ENDPOINTS}inspector/", {"place": shop.merchant.pk.hex, "mode": mode})
    page = answer["Location"]
    row = WebhookEndpoint.objects.get(url=INSPECTOR_URL_PREFIX)
    assert row.state == State.ACTIVE
    paid = shop.api.pay(merchantTransactionId="order-77")
    deliver(shop)
    newest = InspectedWebhook.objects.order_by("-id")[1].pk
    shown = dora.get(f"{page}new/", {"after": newest}).content.decode()
    header = "webhook-signature" if mode == "signed" else "X-Initialization-Vector"
    for text in (header, paid.id, "DB 92.00 EUR · VISA •••• 0000 · 000.100.110 · order-77", "Right"):
        assert text in shown
    assert shown.count("data-number") == 1
    assert dora.post(f"{ENDPOINTS}inspector/", {"place": shop.merchant.pk.hex, "mode": mode})["Location"] == page


def test_the_inspector_keeps_the_newest_messages_only(shop: Shop) -> None:
    """A named limit on what can grow."""
    row = inspected(shop)
    one = InspectedWebhook.objects.get()
    kept = [
        inspector.InspectedMessage(
            endpoint=row.pk, delivery=one.delivery, attempt=number, at=one.at, headers={}, body=b""
        )
        for number in range(inspector.MAX_INSPECTED_MESSAGES + 5)
    ]
    inspector.store_inspected_messages(kept)
    assert InspectedWebhook.objects.count() == inspector.MAX_INSPECTED_MESSAGES
    assert not InspectedWebhook.objects.filter(pk=one.pk).exists()


@pytest.mark.parametrize("kind", WEBHOOK_KINDS)
def test_a_sample_of_each_kind_is_sent_and_says_that_it_is_one(dora: Client, shop: Shop, kind: str) -> None:
    row = inspected(shop)
    dora.post(f"{ENDPOINTS}{row.pk}/sample/", {"kind": kind})
    told = WebhookDelivery.objects.order_by("-pk")[0]
    assert (told.kind, told.action, told.state) == ("test", f"sample {kind}", "delivered")
    assert f'"type":"{kind}"' in told.body
    assert '"sample":true' in told.body


@pytest.mark.parametrize(("address", "values"), [("do/activate/", {}), ("sample/", {"kind": "PAYMENT"})])
def test_while_enough_pages_wait_for_servers_the_button_says_that_nothing_was_sent(
    dora: Client, shop: Shop, address: str, values: dict[str, str]
) -> None:
    """docs/decisions/0168. It said that the test message was not accepted."""
    row, _secret = endpoints.create_endpoint(shop.merchant, "https://shop.example/hooks", by=BY, mode="signed")
    with count_page_call(shop.merchant.pk), count_page_call(shop.merchant.pk):
        shown = dora.post(f"{ENDPOINTS}{row.pk}/{address}", values, follow=True).content.decode()
    assert "Nothing was sent: other servers are being tried just now. Try again in a minute." in shown
    assert "not accepted" not in shown
    assert not WebhookDelivery.objects.exists()


@pytest.mark.usefixtures("live")
def test_live_has_no_inspector(shop: Shop) -> None:
    """Test environment only."""
    with pytest.raises(endpoints.InvalidEndpointError):
        endpoints.create_endpoint(shop.merchant, INSPECTOR_URL_PREFIX, by=BY)
    assert not inspector.build_inspector_answer().is_success


# --- endpoints ------------------------------------------------------------------------------------------------------


def test_a_secret_is_shown_once_to_somebody_just_seen(dora: Client, shop: Shop) -> None:
    """A29.5: secret shown once, after re-authentication."""
    stale = signed_in(person("stale", Role.DEVELOPER, shop.merchant), fresh=False)
    assert "/admin/again/" in stale.get(f"{ENDPOINTS}add/")["Location"]
    made = dora.post(f"{ENDPOINTS}add/", form(shop))
    row = WebhookEndpoint.objects.get()
    found = re.search(r'id="secret" readonly value="([0-9a-f]{64})"', made.content.decode())
    assert found is not None
    assert "no-store" in made["Cache-Control"]
    for page in (f"{ENDPOINTS}{row.pk}/change/", ENDPOINTS, f"{ENDPOINTS}{row.pk}/history/"):
        assert found.group(1) not in dora.get(page).content.decode()
    assert AuditEntry.objects.filter(subject="webhookendpoint", action="add", actor="dora").count() == 1
    assert found.group(1) not in str(list(AuditEntry.objects.values()))


def test_rotating_asks_for_the_word_and_shows_another_secret(dora: Client, shop: Shop) -> None:
    """Typed confirmation."""
    row = inspected(shop)
    before = claims.unseal_signing_keys(row.pk, row.secret_sealed, None)
    path = f"{ENDPOINTS}{row.pk}/do/rotate/"
    dora.post(path, {"confirm": "yes"})
    row.refresh_from_db()
    assert row.previous_sealed is None
    shown = dora.post(path, {"confirm": "rotate"}).content.decode()
    row.refresh_from_db()
    after = claims.unseal_signing_keys(row.pk, row.secret_sealed, row.previous_sealed)
    assert before is not None
    assert after is not None
    assert after.previous is not None
    assert after.previous.reveal() == before.current.reveal()
    assert after.current.reveal().hex() in shown
    dora.post(path, {"confirm": "rotate", "at_once": "1"})
    row.refresh_from_db()
    assert row.previous_until is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "ftp://shop.example"}, "only http and https"),
        ({"url": "https://10.0.0.1/hooks"}, "private"),
        ({"url": "https://me:pw@shop.example/"}, "user name"),
        ({"kinds": []}, "required"),
        ({"secret": "short"}, "64 hex digits"),
    ],
)
def test_what_no_endpoint_can_be_is_said_in_the_form(
    dora: Client, shop: Shop, wrong: dict[str, object], said: str
) -> None:
    """Clear words; nothing half-written."""
    answer = dora.post(f"{ENDPOINTS}add/", form(shop, **wrong))
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not WebhookEndpoint.objects.exists()


def test_nobody_makes_an_endpoint_for_another_merchant(dora: Client, shop: Shop, stranger: Shop) -> None:
    """A29.5: rights by entity tree."""
    assert dora.post(f"{ENDPOINTS}add/", form(stranger)).status_code == 200
    dora.post(f"{ENDPOINTS}inspector/", {"place": stranger.merchant.pk.hex, "mode": "signed"})
    assert not WebhookEndpoint.objects.exists()
    theirs = inspected(stranger)
    for path in ("edit/", "inspect/", "inspect/new/", "do/off/", "do/rotate/", "change/"):
        assert dora.get(f"{ENDPOINTS}{theirs.pk}/{path}").status_code == 404, path
        assert dora.post(f"{ENDPOINTS}{theirs.pk}/{path}", {"confirm": "off"}).status_code == 404, path
    assert dora.post(f"{ENDPOINTS}{theirs.pk}/sample/", {"kind": "PAYMENT"}).status_code == 404


@pytest.mark.parametrize("role", [Role.CLERK, Role.AUDITOR])
def test_a_clerk_or_auditor_changes_no_endpoint(role: Role, shop: Shop) -> None:
    """docs/decisions/0029."""
    row, client = inspected(shop), signed_in(person("somebody", role, shop.merchant))
    for path in (f"{row.pk}/do/pause/", f"{row.pk}/do/off/", f"{row.pk}/sample/", f"{row.pk}/edit/", "add/"):
        assert client.post(f"{ENDPOINTS}{path}", {"confirm": "off", "kind": "PAYMENT"}).status_code == 403, path
    row.refresh_from_db()
    assert row.state == State.ACTIVE


def test_what_happens_while_an_endpoint_is_paused_waits_and_goes_out_when_it_is_resumed(
    dora: Client, shop: Shop
) -> None:
    """Pause and resume, with audit."""
    row = inspected(shop)
    dora.post(f"{ENDPOINTS}{row.pk}/do/pause/")
    shop.api.pay()
    assert deliver(shop) == 0
    waiting = the_delivery()
    assert (waiting.state, waiting.attempts) == ("waiting", 0)
    dora.post(f"{ENDPOINTS}{row.pk}/do/resume/")
    deliver(shop)
    waiting.refresh_from_db()
    assert waiting.state == "delivered"
    assert set(AuditEntry.objects.filter(actor="dora").values_list("action", flat=True)) == {"pause", "resume"}


def test_a_success_that_was_under_way_does_not_end_a_pause_by_hand(shop: Shop) -> None:
    """A pause by hand ends by hand."""
    row = inspected(shop)
    WebhookEndpoint.objects.filter(pk=row.pk).update(failures=2)
    shop.api.pay()
    begun = _claimed()
    endpoints.pause_endpoint(row, by=BY)
    claims.record_webhook_attempts([delivery.attempt_webhook(due) for due in begun])
    row.refresh_from_db()
    assert row.is_held


def _claimed() -> list[claims.DueWebhook]:
    fan_out_notifications(build_webhook_payloads)
    return claims.claim_due_webhooks({}, room=8, limit=8)


def test_a_new_address_is_told_only_once_it_has_answered(dora: Client, shop: Shop) -> None:
    """A29.5: no event is lost to a typing error: it waits."""
    row = inspected(shop)
    WebhookEndpoint.objects.filter(pk=row.pk).update(url="https://shop.example/old")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and nobody listens
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/"
        changed = {"url": url, "kinds": ["PAYMENT"], "mode": "signed", "wrapper": "none"}
        assert dora.post(f"{ENDPOINTS}{row.pk}/edit/", changed).status_code == 302
        row.refresh_from_db()
        assert (row.url, row.is_held) == (url, True)
        shop.api.pay()
        assert deliver(shop) == 0
        for verb in ("resume", "pause", "resume"):
            dora.post(f"{ENDPOINTS}{row.pk}/do/{verb}/")
            row.refresh_from_db()
            assert (row.state, row.untested) == (State.PAUSED, True), verb
        assert "do/resume/" not in dora.get(f"{ENDPOINTS}{row.pk}/change/").content.decode()
        assert deliver(shop) == 0
    assert the_delivery().state == "waiting"


def test_an_address_that_is_changed_during_its_test_message_is_not_active(shop: Shop, monkeypatch: Any) -> None:
    """What answered 2xx is not what would be told."""
    row = inspected(shop)
    WebhookEndpoint.objects.filter(pk=row.pk).update(state=State.INACTIVE)
    row.refresh_from_db()
    sent = endpoints.send_test_message

    def changed_meanwhile(endpoint: WebhookEndpoint) -> Any:
        outcome = sent(endpoint)
        WebhookEndpoint.objects.filter(pk=row.pk).update(url="https://shop.example/other")
        return outcome

    monkeypatch.setattr(endpoints, "send_test_message", changed_meanwhile)
    assert not endpoints.activate_endpoint(row, by=BY).active
    row.refresh_from_db()
    assert row.state == State.INACTIVE


# --- deliveries -----------------------------------------------------------------------------------------------------


def test_deliveries_are_found_by_filter_and_a_broken_filter_is_named(dora: Client, shop: Shop) -> None:
    """List with filters: state, kind, endpoint, payment id, date."""
    row, paid = inspected(shop), shop.api.pay()
    deliver(shop)
    one = the_delivery()
    for query in (f"payment={paid.id}", "state=delivered&kind=PAYMENT", f"endpoint={row.pk.hex}&from=2020-01-01T00:00"):
        assert str(one.pk) in dora.get(f"{DELIVERIES}?{query}").content.decode(), query
    for query in ("state=waiting", "kind=RISK", "from=2090-01-01T00:00", f"payment={'0' * 32}"):
        assert str(one.pk) not in dora.get(f"{DELIVERIES}?{query}").content.decode(), query
    for query in ("payment=xyz", "from=yesterday", "state=broken"):
        assert "aria-invalid" in (page := dora.get(f"{DELIVERIES}?{query}").content.decode()) or "ck-fault" in page
    page = dora.get(f"{DELIVERIES}{one.pk}/change/").content.decode()
    for text in ("kept by the inspector", paid.id, f"msg_{one.pk.hex}"):
        assert text in page


def test_times_of_the_deliveries_filter_are_in_the_readers_zone(dora: Client, shop: Shop) -> None:
    """The list showed the reader's zone, and its filter was read in UTC."""
    inspected(shop)
    shop.api.pay()
    deliver(shop)
    one = the_delivery()
    dora.post(reverse("admin:account"), {"act": "zone", "zone": "Asia/Tokyo"})
    own = one.created_at.astimezone(ZoneInfo("Asia/Tokyo"))
    for moved, found in ((-1, True), (1, False)):
        query = {"from": f"{own + timedelta(minutes=moved):%Y-%m-%dT%H:%M:%S}"}
        page = dora.get(DELIVERIES, query).content.decode()
        assert (str(one.pk) in page) == found
        assert "From (JST)" in page
    assert str(one.pk) in dora.get(DELIVERIES, {"to": f"{own.astimezone(UTC):%Y-%m-%dT%H:%M:59}Z"}).content.decode()
    for edge in ("0001-01-01T00:00", "9999-12-31T23:59:59-12:00"):
        assert dora.get(DELIVERIES, {"from": edge}).status_code == 200


def test_deliveries_of_a_period_are_listed_and_what_is_typed_narrows_it(dora: Client, shop: Shop) -> None:
    inspected(shop)
    shop.api.pay()
    deliver(shop)
    one = the_delivery()
    soon = f"{clock.real_now() + timedelta(minutes=5):%Y-%m-%dT%H:%MZ}"
    for query, found in (("period=hour", True), ("period=last_month", False), (f"period=hour&from={soon}", False)):
        assert (str(one.pk) in dora.get(f"{DELIVERIES}?{query}").content.decode()) == found, query
    WebhookDelivery.objects.update(created_at=clock.real_now() - timedelta(hours=2))
    for query, found in (("period=hour", False), ("period=day", True)):
        assert (str(one.pk) in dora.get(f"{DELIVERIES}?{query}").content.decode()) == found, query
    day = f"{clock.real_now() - timedelta(hours=2):%Y-%m-%d}"
    assert str(one.pk) in dora.get(f"{DELIVERIES}?from={day}&to={day}").content.decode(), "the last day is whole"
    page = dora.get(f"{DELIVERIES}?period=hour").content.decode()
    assert '<option value="hour" selected>' in page
    page = dora.get(f"{DELIVERIES}?period=always").content.decode()
    assert str(one.pk) not in page
    assert re.search('name="period" aria-invalid="true" aria-describedby="w-period"', page)


def test_a_replay_of_the_last_hour_sends_what_was_shown_however_late_it_is_confirmed(
    dora: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hour of the page that asks, not that of the press."""
    endpoint = inspected(shop)
    shop.api.pay()
    deliver(shop)
    asked = dora.post(f"{DELIVERIES}replay/", {"endpoint": endpoint.pk.hex, "period": "hour"})
    assert asked.context["told"].events == 1
    kept = dict(asked.context["kept"])
    assert kept.keys() == {"endpoint", "from", "to"}
    now = clock.real_now()
    WebhookDelivery.objects.update(created_at=now - timedelta(minutes=55))
    monkeypatch.setattr(clock, "real_now", lambda: now + timedelta(minutes=10))
    again = dora.post(f"{DELIVERIES}replay/", kept)
    assert again.context["told"].events == 1
    assert dict(again.context["kept"]) == kept


def test_one_delivery_is_replayed_by_a_clerk(shop: Shop) -> None:
    """Day-one story: find out why, and replay its webhook."""
    inspected(shop)
    shop.api.pay()
    deliver(shop)
    one = the_delivery()
    clara = signed_in(person("clara", Role.CLERK, shop.merchant))
    clara.post(f"{DELIVERIES}{one.pk}/replay/")
    deliver(shop)
    one.refresh_from_db()
    assert (one.state, one.attempts) == ("delivered", 2)
    assert AuditEntry.objects.filter(actor="clara", action="replay", subject="webhookdelivery").count() == 1
    assert clara.post(f"{DELIVERIES}replay/", {}).status_code == 403
    auditor = signed_in(person("alan", Role.AUDITOR, shop.merchant))
    assert auditor.post(f"{DELIVERIES}{one.pk}/replay/").status_code == 403


def test_many_are_counted_first_and_then_replayed_as_work(dora: Client, shop: Shop, tmp_path: Path) -> None:
    """Each goes out once more, also when delivery is as fast as the replay."""
    inspected(shop)
    paid = shop.api.pay()
    shop.api.follow(paid.id, "RF", "1.00")
    shop.api.pay()
    deliver(shop)
    told = WebhookDelivery.objects.exclude(kind="test")
    number = told.count()
    page = dora.post(f"{DELIVERIES}replay/", {"state": "delivered"}).content.decode()
    assert f"{number} events" in page
    assert "3 payments" in page
    assert not BackgroundWork.objects.exists()
    begun = dora.post(f"{DELIVERIES}replay/", {"state": "delivered", "confirm": "1"})["Location"]
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        queue.TIMER.run()
    row = BackgroundWork.objects.get()
    assert (row.state, row.done, row.total) == ("DONE", number, number)
    assert row.kind == "webhook replay"
    deliver(shop)
    assert set(told.values_list("state", "attempts")) == {("delivered", 2)}
    assert "See each of them" in dora.get(begun).content.decode()


def test_a_replay_reaches_ones_own_deliveries_only(dora: Client, shop: Shop, stranger: Shop) -> None:
    """Rights by entity tree."""
    inspected(stranger)
    stranger.api.pay()
    deliver(stranger)
    theirs = the_delivery(merchant=stranger.merchant)
    assert dora.get(f"{DELIVERIES}{theirs.pk}/change/").status_code == 404
    assert dora.post(f"{DELIVERIES}{theirs.pk}/replay/").status_code == 404
    for chosen in ({"endpoint": theirs.endpoint_id.hex}, {"payment": UUID(str(theirs.payment)).hex}, {}):
        dora.post(f"{DELIVERIES}replay/", {**chosen, "confirm": "1"})
    assert not BackgroundWork.objects.exists()


def test_endpoints_behind_two_hundred_others_are_found_by_their_merchants_name(shop: Shop) -> None:
    """The list and "Verify this body" show two hundred, those of a name, and the one that an endpoint's page names."""
    row = inspected(shop)
    division = shop.merchant.division
    others = Merchant.objects.bulk_create(Merchant(name=f"A {number:03d}", division=division) for number in range(201))
    WebhookEndpoint.objects.bulk_create(
        WebhookEndpoint(
            merchant=other, url="https://shop.example/hooks", kinds=row.kinds, mode=row.mode, wrapper=row.wrapper,
            secret_sealed=row.secret_sealed, state=row.state,
        )
        for other in others
    )  # fmt: skip
    staff = signed_in(person("staff", Role.PSP, division.psp))
    for page, mark in (("", f"/{row.pk}/change/"), ("verify/", f'value="{row.pk.hex}"')):
        shown = staff.get(f"{ENDPOINTS}{page}").content.decode()
        assert "There are more endpoints than stand below" in shown, page
        assert mark not in shown, page
        narrowed = staff.get(f"{ENDPOINTS}{page}", {"merchant": shop.merchant.name.lower()}).content.decode()
        assert mark in narrowed, page
        assert "There are more endpoints" not in narrowed, page
        nobody = staff.get(f"{ENDPOINTS}{page}", {"merchant": "nobody"}).content.decode()
        assert "No merchant of this name has an endpoint." in nobody, page
    assert f'value="{row.pk.hex}" selected' in staff.get(f"{ENDPOINTS}verify/?endpoint={row.pk.hex}").content.decode()


# --- verify this body -----------------------------------------------------------------------------------------------


def test_verify_says_right_or_whose_key_it_was(dora: Client, shop: Shop) -> None:
    row, other = inspected(shop), inspected(shop, mode="encrypted")
    one = InspectedWebhook.objects.get(endpoint=row)
    headers = "\n".join(f"{name}: {value}" for name, value in one.headers.items())
    sent = {"endpoint": row.pk.hex, "headers": f"POST /hooks HTTP/1.1\n{headers}", "body": one.body}
    assert "Right" in dora.post(f"{ENDPOINTS}verify/", sent).content.decode()
    page = dora.post(f"{ENDPOINTS}verify/", {**sent, "endpoint": other.pk.hex}).content.decode()
    assert "Wrong key" in page
    assert "another endpoint" in page


@pytest.mark.parametrize(
    ("body", "signed"),
    [
        (r'["\ud800"]', r'["\ud800"]'),
        (r'"\ud800"', "\ud800"),
        ("[" * 900 + "]" * 900, "[" * 900 + "]" * 900),
        ("[" * 60_000, "[" * 60_000),
    ],
    ids=["half a character", "half a character in quotes", "lists in lists", "no JSON"],
)
def test_verify_shows_what_the_owner_of_the_secret_signed_whatever_it_is(
    dora: Client, shop: Shop, body: str, signed: str
) -> None:
    """Half a character was answered with 500, and so was what nests deep."""
    row = inspected(shop)
    keys = claims.unseal_signing_keys(row.pk, row.secret_sealed, None)
    assert keys is not None
    at = int(clock.real_now().timestamp())
    mac = hmac.digest(keys.current.reveal(), f"x.{at}.{signed}".encode(errors="surrogatepass"), "sha256")
    headers = f"webhook-id: x\nwebhook-timestamp: {at}\nwebhook-signature: v1,{base64.b64encode(mac).decode()}"
    answer = dora.post(f"{ENDPOINTS}verify/", {"endpoint": row.pk.hex, "headers": headers, "body": body})
    assert answer.status_code == 200
    assert "Wrong key" not in answer.content.decode()
