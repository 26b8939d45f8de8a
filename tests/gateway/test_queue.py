"""Background work goes on slice by slice, survives its worker, and is done once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.test import override_settings
from django.utils import translation

from gateway.background import queue
from gateway.background.files import AttemptFolder, public_file_name
from gateway.background.queue import SliceResult, WorkFailedError, WorkKind, WorkLeaseLostError
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AuditEntry, BackgroundWork
from tests.support.fixtures import BY
from tests.support.threads import at_once, times

pytestmark = pytest.mark.django_db
State = BackgroundWork.State


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> Iterator[Path]:
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        yield tmp_path


@pytest.fixture
def kind() -> Iterator[Callable[[Any], WorkKind]]:
    made: list[str] = []

    def make(step: Any) -> WorkKind:
        made.append("trial")
        trial = WorkKind(name="trial", about="for a test", right="gateway.view_payment", step=step)
        queue.register_work_kind(trial)
        return trial

    yield make
    queue._KINDS.pop("trial", None)


def ask(kind: WorkKind, **parameters: Any) -> BackgroundWork:
    owner, _ = User.objects.get_or_create(username="clara")
    return queue.enqueue_work(kind, "a trial", parameters, owner=owner.pk, by=BY)


def counting(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
    """Three slices; each writes a line behind what the cursor knows."""
    done = row.done + 1
    file = folder.path / "lines"
    lines = file.read_text().splitlines()[: row.done] if row.done else []
    file.write_text("\n".join([*lines, str(done)]))
    return SliceResult(done=done, cursor={"done": done}, total=3, finished=done == 3, file="lines" if done == 3 else "")


def test_work_is_done_slice_by_slice_and_found_again(kind: Callable[[Any], WorkKind], place: Path) -> None:
    """Brief: a job with progress."""
    row = ask(kind(counting), what="all")
    assert queue.TIMER.run() == 3
    row.refresh_from_db()
    assert (row.state, row.done, row.total, queue.compute_percent_done(row)) == (State.DONE, 3, 3, 100)
    path = queue.find_result_file(row)
    assert path is not None
    assert path.read_text() == "1\n2\n3"
    assert AuditEntry.objects.filter(action="trial asked", subject_id=str(row.pk)).exists()
    assert queue.TIMER.run() == 0


def test_a_worker_that_dies_costs_its_slice_and_no_more(kind: Callable[[Any], WorkKind]) -> None:
    """Brief: survives a restart."""

    class Killed(BaseException):
        """What a worker's death looks like from inside."""

    deaths = [True]

    def step(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        did = counting(row, folder, alive)
        if row.done == 1 and deaths:
            deaths.pop()
            raise Killed
        return did

    row = ask(kind(step))
    with pytest.raises(Killed):
        queue.run_background_work()
    row.refresh_from_db()
    assert (row.state, row.done) == (State.RUNNING, 1)
    assert queue.run_background_work() == 0, "its lease holds"
    BackgroundWork.objects.update(lease_until=clock.real_now())
    assert queue.run_background_work() == 2
    row.refresh_from_db()
    path = queue.find_result_file(row)
    assert path is not None
    assert path.read_text() == "1\n2\n3"


def test_what_was_cancelled_goes_no_further_and_leaves_no_file(kind: Callable[[Any], WorkKind]) -> None:
    """Brief: cancelling."""

    def step(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        assert queue.cancel_work(row, by=BY)
        return counting(row, folder, alive)

    row = ask(kind(step))
    queue.run_background_work()
    row.refresh_from_db()
    assert (row.state, row.done, queue.find_result_file(row)) == (State.CANCELLED, 0, None)
    assert not queue.cancel_work(row, by=BY)


def test_a_fault_is_tried_again_a_few_times_and_what_cannot_be_done_says_why(kind: Callable[[Any], WorkKind]) -> None:
    """Brief: clear words."""

    def broken(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        raise OSError("disk")

    row = ask(kind(broken))
    for _ in range(queue.MAX_SLICE_FAILURES):
        BackgroundWork.objects.update(lease_until=None)
        queue.run_background_work()
    row.refresh_from_db()
    assert row.state == State.FAILED
    assert "disk" not in row.message

    def impossible(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        raise WorkFailedError("Your right was taken away.")

    second = ask(kind(impossible))
    queue.run_background_work()
    second.refresh_from_db()
    assert (second.state, second.message) == (State.FAILED, "Your right was taken away.")


def test_a_person_has_only_so_much_work_open(kind: Callable[[Any], WorkKind]) -> None:
    """House: a limit on everything that can grow."""
    made = kind(counting)
    for _ in range(queue.MAX_OPEN_WORK_PER_OWNER):
        ask(made)
    with pytest.raises(queue.TooMuchOpenWorkError):
        ask(made)


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_do_not_pass_the_limit_together(kind: Callable[[Any], WorkKind]) -> None:
    made, row = kind(counting), ask(kind(counting))
    for _ in range(queue.MAX_OPEN_WORK_PER_OWNER - 2):
        queue.enqueue_work(made, "work", {}, owner=row.owner_id, by=BY)

    def enqueue() -> bool:
        try:
            queue.enqueue_work(made, "work", {}, owner=row.owner_id, by=BY)
        except queue.TooMuchOpenWorkError:
            return False
        return True

    assert sorted(at_once(*times(4, enqueue))) == [False, False, False, True]
    assert BackgroundWork.objects.count() == queue.MAX_OPEN_WORK_PER_OWNER


def test_files_are_thrown_away_after_their_time(kind: Callable[[Any], WorkKind], place: Path) -> None:
    """Brief: kept for a week."""
    row = ask(kind(counting))
    queue.run_background_work()
    BackgroundWork.objects.update(ended_at=clock.real_now() - queue.RESULT_FILE_RETENTION)
    queue.run_background_work()
    row.refresh_from_db()
    assert queue.find_result_file(row) is None
    assert list(place.iterdir()) == []


def test_who_lost_the_work_is_told_and_changes_nothing(kind: Callable[[Any], WorkKind]) -> None:
    """Found in review: a worker that stalls beyond its lease and wakes up later."""
    told: list[str] = []
    first = [True]

    def step(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        if first:
            first.pop()
            BackgroundWork.objects.update(lease_until=clock.real_now())
            assert queue.run_background_work() == 1
            try:
                alive()
            except WorkLeaseLostError:
                told.append(folder.own("rows.csv"))
                raise
        told.append(folder.own("rows.csv"))
        return SliceResult(done=1, cursor={}, total=1, finished=True, message=folder.own("rows.csv"))

    row = ask(kind(step))
    queue.run_background_work()
    row.refresh_from_db()
    assert (row.state, row.done) == (State.DONE, 1)
    assert told == [row.message, "rows-1.csv"]
    assert row.message != "rows-1.csv"
    assert public_file_name(row.message) == "rows.csv"


def test_files_of_two_attempts_at_once_are_two(tmp_path: Path) -> None:
    """Found in review: what a late worker writes reaches nothing that is read."""
    early, late = AttemptFolder(path=tmp_path, attempt=1), AttemptFolder(path=tmp_path, attempt=2)
    shared = early.append(early.append([], "rows.csv", b"one,"), "rows.csv", b"two,")
    after = late.append(shared, "rows.csv", b"three,")
    early.append(shared, "rows.csv", b"THREE, FOUR,")
    late_again = late.append(after, "rows.csv", b"four")
    assert len(late_again) == 2
    with late.reading(late_again) as file:
        assert file.read() == b"one,two,three,four"
    whole = late.joined(late_again, "rows.csv", lambda: None)
    assert (tmp_path / whole).read_bytes() == b"one,two,three,four"
    (tmp_path / after[1][0]).write_bytes(b"thr")
    with late.reading(after) as file, pytest.raises(EOFError):
        file.read()


def test_pieces_of_work_take_turns_the_oldest_first(
    kind: Callable[[Any], WorkKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long export keeps nobody else waiting."""
    turns: list[str] = []

    def step(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        turns.append(row.parameters["name"])
        return SliceResult(done=row.done + 1, cursor={}, finished=row.done == 2)

    monkeypatch.setattr(queue, "MAX_TURN_S", 0.0)
    made = kind(step)
    for name in ("first", "second", "third"):
        ask(made, name=name)
    assert queue.run_background_work() == 9
    assert turns == ["first", "second", "third"] * 3


def test_who_asked_for_much_waits_for_the_others_first(kind: Callable[[Any], WorkKind]) -> None:
    """docs/decisions/0168: a packet may take a minute, and one person has five pieces open."""
    turns: list[str] = []

    def step(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        turns.append(row.parameters["name"])
        return SliceResult(done=1, cursor={}, finished=True)

    made, other = kind(step), User.objects.create(username="other")
    for name in ("first", "second", "third"):
        ask(made, name=name)
    queue.enqueue_work(made, "a trial", {"name": "other's"}, owner=other.pk, by=BY)
    assert queue.run_background_work() == 4
    assert turns == ["first", "other's", "second", "third"]


def test_only_faults_in_a_row_count(kind: Callable[[Any], WorkKind]) -> None:
    """A slice that was done begins the count anew."""
    runs = 0

    def step(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        nonlocal runs
        runs += 1
        if runs % queue.MAX_SLICE_FAILURES:
            raise OSError("disk")
        return SliceResult(done=row.done + 1, cursor={}, finished=row.done == 2)

    row = ask(kind(step))
    for _ in range(4 * queue.MAX_SLICE_FAILURES):
        BackgroundWork.objects.update(lease_until=None)
        queue.run_background_work()
    row.refresh_from_db()
    assert (row.state, row.done, row.failures) == (State.DONE, 3, 0)


def test_what_has_ended_and_what_others_asked_for_leaves_room(kind: Callable[[Any], WorkKind]) -> None:
    made, other = kind(counting), User.objects.create(username="other")
    for _ in range(queue.MAX_OPEN_WORK_PER_OWNER):
        queue.enqueue_work(made, "work", {}, owner=other.pk, by=BY)
        ask(made)
    for state in (State.DONE, State.FAILED, State.CANCELLED):
        BackgroundWork.objects.filter(owner__username="clara").update(state=state)
        last = ask(made)
    assert last.owner_id != other.pk
    with pytest.raises(queue.TooMuchOpenWorkError):
        queue.enqueue_work(made, "work", {}, owner=other.pk, by=BY)


@pytest.mark.parametrize(
    ("meanwhile", "lost"),
    [
        ({}, False),
        ({"slices": 2}, True),
        ({"state": State.CANCELLED}, True),
        ({"state": State.DONE}, True),
    ],
)
def test_a_worker_whose_work_was_cancelled_or_is_anothers_neither_renews_nor_writes(
    kind: Callable[[Any], WorkKind], meanwhile: dict[str, Any], lost: bool
) -> None:
    """Each apart: another that took it over is still at it, and who cancels raises no count."""
    ask(kind(counting))
    row = queue._claim_work(set(), {})
    assert row is not None
    mine = BackgroundWork.objects.filter(pk=row.pk)
    mine.update(**meanwhile)
    if lost:
        with pytest.raises(WorkLeaseLostError):
            queue._renew_lease(row)
    else:
        queue._renew_lease(row)
    before = mine.values().get()
    for act in (queue._schedule_retry, lambda one: queue._mark_failed(one, "it failed")):
        act(row)
        assert (mine.values().get() == before) == lost
        mine.update(**before)
    assert queue._store_slice(row, SliceResult(done=1, cursor={}), release=True) != lost
    assert (mine.values().get() == before) == lost


def test_work_is_due_when_it_was_asked_for_or_when_its_lease_ends(kind: Callable[[Any], WorkKind]) -> None:
    made, hour = kind(counting), timedelta(hours=1)
    now = clock.real_now()
    due: dict[str, Any] = {}

    def find_due() -> Any:
        assert isinstance(queue.TIMER.earliest_due, str)
        return execute_sql(queue.TIMER.earliest_due, {})[0][0]

    for name, state, asked, lease in (
        ("done", State.DONE, now - 9 * hour, None),
        ("leased", State.RUNNING, now - 8 * hour, now + hour),
        ("waiting", State.WAITING, now - 2 * hour, None),
    ):
        due[name] = find_due()
        BackgroundWork.objects.filter(pk=ask(made).pk).update(state=state, asked_at=asked, lease_until=lease)
    assert due == {"done": None, "leased": None, "waiting": now + hour}
    assert find_due() == now - 2 * hour


@pytest.mark.parametrize(
    ("state", "done", "total", "percent"),
    [
        (State.RUNNING, 0, None, None),
        (State.RUNNING, 0, 3, 0),
        (State.RUNNING, 2, 3, 66),
        (State.RUNNING, 3, 3, 99),
        (State.DONE, 3, 3, 100),
        (State.DONE, 0, None, 100),
    ],
)
def test_work_is_whole_when_it_is_done_and_not_before(
    state: str, done: int, total: int | None, percent: int | None
) -> None:
    assert queue.compute_percent_done(BackgroundWork(state=state, done=done, total=total)) == percent


def begin_hours_ago(row: BackgroundWork) -> None:
    BackgroundWork.objects.filter(pk=row.pk).update(asked_at=clock.real_now() - timedelta(hours=2))


def test_the_owner_of_long_work_is_mailed_where_its_file_is(
    kind: Callable[[Any], WorkKind], mailoutbox: list[EmailMessage]
) -> None:
    """In the language it was asked for in; once, and only where it took long enough to leave the page."""
    User.objects.create(username="clara", email="clara@shop.example")
    with translation.override("de"):
        row = ask(kind(counting))
    begin_hours_ago(row)
    short = ask(kind(counting))
    while queue.run_background_work():
        pass
    (mail,) = mailoutbox
    assert (mail.to, mail.subject) == (["clara@shop.example"], "Fertig: a trial")
    assert f"/admin/gateway/backgroundwork/{row.pk}/change/" in mail.body
    assert str(short.pk) not in mail.body


def test_work_that_failed_is_mailed_with_its_reason_and_a_lost_mail_stops_nothing(
    kind: Callable[[Any], WorkKind], mailoutbox: list[EmailMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def impossible(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> SliceResult:
        raise WorkFailedError("the payments of this list are gone")

    def away(mail: EmailMessage) -> int:
        raise ConnectionRefusedError

    owner = User.objects.create(username="clara", email="clara@shop.example")
    begin_hours_ago(ask(kind(impossible)))
    queue.run_background_work()
    (mail,) = mailoutbox
    assert (mail.subject, "are gone" in mail.body) == ("Failed: a trial", True)
    monkeypatch.setattr(EmailMessage, "send", away)
    row = ask(kind(impossible))
    begin_hours_ago(row)
    queue.run_background_work()
    row.refresh_from_db()
    assert row.state == State.FAILED
    monkeypatch.undo()
    User.objects.filter(pk=owner.pk).update(is_active=False)
    begin_hours_ago(ask(kind(impossible)))
    queue.run_background_work()
    assert len(mailoutbox) == 1, "somebody who left is told nothing"
