"""Two readings of one text must agree: the catalogue against the specification's tables in tests/spec.

Where they differ on purpose, the difference stands in a list here, with its reason.
"""

from __future__ import annotations

import re

import pytest

from gateway.catalogue.endpoints import (
    CREATE_CHECKOUT_ENDPOINT,
    CREATE_REGISTRATION_ENDPOINT,
    FOLLOW_UP_ENDPOINT,
    ONE_CLICK_ENDPOINT,
    PAYMENT_ENDPOINT,
    QUERY_ENDPOINT,
    REPORTS,
    Endpoint,
)
from gateway.catalogue.parse import InvalidParametersError
from gateway.catalogue.structure import Param, Structure
from gateway.catalogue.structures import ALL_STRUCTURES, NETWORK_KEYS
from tests import spec
from tests.spec import SpecCondition, SpecParameter

TITLES = {
    "Test modes": "What the service does",
    "Sender (the party who pays the debt)": "Sender",
    "Recipient (the party whose debt is paid)": "Recipient",
    "Merchant (the acceptor)": "Merchant",
    "Recurring migration (deprecated)": "Recurring migration",
    "3D Secure: authentication message": "3D Secure",
    "3D Secure: proof of authentication": "3D Secure",
    "3D Secure: exemptions": "3D Secure",
    "Scheduling (subscription jobs)": "Scheduling",
    "Card on file (standing instruction)": "Card on file",
}
"""The catalogue's title → the data's, where they differ: headings with their bracket, and the parts of one table."""

_ITS_LIST = "the error prints the list; the cell names the length, which the list beats (D24)"
_MEANING = "the meaning after the comma is the row's note"
_ZERO = "length 0 allowed: 'up to' says the same, and tells readers what is asked of them"
WORDED_DIFFERENTLY = {
    "testMode": ("EXTERNAL or INTERNAL", "the specification says it in a sentence, not in a cell"),
    "corporate.vatId": ("AN up to 255", _ZERO),
    "merchant.websiteId": ("AN up to 255", _ZERO),
    "threeDSecure.merchant.url": ("AN up to 2048", _ZERO),
    "threeDSecure.dsTransactionId": ("36 chars", _MEANING),
    "threeDSecure.acsTransactionId": ("36 chars", _MEANING),
    "giftCard.type": ("AN up to 16", _ITS_LIST),
    "job.expression": (
        "AN up to 256; cron expression of seven fields (year may be left out)",
        "that it overwrites the other fields is a condition",
    ),
}
"""Format cells whose words differ from the specification's: the catalogue's words, and why."""

Key = tuple[str, str]
CATALOGUE: dict[Key, tuple[Structure, Param]] = {
    (TITLES.get(one.title, one.title), one.full(row.name)): (one, row) for one in ALL_STRUCTURES for row in one.rows
}


def _spread(row: SpecParameter) -> list[Key]:
    """``threeDSecure.v2.<net>.…`` stands for six rows: the network keys are a setting (D35)."""
    names = [row.name.replace("<net>", net) for net in NETWORK_KEYS] if "<net>" in row.name else [row.name]
    return [(row.structure, name) for name in names]


def _any_net(name: str) -> str:
    return re.sub(r"^(threeDSecure\.v2)\.[a-z]+\.", r"\1.<net>.", name)


SPEC: dict[Key, SpecParameter] = {key: row for row in spec.parameters() for key in _spread(row)}
each_parameter = pytest.mark.parametrize("key", list(SPEC), ids=[f"{title}: {name}" for title, name in SPEC])
STRUCTURES = list(dict.fromkeys(title for title, _ in SPEC))


@pytest.mark.parametrize("title", STRUCTURES)
def test_a_table_has_every_parameter_of_the_specification_and_no_other(title: str) -> None:
    """Parts A and B, Resources and their fields."""
    assert {name for where, name in CATALOGUE if where == title} == {name for where, name in SPEC if where == title}


def test_no_table_is_missing_and_none_is_extra() -> None:
    """Parts A and B, Resources and their fields."""
    assert {title for title, _ in CATALOGUE} == set(STRUCTURES)


def test_no_parameter_stands_twice_in_a_table() -> None:
    """Parts A and B, Resources and their fields."""
    assert len(CATALOGUE) == sum(len(one.rows) for one in ALL_STRUCTURES)


@pytest.mark.parametrize("title", STRUCTURES)
def test_a_table_keeps_the_order_of_the_specification(title: str) -> None:
    """House: rows keep the spec's order, so that a reviewer lays the two side by side."""
    theirs = [row.name for row in spec.parameters() if row.structure == title]
    for one in ALL_STRUCTURES:
        if TITLES.get(one.title, one.title) == title:
            names = list(dict.fromkeys(_any_net(one.full(row.name)) for row in one.rows))
            assert names == [name for name in theirs if name in set(names)]


@each_parameter
def test_a_parameter_is_required_conditional_or_optional_as_the_specification_says(key: Key) -> None:
    """A11.4: Parts A and B, the Req column."""
    assert CATALOGUE[key][1].need.value == SPEC[key].req


