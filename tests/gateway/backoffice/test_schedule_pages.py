"""Schedules in the back office: next runs, what cancelling means, and the API's verbs by hand."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import translation

from gateway.backoffice.access import independence
from gateway.backoffice.kit import list_sums
from gateway.backoffice.schedules import schedule_pages
from gateway.backoffice.schedules.plan_words import describe_plan
from gateway.models import AuditEntry, Notification, Payment, Role
from gateway.scheduling.models import Job, JobRun
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.subscriptions import started, step, store_card

pytestmark = pytest.mark.django_db
LIST = "/admin/scheduling/job/"
MONTHLY = "0 0 6 1 * ? *"
NOTICE = {"job__noticeUnit": "MONTH", "job__noticeNumber": "2"}


@pytest.fixture
def clara(shop: Shop) -> Client:
    return signed_in(person("clara", Role.CLERK, shop.merchant))


def job_of(shop: Shop, **more: str) -> Job:
    answer = started(shop.api, store_card(shop.api), job__expression=MONTHLY, **more)
    return Job.objects.get(pk=answer.id)


def do(client: Client, job: Job, verb: str, **form: str) -> str:
    """The answer's page, '' when it was done."""
    answer = client.post(f"{LIST}{job.pk}/do/{verb}/", form)
    assert answer.status_code in (200, 302), answer.status_code
    job.refresh_from_db()
    return answer.content.decode()


@pytest.mark.parametrize(
    ("expression", "english", "german"),
    [
        ("0 0 6 1 * ? *", "monthly on day 1, 06:00", "monatlich am Tag 1, 06:00"),
        ("0 30 8 ? * MON *", "weekly on Monday, 08:30", "wöchentlich: Montag, 08:30"),
        ("0 30 8 ? 1 1 *", "on Sunday in January, 08:30", "Sonntag im Januar, 08:30"),
        (
            "0 0 6,18 ? * SUN,FRI *",
            "weekly on Friday, Sunday, 06:00, 18:00",
            "wöchentlich: Freitag, Sonntag, 06:00, 18:00",
        ),
        ("0 0 6 L * ? *", "monthly on the last day, 06:00", "monatlich am letzten Tag, 06:00"),
        ("0 0 6 L 2 ? *", "on the last day of February, 06:00", "am letzten Tag im Februar, 06:00"),
        ("5 0 6 * * ? *", "daily, 06:00:05", "täglich, 06:00:05"),
        ("0 0 6 * 7 ? *", "daily in July, 06:00", "täglich im Juli, 06:00"),
        ("0 0 6 1,15 3 ? 2031", "on day 1, 15 of March 2031, 06:00", "am Tag 1, 15 im März 2031, 06:00"),
        ("0 0 6 ? * 6#3 *", "", ""),
        ("0 0 6 ? * FRIL *", "", ""),
        ("0 0 6 L-3 * ? *", "", ""),
        ("0 0 6 15W * ? *", "", ""),
        ("0 0 6 LW * ? *", "", ""),
        ("0 */5 * * * ? *", "", ""),
        ("0 0 6 */2 * ? *", "", ""),
        ("nonsense", "", ""),
    ],
)
def test_a_plan_is_told_in_words_where_it_has_plain_ones(expression: str, english: str, german: str) -> None:
    assert describe_plan(expression) == english
    with translation.override("de"):
        assert describe_plan(expression) == german


def test_a_schedule_is_named_by_its_times_and_shows_the_card_it_charges(clara: Client, shop: Shop) -> None:
    """Found in use: the list, the heading and the history read "0 0 6 1 * ? *"."""
    job = job_of(shop)
    for address in (LIST, f"{LIST}{job.pk}/change/", f"{LIST}{job.pk}/history/", f"{LIST}{job.pk}/do/cancel/"):
        page = clara.get(address).content.decode()
        assert "monthly on day 1, 06:00" in page, address
        assert "(ACTIVE)" not in page, address
    assert "VISA 420000 •••• 0000" in clara.get(LIST).content.decode()


