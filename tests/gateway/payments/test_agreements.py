"""Card on file: every type × mode × initiator × practice, and what an agreement limits.

Source: Part B, Card on file; ruling D38; checklist B20.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from gateway.models import AcquirerExchange, Agreement, Channel, Payment, Registration
from gateway.payments.acquirer_message_store import restore_message
from gateway.payments.agreements import AGREEMENT_USE_TYPES, AgreementUseType
from gateway.payments.stored_answer import read_private_facts
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.subscriptions import started, step, store_card
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db

TYPES = ("", "UNSCHEDULED", "INSTALLMENT", "RECURRING")
MODES = ("", "INITIAL", "REPEATED")
SOURCES = ("", "CIT", "MIT")
PRACTICES = ("", "RESUBMISSION", "DELAYED_CHARGES", "NO_SHOW", "INCREMENTAL_AUTH", "REAUTHORIZATION")
CELLS = list(itertools.product(MODES, SOURCES, PRACTICES))
NEEDS_A_LINK = (AgreementUseType.MERCHANT_INITIATED, AgreementUseType.INDUSTRY_PRACTICE)


def instruction(**words: str) -> dict[str, str]:
    return {f"standingInstruction.{name}": value for name, value in words.items() if value}


def initial(api: Api, **words: str) -> Answer:
    """A cardholder's first payment, which agrees."""
    sent = instruction(**{"mode": "INITIAL", "source": "CIT", "type": "UNSCHEDULED", **words})
    answer = api.pay(createRegistration="true", **sent)
    assert answer.status == 200, answer
    return answer


def draw(api: Api, reference: str | None = None, **words: str) -> Answer:
    """A payment of the merchant's own, without a CVV."""
    named = {"initialTransactionId": reference} if reference is not None else {}
    sent = {"mode": "REPEATED", "source": "MIT", "type": "UNSCHEDULED", **named, **words}
    return api.pay(card__cvv=None, card__holder=None, **instruction(**sent))


def click(api: Api, registration: str, **words: str) -> Answer:
    sent = instruction(**{"mode": "REPEATED", "source": "MIT", "type": "UNSCHEDULED", **words})
    fields = {"amount": "9.00", "currency": "EUR", "paymentType": "DB", **sent}
    return api.post(f"/v1/registrations/{registration}/payments", fields)


def sent_of(payment: Answer) -> str:
    """The reference of the first payment, as the acquirer was sent it."""
    exchange = AcquirerExchange.objects.get(payment=payment.id)
    told = restore_message(exchange, Payment.objects.get(pk=payment.id))
    return str(told["standingInstruction"]["initialTransactionId"])


def forward(api: Api, days: float) -> None:
    assert api.post("/v1/test/clock", {"advance": str(int(days * 86400))}).status == 200


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("mode, source, practice", CELLS)
def test_every_cell_of_the_table_is_taken_or_told_why_not(
    api: Api, kind: str, mode: str, source: str, practice: str
) -> None:
    """B20.1, B20.2: the spec's words in every combination, without and with the initial transaction."""
    first = initial(api).body["standingInstruction"]["initialTransactionId"]
    words = instruction(type=kind, mode=mode, source=source, industryPractice=practice)
    use = AGREEMENT_USE_TYPES.get((mode, source, practice))
    alone = api.pay(paymentType="PA", **words)
    linked = api.pay(paymentType="PA", **words, **instruction(initialTransactionId=first))
    if practice in ("INCREMENTAL_AUTH", "REAUTHORIZATION"):
        # They follow an authorization.
        assert "referenceUuid" in alone.errors
        held = api.pay(paymentType="PA")
        again = api.pay(paymentType="PA", amount="5.00", referenceUuid=held.id, **words)
        if (mode, source) != ("INITIAL", "MIT"):
            assert again.status == 200, again
    elif use is None:
        assert alone.status == linked.status == 400
        assert alone.errors.keys() <= {"standingInstruction.mode", "standingInstruction.source"}
        assert alone.errors
    elif use in NEEDS_A_LINK:
        assert (alone.status, alone.errors.keys()) == (400, {"standingInstruction.initialTransactionId"})
        assert linked.status == 200
    else:
        assert alone.status == linked.status == 200
    made = Agreement.objects.count()
    assert made == 1 + (2 if use is AgreementUseType.INITIAL and practice == "" else 0)


