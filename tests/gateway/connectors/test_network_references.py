"""Card on file across processors: each is sent the scheme's own reference of the first payment, never another's id.

Source: Part B, Card on file; ruling D38; decision 0041.
"""

from __future__ import annotations

import re

import pytest

from gateway.connectors.acquirer_message import parse_scheme_reference
from gateway.models import Agreement, Channel
from tests.gateway.connectors.card_api.conftest import processor
from tests.support.card_api import CARD, CardApi
from tests.support.card_api import account_at as account_at_card_api
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host, iso_host
from tests.support.stub import StubProcess, account_at_stub, acquirer

__all__ = ["acquirer", "iso_host", "processor"]
pytestmark = pytest.mark.django_db
OK = "000.100.112"
AT_CARD_API, AT_HOST = "016153570198200", "483296210004567"
MIT_AT_CARD_API = "payment_method_options[card][mit_exemption][network_transaction_id]"


def initial(shop: Shop, currency: str, **more: str) -> Answer:
    answer = shop.api.pay(
        **more,
        testMode="EXTERNAL",
        currency=currency,
        standingInstruction__mode="INITIAL",
        standingInstruction__source="CIT",
        standingInstruction__type="UNSCHEDULED",
    )
    assert answer.code == OK, answer
    return answer


def again(shop: Shop, currency: str, reference: str, **more: str) -> Answer:
    answer = shop.api.pay(
        **more,
        testMode="EXTERNAL",
        currency=currency,
        card__cvv=None,
        standingInstruction__mode="REPEATED",
        standingInstruction__source="MIT",
        standingInstruction__type="UNSCHEDULED",
        standingInstruction__initialTransactionId=reference,
    )
    assert answer.code == OK, answer
    return answer


@pytest.fixture
def both(shop: Shop, processor: CardApi, iso_host: IsoHost) -> Shop:
    """Euros go to the card API, dollars to the ISO host."""
    row = account_at_card_api(shop.channel, processor.url)
    row.currencies = ["EUR"]
    row.save()
    row = account_at_host(shop.channel, iso_host)
    row.currencies = ["USD"]
    row.save()
    return shop


@pytest.mark.parametrize("named", ["as it was told", "by our payment's id"])
def test_what_was_agreed_at_the_card_api_is_drawn_on_at_the_iso_host(both: Shop, iso_host: IsoHost, named: str) -> None:
    first = initial(both, "EUR")
    told = first.body["standingInstruction"]["initialTransactionId"]
    # What the merchant sees is the processor's id, as before.
    assert told == first.body["resultDetails"]["CardholderInitiatedTransactionID"]
    assert told.startswith("pi_")
    assert Agreement.objects.get().network_reference == AT_CARD_API
    again(both, "USD", told if named == "as it was told" else first.id)
    (message,) = iso_host.seen("0200")
    assert f"6315{AT_CARD_API}" in message["48"]
    assert "pi_" not in message["48"]


def test_mastercards_link_of_an_agreement_that_began_at_the_card_api_is_told_at_the_iso_host(
    both: Shop, iso_host: IsoHost, processor: CardApi
) -> None:
    """The charge's transaction_link_id; the card API's processor finds its own."""
    link = "Z0fE_2qV-3pWft4vHt7Ki6"
    processor.transaction_link = link
    card = {"paymentBrand": "MASTER", "card__number": "5454545454545454"}
    told = initial(both, "EUR", **card).body["standingInstruction"]["initialTransactionId"]
    again(both, "USD", told, **card)
    assert f"6522{link}" in iso_host.seen("0200")[0]["48"]
    again(both, "EUR", told, **card)
    assert link not in str(processor.posts("/v1/payment_intents")[-1].form)


def test_what_was_agreed_at_the_iso_host_is_drawn_on_at_the_card_api_and_there(
    both: Shop, iso_host: IsoHost, processor: CardApi
) -> None:
    iso_host.answers = {"48": f"6315{AT_HOST}"}
    told = initial(both, "USD").body["standingInstruction"]["initialTransactionId"]
    assert Agreement.objects.get().network_reference == AT_HOST
    again(both, "EUR", told)
    (call,) = processor.posts("/v1/payment_intents")
    assert call.form[MIT_AT_CARD_API] == AT_HOST
    again(both, "USD", told)
    assert f"6315{AT_HOST}" in iso_host.seen("0200")[-1]["48"]


def test_the_card_apis_own_agreements_are_drawn_on_with_the_schemes_reference(both: Shop, processor: CardApi) -> None:
    told = initial(both, "EUR").body["standingInstruction"]["initialTransactionId"]
    again(both, "EUR", told)
    assert processor.posts("/v1/payment_intents")[-1].form[MIT_AT_CARD_API] == AT_CARD_API


def test_an_agreement_that_knows_its_processors_id_alone_sends_nobody_that_id(
    both: Shop, iso_host: IsoHost, processor: CardApi
) -> None:
    """Begun before the scheme's reference was kept."""
    told = initial(both, "EUR").body["standingInstruction"]["initialTransactionId"]
    Agreement.objects.update(network_reference="")
    again(both, "USD", told)
    assert "pi_" not in iso_host.seen("0200")[-1]["48"]
    again(both, "EUR", told)
    assert MIT_AT_CARD_API not in processor.posts("/v1/payment_intents")[-1].form


