"""Pages about shoppers' data: four eyes, rights, the report, the export. Source: docs/decisions/0102, 0053."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError, connection, transaction
from django.test import Client

from gateway.backoffice.kit.time_limit import PageTooSlowError, limit_page_time
from gateway.backoffice.personal_data import erasure_previews, erasure_request_pages, erasure_requests
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AuditEntry, ErasureRequest, Merchant, Payment, Role, UserHandling
from gateway.personal_data import people
from tests.support.database import places_of
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST, ASK = "/admin/gateway/erasurerequest/", "/admin/gateway/erasurerequest/ask/"
EMAIL = "zaphira.canary@shop.example"


@pytest.fixture
def paid(shop: Shop) -> str:
    answer = shop.api.pay(customer__givenName="Zaphira", customer__surname="Quixley", customer__email=EMAIL)
    assert answer.status == 200
    return answer.id


def form(shop: Shop, **changes: str) -> dict[str, str]:
    return {
        "merchant": shop.merchant.pk.hex,
        "kind": "email",
        "value": EMAIL,
        "reason": "letter of 3 May",
        "verb": "ask",
    } | changes


def asked(shop: Shop, by: User) -> ErasureRequest:
    answer = signed_in(by).post(ASK, form(shop))
    row = ErasureRequest.objects.get()
    assert answer.status_code == 302
    assert answer["Location"] == f"{LIST}{row.pk}/change/"
    return row


def decide(client: Client, row: ErasureRequest, verb: str) -> Any:
    return client.post(f"{LIST}{row.pk}/decide/", {"verb": verb}, follow=True)


def test_one_person_asks_and_a_second_one_erases(shop: Shop, paid: str) -> None:
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    assert Payment.objects.filter(request__customer__email=EMAIL).exists(), "nothing is erased yet"
    second = signed_in(person("second", Role.MANAGER, shop.merchant))
    page = second.get(f"{LIST}{row.pk}/change/").content.decode()
    assert "What would be erased" in page
    assert EMAIL in page, "who decides has to know about whom"
    decide(second, row, "approve")
    row.refresh_from_db()
    assert (row.state, row.value, row.decided_by_name) == ("DONE", "", "second")
    assert row.report["ids"]["gateway.Payment"] == [paid]
    assert places_of("Quixley", EMAIL) == set()
    page = second.get(f"{LIST}{row.pk}/change/").content.decode()
    assert "What stayed, and why" in page
    assert EMAIL not in page
    actions = list(AuditEntry.objects.filter(subject="erasurerequest").order_by("id").values_list("action", flat=True))
    assert [one for one in actions if one != "view"] == ["erasure asked", "erasure carried out"]


def test_nobody_approves_what_they_asked_for(shop: Shop, paid: str) -> None:
    asker = person("asker", Role.MANAGER, shop.merchant)
    row = asked(shop, asker)
    decide(signed_in(asker), row, "approve")
    row.refresh_from_db()
    assert row.state == "ASKED"
    with pytest.raises(IntegrityError), transaction.atomic():
        ErasureRequest.objects.update(state="DONE", value="", decided_by=asker)
    decide(signed_in(asker), row, "withdraw")
    row.refresh_from_db()
    assert (row.state, row.value) == ("WITHDRAWN", "")
    assert Payment.objects.filter(request__customer__email=EMAIL).exists()


def test_a_user_that_the_asker_made_is_no_second_person(shop: Shop, paid: str) -> None:
    asker = person("asker", Role.MANAGER, shop.merchant, four_eyes_above=1)
    made = person("made", Role.MANAGER, shop.merchant, four_eyes_above=1)
    UserHandling.objects.create(user=made, by=asker, action="create", at=clock.real_now())
    row = asked(shop, asker)
    page = decide(signed_in(made), row, "approve").content.decode()
    assert "may be the same person" in page
    row.refresh_from_db()
    assert row.state == "ASKED"


def test_a_clerk_does_not_decide_and_does_not_export(shop: Shop, paid: str) -> None:
    row = asked(shop, person("asker", Role.MANAGER, shop.merchant))
    clerk = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert decide(clerk, row, "approve").status_code == 403
    assert decide(clerk, row, "reject").status_code == 403
    assert clerk.post(ASK, form(shop, verb="export")).status_code == 403
    developer = signed_in(person("developer", Role.DEVELOPER, shop.merchant))
    assert developer.get(LIST).status_code == 403


def test_another_merchants_shoppers_are_out_of_reach(shop: Shop, stranger: Shop, paid: str) -> None:
    theirs = signed_in(person("theirs", Role.MANAGER, stranger.merchant))
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    for verb in ("ask", "export"):
        refused = theirs.post(ASK, form(shop, verb=verb), follow=True).content.decode()
        assert "names none of yours" in refused
    assert decide(theirs, row, "approve").status_code == 404
    assert theirs.post(ASK, form(stranger), follow=True).status_code == 200
    assert ErasureRequest.objects.count() == 1, "nothing is stored of the person there"


def test_a_rejected_request_forgets_whom_it_was_about(shop: Shop, paid: str) -> None:
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    second = signed_in(person("second", Role.MANAGER, shop.merchant))
    decide(second, row, "reject")
    row.refresh_from_db()
    assert (row.state, row.value, row.report) == ("REJECTED", "", {})
    assert "decided already" in decide(second, row, "approve").content.decode()
    assert Payment.objects.filter(request__customer__email=EMAIL).exists()


def test_what_is_open_is_told_to_who_asks_and_to_who_approves(shop: Shop, paid: str) -> None:
    asker = person("asker", Role.CLERK, shop.merchant)
    row = asked(shop, asker)
    held = shop.api.pay(
        paymentType="PA", customer__givenName="Zaphira", customer__surname="Quixley", customer__email=EMAIL
    )
    page = decide(signed_in(person("second", Role.MANAGER, shop.merchant)), row, "approve").content.decode()
    assert held.id in page
    row.refresh_from_db()
    assert (row.state, row.value) == ("ASKED", EMAIL)
    page = signed_in(asker).post(ASK, form(shop), follow=True).content.decode()
    assert held.id in page
    assert ErasureRequest.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"value": "nonsense"}, "is not an e-mail address"),
        ({"value": "no@shop.example"}, "Nothing is stored of this person"),
        ({"kind": "shoe size"}, "Choose by what the person is found"),
        ({"reason": "  "}, "Say why"),
        ({"kind": "payment", "value": "0" * 32}, "This merchant has none with the id"),
    ],
)
def test_bad_input_is_told(shop: Shop, paid: str, changes: dict[str, str], words: str) -> None:
    client = signed_in(person("asker", Role.CLERK, shop.merchant))
    assert words in client.post(ASK, form(shop, **changes), follow=True).content.decode()
    assert not ErasureRequest.objects.exists()


@pytest.mark.parametrize("merchant", ["", "no such shop", "0" * 32])
@pytest.mark.parametrize("verb", ["ask", "export"])
def test_an_unknown_merchant_is_refused(shop: Shop, paid: str, merchant: str, verb: str) -> None:
    client = signed_in(person("asker", Role.MANAGER, shop.merchant))
    answer = client.post(ASK, form(shop, merchant=merchant, verb=verb), follow=True)
    assert "names none of yours" in answer.content.decode()
    assert not ErasureRequest.objects.exists()


def test_a_merchant_is_typed_by_its_name_and_the_only_one_stands_there(shop: Shop, stranger: Shop, paid: str) -> None:
    client = signed_in(person("asker", Role.CLERK, shop.merchant))
    page = client.get(LIST)
    assert page.context["merchant"] == shop.merchant.name
    assert "<option" not in page.content.decode().split('id="merchant"')[1].split("</div>")[0]
    assert signed_in(User.objects.create_superuser("boss")).get(LIST).context["merchant"] == ""
    client.post(ASK, form(shop, merchant=shop.merchant.name))
    assert ErasureRequest.objects.get().merchant == shop.merchant


def test_the_full_address_is_for_those_who_ask_and_decide(shop: Shop, paid: str) -> None:
    asker = person("asker", Role.CLERK, shop.merchant)
    row = asked(shop, asker)
    readers = {Role.CLERK: False, Role.AUDITOR: False, Role.MANAGER: True}
    for role, full in readers.items():
        page = signed_in(person(f"reader-{role}", role, shop.merchant)).get(f"{LIST}{row.pk}/change/").content.decode()
        assert (EMAIL in page) is full, role
        assert full or row.shown in page
    assert EMAIL in signed_in(asker).get(f"{LIST}{row.pk}/change/").content.decode()


def carry_out(row: ErasureRequest) -> dict[str, Any]:
    out = StringIO()
    call_command("forget_shopper", "--request", row.pk.hex, stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure_requests, "MAX_ERASURE_PAGE_S", 0)


def test_what_takes_too_long_for_a_page_is_approved_there_and_erased_by_the_command(
    shop: Shop, paid: str, slow: None
) -> None:
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    assert row.report["atLeast"], "to count what would be erased takes as long"
    with pytest.raises(CommandError, match="waits for a second person"):
        carry_out(row)
    second = signed_in(person("second", Role.MANAGER, shop.merchant))
    page = decide(second, row, "approve").content.decode()
    assert f"forget_shopper --request {row.pk.hex}" in page
    assert "Approve and erase" not in page
    row.refresh_from_db()
    assert (row.state, row.value, row.decided_by_name) == ("APPROVED", EMAIL, "second")
    assert Payment.objects.filter(request__customer__email=EMAIL).exists()
    assert carry_out(row)["ids"]["gateway.Payment"] == [paid]
    row.refresh_from_db()
    assert (row.state, row.value, row.decided_by_name) == ("DONE", "", "second")
    assert places_of("Quixley", EMAIL) == set()
    with pytest.raises(CommandError, match="not approved: erased"):
        carry_out(row)
    actions = AuditEntry.objects.filter(subject="erasurerequest").exclude(action="view").order_by("id")
    assert list(actions.values_list("action", "actor")) == [
        ("erasure asked", "asker"), ("erasure approved", "second"), ("erasure carried out", "command line"),
    ]  # fmt: skip


def test_nobody_approves_their_own_request_for_the_command(shop: Shop, paid: str, slow: None) -> None:
    asker = person("asker", Role.MANAGER, shop.merchant)
    row = asked(shop, asker)
    decide(signed_in(asker), row, "approve")
    row.refresh_from_db()
    assert row.state == "ASKED"
    with pytest.raises(IntegrityError), transaction.atomic():
        ErasureRequest.objects.update(state="APPROVED", decided_by=asker)


@pytest.mark.parametrize(
    ("by", "verb", "state"), [("asker", "withdraw", "WITHDRAWN"), ("second", "reject", "REJECTED")]
)
def test_an_approved_request_can_be_stopped_before_the_command(
    shop: Shop, paid: str, slow: None, by: str, verb: str, state: str
) -> None:
    people = {name: person(name, Role.MANAGER, shop.merchant) for name in ("asker", "second")}
    row = asked(shop, people["asker"])
    decide(signed_in(people["second"]), row, "approve")
    decide(signed_in(people[by]), row, verb)
    row.refresh_from_db()
    assert (row.state, row.value) == (state, "")
    with pytest.raises(CommandError, match="not approved"):
        carry_out(row)
    assert Payment.objects.filter(request__customer__email=EMAIL).exists()


def count_payments(report: dict[str, Any]) -> int:
    return max((line["rows"] for line in report["lines"] if line["model"] == "gateway.Payment"), default=0)


def read_as_second(shop: Shop, row: ErasureRequest) -> str:
    second = signed_in(person("second", Role.MANAGER, shop.merchant))
    return second.get(f"{LIST}{row.pk}/change/").content.decode()


def test_who_approves_sees_at_least_what_could_be_counted(
    shop: Shop, paid: str, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look through the request log takes too long; payments and what hangs on them are counted."""
    monkeypatch.setattr(people, "_LOGGED", "SELECT NULL::uuid FROM pg_sleep(600)")
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_LOOKUP_S", 0.2)
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_LOOKUPS_S", 600.0)
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_S", 600.0)
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    assert (row.report["cut"], count_payments(row.report)) == (["gateway.RequestLog"], 1)
    page = read_as_second(shop, row)
    for words in ("Counted in part", "What would be erased", "≥ 1", "Not looked through to the end: Request log."):
        assert words in page
    assert "Approve and erase" in page


