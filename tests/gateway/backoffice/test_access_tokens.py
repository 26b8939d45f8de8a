"""Access tokens in the back office: who may issue them, and that a token is shown once.

Source: Part A, Authentication, 2; checklist A28.2, A28.3.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from gateway.access import tokens
from gateway.backoffice.access import independence
from gateway.core import clock
from gateway.models import AccessToken, AuditEntry, Role
from tests.support.client import Api
from tests.support.database import places_of
from tests.support.fixtures import BY, Shop, open_shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST, ADD = "/admin/gateway/accesstoken/", "/admin/gateway/accesstoken/add/"
TOKEN = re.compile(r"tollhouse_[A-Za-z0-9_-]{43}")


@pytest.fixture
def issuer(shop: Shop) -> Client:
    """May see the tokens of the merchant, and issue, rotate and revoke them; moves any amount of money alone."""
    return signed_in(person("issuer", Role.MANAGER, shop.merchant))


@pytest.fixture
def auditor(shop: Shop) -> Client:
    """May see the tokens of the merchant, and nothing more."""
    return signed_in(person("auditor", Role.AUDITOR, shop.merchant))


def form(shop: Shop, **changes: Any) -> dict[str, Any]:
    fields = {
        "name": "Web shop",
        "merchant": str(shop.merchant.pk),
        "channel": "",
        "scopes": ["payments", "read"],
        "ends_at_0": "",
        "ends_at_1": "",
    }
    return fields | changes


def shown(answer: HttpResponse) -> str:
    assert answer.status_code == 200
    (token,) = set(TOKEN.findall(answer.content.decode()))
    return str(token)


def act(client: Client, action: str, *chosen: AccessToken) -> HttpResponse:
    data = {"action": action, "_selected_action": [str(token.pk) for token in chosen], "confirm": "revoke"}
    return client.post(LIST, data)


# --- issuing --------------------------------------------------------------------------------------------------------


def test_a_token_issued_here_works_at_once(issuer: Client, shop: Shop) -> None:
    """A28.2."""
    token = shown(issuer.post(ADD, form(shop)))
    api = Api(token=token, entity=shop.channel.entity_id)
    paid = api.pay()
    assert paid.status == 200
    assert api.read(paid.id).status == 200
    assert api.get("/v1/test/clock").status == 403


def test_a_token_is_shown_once_and_never_again(issuer: Client, shop: Shop) -> None:
    answer = issuer.post(ADD, form(shop))
    token = shown(answer)
    assert "no-store" in answer["Cache-Control"]
    row = AccessToken.objects.get(name="Web shop")
    for path in (LIST, f"{LIST}{row.pk}/change/", f"{LIST}{row.pk}/history/", "/admin/", "/admin/gateway/auditentry/"):
        assert token not in issuer.get(path).content.decode()
    assert places_of(token, token.removeprefix("tollhouse_")) == set()
    assert row.hint == token[-4:]


def test_a_token_comes_with_a_curl_that_works(issuer: Client, shop: Shop) -> None:
    page = issuer.post(ADD, form(shop)).content.decode()
    assert "export BASE=http://testserver TOKEN=tollhouse_" in page
    assert f"ENTITY_ID={shop.channel.entity_id}" in page
    assert "curl &quot;$BASE/v1/payments&quot;" in page or 'curl "$BASE/v1/payments"' in page


def test_a_token_has_the_rights_that_were_chosen(issuer: Client, shop: Shop) -> None:
    ends = clock.real_now() + timedelta(days=30)
    assert 'name="ends_at_0"' in issuer.get(ADD).content.decode(), "the page asks for date and time apart"
    fields = form(
        shop, channel=str(shop.channel.pk), scopes=["read"], ends_at_0=f"{ends:%Y-%m-%d}", ends_at_1=f"{ends:%H:%M:%S}"
    )
    token = shown(issuer.post(ADD, fields))
    row = AccessToken.objects.get(name="Web shop")
    assert (row.scopes, row.channel_id, row.created_by) == (["read"], shop.channel.pk, "issuer")
    assert row.ends_at is not None
    assert abs(row.ends_at - ends) < timedelta(seconds=2)
    assert Api(token=token, entity=shop.channel.entity_id).pay().status == 403


@pytest.mark.parametrize(
    "changes", [{"name": ""}, {"merchant": ""}, {"scopes": []}, {"scopes": ["everything"]}, {"ends_at_0": "tomorrow"}]
)
def test_a_form_that_is_wrong_issues_nothing(issuer: Client, shop: Shop, changes: dict[str, Any]) -> None:
    """A28.2."""
    before = AccessToken.objects.count()
    answer = issuer.post(ADD, form(shop, **changes))
    assert answer.status_code == 200
    assert not TOKEN.search(answer.content.decode())
    assert AccessToken.objects.count() == before


def test_a_token_is_not_bound_to_another_merchants_channel(issuer: Client, shop: Shop) -> None:
    """Part A, Authentication: a token belongs to one merchant."""
    other = open_shop(shop.merchant.division, "Other")
    before = AccessToken.objects.count()
    both = signed_in(person("both", Role.DEVELOPER, shop.merchant, other.merchant))
    assert "is not a channel of" in both.post(ADD, form(shop, channel=str(other.channel.pk))).content.decode()
    assert (
        "not one of the available choices"
        in issuer.post(ADD, form(shop, channel=str(other.channel.pk))).content.decode()
    )
    assert AccessToken.objects.count() == before


# --- four eyes ------------------------------------------------------------------------------------------------------

_LIMITED = {"four_eyes_above": "100.00", "four_eyes_day": "150.00"}


@pytest.mark.parametrize(
    "role, limits", [(Role.DEVELOPER, {}), (Role.MANAGER, _LIMITED), (Role.MANAGER, {"four_eyes_day": "150.00"})]
)
def test_a_token_of_somebody_with_a_limit_waits_for_a_second_person(
    shop: Shop, role: Role, limits: dict[str, str]
) -> None:
    """A token is no way around its maker: neither around limits nor around a role that moves no money."""
    maker = signed_in(person("maker", role, shop.merchant, **limits))
    page = maker.post(ADD, form(shop))
    token = Api(token=shown(page), entity=shop.channel.entity_id)
    assert "waits for a second person" in page.content.decode()
    row = AccessToken.objects.get(name="Web shop")
    address = f"{LIST}{row.pk}/"
    assert token.pay().status == 403
    maker.post(f"{address}approve/")
    colleague = signed_in(person("colleague", Role.MANAGER, shop.merchant, **_LIMITED))
    colleague.post(f"{address}approve/")
    assert "without a limit can approve it" in colleague.get(f"{address}change/").content.decode()
    assert token.pay().status == 403
    second = signed_in(person("second", Role.MANAGER, shop.merchant))
    assert f"{address}approve/" in second.get(f"{address}change/").content.decode()
    assert second.post(f"{address}approve/").status_code == 302
    assert token.pay().status == 200
    assert AuditEntry.objects.filter(action="approve", actor="second", subject_id=str(row.pk)).exists()


def test_a_token_that_only_reads_works_at_once(shop: Shop) -> None:
    maker = signed_in(person("maker", Role.DEVELOPER, shop.merchant))
    token = Api(token=shown(maker.post(ADD, form(shop, scopes=["read"]))), entity=shop.channel.entity_id)
    assert token.read(shop.api.pay().id).status == 200


def test_a_successor_that_moves_money_waits_too_and_the_old_token_goes_on(shop: Shop) -> None:
    """Rotating shows the rotator a secret, so it is issuing."""
    maker = signed_in(person("maker", Role.DEVELOPER, shop.merchant))
    successor = Api(token=shown(act(maker, "rotate", shop.token)), entity=shop.channel.entity_id)
    shop.token.refresh_from_db()
    assert (successor.pay().status, shop.token.ends_at) == (403, None)


def test_a_puppet_approves_no_token(shop: Shop) -> None:
    """The second person is independent of the first."""
    maker, puppet = person("maker", Role.DEVELOPER, shop.merchant), person("puppet", Role.MANAGER, shop.merchant)
    independence.record_handling(maker, puppet, "password link")
    token = Api(token=shown(signed_in(maker).post(ADD, form(shop))), entity=shop.channel.entity_id)
    row = AccessToken.objects.get(name="Web shop")
    answer = signed_in(puppet).post(f"{LIST}{row.pk}/approve/", follow=True)
    assert "maker made or changed" in answer.content.decode()
    assert token.pay().status == 403


def test_a_token_bears_the_limits_that_were_given(issuer: Client, shop: Shop) -> None:
    limits = {"max_amount": "50.00", "max_day_amount": "80.00", "operations": ["DB"]}
    api = Api(token=shown(issuer.post(ADD, form(shop, **limits))), entity=shop.channel.entity_id)
    assert [api.pay(amount=amount).status for amount in ("50.01", "50.00", "40.00")] == [403, 200, 403]
    row = AccessToken.objects.get(name="Web shop")
    page = issuer.get(f"{LIST}{row.pk}/change/").content.decode()
    assert "50.00" in page
    assert "80.00" in page
    after = AuditEntry.objects.filter(subject_id=str(row.pk)).earliest("id").after
    assert (after["at most"], after["at most in 24 hours"]) == ("50.00", "80.00")
    before = AccessToken.objects.count()
    assert "above 0" in issuer.post(ADD, form(shop, max_amount="0")).content.decode()
    assert AccessToken.objects.count() == before


# --- the right ------------------------------------------------------------------------------------------------------


def test_without_the_right_there_is_no_button_and_the_address_refuses(
    auditor: Client, issuer: Client, shop: Shop
) -> None:
    """A28.3."""
    assert ADD in issuer.get(LIST).content.decode()
    page = auditor.get(LIST).content.decode()
    assert ADD not in page
    assert 'value="rotate"' not in page
    assert 'value="revoke"' not in page
    assert 'value="rotate"' in issuer.get(LIST).content.decode()
    before = AccessToken.objects.count()
    assert auditor.get(ADD).status_code == 403
    assert auditor.post(ADD, form(shop)).status_code == 403
    assert AccessToken.objects.count() == before


@pytest.mark.parametrize("action", ["rotate", "revoke"])
def test_without_the_right_no_token_is_rotated_or_revoked(auditor: Client, shop: Shop, action: str) -> None:
    """A28.3."""
    act(auditor, action, shop.token)
    shop.token.refresh_from_db()
    assert (shop.token.revoked_at, shop.token.ends_at) == (None, None)
    assert shop.api.pay().status == 200
    assert AccessToken.objects.count() == 1


def test_nobody_changes_or_deletes_a_token_by_hand(shop: Shop) -> None:
    """Goals: tokens are issued, rotated and revoked, each with its audit entry."""
    boss = signed_in(User.objects.create_superuser("boss"))
    change, delete = (f"{LIST}{shop.token.pk}/{verb}/" for verb in ("change", "delete"))
    assert boss.post(change, form(shop, scopes=["read"])).status_code == 403
    assert boss.post(delete, {"post": "yes"}).status_code == 403
    act(boss, "delete_selected", shop.token)
    shop.token.refresh_from_db()
    assert shop.token.scopes == ["payments", "read", "test"]


@pytest.mark.parametrize("path", [LIST, ADD])
def test_a_visitor_is_asked_to_sign_in(client: Client, path: str) -> None:
    """A28.3."""
    answer = client.get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


def test_a_form_without_its_csrf_token_is_refused(shop: Shop) -> None:
    """Goals: another site cannot issue tokens through a clerk's browser."""
    user = User.objects.create_superuser("boss")
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(user)
    assert careful.post(ADD, form(shop)).status_code == 403
    assert AccessToken.objects.count() == 1


