"""The ready clients from /docs, each run by its own language against the running server."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from django.test import Client as Http
from pytest_django.live_server_helper import LiveServer

from gateway.core.result_codes import RESULT_CODES, ResultFamily, find_result_family
from gateway.models import Payment
from gateway.portal.clients import CLIENT_LANGUAGES, list_client_operations
from tests.support.fixtures import Shop
from tests.support.newer import newer_than

PATIENCE_S: Final = 120
CARD: Final = {"number": "4200000000000000", "holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034"}
_NODE: Final = """
import { ApiError, NoAnswer, Tollhouse, flat } from "./tollhouse.mjs";
const [url, token, entity] = process.argv.slice(2);
const gateway = new Tollhouse(url, { token, entity });
const order = { amount: "92.00", currency: "EUR", paymentBrand: "VISA", paymentType: "DB",
  customParameters: { "order.kind": "gift" }, cart: { items: [{ name: "Pen" }] } };
const card = { number: "4200000000000000", holder: "Jane Jones", expiryMonth: "05", expiryYear: "2034" };
const told = {};
const paid = await gateway.payment({ ...order, card }, { key: "node-1" });
const again = await gateway.payment({ ...order, card }, { key: "node-1" });
const echo = paid.body;
told.paid = [paid.outcome, paid.id === again.id, echo.customParameters["order.kind"], echo.cart.items[0].name];
const refund = await gateway.followUp(paid.id, { paymentType: "RF", amount: "10.00", currency: "EUR" });
told.refund = refund.outcome;
told.read = (await gateway.status(paid.id)).body.amount;
told.declined = (await gateway.payment({ ...order, card: { ...card, number: "4000015500000005" } })).outcome;
try { await gateway.payment({ ...order, card, amount: "ninety" }); }
catch (fault) {
  told.refused = [fault instanceof ApiError, fault.status, fault.faults.map((one) => one.name), !!fault.ndc];
}
try { await new Tollhouse(url, { token: "wrong", entity }).status(paid.id); }
catch (fault) { told.stranger = fault.status; }
try { flat({ amount: 9.99 }); } catch (fault) { told.fraction = fault instanceof TypeError; }
try { await new Tollhouse("http://127.0.0.1:9", { token, entity }).deleteRegistration(paid.id); }
catch (fault) { told.away = fault instanceof NoAnswer; }
console.log(JSON.stringify(told));
"""
_PHP: Final = r"""<?php
require 'tollhouse.php';
[, $url, $token, $entity] = $argv;
$gateway = new Tollhouse\Client($url, token: $token, entity: $entity);
$order = ['amount' => '92.00', 'currency' => 'EUR', 'paymentBrand' => 'VISA', 'paymentType' => 'DB',
    'customParameters' => ['order.kind' => 'gift'], 'cart' => ['items' => [['name' => 'Pen']]]];
$card = ['number' => '4200000000000000', 'holder' => 'Jane Jones', 'expiryMonth' => '05', 'expiryYear' => '2034'];
$told = [];
$paid = $gateway->payment($order + ['card' => $card], 'php-1');
$again = $gateway->payment($order + ['card' => $card], 'php-1');
$told['paid'] = [$paid->outcome(), $paid->id() === $again->id(), $paid->body['customParameters']['order.kind'],
    $paid->body['cart']['items'][0]['name']];
