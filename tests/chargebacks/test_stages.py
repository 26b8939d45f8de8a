"""Stages of a dispute: deadlines, codes and ids by scheme, and the money of each stage. Source: docs/decisions/0065."""

from __future__ import annotations

import io
from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from chargebacks import cases, evidence, ledger, stages
from chargebacks.models import Chargeback
from chargebacks.stages import DisputeStage
from chargebacks.states import DisputeTransitionError
from gateway.core import clock, result_codes
from gateway.models import AcquirerAccount, Merchant, Payment, ThreeDSecureConfiguration
from reporting.models import ClearingInstitute, Finding, SettlementRecord
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, HEADER, csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db
LIST = "/admin/chargebacks/chargeback/"
PDF = b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n%%EOF\n"
WIDE = (*HEADER, "SchemeReasonCode", "SchemeCaseId", "AcquirerReferenceNumber", "DisputeStage")
ARN = "74537604221222132710572"


def paid(shop: Shop, country: str | None = "DE", **more: str) -> Payment:
    return payment_of(shop.api.pay(amount="100.00", merchant__country=country, **more).id)


def fresh(case: Chargeback) -> Chargeback:
    return Chargeback.objects.select_related("merchant").get(pk=case.pk)


def days(case: Chargeback) -> int:
    return (case.due_at.date() - case.opened_at.date()).days


def chargeback(payment: Payment, number: int, **more: str) -> dict[str, str]:
    return line(payment, ReconciliationType="CHARGEBACK", SettlementTxId=f"D-{number}", **more)


def reversal(payment: Payment, number: int) -> dict[str, str]:
    return line(payment, ReconciliationType="CHARGEBACK REVERSAL", SettlementTxId=f"R-{number}")


def test_every_code_of_a_scheme_means_a_reason_of_the_table() -> None:
    for code, reason in stages.SCHEME_REASONS.items():
        assert result_codes.RESULT_CODES[reason.result].group == "chargeback", code
        assert reason.flow == ("" if reason.scheme != stages.VISA else reason.flow), code
    for rule in stages.STAGE_RULES.values():
        assert 0 < rule.answer_days < rule.scheme_days
        assert rule.source


@pytest.mark.parametrize(
    "brand, code, stage, expected",
    [
        ("VISA", "13.1", "FIRST", 12),
        ("VISA", "10.4", "FIRST", 12),
        ("VISA", "13.1", "PRE_ARBITRATION", 12),
        ("VISA", "", "ARBITRATION", 5),
        ("MASTER", "4853", "FIRST", 30),
        ("MASTER", "4853", "PRE_ARBITRATION", 20),
        ("DISCOVER", "AA", "FIRST", 14),
        ("DINERS", "", "PRE_ARBITRATION", 20),
        ("DISCOVER", "", "ARBITRATION", 14),
        ("MIR", "", "FIRST", 14),
    ],
)
def test_days_are_those_of_the_scheme(brand: str, code: str, stage: str, expected: int) -> None:
    assert stages.find_stage_rule(brand, code, stage, "DE").answer_days == expected


@pytest.mark.parametrize(("stage", "days_left"), [("FIRST", 6), ("PRE_ARBITRATION", 6), ("ARBITRATION", 5)])
@pytest.mark.parametrize("country", ["US", "CA", ""])
def test_visas_days_are_fewer_in_north_america(country: str, stage: str, days_left: int) -> None:
    """9 of the network's; also where nothing says the country, for a late answer is a lost dispute."""
    rule = stages.find_stage_rule("VISA", "13.1", stage, country)
    assert (rule.answer_days, rule.scheme_days) == (days_left, 10 if stage == "ARBITRATION" else 9)
    assert stages.find_stage_rule("MASTER", "4853", "FIRST", country).answer_days == 30


