"""The widget's public files, the demo shop and the docs' page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client, override_settings

from checkout import csp
from gateway.api import token_admission
from gateway.core import languages
from tests.support.bin_files import write_bin_file
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import Browser, open_checkout

SCRIPT = b"(() => { 'use strict'; })();\n" * 100


@pytest.fixture
def dist(tmp_path: Path) -> Any:
    """Both built scripts, and a build before them."""
    (tmp_path / "builds").mkdir()
    (tmp_path / "paymentWidgets.js").write_bytes(SCRIPT)
    (tmp_path / "paymentWidgetsMore.js").write_bytes(b"second")
    (tmp_path / "builds" / f"{hashlib.sha384(b'old').hexdigest()}.js").write_bytes(b"old")
    with override_settings(GATEWAY_WIDGET_DIST=str(tmp_path)):
        yield tmp_path


def test_the_script_is_the_same_with_and_without_a_checkout(dist: Path) -> None:
    """A27.10, A27.11, A8.1, A9.2, A10.3, A10.4, A10.1, A10.2."""
    client = Client()
    plain, bound = client.get("/v1/paymentWidgets.js"), client.get("/v1/paymentWidgets.js?checkoutId=ABC")
    assert plain.content == bound.content == SCRIPT
    assert plain["Content-Type"].startswith("application/javascript")
    assert plain["Access-Control-Allow-Origin"] == "*"
    told = client.get("/v1/fastcheckout/integrity").json()
    assert list(told) == ["integrity"]
    assert re.fullmatch(r"sha384-[A-Za-z0-9+/]+=*", told["integrity"])
    assert told["integrity"] == "sha384-" + base64.b64encode(hashlib.sha384(SCRIPT).digest()).decode()


def test_the_script_is_not_sent_twice(dist: Path) -> None:
    client = Client()
    first = client.get("/v1/paymentWidgets.js")
    again = client.get("/v1/paymentWidgets.js", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    zipped = client.get("/v1/paymentWidgets.js", headers={"Accept-Encoding": "gzip, br"})
    assert zipped["Content-Encoding"] == "gzip"
    assert len(zipped.content) < len(SCRIPT)
    assert client.head("/v1/paymentWidgets.js").status_code == 200
    assert client.post("/v1/paymentWidgets.js").status_code == 405


def test_every_build_there_was_is_served_by_its_hash(dist: Path) -> None:
    """Issue: old builds still served."""
    client = Client()
    for content in (SCRIPT, b"second", b"old"):
        answer = client.get(f"/v1/paymentWidgets/{hashlib.sha384(content).hexdigest()}.js")
        assert answer.content == content
        assert "immutable" in answer["Cache-Control"]
    for wrong in ("0" * 96, "..%2f..%2fetc%2fpasswd", "x"):
        assert client.get(f"/v1/paymentWidgets/{wrong}.js").status_code == 404


@pytest.mark.parametrize("code", languages.LANGUAGE_CODES)
def test_texts_come_without_a_checkout(code: str) -> None:
    answer = Client().get(f"/v1/widget/texts/{code}.json")
    assert answer.status_code == 200
    assert answer.json()["locale"] == code
    assert answer["Access-Control-Allow-Origin"] == "*"


def test_a_language_there_is_not_is_not_found() -> None:
    assert Client().get("/v1/widget/texts/xx.json").status_code == 404


def test_the_brand_table_is_public() -> None:
    rows = Client().get("/v1/widget/brands.json").json()["brands"]
    assert {"code": "VISA", "kind": "card"}.items() <= next(row for row in rows if row["code"] == "VISA").items()


def test_the_hosted_field_names_its_page_and_its_own_script_only() -> None:
    """Decisions, section 7: a strict policy and frame-ancestors."""
    client = Client()
    answer = client.get("/v1/widget/frame.html", {"checkout": "x", "parent": "https://shop.example:8443"})
    if answer.status_code == 404:
        pytest.skip("no widget is built")
    policy = answer["Content-Security-Policy"]
    assert "frame-ancestors https://shop.example:8443" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    script = re.search("<script>(.*?)</script>", answer.content.decode(), re.DOTALL)
    assert script is not None
    assert base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode() in policy
    assert answer["Cache-Control"] == "private, max-age=600"


@pytest.mark.parametrize("parent", ["", "*", "https://a.example; script-src *", "javascript:alert(1)", "https://a b"])
def test_a_page_that_is_no_origin_frames_nothing(parent: str) -> None:
    assert Client().get("/v1/widget/frame.html", {"parent": parent}).status_code == 400


def test_the_policy_of_a_page_names_hosts_and_providers() -> None:
    """A8.23, A8.24, A8.25, A8.26, A8.27, A8.28."""
    chosen = ["VISA", "WALLET2"], {"WALLET2": ["https://wallet.example"]}
    found = csp.build_widget_csp("https://pay.example", *chosen, own_styles=True)
    strict = csp.build_widget_csp("https://pay.example", *chosen, own_styles=False)
    assert strict == found | {"style-src": ["'self'", "https://pay.example"]}
    assert found["style-src"] == ["'self'", "https://pay.example", "'unsafe-inline'"]
    for name in ("frame-src", "script-src", "connect-src", "img-src"):
        assert found[name][-1] == "https://wallet.example"
        assert {"'self'", "https://pay.example"} <= set(found[name])
    assert "https://wallet.example" not in found["style-src"]
    assert any(source.startswith("'nonce-") for source in found["script-src"])
    assert found["report-uri"] == [f"https://pay.example{settings.POLICY_REPORTS_PATH}"]


def test_the_docs_page_makes_the_policy() -> None:
    with override_settings(GATEWAY_WALLET_ORIGINS={"WALLET1": ["https://wallet.example"]}):
        page = Client().get("/docs/widget?brand=VISA&brand=WALLET1").content.decode()
    assert "https://wallet.example" in page
    # The stricter one stands first; the form needs no more.
    policies = re.findall(r"style-src ([^;]*);", unescape(page))
    assert policies == ["'self' http://testserver", "'self' http://testserver 'unsafe-inline'"]
    assert "paymentWidgets.js?checkoutId=" in page


# --- the demo shop -------------------------------------------------------------------------------------------------


@pytest.fixture
def demo(shop: Shop, tmp_path: Path) -> Any:
    secure = shop.open_channel("3ds", three_d_secure=True)
    facts = {
        "access_token": shop.api.token,
        "channels": {"plain": shop.channel.entity_id, "3ds": secure.entity_id},
    }
    file = tmp_path / "demo.json"
    file.write_text(json.dumps(facts))
    with override_settings(GATEWAY_DEMO_FILE=str(file)):
        yield shop


@pytest.mark.django_db
def test_the_demo_shop_makes_a_checkout_and_reads_its_result(demo: Shop) -> None:
    """The panel shows each request without the token."""
    client = Client()
    page = client.get("/demo/")
    assert page.status_code == 200
    assert "frame-src 'self'" in page["Content-Security-Policy"]
    assert "unsafe" not in page["Content-Security-Policy"]
    made = client.post("/demo/checkout", {"mug": "2", "tote": "1"})
    body = made.json()
    assert body["exchange"]["status"] == 200
    assert ["amount", "60.00"] in body["exchange"]["sent"]
    assert str(demo.api.token) not in made.content.decode()
    assert Browser(body["id"]).pay().status == 200
    path = f"/v1/checkouts/{body['id']}/payment"
    end = client.get("/demo/result", {"id": body["id"], "resourcePath": path, "channel": "plain"})
    assert "Thank you" in end.content.decode()
    assert "000.100.110" in end.content.decode()


@pytest.mark.django_db
def test_the_demo_shop_s_shopper_takes_a_card_away(demo: Shop) -> None:
    """The shop's server deletes it, only for the shopper it belongs to, on whichever channel it was stored."""
    for secure in ("0", "1"):
        client = Client()
        made = client.post("/demo/checkout", {"mug": "1", "returning": "1", "secure": secure}).json()
        channel = "3ds" if secure == "1" else "plain"
        api = demo.api.as_entity(json.loads(Path(settings.GATEWAY_DEMO_FILE).read_text())["channels"][channel])
        address = {
            "billing__street1": "Main 1",
            "billing__city": "Bonn",
            "billing__postcode": "53111",
            "billing__country": "DE",
        }
        browser = {
            "customer__browser__language": "en",
            "customer__browser__screenHeight": "900",
            "customer__browser__screenWidth": "1440",
            "customer__browser__timezone": "-60",
            "customer__browser__javaEnabled": "false",
        }
        Browser(made["id"]).pay(card__number="4200000000000091", createRegistration="true", **address, **browser)
        path = f"/v1/checkouts/{made['id']}/payment"
        client.get("/demo/result", {"id": made["id"], "resourcePath": path, "channel": channel})
        stored = api.get(path).body["registrationId"]
        assert Client().post("/demo/forget", {"id": stored}).status_code == 404
        assert client.post("/demo/forget", {"id": stored}).json()["forgotten"] == 1
        assert api.get(f"/v1/registrations/{stored}").status != 200
        again = client.post("/demo/checkout", {"mug": "1", "returning": "1"}).json()
        assert not [name for name, _ in again["exchange"]["sent"] if name.startswith("registrations")]


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "/v1/payments", "/admin/", "https://evil.example/", "/v1/checkouts/x/payment"])
def test_the_demo_shop_asks_checkouts_only(demo: Shop, path: str) -> None:
    assert Client().get("/demo/result", {"resourcePath": path}).status_code == 404


