"""Who initiates a payment and whether its card is on file, in every message about it. Part B, Card on file."""

from __future__ import annotations

import pytest

from gateway.connectors.iso8583.private_field import parse_private_field
from gateway.models import Channel, Payment
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, Message, account_at_host
from tests.support.recovery import recover_after

OK = "000.100.112"
NETWORK = "380912345678901"
LINK, OTHER_LINK = "Z0fE_2qV-3pWft4vHt7Ki6", "e7R9d3L2-Q9vS6pP1_WzEh"
MASTERCARD = {"paymentBrand": "MASTER", "card.number": "5454545454545454"}
CARD = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034", "testMode": "EXTERNAL"}
MERCHANTS = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    iso_host.answers = {"48": f"6315{NETWORK}"}
    return iso_host


def of(message: Message) -> tuple[str, str, str]:
    """DE22, DE25, part 22."""
    return message["22"], message["25"], parts(message).get("initiator", "")


def parts(message: Message) -> dict[str, str]:
    return parse_private_field(message.get("48", ""))


def pay(shop: Shop, kind: str = "DB", **more: str | None) -> Answer:
    answer = shop.api.pay(testMode="EXTERNAL", paymentType=kind, **more)
    assert answer.code == OK, answer
    return answer


def store_card(shop: Shop) -> str:
    answer = shop.api.post("/v1/registrations", {**CARD, "card.cvv": "123"})
    assert answer.status == 200, answer
    return answer.id


def pay_with(shop: Shop, registration: str, kind: str = "PA", **more: str) -> Answer:
    fields = {"amount": "50.00", "currency": "EUR", "paymentType": kind, "testMode": "EXTERNAL", **more}
    answer = shop.api.post(f"/v1/registrations/{registration}/payments", fields)
    assert answer.code == OK, answer
    return answer


@pytest.mark.parametrize("practice", ["INCREMENTAL_AUTH", "REAUTHORIZATION"])
def test_what_follows_a_capture_says_what_the_capture_said(shop: Shop, host: IsoHost, practice: str) -> None:
    """Whichever authorization of the chain its path names."""
    held = pay(shop, "PA")
    more = shop.api.follow(held.id, "PA", "92.00", standingInstruction__industryPractice=practice)
    assert more.code == OK, more
    named = held.id if practice == "REAUTHORIZATION" else more.id
    captured = shop.api.follow(named, "CP", "20.00")
    for kind in ("RV", "RF"):
        assert shop.api.follow(captured.id, kind, "5.00").code == OK
    said = of(host.seen("0220")[0])
    assert (of(host.seen("0400")[0]), of(host.seen("0200")[0])) == (said, said)


def test_follow_ups_repeat_how_the_payment_came_about(shop: Shop, host: IsoHost) -> None:
    """Clearing and reversals repeat the authorization's DE22, DE25, initiator and the network's reference."""
    held = pay_with(shop, store_card(shop), **MERCHANTS)
    first = host.seen("0100")[-1]
    assert of(first) == ("102", "08", "M101")
    capture = shop.api.follow(held.id, "CP", "20.00")
    shop.api.follow(capture.id, "RF", "5.00")
    shop.api.follow(held.id, "RV")
    for mti in ("0220", "0200", "0400"):
        (message,) = host.seen(mti)
        assert of(message) == of(first), mti
        assert parts(message)["network"] == NETWORK, mti


def test_follow_ups_of_a_shoppers_own_payment_say_that_the_shopper_ordered(shop: Shop, host: IsoHost) -> None:
    held = pay(shop, "PA", threeDSecure__eci="05", threeDSecure__verificationId="AAACAgSRBklmQCFgMpEGAAAAAAA=",
               threeDSecure__dsTransactionId="f25084f0-5b16-4c0a-ae5d-b24808a95e4b")  # fmt: skip
    assert shop.api.follow(held.id, "CP", "92.00").code == OK
    for mti in ("0100", "0220"):
        (message,) = host.seen(mti)
        assert (of(message), parts(message)["eci"]) == (("812", "59", ""), "05")
    assert "cavv" not in parts(host.seen("0220")[0])