# --- rotating and revoking ------------------------------------------------------------------------------------------


def test_a_rotation_shows_a_successor_and_both_work_for_seven_days(issuer: Client, shop: Shop) -> None:
    successor = shown(act(issuer, "rotate", shop.token))
    assert shop.api.pay().status == 200
    assert shop.api.with_token(successor).pay().status == 200
    shop.token.refresh_from_db()
    assert shop.token.ends_at is not None
    assert timedelta(days=6, hours=23) < shop.token.ends_at - clock.real_now() <= timedelta(days=7)
    made = AccessToken.objects.get(replaces=shop.token)
    assert (made.scopes, made.name, made.ends_at) == (shop.token.scopes, shop.token.name, None)


def test_a_rotation_does_not_lengthen_a_life(issuer: Client, shop: Shop) -> None:
    """The old one ends at its own end if that is sooner."""
    ends = clock.real_now() + timedelta(hours=1)
    AccessToken.objects.filter(pk=shop.token.pk).update(ends_at=ends)
    shown(act(issuer, "rotate", shop.token))
    shop.token.refresh_from_db()
    assert shop.token.ends_at == ends


def test_a_revoked_token_is_refused_from_the_next_call(issuer: Client, shop: Shop) -> None:
    answer = act(issuer, "revoke", shop.token)
    assert answer.status_code in (200, 302)
    refused = shop.api.pay()
    assert (refused.status, refused.code) == (403, "800.900.300")


