"""Each limit and block of an agreement by itself, and which references of it a network is told.

Source: Part B, Card on file; docs/decisions/0015.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.parse import ParameterError, Parameters
from gateway.models import Agreement, Channel, Merchant, Payment, Registration
from gateway.payments.agreements import (
    AGREEMENT_USE_TYPES,
    AgreementUse,
    AgreementUseType,
    classify_agreement_use,
    drop_references_of_other_network,
    find_agreement_violation,
    has_agreement_limits,
    is_agreement_blocked,
    reload_agreement_use,
    resolve_agreement,
    use_agreement,
)
from gateway.payments.refusal import RequestRefusedError
from tests.support.client import Api
from tests.support.fixtures import Shop

NOW = datetime(2035, 11, 15, 12, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
TODAY = NOW.date()
MERCHANT = Merchant(time_zone="UTC")
INITIAL_ID, LINK_ID = "standingInstruction.initialTransactionId", "standingInstruction.agreementId"


def use(agreement: Agreement | None = None, **values: Any) -> AgreementUse:
    return AgreementUse(**{
        "agreement": agreement, "counts_towards_limits": False, "expiry": None, "scheme_references": {}, **values,
    })  # fmt: skip


# --- references -----------------------------------------------------------------------------------------------------

SAID = {INITIAL_ID: "first", LINK_ID: "link"}


@pytest.mark.parametrize(
    ("began", "link", "brand", "told"),
    [
        ("VISA", "", "VISA", SAID),
        ("VISA", "", "VISADEBIT", SAID),
        ("MASTER", "", "MAESTRO", SAID),
        ("AMEX", "", "AMEX", SAID),
        ("VISA", "", "AMEX", {INITIAL_ID: "", LINK_ID: ""}),
        ("AMEX", "", "DINERS", {INITIAL_ID: "", LINK_ID: ""}),
        ("VISA", "", "MASTER", {INITIAL_ID: "", LINK_ID: ""}),
        ("VISA", "newer", "MASTER", {INITIAL_ID: "", LINK_ID: "newer"}),
        ("VISA", "newer", "MASTERDEBIT", {INITIAL_ID: "", LINK_ID: "newer"}),
        ("MASTER", "newer", "VISA", {INITIAL_ID: "", LINK_ID: ""}),
        ("", "", "VISA", SAID),
        ("WALLET1", "", "VISA", SAID),
        ("VISA", "", "WALLET1", SAID),
    ],
)
def test_a_network_is_told_no_reference_of_another_one(began: str, link: str, brand: str, told: dict[str, str]) -> None:
    """But Mastercard the link that a payment with a card of its own has brought since."""
    asked = use(Agreement(transaction_link=link), scheme_references=SAID, brand=began)
    found = drop_references_of_other_network(asked, brand)
    assert found is not None
    assert (found.scheme_references, found.agreement, found.brand) == (told, asked.agreement, began)


def test_without_an_agreement_there_is_no_link_to_tell() -> None:
    found = drop_references_of_other_network(use(scheme_references=SAID, brand="VISA"), "MASTER")
    assert found is not None
    assert found.scheme_references == {INITIAL_ID: "", LINK_ID: ""}
    assert drop_references_of_other_network(None, "MASTER") is None
    plain = use(Agreement(transaction_link="newer"), brand="VISA")
    assert drop_references_of_other_network(plain, "MASTER") is plain


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agreed", "own", "past"),
    [
        (None, None, None),
        (TODAY, None, None),
        (TODAY - DAY, None, TODAY - DAY),
        (None, TODAY, None),
        (None, TODAY - DAY, TODAY - DAY),
        (TODAY + DAY, TODAY - DAY, TODAY - DAY),
        (TODAY - 2 * DAY, TODAY - DAY, TODAY - 2 * DAY),
        (TODAY + DAY, TODAY + DAY, None),
    ],
)
def test_no_authorization_after_the_earlier_of_both_expiries(
    agreed: date | None, own: date | None, past: date | None
) -> None:
    found = find_agreement_violation(use(Agreement(expiry=agreed), expiry=own), MERCHANT, NOW)
    assert (found is not None) is (past is not None)
    if found is not None:
        assert (found.name, found.code) == ("standingInstruction.expiry", "700.500.002")
        assert found.message.endswith(f"after {past}")


def test_without_an_agreement_nothing_is_limited() -> None:
    assert find_agreement_violation(None, MERCHANT, NOW) is None
    assert find_agreement_violation(use(counts_towards_limits=True, merchant_initiated=True), MERCHANT, NOW) is None


@pytest.mark.parametrize(
    ("values", "limited"), [({}, False), ({"max_payments": 0}, True), ({"frequency": 0}, True)], ids=str
)
def test_an_agreement_has_limits_where_a_number_or_days_were_agreed(values: dict[str, int], limited: bool) -> None:
    assert has_agreement_limits(Agreement(**values)) is limited


@pytest.fixture
def agreement(shop: Shop, api: Api) -> Agreement:
    """One that began ten days ago, and was charged three days ago; another one and plain payments are beside it."""
    one, other = (
        Agreement.objects.create(
            id=UUID(int=number), merchant=shop.merchant, channel=shop.channel, reference=f"r{number}",
            registration=UUID(int=number + 10), created_at=NOW - 10 * DAY, first_at=NOW - 10 * DAY,
        )
        for number in (1, 2)
    )  # fmt: skip
    for of, status, ago in ((one, "APPROVED", 3), (one, "DECLINED", 1), (other, "APPROVED", 0), (None, "APPROVED", 0)):
        Payment.objects.filter(pk=api.pay().id).update(
            agreement=of.pk if of is not None else None, status=status, created_at=NOW - ago * DAY
        )
    return one


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, None),
        ({"max_payments": 3}, None),
        ({"max_payments": 2}, "numberOfInstallments"),
        ({"max_payments": 1}, "numberOfInstallments"),
        ({"max_payments": 2, "first_at": None}, None),
        ({"max_payments": 1, "first_at": None}, "numberOfInstallments"),
        ({"frequency": 3}, None),
        ({"frequency": 4}, "frequency"),
        ({"max_payments": 3, "frequency": 4}, "frequency"),
        ({"max_payments": 2, "frequency": 4}, "numberOfInstallments"),
    ],
    ids=str,
)
def test_authorizations_that_were_not_declined_count_with_the_first(
    agreement: Agreement, values: dict[str, Any], name: str | None
) -> None:
    for field, value in values.items():
        setattr(agreement, field, value)
    counted = use(agreement, counts_towards_limits=True, merchant_initiated=True)
    found = find_agreement_violation(counted, MERCHANT, NOW)
    assert (found.name if found is not None else None) == (f"standingInstruction.{name}" if name else None)
    if found is not None:
        assert found.code == "700.500.001"
    assert find_agreement_violation(use(agreement, merchant_initiated=True), MERCHANT, NOW) is None


@pytest.mark.django_db
@pytest.mark.parametrize(("frequency", "broken"), [(10, False), (11, True)])
def test_the_days_are_counted_from_the_first_where_none_followed(
    agreement: Agreement, frequency: int, broken: bool
) -> None:
    Payment.objects.filter(agreement=agreement.pk).update(agreement=None)
    agreement.frequency = frequency
    found = find_agreement_violation(use(agreement, counts_towards_limits=True), MERCHANT, NOW)
    assert (found is not None) is broken
    agreement.first_at = None
    assert find_agreement_violation(use(agreement, counts_towards_limits=True), MERCHANT, NOW) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("since", "registration", "again", "blocked"),
    [
        (None, UUID(int=11), None, False),
        (NOW, UUID(int=11), None, True),
        (NOW, None, None, True),
        (NOW, UUID(int=11), NOW + SECOND, False),
        (NOW, UUID(int=11), NOW, True),
        (NOW, UUID(int=11), NOW - SECOND, True),
        (NOW, None, NOW + SECOND, True),
    ],
)
def test_a_chargeback_for_fraud_stops_the_merchant_until_the_holder_agrees_again(
    agreement: Agreement, since: datetime | None, registration: UUID | None, again: datetime | None, blocked: bool
) -> None:
    """``again``: when the next agreement was made with the same means. That of other means says nothing."""
    agreement.merchant_use_blocked_at, agreement.registration = since, registration
    agreement.merchant_use_code = "000.100.203"
    Agreement.objects.filter(pk=UUID(int=2)).update(created_at=NOW + DAY)
    if again is not None:
        Agreement.objects.create(
            id=UUID(int=3), merchant_id=agreement.merchant_id, channel_id=agreement.channel_id, reference="r3",
            registration=registration, created_at=again,
        )  # fmt: skip
    assert is_agreement_blocked(agreement) is blocked
    found = find_agreement_violation(use(agreement, merchant_initiated=True), MERCHANT, NOW)
    assert (found is not None) is blocked
    if found is not None:
        assert (found.name, found.code) == (INITIAL_ID, "000.100.203")
    assert find_agreement_violation(use(agreement), MERCHANT, NOW) is None, "its holder may pay"


EXPIRED_CODE, USED_UP_CODE = "700.500.002", "700.500.001"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"expiry": TODAY - DAY},
         ParameterError(name="standingInstruction.expiry", message="is past: no authorization after 2035-11-14",
                        code=EXPIRED_CODE, known=True)),
        ({"merchant_use_blocked_at": NOW, "merchant_use_code": "000.100.203"},
         ParameterError(name=INITIAL_ID, message="is of an agreement that is charged back as fraud or revoked: "
                        "its holder has to agree again", code="000.100.203", known=True)),
        ({"max_payments": 1},
         ParameterError(name="standingInstruction.numberOfInstallments",
                        message="are used up: 2 of 1 authorizations were made", code=USED_UP_CODE, known=True)),
        ({"frequency": 4},
         ParameterError(name="standingInstruction.frequency",
                        message="asks for 4 days between authorizations: 3 have passed", code=USED_UP_CODE,
                        known=True)),
    ],
    ids=["expired", "blocked", "used up", "too early"],
)  # fmt: skip
def test_what_an_agreement_forbids_is_told_whole(
    agreement: Agreement, values: dict[str, Any], expected: ParameterError
) -> None:
    for field, value in values.items():
        setattr(agreement, field, value)
    counted = use(agreement, counts_towards_limits=True, merchant_initiated=True)
    assert find_agreement_violation(counted, MERCHANT, NOW) == expected


@pytest.mark.django_db
def test_an_agreement_is_read_again_before_its_limits_are(agreement: Agreement) -> None:
    old = use(agreement, expiry=TODAY, scheme_references=SAID, merchant_initiated=True, brand="VISA")
    Agreement.objects.filter(pk=agreement.pk).update(follow_ups=7)
    found = reload_agreement_use(old)
    assert found == replace(old, counts_towards_limits=True)
    assert found.agreement is not None
    assert (found.agreement.follow_ups, agreement.follow_ups) == (7, 0)


# --- which use, and which agreement ---------------------------------------------------------------------------------

Use, Ids = AgreementUseType, Channel.AgreementIds
MODES, SOURCES = ("", "INITIAL", "REPEATED"), ("", "CIT", "MIT")
OF_INSTRUCTION = {
    ("", ""): Use.PLAIN, ("", "CIT"): Use.PLAIN, ("", "MIT"): Use.MERCHANT_INITIATED, ("INITIAL", ""): Use.INITIAL,
    ("INITIAL", "CIT"): Use.INITIAL, ("INITIAL", "MIT"): None, ("REPEATED", ""): Use.MERCHANT_INITIATED,
    ("REPEATED", "CIT"): Use.CARDHOLDER_INITIATED, ("REPEATED", "MIT"): Use.MERCHANT_INITIATED,
}  # fmt: skip
BY_MERCHANT = tuple(itertools.product(("", "REPEATED"), ("", "MIT")))
OF_PRACTICE = {
    "RESUBMISSION": Use.MERCHANT_INITIATED, "DELAYED_CHARGES": Use.INDUSTRY_PRACTICE,
    "NO_SHOW": Use.INDUSTRY_PRACTICE, "INCREMENTAL_AUTH": Use.PLAIN, "REAUTHORIZATION": Use.PLAIN,
}  # fmt: skip


def parameters_of(**words: str) -> Parameters:
    return Parameters(values={f"standingInstruction.{name}": value for name, value in words.items() if value})


@pytest.mark.parametrize("practice", ["", *OF_PRACTICE])
@pytest.mark.parametrize(("mode", "source"), list(itertools.product(MODES, SOURCES)))
def test_a_use_is_that_of_its_instruction_and_its_practice(mode: str, source: str, practice: str) -> None:
    """A practice of merchants is none of the shopper's; one that no row allows makes it a plain payment."""
    expected = OF_PRACTICE[practice] if practice else OF_INSTRUCTION[mode, source]
    if practice in ("RESUBMISSION", "DELAYED_CHARGES", "NO_SHOW") and (mode, source) not in BY_MERCHANT:
        expected = None
    assert AGREEMENT_USE_TYPES.get((mode, source, practice)) is expected
    found = classify_agreement_use(parameters_of(mode=mode, source=source, industryPractice=practice))
    assert found is (expected or Use.PLAIN)


