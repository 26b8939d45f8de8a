"""The client packages, installed into empty environments, against a running gateway. docs/decisions/0080."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from django.test import Client as Http
from pytest_django.live_server_helper import LiveServer

from config.clients.document import list_outcomes
from config.clients.render import render_generated_files
from gateway.core.result_codes import RESULT_CODES, ResultFamily, find_result_family
from gateway.models import Payment
from gateway.portal.client_packages import CLIENTS_DIR, list_client_packages
from tests.support.doc_blocks import SITE, list_blocks
from tests.support.fixtures import Shop
from tests.support.later_version import newer_than
from tests.support.webhook_delivery import deliver

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S: Final = 180
STORIES: Final = Path(__file__).parent / "stories"
GUZZLE: Final = Path("/usr/share/php/GuzzleHttp/autoload.php")
SECRET: Final = "6368616e676520746869732070617373776f726420746f206120736563726574"
OUTCOMES: Final[dict[str, Any]] = {
    "paid": ["approved", True, "gift", "Pen"],
    "capture": "approved",
    "refund": "approved",
    "reverse": "approved",
    "read": "92.00",
    "found": ["CP", "PA", "RF", "RV"],
    "settlements": 2,
    "declined": "declined",
    "refused": [400, ["amount"], True],
    "stranger": 403,
    "missing": 404,
    "fraction": True,
    "away": True,
    "dots": True,
    "hidden": True,
    "signed": ["PAYMENT", True],
    "encrypted": ["PAYMENT", True],
    "forged": True,
}
"""What the story of every language comes to."""


@pytest.fixture
def newer(live_server: LiveServer) -> Iterator[str]:
    """The same gateway, some versions later: new fields anywhere in any answer change nothing (A4.2)."""
    with newer_than(live_server.url) as url:
        yield url


@pytest.fixture
def webhooks(committed: Shop, tmp_path: Path) -> Path:
    """A signed and an encrypted webhook of a payment, as a file for the stories."""
    found: dict[str, Any] = {}
    for mode in ("signed", "encrypted"):
        opened = committed.api.post("/v1/test/webhooks", {"mode": mode}).body
        found[mode] = {"secret": opened["secret"], "after": str(opened["newest"])}
    committed.api.pay(amount="7.00")
    deliver()
    for mode, one in found.items():
        (message,) = committed.api.get("/v1/test/webhooks", {"mode": mode, "after": one["after"]}).body["webhooks"]
        one |= {"headers": message["headers"], "body": message["body"]}
    path = tmp_path / "webhooks.json"
    path.write_text(json.dumps(found))
    return path


def find_program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: Debian's nodejs, npm and php-cli have it")
    return found


def run(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DATABASE_URL")}
    ran = subprocess.run(
        [str(one) for one in command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def download(http: Http, ending: str, folder: Path) -> Path:
    """A package as the docs offer it."""
    file = next(name for name in list_client_packages() if name.endswith(ending))
    answer = http.get(f"/docs/clients/{file}")
    assert (answer.status_code, answer["Content-Disposition"]) == (200, f'attachment; filename="{file}"')
    assert http.get(f"/docs/clients/{file}", headers={"If-None-Match": answer["ETag"]}).status_code == 304
    path = folder / file
    path.write_bytes(answer.content)
    return path


def install_python(http: Http, folder: Path) -> Path:
    """An environment with the wheel; what the wheel needs is lent from this one, no registry is asked."""
    wheel = download(http, ".whl", folder)
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv", folder=folder)
    python = folder / "venv/bin/python"
    run(uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel, folder=folder)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip()
    (Path(site) / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return python


def prepare_python(http: Http, folder: Path) -> list[str | Path]:
    return [install_python(http, folder), STORIES / "story.py"]


def prepare_node(http: Http, folder: Path) -> list[str | Path]:
    node, npm = find_program("node"), find_program("npm")
    package = download(http, ".tgz", folder)
    (folder / "package.json").write_text("{}")
    run(npm, "install", "--offline", "--no-audit", "--no-fund", "--ignore-scripts", package, folder=folder)
    shutil.copy(STORIES / "story.mjs", folder)
    names = "console.log(Object.keys(found).filter((name) => name !== 'default').sort().join())"
    required = run(node, "-e", f"const found = require('@tollhouse/client'); {names}", folder=folder)
    module = f"const found = await import('@tollhouse/client'); {names}"
    assert run(node, "--input-type=module", "-e", module, folder=folder) == required
    return [node, "story.mjs"]


def prepare_php(http: Http, folder: Path) -> list[str | Path]:
    php = find_program("php")
    if not GUZZLE.exists():
        pytest.skip("Guzzle is not installed: Debian's php-guzzlehttp-guzzle has it")
    with zipfile.ZipFile(download(http, ".zip", folder)) as archive:
        archive.extractall(folder / "vendor/tollhouse/client")
    return [php, STORIES / "story.php", GUZZLE]


@pytest.mark.parametrize("prepare", [prepare_python, prepare_node, prepare_php], ids=["python", "javascript", "php"])
def test_an_installed_package_pays_and_reads_webhooks(
    prepare: Callable[[Http, Path], list[str | Path]],
    tmp_path: Path,
    client: Http,
    newer: str,
    committed: Shop,
    webhooks: Path,
) -> None:
    """A payment, a capture, a refund, a query, a report, webhooks, and everything that is refused."""
    command = prepare(client, tmp_path)
    before = Payment.objects.filter(payment_type="PA").count()
    assert committed.api.token is not None
    told = run(*command, newer, committed.api.token, committed.channel.entity_id, webhooks, folder=tmp_path)
    assert json.loads(told) == OUTCOMES
    assert Payment.objects.filter(payment_type="PA").count() == before + 2


BEFORE_SAMPLES: Final = {
    "python": """import json, sys
