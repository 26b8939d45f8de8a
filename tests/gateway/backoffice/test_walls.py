"""Walls between tenants, asked of every page at once: whose rows forms offer, and what a list's address may ask.

Source: design goals R11.
"""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client, RequestFactory

from gateway.backoffice.kit.base import BackofficePage, InstallationPage
from gateway.models import Division, Grant, Merchant, Psp, Role
from tests.support.fixtures import Shop, open_shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
PAGES = sorted(admin.site._registry.items(), key=lambda each: each[0]._meta.label)
each_page = pytest.mark.parametrize(("model", "page"), PAGES, ids=[model._meta.label for model, _page in PAGES])


@pytest.fixture
def rival(shop: Shop) -> Shop:
    """A merchant of another PSP in the same installation."""
    return open_shop(Division.objects.create(name="Rival division", psp=Psp.objects.create(name="Rival")), "Rival shop")


@pytest.fixture
def staff(rival: Shop) -> Client:
    """Staff of the other PSP."""
    return signed_in(person("rival", Role.PSP, rival.merchant.division.psp))


def offers(page: Any, user: User) -> dict[str, set[Model]]:
    """Every row that a page's own form and its inlines offer ``user``, by field."""
    request = RequestFactory().get("/admin/")
    request.user = user
    kinds = [page.get_form(request)]
    kinds += [inline.get_formset(request).form for inline in page.get_inline_instances(request)]
    found: dict[str, set[Model]] = {}
    for kind in kinds:
        for name, field in kind.base_fields.items():
            if isinstance(field, forms.ModelChoiceField):
                found[f"{kind.__name__}.{name}"] = set(field.queryset)
    return found


@each_page
def test_a_form_offers_no_row_of_another_merchant_or_psp(
    model: type[Model], page: Any, shop: Shop, stranger: Shop, rival: Shop
) -> None:
    """Found in use: the division's page offered every PSP, and so one PSP could take another's merchants."""
    theirs: set[Model] = {shop.merchant, shop.channel, shop.token}
    above: set[Model] = {shop.merchant.division, shop.merchant.division.psp}
    manager, staff = (
        person("otto", Role.MANAGER, stranger.merchant),
        person("rita", Role.PSP, rival.merchant.division.psp),
    )
    for user, hidden in ((manager, theirs), (staff, theirs | above)):
        for field, rows in offers(page, user).items():
            assert not rows & hidden, field


def test_psp_staff_neither_sees_nor_takes_another_psps_divisions(staff: Client, shop: Shop, rival: Shop) -> None:
    """Found in use: a foreign division was listed, opened and moved to the own PSP, with all of its merchants."""
    division, own = shop.merchant.division, rival.merchant.division
    for model, row in (("division", division), ("psp", division.psp)):
        listed = staff.get(f"/admin/gateway/{model}/").content.decode()
        assert str(row.pk) not in listed
        for verb in ("change", "history"):
            assert staff.get(f"/admin/gateway/{model}/{row.pk}/{verb}/").status_code == 404
        values = {"name": "taken", "active": "on", "psp": str(own.psp.pk)}
        assert staff.post(f"/admin/gateway/{model}/{row.pk}/change/", values).status_code == 404
    division.refresh_from_db()
    assert (division.name, division.psp.name) == ("Division", "PSP")
    values = {"name": "moved away", "active": "on", "psp": str(division.psp.pk)}
    assert staff.post(f"/admin/gateway/division/{own.pk}/change/", values).status_code == 302
    own.refresh_from_db()
    assert (own.name, own.psp.name) == ("moved away", "Rival")
    staff.post("/admin/gateway/division/add/", {"name": "planted", "active": "on", "psp": str(division.psp.pk)})
    assert not Division.objects.filter(name="planted").exists()


def test_psp_staff_builds_below_its_own_psp(staff: Client, shop: Shop, rival: Shop) -> None:
    """Part A, entities: divisions and merchants of one's own PSP are made by its staff, and of no other."""
    psp = rival.merchant.division.psp
    values = {"name": "new", "active": "on", "psp": str(psp.pk)}
    assert staff.post("/admin/gateway/division/add/", values).status_code == 302
    new = Division.objects.get(name="new")
    values = {
        "name": "newcomer",
        "time_zone": "UTC",
        "active": "on",
        "channels-TOTAL_FORMS": "0",
        "channels-INITIAL_FORMS": "0",
    }
    for division, made in ((shop.merchant.division, False), (new, True)):
        staff.post("/admin/gateway/merchant/add/", {**values, "division": str(division.pk)})
        assert Merchant.objects.filter(name="newcomer", division=division).exists() is made
    assert "newcomer" in staff.get("/admin/gateway/merchant/").content.decode()


def test_the_installation_is_nobodys_who_does_not_have_all_of_it(staff: Client, rival: Shop) -> None:
    """Where there are several PSPs, one of them neither counts the vault's keys nor stops the ticks of all."""
    for path in (
        "/admin/vault-keys/",
        *(
            f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            for model, page in PAGES
            if isinstance(page, InstallationPage)
        ),
    ):
        assert staff.get(path).status_code == 403, path
    assert "/admin/vault-keys/" not in staff.get("/admin/").content.decode()