MINE, THEIRS = UUID(int=50), UUID(int=51)
"""Stored means: with agreements, and without."""
MIT, CIT = {"mode": "REPEATED", "source": "MIT"}, {"mode": "REPEATED", "source": "CIT"}
REFERENCE, NETWORK = "4711000000000000000", "020123456789012"


@pytest.fixture
def agreements(shop: Shop, stranger: Shop) -> dict[str, Agreement]:
    """Two of the channel of the same names, an older and a newer one, and a newer one of another merchant's."""
    made = {}
    for number, (name, of) in enumerate({"old": shop, "new": shop, "other": stranger}.items(), start=1):
        made[name] = Agreement.objects.create(
            id=UUID(int=number), merchant=of.merchant, channel=of.channel, reference=REFERENCE, agreement_id="LINK1",
            network_reference=NETWORK, registration=None if name == "other" else MINE, brand="MASTER", created_at=NOW,
        )  # fmt: skip
    return made


def channel_of(shop: Shop, ids: Channel.AgreementIds = Ids.NONE, *, external: bool = False) -> Channel:
    shop.channel.agreement_ids, shop.channel.external_references = ids, external
    return shop.channel


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "kind", "ids", "registration", "named"),
    [
        # Neither the merchant's own payment, nor one that names an agreement.
        ({}, "DB", Ids.NONE, None, None),
        ({"initialTransactionId": REFERENCE}, "DB", Ids.NONE, None, None),
        ({"mode": "INITIAL", "source": "CIT", "agreementId": "LINK1"}, "DB", Ids.NONE, None, None),
        (CIT, "DB", Ids.NONE, MINE, None),
        (MIT | {"initialTransactionId": REFERENCE}, "CD", Ids.NONE, None, None),
        (MIT | {"initialTransactionId": REFERENCE}, "CP", Ids.NONE, None, None),
        (MIT, "RF", Ids.NONE, MINE, None),
        # The merchant's own payment, by each of the ids and by the stored means.
        (MIT | {"initialTransactionId": REFERENCE}, "DB", Ids.NONE, None, "new"),
        (MIT | {"initialTransactionId": REFERENCE}, "PA", Ids.NONE, None, "new"),
        (MIT | {"initialTransactionId": UUID(int=1).hex}, "DB", Ids.NONE, None, "old"),
        (MIT | {"agreementId": "LINK1"}, "DB", Ids.NONE, None, "new"),
        (MIT | {"agreementId": "LINK1"}, "DB", Ids.ONLY, None, "new"),
        (MIT | {"agreementId": "LINK1", "initialTransactionId": UUID(int=1).hex}, "DB", Ids.BOTH, None, "old"),
        (MIT, "DB", Ids.NONE, MINE, "new"),
        (MIT, "DB", Ids.BOTH, MINE, "new"),
        (MIT, "DB", Ids.ONLY, MINE, "new"),
        # A channel that goes by agreementId alone reads no other id.
        (MIT | {"initialTransactionId": "unknown"}, "DB", Ids.ONLY, MINE, "new"),
        (MIT | {"initialTransactionId": UUID(int=1).hex, "agreementId": "LINK1"}, "DB", Ids.ONLY, None, "new"),
        # With stored means an id that is sent is looked at, and none is missing.
        (MIT | {"initialTransactionId": UUID(int=1).hex}, "DB", Ids.BOTH, MINE, "old"),
        (MIT | {"agreementId": "LINK1"}, "DB", Ids.BOTH, THEIRS, "new"),
        # The shopper's own, where it names one.
        (CIT | {"agreementId": "LINK1"}, "DB", Ids.NONE, None, "new"),
        (CIT | {"initialTransactionId": UUID(int=1).hex}, "DB", Ids.NONE, MINE, "old"),
        (CIT | {"initialTransactionId": REFERENCE}, "DB", Ids.ONLY, MINE, None),
    ],
)
def test_a_payment_is_made_under_the_agreement_that_it_names_or_that_of_its_means(
    shop: Shop,
    agreements: dict[str, Agreement],
    words: dict[str, str],
    kind: str,
    ids: Channel.AgreementIds,
    registration: UUID | None,
    named: str | None,
) -> None:
    found = resolve_agreement(parameters_of(**words), kind, channel_of(shop, ids), registration)
    if named is None:
        assert found is None
        dated = resolve_agreement(
            parameters_of(**words, expiry="2035-11-20"), kind, channel_of(shop, ids), registration
        )
        assert dated == use(expiry=date(2035, 11, 20))
        return
    by_merchant = words["source"] == "MIT"
    expected = use(
        agreements[named], counts_towards_limits=by_merchant, merchant_initiated=by_merchant, brand="MASTER",
        scheme_references={INITIAL_ID: NETWORK, LINK_ID: "LINK1"},
    )  # fmt: skip
    assert found == expected
    dated = resolve_agreement(parameters_of(**words, expiry="2035-11-20"), kind, channel_of(shop, ids), registration)
    assert dated == replace(expected, expiry=date(2035, 11, 20))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("practice", "counts"), [("RESUBMISSION", True), ("DELAYED_CHARGES", False), ("NO_SHOW", False)]
)
def test_a_practice_beside_the_agreement_does_not_count(
    shop: Shop, agreements: dict[str, Agreement], practice: str, counts: bool
) -> None:
    words = parameters_of(**MIT, industryPractice=practice, agreementId="LINK1")
    found = resolve_agreement(words, "DB", channel_of(shop), None)
    assert found is not None
    assert (found.agreement, found.counts_towards_limits) == (agreements["new"], counts)
    assert found.merchant_initiated


