"""Calls that somebody waits for at a page are few. Source: docs/decisions/0168."""

from __future__ import annotations

from contextlib import ExitStack
from uuid import uuid4

import pytest

from gateway.outbound import page_calls
from gateway.outbound.page_calls import TooManyPageCallsError, count_page_call


def is_taken(owner: object) -> bool:
    try:
        with count_page_call(owner):
            return True
    except TooManyPageCallsError:
        return False


def test_one_owner_has_a_part_of_them_and_all_together_have_a_most() -> None:
    owners = [uuid4() for _ in range(page_calls.MAX_PAGE_CALLS)]
    with ExitStack() as running:
        for _ in range(page_calls.MAX_PAGE_CALLS_OF_ONE):
            running.enter_context(count_page_call(owners[0]))
        assert [is_taken(owner) for owner in owners[:2]] == [False, True]
        for owner in owners[1 : 1 + page_calls.MAX_PAGE_CALLS - page_calls.MAX_PAGE_CALLS_OF_ONE]:
            running.enter_context(count_page_call(owner))
        assert not is_taken(uuid4())
    assert all(is_taken(owner) for owner in owners)


def test_a_call_that_failed_is_over() -> None:
    owner = uuid4()
    for _ in range(page_calls.MAX_PAGE_CALLS + 1):
        with pytest.raises(OSError, match="away"), count_page_call(owner):
            raise OSError("away")
