"""Run: the docs' samples, sent for a user of the back office."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models import F
from django.test import Client, override_settings

from gateway.access import tokens
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AccessToken, AuditEntry, Payment, RequestLog, Role, WebhookEndpoint
from gateway.portal.sample_runs import SAMPLES_NOT_RUN, list_sample_steps, list_test_data_runs, run_steps
from gateway.portal.samples import API_SAMPLES
from gateway.portal.self_test_checks import build_checks
from gateway.portal.testdata import build_test_data
from gateway.timers import registry
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.webhook_delivery import deliver

RUN = "/admin/docs/run"
READER = "/admin/docs/reader"
WITH_3DS = {"authenticate", "challenge", "read-authentication"}
"""Samples for a channel with 3-D Secure."""


def send(browser: Client, shop: Shop, sample: str = "pay", **changes: str) -> Any:
    return browser.post(RUN, {"sample": sample, "entityId": shop.channel.entity_id, **changes})


@pytest.fixture
def developer(shop: Shop) -> Client:
    return signed_in(person("dev", Role.DEVELOPER, shop.merchant))


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(set(API_SAMPLES) - SAMPLES_NOT_RUN))
def test_every_sample_is_answered_as_the_docs_show(developer: Client, shop: Shop, name: str) -> None:
    channel = shop.open_channel(three_d_secure=True) if name in WITH_3DS else shop.channel
    told = send(developer, shop, name, entityId=channel.entity_id).json()
    last = told["runs"][-1]
    assert (told["complete"], last["status"]) == (True, API_SAMPLES[name].status), last
    assert [one["title"] for one in told["runs"]] == [one.title for one in list_sample_steps(API_SAMPLES[name])]


@pytest.mark.django_db
def test_a_run_leaves_no_token_and_shows_none(developer: Client, shop: Shop) -> None:
    before = set(AccessToken.objects.values_list("pk", flat=True))
    answer = send(developer, shop)
    assert set(AccessToken.objects.values_list("pk", flat=True)) == before
    assert "tollhouse_" not in answer.content.decode()
    assert answer["Cache-Control"].startswith("max-age=0, no-cache, no-store")
    used = RequestLog.objects.get(pk=Payment.objects.get().request_id)
    assert used.token not in before
    entry = AuditEntry.objects.get(action="run sample")
    assert (entry.actor, entry.after, entry.merchant) == ("dev", {"sample": "pay"}, shop.merchant.pk)


@pytest.mark.django_db
def test_the_token_goes_when_the_run_breaks_off(developer: Client, shop: Shop, monkeypatch: Any) -> None:
    def fail(*_args: Any, **_more: Any) -> None:
        raise RuntimeError

    before = AccessToken.objects.count()
    monkeypatch.setattr("gateway.portal.sample_runs.call_own_api", fail)
    assert send(developer, shop).status_code == 500
    assert AccessToken.objects.count() == before


@pytest.mark.django_db
def test_a_token_that_a_dead_process_left_is_deleted_when_it_has_ended(shop: Shop) -> None:
    """And no other one: neither a token that a person asked for, nor one that a command made, however soon it ended."""
    channel, now = shop.channel, clock.real_now()
    kept = set(AccessToken.objects.values_list("pk", flat=True))
    lent = tokens.lend_token(channel, name="Docs: Run", by=BY, scopes=["payments"])
    lent.__enter__()  # and the process dies
    assert registry.run_timer_now("lent tokens") == 0
    due = execute_sql(tokens.TIMER.earliest_due, {})[0][0]
    assert now < due < now + tokens.MAX_LENT_TOKEN_AGE + timedelta(seconds=5)
    left = AccessToken.objects.exclude(pk__in=kept)
    past = timedelta(minutes=2)
    left.update(created_at=F("created_at") - past, ends_at=F("ends_at") - past)
    asked = person("dev", Role.DEVELOPER, shop.merchant)
    mine, _text = tokens.issue_token(
        shop.merchant, name="mine", by=BY, ends_at=now - timedelta(seconds=1), requested_by=asked.pk
    )
    old, _text = tokens.issue_token(shop.merchant, name="old", by=BY, ends_at=now - timedelta(seconds=1))
    brief, _text = tokens.issue_token(shop.merchant, name="brief", by=BY, ends_at=now - timedelta(seconds=1))
    AccessToken.objects.filter(pk=old.pk).update(created_at=now - timedelta(hours=1))
    assert registry.run_timer_now("lent tokens") == 1
    assert set(AccessToken.objects.values_list("pk", flat=True)) == {*kept, mine.pk, old.pk, brief.pk}


@pytest.mark.django_db
def test_answer_webhook_and_acquirers_message_stand_in_one_timeline(developer: Client, shop: Shop) -> None:
    told = send(developer, shop).json()
    payment = Payment.objects.get()
    assert told["payment"] == str(payment.pk)
    assert WebhookEndpoint.objects.get().is_inspector
    deliver(shop)
    page = developer.get(f"/admin/gateway/payment/{payment.pk}/timeline/")
    text = page.content.decode()
    for part in (" approved", " asked", "The webhook", "&quot;PAYMENT&quot;", "Received"):
        assert part in text, part
    assert "4200000000000000" not in text
    assert "<html" not in text


@pytest.mark.django_db
@pytest.mark.parametrize("role", [Role.CLERK, Role.AUDITOR])
def test_only_who_may_issue_tokens_for_the_channel_runs_samples(shop: Shop, stranger: Shop, role: Role) -> None:
    assert send(signed_in(person("other", role, shop.merchant)), shop).status_code == 403
    foreign = signed_in(person("far", Role.DEVELOPER, stranger.merchant))
    assert send(foreign, shop).json() == {"fault": "entityId: choose a channel for which you may issue access tokens."}
    assert [one["entityId"] for one in foreign.get(READER).json()["channels"]] == [stranger.channel.entity_id]
    assert not Payment.objects.exists()


@pytest.mark.django_db
def test_visitors_are_asked_to_sign_in(shop: Shop) -> None:
    visitor = Client()
    assert visitor.get(READER).headers["Location"].startswith("/admin/login/")
    assert not visitor.cookies
    assert send(visitor, shop).status_code == 403


@pytest.mark.django_db
def test_another_site_cannot_have_a_sample_run(shop: Shop) -> None:
    user = person("dev", Role.DEVELOPER, shop.merchant)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(user)
    assert send(browser, shop).status_code == 403
    token = browser.get(READER).json()["csrf"]
    fields = {"sample": "pay", "entityId": shop.channel.entity_id}
    assert browser.post(RUN, fields, headers={"X-CSRFToken": token}).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize(
    "changes, status",
    [
        ({"sample": "no-such"}, 400),
        ({"sample": "throttled"}, 400),
        ({"sample": ""}, 400),
        ({"entityId": ""}, 403),
        ({"entityId": "x" * 40}, 403),
        ({"entityId": "0" * 32}, 403),
    ],
)
def test_what_is_no_sample_or_no_channel_is_refused(
    developer: Client, shop: Shop, changes: dict[str, str], status: int
) -> None:
    answer = developer.post(RUN, {"sample": "pay", "entityId": shop.channel.entity_id, **changes})
    assert (answer.status_code, set(answer.json())) == (status, {"fault"})
    assert developer.get(RUN).status_code == 405


@pytest.mark.django_db
def test_a_users_runs_are_counted(developer: Client, shop: Shop, monkeypatch: Any) -> None:
    monkeypatch.setattr("gateway.api.token_admission.MAX_SAMPLE_RUNS", (1, 10**9))
    assert send(developer, shop, "no-token").status_code == 200
    refused = send(developer, shop, "no-token")
    assert (refused.status_code, int(refused["Retry-After"]) > 0) == (429, True)


@pytest.mark.django_db
def test_nothing_is_run_in_live(developer: Client, shop: Shop, live: None) -> None:
    for answer in (developer.get(READER, secure=True), developer.post(RUN, secure=True)):
        assert answer.status_code == 404
    with override_settings(IS_LIVE=True):
        assert b"runs.js" not in developer.get("/docs/", secure=True).content


@pytest.mark.django_db
def test_a_timeline_is_for_who_may_see_the_payment(developer: Client, shop: Shop, stranger: Shop) -> None:
    address = f"/admin/gateway/payment/{UUID(shop.api.pay().id)}/timeline/"
    assert developer.get(address).status_code == 200
    assert developer.post(address).status_code == 403
    assert signed_in(person("far", Role.DEVELOPER, stranger.merchant)).get(address).status_code == 404
    assert Client().get(address).status_code == 302
    of_the_channel = signed_in(person("near", Role.DEVELOPER, shop.channel))
    send(of_the_channel, shop)
    deliver(shop)
    newest = Payment.objects.latest("created_at")
    text = of_the_channel.get(f"/admin/gateway/payment/{newest.pk}/timeline/").content.decode()
    assert "The webhook" in text
    assert "webhookdelivery" not in text


# --- rows of the test data --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_every_row_of_the_test_data_keeps_its_promise_when_it_is_tried(shop: Shop) -> None:
    rows = list_test_data_runs("http://testserver")
    assert len(rows) == len(build_checks(build_test_data()))
    broken = []
    for key, row in rows.items():
        last = run_steps(row.steps, shop.channel, name=row.title, by=BY)[-1]
        if last.sample is not row.steps[-1] or not row.promise.is_kept_by(last.answer):
            broken.append((key, last.answer.get("result")))
    assert broken == []


@pytest.mark.django_db
def test_a_row_is_tried_and_the_promise_told(developer: Client, shop: Shop) -> None:
    told = developer.post(RUN, {"row": "cards 4000015500000005", "entityId": shop.channel.entity_id}).json()
    assert told["promise"] == {"name": "result.code", "value": "800.100.155", "kept": True}
    assert (told["runs"][-1]["status"], told["redirect"]) == (400, "")
    assert told["payment"] == str(Payment.objects.get().pk)
    entry = AuditEntry.objects.get(action="run sample")
    assert entry.after == {"sample": "test data: Over the credit limit"}
    assert "4000015500000005" not in str(entry.after)


@pytest.mark.django_db
def test_a_row_for_shoppers_elsewhere_tells_where_they_go(developer: Client, shop: Shop) -> None:
    row = next(key for key in list_test_data_runs("http://testserver") if key.startswith("redirects "))
    told = developer.post(RUN, {"row": row, "entityId": shop.channel.entity_id}).json()
    assert told["redirect"].startswith("http")
    assert told["promise"]["kept"]


@pytest.mark.django_db
def test_a_row_that_a_channels_settings_change_is_told_so(developer: Client, shop: Shop) -> None:
    channel = shop.open_channel(three_d_secure=True)
    told = developer.post(RUN, {"row": "cards 4000015500000005", "entityId": channel.entity_id}).json()
    assert (told["promise"]["kept"], told["promise"]["value"]) == (False, "800.100.155")


@pytest.mark.django_db
def test_no_other_row_can_be_tried(developer: Client, shop: Shop) -> None:
    for wrong in ("", "cards 4242", "no-such"):
        answer = developer.post(RUN, {"row": wrong, "sample": "pay", "entityId": shop.channel.entity_id})
        assert (answer.status_code, answer.json()["fault"]) == (400, "row: no row of the test data has this name.")
    assert not Payment.objects.exists()