def test_the_initial_payment_answers_the_reference_and_a_later_one_gives_it_back(api: Api) -> None:
    """B20.3, D38: initialTransactionId both ways; an MIT needs no CVV."""
    first = initial(api)
    reference = first.body["standingInstruction"]["initialTransactionId"]
    assert first.body["resultDetails"]["CardholderInitiatedTransactionID"] == reference
    assert first.body["standingInstruction"]["mode"] == "INITIAL"
    later = draw(api, reference)
    assert (later.status, later.code) == (200, "000.100.110")
    assert later.body["standingInstruction"]["initialTransactionId"] == reference
    assert sent_of(later) == AcquirerExchange.objects.get(payment=first.id).received["networkReference"]


def test_an_agreement_of_before_schemes_references_were_kept_still_works(api: Api) -> None:
    """It has its processor's id alone, which is no scheme's reference and is not sent as one."""
    first = initial(api)
    Agreement.objects.update(network_reference="")
    reference = first.body["standingInstruction"]["initialTransactionId"]
    for later in (draw(api, reference), draw(api, first.id), click(api, first.body["registrationId"])):
        assert later.status == 200, later
        sent = restore_message(AcquirerExchange.objects.get(payment=later.id), Payment.objects.get(pk=later.id))
        assert "initialTransactionId" not in sent["standingInstruction"]


def test_our_own_payment_id_names_the_agreement(api: Api) -> None:
    """D38; the acquirer gets the scheme's reference all the same."""
    first = initial(api)
    later = draw(api, first.id)
    assert later.status == 200
    assert sent_of(later) == AcquirerExchange.objects.get(payment=first.id).received["networkReference"]


OF_ANOTHER_NETWORK = {"paymentBrand": "MASTER", "card.number": "5454545454545454"}
OF_THE_SAME_NETWORK = {"paymentBrand": "VISADEBIT", "card.number": "4200000000000000"}


def replace_card(api: Api, registration: str, card: dict[str, str]) -> None:
    dates = {"card.expiryMonth": "05", "card.expiryYear": "2034"}
    assert api.post(f"/v1/registrations/{registration}", card | dates).status == 200


@pytest.mark.parametrize(("card", "kept"), [(OF_THE_SAME_NETWORK, True), (OF_ANOTHER_NETWORK, False)])
def test_no_network_is_told_the_first_transaction_of_another_one(api: Api, card: dict[str, str], kept: bool) -> None:
    """The shopper's new card is of another network: that one knows no transaction by the id, which has another form
    there. However the agreement is named, and for a reversal too, which repeats what was sent."""
    first = initial(api)
    stored, reference = first.body["registrationId"], first.body["standingInstruction"]["initialTransactionId"]
    network = AcquirerExchange.objects.get(payment=first.id).received["networkReference"]
    replace_card(api, stored, card)
    for named in ({}, {"initialTransactionId": reference}, {"initialTransactionId": first.id}):
        later = click(api, stored, **named)
        assert later.status == 200, later
        payment = Payment.objects.get(pk=later.id)
        assert payment.agreement is not None
        told = restore_message(AcquirerExchange.objects.get(payment=payment.id), payment)["standingInstruction"]
        assert told.get("initialTransactionId") == (network if kept else None)
        repeated = read_private_facts(payment.answer).agreement_references
        assert repeated == {"standingInstruction.initialTransactionId": network if kept else ""}


@pytest.mark.parametrize(("card", "kept"), [(OF_THE_SAME_NETWORK, True), (OF_ANOTHER_NETWORK, False)])
def test_a_schedule_whose_card_was_replaced_tells_no_reference_of_another_network(
    shop: Shop, card: dict[str, str], kept: bool
) -> None:
    """Its agreement began with the storing of the card, and has no payment of its own."""
    stored = store_card(shop.api)
    started(shop.api, stored)
    network = AcquirerExchange.objects.get(payment=Registration.objects.get().payment).received["networkReference"]
    replace_card(shop.api, stored, card)
    step(shop.merchant)
    payment = Payment.objects.get(payment_type="DB")
    told = restore_message(AcquirerExchange.objects.get(payment=payment.id), payment)["standingInstruction"]
    assert told.get("initialTransactionId") == (network if kept else None)


