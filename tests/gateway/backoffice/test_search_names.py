"""The search of the back office by names, accounts, references, descriptors and ends of an ndc."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway.backoffice.payments import payment_search, search_terms
from gateway.models import BackgroundWork, BulkAction, Payment, RequestLog
from gateway.payments import search_keys
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/payment/"
IBAN = "DE89370400440532013000"


def office(shop: Shop) -> Any:
    return signed_in(person("clara", "clerk", shop.merchant))


def found(client: Any, text: str) -> list[str]:
    """Ids that the list finds for a text; a text that names one payment opens its page."""
    answer = client.get(LIST, {"q": text})
    if answer.status_code == 302:
        return [answer.url.split("/")[-3].replace("-", "")]
    return [row.pk.hex for row in answer.context["rows"]]


def pay_as(shop: Shop, given: str, surname: str, **more: str) -> str:
    return shop.api.pay(customer__givenName=given, customer__surname=surname, **more).id


@pytest.mark.parametrize("text", ["Jürgen Müller", "müller", "MUELLER", "Mueller Jürgen", "name:Müller"])
def test_a_shopper_is_found_by_name_however_it_is_written(shop: Shop, text: str) -> None:
    wanted = pay_as(shop, "Jürgen", "Müller")
    pay_as(shop, "Jane", "Jones")
    assert found(office(shop), text) == [wanted]


def test_a_holder_is_found_by_name_and_only_by_all_of_its_words(shop: Shop, stranger: Shop) -> None:
    wanted = shop.api.pay(card__holder="Mary O'Neill-Smith").id
    pay_as(shop, "Mary", "Jones")
    stranger.api.pay(card__holder="Mary O'Neill-Smith")
    client = office(shop)
    for text in ("Mary Smith", "neill", "O'Neill-Smith, Mary"):
        assert found(client, text) == [wanted]
    assert found(client, "Mary Miller") == []


def test_names_are_found_by_keys_alone_where_they_are_not_kept(shop: Shop) -> None:
    """The keys find a payment whose names are erased or sealed."""
    wanted = pay_as(shop, "Jane", "Jones")
    Payment.objects.update(request={})
    assert found(office(shop), "jane jones") == [wanted]
    kept = Payment.objects.get(pk=wanted).name_keys
    assert kept is not None
    assert set(search_keys.build_name_keys(shop.merchant.pk, ["Jane Jones"])) <= set(kept)


def test_another_merchants_key_finds_nothing_here(shop: Shop, stranger: Shop) -> None:
    """A search over many merchants asks for the keys of all of them: one of another merchant may be here that of
    another word, or of another account."""
    wanted = pay_as(shop, "Jane", "Jones")
    others = [pay_as(shop, "Mary", "Miller"), shop.api.pay(card__holder=None).id]
    [foreign] = search_keys.build_name_keys(stranger.merchant.pk, ["Jones"])
    Payment.objects.filter(pk=others[0]).update(name_keys=[foreign])
    account = search_keys.build_last4_key(stranger.merchant.pk, "3000")
    Payment.objects.filter(pk=others[1]).update(means="bankAccount", last4_key=account, answer={})
    mine = shop.api.pay(card__holder=None).id
    own = search_keys.build_last4_key(shop.merchant.pk, "3000")
    Payment.objects.filter(pk=mine).update(means="bankAccount", last4_key=own, answer={})
    root = signed_in(User.objects.create_superuser("root"))
    assert found(root, "name:Jones") == [wanted]
    for text in ("ibanEnd:0532013000", "lastFour:3000"):
        assert found(root, text) == [mine]


def test_a_payment_without_names_has_no_keys(shop: Shop) -> None:
    ident = shop.api.pay(card__holder=None).id
    assert Payment.objects.get(pk=ident).name_keys is None


def test_a_descriptor_and_an_acquirers_reference_are_found(shop: Shop) -> None:
    wanted = shop.api.pay(descriptor="Tea shop 4711").id
    shop.api.pay()
    Payment.objects.filter(pk=wanted).update(connector_tx_id="ch_3Pq8s2XyZ")
    client = office(shop)
    for text in ("descriptor:tea shop", "ch_3Pq8s2XyZ", "reference:ch_3Pq8s2XyZ"):
        assert found(client, text) == [wanted]


def test_the_end_of_an_ndc_finds_its_payment(shop: Shop) -> None:
    answer = shop.api.pay()
    shop.api.pay()
    assert found(office(shop), f"…{answer.body['ndc'][-12:]}") == [answer.id]


def test_a_value_that_may_be_two_things_shows_both(shop: Shop) -> None:
    amount = shop.api.pay(amount="4242.00").id
    card = shop.api.pay(card__number="4242424242424242").id
    client = office(shop)
    hits = client.get("/admin/search/", {"s": "4242"}).content.decode().replace("-", "")
    assert amount in hits
    assert card in hits
    assert "amountOnly" in str([term.shape for term in search_terms.list_search_readings("4242")])


def test_the_header_finds_names_and_requests(shop: Shop) -> None:
    wanted = pay_as(shop, "Jane", "Jones")
    refused = shop.api.pay(amount="-1")
    root = signed_in(User.objects.create_superuser("root"))
    assert wanted in root.get("/admin/search/", {"s": "Jane Jones"}).content.decode().replace("-", "")
    row = RequestLog.objects.order_by("-id").first()
    assert row is not None
    assert f"/requestlog/{row.pk}/" in root.get("/admin/search/", {"s": refused.body["ndc"]}).content.decode()


@pytest.mark.parametrize("text", ["name:4", "iban:x", "reference:", "ndcEnd:zz", "descriptor:x"])
def test_a_value_that_is_not_of_its_kind_is_said_to_be_so(shop: Shop, text: str) -> None:
    client = office(shop)
    answer = client.get(LIST, {"q": text})
    assert "Nothing was looked for" in answer.content.decode()
    client.post(f"{LIST}export/", {"format": "csv", "which": "all", "q": text})
    assert not BackgroundWork.objects.exists()


@pytest.mark.parametrize("text", ["robinson", "order-47", "…0532013000"])
def test_a_list_that_was_read_another_way_is_read_so_by_all_that_leads_on_from_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """What is exported, done in bulk, put in order or on the next page is the list on the screen."""
    monkeypatch.setattr(payment_search, "SEARCH_PAGE_ROWS", 1)
    wanted = {pay_as(shop, "Ann", "Robinson", merchantTransactionId=f"order-47{n}") for n in range(2)}
    Payment.objects.update(means="bankAccount", last4_key=search_keys.build_last4_key(shop.merchant.pk, IBAN))
    pay_as(shop, "Mary", "Miller", merchantTransactionId="something-else")
    client = office(shop)
    for order in ({}, {"order": "-amount"}):
        answer = client.get(LIST, {"q": text, **order})
        following = client.get(LIST + answer.context["next"])
        assert {row.pk.hex for one in (answer, following) for row in one.context["rows"]} == wanted
        sorted_by = next(each["address"] for each in answer.context["table"]["head"] if each["address"])
        assert client.get(LIST + sorted_by).context["rows"]
        sums = client.get(LIST + answer.context["totals"]["offer"]).context["totals"]["rows"]
        assert [one.number for one in sums] == [2]
        passed = dict(answer.context["passed_on"])
        assert search_terms.parse_search_term(passed["q"]) == answer.context["asked"]
        client.post(f"{LIST}export/", {"format": "csv", "which": "all", **passed})
        client.post(f"{LIST}bulk/", {"do": "RF", "reason": "other", "which": "all", **passed})
        read = {"shape": answer.context["asked"].shape, "value": answer.context["asked"].value}
        assert BackgroundWork.objects.get(kind="payments export").parameters["asked"] == read
        assert BulkAction.objects.get().selection["asked"] == read
        BulkAction.objects.all().delete()
        BackgroundWork.objects.all().delete()


def test_a_long_text_behind_a_prefix_is_read_whole() -> None:
    long = "x" * search_terms.MAX_SEARCH_CHARS
    for term in search_terms.list_fallback_terms(long):
        assert search_terms.parse_search_term(term.typed) == term
