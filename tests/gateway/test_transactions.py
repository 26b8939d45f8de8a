"""Whether a transaction is open."""

from __future__ import annotations

import pytest
from django.db import transaction

from gateway.db.transactions import is_in_transaction


@pytest.mark.django_db
def test_the_transaction_around_a_test_is_none_and_one_within_it_is() -> None:
    assert not is_in_transaction()
    with transaction.atomic():
        assert is_in_transaction()
        with transaction.atomic():
            assert is_in_transaction()
        assert is_in_transaction()
    assert not is_in_transaction()


@pytest.mark.django_db(transaction=True)
def test_where_there_is_none_around_the_test_it_is_the_same() -> None:
    assert not is_in_transaction()
    with transaction.atomic():
        assert is_in_transaction()
    assert not is_in_transaction()