def test_the_list_of_schedules_is_summed_by_currency(
    clara: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is filtered, on each of its pages; not a list that is too long."""
    jobs = [job_of(shop, amount=amount) for amount in ("1200.00", "15.50")]
    job_of(shop, amount="7.00", currency="USD")
    do(clara, jobs[1], "cancel")
    monkeypatch.setattr(schedule_pages, "SCHEDULE_PAGE_ROWS", 1)
    page = clara.get(LIST).content.decode()
    assert "2 schedules, each charged once</dt><dd>1,215.50 <small>EUR" in page
    assert "1 schedule, charged once</dt><dd>7.00 <small>USD" in page
    older = clara.get(LIST, {"before": clara.get(LIST).context["next"]}).content.decode()
    assert "1,215.50 <small>EUR" in older
    page = clara.get(f"{LIST}?state=ENDED").content.decode()
    assert "1 schedule, charged once</dt><dd>15.50 <small>EUR" in page
    assert "USD" not in page
    monkeypatch.setattr(list_sums, "MAX_SUMMED_ROWS", 2)
    assert "charged once" not in clara.get(LIST).content.decode()


def test_a_schedules_page_shows_ten_next_runs_and_links_what_was_charged(clara: Client, shop: Shop) -> None:
    job = job_of(shop)
    step(shop.merchant)
    run = JobRun.objects.get(job=job)
    page = clara.get(f"{LIST}{job.pk}/change/").content.decode()
    assert page.count("06:00:00</td>") >= 10
    assert f"/admin/gateway/payment/{run.payment}/change/" in page
    listed = clara.get(LIST, {"q": Payment.objects.get(pk=run.payment).pk.hex}).content.decode()
    assert f"{LIST}{job.pk}/" in listed
    assert "Paid" in listed


def test_cancelling_says_first_when_it_ends_and_what_is_still_charged(clara: Client, shop: Shop) -> None:
    """Cancel, with its notice, through the API's own verb."""
    job = job_of(shop, **NOTICE)
    page = clara.get(f"{LIST}{job.pk}/do/cancel/").content.decode()
    assert page.count("UTC</time>: 9.90 EUR") == 2
    assert "19.80 EUR" in page
    do(clara, job, "cancel")
    assert (job.state, job.reason) == ("ENDING", "NOTICE")
    step(shop.merchant)
    step(shop.merchant)
    step(shop.merchant)
    job.refresh_from_db()
    assert job.state == "ENDED"
    assert JobRun.objects.filter(job=job, state="PAID").count() == 2
    entry = AuditEntry.objects.get(subject="job", action="cancel")
    assert (entry.actor, entry.before["state"], entry.after["state"]) == ("clara", "ACTIVE", "ENDING")


def test_a_paused_schedule_charges_nobody_and_goes_on_when_it_is_resumed(clara: Client, shop: Shop) -> None:
    job = job_of(shop)
    do(clara, job, "pause")
    assert (job.state, job.reason, job.next_at) == ("SUSPENDED", "PAUSED", None)
    assert Payment.objects.filter(chain=job.pk, payment_type="RS").count() == 1
    assert Notification.objects.filter(kind="SCHEDULE").count() == 2
    assert do(clara, job, "pause") != ""
    do(clara, job, "resume")
    assert (job.state, job.reason) == ("ACTIVE", "")
    assert job.next_at is not None
    step(shop.merchant)
    assert JobRun.objects.filter(job=job).count() == 1


def test_a_reschedule_changes_what_the_form_changed_and_names_what_is_wrong(clara: Client, shop: Shop) -> None:
    job = job_of(shop)
    do(clara, job, "reschedule", amount="12,50", expression="0 0 7 1 * ? *")
    assert (str(job.amount), job.expression) == ("12.50", "0 0 7 1 * ? *")
    sequence = job.sequence
    for form, said in (
        ({"amount": "x"}, "decimals"),
        ({"amount": "1e9999999"}, "decimals"),
        ({"expression": "daily"}, "expression"),
        ({"expression": "0 0 6 1 1 ? 2020"}, "expression"),
        ({"registrationId": "0" * 32}, "registrationId"),
        ({}, "Nothing"),
    ):
        assert said in do(clara, job, "reschedule", **form), form
    assert job.sequence == sequence


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.AUDITOR])
def test_who_moves_no_money_looks_only(role: Role, shop: Shop) -> None:
    """docs/decisions/0029."""
    job, client = job_of(shop), signed_in(person("somebody", role, shop.merchant))
    assert client.get(f"{LIST}{job.pk}/change/").status_code == 200
    for verb in ("cancel", "pause", "resume", "reschedule"):
        assert client.post(f"{LIST}{job.pk}/do/{verb}/").status_code == 403


@pytest.mark.parametrize("limits", [{"four_eyes_above": "1000.00"}, {"four_eyes_day": "1000.00"}])
def test_who_has_a_limit_changes_no_schedule(limits: dict[str, str], shop: Shop) -> None:
    """docs/decisions/0053: its charges count towards nobody's limits. Notice, pausing and resuming stay."""
    job = job_of(shop)
    dan = signed_in(person("dan", Role.CLERK, shop.merchant, **limits))
    assert "somebody without a limit" in do(dan, job, "reschedule", amount="12.50")
    assert str(job.amount) == "9.90"
    assert do(dan, job, "pause") == ""
    assert do(dan, job, "resume") == ""
    assert do(dan, job, "cancel") == ""
    assert job.state == "ENDED"


def test_who_was_made_by_somebody_with_a_limit_changes_no_schedule(shop: Shop) -> None:
    """docs/decisions/0053: the one may be acting as the other, over any number of users between."""
    job = job_of(shop)
    limited = person("limited", Role.MANAGER, shop.merchant, four_eyes_above="50.00")
    between, free = (person(name, Role.MANAGER, shop.merchant) for name in ("between", "free"))
    independence.record_handling(limited, between, "create")
    independence.record_handling(between, free, "password link")
    assert "somebody without a limit" in do(signed_in(free), job, "reschedule", amount="12.50")
    assert str(job.amount) == "9.90"


def test_another_merchants_schedule_looks_unknown(clara: Client, stranger: Shop) -> None:
    theirs = job_of(stranger)
    for path in ("change/", "do/cancel/", "do/pause/"):
        assert clara.get(f"{LIST}{theirs.pk}/{path}").status_code == 404
        assert clara.post(f"{LIST}{theirs.pk}/{path}").status_code == 404
    assert f"{LIST}{theirs.pk}" not in clara.get(LIST, {"q": theirs.pk.hex}).content.decode()