def test_what_is_taken_back_repeats_what_it_was(shop: Shop, host: IsoHost) -> None:
    """0420, and 0421 of another process: the same elements, without the proofs of one use."""
    registration = store_card(shop)
    host.next("0200", "lost")
    fields = {"amount": "9.00", "currency": "EUR", "paymentType": "DB", "testMode": "EXTERNAL", **MERCHANTS}
    shop.api.post(f"/v1/registrations/{registration}/payments", fields)
    recover_after(120)
    (asked,), (back,) = host.seen("0200"), host.seen("0420")
    assert of(back) == of(asked) == ("102", "08", "M101")
    assert parts(back)["network"] == parts(asked)["network"] == NETWORK
    host.next("0200", "lost")
    shop.api.pay(testMode="EXTERNAL", threeDSecure__challengeIndicator="05")
    recover_after(120)
    assert of(host.seen("0420")[1]) == ("812", "59", "")
    assert parts(host.seen("0420")[1]) == {"eci": "07", "exemption": "89"}


@pytest.mark.parametrize(
    ("practice", "initiator", "reason"),
    [("INCREMENTAL_AUTH", "M206", "3900"), ("REAUTHORIZATION", "M205", "3903")],
)
def test_raising_and_renewing_is_the_merchants_doing_on_the_original(
    shop: Shop, host: IsoHost, practice: str, initiator: str, reason: str
) -> None:
    """Visa 3900 and 3903: stored credential, the first authorization's reference, no security code."""
    held = pay(shop, "PA")
    raised = shop.api.follow(held.id, "PA", "10.00", standingInstruction__industryPractice=practice)
    assert raised.code == OK, raised
    message = host.seen("0100")[1]
    assert of(message) == ("102", "08", initiator)
    assert parts(message) == {"initiator": initiator, "reason": reason, "network": NETWORK}
    assert shop.api.follow(raised.id, "CP", "10.00").code == OK
    # Clearing names the authorization that was raised, by whichever path, or the renewal in its place.
    cleared, named = host.seen("0220")[0], host.seen("0100")[practice == "REAUTHORIZATION"]
    assert of(cleared) == of(named)
    assert cleared["90"][4:10] == named["11"]


@pytest.mark.parametrize("by", ["the first", "the renewal"])
def test_what_clears_or_reverses_a_renewal_says_what_the_renewal_said(shop: Shop, host: IsoHost, by: str) -> None:
    """Clearing agrees with the authorization of its approval code: a renewal is no authenticated online order."""
    held = pay(shop, "PA", threeDSecure__eci="05", threeDSecure__verificationId="AAACAgSRBklmQCFgMpEGAAAAAAA=",
               threeDSecure__dsTransactionId="f25084f0-5b16-4c0a-ae5d-b24808a95e4b")  # fmt: skip
    renewed = shop.api.follow(held.id, "PA", "92.00", standingInstruction__industryPractice="REAUTHORIZATION")
    target = held.id if by == "the first" else renewed.id
    captured = shop.api.follow(target, "CP", "20.00")
    assert captured.code == OK
    assert shop.api.follow(target, "RV", "10.00").code == OK
    assert shop.api.follow(captured.id, "RF", "5.00").code == OK
    asked = host.seen("0100")[1]
    assert of(asked) == ("102", "08", "M205")
    for mti in ("0220", "0400", "0200"):
        (message,) = host.seen(mti)
        assert (of(message), parts(message)) == (of(asked), parts(asked)), mti


def test_a_reversal_by_an_increment_says_what_the_first_authorization_said(shop: Shop, host: IsoHost) -> None:
    """It names the first one, whichever the path names."""
    held = pay(shop, "PA")
    raised = shop.api.follow(held.id, "PA", "10.00", standingInstruction__industryPractice="INCREMENTAL_AUTH")
    assert shop.api.follow(raised.id, "RV").code == OK
    assert of(host.seen("0400")[0]) == of(host.seen("0100")[0]) == ("812", "59", "")


def test_an_increment_that_the_cardholder_asks_for_is_the_cardholders(shop: Shop, host: IsoHost) -> None:
    held = pay(shop, "PA")
    more = {"standingInstruction__industryPractice": "INCREMENTAL_AUTH", "standingInstruction__source": "CIT"}
    assert shop.api.follow(held.id, "PA", "10.00", **more).code == OK
    assert of(host.seen("0100")[1]) == ("102", "59", "C101")