def test_the_registration_knows_the_agreement(api: Api) -> None:
    """B20.3: made with the first payment, with a later click, or with the registration itself."""
    assert click(api, initial(api).body["registrationId"]).status == 200
    card = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
    bare = api.post("/v1/registrations", card)
    assert click(api, bare.id, mode="INITIAL", source="CIT").status == 200
    assert click(api, bare.id).status == 200
    agreed = api.post("/v1/registrations", card | instruction(mode="INITIAL", source="CIT", type="RECURRING"))
    assert agreed.body["standingInstruction"]["initialTransactionId"]
    assert click(api, agreed.id, type="RECURRING").status == 200


LIMITED = {"type": "INSTALLMENT", "numberOfInstallments": "1"}
UNLIMITED = {"type": "UNSCHEDULED"}


@pytest.mark.parametrize(
    ("first", "second", "code"), [(LIMITED, UNLIMITED, "000.100.110"), (UNLIMITED, LIMITED, "700.500.001")]
)
def test_of_two_agreements_the_one_that_was_made_last_counts(
    api: Api, first: dict[str, str], second: dict[str, str], code: str
) -> None:
    """Of a stored card, and of an agreementId that the merchant sends again."""
    stored = initial(api, **first).body["registrationId"]
    assert click(api, stored, mode="INITIAL", source="CIT", **second).status == 200
    assert click(api, stored).code == code
    for words in (first, second):
        initial(api, agreementId="AGREEMENT1", **words)
    assert draw(api, agreementId="AGREEMENT1").code == code


@pytest.mark.parametrize(
    ("agreed", "sent", "code"),
    [
        ("AGREEMENT1", "AGREEMENT1", "000.100.110"),
        ("AGREEMENT1", "AGREEMENT2", "700.100.100"),
        ("", "AGREEMENT2", "000.100.110"),
    ],
)
def test_both_ids_name_one_agreement(api: Api, agreed: str, sent: str, code: str) -> None:
    """One that was made without an agreementId has none to differ from."""
    told = initial(api, agreementId=agreed).body["standingInstruction"]
    answer = draw(api, told["initialTransactionId"], agreementId=sent)
    assert answer.code == code
    assert list(answer.errors) == ([] if code == "000.100.110" else ["standingInstruction.agreementId"])


def test_an_agreement_is_its_channels_alone(shop: Shop) -> None:
    """Whichever id names it, and also where another channel of the merchant has an agreement of the same name."""
    here, there = shop.api, shop.api_of(shop.open_channel())
    first = initial(here, agreementId="AGREEMENT1")
    reference = first.body["standingInstruction"]["initialTransactionId"]
    for named in ({"reference": reference}, {"reference": first.id}, {"agreementId": "AGREEMENT1"}):
        assert draw(here, **named).status == 200, named
        assert draw(there, **named).code == "700.100.100", named


def test_a_payment_of_the_merchants_own_without_an_initial_one_is_refused(api: Api, stranger: Shop) -> None:
    """A7.7; an unknown and another merchant's reference look the same."""
    assert draw(api).errors.keys() == {"standingInstruction.initialTransactionId"}
    theirs = initial(stranger.api)
    reference = theirs.body["standingInstruction"]["initialTransactionId"]
    for unknown in ("020123456789012", reference, theirs.id, "0" * 32):
        answer = draw(api, unknown)
        assert (answer.status, answer.code) == (400, "700.100.100")
        assert answer.errors.keys() == {"standingInstruction.initialTransactionId"}
    plain = api.pay()
    assert draw(api, plain.id).code == "700.400.590"
    declined = api.pay(card__number="4000015500000005", **instruction(mode="INITIAL", source="CIT"))
    assert draw(api, declined.id).code == "700.400.590"
    assert Payment.objects.filter(merchant=stranger.merchant).count() == 1