def test_a_revoked_token_is_not_rotated(issuer: Client, shop: Shop) -> None:
    """Nobody wins back what was taken away."""
    tokens.revoke_token(shop.token, by=BY)
    act(issuer, "rotate", shop.token)
    assert AccessToken.objects.count() == 1


# --- the audit trail ------------------------------------------------------------------------------------------------


def test_each_of_them_leaves_an_audit_entry_with_who_and_what(issuer: Client, shop: Shop) -> None:
    issuer.post(ADD, form(shop))
    act(issuer, "rotate", shop.token)
    act(issuer, "revoke", shop.token)
    entries = list(AuditEntry.objects.filter(actor="issuer").order_by("id"))
    assert [entry.action for entry in entries] == ["issue", "rotate", "issue", "revoke"]
    assert {entry.subject for entry in entries} == {"accesstoken"}
    assert {entry.ip for entry in entries} == {"127.0.0.1"}
    issued, rotated, _, revoked = entries
    assert issued.before is None
    assert issued.after["scopes"] == ["payments", "read"]
    assert rotated.before["ends_at"] is None
    assert rotated.after["ends_at"] is not None
    assert revoked.subject_id == str(shop.token.pk)
    assert revoked.after["revoked_at"] is not None


def test_nothing_is_revoked_before_the_word_is_typed(issuer: Client, shop: Shop) -> None:
    for typed in (None, "", "yes"):
        data = {"action": "revoke", "_selected_action": [str(shop.token.pk)]}
        asked = issuer.post(LIST, data if typed is None else {**data, "confirm": typed})
        assert "stop working at once" in asked.content.decode()
        assert shop.api.pay().status == 200
    assert act(issuer, "revoke", shop.token).status_code == 302
    assert shop.api.pay().status == 403


