"""The Markdown files of docs/: each is a page, each link leads somewhere in both places, and none brings HTML along."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, override_settings

from config.checks import check_documents
from gateway.portal import documents
from gateway.portal.documents import DOCS_DIR, SITE_ADDRESS, list_documents, load_document, resolve_link
from gateway.portal.markdown_rendering import render_markdown, slugify_heading
from gateway.portal.navigation import build_menu, list_docs_pages
from gateway.portal.urls import MOVED_PAGES

ROOT: Final = Path(settings.BASE_DIR)
NAMES: Final = sorted(list_documents())
READMES: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "clients/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)
"""Pages of the repository that are no pages of the site (but for the changelog)."""
LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
CODE: Final = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING: Final = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SECRETS: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|whsec_[A-Za-z0-9+/]{20}|\bBearer [A-Za-z0-9._-]{20}|\b(?:AKIA|ghp_|sk_live_)\w{10}"
    r"|/(?:root|home/\w+|work)/\w"
)


def render(text: str) -> str:
    return render_markdown(
        text, live=False, resolve_link=lambda target: resolve_link(target, DOCS_DIR / "x.md", live=False),
        find_page=lambda code: None,
    )  # fmt: skip


def whole(name: str, *, live: bool = False) -> str:
    document = load_document(name, live=live)
    return document.intro + "".join(part.title + part.html + part.panel for part in document.sections)


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_a_page_with_a_title_and_nothing_left_of_its_source(name: str) -> None:
    """Lists without their empty line, tables in a sentence, markers without an end would show as they are typed."""
    document = load_document(name, live=False)
    assert document.title
    assert document.lead
    text = re.sub(r"<pre.*?</pre>|<code>.*?</code>", "", whole(name), flags=re.DOTALL)
    found = re.findall(r"<!--|&lt;[a-zA-Z/!]|\|---|```|\]\(|\*\*|\n- ", text)
    assert found == []


@pytest.mark.parametrize("name", [*NAMES, *READMES])
def test_every_link_of_the_repository_leads_to_a_file_and_a_heading_in_it(name: str) -> None:
    """Relative to the file, with the anchors that hosts make of headings."""
    source = list_documents().get(name, ROOT / name)
    for target in LINK.findall(CODE.sub("", source.read_text())):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (source.parent / path).resolve() if path else source
        assert file.exists(), target
        assert file.is_relative_to(ROOT), target
        if anchor:
            text = file.read_text()
            slugs = {slugify_heading(heading.replace("`", "")) for heading in HEADING.findall(FENCED.sub("", text))}
            assert anchor in slugs | set(re.findall(r'<a id="([^"]+)"', text)), target


def test_links_of_a_file_become_addresses_of_the_site() -> None:
    source = DOCS_DIR / "connectors" / "sepa.md"
    for target, address in {
        "../time.md#the-timers": "/docs/time#the-timers",
        "iso8583.md": "/docs/connectors/iso8583",
        "../decisions/README.md": "/docs/decisions",
        "../decisions/": "/docs/decisions",
        "../quick-start.md": "/docs/",
        "../README.md": "/docs/contents",
        f"{SITE_ADDRESS}/docs/reference/payment#amount": "/docs/reference/payment#amount",
        "#settings": "#settings",
        "https://example.org/x": "https://example.org/x",
        "../running/nginx.conf": None,
        "../../SECURITY.md": None,
        "../nothing.md": None,
        "javascript:alert(1)": None,
        "data:text/html,x": None,
        "//evil.example/x": None,
    }.items():
        assert resolve_link(target, source, live=False) == address, target
    assert resolve_link("../test-tools.md", source, live=False) == "/docs/test-tools"
    assert resolve_link("../test-tools.md", source, live=True) is None
    assert resolve_link(f"{SITE_ADDRESS}/testdata#3ds", source, live=True) is None


class Tags(HTMLParser):
    """The tags and the attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <script src=x></script> b",
        "<img src=x onerror=alert(1)>",
        '<div onclick="x()">\n\ntext\n\n</div>',
        "<style>p {}</style>",
        '<a id="x" onclick="y"></a>',
        '<a id="x&quot; onclick=y"></a>',
        "<!-- <script>alert(1)</script> --> and more",
        "```html\n<script>alert(1)</script>\n```",
        "`<script>alert(1)</script>`",
        "| a |\n|---|\n| <script>alert(1)</script> |",
        "# <script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "[x](<javascript:alert(1)>)",
        "[x](JaVaScRiPt:alert(1) 'title')",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        "![x](https://elsewhere.example/x.png)",
        "[x]: javascript:alert(1)\n\n[x]",
    ],
)
def test_html_in_a_file_is_shown_and_not_run(text: str) -> None:
    found = Tags(render(text))
    assert found.tags & {"script", "style", "img", "iframe", "object", "svg", "form"} == set()
    assert {name for name in found.attributes if name.startswith("on") or name == "style"} == set()
    assert [one for one in found.addresses if "javascript" in one.lower()] == []