def test_a_channel_may_take_references_of_another_processor(shop: Shop) -> None:
    """D38: agreements that were made elsewhere; an id that looks like ours must be ours."""
    api = shop.api_of(shop.open_channel(external_references=True))
    assert draw(api, "020123456789012").status == 200
    past = draw(api, "020123456789012", expiry="2020-01-01")
    assert (past.code, past.errors.keys()) == ("700.500.002", {"standingInstruction.expiry"})


def test_no_authorization_is_made_after_the_agreements_expiry(api: Api) -> None:
    """Part B, Card on file (expiry): the day itself still counts."""
    api.post("/v1/test/clock", {"now": "2035-03-01T12:00:00Z"})
    agreed = {"card__expiryYear": "2040", **instruction(mode="INITIAL", source="CIT", expiry="2035-03-11")}
    first = api.pay(createRegistration="true", **agreed).body["registrationId"]
    forward(api, 10)
    assert click(api, first).status == 200
    forward(api, 1)
    late = click(api, first)
    assert (late.status, late.code, late.errors.keys()) == (400, "700.500.002", {"standingInstruction.expiry"})
    assert api.read(late.id).code == "700.500.002"
    assert click(api, first, industryPractice="NO_SHOW").code == "700.500.002"


@pytest.mark.parametrize(
    ("agreed", "own", "good"),
    [
        ("2035-03-11", "2036-01-01", False),
        ("2036-01-01", "2035-03-11", False),
        ("2036-01-01", "2035-03-12", True),
        ("2035-03-12", "2036-01-01", True),
    ],
)
def test_of_the_agreements_expiry_and_the_requests_own_the_earlier_counts(
    api: Api, agreed: str, own: str, good: bool
) -> None:
    """Part B, Card on file (expiry): what a request says does not prolong what was agreed."""
    api.post("/v1/test/clock", {"now": "2035-03-10T12:00:00Z"})
    sent = {"card__expiryYear": "2040", **instruction(mode="INITIAL", source="CIT", expiry=agreed)}
    first = api.pay(createRegistration="true", **sent).body["registrationId"]
    forward(api, 2)
    assert (click(api, first, expiry=own).code == "700.500.002") is not good


@pytest.mark.parametrize("said", [True, False])
def test_an_agreement_keeps_the_frequency_and_the_number_that_were_agreed_or_none(api: Api, said: bool) -> None:
    agreed = {"frequency": "30", "numberOfInstallments": "7"} if said else {}
    stored = initial(api, **agreed).body["registrationId"]
    row = Agreement.objects.get(registration=stored)
    assert (row.frequency, row.max_payments) == ((30, 7) if said else (None, None))


def test_authorizations_keep_their_distance_in_days(api: Api) -> None:
    """Part B, Card on file (frequency): minimum days between authorizations, the first among them."""
    api.post("/v1/test/clock", {"now": "2033-01-01T12:00:00Z"})
    first = initial(api, frequency="30").body["registrationId"]
    forward(api, 29)
    early = click(api, first)
    assert (early.status, early.code, early.errors.keys()) == (400, "700.500.001", {"standingInstruction.frequency"})
    assert "29 have passed" in early.errors["standingInstruction.frequency"]
    forward(api, 1)
    assert click(api, first).status == 200
    assert click(api, first).code == "700.500.001"
    # A charge beside the agreement is not one of its authorizations.
    assert click(api, first, industryPractice="DELAYED_CHARGES").status == 200
    forward(api, 30)
    assert click(api, first).status == 200


def test_days_are_those_of_the_merchants_own_zone(shop: Shop) -> None:
    """Part B, Card on file (frequency)."""
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(time_zone="Asia/Tokyo")
    api = shop.api
    api.post("/v1/test/clock", {"now": "2033-01-01T14:30:00Z"})
    first = initial(api, frequency="1").body["registrationId"]
    assert click(api, first).code == "700.500.001"
    forward(api, 1 / 24)  # midnight has passed in Tokyo
    assert click(api, first).status == 200