def test_a_rebill_is_the_merchants(shop: Shop, host: IsoHost) -> None:
    paid = pay(shop)
    assert shop.api.follow(paid.id, "RB", "5.00").code == OK
    assert of(host.seen("0200")[1]) == ("102", "08", "M101")


def test_an_authorization_of_nothing_is_an_account_verification(shop: Shop, host: IsoHost) -> None:
    """DE25 51, as for a registration."""
    pay(shop, "PA", amount="0.00", createRegistration="true")
    store_card(shop)
    assert [of(message) for message in host.seen("0100")] == [("812", "51", "C101")] * 2


def test_a_card_is_marked_when_it_is_stored_and_each_time_it_is_used(shop: Shop, host: IsoHost) -> None:
    """Without a word of standingInstruction: the gateway knows that the card is on file."""
    stored = pay(shop, createRegistration="true").body["registrationId"]
    pay_with(shop, stored, "DB")
    pay_with(shop, stored, "DB", **MERCHANTS)
    begins = {"standingInstruction.mode": "INITIAL", "standingInstruction.type": "INSTALLMENT"}
    pay_with(shop, stored, "DB", **begins)
    assert [of(message) for message in host.seen("0200")] == [
        ("812", "59", "C101"),
        ("102", "59", "C101"),
        ("102", "08", "M101"),
        ("102", "59", "C104"),
    ]


def tell_link(host: IsoHost, link: str) -> None:
    host.answers = {"48": f"6315{NETWORK}6422{link}"}


def links(message: Message) -> tuple[str | None, str | None]:
    """The link to the payment of whose lifecycle it is, and to one that it is related to."""
    return parts(message).get("link"), parts(message).get("relatedLink")


def mastercard(**more: str | None) -> dict[str, str | None]:
    return {name.replace(".", "__"): text for name, text in MASTERCARD.items()} | more


@pytest.mark.parametrize("ids", Channel.AgreementIds)
def test_mastercard_is_told_the_link_to_the_first_transaction_of_an_agreement(
    shop: Shop, host: IsoHost, ids: Channel.AgreementIds
) -> None:
    """Mandatory since October 2026: what the first answer told goes with each payment that the merchant initiates, as
    that of a related payment; what follows such a payment is of its own lifecycle, by the link of its own answer. The
    merchant is told it as agreementId, where the channel uses that."""
    Channel.objects.filter(pk=shop.channel.pk).update(agreement_ids=ids)
    tell_link(host, LINK)
    begins = {"standingInstruction__mode": "INITIAL", "standingInstruction__type": "UNSCHEDULED"}
    first = pay(shop, createRegistration="true", **mastercard(**begins))
    told = first.body["standingInstruction"].get("agreementId")
    assert told == (None if ids == Channel.AgreementIds.NONE else LINK)
    tell_link(host, OTHER_LINK)
    later = pay_with(shop, first.body["registrationId"], "PA", **MERCHANTS)
    assert links(host.seen("0100")[-1]) == (None, LINK)
    assert shop.api.follow(later.id, "CP", "20.00").code == OK
    assert shop.api.follow(later.id, "RV", "30.00").code == OK
    assert [links(host.seen(mti)[-1]) for mti in ("0220", "0400")] == [(OTHER_LINK, None)] * 2
    named = {f"standingInstruction__{name.rpartition('.')[2]}": value for name, value in MERCHANTS.items()}
    if told:
        named |= {"standingInstruction__agreementId": told}
    if ids != Channel.AgreementIds.ONLY:
        reference = first.body["standingInstruction"]["initialTransactionId"]
        named |= {"standingInstruction__initialTransactionId": reference}
    pay(shop, **mastercard(card__cvv=None, **named))
    assert links(host.seen("0200")[-1]) == (None, LINK)