$refund = $gateway->followUp($paid->id(), ['paymentType' => 'RF', 'amount' => '10.00', 'currency' => 'EUR']);
$told['refund'] = $refund->outcome();
$told['read'] = $gateway->status($paid->id())->body['amount'];
$told['declined'] = $gateway->payment($order + ['card' => ['number' => '4000015500000005'] + $card])->outcome();
try {
    $gateway->payment(['amount' => 'ninety'] + $order + ['card' => $card]);
} catch (Tollhouse\ApiError $fault) {
    $told['refused'] = [true, $fault->status, array_column($fault->faults, 'name'), $fault->ndc !== ''];
}
try {
    (new Tollhouse\Client($url, token: 'wrong', entity: $entity))->status($paid->id());
} catch (Tollhouse\ApiError $fault) {
    $told['stranger'] = $fault->status;
}
try {
    Tollhouse\flat(['amount' => 9.99]);
} catch (TypeError $fault) {
    $told['fraction'] = true;
}
try {
    (new Tollhouse\Client('http://127.0.0.1:9', token: $token, entity: $entity))->deleteRegistration($paid->id());
} catch (Tollhouse\NoAnswer $fault) {
    $told['away'] = true;
}
echo json_encode($told);
"""
TOLD: Final[dict[str, Any]] = {
    "paid": ["approved", True, "gift", "Pen"],
    "refund": "approved",
    "read": "92.00",
    "declined": "declined",
    "refused": [True, 400, ["amount"], True],
    "stranger": 403,
    "fraction": True,
    "away": True,
}
"""What the story of every language comes to."""


def download(http: Http, file: str, folder: Path) -> Path:
    answer = http.get(f"/docs/clients/{file}")
    assert (answer.status_code, answer["Content-Disposition"]) == (200, f'attachment; filename="{file}"')
    assert http.get(f"/docs/clients/{file}", headers={"If-None-Match": answer["ETag"]}).status_code == 304
    path = folder / file
    path.write_bytes(answer.content)
    return path


@pytest.fixture
def python_client(tmp_path: Path, client: Http) -> ModuleType:
    path = download(client, "tollhouse.py", tmp_path)
    spec = importlib.util.spec_from_file_location("downloaded_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def newer(live_server: LiveServer) -> Iterator[str]:
    """The same gateway, some versions later."""
    with newer_than(live_server.url) as url:
        yield url


@pytest.mark.parametrize("version", ["of today", "with new fields"])
def test_python_pays_refunds_reads_and_is_refused(
    python_client: ModuleType, live_server: LiveServer, newer: str, committed: Shop, version: str
) -> None:
    """A4.2: new fields anywhere in any answer change nothing."""
    url = newer if version == "with new fields" else live_server.url
    gateway = python_client.Tollhouse(url, token=committed.api.token, entity=committed.channel.entity_id)
    order = {
        "amount": Decimal("92.00"),
        "currency": "EUR",
        "paymentBrand": "VISA",
        "paymentType": "DB",
        "customParameters": {"order.kind": "gift"},
        "cart": {"items": [{"name": "Pen"}]},
    }
    told: dict[str, Any] = {}
    paid = gateway.payment({**order, "card": CARD}, key="python-1")
    again = gateway.payment({**order, "card": CARD}, key="python-1")
    told["paid"] = [
        paid.outcome,
        paid.id == again.id,
        paid["customParameters"]["order.kind"],
        paid["cart"]["items"][0]["name"],
    ]
    told["refund"] = gateway.follow_up(paid.id, {"paymentType": "RF", "amount": "10.00", "currency": "EUR"}).outcome
    told["read"] = gateway.status(paid.id)["amount"]
    told["declined"] = gateway.payment({**order, "card": {**CARD, "number": "4000015500000005"}}).outcome
    with pytest.raises(python_client.ApiError) as refused:
        gateway.payment({**order, "card": CARD, "amount": "ninety"})
    fault = refused.value
    told["refused"] = [True, fault.status, [name for name, _ in fault.faults], bool(fault.ndc)]
    with pytest.raises(python_client.ApiError) as stranger:
        python_client.Tollhouse(url, token="wrong", entity=committed.channel.entity_id).status(paid.id)
    told["stranger"] = stranger.value.status
    with pytest.raises(TypeError):
        python_client.flat({"amount": 9.99})
    told["fraction"] = True
    with pytest.raises(python_client.NoAnswer):
        python_client.Tollhouse("http://127.0.0.1:9", token="t").delete_registration(paid.id)
    told["away"] = True
    assert told == TOLD
    assert Payment.objects.filter(payment_type="DB").count() == 2
    assert committed.api.token not in repr(gateway)


@pytest.mark.parametrize(
    ("program", "file", "script", "name"),
    [("node", "tollhouse.mjs", _NODE, "story.mjs"), ("php", "tollhouse.php", _PHP, "story.php")],
    ids=["javascript", "php"],
)
def test_other_languages_tell_the_same_story(
    program: str, file: str, script: str, name: str, tmp_path: Path, client: Http, newer: str, committed: Shop
) -> None:
    """A4.2: against a gateway whose answers have new fields."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed: Debian's nodejs and php-cli have it")
    download(client, file, tmp_path)
    (tmp_path / name).write_text(script)
    assert committed.api.token is not None
    command = [found, name, newer, committed.api.token, committed.channel.entity_id]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert json.loads(ran.stdout) == TOLD
    assert Payment.objects.filter(payment_type="DB").count() == 2


def test_a_client_sorts_every_result_code_as_the_server_does(python_client: ModuleType) -> None:
    names = {
        ResultFamily.SUCCESS: "approved",
        ResultFamily.REVIEW: "review",
        ResultFamily.PENDING: "pending",
        ResultFamily.PENDING_LONG: "pending",
        ResultFamily.CHARGEBACK: "chargeback",
    }
    by_prefix = [
        code
        for code in RESULT_CODES
        if not find_result_family(code).name.startswith(("RATING", "ACCOUNT_UP", "ADVICE"))
    ]
    for code in by_prefix:
        answer = python_client.Answer(200, {"result": {"code": code}})
        assert answer.outcome == names.get(find_result_family(code), "declined"), code


def test_every_operation_of_a_server_has_a_method_in_every_language(client: Http) -> None:
    document = client.get("/v1/openapi.json").json()
    asked = list(list_client_operations(document))
    assert {one.name for one in asked} >= {"payment", "follow-up", "query", "schedule", "settlements", "checkout"}
    for file, marks in (("tollhouse.py", "    def {}("), ("tollhouse.mjs", "  {}("), ("tollhouse.php", "function {}(")):
        text = client.get(f"/docs/clients/{file}").content.decode()
        for one in asked:
            words = one.name.split("-")
            name = "_".join(words) if file.endswith("py") else words[0] + "".join(w.capitalize() for w in words[1:])
            assert marks.format(name) in text, (file, one.name)
        assert "«" not in text


def test_an_unknown_client_is_not_found(client: Http) -> None:
    assert client.get("/docs/clients/tollhouse.rb").status_code == 404


def test_the_page_offers_every_client(client: Http) -> None:
    page = client.get("/docs/clients").content.decode()
    assert all(f'href="/docs/clients/{file}"' in page for file in CLIENT_LANGUAGES)