@pytest.mark.django_db
def test_there_is_no_demo_shop_in_live(demo: Shop, live: None) -> None:
    client = Client()
    for call in (client.get("/demo/", secure=True), client.post("/demo/checkout", secure=True)):
        assert call.status_code == 404


MAX_FIRST_LOAD_BYTES = 26 * 1024


@pytest.mark.django_db
@pytest.mark.parametrize("locale", languages.LANGUAGE_CODES)
def test_a_card_form_takes_few_bytes(api: Api, locale: str) -> None:
    """Goal P12: script, configuration and hosted field, as they are sent. The second script is no part of it."""
    client, zipped = Client(), {"Accept-Encoding": "gzip"}
    checkout = open_checkout(api).checkout
    paths = {
        "script": f"/v1/paymentWidgets.js?checkoutId={checkout}",
        "configuration": f"/v1/checkouts/{checkout}/config?brands=VISA%20MASTER%20AMEX&locale={locale}",
        "field": f"/v1/widget/frame.html?checkout={checkout}&parent=https://shop.example",
    }
    answers = {name: client.get(path, headers=zipped) for name, path in paths.items()}
    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(paths, 200)
    bytes_of = {name: len(answer.content) for name, answer in answers.items()}
    assert sum(bytes_of.values()) <= MAX_FIRST_LOAD_BYTES, bytes_of


