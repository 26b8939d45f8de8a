"""What texts full of digits may cost: a request is refused before more of them is looked through than is allowed.

Looking for card numbers costs up to 2 µs a character, so the characters are what is counted here, and no time.
Source: docs/decisions/0050-what-a-request-may-cost.md, 0052-card-data-in-free-text.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from gateway.catalogue.errors import MAX_ERROR_SEARCH_CHARS
from gateway.catalogue.parse import MAX_SEARCHED_CHARS
from gateway.core import card_data_detection
from gateway.models import Payment
from tests.support.client import Api, payment
from tests.support.shopper import open_checkout

pytestmark = pytest.mark.django_db

DENSE = "4 4 4 4 "
ITEMS = {f"cart.items[{at}].description": DENSE * 255 for at in range(1_000)}
CUSTOM = {f"customParameters[key{at}]": DENSE * 250 for at in range(500)}
MAX_SHOWN_CHARS = 64 * 1024
"""What errors, logs and the answer may look through besides: they show the beginnings of values."""


@dataclass(slots=True)
class Counting:
    """A compiled expression that counts the characters of the texts that it goes through."""

    own: re.Pattern[str]
    chars: int = 0

    def finditer(self, text: str, start: int = 0, end: int = 10**9) -> Iterator[re.Match[str]]:
        self.chars += min(len(text), end) - start
        return self.own.finditer(text, start, end)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counting:
    counting = Counting(card_data_detection._TOKENS)
    monkeypatch.setattr(card_data_detection, "_TOKENS", counting)
    return counting


@pytest.mark.parametrize("dense", [ITEMS, CUSTOM, ITEMS | CUSTOM], ids=["items", "custom parameters", "both"])
@pytest.mark.parametrize("path", ["/v1/payments", "/v1/checkouts"])
def test_a_request_full_of_digits_is_refused_unsearched(
    api: Api, looked: Counting, path: str, dense: Mapping[str, str]
) -> None:
    fields = {name: value for name, value in payment().items() if path == "/v1/payments" or "card." not in name}
    answer = api.post(path, fields | dense)
    assert (answer.status, answer.code) == (400, "200.300.404")
    (name,) = (name for name, said in answer.errors.items() if "long digit sequences" in said)
    assert name in dense
    assert answer.errors[name].endswith(f"may have {MAX_SEARCHED_CHARS:,} characters in all")
    assert looked.chars <= MAX_SHOWN_CHARS
    assert Payment.objects.count() == 0


def test_as_much_as_is_allowed_is_taken_and_looked_through_a_few_times(api: Api, looked: Counting) -> None:
    """The stored value, its log and its answer are looked through; never one value by the number of the others."""
    full = {name: CUSTOM[name] for name in list(CUSTOM)[: MAX_SEARCHED_CHARS // len(DENSE * 250)]}
    answer = api.post("/v1/payments", payment() | full)
    assert answer.status == 200, answer
    assert sum(map(len, full.values())) <= looked.chars <= 3 * MAX_SEARCHED_CHARS


def test_long_texts_without_digits_do_not_count(api: Api) -> None:
    texts = dict.fromkeys(CUSTOM, "a mug of blue china, 4 by 4 " * 70)
    assert sum(map(len, texts.values())) > 3 * MAX_SEARCHED_CHARS
    assert api.post("/v1/payments", payment() | texts).status == 200


def test_a_shoppers_form_full_of_digits_is_refused_with_little_search(api: Api, looked: Counting) -> None:
    """Fields of three hundred digits each, which no browser sends: the first are shown in the errors, and logged."""
    browser = open_checkout(api)
    looked.chars = 0
    dense = {f"customParameters[key{at}]": (DENSE * 38)[:299] for at in range(500)}
    answer = browser.pay(**dense)
    assert (answer.status, answer.code) == (400, "200.300.404")
    assert len(answer.errors) >= len(dense)
    assert looked.chars <= 4_000
    shown = [error.get("value", "") for error in answer.body["result"]["parameterErrors"]]
    assert shown[0].startswith("4 4")
    assert shown[-1] == "•••"


def test_five_thousand_errors_show_the_first_values_only(api: Api, looked: Counting) -> None:
    dense = {f"cart.items[{at}].{name}": DENSE * 35 for at in range(1_000) for name in ("quantity", "price", "tax")}
    answer = api.post("/v1/payments", payment() | dense)
    assert answer.status == 400
    assert looked.chars <= 2 * MAX_ERROR_SEARCH_CHARS