@pytest.mark.parametrize(
    ("sent", "configured", "account", "left"),
    [
        ("US", "DE", "DE", 6),
        ("DE", "US", "", 12),
        ("", "US", "DE", 6),
        ("", "FR", "", 12),
        ("", "", "AT", 12),
        ("", "", "", 6),
    ],
)
def test_a_case_has_the_days_of_its_merchants_country(
    shop: Shop, sent: str, configured: str, account: str, left: int
) -> None:
    """As sent with the payment, else as 3-D Secure has it, else the account; and again as a stage is opened."""
    payment = paid(shop, sent or None)
    ThreeDSecureConfiguration.objects.create(channel=shop.channel, merchant_country=configured)
    AcquirerAccount.objects.create(
        channel=shop.channel,
        connector=payment.connector,
        acquirer_merchant_id=payment.acquirer_merchant_id,
        settings={"country": account},
    )
    facts = cases.SchemeFacts(reason="13.1")
    case = ledger.record_chargeback(payment, payment.amount, reason="000.100.221", by=BY, scheme=facts)
    assert days(case) == left
    Chargeback.objects.filter(pk=case.pk).update(state="SUBMITTED")
    case = fresh(case)
    cases.escalate_dispute(case, BY, stage=DisputeStage.PRE_ARBITRATION)
    assert days(fresh(case)) == left


def test_a_wallets_dispute_is_one_of_the_cards_scheme(shop: Shop) -> None:
    """Also of a capture, whose card is its authorization's."""
    proof = {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}
    sent = {"paymentBrand": "WALLET1", "wallet1.source": "web", "card.cvv": None, **proof}
    held = shop.api.pay(amount="100.00", paymentType="PA", **sent)
    captured = payment_of(shop.api.follow(held.id, "CP", "100.00").id)
    facts = cases.SchemeFacts(reason="10.4")
    case = ledger.record_chargeback(captured, Decimal(100), reason="000.100.220", by=BY, scheme=facts)
    assert (captured.brand, case.brand, days(case)) == ("WALLET1", "VISA", 6)
    assert stages.choose_next_stage(case.brand, case.scheme_reason, case.stage) == DisputeStage.ARBITRATION


@pytest.mark.parametrize(("brand", "days"), [("DISCOVER", 5), ("DINERS", 5), ("VISA", 14), ("AMEX", 14), ("", 14)])
def test_an_inquiry_without_a_day_has_the_days_of_its_scheme(brand: str, days: int) -> None:
    assert stages.find_inquiry_days(brand) == days


def test_the_settings_own_days_are_of_first_chargebacks(settings) -> None:  # type: ignore[no-untyped-def]
    settings.GATEWAY_CHARGEBACK_ANSWER_DAYS = 9
    assert stages.find_stage_rule("VISA", "", "FIRST").answer_days == 9
    assert stages.find_stage_rule("VISA", "", "PRE_ARBITRATION", "DE").answer_days == 12


@pytest.mark.parametrize(
    "code, result",
    [("10.4", "220"), ("13.1", "221"), ("4837", "220"), ("4853", "206"), ("F29", "220"), ("9999", "200")],
)
def test_a_line_with_a_schemes_code_is_taken_in(shop: Shop, code: str, result: str) -> None:
    payment = paid(shop)
    row = chargeback(payment, 1, ReasonCode=code, SchemeCaseId="9001234567", AcquirerReferenceNumber=ARN)
    file = take_in(csv([row], header=WIDE), institute())
    assert file.faults == 0
    case, record = Chargeback.objects.get(), SettlementRecord.objects.get()
    assert (case.reason_code, case.scheme_reason) == (f"000.100.{result}", code)
    assert (case.scheme_case, case.arn, case.stage) == ("9001234567", ARN, "FIRST")
    assert (record.reason_code, record.scheme_reason, record.arn) == (f"000.100.{result}", code, ARN)


@pytest.mark.parametrize(("ago", "left"), [(0, 12), (3, 9), (30, 1), (-4, 12)])
def test_the_schemes_days_count_from_the_day_of_its_line(shop: Shop, ago: int, left: int) -> None:
    """A file that comes three days late gives three days less."""
    day = clock.real_now().date() - timedelta(days=ago)
    facts = cases.SchemeFacts(reason="10.4", day=day)
    case = ledger.record_chargeback(paid(shop), Decimal(100), by=BY, scheme=facts)
    assert days(case) == left