def test_a_person_is_looked_for_among_the_newest_payments_where_all_take_too_long(
    shop: Shop, paid: str, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a telephone number, which has no key: the older of two payments is not among the newest."""
    for _ in range(2):
        shop.api.pay(customer__givenName="Zaphira", customer__surname="Quixley", customer__phone="+49 30 1234567")
    look_at_all = people._list_seed_finders

    def look_slowly(*arguments: Any) -> Any:
        _all, newest = look_at_all(*arguments)
        return lambda: {name for (name,) in execute_sql("SELECT pg_sleep(600)", [])}, newest

    monkeypatch.setattr(people, "_list_seed_finders", look_slowly)
    monkeypatch.setattr(people, "MAX_PREVIEWED_ROWS", 1)
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_LOOKUP_S", 0.2)
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_LOOKUPS_S", 600.0)
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_S", 600.0)
    client = signed_in(person("asker", Role.CLERK, shop.merchant))
    client.post(ASK, form(shop, kind="phone", value="+49 30 1234567"))
    row = ErasureRequest.objects.get()
    assert count_payments(row.report) == 1
    assert "gateway.Payment" in row.report["cut"]


def test_where_nothing_can_be_counted_the_page_says_so(
    shop: Shop, paid: str, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_previews, "MAX_PREVIEW_S", 0)
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    assert "Nothing was found in that time." in read_as_second(shop, row)


def test_when_the_time_of_all_lookups_is_over_nothing_more_is_asked(shop: Shop) -> None:
    lookup = erasure_previews.BoundedLookup(until=0.0)

    def fail() -> set[Any]:
        raise AssertionError("it was asked")

    assert (lookup("gateway.Payment", fail, fail), lookup.cut) == (set(), ["gateway.Payment"])


@pytest.mark.parametrize("seconds", [0, 0.001])
def test_a_limit_that_is_over_leaves_the_transaction_usable(shop: Shop, seconds: float) -> None:
    """Ending a savepoint is a statement, too, and must not be what is cancelled."""
    for _ in range(5):
        with pytest.raises(PageTooSlowError), limit_page_time(600), limit_page_time(seconds):
            execute_sql("SELECT pg_sleep(600)", [])
        assert execute_sql("SELECT 1", []) == [(1,)]


def test_what_is_open_is_told_where_counting_takes_too_long(shop: Shop, paid: str, slow: None) -> None:
    held = shop.api.pay(paymentType="PA", customer__givenName="Zoe", customer__surname="Q", customer__email=EMAIL)
    client = signed_in(person("asker", Role.CLERK, shop.merchant))
    assert held.id in client.post(ASK, form(shop), follow=True).content.decode()
    assert not ErasureRequest.objects.exists()


def test_nobody_approves_what_the_page_did_not_show(shop: Shop, paid: str) -> None:
    row = asked(shop, person("asker", Role.CLERK, shop.merchant))
    ErasureRequest.objects.update(report={})
    second = signed_in(person("second", Role.MANAGER, shop.merchant))
    page = decide(second, row, "approve").content.decode()
    assert "now it does" in page
    assert "What would be erased" in page
    row.refresh_from_db()
    assert row.state == "ASKED"
    decide(second, row, "approve")
    row.refresh_from_db()
    assert row.state == "DONE"


# --- an approval that waits ----------------------------------------------------------------------------------------


@pytest.fixture
def approved(shop: Shop, paid: str, slow: None) -> ErasureRequest:
    row = asked(shop, person("asker", Role.MANAGER, shop.merchant))
    decide(signed_in(person("second", Role.MANAGER, shop.merchant)), row, "approve")
    row.refresh_from_db()
    assert row.state == "APPROVED"
    return row


def age(row: ErasureRequest, days: float) -> None:
    then = clock.real_now() - timedelta(days=days)
    ErasureRequest.objects.filter(pk=row.pk).update(asked_at=then, decided_at=then)
    row.refresh_from_db()


def test_an_approval_stands_until_its_fourteenth_day(shop: Shop, approved: ErasureRequest, paid: str) -> None:
    age(approved, 13.9)
    assert erasure_requests.lapse_old_approvals() == 0
    assert carry_out(approved)["ids"]["gateway.Payment"] == [paid]


def test_an_approval_that_nobody_carried_out_has_to_be_given_again(shop: Shop, approved: ErasureRequest) -> None:
    """The command refuses it at once, the timer asks again, and the request keeps whom it is about."""
    age(approved, 14)
    with pytest.raises(CommandError, match="older than 14 days"):
        carry_out(approved)
    assert erasure_requests.lapse_old_approvals() == 1
    assert erasure_requests.lapse_old_approvals() == 0
    approved.refresh_from_db()
    assert (approved.state, approved.value, approved.decided_by, approved.decided_at) == ("ASKED", EMAIL, None, None)
    with pytest.raises(CommandError, match="waits for a second person"):
        carry_out(approved)
    entry = AuditEntry.objects.get(action="erasure approval lapsed")
    assert (entry.actor, entry.subject_id) == ("erasure approvals", str(approved.pk))
    decide(signed_in(person("third", Role.MANAGER, shop.merchant)), approved, "approve")
    assert carry_out(approved)
    assert Payment.objects.filter(request__customer__email=EMAIL).count() == 0


def test_the_page_says_when_an_approval_lapses_and_that_it_is_late(shop: Shop, approved: ErasureRequest) -> None:
    page = read_again(shop, approved)
    assert "the approval lapses on" in page
    assert "waited for more than a week" not in page
    age(approved, 8)
    assert "waited for more than a week" in read_again(shop, approved)


def read_again(shop: Shop, row: ErasureRequest) -> str:
    return signed_in(User.objects.get(username="second")).get(f"{LIST}{row.pk}/change/").content.decode()


def test_what_waits_for_the_command_stands_in_the_queue_and_is_counted(shop: Shop, approved: ErasureRequest) -> None:
    """For who may still reject it; not for who asked."""
    queue = "/admin/gateway/approval/"
    second, asker = User.objects.get(username="second"), User.objects.get(username="asker")
    page = signed_in(second).get(queue).content.decode()
    assert "approved, waits for the command" in page
    assert f"{LIST}{approved.pk}/change/" in page
    assert ">late<" not in page
    assert erasure_request_pages.count_waiting_erasures(second) == 1
    assert "waits for the command" not in signed_in(asker).get(queue).content.decode()
    age(approved, 8)
    assert ">late<" in signed_in(second).get(queue).content.decode()


def test_an_export_that_takes_too_long_names_the_command(shop: Shop, paid: str, slow: None) -> None:
    manager = signed_in(person("manager", Role.MANAGER, shop.merchant))
    page = manager.post(ASK, form(shop, verb="export"), follow=True).content.decode()
    assert "Use manage.py forget_shopper --export." in page


@pytest.mark.parametrize("pauses", [("SELECT pg_sleep(60)",), ("SELECT pg_sleep(0.2)",) * 300])
def test_a_page_ends_at_a_long_statement_and_at_many_short_ones(shop: Shop, pauses: tuple[str, ...]) -> None:
    """And what was written until then is rolled back."""
    name = shop.merchant.name

    def work() -> None:
        with limit_page_time(1), connection.cursor() as cursor:
            Merchant.objects.filter(pk=shop.merchant.pk).update(name="half done")
            for pause in pauses:
                cursor.execute(pause)

    with pytest.raises(PageTooSlowError):
        work()
    assert Merchant.objects.get(pk=shop.merchant.pk).name == name
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() != ("1s",)


def test_an_export_is_a_file_and_in_the_trail(shop: Shop, paid: str) -> None:
    manager = signed_in(person("manager", Role.MANAGER, shop.merchant))
    answer = manager.post(ASK, form(shop, verb="export"))
    assert answer["Content-Disposition"] == 'attachment; filename="shopper.json"'
    assert "no-store" in answer["Cache-Control"]
    document = json.loads(answer.content)
    assert document["data"][0]["rows"][0]["request"]["customer"]["email"] == EMAIL
    entry = AuditEntry.objects.get(action="export shopper")
    assert entry.after == {"kind": "email", "shown": "z•••@shop.example"}


def test_asking_and_approving_need_a_recent_authentication(shop: Shop, paid: str) -> None:
    asker, second = person("asker", Role.CLERK, shop.merchant), person("second", Role.MANAGER, shop.merchant)
    assert "/admin/again/" in signed_in(asker, fresh=False).post(ASK, form(shop))["Location"]
    row = asked(shop, asker)
    stale = signed_in(second, fresh=False).post(f"{LIST}{row.pk}/decide/", {"verb": "approve"})
    assert "/admin/again/" in stale["Location"]
    row.refresh_from_db()
    assert row.state == "ASKED"