def test_no_more_instalments_are_taken_than_agreed(api: Api) -> None:
    """Part B, Card on file (numberOfInstallments): a declined one does not count, its resubmission does."""
    first = initial(api, type="INSTALLMENT", numberOfInstallments="3")
    reference = first.body["standingInstruction"]["initialTransactionId"]
    declined = api.pay(
        card__number="4000015500000005",
        card__cvv=None,
        **instruction(mode="REPEATED", source="MIT", initialTransactionId=reference),
    )
    assert declined.code == "800.100.155"
    assert draw(api, reference, industryPractice="RESUBMISSION").status == 200
    assert draw(api, reference).status == 200
    over = draw(api, reference)
    assert (over.status, over.code) == (400, "700.500.001")
    assert over.errors.keys() == {"standingInstruction.numberOfInstallments"}
    assert Payment.objects.get(pk=over.id).means_sealed is None


def test_a_check_without_money_is_no_instalment(api: Api) -> None:
    """D27: PA with amount 0 agrees, and counts for nothing."""
    sent = instruction(mode="INITIAL", source="CIT", type="INSTALLMENT", numberOfInstallments="1")
    checked = api.pay(paymentType="PA", amount="0.00", createRegistration="true", **sent)
    assert click(api, checked.body["registrationId"]).status == 200
    assert click(api, checked.body["registrationId"]).code == "700.500.001"


def test_the_shopper_is_not_held_to_what_limits_the_merchant(api: Api) -> None:
    """Part B, Card on file (source): REPEATED by the cardholder."""
    first = initial(api, frequency="30", numberOfInstallments="1").body["registrationId"]
    assert click(api, first, source="CIT").status == 200


@pytest.mark.django_db(transaction=True)
def test_of_two_that_want_the_last_instalment_exactly_one_gets_it(committed: Shop) -> None:
    """House: two at once can never both pass."""
    for _ in range(3):
        first = initial(committed.api, type="INSTALLMENT", numberOfInstallments="2").body["registrationId"]
        answers = at_once(
            *[lambda first=first: click(Api(token=committed.api.token, entity=committed.api.entity), first)] * 2
        )
        assert Counter(answer.code for answer in answers) == {"000.100.110": 1, "700.500.001": 1}


@pytest.mark.django_db(transaction=True)
def test_six_at_once_take_what_is_left_and_no_more(committed: Shop) -> None:
    """House: exact under concurrency."""
    first = initial(committed.api, numberOfInstallments="4").body["registrationId"]
    answers = at_once(*[lambda: click(Api(token=committed.api.token, entity=committed.api.entity), first)] * 6)
    assert Counter(answer.code for answer in answers) == {"000.100.110": 3, "700.500.001": 3}
    assert Agreement.objects.get().follow_ups == 3


def test_a_silent_acquirer_keeps_its_instalment(api: Api) -> None:
    """House 4: what is in doubt counts until the acquirer knows."""
    sent = instruction(mode="INITIAL", source="CIT", numberOfInstallments="2")
    first = api.pay(**sent).body["standingInstruction"]["initialTransactionId"]
    lost = api.pay(
        card__number="4000090003000000", **instruction(mode="REPEATED", source="MIT", initialTransactionId=first)
    )
    assert lost.code == "000.200.001"
    assert draw(api, first).code == "700.500.001"


# --- the linking id of one network --------------------------------------------------------------------------------


def of(shop: Shop, ids: str) -> Api:
    return shop.api_of(shop.open_channel(agreement_ids=ids))


def test_in_the_transition_both_ids_are_returned_and_expected(shop: Shop) -> None:
    """B20.5."""
    api = of(shop, Channel.AgreementIds.BOTH)
    told = initial(api).body["standingInstruction"]
    reference, linking = told["initialTransactionId"], told["agreementId"]
    assert 0 < len(linking) <= 35
    assert draw(api, reference, agreementId=linking).status == 200
    missing = draw(api, reference).errors
    assert missing.keys() == {"standingInstruction.agreementId"}
    assert "the INITIAL payment's answer carries it" in missing["standingInstruction.agreementId"]
    assert draw(api, agreementId=linking).errors.keys() == {"standingInstruction.initialTransactionId"}
    assert len(draw(api).errors) == 2
    other = initial(api).body["standingInstruction"]["agreementId"]
    mixed = draw(api, reference, agreementId=other)
    assert (mixed.code, mixed.errors.keys()) == ("700.100.100", {"standingInstruction.agreementId"})