@pytest.mark.parametrize("begun", ["without a link", "elsewhere"])
def test_an_agreement_without_a_link_takes_that_of_the_first_payment_that_is_told_one(
    shop: Shop, host: IsoHost, begun: str
) -> None:
    """One that is older than the links, or of another processor: Mastercard wants the earliest payment after it."""
    begins = {"standingInstruction.mode": "INITIAL", "standingInstruction.type": "UNSCHEDULED"}
    brought = {"recurringMigration.paymentType": "DB", "recurringMigration.connectorTxId1": "MCC1234560101"}
    more = begins if begun == "without a link" else brought
    stored = shop.api.post("/v1/registrations", {**CARD, **MASTERCARD, "card.cvv": "123", **more})
    assert stored.status == 200, stored
    pay_with(shop, stored.id, "DB", **MERCHANTS)
    tell_link(host, LINK)
    pay_with(shop, stored.id, "DB", **MERCHANTS)
    tell_link(host, OTHER_LINK)
    pay_with(shop, stored.id, "DB", **MERCHANTS)
    pay_with(shop, stored.id, "DB", **MERCHANTS)
    assert [links(message) for message in host.seen("0200")] == [(None, None), (None, None), (None, LINK), (None, LINK)]


def test_an_agreement_that_began_at_another_network_takes_the_link_of_its_first_payment_at_mastercard(
    shop: Shop, host: IsoHost
) -> None:
    """The stored card was replaced by a Mastercard: Visa's reference is none there, the first charge's link is."""
    begins = {"standingInstruction__mode": "INITIAL", "standingInstruction__type": "UNSCHEDULED"}
    stored = pay(shop, createRegistration="true", **begins).body["registrationId"]
    dates = {"card.expiryMonth": "05", "card.expiryYear": "2034"}
    assert shop.api.post(f"/v1/registrations/{stored}", MASTERCARD | dates).status == 200
    for link in (LINK, OTHER_LINK, OTHER_LINK):
        tell_link(host, link)
        pay_with(shop, stored, "DB", **MERCHANTS)
    assert [links(message) for message in host.seen("0200")[1:]] == [(None, None), (None, LINK), (None, LINK)]
    assert ["network" in parts(message) for message in host.seen("0200")[1:]] == [False] * 3


def test_after_a_renewal_its_own_link_is_named(shop: Shop, host: IsoHost) -> None:
    """As its code and the network's reference are: a capture, an increment and a reversal, whichever is in the path."""
    tell_link(host, LINK)
    held = pay(shop, "PA", **mastercard())
    tell_link(host, OTHER_LINK)
    renewed = shop.api.follow(held.id, "PA", "92.00", standingInstruction__industryPractice="REAUTHORIZATION")
    assert renewed.code == OK
    assert shop.api.follow(held.id, "PA", "10.00", standingInstruction__industryPractice="INCREMENTAL_AUTH").code == OK
    assert shop.api.follow(held.id, "CP", "20.00").code == OK
    assert shop.api.follow(held.id, "RV").code == OK
    sent = [*host.seen("0100")[1:], *host.seen("0220"), *host.seen("0400")]
    assert [links(message) for message in sent] == [(LINK, None), *[(OTHER_LINK, None)] * 3]


def test_a_renewal_without_a_link_of_its_own_is_named_by_that_of_its_authorization(shop: Shop, host: IsoHost) -> None:
    """And a renewal names the first authorization by that one's link, whichever renewal its path names."""
    tell_link(host, LINK)
    held = pay(shop, "PA", **mastercard())
    renew = {"standingInstruction__industryPractice": "REAUTHORIZATION"}
    tell_link(host, OTHER_LINK)
    once = shop.api.follow(held.id, "PA", "92.00", **renew)
    host.answers = {"48": f"6315{NETWORK}"}
    assert shop.api.follow(once.id, "PA", "92.00", **renew).code == OK
    assert shop.api.follow(once.id, "CP", "20.00").code == OK
    assert [links(message) for message in (*host.seen("0100")[1:], *host.seen("0220"))] == [(LINK, None)] * 3