def test_an_agreement_of_another_gateway_goes_onwards_as_it_was_brought(both: Shop, iso_host: IsoHost) -> None:
    """Part B, Card on file: a reference that no payment of ours gave, where the channel takes it."""
    Channel.objects.filter(pk=both.channel.pk).update(external_references=True)
    again(both, "USD", "380912345678901")
    again(both, "USD", "another-gateways-own-id-17")
    one, two = (message["48"] for message in iso_host.seen("0200"))
    assert "6315380912345678901" in one
    assert "another" not in two


def test_a_migrated_agreement_goes_onwards_as_it_was_brought_everywhere(
    both: Shop, iso_host: IsoHost, processor: CardApi
) -> None:
    """Part B, Recurring migration."""
    moved = both.api.post(
        "/v1/registrations",
        {
            "testMode": "EXTERNAL",
            "paymentBrand": "VISA",
            "card.number": CARD,
            "card.expiryMonth": "05",
            "card.expiryYear": "2034",
            "recurringMigration.paymentType": "DB",
            "recurringMigration.connectorTxId1": "MIGR-TX-000111",
        },
    )
    assert moved.status == 200, moved
    for currency in ("EUR", "USD"):
        fields = {
            "testMode": "EXTERNAL",
            "amount": "9.00",
            "currency": currency,
            "paymentType": "DB",
            "standingInstruction.mode": "REPEATED",
            "standingInstruction.source": "MIT",
            "standingInstruction.type": "RECURRING",
        }
        paid = both.api.post(f"/v1/registrations/{moved.id}/payments", fields)
        assert paid.code == OK, paid
    assert processor.posts("/v1/payment_intents")[-1].form[MIT_AT_CARD_API] == "MIGR-TX-000111"
    assert "6314MIGR-TX-000111" in iso_host.seen("0200")[-1]["48"]


@pytest.mark.parametrize("brought", ["MIGR-TX-000111", "380912345678901"], ids=["another's id", "a scheme's reference"])
@pytest.mark.parametrize("named", ["by the registration", "by what was brought", "by the registration's id"])
def test_a_migrated_agreement_never_takes_a_reference_of_our_own_payments(
    both: Shop, iso_host: IsoHost, processor: CardApi, named: str, brought: str
) -> None:
    """docs/decisions/0047: neither our check of the account nor an earlier payment of the agreement stands in for the
    transaction in which the cardholder agreed."""
    iso_host.answers = {"48": f"6315{AT_HOST}"}
    card = {"paymentBrand": "VISA", "card.number": CARD, "card.expiryMonth": "05", "card.expiryYear": "2034"}
    moved = both.api.post(
        "/v1/registrations",
        {
            "testMode": "EXTERNAL",
            **card,
            "recurringMigration.paymentType": "DB",
            "recurringMigration.connectorTxId1": brought,
        },
    )
    assert moved.status == 200, moved
    path = f"/v1/registrations/{moved.id}/payments" if named == "by the registration" else "/v1/payments"
    more = (
        {}
        if named == "by the registration"
        else card
        | {"standingInstruction.initialTransactionId": brought if named == "by what was brought" else moved.id}
    )
    for currency, kind in (("USD", "DB"), ("EUR", "DB"), ("USD", "DB"), ("USD", "PA"), ("EUR", "DB")):
        fields = {
            "testMode": "EXTERNAL",
            "amount": "9.00",
            "currency": currency,
            "paymentType": kind,
            "standingInstruction.mode": "REPEATED",
            "standingInstruction.source": "MIT",
            "standingInstruction.type": "RECURRING",
        }
        paid = both.api.post(path, fields | more)
        assert paid.code == OK, paid
    asked = [message["48"] for message in (*iso_host.seen("0200"), *iso_host.seen("0100"))]
    assert len(asked) == 3
    assert [text for text in asked if f"63{len(brought)}{brought}" not in text or AT_HOST in text] == []
    sent = [call.form.get(MIT_AT_CARD_API) for call in processor.posts("/v1/payment_intents")]
    assert sent[-2:] == [brought, brought]
    assert AT_CARD_API not in sent
    assert Agreement.objects.get().network_reference == brought


def test_the_stub_tells_a_reference_in_the_schemes_shape_and_gets_it_back(shop: Shop, acquirer: StubProcess) -> None:
    account_at_stub(shop.channel)
    first = initial(shop, "EUR")
    kept = Agreement.objects.get().network_reference
    assert re.fullmatch("[0-9]{15}", kept)
    later = again(shop, "EUR", first.body["standingInstruction"]["initialTransactionId"])
    (message,) = shop.api.get("/v1/test/acquirer/messages", {"id": later.id}).body["messages"]
    assert message["sent"]["standingInstruction"]["initialTransactionId"] == kept


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("016153570198200", "016153570198200"),
        ("MCC0123450321", "MCC0123450321"),
        ("MCC012345 0321", "MCC0123450321"),
        ("", ""),
        ("12345678", ""),
        ("pi_3MtwBwLkdIwHu7ix28a3tqPa", ""),
        ("SIM9D3A4E5F60718293A4B5", ""),
        ("01a1fe2c5f1e7c0b9d3a4e5f60718293", ""),
        ("0161535701982001", ""),
        ("mcc0123450321", ""),
        ("٠١٢٣٤٥٦٧٨٩", ""),
    ],
)
def test_a_schemes_reference_is_told_by_its_shape(text: str, found: str) -> None:
    assert parse_scheme_reference(text) == found
