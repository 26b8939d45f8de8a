"""Every address of the back office × the rows of another merchant × every role: the answer is that of a row which does
not exist, and nothing changes.

Addresses come from the URL table and rows from the admin's registry, so a new page, action, export or file is tried
without being written here. Source: Part A, Authentication, 2; docs/decisions/0024.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from PIL import Image

from chargebacks import evidence
from chargebacks.evidence_checklist import CHECKLIST_ITEMS
from chargebacks.models import Chargeback, Evidence
from gateway.models import Division, Payment, Psp, Role, WebhookEndpoint
from gateway.scheduling.models import Job
from reporting.models import MonthClosing, SettlementRecord
from tests.gateway.backoffice.test_rights import addresses, base, furnish, keep_books
from tests.support.fixtures import BY, Shop, open_shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
PARAMETER = re.compile(r"<(?:[a-z]+:)?([a-z0-9_]+)>|\(\?P<([a-z0-9_]+)>[^)]*\)")
SIGNS_OUT = ("/admin/logout",)
CHANGING = {"pg_stat", "gateway_signin", "django_session", "gateway_auditentry", "gateway_throttlewindow"}
"""Tables that any look at a page writes: sessions, and the trail of looks."""


@pytest.fixture
def theirs(stranger: Shop) -> Shop:
    """A merchant with a row on every page."""
    furnish(stranger)
    person("their clerk", Role.CLERK, stranger.merchant)
    return stranger


def outsider(role: Role, shop: Shop) -> Client:
    """A user of another merchant, or of another PSP."""
    node: Any = shop.merchant if role != Role.PSP else shop.merchant.division.psp
    return signed_in(person("outsider", role, node))


def rows_of(model: type[Model]) -> list[Any]:
    """Keys of the first and the last row: most pages look the same for all between."""
    keys = list(model._default_manager.order_by("pk").values_list("pk", flat=True))
    return [*keys[:1], *keys[-1:]]


def missing(key: Any) -> Any:
    """A key of the same kind that no row has."""
    return UUID(int=0) if isinstance(key, UUID) else 2_000_000_000 if isinstance(key, int) else "0" * len(str(key))


def with_key(pattern: str, key: Any) -> str | None:
    """The address with ``key`` in its place; None for an address without one, or with several."""
    if len(PARAMETER.findall(pattern)) != 1:
        return None
    return re.sub(r"\\|\^|\$", "", PARAMETER.sub(lambda _: str(key), pattern))


def of_rows() -> Iterator[tuple[str, Any]]:
    """(pattern, key of a foreign row): addresses below a page with that page's rows, the others with every page's."""
    patterns = sorted(set(addresses()))
    bases = {model: base(model) for model in MODELS}
    for model, start in bases.items():
        for key in rows_of(model):
            for pattern in patterns:
                if pattern.startswith(start) or not pattern.startswith(tuple(bases.values())):
                    yield pattern, key


def told(answer: HttpResponse, key: Any) -> tuple[int, str]:
    """What an answer tells: its status, and where it leads to, without the key that was asked for."""
    where = answer.get("Location", "")
    for text in (str(key), getattr(key, "hex", str(key))):
        where = where.replace(text, "KEY")
    return answer.status_code, where


def state() -> dict[str, int]:
    """How often each table was written, and how many rows it has."""
    with connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names(cursor) if name not in CHANGING]
        asked = " UNION ALL ".join(
            f"SELECT '{name}', coalesce(sum(hashtext(t::text)::bigint), 0) FROM \"{name}\" t" for name in tables
        )
        cursor.execute(asked)
        return dict(cursor.fetchall())


@pytest.mark.parametrize("role", list(Role))
def test_another_merchants_rows_look_like_rows_that_do_not_exist(role: Role, division: Any, theirs: Shop) -> None:
    """By address, method and list action; nothing is changed on the way."""
    # Rows of several tables have the same number, and no row at all is one number for all: each address is asked once.
    paths = {path: (pattern, key) for pattern, key in of_rows() if (path := with_key(pattern, key)) is not None}
    keys = {model: rows_of(model) for model in MODELS}
    client = outsider(role, person_shop(division, role))
    before = state()
    hidden = {theirs.merchant.pk.hex, str(theirs.merchant.pk), theirs.channel.pk.hex, theirs.merchant.name}
    wrong = []
    of_none: dict[tuple[str, ...], tuple[int, str]] = {}
    for path, (pattern, key) in paths.items():
        unknown = with_key(pattern, missing(key))
        if unknown is None or path.startswith(SIGNS_OUT):
            continue
        for ask in (client.get, client.post):
            answer = ask(path)
            if (ask.__name__, unknown) not in of_none:
                of_none[ask.__name__, unknown] = told(ask(unknown), missing(key))
            other = of_none[ask.__name__, unknown]
            if told(answer, key) != other:
                wrong.append((ask.__name__, path, told(answer, key), other))
            body = b"" if answer.streaming else answer.content
            if any(each.encode() in body for each in hidden - {str(key), getattr(key, "hex", "")}):
                wrong.append((ask.__name__, path, "shows another merchant's data"))
    for model in MODELS:
        page: Any = admin.site._registry[model]
        named = (each if isinstance(each, str) else each.__name__ for each in page.actions or ())
        for action in ("delete_selected", *named):
            for key in keys[model]:
                sent = {"action": action, "_selected_action": [str(key)], "confirm": "revoke", "post": "yes"}
                answer = client.post(base(model), sent)
                chosen = (action, base(model), str(missing(key)))
                if chosen not in of_none:
                    of_none[chosen] = told(
                        client.post(base(model), sent | {"_selected_action": [chosen[2]]}), missing(key)
                    )
                if told(answer, key) != of_none[chosen]:
                    wrong.append((action, base(model), told(answer, key), of_none[chosen]))
    assert not wrong, "\n".join(map(str, wrong))
    after = state()
    assert {name for name in after if after[name] != before[name]} == set()


def person_shop(division: Any, role: Role) -> Shop:
    """A merchant for the outsider: under a PSP of its own where the outsider is PSP staff."""
    if role == Role.PSP:
        division = Division.objects.create(name="Elsewhere", psp=Psp.objects.create(name="Elsewhere"))
    return open_shop(division, "Outsider's")


VERBS = {
    "bulk": ("send", "again", "undo", "cancel"),
    "job": ("pause", "resume", "cancel", "end", "now", "charge", "skip", "change"),
    "webhookendpoint": ("test", "pause", "activate", "rotate", "resume", "off"),
    "month": ("",),
}
"""What stands for the verb in the addresses of a page, told by a part of it; of most pages several mean nothing."""


def test_addresses_of_several_names_lead_to_no_row_of_another_merchant(role_of_all: Role, theirs: Shop) -> None:
    """A row of the other merchant's, and such a row below one's own: evidence of a dispute, findings of a record."""
    division = theirs.merchant.division
    ours = person_shop(division, role_of_all)
    keep_books(ours)
    for shop in (theirs, ours):
        case = Chargeback.objects.get(merchant=shop.merchant)
        picture = io.BytesIO()
        Image.new("L", (9, 9)).save(picture, "PNG")
        picture.seek(0)
        evidence.add_evidence(case, next(iter(CHECKLIST_ITEMS)), "proof.png", picture, BY)
    client = outsider(role_of_all, ours)
    before, wrong, asked = state(), [], 0
    for pattern in sorted(set(addresses())):
        if len(PARAMETER.findall(pattern)) > 1 and "welcome" not in pattern:
            for path, unknown in list_mixed(pattern, theirs, ours):
                for ask in (client.get, client.post):
                    asked += 1
                    answer, other = ask(path), ask(unknown)
                    if answer.status_code != other.status_code or answer.status_code not in (302, 403, 404):
                        wrong.append((ask.__name__, path, answer.status_code, other.status_code))
    assert not wrong, "\n".join(map(str, wrong))
    assert asked > 60
    after = state()
    assert {name for name in after if after[name] != before[name]} == set()


def list_mixed(pattern: str, theirs: Shop, ours: Shop) -> Iterator[tuple[str, str]]:
    """Addresses with rows of the other merchant's, each with one of the same form that leads to no row."""
    none = UUID(int=0)
    if "/evidence/" in pattern:
        case = Chargeback.objects.get(merchant=theirs.merchant).pk
        own = Chargeback.objects.get(merchant=ours.merchant).pk
        file = Evidence.objects.get(case=case).pk
        filled = [((case, file), (none, file)), ((own, file), (own, none))]
    elif "/finding/" in pattern:
        record = SettlementRecord.objects.filter(merchant=theirs.merchant).values_list("pk", flat=True)[0]
        filled = [((record, 1), (none, 1))]
    elif "/month/" in pattern:
        month = MonthClosing.objects.get(merchant=theirs.merchant).month
        filled = [((theirs.merchant.pk.hex, f"{month:%Y-%m}"), (none.hex, f"{month:%Y-%m}"))]
    elif "<str:code>" in pattern:
        payment = Payment.objects.filter(merchant=theirs.merchant, status="APPROVED").values_list("pk", flat=True)[0]
        filled = [((payment, code), (none, code)) for code in ("RF", "RV", "CP", "CB", "xx")]
    else:
        page = next((name for name in VERBS if f"/{name}/" in pattern), "")
        model = {"job": Job, "webhookendpoint": WebhookEndpoint}.get(page)
        key = model._default_manager.filter(merchant=theirs.merchant).first().pk if model else none  # type: ignore[union-attr]
        filled = [((key, verb), (none, verb)) for verb in VERBS.get(page, ("xx",)) if verb]
    for values, missing_ones in filled:
        yield fill(pattern, values), fill(pattern, missing_ones)


def fill(pattern: str, values: tuple[Any, ...]) -> str:
    rest = iter(values)
    return re.sub(r"\\|\^|\$", "", PARAMETER.sub(lambda _: str(next(rest)), pattern))


@pytest.fixture(params=list(Role))
def role_of_all(request: pytest.FixtureRequest) -> Role:
    return Role(request.param)


def test_the_addresses_and_actions_are_really_asked(theirs: Shop) -> None:
    """Guards the walk itself: it asks for rows of most pages, with histories, actions of pages, exports and files."""
    asked = {with_key(pattern, key) for pattern, key in of_rows()} - {None}
    assert len(asked) > 300
    for model in ("payment", "channel", "accesstoken", "webhookendpoint"):
        assert any(f"/{model}/" in str(path) and str(path).endswith("/history/") for path in asked), model
    assert User.objects.filter(username="their clerk").exists()