def test_a_payment_that_is_followed_is_named_by_its_own_link(shop: Shop, host: IsoHost) -> None:
    """Captures, increments, refunds and reversals; a rebill is related to it, and is named by its own."""
    tell_link(host, LINK)
    held, paid = pay(shop, "PA", **mastercard()), pay(shop, "DB", **mastercard())
    assert links(host.seen("0100")[0]) == links(host.seen("0200")[0]) == (None, None)
    raised = shop.api.follow(held.id, "PA", "10.00", standingInstruction__industryPractice="INCREMENTAL_AUTH")
    assert raised.code == OK
    assert shop.api.follow(held.id, "CP", "20.00").code == OK
    assert shop.api.follow(paid.id, "RF", "5.00").code == OK
    tell_link(host, OTHER_LINK)
    again = shop.api.follow(paid.id, "RB", "5.00")
    assert shop.api.follow(again.id, "RF", "5.00").code == OK
    sent = [host.seen("0100")[1], host.seen("0220")[0], *host.seen("0200")[1:]]
    assert [links(message) for message in sent] == [*[(LINK, None)] * 3, (None, LINK), (OTHER_LINK, None)]


def test_a_rebill_without_an_answer_is_taken_back_as_what_it_was(shop: Shop, host: IsoHost) -> None:
    tell_link(host, LINK)
    paid = pay(shop, "DB", **mastercard())
    host.next("0200", "lost")
    shop.api.follow(paid.id, "RB", "5.00")
    recover_after(120)
    assert links(host.seen("0420")[0]) == links(host.seen("0200")[-1]) == (None, LINK)


def test_a_stored_cards_link_is_told_where_no_agreement_was_made(shop: Shop, host: IsoHost) -> None:
    """An account verification's, too; a plain purchase with the stored card names none."""
    tell_link(host, LINK)
    stored = shop.api.post("/v1/registrations", {**CARD, **MASTERCARD, "card.cvv": "123"}).id
    pay_with(shop, stored, "DB", **MERCHANTS)
    pay_with(shop, stored, "DB")
    assert [links(message) for message in host.seen("0200")] == [(None, LINK), (None, None)]


@pytest.mark.parametrize("begun_by", ["payment", "registration"])
def test_an_agreement_with_an_id_of_the_merchants_own_has_the_link_of_its_first_payment(
    shop: Shop, host: IsoHost, begun_by: str
) -> None:
    """Mastercard wants its link of each payment that the merchant initiates, whatever the merchant calls the
    agreement."""
    tell_link(host, LINK)
    begins = {"standingInstruction__mode": "INITIAL", "standingInstruction__type": "UNSCHEDULED"}
    begins |= {"standingInstruction__agreementId": "AGREEMENT1"}
    if begun_by == "payment":
        first = pay(shop, createRegistration="true", **mastercard(**begins))
        registration = first.body["registrationId"]
    else:
        asked = {name.replace("__", "."): value for name, value in begins.items()}
        first = shop.api.post("/v1/registrations", {**CARD, **MASTERCARD, "card.cvv": "123", **asked})
        registration = first.id
    assert first.body["standingInstruction"]["agreementId"] == "AGREEMENT1"
    tell_link(host, OTHER_LINK)
    pay_with(shop, registration, "DB", **MERCHANTS)
    assert links(host.seen("0200")[-1]) == (None, LINK)
    pay_with(shop, registration, "DB", **MERCHANTS, **{"standingInstruction.agreementId": "AGREEMENT1"})
    assert links(host.seen("0200")[-1]) == (None, LINK)


@pytest.mark.parametrize("sent", ["", "AGREEMENT1", OTHER_LINK])
def test_the_check_of_a_card_that_comes_from_another_processor_is_no_first_transaction(
    shop: Shop, host: IsoHost, sent: str
) -> None:
    """The link goes by what the merchant brought along, as the network's reference does."""
    tell_link(host, LINK)
    brought = {"recurringMigration.paymentType": "DB", "recurringMigration.connectorTxId1": "MCC1234560101"}
    brought |= {"standingInstruction.agreementId": sent} if sent else {}
    moved = shop.api.post("/v1/registrations", {**CARD, **MASTERCARD, "card.cvv": "123", **brought})
    assert moved.status == 200, moved
    pay_with(shop, moved.id, "DB", **MERCHANTS)
    message = parts(host.seen("0200")[-1])
    related = message.get("relatedLink", "")
    assert (message["network"], related) == ("MCC1234560101", OTHER_LINK if sent == OTHER_LINK else "")