@each_parameter
def test_a_format_is_worded_as_the_specification_words_it(key: Key) -> None:
    """Parts A and B, the Format column."""
    words = CATALOGUE[key][1].format.words
    if key[1] in WORDED_DIFFERENTLY:
        assert words == WORDED_DIFFERENTLY[key[1]][0]
        assert _plain(words) != _plain(SPEC[key].format), "no difference is left: take it out of the list"
    else:
        assert _plain(words) == _plain(SPEC[key].format)


@each_parameter
def test_a_parameter_takes_the_values_the_specification_allows(key: Key) -> None:
    """A31.7; Parts A and B, Format notation; rulings D22 to D26. An empty value of other fields is an absence (D16)."""
    form = CATALOGUE[key][1].format
    assert [value for value in SPEC[key].ok if form.problem(value) is not None] == []
    assert "" not in SPEC[key].ok or form.empty_is_value


@each_parameter
def test_a_parameter_refuses_the_values_the_specification_does_not_allow(key: Key) -> None:
    """A31.4, A31.7; Parts A and B, Format notation; rulings D22 to D26."""
    form = CATALOGUE[key][1].format
    assert [value for value in SPEC[key].bad if form.problem(value) is None] == []


# --- conditions ----------------------------------------------------------------------------------------------------

ENDPOINTS: dict[str, Endpoint] = {
    "payments": PAYMENT_ENDPOINT,
    "checkouts": CREATE_CHECKOUT_ENDPOINT,
    "follow-up": FOLLOW_UP_ENDPOINT,
    "registrations": CREATE_REGISTRATION_ENDPOINT,
    "one-click": ONE_CLICK_ENDPOINT,
    "query": QUERY_ENDPOINT,
    "reports": REPORTS[0],
}
TODAY = "today:2026-07"
ENTITY = ("entityId", "8a8294174b7ecb28014b9699220015ca")
_REGIONAL_CARD = (
    ("paymentBrand", "CARTEBANCAIRE"), ("card.number", "4200000000000000"),
    ("card.expiryMonth", "05"), ("card.expiryYear", "2034"),
)  # fmt: skip

SET_UPS: dict[str, tuple[frozenset[str], tuple[tuple[str, str], ...]]] = {
    "": (frozenset(), ()),
    "an enrolled card on a channel with 3-D Secure": (frozenset({"threeds"}), ()),
    "a card and brand of the regional scheme on a channel with 3-D Secure": (frozenset({"threeds"}), _REGIONAL_CARD),
    "a channel on which the security code is mandatory": (frozenset({"cvv"}), ()),
    "an earlier payment that the type may follow": (frozenset(), ()),
    "keeps: an earlier authorisation with that id": (frozenset(), ()),
    "an existing registration": (frozenset({"registration"}), ()),
}
"""What a row needs → facts of the channel and fields that make it so."""

NOT_HERE = {
    "widget": "what a page's form may send is said by checkout.form_parameters: tests/checkout/test_checkouts.py",
    "a receiver that requires it": "no connector that demands more than the catalogue is set up",
    "no payment with that id": "an id is looked up behind the catalogue: tests/gateway/payments tell of it",
    "the risk provider that fixes the length": "no risk provider is set up",
    "A29.1": "whether a card payment turns asynchronous is known when 3-D Secure has begun",
}
"""Place, need or id of rows that the catalogue alone cannot decide."""


def _row(one: SpecCondition) -> object:
    reason = next((NOT_HERE[why] for why in (one.where, one.needs, one.id) if why in NOT_HERE), None)
    return pytest.param(one, id=one.id, marks=[pytest.mark.skip(reason=reason)] if reason else [])


CONDITIONS = spec.conditions()
keeping = pytest.mark.parametrize("one", [_row(one) for one in CONDITIONS if one.keeps])
breaking = pytest.mark.parametrize("one", [_row(one) for one in CONDITIONS if one.breaks])


def complaints(one: SpecCondition, pairs: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """What the endpoint's catalogue says of ``pairs``: parameter → message."""
    facts, more = SET_UPS[one.needs]
    names = {name for name, _ in pairs}
    entity = () if names & {"entityId", "authentication.entityId"} else (ENTITY,)
    sent = (*entity, *pairs, *((name, value) for name, value in more if name not in names))
    try:
        parameters = ENDPOINTS[one.where].catalogue.parse(sent, facts=facts | {TODAY})
    except InvalidParametersError as invalid:
        return {error.name: error.message for error in invalid.errors}
    return {error.name: error.message for error in parameters.refusals}


@keeping
def test_a_request_that_keeps_a_condition_is_not_told_off(one: SpecCondition) -> None:
    """Parts A and B, the notes; decisions."""
    told = complaints(one, one.keeps)
    assert {name: told[name] for group in one.names for name in group if name in told} == {}


@breaking
def test_a_request_that_breaks_a_condition_is_told_each_parameter_at_fault(one: SpecCondition) -> None:
    """B4.6, B5.10, B6.3, B7.1, B11.11, B12.4; Parts A and B, the notes; Errors; decisions."""
    told = complaints(one, one.breaks)
    assert [group for group in one.names if not set(group) & told.keys()] == [], told


def _plain(text: str) -> str:
    return " ".join(text.split())
