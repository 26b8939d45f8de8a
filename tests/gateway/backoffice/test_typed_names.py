"""No name that a person types holds a card number: lists, searches, exports and the audit log show names."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.http import QueryDict
from django.test import RequestFactory
from django.utils.http import urlencode

from gateway.models import AccessToken, AcquirerAccount, Psp, RoutingRule, WalletKey
from tests.support.fixtures import Shop
from tests.support.office import signed_in

pytestmark = pytest.mark.django_db
NAMES = frozenset({"name", "description", "username", "first_name", "last_name"})
REFUSAL = "A whole card number is not kept"
# Names that are chosen by a program, or that no page changes.
READ_ONLY = frozenset({"BackgroundWork", "PeriodicTask"})


def named_pages(user: User) -> dict[type[models.Model], tuple[Any, list[str]]]:
    """The form of each page with the names in it."""
    request = RequestFactory().get("/admin/")
    request.user = user
    found = {}
    for model, page in admin.site._registry.items():
        names = sorted(NAMES & set(page.get_form(request).base_fields))
        if names and model.__name__ not in READ_ONLY:
            found[model] = (page.get_form(request), names)
    return found


@pytest.mark.parametrize("typed", ["4200000000000000", "for 4200 0000 0000 0000", "4200-0000-0000-0000 old"])
def test_no_page_keeps_a_card_number_in_a_name(shop: Shop, admin_user: User, typed: str) -> None:
    pages = named_pages(admin_user)
    assert {AccessToken, AcquirerAccount, Psp, RoutingRule, WalletKey, User} <= set(pages)
    for model, (kind, names) in pages.items():
        form = kind(data=QueryDict(urlencode(dict.fromkeys(names, typed))))
        assert not form.is_valid()
        for name in names:
            assert any(REFUSAL in text for text in form.errors.get(name, ())), (model, name, form.errors)


def test_other_names_are_kept(shop: Shop, admin_user: User) -> None:
    for typed in ("Shop 4711", "0123456789", "01a2094a-f818-740c-83f2-bd4e8b7d92dc", "2026-11-23 16:43"):
        for kind, names in named_pages(admin_user).values():
            form = kind(data=QueryDict(urlencode(dict.fromkeys(names, typed))))
            form.is_valid()
            assert not any(REFUSAL in text for texts in form.errors.values() for text in texts)


def test_the_page_says_it_beside_the_field(shop: Shop, admin_user: User) -> None:
    page = signed_in(admin_user).post("/admin/gateway/psp/add/", {"name": "4200000000000000"})
    assert (page.status_code, Psp.objects.filter(name__contains="4200").count()) == (200, 0)
    assert REFUSAL in page.content.decode()