def test_after_the_transition_the_agreement_id_is_enough(shop: Shop) -> None:
    """B20.5."""
    api = of(shop, Channel.AgreementIds.ONLY)
    first = initial(api)
    told = first.body["standingInstruction"]
    assert "initialTransactionId" not in told
    assert "CardholderInitiatedTransactionID" not in first.body["resultDetails"]
    later = draw(api, agreementId=told["agreementId"])
    assert later.status == 200
    sent = restore_message(AcquirerExchange.objects.get(payment=later.id), Payment.objects.get(pk=later.id))
    # The acquirer gets the first transaction's reference all the same: most have no room for an agreementId.
    assert sent["standingInstruction"]["initialTransactionId"]
    assert sent["standingInstruction"]["agreementId"] == told["agreementId"]
    assert draw(api, "anything").errors.keys() == {"standingInstruction.agreementId"}
    assert draw(api, agreementId="UNKNOWN1").code == "700.100.100"


def test_a_sent_agreement_id_is_kept_and_names_the_agreement(api: Api) -> None:
    """Part B, Card on file (agreementId, optional)."""
    assert "agreementId" not in initial(api).body["standingInstruction"]
    told = initial(api, agreementId="AGREEMENT1").body["standingInstruction"]
    assert (told["agreementId"], bool(told["initialTransactionId"])) == ("AGREEMENT1", True)
    assert draw(api, agreementId="AGREEMENT1").status == 200


# --- migration ----------------------------------------------------------------------------------------------------

MIGRATED = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034",
    "recurringMigration.paymentType": "DB", "recurringMigration.amount": "92.00",
    "recurringMigration.requestTimestamp": "2026-01-01 10:00:00",
    "recurringMigration.connectorTxId1": "380912345678901",
}  # fmt: skip


def test_an_agreement_of_another_processor_comes_along_with_its_registration(api: Api) -> None:
    """B10.1: RG + recurringMigration.*, then an MIT uses connectorTxId1."""
    moved = api.post("/v1/registrations", MIGRATED)
    assert moved.status == 200, moved
    assert moved.body["recurringMigration"]["connectorTxId1"] == "380912345678901"
    later = click(api, moved.id, type="RECURRING")
    assert later.status == 200, later
    sent = restore_message(AcquirerExchange.objects.get(payment=later.id), Payment.objects.get(pk=later.id))
    assert sent["standingInstruction"]["initialTransactionId"] == "380912345678901"
    assert draw(api, "380912345678901").status == 200


BROUGHT_IDS = ("MIGR-TX-000111", "380912345678901", "pi_3MtwBwLkdIwHu7ix28a3tqPa", "x" * 128, "MCC012345 0321", "äöü 1")


@pytest.mark.parametrize("brought", BROUGHT_IDS)
@pytest.mark.parametrize("name", ["connectorTxId1", "connectorTxId2", "connectorTxId3"])
def test_what_was_brought_is_what_acquirers_are_sent(api: Api, brought: str, name: str) -> None:
    """Part B, Recurring migration: as it was brought, and never a reference of our own check of the account."""
    body = {key: text for key, text in MIGRATED.items() if key != "recurringMigration.connectorTxId1"}
    moved = api.post("/v1/registrations", body | {f"recurringMigration.{name}": brought})
    assert moved.status == 200, moved
    assert sent_of(click(api, moved.id, type="RECURRING")) == brought
    assert sent_of(draw(api, brought)) == brought


def test_the_first_of_the_ids_that_were_brought_names_the_agreement(api: Api) -> None:
    moved = api.post("/v1/registrations", MIGRATED | {"recurringMigration.connectorTxId3": "third"})
    assert sent_of(click(api, moved.id)) == "380912345678901"


def test_a_migration_without_ids_sends_none_of_ours(api: Api) -> None:
    body = {key: text for key, text in MIGRATED.items() if key != "recurringMigration.connectorTxId1"}
    moved = api.post("/v1/registrations", body)
    later = click(api, moved.id)
    assert later.status == 200, later
    sent = restore_message(AcquirerExchange.objects.get(payment=later.id), Payment.objects.get(pk=later.id))
    assert "initialTransactionId" not in sent["standingInstruction"]


