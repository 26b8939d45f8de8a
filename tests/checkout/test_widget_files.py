"""The widget's committed files: built from their sources as they stand, in 25 complete languages.

Source: Part A, What the service does, 8 and 10; decisions, section 7.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from checkout.widget import build
from checkout.widget_files import compute_inline_hash
from checkout.widget_responses import ADDRESS_TEXTS, OTHER_MEANS_TEXTS
from gateway.core.languages import LANGUAGE_CODES, TEXTS_DIR

FOLDER = TEXTS_DIR
SCRIPTS = (build.WIDGET_SCRIPT_FILE, build.SECOND_SCRIPT_FILE)
PLACEHOLDER = re.compile(r"\{\w+\}")
# Words that are the same in English: by locale, the keys.
SAME_WORDS = {
    "optional": {"de"},
    "page.mailSend": {"dk", "no"},
    "page.date": {"fr"},
    "iban": set(LANGUAGE_CODES),
    "total": {"es", "fr", "pt", "ro"},
    "card": {"ro"},
    "postcode": {"nl"},
    "page.code": {"de", "fr", "nl"},
}


def script_sources() -> list[Path]:
    """The modules of both scripts, without the hosted field's."""
    return sorted(path for path in build.WIDGET_SOURCES_DIR.rglob("*.js") if path.parent.name != "frame")