def test_a_schedules_run_counts_under_its_agreement() -> None:
    agreement = Agreement(reference=REFERENCE, network_reference=NETWORK, agreement_id="LINK1", brand="MASTER")
    expected = use(
        agreement, counts_towards_limits=True, merchant_initiated=True, brand="MASTER",
        scheme_references={INITIAL_ID: NETWORK, LINK_ID: "LINK1"},
    )  # fmt: skip
    assert use_agreement(agreement, parameters_of()) == expected
    dated = use_agreement(agreement, parameters_of(expiry="2035-11-20"))
    assert dated == replace(expected, expiry=date(2035, 11, 20))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"network_reference": NETWORK}, {INITIAL_ID: NETWORK}),
        ({"network_reference": ""}, {INITIAL_ID: "ours"}),
        ({"network_reference": NETWORK, "agreement_id": "LINK1"}, {INITIAL_ID: NETWORK, LINK_ID: "LINK1"}),
        ({"network_reference": NETWORK, "agreement_id": "LINK1", "transaction_link": "tlid"},
         {INITIAL_ID: NETWORK, LINK_ID: "tlid"}),
        ({"network_reference": "migrated-1"},
         {INITIAL_ID: "migrated-1", "recurringMigration.connectorTxId1": "migrated-1"}),
        ({"network_reference": "", "transaction_link": "tlid"}, {INITIAL_ID: "ours", LINK_ID: "tlid"}),
    ],
)  # fmt: skip
def test_a_network_is_told_its_own_reference_and_one_that_was_brought_as_it_is(
    values: dict[str, str], told: dict[str, str]
) -> None:
    agreement = Agreement(reference="ours", **values)
    assert use_agreement(agreement, parameters_of()).scheme_references == told


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("ids", "sent", "missing"),
    [
        (Ids.NONE, {}, [INITIAL_ID]),
        (Ids.NONE, {LINK_ID: "LINK1"}, []),
        (Ids.NONE, {INITIAL_ID: REFERENCE}, []),
        (Ids.BOTH, {}, [INITIAL_ID, LINK_ID]),
        (Ids.BOTH, {LINK_ID: "LINK1"}, [INITIAL_ID]),
        (Ids.BOTH, {INITIAL_ID: REFERENCE}, [LINK_ID]),
        (Ids.BOTH, {INITIAL_ID: REFERENCE, LINK_ID: "LINK1"}, []),
        (Ids.ONLY, {}, [LINK_ID]),
        (Ids.ONLY, {INITIAL_ID: REFERENCE}, [LINK_ID]),
        (Ids.ONLY, {LINK_ID: "LINK1"}, []),
    ],
)
def test_the_ids_that_a_channel_wants_are_told_where_they_are_missing(
    shop: Shop, agreements: dict[str, Agreement], ids: Channel.AgreementIds, sent: dict[str, str], missing: list[str]
) -> None:
    parameters = Parameters(values=parameters_of(**MIT).values | sent)
    if not missing:
        assert resolve_agreement(parameters, "DB", channel_of(shop, ids), None) is not None
        return
    with pytest.raises(RequestRefusedError) as refused:
        resolve_agreement(parameters, "DB", channel_of(shop, ids), None)
    message = "is required when the merchant initiates the payment: the INITIAL payment's answer carries it"
    assert refused.value.code == "200.300.404"
    assert refused.value.errors == tuple(ParameterError(name=name, message=message, known=True) for name in missing)


