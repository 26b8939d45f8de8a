"""What a page of the back office asks the database: nothing twice."""

from __future__ import annotations

from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.navigation import list_page_titles
from tests.support.fixtures import Shop
from tests.support.office import signed_in

NO_QUESTIONS = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT", "SET LOCAL")
"""Statements that read nothing."""


@pytest.mark.django_db
def test_no_page_asks_the_same_twice(shop: Shop) -> None:
    """Every page of the navigation and the first page, after a first look that fills caches."""
    shop.api.pay()
    office = signed_in(User.objects.create_superuser("root"))
    repeated: dict[str, list[str]] = {}
    for address in ["/admin/", *list_page_titles()]:
        office.get(address)
        with CaptureQueriesContext(connection) as sent:
            assert office.get(address).status_code == 200
        counts = Counter(query["sql"] for query in sent if not query["sql"].startswith(NO_QUESTIONS))
        if twice := [sql for sql, number in counts.items() if number > 1]:
            repeated[address] = twice
    assert repeated == {}
