"""The page "Payment page security": scripts, headers, changes and violations, for the person responsible.

Source: PCI DSS 6.4.3, 11.6.1; docs/decisions/0054.
"""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from checkout import page_inventory, page_snapshots, widget_files
from checkout.models import PageReview, PageSnapshot, PolicyViolation, WalletProvider
from gateway import widget_hash
from gateway.core import clock
from gateway.models import AuditEntry, Channel, Role
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
PAGE = "/admin/payment-page-security/"


def wallet_of(channel: Channel, address: str) -> WalletProvider:
    found, _made = WalletProvider.objects.update_or_create(
        channel=channel, wallet="wallet2", defaults={"settings": {"script": address, "name": "a.Client"}}
    )
    return found


def violation(page: str, **more: Any) -> None:
    at = clock.real_now()
    values = {"directive": "script-src-elem", "blocked": "https://evil.example", "count": 3} | more
    PolicyViolation.objects.create(page=page, first_at=at, last_at=at, **values)


@pytest.mark.parametrize("role", list(Role))
def test_managers_auditors_and_psp_staff_see_the_page(role: Role, shop: Shop) -> None:
    node = shop.merchant.division.psp if role == Role.PSP else shop.merchant
    client = signed_in(person("somebody", role, node))
    may = role in (Role.PSP, Role.MANAGER, Role.AUDITOR)
    assert client.get(PAGE).status_code == (200 if may else 403)
    assert client.get(f"{PAGE}export/").status_code == (200 if may else 403)
    assert client.post(f"{PAGE}seen/", {"last": "1"}).status_code == (302 if may else 403)
    assert (PAGE in client.get("/admin/").content.decode()) is may


def test_it_shows_scripts_with_hashes_and_headers_as_they_are_sent(shop: Shop) -> None:
    """6.4.3: an inventory with why; 11.6.1: the headers."""
    text = signed_in(person("ada", Role.AUDITOR, shop.merchant)).get(PAGE).content.decode()
    assert widget_hash.widget_integrity() in text
    assert widget_hash.current_widget_build(widget_hash.SECOND_SCRIPT_NAME).integrity in text
    frame = Client().get("/v1/widget/frame.html?parent=https://shop.example")
    policy = page_inventory.fetch_page_headers(
        page_inventory.FRAME_PATH, page_inventory.INVENTORIED_PAGES[page_inventory.FRAME_PATH]
    )["Content-Security-Policy"]
    assert sorted(policy.split("; ")) == sorted(frame["Content-Security-Policy"].split("; "))
    assert "frame-ancestors https://shop.example" in policy
    assert page_inventory.inventory_installation()[f"script {page_inventory.FRAME_PATH}"] in policy
    assert "never sees a card number" in text


def test_facts_are_the_same_whenever_they_are_asked(shop: Shop) -> None:
    """Else each look would find a change."""
    assert page_inventory.inventory_installation() == page_inventory.inventory_installation()
    assert page_snapshots.store_changed_snapshots() == 1
    assert page_snapshots.store_changed_snapshots() == 0


def test_a_changed_script_is_noticed_and_marked_as_seen(shop: Shop, settings: Any, tmp_path: Path) -> None:
    """11.6.1: what changed, before and after; then who looked at it and when, in the trail too."""
    client = signed_in(person("ada", Role.AUDITOR, shop.merchant))
    before = widget_hash.widget_integrity()
    client.get(PAGE)
    second = widget_hash.current_widget_build(widget_hash.SECOND_SCRIPT_NAME).script
    (tmp_path / widget_hash.SECOND_SCRIPT_NAME).write_bytes(second)
    (tmp_path / "paymentWidgets.js").write_text("skim()")
    settings.GATEWAY_WIDGET_DIST = str(tmp_path)
    text = client.get(PAGE).content.decode()
    changed = PageSnapshot.objects.latest("id")
    assert changed.changes == [
        {"name": "script /v1/paymentWidgets.js", "before": before, "after": widget_hash.widget_integrity()}
    ]
    assert before in text
    assert "Mark 2 changes as seen" in text
    assert "not seen yet" in text
    assert client.post(f"{PAGE}seen/", {"last": changed.pk}).status_code == 302
    text = client.get(PAGE).content.decode()
    assert "not seen yet" not in text
    assert "seen by ada" in text
    assert AuditEntry.objects.get(action="seen").actor == "ada"


def test_what_came_after_the_page_was_shown_is_not_marked(shop: Shop) -> None:
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    page_snapshots.store_changed_snapshots()
    last = PageSnapshot.objects.latest("id").pk
    wallet_of(shop.channel, "https://wallet.example/a.js")
    page_snapshots.store_changed_snapshots()
    client.post(f"{PAGE}seen/", {"last": last})
    assert PageReview.objects.count() == 1
    for wrong in ("", "x", "-1", "9" * 30, "٣", "\0"):
        assert client.post(f"{PAGE}seen/", {"last": wrong}).status_code in (302, 400)
    assert PageReview.objects.count() == 1
    assert client.get(f"{PAGE}seen/").status_code == 405
    assert client.post(PAGE).status_code == 405