@pytest.mark.parametrize(
    ("theirs", "ours", "due"),
    [
        ("Europe/Berlin", "Europe/Berlin", "2030-01-31T16:00:00+00:00"),
        ("Europe/Berlin", "America/Los_Angeles", "2030-01-31T01:00:00+00:00"),  # the 30th: on the 31st it is too late
        ("Europe/Berlin", "Asia/Tokyo", "2030-01-31T08:00:00+00:00"),
        ("America/Los_Angeles", "Pacific/Kiritimati", "2030-01-31T03:00:00+00:00"),
        ("Pacific/Kiritimati", "Pacific/Pago_Pago", "2030-01-31T04:00:00+00:00"),
        ("", "America/Los_Angeles", "2030-02-01T01:00:00+00:00"),
    ],
)
def test_the_acquirers_day_ends_in_its_own_zone(shop: Shop, theirs: str, ours: str, due: str) -> None:
    """docs/decisions/0155: an answer at 17:00 in Los Angeles is there at two in the night in Berlin."""
    Merchant.objects.update(time_zone=ours)
    facts = cases.SchemeFacts(reason="10.4", zone=theirs)
    case = ledger.record_chargeback(paid(shop), Decimal(100), by=BY, respond_by=date(2030, 1, 31), scheme=facts)
    assert case.due_at == datetime.fromisoformat(due)


@pytest.mark.parametrize(
    ("now", "lost"),
    [("2033-01-31T07:00:00+00:00", 0), ("2033-01-31T22:59:00+00:00", 0), ("2033-01-31T23:30:00+00:00", 1)],
)
@pytest.mark.parametrize("ahead", [0, 40])
def test_a_case_is_open_until_the_acquirers_day_ends(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, now: str, lost: int, ahead: int
) -> None:
    """The merchant's last 17:00 before it was past, and the case was lost at once. The clock of a merchant may be
    ahead, the acquirer's is not."""
    Merchant.objects.update(time_zone="America/Los_Angeles", clock_offset=timedelta(days=ahead))
    payment, at = paid(shop), datetime.fromisoformat(now)
    monkeypatch.setattr(clock, "real_now", lambda: at)
    facts = cases.SchemeFacts(reason="10.4", zone="Europe/Berlin")
    case = ledger.record_chargeback(payment, Decimal(100), by=BY, respond_by=date(2033, 1, 31), scheme=facts)
    end = datetime.fromisoformat("2033-01-31T23:00:00+00:00")
    assert case.due_at == max(at, end) + timedelta(days=ahead)
    assert cases.expire_overdue_cases() == lost


@pytest.mark.parametrize(("zone", "left"), [("Pacific/Kiritimati", 9), ("UTC", 10)])
def test_the_schemes_days_are_the_merchants_where_nobody_names_a_zone(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, zone: str, left: int
) -> None:
    Merchant.objects.update(time_zone=zone)
    payment = paid(shop)
    monkeypatch.setattr(clock, "real_now", lambda: datetime.fromisoformat("2033-01-30T12:00:00+00:00"))
    facts = cases.SchemeFacts(reason="10.4", day=date(2033, 1, 28))
    case = ledger.record_chargeback(payment, Decimal(100), by=BY, scheme=facts)
    local = [at.astimezone(ZoneInfo(zone)).date() for at in (case.opened_at, case.due_at)]
    assert (local[1] - local[0]).days == left


def test_a_line_is_counted_from_its_own_day(shop: Shop) -> None:
    payment = paid(shop)
    Payment.objects.filter(pk=payment.pk).update(created_at=payment.created_at - timedelta(days=5))
    payment.refresh_from_db()
    take_in(csv([chargeback(payment, 1, ReasonCode="10.4")], header=WIDE), institute())
    assert days(Chargeback.objects.get()) == 7