UNKNOWN = "names no agreement of this entity: make an INITIAL payment first"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("sent", "name", "value", "message", "code"),
    [
        ({INITIAL_ID: "4200000000000000"}, INITIAL_ID, "420000******0000", UNKNOWN, "700.100.100"),
        ({INITIAL_ID: UUID(int=3).hex}, INITIAL_ID, UUID(int=3).hex, UNKNOWN, "700.100.100"),
        ({INITIAL_ID: UUID(int=9).hex}, INITIAL_ID, UUID(int=9).hex, UNKNOWN, "700.100.100"),
        ({LINK_ID: "LINK2"}, LINK_ID, "LINK2", UNKNOWN, "700.100.100"),
        ({INITIAL_ID: REFERENCE, LINK_ID: "LINK2"}, LINK_ID, "LINK2",
         "is of another agreement than initialTransactionId", "700.100.100"),
        ({INITIAL_ID: "mine"}, INITIAL_ID, "mine", "names a payment that is not an approved INITIAL one",
         "700.400.590"),
        ({INITIAL_ID: "theirs"}, INITIAL_ID, "theirs", UNKNOWN, "700.100.100"),
    ],
)  # fmt: skip
def test_a_reference_that_names_no_agreement_of_the_entity_is_refused_with_its_masked_value(
    shop: Shop,
    stranger: Shop,
    agreements: dict[str, Agreement],
    sent: dict[str, str],
    name: str,
    value: str,
    message: str,
    code: str,
) -> None:
    """``mine``, ``theirs``: a plain payment of the entity, and of another merchant."""
    plain = {of: who.api.pay().id for of, who in (("mine", shop), ("theirs", stranger)) if of in sent.values()}
    sent = {each: plain.get(text, text) for each, text in sent.items()}
    parameters = Parameters(values=parameters_of(**MIT).values | sent)
    with pytest.raises(RequestRefusedError) as refused:
        resolve_agreement(parameters, "DB", channel_of(shop), None)
    value = plain.get(value, value)
    assert refused.value.code == code
    assert refused.value.errors == (ParameterError(name=name, value=value, message=message, code=code, known=True),)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("agreed", "sent", "good"),
    [("LINK1", "LINK1", True), ("LINK1", None, True), ("", "LINK2", True), ("LINK1", "LINK2", False)],
)
def test_both_ids_name_one_agreement_where_both_were_agreed(
    shop: Shop, agreements: dict[str, Agreement], agreed: str, sent: str | None, good: bool
) -> None:
    Agreement.objects.update(agreement_id=agreed)
    named = {INITIAL_ID: REFERENCE} | ({LINK_ID: sent} if sent else {})
    parameters = Parameters(values=parameters_of(**MIT).values | named)
    if good:
        found = resolve_agreement(parameters, "DB", channel_of(shop), None)
        assert found is not None
        assert found.agreement == agreements["new"]
    else:
        with pytest.raises(RequestRefusedError):
            resolve_agreement(parameters, "DB", channel_of(shop), None)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sent", [{INITIAL_ID: "elsewhere"}, {LINK_ID: "LINK2"}, {INITIAL_ID: UUID(int=9).hex}], ids=str
)
@pytest.mark.parametrize("registration", [None, THEIRS])
def test_a_channel_that_takes_references_of_others_makes_it_under_none_of_ours(
    shop: Shop, agreements: dict[str, Agreement], sent: dict[str, str], registration: UUID | None
) -> None:
    """A payment of ours that is no INITIAL one is refused all the same."""
    channel = channel_of(shop, external=True)
    parameters = Parameters(values=parameters_of(**MIT).values | sent)
    assert resolve_agreement(parameters, "DB", channel, registration) == use(merchant_initiated=True)
    plain = shop.api.pay().id
    with pytest.raises(RequestRefusedError, match=r"700\.400\.590"):
        resolve_agreement(parameters_of(**MIT, initialTransactionId=plain), "DB", channel, registration)


