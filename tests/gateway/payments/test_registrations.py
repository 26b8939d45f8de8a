"""What a registration leaves in the database, and how it comes about when its payment is answered late.

Source: Part B, Tokenization and registration; decisions, sections 4 and 6; goals R1, R8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card
from gateway.core.result_codes import VAULT_ERROR_CODE
from gateway.core.secret import Secret
from gateway.models import AcquirerExchange, Agreement, Notification, Payment, Registration, Status
from gateway.payments import registration_retention, registrations
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.registrations import check_registration_retention
from gateway.vault.sealing import current_vault
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threads import at_once
from tests.support.threeds import BILLING, BROWSER, RESULT_URL

pytestmark = pytest.mark.django_db

PAN = "4222220000012342"
CARD = {"paymentBrand": "VISA", "card.number": PAN, "card.expiryMonth": "05", "card.expiryYear": "2034"}
CLICK = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
INITIAL = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}


def test_a_direct_registration_holds_the_number_once_and_sealed(api: Api) -> None:
    """R8: the payment that made it keeps none."""
    stored = api.post("/v1/registrations", CARD)
    assert stored.status == 200, stored
    assert places_of(PAN) == set()
    row, made = Registration.objects.get(), Payment.objects.get()
    assert (made.id, made.payment_type, made.means_sealed, made.registration) == (row.id, "RG", None, row.id)
    means = registrations.open_registration_means(row, {})
    assert isinstance(means, Card)
    assert means.number.reveal() == PAN
    names = {field.name for field in Registration._meta.get_fields()}
    assert not any("fingerprint" in name for name in names), "nothing looks for a registration by its number"
    assert PAN not in repr(means)


def test_a_declined_registration_keeps_no_number(api: Api) -> None:
    """Decisions, section 4; R8."""
    assert api.post("/v1/registrations", CARD | {"card.number": "4000015500000005"}).code == "800.100.155"
    assert Payment.objects.get().means_sealed is None


def test_the_number_of_a_payment_is_sealed_anew_for_its_registration(api: Api) -> None:
    """R8: a sealed value opens for its own row only."""
    paid = api.pay(**{name.replace(".", "__"): value for name, value in CARD.items()}, createRegistration="true")
    row = Registration.objects.get()
    assert current_vault().open(row.means_sealed or b"", row.id).reveal() == PAN
    assert row.payment.hex == paid.id
    assert places_of(PAN) == set()
    api.delete(f"/v1/registrations/{row.id.hex}")
    # The payment itself can still be followed up.
    assert api.follow(paid.id, "RB", "5.00").status == 200


def test_what_happens_to_a_registration_is_told(api: Api) -> None:
    """Decisions, section 6: type REGISTRATION."""
    stored = api.post("/v1/registrations", CARD)
    path = f"/v1/registrations/{stored.id}"
    api.post(path, {"card.expiryYear": "2036"})
    api.post(f"{path}/extend")
    api.delete(path)
    api.post("/v1/registrations", CARD | {"card.number": "4000015500000005"})
    api.pay(createRegistration="true")
    rows = Counter(Notification.objects.values_list("kind", "action"))
    assert rows == {
        ("REGISTRATION", "CREATED"): 2,
        ("REGISTRATION", "UPDATED"): 2,
        ("REGISTRATION", "DELETED"): 1,
        ("PAYMENT", "CREATED"): 2,
    }
    kinds = Payment.objects.filter(registration=stored.id).order_by("id").values_list("payment_type", "status")
    assert list(kinds) == [(kind, Status.APPROVED) for kind in ("RG", "RR", "TE", "DR")]


@pytest.mark.django_db(transaction=True)
def test_a_payment_that_is_answered_late_registers_then(committed: Shop, acquirer: StubProcess) -> None:
    """R1: the same end, whoever writes it; by recovery here. EXTERNAL takes registrations, too."""
    account_at_stub(committed.channel)
    api, lost = committed.api, {"customParameters[STUB_behaviour]": "silent_after"}
    paid = api.pay(testMode="EXTERNAL", createRegistration="true", **lost, **INITIAL)
    direct = api.post("/v1/registrations", CARD | {"testMode": "EXTERNAL"} | lost)
    assert (paid.code, direct.code) == ("000.200.001", "000.200.001")
    assert not Registration.objects.exists()
    assert api.get(f"/v1/registrations/{direct.id}").code == "100.150.201"
    recover_after(60)
    found = api.read(paid.id)
    assert found.code == "000.100.112"
    assert Registration.objects.count() == 2
    assert api.get(f"/v1/registrations/{direct.id}").status == 200
    click = CLICK | {"testMode": "EXTERNAL", "standingInstruction.mode": "REPEATED"}
    assert api.post(f"/v1/registrations/{found.body['registrationId']}/payments", click).code == "000.100.112"
    assert Agreement.objects.get().reference == found.body["standingInstruction"]["initialTransactionId"]


@pytest.mark.django_db(transaction=True)
def test_of_two_that_delete_at_once_one_is_told_that_the_other_was_faster(committed: Shop) -> None:
    """House: compare-and-set."""
    path = f"/v1/registrations/{committed.api.post('/v1/registrations', CARD).id}"

    def delete() -> str:
        return Api(token=committed.api.token, entity=committed.api.entity).delete(path).code

    codes = Counter(at_once(delete, delete, delete))
    assert codes["000.100.110"] == 1
    assert codes.keys() <= {"000.100.110", "800.120.402", "100.150.202"}
    assert Payment.objects.filter(payment_type="DR").count() == 1


def test_a_card_stored_at_a_channel_that_is_switched_off_is_not_charged(shop: Shop) -> None:
    """The merchant's own id still speaks for the channel's registrations."""
    stored = shop.api.post("/v1/registrations", CARD).id
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    api = shop.api.as_entity(shop.merchant.pk.hex)
    assert api.post(f"/v1/registrations/{stored}/payments", CLICK).status == 200
    type(shop.channel).objects.filter(pk=shop.channel.pk).update(active=False)
    asked = AcquirerExchange.objects.count()
    assert api.post(f"/v1/registrations/{stored}/payments", CLICK).code == CHANNEL_NOT_CONFIGURED_CODE
    assert AcquirerExchange.objects.count() == asked


def test_an_account_is_erased_once_its_retention_has_ended(shop: Shop, stranger: Shop) -> None:
    """R8: what nobody can use any more is not kept; the registration and its payments can still be read."""
    for each in (shop, stranger):
        each.channel.registration_days = 30
        each.channel.save(update_fields=["registration_days"])
    ended, other = (each.api.post("/v1/registrations", CARD).id for each in (shop, stranger))
    paid = shop.api.post(f"/v1/registrations/{ended}/payments", CLICK)
    pass_time(shop.api, days=30, minutes=1)
    assert registration_retention.erase_expired_registrations() == 0
    late = shop.api.post(f"/v1/registrations/{ended}/payments", CLICK).code
    assert Registration.objects.get(pk=ended).means_sealed is not None
    pass_time(shop.api, days=1)
    row = Registration.objects.get(pk=ended)
    assert (row.means_sealed, row.status) == (None, "ACTIVE")
    assert Registration.objects.get(pk=other).means_sealed is not None
    assert late == "100.150.206"
    assert shop.api.post(f"/v1/registrations/{ended}/payments", CLICK).code == late
    assert shop.api.read(paid.id).code == paid.code
    assert registration_retention.erase_expired_registrations() == 0


def test_a_new_number_is_shown_with_its_own_digits(api: Api) -> None:
    """Nothing of the card before it stays beside the new one."""
    stored = api.post("/v1/registrations", CARD).id
    path = f"/v1/registrations/{stored}"
    before = api.get(path).body["card"]
    changed = api.post(path, {"card.number": "5454545454545454"})
    for answer in (changed, api.get(path), api.post(f"{path}/payments", CLICK)):
        card = answer.body["card"]
        assert (answer.body["paymentBrand"], card["bin"], card["last4Digits"]) == ("MASTER", "545454", "5454")
        assert card["expiryYear"] == before["expiryYear"]


@pytest.mark.parametrize("brand", ["VISA", "PAYPAL"])
def test_a_new_number_is_one_of_the_brand_that_is_sent_with_it(api: Api, brand: str) -> None:
    path = f"/v1/registrations/{api.post('/v1/registrations', CARD).id}"
    refused = api.post(path, {"card.number": "5454545454545454", "paymentBrand": brand})
    assert (refused.status, refused.code, refused.errors.keys()) == (400, "100.100.700", {"card.number"})
    assert api.get(path).body["card"]["last4Digits"] == PAN[-4:]


@pytest.mark.parametrize(
    ("brand", "number", "fits"),
    [("VISA", "5454545454545454", False), ("MASTER", "5454545454545454", True), ("PAYPAL", "5454545454545454", False)],
)
def test_a_number_that_is_no_number_of_the_brand_is_not_stored(brand: str, number: str, fits: bool) -> None:
    """Apart from the request's own check of the two."""

    class Sent(dict[str, str]):
        refusals = ()

        def secret(self, name: str) -> Secret | None:
            return Secret(number) if name == "card.number" else None

    sent: Any = Sent({"card.number": number, "paymentBrand": brand})
    row = Registration(id=UUID(int=1), brand="VISA")
    if fits:
        changes, found = registrations._resolve_new_account(row, sent)
        assert (found, current_vault().open(changes["means_sealed"], row.id).reveal()) == (brand, number)
        return
    with pytest.raises(RequestRefusedError) as refused:
        registrations._resolve_new_account(row, sent)
    assert refused.value.code == "100.100.700"