# --- what a list's address may ask ------------------------------------------------------------------------------------


@each_page
def test_a_lists_address_asks_only_what_its_filters_ask(model: type[Model], page: Any, shop: Shop) -> None:
    """Found in use: Django allows every column of the row itself, and so tells it character by character."""
    assert isinstance(page, BackofficePage)
    request = RequestFactory().get("/admin/")
    request.user = User.objects.create_superuser("root")
    for field in model._meta.get_fields():
        for compared in ("startswith", "regex", "contains", "istartswith", "password__startswith", "length"):
            assert not page.lookup_allowed(f"{field.name}__{compared}", "a", request), (field.name, compared)
    filtered = {each if isinstance(each, str) else each[0] for each in page.list_filter if not isinstance(each, type)}
    for name in filtered:
        assert page.lookup_allowed(f"{name}__exact", "a", request), name
    for field in model._meta.concrete_fields:
        if field.name not in filtered:
            assert not page.lookup_allowed(field.name, "a", request), field.name


@pytest.mark.parametrize("role", [Role.MANAGER, Role.AUDITOR])
def test_nobody_reads_a_password_out_of_the_list_of_users(shop: Shop, role: Role) -> None:
    """Found in use: the hash was read character by character."""
    user = person("somebody", role, shop.merchant)
    client = signed_in(user)
    for asked in ("password__startswith", "password", "last_login__gte", "grants__merchant__name__startswith"):
        for value in ("pbkdf2_sha256", "!", "zzz"):
            assert client.get("/admin/auth/user/", {asked: value}).status_code == 400, asked
    assert client.get("/admin/auth/user/", {"is_active__exact": "1"}).status_code == 200


def test_a_filter_by_merchant_still_filters(shop: Shop) -> None:
    """The filters that pages offer are asked by address."""
    other = open_shop(shop.merchant.division, "Second")
    user = person("somebody", Role.MANAGER, shop.merchant)
    Grant.objects.create(user=user, role=Role.MANAGER, merchant=other.merchant)
    page = signed_in(user).get("/admin/gateway/channel/", {"merchant__id__exact": str(other.merchant.pk)})
    assert other.channel.name in page.content.decode()
    assert f"/{shop.channel.pk}/" not in page.content.decode()


@each_page
def test_a_form_that_is_sent_or_linked_with_what_is_no_row_is_shown(model: type[Model], page: Any, shop: Shop) -> None:
    """Found in use: …/channel/add/?merchant=x was a fault of ours, and so was the same sent by POST."""
    boss = User.objects.create_superuser("boss")
    request = RequestFactory().get("/admin/")
    request.user = boss
    named = (
        [
            name
            for name, field in page.get_form(request).base_fields.items()
            if isinstance(field, forms.ModelChoiceField)
        ]
        if page.has_add_permission(request)
        else []
    )
    client, address = signed_in(boss), f"/admin/{model._meta.app_label}/{model._meta.model_name}/add/"
    for nonsense in ("x", "99999999999999999999", "'", "00000000-0000-0000-0000-000000000000") if named else ():
        sent = dict.fromkeys(named, nonsense)
        assert client.get(address, sent).status_code == 200
        assert client.post(address, sent).status_code == 200


@each_page
def test_a_lists_action_takes_no_key_that_no_row_can_have(model: type[Model], page: Any, shop: Shop) -> None:
    """Found in use: a key that is no UUID was a fault of ours."""
    client = signed_in(User.objects.create_superuser("boss"))
    for action in page.actions or ():
        name = action if isinstance(action, str) else action.__name__
        for nonsense in ("x", "1", "-1", "9" * 30, "1e3", "\0", "", "None"):
            sent = {"action": name, "_selected_action": nonsense}
            answer = client.post(f"/admin/{model._meta.app_label}/{model._meta.model_name}/", sent)
            assert answer.status_code in (200, 302, 400, 403), (name, nonsense)


@each_page
def test_a_row_that_is_sent_as_a_new_one_is_refused(model: type[Model], page: Any, shop: Shop) -> None:
    """Found in use: Django saves a copy for whoever may add, past what the page's own form to add checks (a recent
    authentication, a second person); of an access token that was a fault of ours."""
    key = shop.token.pk if model._meta.label == "gateway.AccessToken" else "1"
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/{key}/change/"
    client = signed_in(User.objects.create_superuser("boss"))
    client.get("/admin/account/")  # makes the rows of the session
    before = model._default_manager.count()
    sent = {"name": "copy", "merchant": str(shop.merchant.pk), "scopes": "payments", "_saveasnew": "1"}
    answer = client.post(address, sent)
    assert answer.status_code in (302, 403, 404)
    assert model._default_manager.count() == before
    if model._meta.label == "gateway.AccessToken":
        assert answer.status_code == 403