def test_an_anchor_and_the_hosts_own_anchors_are_kept() -> None:
    html = render('# A\n\n<a id="old"></a>\n\n## What is `x`, and why?\n\n## Same\n\n### Same\n')
    assert '<h2 id="what-is-x-and-why">' in html
    assert '<span class="alias" id="old"></span></h2>' in html
    assert '<h2 id="same">' in html
    assert '<h3 id="same-1">' in html


def test_code_is_coloured_by_classes_and_a_table_keeps_its_pipes() -> None:
    html = render("```python\nreturn 1\n```\n\n| a | b |\n|---|--:|\n| `x\\|y` | 2 |\n")
    assert '<span class="k">return</span>' in html
    assert "<code>x|y</code>" in html
    assert "style=" not in html


def test_an_empty_corner_is_no_head_and_tables_of_one_section_have_names_of_their_own() -> None:
    html = render("## Facts\n\n| | a |\n|---|---|\n| x | 1 |\n\n| b | c |\n|---|---|\n| y | 2 |\n")
    assert re.findall("<th[^e][^>]*>", html) == ['<th scope="col">'] * 3
    assert re.findall('aria-label="([^"]*)"', html) == ["Facts", "Facts (2)"]


@pytest.mark.parametrize("name", NAMES)
def test_every_column_but_that_of_the_rows_names_has_a_head(name: str) -> None:
    """A reader of a screen hears the head before each cell; a phone shows it there."""
    for row in re.findall("<thead>.*?</thead>", whole(name), re.DOTALL):
        cells = re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        assert [place for place, words in enumerate(cells) if place and not words.strip()] == [], row


@pytest.mark.parametrize("name", ["adding-a-connector", "webhooks", "quick-start", "clients"])
def test_code_blocks_of_the_pages_are_coloured(name: str) -> None:
    assert re.search(r'<pre tabindex="0"[^>]*><code>.*?<span class="\w+">', whole(name), re.DOTALL)


@pytest.mark.parametrize("language", ["sh", "bash", "python", "html"])
def test_a_block_that_is_to_be_copied_has_a_title_and_its_button(language: str) -> None:
    html = render(f"```{language}\nmake shop\n```\n")
    assert '<div class="night-head"><span class="name">' in html
    assert "data-copy" in html


def test_markers_choose_by_environment() -> None:
    text = (
        "a\n\n<!-- only: test -->\nfor tests\n<!-- end only -->\n\n<!-- only: live -->\nfor live\n<!-- end only -->\n"
    )
    kept = {
        live: render_markdown(text, live=live, resolve_link=str, find_page=lambda code: None) for live in (True, False)
    }
    assert ("for live" in kept[True], "for tests" in kept[True]) == (True, False)
    assert ("for live" in kept[False], "for tests" in kept[False]) == (False, True)


