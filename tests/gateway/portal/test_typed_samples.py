"""Samples that are typed into docs/ and into the READMEs of packages (the others are made by the code, or run by
tests/ground/test_commands.py): each is in the table below with the test that runs it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from django.core.management import CommandParser, get_commands, load_command_class

from checkout.theming import list_theme_properties
from gateway.portal.client_packages import CLIENTS_DIR, list_client_packages, list_plug_ins
from gateway.portal.samples import API_SAMPLES
from tests.gateway.portal import test_sample_code as languages
from tests.gateway.portal.test_pages import Reader
from tests.gateway.portal.test_sample_code import Arrival, Recorder, recorder
from tests.support.doc_blocks import DOCS, SITE, list_blocks, read_block
from tests.support.fixtures import Shop

__all__ = ("recorder",)

ROOT: Final = DOCS.parent
HERE: Final = "tests/gateway/portal/test_typed_samples.py"
GUIDE: Final = "tests/connectors/guide.py"
PACKAGES: Final = "tests/release/test_client_packages.py"
RUN_BY: Final = {
    ("../clients/javascript/README.md", "", "bash"): HERE,
    ("../clients/javascript/README.md", "Pages", "js"): PACKAGES,
    ("../clients/javascript/README.md", "Pay", "js"): PACKAGES,
    ("../clients/javascript/README.md", "Webhooks", "js"): PACKAGES,
    ("../clients/php/README.md", "", "json"): HERE,
    ("../clients/php/README.md", "Pages", "php"): PACKAGES,
    ("../clients/php/README.md", "Pay", "php"): PACKAGES,
    ("../clients/php/README.md", "Webhooks", "php"): PACKAGES,
    ("../clients/plugins/django-payments/README.md", "", "bash"): HERE,
    ("../clients/plugins/django-payments/README.md", "Settings", "python"): HERE,
    ("../clients/plugins/pretix/README.md", "", "bash"): HERE,
    ("../clients/python/README.md", "", "bash"): HERE,
    ("../clients/python/README.md", "Pages", "python"): PACKAGES,
    ("../clients/python/README.md", "Pay", "python"): PACKAGES,
    ("../clients/python/README.md", "The command line", "bash"): HERE,
    ("../clients/python/README.md", "Webhooks", "python"): PACKAGES,
    ("account-updater.md", "Opt out", "bash"): "tests/gateway/payments/test_account_updates.py",
    ("account-updater.md", "What comes of it", "json"): "tests/gateway/payments/test_account_updates.py",
    ("adding-a-connector.md", "1. The mapping", "python"): GUIDE,
    ("adding-a-connector.md", "2. The connector", "python"): GUIDE,
    ("adding-a-connector.md", "3. Registering it", "diff"): GUIDE,
    ("adding-a-connector.md", "4. The conformance kit", "diff"): GUIDE,
    ("adding-a-connector.md", "4. The conformance kit", "python"): GUIDE,
    ("adding-a-connector.md", "5. Tests of the mapping", "python"): GUIDE,
    ("adding-a-connector.md", "6. A peer that you did not write", "python"): GUIDE,
    ("authentication.md", "Access tokens", "bash"): HERE,
    ("back-office.md", "What is kept", "bash"): HERE,
    ("chargebacks.md", "Alerts and inquiries before it", "bash"): HERE,
    ("chargebacks.md", "Alerts and inquiries before it", "json"): "tests/chargebacks/test_alert_intake.py",
    ("clients.md", "An assistant that reads", "json"): HERE,
    ("clients.md", "Pay, capture, refund", "js"): HERE,
    ("clients.md", "Pay, capture, refund", "php"): HERE,
    ("clients.md", "Pay, capture, refund", "python"): HERE,
    ("clients.md", "Verify a webhook", "js"): HERE,
    ("clients.md", "Verify a webhook", "php"): HERE,
    ("clients.md", "Verify a webhook", "python"): HERE,
    ("follow-ups.md", "Authorise first", "bash"): HERE,
    ("follow-ups.md", "Capture", "bash"): HERE,
    ("market.md", "Months of trade", "bash"): HERE,
    ("means.md", "Prepayment", "bash"): HERE,
    ("migrating.md", "What changes in your client", "bash"): "tests/scenarios/test_moving_here.py",
    ("network-tokens.md", "Switch it on", "json"): "tests/gateway/payments/test_network_tokens.py",
    ("network-tokens.md", "What the network tells", "bash"): "tests/gateway/payments/test_network_tokens.py",
    ("payment-links.md", "A page for a checkout", "bash"): HERE,
    ("payment-links.md", "What was paid", "bash"): HERE,
    ("personal-data.md", "Erase and export", "bash"): HERE,
    ("plug-ins.md", "django-payments", "bash"): HERE,
    ("plug-ins.md", "django-payments", "python"): HERE,
    ("plug-ins.md", "pretix", "bash"): HERE,
    ("quick-start.md", "Get ready", "bash"): HERE,
    ("quick-start.md", "Give money back", "bash"): HERE,
    ("registrations.md", "Pay by a click", "bash"): HERE,
    ("sample-shop.md", "Start it", "bash"): "tests/browser/test_sample_shops.py",
    ("schedules.md", "Change it", "bash"): HERE,
    ("schedules.md", "Make a plan", "bash"): HERE,
    ("test-tools.md", "Acquirer messages", "bash"): HERE,
    ("test-tools.md", "Money that arrives", "bash"): HERE,
    ("theming.md", "Custom properties", "css"): HERE,
    ("theming.md", "Rules of your own", "css"): HERE,
    ("widget.md", "A page with a form", "bash"): HERE,
    ("widget.md", "Fast checkout", "html"): "tests/browser/test_docs_guides.py",
    ("widget.md", "Fields of your own in the form", "js"): "tests/browser/test_widget_page.py",
    ("widget.md", "Wallets: options and events", "html"): "tests/browser/test_docs_guides.py",
}
"""(page, section, language) of samples that are typed → the test that runs them. A test reads the only block of a
section (``read_block``) or all of a page, so that none stands beside one that is run."""
PAGES: Final = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
READMES: Final = sorted(f"../{path.relative_to(ROOT)}" for path in CLIENTS_DIR.rglob("README.md"))
ID: Final = API_SAMPLES["authorise"].answer["id"]


def test_every_typed_sample_is_run_by_a_test() -> None:
    blocks = [one for page in (*PAGES, *READMES) for one in list_blocks(page) if one.language != "sh"]
    assert {(one.page, one.heading, one.language) for one in blocks} == set(RUN_BY)
    for (page, _heading, _language), test in RUN_BY.items():
        assert page in (ROOT / test).read_text(encoding="utf-8"), (page, test)


# --- clients.md -------------------------------------------------------------------------------------------------------

WANTED: Final = [
    ("/v1/payments", {"amount": "92.00", "currency": "EUR", "paymentBrand": "VISA", "paymentType": "PA"}),
    (f"/v1/payments/{ID}", {"amount": "50.00", "currency": "EUR", "paymentType": "CP"}),
    (f"/v1/payments/{ID}", {"amount": "10.00", "currency": "EUR", "paymentType": "RF"}),
]


def check_arrivals(arrived: list[Arrival]) -> None:
    """A payment, a capture, a refund."""
    assert [one.path for one in arrived] == [path for path, _ in WANTED]
    for one, (_path, fields) in zip(arrived, WANTED, strict=True):
        assert fields.items() <= dict(one.fields).items()
        assert one.key


def fill_in(text: str, recorder: Recorder) -> str:
    assert SITE in text
    return re.sub("""(["'])…["']""", r"\1own\1", text.replace(SITE, recorder.base_url("authorise")))


@pytest.mark.processes
def test_the_python_of_the_clients_page_pays_captures_and_refunds(recorder: Recorder, tmp_path: Path) -> None:
    pay = fill_in(read_block("clients.md", "Pay, capture, refund", "python"), recorder)
    verify = read_block("clients.md", "Verify a webhook", "python").replace("64 hex digits or whsec_…", "00" * 32)
    program = f"""{pay}
from types import SimpleNamespace
import tollhouse
request = SimpleNamespace(body=b"{{}}", headers={{}})
try:
    exec({verify!r})
except tollhouse.WebhookVerificationError:
    print("not verified")
"""
    (tmp_path / "all.py").write_text(program)
    said = languages.run(sys.executable, "all.py", folder=tmp_path, PYTHONPATH=str(CLIENTS_DIR / "python/src"))
    check_arrivals(recorder.arrived["authorise"])
    assert said == "not verified\n"


@pytest.mark.processes
def test_the_javascript_of_the_clients_page_pays_captures_and_refunds(recorder: Recorder, tmp_path: Path) -> None:
    node = languages.find_program("node", "nodejs")
    pay = fill_in(read_block("clients.md", "Pay, capture, refund", "js"), recorder)
    verify = read_block("clients.md", "Verify a webhook", "js").replace("64 hex digits or whsec_…", "00" * 32)
    place = tmp_path / "node_modules/@tollhouse"
    place.mkdir(parents=True)
    (place / "client").symlink_to(CLIENTS_DIR / "javascript")
    (tmp_path / "pay.mjs").write_text(pay)
    (tmp_path / "verify.mjs").write_text(f"const rawBody = '{{}}';\nconst request = {{ headers: {{}} }};\n{verify}")
    program = (
        'import "./pay.mjs";\nawait import("./verify.mjs").catch((fault) => console.log(fault.constructor.name));\n'
    )
    (tmp_path / "all.mjs").write_text(program)
    said = languages.run(node, "all.mjs", folder=tmp_path)
    check_arrivals(recorder.arrived["authorise"])
    assert said == "WebhookVerificationError\n"


@pytest.mark.processes
def test_the_php_of_the_clients_page_pays_captures_and_refunds(recorder: Recorder, tmp_path: Path) -> None:
    php = languages.find_program("php", "php-cli")
    if not languages.GUZZLE.exists():
        pytest.skip("Guzzle is not installed: Debian's php-guzzlehttp-guzzle has it")
    pay = fill_in(read_block("clients.md", "Pay, capture, refund", "php"), recorder)
    verify = read_block("clients.md", "Verify a webhook", "php").replace("64 hex digits or whsec_…", "00" * 32)
    autoload = languages.AUTOLOAD % (languages.GUZZLE, CLIENTS_DIR / "php/src")
    program = f"""{autoload}
{pay}
if (!function_exists('getallheaders')) {{ function getallheaders() {{ return []; }} }}
try {{
{verify}
}} catch (Tollhouse\\Exception\\WebhookVerificationException $fault) {{ echo 'not verified'; }}
"""
    (tmp_path / "all.php").write_text(program)
    said = languages.run(php, "all.php", folder=tmp_path)
    check_arrivals(recorder.arrived["authorise"])
    assert said == "not verified"


def test_the_assistants_configuration_is_a_command_of_the_client() -> None:
    ((name, server),) = json.loads(read_block("clients.md", "An assistant that reads", "json"))["mcpServers"].items()
    assert (name, server["command"]) == ("tollhouse", "tollhouse")
    program = (
        "import sys\nfrom tollhouse.cli.main import build_parser\nprint(build_parser().parse_args(sys.argv[1:]))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *server["args"]],
        env={"PYTHONPATH": str(CLIENTS_DIR / "python/src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


# --- commands ---------------------------------------------------------------------------------------------------------


SERVER_COMMAND: Final = r"(?:(?:python )?manage\.py|tollhouse manage|tollhouse(?= doctor| check))"


def build_command_parser(name: str) -> CommandParser:
    known = get_commands()
    assert name in known, name
    app = known[name]
    command = load_command_class(app, name) if isinstance(app, str) else app
    return command.create_parser("manage.py", name)


def list_manage_commands(page: str) -> list[list[str]]:
    """`manage.py …`, and what `tollhouse` runs of the server, in the blocks of a page, in indented ones too: without
    what may be left out, without remarks in a column of their own, with a value for `<a name>`."""
    text = (DOCS / page).read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(rf"^(?: {{4}})?{SERVER_COMMAND} ([^\n]*)$", text, re.MULTILINE)
    plain = [re.sub(r" \[[^]]*\]| {2,}.*", "", re.sub("<[^>]*>", "VALUE", line)) for line in found]
    return [shlex.split(line.partition(" > ")[0], comments=True) for line in plain]


@pytest.mark.parametrize("page", [page for page in PAGES if list_manage_commands(page)])
def test_the_commands_of_a_page_are_known_with_their_options(page: str) -> None:
    """What they do is tested where they are; a page is wrong as soon as one has another name or option."""
    for name, *words in list_manage_commands(page):
        build_command_parser(name).parse_args(words)


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if page != "running.md" and list_manage_commands(page) and not page.startswith("decisions/")
    ],
)
def test_a_page_with_commands_leads_to_how_they_are_called(page: str) -> None:
    """`manage.py` alone is in no path and knows no database."""
    assert "running.md#commands)" in (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_within_sentences_are_known_with_their_options(page: str) -> None:
    """A sentence may leave out what a command wants besides."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, rest in re.findall(rf"`{SERVER_COMMAND}\s([a-z_]+)([^`]*)`", text):
        known = build_command_parser(name).format_help()
        assert [one for one in re.findall(r"--[a-z][a-z-]*", rest) if one not in known] == [], name


def test_every_command_of_the_command_line_is_known_with_its_options() -> None:
    """`tollhouse …`, in blocks and within sentences, of docs/ and of the packages' own pages."""
    texts = [path.read_text(encoding="utf-8") for path in (*DOCS.rglob("*.md"), *CLIENTS_DIR.rglob("README.md"))]
    found = re.findall(r"(?:^|`)tollhouse ([a-z][^`\n|]*)", "\n".join(texts), re.MULTILINE)
    lines = [line for one in found if (line := shlex.split(one.partition(" < ")[0], comments=True))]
    assert len(lines) > 20
    program = """
import json, sys
from tollhouse.cli.main import SERVER_COMMANDS, build_parser
for words in json.load(sys.stdin):
    if words[0] not in SERVER_COMMANDS:
        build_parser().parse_args(words)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(CLIENTS_DIR / "python/src")},
        input=json.dumps(lines), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_every_target_of_make_that_a_page_names_is_there() -> None:
    """In blocks of any kind, indented ones too, and within sentences where it is written as code."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    fence = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    named: set[tuple[str, str]] = set()
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "tests/README.md"]:
        text = path.read_text(encoding="utf-8")
        blocks = "\n".join(fence.findall(text))
        found = re.findall(r"^(?:\$ )?make ([a-z-]+)", blocks, re.MULTILINE)
        found += re.findall(r"(?:^ {4}|`)make ([a-z-]+)", text, re.MULTILINE)
        named |= {(path.name, target) for target in found}
    assert len({target for _, target in named}) > 10
    assert {one for one in named if one[1] not in targets} == set()


ASKED: Final = [
    (one.page, one.heading, found[1])
    for page in PAGES
    for one in list_blocks(page)
    if one.language == "bash" and (found := re.search(r"read -r (\w+)", one.text))
]


@pytest.mark.parametrize(("page", "heading", "name"), ASKED)
def test_the_readers_id_is_asked_for(page: str, heading: str, name: str) -> None:
    script = f"{read_block(page, heading, 'bash')}\nsh -c 'printf %s \"${name}\"'"
    done = subprocess.run(["sh", "-euc", script], input=f"{ID}\n", capture_output=True, text=True, check=True)
    assert done.stdout.endswith(ID)


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith("decisions/")])
def test_an_id_is_asked_for_before_a_sample_uses_it(page: str) -> None:
    """A variable that is not set makes the path of another request. Asked for, assigned, or explained in a sentence."""
    text, known = (DOCS / page).read_text(encoding="utf-8"), {"ENTITY_ID"}
    for fence in re.finditer(r"^```(?:bash|sh)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        before = text[: fence.start()]
        known |= set(re.findall(r"(?:read -r |^|`\$)(\w+_ID)\b", before, re.MULTILINE))
        assert set(re.findall(r"\$(\w+_ID)\b", fence[1])) - known == set()


def test_the_readers_variables_are_set() -> None:
    """quick-start.md, in live."""
    script = f"{read_block('quick-start.md', 'Get ready', 'bash')}\nsh -c 'printf %s \"$TOKEN, $ENTITY_ID\"'"
    done = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, check=True)
    assert done.stdout == "the access token, the entityId"


def test_what_pip_is_told_to_install_can_be_downloaded() -> None:
    """plug-ins.md: django-payments, pretix."""
    for heading in ("django-payments", "pretix"):
        named = re.findall(rf"{SITE}/docs/clients/(\S+)", read_block("plug-ins.md", heading, "bash"))
        assert len(named) == 2
        assert set(named) <= OFFERED


OFFERED: Final = {*list_client_packages(), *list_plug_ins()}


@pytest.mark.parametrize(
    ("page", "files"),
    [
        ("../clients/javascript/README.md", 1),
        ("../clients/plugins/django-payments/README.md", 2),
        ("../clients/plugins/pretix/README.md", 2),
        ("../clients/python/README.md", 1),
    ],
)
def test_the_files_that_a_package_s_readme_installs_are_offered_under_their_names(page: str, files: int) -> None:
    """A new version that a README does not know fails here."""
    named = re.findall(r"[\w.-]+\.(?:whl|tgz)", read_block(page, "", "bash"))
    assert len(named) == files
    assert set(named) <= OFFERED


def test_the_extras_that_the_readme_of_python_names_are_there() -> None:
    """../clients/python/README.md: `[cli]`, `[mcp]`."""
    project = tomllib.loads((CLIENTS_DIR / "python/pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = set(re.findall(r"\[(\w+)\]", (CLIENTS_DIR / "python/README.md").read_text(encoding="utf-8")))
    assert {"cli", "mcp"} == named == set(project["optional-dependencies"])


def test_composer_is_told_the_package_that_is_offered() -> None:
    """../clients/php/README.md: name and version of the zip in the folder."""
    wanted = json.loads(read_block("../clients/php/README.md", "", "json"))
    package = json.loads((CLIENTS_DIR / "php/composer.json").read_text(encoding="utf-8"))
    assert wanted["repositories"] == [{"type": "artifact", "url": "packages/"}]
    assert f"{wanted['require'][package['name']]}.".startswith(f"^{'.'.join(package['version'].split('.')[:2])}.")
    assert "guzzlehttp/guzzle" in wanted["require"]


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_checkout_with_a_page_answers_as_shown(shop: Shop) -> None:
    """payment-links.md."""
    reader = Reader(shop)
    command = read_block("payment-links.md", "A page for a checkout", "bash").replace(SITE, reader.base)
    variables = {"TOKEN": shop.api.token or "", "ENTITY_ID": str(shop.channel.entity_id)}
    answer = reader.send_curl(command, variables)
    assert (answer.status_code, answer.json()["result"]["code"]) == (200, "000.200.100")
    shown = re.search(r'"paymentPage": "([^"]+)"', (DOCS / "payment-links.md").read_text(encoding="utf-8"))
    assert shown
    form = re.escape(shown[1].replace(SITE, reader.base)).replace("8AC7A4…\\-node01", "[0-9A-F]{32}-[0-9A-Za-z]+")
    assert re.fullmatch(form, answer.json()["paymentPage"])


def test_the_style_sheets_name_what_the_form_has() -> None:
    """theming.md: custom properties and classes."""
    rules = "".join(one.text for one in list_blocks("theming.md") if one.language == "css")
    widget = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "checkout/widget/src").rglob("*.[jc]s*"))
    assert set(re.findall(r"--wpwl-([\w-]+)", rules)) <= {one.name for one in list_theme_properties()}
    classes = set(re.findall(r"\.(wpwl-[\w-]+)", rules))
    assert len(classes) == 3
    assert {one for one in classes if one not in widget and one.removeprefix("wpwl-") not in widget} == set()


def test_the_settings_of_the_plug_in_s_own_readme_make_a_provider() -> None:
    """../clients/plugins/django-payments/README.md: the same names as in plug-ins.md, and a key that is one."""
    names: dict[str, Any] = {}
    exec(read_block("../clients/plugins/django-payments/README.md", "Settings", "python"), names)
    provider, arguments = names["PAYMENT_VARIANTS"]["card"]
    arguments["webhook_secrets"] = ["00" * 32]
    program = f"""
from django.conf import settings
settings.configure(PAYMENT_HOST="shop.example")
from django.utils.module_loading import import_string
import_string({provider!r})(**{arguments!r})
"""
    path = ":".join(str(CLIENTS_DIR / one) for one in ("python/src", "plugins/django-payments/src"))
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_view_of_a_django_shop_leads_to_the_payment_page() -> None:
    """plug-ins.md: django-payments."""
    settings, view = (
        one.text for one in list_blocks("plug-ins.md") if (one.heading, one.language) == ("django-payments", "python")
    )
    names: dict[str, Any] = {"os": SimpleNamespace(environ={
        "TOLLHOUSE_TOKEN": "t", "TOLLHOUSE_ENTITY_ID": "e", "TOLLHOUSE_WEBHOOK_SECRET": "00" * 32,
    })}  # fmt: skip
    exec(settings, names)
    provider, arguments = names["PAYMENT_VARIANTS"]["card"]
    program = f"""
from django.conf import settings
settings.configure(PAYMENT_HOST="shop.example")
import payments
from django.utils.module_loading import import_string
import_string({provider!r})(**{arguments!r})
class Order:
    def get_form(self):
        raise payments.RedirectNeeded("https://gateway.example/pay/1")
payment, redirect = Order(), "to {{}}".format
def view():
{"".join(f"    {line}" for line in view.splitlines(keepends=True))}
print(view())
"""
    path = ":".join(str(CLIENTS_DIR / one) for one in ("python/src", "plugins/django-payments/src"))
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "to https://gateway.example/pay/1\n"), done.stderr