@pytest.mark.parametrize(
    ("change", "kind", "action"),
    [
        (lambda api, path: api.post(path, {"card.holder": "Jane Miller"}), "RR", "UPDATED"),
        (lambda api, path: api.post(f"{path}/extend"), "TE", "UPDATED"),
        (lambda api, path: api.delete(path), "DR", "DELETED"),
    ],
)
@pytest.mark.parametrize(("currencies", "currency"), [(["USD", "EUR"], "USD"), ([], "EUR")])
def test_each_change_is_a_payment_of_nothing_and_told_by_its_kind(
    shop: Shop, change: Callable[[Api, str], Answer], kind: str, action: str, currencies: list[str], currency: str
) -> None:
    type(shop.channel).objects.filter(pk=shop.channel.pk).update(currencies=currencies)
    stored = shop.api.post("/v1/registrations", CARD).id
    told = set(Notification.objects.values_list("pk", flat=True))
    assert change(shop.api, f"/v1/registrations/{stored}").status == 200
    made = Payment.objects.get(registration=stored, referenced=stored)
    assert (made.payment_type, made.amount, made.currency, made.status) == (kind, 0, currency, "APPROVED")
    (notification,) = Notification.objects.exclude(pk__in=told)
    assert (notification.kind, notification.action, notification.payment_id) == ("REGISTRATION", action, made.pk)