def test_codes_and_endpoints_link_to_their_pages() -> None:
    html = whole("registrations")
    assert '<a href="/docs/result-codes#100.150.200"><code>100.150.200</code></a>' in html
    page = whole("three-d-secure")
    assert '<a href="/docs/reference/three-d-secure"><code>POST /v1/threeDSecure</code></a>' in page


def test_the_menu_lists_every_file_once() -> None:
    listed = [item["url"] for current in ("quick-start", "running") for group in build_menu(current, live=False)
              for item in group["pages"]]  # fmt: skip
    for name in NAMES:
        if name != documents.CONTENTS_DOCUMENT and not name.startswith("decisions/"):
            assert documents.build_document_url(name) in listed, name
    in_table = whole("decisions")
    for name in NAMES:
        assert not name.startswith("decisions/") or f'href="/docs/{name}"' in in_table, name
    assert len(list_docs_pages()) == len({page.url for page in list_docs_pages().values()})


def test_operators_have_a_menu_of_their_own() -> None:
    titles = [group["title"] for group in build_menu("running", live=False)]
    assert "Run a gateway" in titles
    assert "Guides" not in titles
    assert "Run a gateway" not in [group["title"] for group in build_menu("quick-start", live=False)]
    decision = build_menu("decisions/0001-chains-by-compare-and-set", live=False)
    assert [i["title"] for group in decision for i in group["pages"] if i["current"]] == ["Decisions"]


@pytest.mark.parametrize(("old", "new"), MOVED_PAGES.items())
def test_a_page_that_moved_says_where(old: str, new: str) -> None:
    answer = Client().get(f"/docs/{old}")
    assert (answer.status_code, answer["Location"]) == (301, f"/docs/{new}")


@pytest.mark.parametrize(
    ("name", "anchors"),
    {
        "quick-start": "ready pay answer refund decline next",
        "requests": "sending names booleans answers unknown",
        "authentication": "token entity refused",
        "errors": "faults declines statuses",
        "widget": "form result options fast csp errors",
        "follow-ups": "authorise capture refund reverse what-follows",
        "three-d-secure": "when ways more alone testing",
        "means": "accounts away prepayment tokens gift-cards types",
        "registrations": "store pay agree limits end",
        "schedules": "plan times runs declined change end",
        "webhooks": "told endpoint verify answer",
        "reporting": "find lists pages settled file",
        "idempotency": "key without",
        "clients": "download use again",
        "limits": "rates sizes",
        "test-tools": "clock messages transfers external",
        "versioning": "path yours",
        "not-yet": "paths",
    }.items(),
)
def test_anchors_of_before_are_still_there(name: str, anchors: str) -> None:
    sections = load_document(name, live=False).sections
    assert set(anchors.split()) <= {anchor for part in sections for anchor in (part.anchor, *part.aliases)}


@pytest.mark.parametrize(
    "path", ["../SECURITY", "running/nginx.conf", "Glossary", "decisions/", "glossary.markdown", "%2e%2e/x"]
)
def test_other_paths_are_no_pages(path: str) -> None:
    assert Client(raise_request_exception=False).get(f"/docs/{path}").status_code in (301, 404)


def test_live_has_no_commands_of_the_test_environment() -> None:
    with override_settings(IS_LIVE=True, GATEWAY_ENVIRONMENT="live"):
        answer = Client().get("/docs/", secure=True)
    assert "var/demo.env" not in answer.content.decode()
    assert "the access token" in unescape(answer.content.decode())


@pytest.mark.parametrize("name", NAMES)
def test_no_page_holds_a_secret_or_a_path_of_a_developers_machine(name: str) -> None:
    assert SECRETS.findall(list_documents()[name].read_text()) == []


def test_without_the_folder_it_is_said_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_documents(None) == []
    monkeypatch.setattr(documents, "DOCS_DIR", tmp_path)
    list_documents.cache_clear()
    try:
        with pytest.raises(ImproperlyConfigured, match="next to gateway/"):
            list_documents()
        assert [found.id for found in check_documents(None)] == ["tollhouse.E040"]
    finally:
        monkeypatch.undo()
        list_documents.cache_clear()
