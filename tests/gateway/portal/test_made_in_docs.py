"""Parts of docs/ that are generated from the code, never written by hand: tables, samples, a program.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/gateway/portal/test_made_in_docs.py` writes it anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from checkout.demo.page_source import LANGUAGE_NAMES
from checkout.theming import PROPERTY_MEANINGS, list_theme_properties
from gateway.catalogue.tolerated_names import TOLERATED_NAMES
from gateway.connectors.simulator.acs import ONE_TIME_CODE
from gateway.connectors.simulator.issuers import SIMULATED_ISSUERS
from gateway.core import languages
from gateway.core.brands import PAYMENT_BRANDS, TEST_BIN_FILE, find_issuer
from gateway.core.result_codes import find_result_code
from gateway.payments.cascade import CASCADABLE_DECLINES
from gateway.payments.network_tokens import TOKEN_DECLINES
from gateway.payments.operation_table import OPERATIONS
from gateway.payments.payment_methods import list_payment_types
from gateway.portal import webhook_receiver
from gateway.portal.client_packages import list_client_packages, list_plug_ins
from gateway.portal.documents import DOCS_DIR, SITE_ADDRESS
from gateway.portal.samples import API_SAMPLES
from reporting.simulator import market

SAMPLE: Final = re.compile(r"^<!-- (sample|request|answer): ([a-z0-9-]+) -->\n(.*?)^<!-- end \1 -->$", re.M | re.S)
RECEIVERS: Final = DOCS_DIR / "examples" / "webhooks"
SHOPS: Final = DOCS_DIR / "examples" / "shop"
SOURCES: Final = "Python, sources"
PAGES: Final = sorted(path.relative_to(DOCS_DIR).as_posix() for path in DOCS_DIR.rglob("*.md"))


def code_list(values: list[str]) -> str:
    return " ".join(f"`{value}`" for value in values)


def operations() -> str:
    rows = ["| paymentType | what it is | may follow | refused with |", "|---|---|---|---|"]
    for operation in OPERATIONS.values():
        if operation.follows:
            title = operation.title + (" (test environment only)" if operation.test_only else "")
            refused = [f"`{operation.failed}` no success behind it"] if operation.failed else []
            refused += [f"`{operation.exceeded}` too much"] if operation.exceeded else []
            follows = code_list(sorted(operation.follows))
            rows.append(f"| `{operation.code}` | {title} | {follows} | {', '.join(refused)} |")
    return "\n".join(rows)


def brands() -> str:
    rows = ["| paymentBrand | means | shopper goes away | paymentType |", "|---|---|---|---|"]
    rows += [
        f"| `{brand.code}` {brand.label} | {f'`{brand.means}`' if brand.means else 'none'} | "
        f"{'yes' if brand.redirect else 'no'} | {code_list(list(list_payment_types(brand.code)))} |"
        for brand in PAYMENT_BRANDS.values()
        if brand.means != "card"
    ]
    return "\n".join([*rows, "| every card brand | `card`, `tokenAccount` | no | all |"])


def names_of_clients() -> str:
    return "\n".join(f"- **`{name}`**: {about}" for name, about in TOLERATED_NAMES.items())


def client_packages() -> str:
    found = list_client_packages().values()
    rows = [f"- **{one.language}**: [{one.file}]({SITE_ADDRESS}/docs/clients/{one.file}), {one.needs}" for one in found]
    commands = [f"{one.install} {SITE_ADDRESS}/docs/clients/{one.file}" for one in found if one.language != SOURCES]
    return "\n".join([*rows, "", "```bash", *commands, "```"])


def plug_ins() -> str:
    found = list_plug_ins().values()
    return "\n".join(
        f"- **{one.language}**: [{one.file}]({SITE_ADDRESS}/docs/clients/{one.file}), {one.needs}" for one in found
    )


def widget_languages() -> str:
    named = ", ".join(f"`{code}` {LANGUAGE_NAMES[code]}" for code in languages.LANGUAGE_CODES)
    return f"Languages: {named}."


def custom_properties() -> str:
    assert [one.name for one in list_theme_properties()] == list(PROPERTY_MEANINGS)
    rows = ["| property | light | dark | what for |", "|---|---|---|---|"]
    rows += [
        f"| `--wpwl-{one.name}` | `{one.light}` | {f'`{one.dark}`' if one.dark else 'the same'} | {one.meaning} |"
        for one in list_theme_properties()
    ]
    return "\n".join(rows)


def issuers() -> str:
    rows = [
        "| BIN | issuer | brand | country | approved of 100, by hour (UTC) "
        "| closed | expired | no money | payday | 3-D Secure | network token |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in SIMULATED_ISSUERS:
        away = f"; away at {', '.join(f'{hour:02d}' for hour in sorted(one.away))}" if one.away else ""
        rows.append(
            f"| `{one.bin}` | {one.name} | {one.brand} | {one.country} | {_write_hours(one.hours)}{away} | "
            f"{one.closed} % | {one.expired} % | {one.short} % | {one.payday} | +{one.proof} | +{one.token} |"
        )
    return "\n".join(rows)


def _write_hours(hours: tuple[int, ...]) -> str:
    """Runs of hours with the same rate: 00-05 92."""
    runs: list[list[int]] = []
    for hour, rate in enumerate(hours):
        if runs and runs[-1][2] == rate:
            runs[-1][1] = hour
        else:
            runs.append([hour, hour, rate])
    return ", ".join(f"{first:02d}-{last:02d}: {rate}" if last > first else f"{first:02d}: {rate}"
                     for first, last, rate in runs)  # fmt: skip


def issuers_exemptions() -> str:
    names = list(SIMULATED_ISSUERS[0].exemptions)
    rows = [f"| issuer | challenge wanted above | in | {' | '.join(f'`{name}`' for name in names)} |"]
    rows += ["|---" * (3 + len(names)) + "|"]
    for one in SIMULATED_ISSUERS:
        if one.challenge_above is None:
            rows.append(f"| {one.name} | never | " + " | ".join("" for _ in ("", *names)) + " |")
        else:
            let = " | ".join(f"{one.exemptions[name]} %" for name in names)
            rows.append(f"| {one.name} | {one.challenge_above} | {one.challenge} % | {let} |")
    return "\n".join(rows)


def trade() -> str:
    shares = ", ".join(f"`{card_bin}` {share}" for card_bin, share in market.MARKET_ISSUERS.items())
    lost = ", ".join(
        f"`{name}` {', '.join(f'loses {share} of 100 {brand}' for brand, share in brands.items()) or 'loses none'}"
        for name, brands in market.MARKET_ACCOUNTS.items()
    )
    prices = ", ".join(
        f"`{name}` {percent} % and {fixed} EUR" for name, (percent, fixed) in market.MARKET_PRICES.items()
    )
    ladder = ", ".join(str(step.days) for step in market.SUBSCRIPTION_LADDER)
    rows = (
        ("shoppers by issuer, of 100", shares),
        ("shoppers' purchases by hour (UTC), in parts", " ".join(map(str, market.MARKET_HOURS))),
        ("acquirer accounts, each with every second purchase", lost),
        ("what a payment costs there (invented)", prices),
        ("own charges of stored cards, of 100 purchases",
         f"{market.SUBSCRIPTION_PERCENT}, at {market.SUBSCRIPTION_HOUR:02d} UTC"),
        ("a declined charge is tried again after days", ladder),
        ("shoppers' attempts with 3-D Secure, of 100", market.AUTHENTICATED_PERCENT),
        ("challenges of 100 authentications; not passed, of 100 challenges",
         f"{market.CHALLENGED_PERCENT}; {market.CHALLENGE_LOST_PERCENT}"),
        ("others that ask for an exemption, of 100", f"{market.EXEMPTED_PERCENT}: low value up to "
         f"{market.LOW_VALUE_CENTS / 100:.2f}, else low risk"),
        ("declined shoppers that try again, of 100; with another card",
         f"{market.REPEATED_PERCENT}; {market.OTHER_CARD_PERCENT}, {market.MAX_MARKET_ATTEMPTS} attempts in all"),
        ("purchases in a checkout, of 100; left without an attempt, beside 100",
         f"{market.CHECKOUT_PERCENT}; {market.ABANDONED_PERCENT}"),
        ("authorizations captured after 20 hours; refunded, of 100",
         f"{market.AUTHORIZED_PERCENT}; {market.REFUNDED_PERCENT}"),
        ("purchases of one shopper", market.PURCHASES_PER_SHOPPER),
    )  # fmt: skip
    return "\n".join(["| what | how many |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def issuers_of_test_cards() -> str:
    rows = ["| BIN | bank | country | type | level | regulated |", "|---|---|---|---|---|---|"]
    lines = TEST_BIN_FILE.read_text(encoding="utf-8").splitlines()
    for line in lines[1:]:
        issuer = find_issuer(line.partition("\t")[0])
        assert issuer is not None
        regulated = "yes" if issuer.regulated else "no"
        rows.append(
            f"| `{issuer.bin}` | {issuer.bank} | {issuer.country} | {issuer.type} | {issuer.level} | {regulated} |"
        )
    return "\n".join(rows)


def cascadable_declines() -> str:
    rows = ["| result code | the acquirer's own code | why another may be approved |", "|---|---|---|"]
    rows += [f"| `{row.result}` | {code_list(sorted(row.responses))} | {row.why} |" for row in CASCADABLE_DECLINES]
    return "\n".join(rows)


def token_declines() -> str:
    rows = ["| result code | the acquirer's own code | what it says |", "|---|---|---|"]
    rows += [
        f"| `{code}` | {code_list(sorted(responses)) or 'any'} | {find_result_code(code).description} |"
        for code, responses in TOKEN_DECLINES.items()
    ]
    return "\n".join(rows)


def show_file(language: str, path: Path) -> Callable[[], str]:
    return lambda: f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```"


MADE: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "operations": ("follow-ups.md", operations),
    "brands": ("means.md", brands),
    "names of clients": ("requests.md", names_of_clients),
    "clients": ("clients.md", client_packages),
    "plug-ins": ("plug-ins.md", plug_ins),
    "languages": ("widget.md", widget_languages),
    "custom properties": ("theming.md", custom_properties),
    "receiver": ("webhooks.md", show_file("python", Path(str(webhook_receiver.__file__)))),
    "receiver in JavaScript": ("webhooks.md", show_file("js", RECEIVERS / "receiver.mjs")),
    "receiver in PHP": ("webhooks.md", show_file("php", RECEIVERS / "receiver.php")),
    "shop in Python": ("sample-shop.md", show_file("python", SHOPS / "shop.py")),
    "shop in JavaScript": ("sample-shop.md", show_file("js", SHOPS / "shop.mjs")),
    "shop in PHP": ("sample-shop.md", show_file("php", SHOPS / "shop.php")),
    "simulated issuers": ("market.md", issuers),
    "exemptions of simulated issuers": ("market.md", issuers_exemptions),
    "simulated trade": ("market.md", trade),
    "test BINs": ("card-facts.md", issuers_of_test_cards),
    "cascadable declines": ("routing.md", cascadable_declines),
    "token declines": ("network-tokens.md", token_declines),
    "receiver in Java": ("webhooks.md", show_file("java", RECEIVERS / "Receiver.java")),
}


@pytest.mark.parametrize("name", MADE)
def test_a_part_of_a_page_is_what_the_code_says(name: str) -> None:
    file, make = MADE[name]
    path = DOCS_DIR / file
    before, found, after = re.split(rf"(?<=<!-- {name} -->\n)(.*?)(?=<!-- end -->)", path.read_text(), flags=re.S)
    made = f"{make()}\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(before + made + after)
        found = made
    assert found == made


def render_sample(kind: str, name: str) -> str:
    """A sample as the repository shows it: its command, and where its answer is."""
    sample = API_SAMPLES[name]
    parts = []
    if kind != "answer":
        parts.append(f"```bash\n{sample.curl(SITE_ADDRESS)}\n```\n")
    if kind != "request":
        parts.append(f"Answer: [{sample.status_words}](../gateway/portal/answers/{name}.json).\n")
    return "\n".join(parts)


@pytest.mark.parametrize("page", PAGES)
def test_samples_in_the_repository_are_those_of_the_site(page: str) -> None:
    path = DOCS_DIR / page
    text = path.read_text()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        text = SAMPLE.sub(lambda m: f"<!-- {m[1]}: {m[2]} -->\n{render_sample(m[1], m[2])}<!-- end {m[1]} -->", text)
        path.write_text(text)
    assert [found[2] for found in SAMPLE.finditer(text) if found[3] != render_sample(found[1], found[2])] == []


def test_the_code_of_a_challenge_is_the_simulators() -> None:
    text = (DOCS_DIR / "three-d-secure.md").read_text()
    assert f"The code of every challenge is `{ONE_TIME_CODE}`" in text