def test_an_institutes_own_table_comes_first(shop: Shop) -> None:
    payment = paid(shop)
    call_command("clearing_institute", key="own", connector=["simulator"], reason_code=["FR1=000.100.230"])
    take_in(csv([chargeback(payment, 1, ReasonCode="FR1")]), ClearingInstitute.objects.get(key="own"))
    assert Chargeback.objects.get().reason_code == "000.100.230"
    with pytest.raises(CommandError, match="--reason-code"):
        call_command("clearing_institute", key="bad", reason_code=["FR1=220"])


@pytest.mark.parametrize("code, reason", [("FR2", "220"), ("FR4", "200"), ("F22", "233"), ("M49", "210")])
def test_amex_programmes_are_named_by_their_code(shop: Shop, code: str, reason: str) -> None:
    """A code of the fraud programme is a fraud dispute, with its evidence; an immediate chargeback may have any reason.
    https://www.chargebackexpertz.com/american-express-reason-codes/."""
    take_in(csv([chargeback(paid(shop), 1, ReasonCode=code)]), institute())
    case = Chargeback.objects.get()
    assert (case.reason_code, case.scheme_reason) == (f"000.100.{reason}", code)
    assert stages.describe_scheme_reason(code) != code


@pytest.mark.parametrize("name, value", [("AcquirerReferenceNumber", "12"), ("DisputeStage", "THIRD")])
def test_a_faulty_column_names_itself(shop: Shop, name: str, value: str) -> None:
    file = take_in(csv([chargeback(paid(shop), 1, **{name: value})], header=WIDE), institute())
    assert file.errors.get().column == name


def test_money_follows_each_stage_and_each_can_be_answered(shop: Shop) -> None:
    payment, of = paid(shop), institute()
    take_in(csv([chargeback(payment, 1, ReasonCode="13.1"), reversal(payment, 1)]), of)
    take_in(csv([chargeback(payment, 2, SchemeCaseId="PA-1")], header=WIDE), of)
    second = Chargeback.objects.select_related("merchant").get(stage="PRE_ARBITRATION")
    assert (second.state, second.scheme_reason, second.scheme_case) == ("OPEN", "13.1", "PA-1")
    evidence.add_evidence(second, "delivery", "a.pdf", io.BytesIO(PDF), BY)
    cases.submit_evidence(second, BY)
    take_in(csv([reversal(payment, 2)]), of)
    assert (fresh(second).state, fresh(second).recovered) == ("WON", Decimal("100.00"))
    take_in(csv([chargeback(payment, 3)]), of)
    third = Chargeback.objects.get(stage="ARBITRATION")
    assert (third.state, third.previous_id, days(third)) == ("OPEN", second.pk, 5)
    kinds = list(Payment.objects.filter(chain=payment.id).order_by("id").values_list("payment_type", flat=True))
    assert kinds == ["DB", "CB", "CR", "CB", "CR", "CB"]
    assert SettlementRecord.objects.filter(chargeback=None).count() == 0
    assert not Finding.objects.filter(kind__in=("NOT_BOOKED", "TWICE")).exists()


def test_a_stage_without_money_reopens_the_case_and_its_money_follows(shop: Shop) -> None:
    payment = paid(shop)
    case = ledger.record_chargeback(payment, Decimal("100.00"), reason="000.100.221", by=BY)
    ledger.record_chargeback_reversal(case, by=BY)
    cases.escalate_dispute(fresh(case), BY, stage=DisputeStage.PRE_ARBITRATION, scheme_case="PA-7")
    opened = fresh(case)
    assert (opened.state, opened.stage, opened.closed_at) == ("OPEN", "PRE_ARBITRATION", None)
    assert (opened.scheme_case, days(opened), opened.reminders.count()) == ("PA-7", 12, 3)
    with pytest.raises(DisputeTransitionError):
        cases.escalate_dispute(opened, BY, stage=DisputeStage.FIRST)
    cases.accept_dispute(opened, BY, "")
    taken = ledger.record_chargeback(payment, Decimal("100.00"), by=BY)
    assert (taken.state, taken.stage, taken.previous_id) == ("LOST", "PRE_ARBITRATION", case.pk)