def texts(locale: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((FOLDER / f"{locale}.json").read_text(encoding="utf-8"))
    return found


def test_the_committed_files_were_built_from_the_sources_as_they_stand() -> None:
    """Without Node.js: the record names the sources, the brands, esbuild's version and the built files."""
    recorded = json.loads(build.RECORD.read_text(encoding="utf-8"))
    now = build.record_of(
        build.WIDGET_SCRIPT_FILE.read_bytes(),
        build.SECOND_SCRIPT_FILE.read_bytes(),
        build.WIDGET_FRAME_FILE.read_bytes(),
    )
    assert recorded == now, "run manage.py widget_build and commit what it writes"


@pytest.mark.skipif(bool(build.missing_tools()), reason=build.missing_tools())
def test_the_committed_files_are_what_the_sources_give() -> None:
    """Same sources, same bytes: a page's integrity attribute holds. The source map changes nothing of the script."""
    call_command("widget_build", "--check")
    built = build.build_widget()
    assert built == build.build_widget()
    assert b"sourceMappingURL" not in built.script
    assert "src/main.js" in json.loads(built.source_map)["sources"]


def test_a_build_without_esbuild_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has only Python can run the product and its tests, and is told what building takes."""
    monkeypatch.setattr(build, "ESBUILD", tmp_path / "esbuild")
    with pytest.raises(CommandError, match=r"npm ci|Node.js is not installed"):
        call_command("widget_build", "--check")


def test_a_source_that_esbuild_refuses_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What esbuild says stands in the command's own error; nothing is written."""
    if missing := build.missing_tools():
        pytest.skip(missing)
    sources = shutil.copytree(build.WIDGET_SOURCES_DIR, tmp_path / "src")
    (sources / "texts.js").write_text("export const isolated = ;")
    monkeypatch.setattr(build, "WIDGET_DIR", tmp_path)
    before = build.WIDGET_SCRIPT_FILE.read_bytes()
    with pytest.raises(CommandError, match=r"(?s)src/main\.js: .*src/texts\.js:1:24"):
        call_command("widget_build")
    assert build.WIDGET_SCRIPT_FILE.read_bytes() == before


def test_the_lock_of_the_build_s_packages_has_hashes_and_no_address() -> None:
    """Every package is checked against its hash; where packages come from is for each machine to say."""
    text = (build.WIDGET_DIR / "package-lock.json").read_text(encoding="utf-8")
    packages = {name: one for name, one in json.loads(text)["packages"].items() if name}
    assert packages["node_modules/esbuild"]["version"]
    assert [name for name, one in packages.items() if not one.get("integrity", "").startswith("sha512-")] == []
    assert not re.search(r"https?:|\"resolved\"", text), "run npm run lock in checkout/widget"
    wanted = json.loads((build.WIDGET_DIR / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_no_modules_import_each_other_in_a_circle() -> None:
    """docs/decisions/0055-widget-build.md: a module is ready before those that use it are read."""
    graph = {
        path.resolve(): {
            (path.parent / name).resolve()
            for name in re.findall(r'} from "(\.[\w./]+\.js)"', path.read_text(encoding="utf-8"))
        }
        for path in script_sources()
    }
    second = build.WIDGET_SOURCES_DIR.resolve() / "more" / "main.js"
    assert list(TopologicalSorter(graph).static_order())[-1] in (second, second.parents[1] / "main.js")
    assert len(graph) > 20
    firsts = [path for path in graph if path.parent != second.parent]
    assert not [path for path in firsts if any(used.parent == second.parent for used in graph[path])]


def test_the_second_script_stands_in_the_first_by_its_hash() -> None:
    """The page's integrity attribute so holds for both."""
    digest = hashlib.sha384(build.SECOND_SCRIPT_FILE.read_bytes())
    first = build.WIDGET_SCRIPT_FILE.read_text(encoding="utf-8")
    assert digest.hexdigest() in first
    assert f"sha384-{base64.b64encode(digest.digest()).decode()}" in first


def test_all_that_the_second_script_takes_of_the_first_is_used() -> None:
    """src/shared.js: what stands there without need keeps code from being left out."""
    shared = (build.WIDGET_SOURCES_DIR / "shared.js").read_text(encoding="utf-8")
    given = {name for names in re.findall(r"export \{ ([^}]+) \}", shared) for name in names.split(", ")}
    taken: set[str] = set()
    for path in (build.WIDGET_SOURCES_DIR / "more").glob("*.js"):
        for names in re.findall(r'import \{([^}]+)\} from "\.\./shared\.js"', path.read_text(encoding="utf-8")):
            taken |= {name.strip() for name in names.split(",") if name.strip()}
    assert given == taken


def test_releases_are_named_by_their_hash() -> None:
    """A page's hash leads to the very bytes it is of."""
    for path in build.WIDGET_BUILDS_DIR.glob("*.js"):
        assert hashlib.sha384(path.read_bytes()).hexdigest() == path.stem


def test_the_frame_s_policy_lets_its_own_script_and_style_run() -> None:
    """Two inline blocks, two hashes; nothing else is in the document."""
    document = build.WIDGET_FRAME_FILE.read_text(encoding="utf-8")
    assert compute_inline_hash(document, "script") != compute_inline_hash(document, "style")
    assert document.count("<script") == document.count("<style") == 1
    assert not re.search(r"\s(on\w+|style|src|href)=", document.partition("<script>")[0])


def test_the_script_asks_nobody_else() -> None:
    """A8.11, P12: no third party: no address but the one of SVG's names stands in it."""
    script = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    assert set(re.findall(r"https?://[a-z0-9.]+", script)) == {"http://www.w3.org"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", script)


def test_there_are_25_languages() -> None:
    """A8.8, and no file beside them."""
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(LANGUAGE_CODES)
    assert len(LANGUAGE_CODES) == 25


@pytest.mark.parametrize("locale", LANGUAGE_CODES)
def test_every_language_is_complete(locale: str) -> None:
    """A8.8: every key, in order, no English left, the same placeholders, no stray space."""
    english, own = texts("en"), texts(locale)
    assert list(own) == list(english)
    for key, text in own.items():
        assert text.strip() == text, key
        assert text, key
        assert sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(english[key])), key
        if locale != "en":
            assert text != english[key] or locale in SAME_WORDS.get(key, ()), key


def test_every_text_that_the_script_asks_for_exists() -> None:
    """A key that nobody wrote would show as itself."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in script_sources())
    asked = set(re.findall(r"""\bt\("([A-Za-z.]+)"[,)]""", source))
    asked |= set(
        re.findall(r'"((?:declined|card|expiry|iban|account|field)\w*(?:Error|Missing|Brand|Past|Bank))"', source)
    )
    assert len(asked) > 60
    assert asked <= set(texts("en"))


def test_a_card_form_gets_every_text_that_it_can_say() -> None:
    """What the configuration leaves out for it is asked for in the first script only where other ways to pay stand."""
    sources = [*build.WIDGET_SOURCES_DIR.glob("*.js")]
    source = "".join(path.read_text(encoding="utf-8") for path in sources)
    asked = set(re.findall(r"""\bt\([^)]*?"([A-Za-z.]+)\"""", source))
    asked |= {
        key for key in texts("en") if f'"{key}"' in source and key.endswith(("Error", "Missing", "Past", "Brand"))
    }
    assert len(asked) > 40
    refused_fields = {"accountHolderError", "accountIdError", "ibanError"}
    assert asked & OTHER_MEANS_TEXTS == {"brand.WALLET", "otherCard"} | refused_fields
    assert set(texts("en")) >= OTHER_MEANS_TEXTS | ADDRESS_TEXTS


VENDORS = re.compile(
    r"(apple|google|samsung)[ _-]?pay|pay ?pal|amazon|klarna|oppwa|aciworldwide|hyperpay|peach ?payments", re.IGNORECASE
)


def test_the_script_names_wallets_by_number_and_nobody_s_product() -> None:
    """A0.1: widgetOptions is the options' name, wpwlOptions its alias (decisions, section 7)."""
    script = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    words = set(re.findall(r"\w+", script))
    assert {"widgetOptions", "wpwlOptions"} <= words
    assert {"wallet1", "wallet2", "wallet3"} <= {word.lower() for word in words}
    shown = script + "".join((FOLDER / f"{locale}.json").read_text(encoding="utf-8") for locale in LANGUAGE_CODES)
    assert VENDORS.search(shown) is None