# --- brands of a card by the table of BINs ---------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_hosted_field_learns_by_six_digits_which_brands_a_card_carries(shop: Shop, tmp_path: Path) -> None:
    checkout = open_checkout(shop.api).checkout
    path = f"/v1/checkouts/{checkout}/card-brands"
    assert "cardBrands" not in Client().get(f"/v1/checkouts/{checkout}/config").json()
    with write_bin_file(tmp_path, "420000\t\tBank\tDE\tDEBIT\tGOLD\t\tVISA CARTEBANCAIRE"):
        assert Client().get(f"/v1/checkouts/{checkout}/config").json()["cardBrands"] == path[1:]
        answer = Client().get(path, {"card.bin": "420000"})
        assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (200, "*")
        assert answer.json()["brands"] == ["VISA", "CARTEBANCAIRE"]
        assert not answer.json().keys() & {"card", "issuer", "bank"}, "brands alone"
        assert Client().get(path, {"card.bin": "424242"}).json()["brands"] == []


@pytest.mark.django_db
@pytest.mark.parametrize("value", ["42000", "4200000", "42000000", "4200000000000000", "42000x", "", "٤٢٠٠٠٠"])
def test_the_hosted_field_is_answered_by_six_digits_only(shop: Shop, value: str) -> None:
    answer = Client().get(f"/v1/checkouts/{open_checkout(shop.api).checkout}/card-brands", {"card.bin": value})
    assert answer.status_code == 400
    assert answer.json()["result"]["parameterErrors"] == [
        {"name": "card.bin", "message": "must be the first six digits of a card number, never more"}
    ]


@pytest.mark.django_db
def test_the_table_of_bins_is_not_read_out_by_the_id_of_a_checkout(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_admission, "MAX_CARD_BRAND_QUESTIONS", (2, 3600))
    path = f"/v1/checkouts/{open_checkout(shop.api).checkout}/card-brands"
    assert [Client().get(path, {"card.bin": f"42000{n}"}).status_code for n in range(4)] == [200, 200, 429, 429]
    other = f"/v1/checkouts/{open_checkout(shop.api).checkout}/card-brands"
    assert Client().get(other, {"card.bin": "420000"}).status_code == 200


@pytest.mark.django_db
def test_brands_are_told_by_the_id_of_a_checkout_only() -> None:
    assert Client().get(f"/v1/checkouts/{'0' * 32}/card-brands", {"card.bin": "420000"}).status_code == 404