def test_a_stage_without_money_is_won_without_money(shop: Shop) -> None:
    case = ledger.record_chargeback(paid(shop), Decimal("100.00"), by=BY)
    with pytest.raises(DisputeTransitionError):
        cases.win_dispute(fresh(case), BY, "")
    ledger.record_chargeback_reversal(case, by=BY)
    cases.escalate_dispute(fresh(case), BY, stage=DisputeStage.PRE_ARBITRATION)
    cases.win_dispute(fresh(case), BY, "")
    assert (fresh(case).state, Payment.objects.filter(payment_type="CR").count()) == ("WON", 1)


@pytest.mark.parametrize(
    ("brand", "code", "stage", "answer"),
    [
        ("VISA", "10.4", "FIRST", "pre-arbitration"),
        ("VISA", "10.4", "ARBITRATION", "arbitration case"),
        ("VISA", "13.1", "FIRST", "dispute response"),
        ("VISA", "13.1", "PRE_ARBITRATION", "pre-arbitration response"),
        ("MASTER", "4853", "FIRST", "second presentment"),
        ("MIR", "", "FIRST", "representment"),
    ],
)
def test_the_answer_is_filed_as_what_the_schemes_flow_says(brand: str, code: str, stage: str, answer: str) -> None:
    assert stages.find_stage_rule(brand, code, stage).answer == answer


@pytest.mark.parametrize(
    ("told", "result"),
    [
        ("", "206"),
        ("Cardholder Dispute - Goods or Services Not Provided", "221"),
        ("GOODS OR SERVICES WERE EITHER NOT AS DESCRIBED OR DEFECTIVE", "223"),
        ("Credit Not Processed", "225"),
        ("Issuer Dispute of a Recurring Transaction", "205"),
        ("Credit Posted as a Purchase", "229"),
    ],
)
def test_mastercards_cardholder_dispute_means_what_its_condition_says(told: str, result: str) -> None:
    found = stages.resolve_scheme_reason("4853", told)
    assert found is not None
    assert found.result == f"000.100.{result}"
    other = stages.resolve_scheme_reason("13.1", told)
    assert other is not None
    assert other.result == "000.100.221"


def test_visas_allocated_disputes_have_no_pre_arbitration_of_the_issuer() -> None:
    assert stages.choose_next_stage("VISA", "10.4", "FIRST") == DisputeStage.ARBITRATION
    assert stages.choose_next_stage("VISA", "13.1", "FIRST") == DisputeStage.PRE_ARBITRATION
    assert stages.choose_next_stage("MASTER", "4837", "FIRST") == DisputeStage.PRE_ARBITRATION


def test_a_clerk_enters_and_sees_the_schemes_names_and_opens_the_next_stage(shop: Shop) -> None:
    max_: Client = signed_in(person("max", "manager", shop.merchant))
    payment = paid(shop)
    form = {"seen": "0", "amount": "100.00", "reason": "000.100.200", "scheme_reason": "13.1", "arn": "x"}
    assert "ARN: 11 to 24" in max_.post(f"{LIST}by-hand/{payment.pk}/", form).content.decode()
    max_.post(f"{LIST}by-hand/{payment.pk}/", {**form, "arn": ARN, "scheme_case": "C-1"})
    case = Chargeback.objects.get()
    assert case.reason_code == "000.100.221"
    page = max_.get(f"{LIST}{case.pk}/change/").content.decode()
    for shown in (ARN, "C-1", "13.1 Merchandise or services not received", "first chargeback"):
        assert shown in page
    ledger.record_chargeback_reversal(case, by=BY)
    assert "Open the stage" in max_.get(f"{LIST}{case.pk}/change/").content.decode()
    sent = {"verb": "escalate", "stage": "PRE_ARBITRATION", "respond_by": ""}
    max_.post(f"{LIST}{case.pk}/do/", sent)
    assert (fresh(case).state, fresh(case).stage) == ("OPEN", "PRE_ARBITRATION")
    max_.post(f"{LIST}{case.pk}/do/", {"verb": "decided_lost"})
    assert fresh(case).state == "LOST"
