"""Which payments were settled is asked of the package that knows, and nothing is guessed without it."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway.payments import settlement_check
from gateway.payments.settlement_check import find_settled_payments, register_settlement_check

ONE, TWO = UUID(int=1), UUID(int=2)


def test_the_function_registered_last_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlement_check, "_registered", [])
    with pytest.raises(ImproperlyConfigured):
        find_settled_payments([ONE])
    asked: list[Collection[UUID]] = []

    def find_none(payments: Collection[UUID]) -> set[UUID]:
        raise AssertionError("it was replaced")

    def find_one(payments: Collection[UUID]) -> set[UUID]:
        asked.append(payments)
        return {ONE}

    register_settlement_check(find_none)
    register_settlement_check(find_one)
    assert find_settled_payments([ONE, TWO]) == {ONE}
    assert asked == [[ONE, TWO]]