# --- whoever was seen a moment ago ---------------------------------------------------------------------------------


def test_tokens_are_dealt_with_by_whoever_was_seen_a_moment_ago(shop: Shop) -> None:
    """Sudo-style re-authentication for tokens and keys."""
    tired = signed_in(person("tired", Role.DEVELOPER, shop.merchant), fresh=False)
    row = f"{LIST}{shop.token.pk}"
    for answer in (
        tired.get(ADD),
        tired.post(ADD, form(shop)),
        act(tired, "rotate", shop.token),
        act(tired, "revoke", shop.token),
        tired.post(f"{row}/rotate/"),
        tired.post(f"{row}/revoke/", {"confirm": "revoke"}),
    ):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/again/")
    assert AccessToken.objects.count() == 1
    shop.token.refresh_from_db()
    assert (shop.token.revoked_at, shop.token.ends_at) == (None, None)


def test_whoever_may_not_issue_is_told_who_can_grant_it(auditor: Client, shop: Shop) -> None:
    person("anna", Role.MANAGER, shop.merchant)
    page = auditor.get(ADD)
    assert page.status_code == 403
    assert "anna" in page.content.decode()


def test_a_tokens_page_shows_its_use_and_its_buttons(issuer: Client, auditor: Client, shop: Shop) -> None:
    assert shop.api.pay().status == 200
    path = f"{LIST}{shop.token.pk}/change/"
    page = issuer.get(path).content.decode()
    assert "Calls per day" in page
    assert f"{LIST}{shop.token.pk}/rotate/" in page
    assert f"{LIST}{shop.token.pk}/rotate/" not in auditor.get(path).content.decode()
    assert auditor.post(f"{LIST}{shop.token.pk}/rotate/").status_code == 403
    shown(issuer.post(f"{LIST}{shop.token.pk}/rotate/"))
    assert "ends in 7 days" in issuer.get(path).content.decode()


def test_a_token_of_one_channel_is_issued_by_its_own_manager(shop: Shop) -> None:
    """Rights by entity tree, down to a channel."""
    other = shop.open_channel("other")
    client = signed_in(person("integrator", Role.MANAGER, shop.channel))
    token = shown(client.post(ADD, form(shop, merchant="", channel=str(shop.channel.pk))))
    assert Api(token=token, entity=shop.channel.entity_id).pay().status == 200
    before = AccessToken.objects.count()
    client.post(ADD, form(shop, merchant="", channel=str(other.pk)))
    client.post(ADD, form(shop))
    assert AccessToken.objects.count() == before
