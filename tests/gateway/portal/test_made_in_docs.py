"""What stands in docs/ but is made of the code: tables, samples, a program. Nobody keeps it by hand.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/gateway/portal/test_made_in_docs.py` writes it anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

import pytest

from checkout.demo.page_source import LANGUAGE_NAMES
from gateway.catalogue.tolerated_names import TOLERATED_NAMES
from gateway.core import languages
from gateway.core.brands import PAYMENT_BRANDS
from gateway.payments.operations import OPERATIONS
from gateway.payments.payment_methods import list_payment_types
from gateway.portal import webhook_receiver
from gateway.portal.client_packages import list_client_packages
from gateway.portal.documents import DOCS_DIR, SITE_ADDRESS
from gateway.portal.samples import API_SAMPLES
from gateway.threeds.simulated_acs import ONE_TIME_CODE

SAMPLE: Final = re.compile(r"^<!-- (sample|request|answer): ([a-z0-9-]+) -->\n(.*?)^<!-- end \1 -->$", re.M | re.S)
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


def widget_languages() -> str:
    named = ", ".join(f"`{code}` {LANGUAGE_NAMES[code]}" for code in languages.LANGUAGE_CODES)
    return f"Languages: {named}."


def receiver() -> str:
    assert webhook_receiver.__file__
    with open(webhook_receiver.__file__, encoding="utf-8") as file:
        return f"```python\n{file.read().rstrip()}\n```"


MADE: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "operations": ("follow-ups.md", operations),
    "brands": ("means.md", brands),
    "names of clients": ("requests.md", names_of_clients),
    "clients": ("clients.md", client_packages),
    "languages": ("widget.md", widget_languages),
    "receiver": ("webhooks.md", receiver),
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
