"""GET /v1/cardFacts: what is known of a card by its first digits, and that no number is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.models import Channel
from tests.support.bin_files import write_bin_file
from tests.support.database import places_of
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

PATH = "/v1/cardFacts"


def test_facts_are_told_by_six_digits(shop: Shop) -> None:
    answer = shop.api.get(PATH, {"card.bin": "400005"})
    assert (answer.status, answer.code) == (200, "000.000.100")
    assert answer.body["card"] == {
        "bin": "400005",
        "brands": ["VISA"],
        "issuer": {"bank": "Half-Way Test Savings", "phone": "+1 202 555 0105", "website": "https://half-way.example"},
        "type": "PREPAID",
        "level": "STANDARD",
        "regulatedFlag": "true",
        "issuerCountry": "US",
    }


def test_what_is_not_known_is_left_out(shop: Shop, tmp_path: Path) -> None:
    assert shop.api.get(PATH, {"card.bin": "499999"}).body["card"] == {"bin": "499999", "brands": ["VISA"]}
    assert shop.api.get(PATH, {"card.bin": "000000"}).body["card"] == {"bin": "000000", "brands": []}
    with write_bin_file(tmp_path, "499999\t\t\tDE\t\t\t\t"):
        assert shop.api.get(PATH, {"card.bin": "499999"}).body["card"] == {
            "bin": "499999", "brands": ["VISA"], "issuerCountry": "DE",
        }  # fmt: skip


def test_eight_digits_tell_banks_apart_and_six_come_back(shop: Shop, tmp_path: Path) -> None:
    with write_bin_file(tmp_path, "49999900\t49999949\tA\tDE\t\t\t\t", "49999950\t49999999\tB\tDE\t\t\t\t"):
        found = [shop.api.get(PATH, {"card.bin": digits}).body["card"] for digits in ("499999", "49999951")]
    assert found == [
        {"bin": "499999", "brands": ["VISA"], "issuerCountry": "DE"},
        {"bin": "499999", "brands": ["VISA"], "issuer": {"bank": "B"}, "issuerCountry": "DE"},
    ]


def test_brands_come_in_the_merchants_order(shop: Shop) -> None:
    assert shop.api.get(PATH, {"card.bin": "497010"}).body["card"]["brands"] == ["VISA", "CARTEBANCAIRE"]
    Channel.objects.filter(pk=shop.channel.pk).update(brand_order=["CARTEBANCAIRE", "VISA"])
    assert shop.api.get(PATH, {"card.bin": "497010"}).body["card"]["brands"] == ["CARTEBANCAIRE", "VISA"]


@pytest.mark.parametrize("value", ["4200000000000000", "420000000", "42000", "", "42000x", "420000******0000"])
def test_anything_but_first_digits_is_refused_with_the_name(shop: Shop, value: str) -> None:
    answer = shop.api.get(PATH, {"card.bin": value})
    assert (answer.status, answer.body["result"]["parameterErrors"][0]["name"]) == (400, "card.bin")
    assert "4200000000000000" not in answer.text
    assert places_of("4200000000000000") == set()


def test_a_token_is_needed(shop: Shop) -> None:
    assert shop.api.with_token(None).get(PATH, {"card.bin": "420000"}).status == 401