def test_a_merchant_sees_its_own_channels_and_no_other_site(shop: Shop, stranger: Shop) -> None:
    """Wallet scripts, their changes, looks and violations of other merchants' pages stay theirs."""
    wallet_of(shop.channel, "https://wallet.example/own.js")
    wallet_of(stranger.channel, "https://wallet.example/theirs.js")
    violation("https://their-shop.example/pay")
    violation("http://testserver/v1/widget/frame.html", blocked="https://skimmer.example")
    theirs = signed_in(person("them", Role.MANAGER, stranger.merchant))
    theirs.get(PAGE)
    theirs.post(f"{PAGE}seen/", {"last": PageSnapshot.objects.latest("id").pk})
    own = signed_in(person("max", Role.MANAGER, shop.merchant))
    for address in (PAGE, f"{PAGE}export/", f"{PAGE}export/?format=json"):
        text = own.get(address).content.decode()
        assert "own.js" in text
        assert "https://skimmer.example" in text
        for hidden in ("theirs.js", "their-shop", "seen by them"):
            assert hidden not in text, (address, hidden)
    assert "not seen yet" in own.get(PAGE).content.decode()
    staff = signed_in(person("petra", Role.PSP, shop.merchant.division.psp))
    text = staff.get(PAGE).content.decode()
    assert "theirs.js" in text
    assert "their-shop" in text


def test_a_user_of_one_channel_looks_and_marks_nothing(shop: Shop) -> None:
    client = signed_in(person("carl", Role.MANAGER, shop.channel))
    assert "as seen</button>" not in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}seen/", {"last": "1"}).status_code == 403


def test_a_channel_whose_wallet_changes_or_goes_is_told(shop: Shop) -> None:
    row = wallet_of(shop.channel, "https://wallet.example/a.js")
    page_snapshots.store_changed_snapshots()
    wallet_of(shop.channel, "https://wallet.example/b.js")
    page_snapshots.store_changed_snapshots()
    row.delete()
    page_snapshots.store_changed_snapshots()
    told = [snapshot.changes for snapshot in PageSnapshot.objects.filter(channel=shop.channel).order_by("id")]
    name, first, second = "wallet2 script", "https://wallet.example/a.js", "https://wallet.example/b.js"
    assert told == [
        [{"name": name, "before": None, "after": first}],
        [{"name": name, "before": first, "after": second}],
        [{"name": name, "before": second, "after": None}],
    ]


def test_the_export_is_one_table_and_runs_no_formula(shop: Shop) -> None:
    """For the assessor: each script, header, change and violation is a row; it is in the trail."""
    client = signed_in(person("ada", Role.AUDITOR, shop.merchant))
    wallet_of(shop.channel, "https://wallet.example/a.js")
    page_snapshots.store_changed_snapshots()
    violation("http://testserver/demo/", blocked="=1+1")
    answer = client.get(f"{PAGE}export/")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert {row["kind"] for row in rows} == {"build", "script", "wallet script", "header", "change", "violation"}
    assert next(row["value"] for row in rows if row["kind"] == "violation") == "'=1+1"
    assert "attachment" in answer["Content-Disposition"]
    as_json = client.get(f"{PAGE}export/?format=json").json()
    assert len(as_json) == len(rows)
    assert AuditEntry.objects.filter(action="export", subject="pagesnapshot").count() == 2


def test_old_snapshots_go_but_never_the_last(shop: Shop) -> None:
    wallet_of(shop.channel, "https://wallet.example/a.js")
    page_snapshots.store_changed_snapshots()
    wallet_of(shop.channel, "https://wallet.example/b.js")
    page_snapshots.store_changed_snapshots()
    PageSnapshot.objects.update(at=clock.real_now() - timedelta(days=401))
    assert page_snapshots.purge_page_snapshots() == 1
    assert PageSnapshot.objects.count() == 2
    assert page_snapshots.store_changed_snapshots() == 0


def test_the_page_speaks_german(shop: Shop) -> None:
    client = signed_in(person("ada", Role.AUDITOR, shop.merchant))
    client.post("/admin/language", {"language": "de", "next": "/admin/"})
    text = client.get(PAGE).content.decode()
    assert "Sicherheit der Bezahlseite" in text
    assert "Skripte dieses Gateways" in text
    assert "What browsers stopped" not in text


def test_widget_and_fields_keep_nothing_in_the_browser() -> None:
    """ASVS 8.2: no storage and no cookies."""
    names = (widget_hash.FIRST_SCRIPT_NAME, widget_hash.SECOND_SCRIPT_NAME)
    scripts = [widget_hash.current_widget_build(name).script.decode() for name in names]
    for part in (*scripts, widget_files.load_frame_document()):
        assert part
        assert not re.search(r"localStorage|sessionStorage|indexedDB|document\.cookie", part)


@pytest.mark.parametrize("path", sorted(page_inventory.INVENTORIED_PAGES))
def test_in_live_the_headers_are_those_of_an_answer_over_tls(path: str) -> None:
    """Asked within the process, the chain of middleware takes the request for one that came by https."""
    with override_settings(IS_LIVE=True, GATEWAY_ENVIRONMENT="live", GATEWAY_BASE_URL="https://testserver"):
        found = page_inventory.fetch_page_headers(path, page_inventory.INVENTORIED_PAGES[path])
    assert found["Strict-Transport-Security"].startswith("max-age=")
    assert found["X-Content-Type-Options"] == "nosniff"