def test_a_subscription_on_a_migrated_card_sends_what_was_brought(shop: Shop) -> None:
    moved = shop.api.post("/v1/registrations", MIGRATED | {"recurringMigration.connectorTxId1": "MIGR-TX-000111"})
    started(shop.api, moved.id)
    while not (run := Payment.objects.filter(payment_type="DB").first()):
        step(shop.merchant)
    told = restore_message(AcquirerExchange.objects.get(payment=run.pk), run)
    assert told["standingInstruction"]["initialTransactionId"] == "MIGR-TX-000111"


# --- without an agreement -----------------------------------------------------------------------------------------

CARD = {"paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}


@pytest.mark.parametrize("ids", list(Channel.AgreementIds))
@pytest.mark.parametrize("way", ["registered", "paid", "mode only"])
def test_a_registration_needs_no_initial_transaction(shop: Shop, ids: Channel.AgreementIds, way: str) -> None:
    """Its own first transaction stands in: Part B, Card on file demands initialTransactionId of no payment."""
    api = of(shop, ids)
    first = api.pay(createRegistration="true") if way == "paid" else api.post("/v1/registrations", CARD)
    registration = first.body["registrationId"] if way == "paid" else first.id
    made = Payment.objects.get(pk=first.id)
    words = {"source": ""} if way == "mode only" else {}
    for practice in ("", "RESUBMISSION", "NO_SHOW", "DELAYED_CHARGES"):
        later = click(api, registration, industryPractice=practice, **words)
        assert later.status == 200, later
        assert sent_of(later) == AcquirerExchange.objects.get(payment=made.pk).received["networkReference"]
        assert Payment.objects.get(pk=later.id).agreement is None


@pytest.mark.parametrize("ids", list(Channel.AgreementIds))
def test_a_registration_whose_first_transaction_has_no_reference_sends_none(
    shop: Shop, ids: Channel.AgreementIds
) -> None:
    api = of(shop, ids)
    first = api.post("/v1/registrations", CARD)
    Payment.objects.filter(pk=first.id).update(answer={})
    later = click(api, first.id)
    assert later.status == 200, later
    sent = restore_message(AcquirerExchange.objects.get(payment=later.id), Payment.objects.get(pk=later.id))
    assert "initialTransactionId" not in sent["standingInstruction"]


@pytest.mark.parametrize("ids", list(Channel.AgreementIds))
def test_an_id_that_is_sent_with_a_registration_is_looked_at_all_the_same(
    shop: Shop, ids: Channel.AgreementIds
) -> None:
    api = of(shop, ids)
    registration = api.post("/v1/registrations", CARD).id
    if ids == Channel.AgreementIds.ONLY:
        assert click(api, registration, agreementId="UNKNOWN1").code == "700.100.100"
        assert click(api, registration, initialTransactionId="unread").status == 200
    else:
        assert click(api, registration, initialTransactionId="380912345678901").code == "700.100.100"


def test_a_migrated_agreement_begins_where_it_began(api: Api) -> None:
    """B10.2: requestTimestamp is the time of the initial request."""
    api.post("/v1/test/clock", {"now": "2032-01-20T12:00:00Z"})
    body = MIGRATED | instruction(frequency="30") | {"recurringMigration.requestTimestamp": "2032-01-01 10:00:00"}
    moved = api.post("/v1/registrations", body)
    assert click(api, moved.id).code == "700.500.001"
    forward(api, 11)
    assert click(api, moved.id).status == 200


@pytest.mark.parametrize(
    "name, value",
    [
        ("paymentType", "RF"),
        ("paymentType", None),
        ("amount", "123456789"),
        ("requestTimestamp", "2026-01-01"),
        ("connectorTxId1", "x" * 129),
        ("connectorTxId2", "x" * 129),
        ("connectorTxId3", "x" * 129),
    ],
)
def test_a_migration_is_checked_like_everything(api: Api, name: str, value: str | None) -> None:
    """B10.2."""
    full = f"recurringMigration.{name}"
    body = {key: text for key, text in (MIGRATED | {full: value}).items() if text is not None}
    answer = api.post("/v1/registrations", body)
    assert (answer.status, answer.errors.keys()) == (400, {full})
    assert not Registration.objects.exists()