from types import SimpleNamespace
request = SimpleNamespace(**json.load(open(sys.argv[1]))["signed"])
request.body = request.body.encode()
""",
    "js": """import { readFileSync } from "node:fs";
const request = JSON.parse(readFileSync(process.argv[2], "utf8")).signed, rawBody = request.body;
""",
    "php": r"""<?php
[, $guzzle, $messages] = $argv;
require $guzzle;
spl_autoload_register(static function (string $class): void {
    $path = strtr(substr($class, strlen('Tollhouse\\')), '\\', '/');
    require getcwd() . "/vendor/tollhouse/client/src/$path.php";
});
$request = json_decode(file_get_contents($messages), true)['signed'];
""",
}
"""What a reader's own server has: a webhook that was sent to it; the packages of PHP are found."""
AFTER_SAMPLES: Final = {
    "python": "print(event.type)",
    "js": "console.log(event.type)",
    "php": "echo $event->type;",
}
FROM_THE_SERVER: Final = {
    "file_get_contents('php://input')": "$request['body']",
    "getallheaders()": "$request['headers']",
}


@pytest.mark.parametrize(
    ("page", "block", "ending", "prepare"),
    [
        ("../clients/python/README.md", "python", "py", prepare_python),
        ("../clients/javascript/README.md", "js", "mjs", prepare_node),
        ("../clients/php/README.md", "php", "php", prepare_php),
    ],
)
def test_the_samples_of_a_package_s_readme_run(
    page: str,
    block: str,
    ending: str,
    prepare: Callable[[Http, Path], list[str | Path]],
    tmp_path: Path,
    client: Http,
    live_server: LiveServer,
    committed: Shop,
    webhooks: Path,
) -> None:
    """All of its code as one program, word for word but for the address, the keys and the message of its reader."""
    samples = [one.text for one in list_blocks(page) if one.language == block]
    assert len(samples) == 3
    secret = json.loads(webhooks.read_text())["signed"]["secret"]
    text = "\n".join(samples).replace(SITE, live_server.url).replace("64 hex digits or whsec_…", secret)
    text = re.sub(r"(token\W{1,4})…", rf"\g<1>{committed.api.token}", text)
    text = re.sub(r"(entity_?[Ii]d\W{1,4})…", rf"\g<1>{committed.channel.entity_id}", text)
    for words, own in FROM_THE_SERVER.items():
        text = text.replace(words, own)
    assert "…" not in text
    program, _story, *more = prepare(client, tmp_path)
    (tmp_path / f"all.{ending}").write_text(f"{BEFORE_SAMPLES[block]}{text}\n{AFTER_SAMPLES[block]}\n")
    told = run(program, f"all.{ending}", *more, webhooks, folder=tmp_path)
    made = Payment.objects.filter(amount__gt=7).order_by("created_at").values_list("payment_type", "status")
    assert list(made) == [(kind, "APPROVED") for kind in ("PA", "CP", "RF", "RV")]
    assert told.split()[-1] == "PAYMENT"