# --- means without an agreement -------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "brand", "told", "network"),
    [
        ({"networkReference": NETWORK}, "MASTER", {INITIAL_ID: NETWORK}, "MASTER"),
        ({"networkReference": NETWORK, "transactionLink": "tlid"}, "MASTER",
         {INITIAL_ID: NETWORK, LINK_ID: "tlid"}, "MASTER"),
        ({"transactionLink": "tlid"}, "MASTER", {LINK_ID: "tlid"}, "MASTER"),
        ({}, "VISA", {}, "VISA"),
        # A wallet's network is that of the card in it.
        ({"networkReference": NETWORK, "card": {"bin": "545454"}}, "APPLEPAY", {INITIAL_ID: NETWORK}, "MASTER"),
    ],
)  # fmt: skip
def test_stored_means_without_an_agreement_have_the_reference_of_the_payment_that_made_them(
    shop: Shop, answer: dict[str, Any], brand: str, told: dict[str, str], network: str
) -> None:
    """Another registration's says nothing."""
    made = [shop.api.pay(createRegistration="true") for _ in range(2)]
    Payment.objects.filter(pk=made[0].id).update(answer=answer, brand=brand)
    Payment.objects.filter(pk=made[1].id).update(answer={"networkReference": "other"}, brand="AMEX")
    stored = UUID(made[0].body["registrationId"])
    found = resolve_agreement(parameters_of(**MIT), "DB", channel_of(shop), stored)
    assert found == use(merchant_initiated=True, scheme_references=told, brand=network)
    assert Registration.objects.get(pk=stored).payment == UUID(made[0].id)


@pytest.mark.django_db
def test_stored_means_whose_payment_is_gone_have_no_reference(shop: Shop) -> None:
    found = resolve_agreement(parameters_of(**MIT), "DB", channel_of(shop), THEIRS)
    assert found == use(merchant_initiated=True)