@pytest.mark.parametrize("sent, number_type", [({}, None), ({"card.numberType": "PAN"}, "PAN")])
def test_a_number_in_place_of_a_wallets_is_no_wallets_any_more(
    shop: Shop, sent: dict[str, str], number_type: str | None
) -> None:
    """A device's number is paid with on its wallet's proof: the shopper of a card's own number authenticates."""
    api = shop.api_of(shop.open_channel(three_d_secure=True))
    proof = {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}
    wallet = {"paymentBrand": "WALLET1", "wallet1.source": "web", "card.numberType": "DPAN", "card.cvv": None, **proof}
    stored = api.pay(createRegistration="true", **wallet).body["registrationId"]
    assert Registration.objects.get().details["card"]["numberType"] == "DPAN"
    challenged = {"card.number": "4200000000000042", "card.expiryMonth": "05", "card.expiryYear": "2034"}
    assert api.post(f"/v1/registrations/{stored}", challenged | sent).status == 200
    row = Registration.objects.get()
    assert (row.brand, row.details["card"].get("numberType")) == ("VISA", number_type)
    assert "wallet1" not in row.details
    shopper = {"shopperResultUrl": RESULT_URL, **BROWSER, **BILLING}
    assert api.post(f"/v1/registrations/{stored}/payments", CLICK | shopper).code == "000.200.000"


def test_the_last_moment_of_the_retention_still_counts() -> None:
    end = datetime(2036, 5, 14, 12, tzinfo=UTC)
    row = Registration(retain_until=end)
    check_registration_retention(row, end)
    check_registration_retention(Registration(retain_until=None), end)
    with pytest.raises(RequestRefusedError) as refused:
        check_registration_retention(row, end + timedelta(microseconds=1))
    assert refused.value.code == "100.150.206"


def test_a_registration_without_its_account_is_refused_as_deleted(api: Api) -> None:
    row = Registration.objects.get(pk=api.post("/v1/registrations", CARD).id)
    row.means_sealed = None
    with pytest.raises(RequestRefusedError) as refused:
        registrations.open_registration_means(row, {})
    assert refused.value.code == registrations.REGISTRATION_DELETED_CODE


def test_an_account_that_was_erased_since_it_was_read_does_not_open(api: Api) -> None:
    row = Registration.objects.get(pk=api.post("/v1/registrations", CARD).id)
    row.means_sealed = b"sealed with a key that was retired"
    Registration.objects.filter(pk=row.pk).update(means_sealed=None)
    with pytest.raises(RequestRefusedError) as refused:
        registrations.open_registration_means(row, {})
    assert refused.value.code == VAULT_ERROR_CODE


def test_an_account_that_was_sealed_anew_since_it_was_read_opens(api: Api) -> None:
    row = Registration.objects.get(pk=api.post("/v1/registrations", CARD).id)
    row.means_sealed = b"sealed with a key that was retired"
    means = registrations.open_registration_means(row, {})
    assert isinstance(means, Card)
    assert means.number.reveal() == PAN


def test_a_security_code_has_as_many_digits_as_the_stored_brand_prints(api: Api) -> None:
    """The value is not shown."""
    stored = api.post("/v1/registrations", CARD).id
    refused = api.post(f"/v1/registrations/{stored}/payments", CLICK | {"card.cvv": "1234"})
    (error,) = refused.body["result"]["parameterErrors"]
    assert (refused.code, error["name"], error["value"]) == ("100.100.601", "card.cvv", "•••")