def test_the_command_line_pays_and_is_refused(
    tmp_path: Path, client: Http, live_server: LiveServer, committed: Shop
) -> None:
    python = install_python(client, tmp_path)
    settings = tmp_path / "demo.env"
    settings.write_text(
        f"export BASE={live_server.url}\nexport TOKEN={committed.api.token}\n"
        f"export ENTITY_ID={committed.channel.entity_id}\n"
    )

    def tollhouse(*words: str, code: int = 0) -> list[dict[str, Any]]:
        command = [str(python.with_name("tollhouse")), "--env", str(settings), "--json", *words]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=tmp_path)
        assert ran.returncode == code, ran.stderr + ran.stdout
        return [json.loads(line) for line in ran.stdout.splitlines()]

    order = ["amount=92.00", "currency=EUR", "paymentBrand=VISA"]
    (made,) = tollhouse("payments", "create", *order, "paymentType=PA", "--card", "test")
    assert tollhouse("payments", "capture", made["id"], "50.00")[0]["paymentType"] == "CP"
    assert tollhouse("payments", "get", made["id"])[0]["amount"] == "92.00"
    (declined,) = tollhouse("payments", "create", *order, "paymentType=DB", "--card", "declined", code=1)
    assert declined["result"]["code"] == "800.100.155"
    (refused,) = tollhouse("payments", "create", "amount=9.1", code=1)
    assert "amount" in {one["name"] for one in refused["result"]["parameterErrors"]}
    assert tollhouse("trigger", "payment.refunded")[0]["paymentType"] == "RF"
    assert len(tollhouse("logs", "tail", "-n", "2", "--no-follow")) == 2
    assert tollhouse("clock", "advance", "2h")[0]["offsetSeconds"] >= 7_200
    old = tmp_path / "old.sh"
    old.write_text(
        "curl https://old.example/v1/payments -d entityId=8a8294174b7ecb28014b9699220015ca -d amount=92.00 \\\n"
        " -d currency=EUR -d paymentType=DB -d card.number=4111111111111111 \\\n"
        " --data-urlencode 'card.holder=Jane Jones' -d card.expiryMonth=05 -d card.expiryYear=2034 \\\n"
        " -d recurringType=INITIAL"
    )
    (judged,) = tollhouse("migrate-check", str(old))
    assert (judged["status"], judged["ignored"], judged["refused"]) == (200, ["recurringType"], [])
    assert "card.number" in judged["taken"]
    assert "4111111111111111" not in json.dumps(judged)
    assert tollhouse("open", "docs", "--print")[0]["address"] == f"{live_server.url}/docs/"
    assert tollhouse("payments", "create", "nonsense", code=2) == []


def test_generating_again_changes_nothing() -> None:
    """`make clients` writes what is committed."""
    made = render_generated_files(CLIENTS_DIR)
    assert [name for name, text in made.items() if (CLIENTS_DIR / name).read_text(encoding="utf-8") != text] == []
    kept = {f"php/src/Model/{path.name}" for path in (CLIENTS_DIR / "php/src/Model").glob("*.php")}
    assert kept == {name for name in made if name.startswith("php/src/Model/")}


def test_the_packages_have_one_version_and_the_products_licence() -> None:
    project = (CLIENTS_DIR / "python/pyproject.toml").read_text()
    node = json.loads((CLIENTS_DIR / "javascript/package.json").read_text())
    composer = json.loads((CLIENTS_DIR / "php/composer.json").read_text())
    version = node["version"]
    assert composer["version"] == version
    assert f'version = "{version}"' in project
    for path in ("python/src/tollhouse/_version.py", "javascript/index.cjs", "php/src/Client.php"):
        assert version in (CLIENTS_DIR / path).read_text()
    assert {node["license"], composer["license"]} == {"Apache-2.0"}
    for folder in ("python", "javascript", "php"):
        assert f"## {version}\n" in (CLIENTS_DIR / folder / "CHANGELOG.md").read_text()


def test_sources_and_wheel_hold_the_same_modules(tmp_path: Path) -> None:
    built = {name: package.build() for name, package in list_client_packages().items()}
    files = {name: tmp_path / name for name in built}
    for name, path in files.items():
        path.write_bytes(built[name])
    wheel = next(path for path in files.values() if path.suffix == ".whl")
    sdist = next(path for path in files.values() if path.name.endswith(".tar.gz"))
    with zipfile.ZipFile(wheel) as archive:
        modules = {name for name in archive.namelist() if name.startswith("tollhouse/")}
    with tarfile.open(sdist) as sources:
        packed = {name.partition("/src/")[2] for name in sources.getnames() if "/src/" in name}
    assert modules == packed
    assert "tollhouse/py.typed" in modules


def test_a_client_sorts_every_result_code_as_the_server_does() -> None:
    patterns = [(name, re.compile(pattern)) for name, pattern in list_outcomes()]
    names = {
        ResultFamily.SUCCESS: "approved",
        ResultFamily.REVIEW: "review",
        ResultFamily.PENDING: "pending",
        ResultFamily.PENDING_LONG: "pending",
        ResultFamily.CHARGEBACK: "chargeback",
    }
    for code in RESULT_CODES:
        family = find_result_family(code)
        if not family.name.startswith(("RATING", "ACCOUNT_UP", "ADVICE")):
            outcome = next((name for name, pattern in patterns if pattern.match(code)), "declined")
            assert outcome == names.get(family, "declined"), code


def test_an_unknown_package_is_not_found(client: Http) -> None:
    assert client.get("/docs/clients/tollhouse.rb").status_code == 404


def test_the_page_offers_every_package(client: Http) -> None:
    page = client.get("/docs/clients").content.decode()
    assert all(f"/docs/clients/{file}" in page for file in list_client_packages())