def test_other_networks_and_ids_of_other_forms_are_no_links(shop: Shop, host: IsoHost) -> None:
    tell_link(host, LINK)
    begins = {"standingInstruction__mode": "INITIAL", "standingInstruction__type": "UNSCHEDULED"}
    visa = pay(shop, createRegistration="true", **begins)
    pay_with(shop, visa.body["registrationId"], "DB", **MERCHANTS)
    tell_link(host, LINK[:-1] + "!")
    odd = pay(shop, createRegistration="true", **mastercard(**begins))
    pay_with(shop, odd.body["registrationId"], "DB", **MERCHANTS)
    Channel.objects.filter(pk=shop.channel.pk).update(agreement_ids=Channel.AgreementIds.BOTH)
    own = pay(shop, createRegistration="true", **mastercard(**begins))
    assert own.body["standingInstruction"]["agreementId"].startswith("A")
    pay_with(shop, own.body["registrationId"], "DB", **MERCHANTS)
    assert {links(message) for message in host.seen("0200")} == {(None, None)}


def test_where_agreement_ids_alone_are_told_the_network_gets_its_reference_all_the_same(
    shop: Shop, host: IsoHost
) -> None:
    """An agreementId of ours means nothing to a network, so the first transaction's reference goes along."""
    Channel.objects.filter(pk=shop.channel.pk).update(agreement_ids=Channel.AgreementIds.ONLY)
    first = pay(shop, standingInstruction__mode="INITIAL", standingInstruction__type="UNSCHEDULED")
    agreement = first.body["standingInstruction"]["agreementId"]
    again = {f"standingInstruction__{name.rpartition('.')[2]}": value for name, value in MERCHANTS.items()}
    later = pay(shop, standingInstruction__agreementId=agreement, card__cvv=None, **again)
    assert parts(host.seen("0200")[1])["network"] == NETWORK
    assert NETWORK not in str(later.body)


def test_a_merchants_payment_has_no_security_code(shop: Shop, host: IsoHost) -> None:
    """PCI DSS 3.3.1: after the authorization there is none. It is dropped and named."""
    registration = store_card(shop)
    answer = pay_with(shop, registration, "DB", **MERCHANTS, **{"card.cvv": "123"})
    assert answer.body["ignoredParameters"] == ["card.cvv"]
    assert "cvv2" not in parts(host.seen("0200")[0])
    Channel.objects.filter(pk=shop.channel.pk).update(parameters=Channel.Parameters.STRICT)
    fields = {"amount": "1.00", "currency": "EUR", "paymentType": "DB", "card.cvv": "123", **MERCHANTS}
    refused = shop.api.post(f"/v1/registrations/{registration}/payments", fields | {"testMode": "EXTERNAL"})
    assert (refused.status, refused.errors.keys()) == (400, {"card.cvv"})
    assert Payment.objects.filter(payment_type="DB").count() == 1


@pytest.mark.parametrize(
    ("brand", "number", "flag", "challenge", "code"),
    [
        ("VISA", "4200000000000000", "01", "05", "87"),
        ("VISA", "4200000000000000", None, "05", "89"),
        ("VISA", "4200000000000000", "04", "02", "88"),
        ("MASTER", "5454545454545454", "02", "05", "02"),
        ("MASTER", "5454545454545454", "01", "02", "04"),
        ("VISA", "4200000000000000", None, "01", None),
    ],
)
def test_an_exemption_reaches_the_acquirer_in_the_networks_code(
    shop: Shop, host: IsoHost, brand: str, number: str, flag: str | None, challenge: str, code: str | None
) -> None:
    """Part B, 3D Secure: both must be flagged."""
    pay(shop, paymentBrand=brand, card__number=number, threeDSecure__exemptionFlag=flag,
        threeDSecure__challengeIndicator=challenge)  # fmt: skip
    assert parts(host.seen("0200")[0]).get("exemption") == code


@pytest.mark.parametrize("category", ["MO", "TO"])
def test_a_mail_or_telephone_order_is_one(shop: Shop, host: IsoHost, category: str) -> None:
    """It has nothing to be exempted from."""
    pay(shop, transactionCategory=category, threeDSecure__exemptionFlag="01", threeDSecure__challengeIndicator="05")
    (message,) = host.seen("0200")
    assert (of(message), "exemption" in parts(message)) == (("012", "08", ""), False)
