"""Builds the widget's files from `src/` with esbuild: two scripts, and one document for the hosted fields.

The first script draws a card form. The second one (`src/more/`) has what a card form alone does not need, and the
first loads it by its hash, which is built in.

The built files are committed, so that running and testing the product takes no Node.js. With them stands a record of
the sources they were built from; a test compares it without building. The same sources always give the same bytes, so
a page's `integrity` attribute holds.
Source: Part A, What the service does, 8 and 10; docs/decisions/0055-widget-build.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.core import brands

WIDGET_DIR: Final = Path(__file__).parent
WIDGET_SOURCES_DIR: Final = WIDGET_DIR / "src"
WIDGET_SCRIPT_FILE: Final = WIDGET_DIR / "dist" / "paymentWidgets.js"
SECOND_SCRIPT_FILE: Final = WIDGET_DIR / "dist" / "paymentWidgetsMore.js"
SOURCE_MAP: Final = WIDGET_DIR / "dist" / "paymentWidgets.js.map"
RECORD: Final = WIDGET_DIR / "dist" / "built-from.json"
WIDGET_BUILDS_DIR: Final = WIDGET_DIR / "dist" / "builds"
WIDGET_FRAME_FILE: Final = WIDGET_DIR / "frame" / "frame.html"
ESBUILD: Final = WIDGET_DIR / "node_modules" / ".bin" / "esbuild"

# The oldest browsers with constructed style sheets, which the widget needs.
_TARGET: Final = "--target=chrome99,firefox101,safari16.4"
_MINIFIED: Final = ("--bundle", "--minify", "--charset=utf8", "--log-level=warning", _TARGET)
_BUNDLE: Final = (*_MINIFIED, "--format=iife", '--banner:js="use strict";')
SECOND_SCRIPT_START: Final = 'window.wpwlMore=(require,module)=>{"use strict";'
_SECOND_BUNDLE: Final = (
    *_MINIFIED, "--format=cjs", "--external:../shared.js", f"--banner:js={SECOND_SCRIPT_START}", "--footer:js=};",
)  # fmt: skip
_MAP_MARK: Final = "//# sourceMappingURL=data:application/json;base64,"


class BuildError(Exception):
    """The widget cannot be built; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltWidget:
    """What a build gives. `script`, `second`: bytes of both scripts; `frame`: the document of a hosted field."""

    script: bytes
    second: bytes
    source_map: bytes
    frame: bytes

    @property
    def digest(self) -> str:
        """SHA-384 of the script, hexadecimal: the name it keeps when the next one is served."""
        return hashlib.sha384(self.script).hexdigest()

    @property
    def record(self) -> bytes:
        """Content of built-from.json."""
        return (json.dumps(record_of(self.script, self.second, self.frame), indent=1) + "\n").encode()


def build_widget() -> BuiltWidget:
    """Build from the sources as they stand. Raises BuildError without esbuild, or for sources that it refuses."""
    missing = missing_tools()
    if missing:
        raise BuildError(missing)
    more_rules = _minify_css("src/more/more.css")
    second = _run_esbuild("src/more/main.js", *_SECOND_BUNDLE, define={"MORE_RULES": more_rules}).encode()
    digest = hashlib.sha384(second).digest()
    named = {"digest": digest.hex(), "integrity": f"sha384-{base64.b64encode(digest).decode()}"}
    defined = {"RULES": _minify_css("src/widget.css"), "MORE_SCRIPT": named}
    code = _run_esbuild("src/main.js", *_BUNDLE, "--sourcemap=inline", define=defined)
    script, _, source_map = code.partition(_MAP_MARK)
    document = (WIDGET_SOURCES_DIR / "frame" / "frame.html").read_text(encoding="utf-8")
    document = document.replace("/*STYLE*/", _minify_css("src/frame/frame.css"))
    frame_code = _run_esbuild("src/frame/frame.js", *_BUNDLE, define={"CARD_BRANDS": _list_card_brands()})
    document = document.replace("/*SCRIPT*/", frame_code.strip())
    return BuiltWidget(
        script=script.encode(), second=second, source_map=base64.b64decode(source_map), frame=document.encode()
    )


def missing_tools() -> str:
    """The tools that must be installed before a build, in words; '' if none is missing."""
    if shutil.which("node") is None:
        return "Node.js is not installed: the widget is built by esbuild, which needs it (version 18.18 or newer)"
    if not ESBUILD.exists():
        return "esbuild is not installed: run npm ci --ignore-scripts in checkout/widget"
    return ""


def record_of(script: bytes, second: bytes, frame: bytes) -> dict[str, str]:
    """Content of built-from.json: hashes of all sources of the built files, and of these files."""
    sources = hashlib.sha256()
    for path in sorted(path for path in WIDGET_SOURCES_DIR.rglob("*") if path.is_file() and path.suffix != ".ts"):
        sources.update(f"{path.relative_to(WIDGET_SOURCES_DIR).as_posix()}\n".encode() + path.read_bytes())
    lock = json.loads((WIDGET_DIR / "package-lock.json").read_text(encoding="utf-8"))
    with_options = json.dumps([_BUNDLE, _SECOND_BUNDLE, _list_card_brands()])
    return {
        "esbuild": lock["packages"]["node_modules/esbuild"]["version"],
        "sources": sources.hexdigest(),
        "options": hashlib.sha256(with_options.encode()).hexdigest(),
        WIDGET_SCRIPT_FILE.name: hashlib.sha256(script).hexdigest(),
        SECOND_SCRIPT_FILE.name: hashlib.sha256(second).hexdigest(),
        WIDGET_FRAME_FILE.name: hashlib.sha256(frame).hexdigest(),
    }


def _minify_css(path: str) -> str:
    return _run_esbuild(path, "--minify", "--log-level=warning", _TARGET).strip()


def _run_esbuild(entry: str, *options: str, define: Mapping[str, Any] | None = None) -> str:
    defined = [f"--define:{name}={json.dumps(value)}" for name, value in (define or {}).items()]
    done = subprocess.run(  # noqa: S603 - our own program, over our own sources
        [str(ESBUILD), entry, *options, *defined],
        cwd=WIDGET_DIR,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode or done.stderr:
        # After esbuild's own message Node.js repeats the whole command line.
        raise BuildError(f"esbuild refuses {entry}: {done.stderr.partition(chr(10) + 'node:')[0].strip()}")
    return done.stdout


def _list_card_brands() -> list[dict[str, Any]]:
    """Patterns of every card brand's numbers, for the hosted fields; what is as with most brands is left out."""
    return [_describe_card_brand(brand) for brand in brands.CARD_BRANDS.values()]


def _describe_card_brand(brand: brands.CardBrand) -> dict[str, Any]:
    row: dict[str, Any] = {"code": brand.code, "ranges": _join_ranges(brand.ranges), "lengths": sorted(brand.lengths)}
    if brand.detected != brand.ranges:
        row["detect"] = _join_ranges(brand.detected)
    if not brand.luhn:
        row["unchecked"] = True
    if brand.co_badges:
        row["beside"] = brand.co_badges
    if brand.after_scheme:
        row["afterScheme"] = True
    return row


def _join_ranges(ranges: Iterable[tuple[str, str]]) -> str:
    """Ranges of prefixes as one text: "34 37 3528-3589"."""
    return " ".join(low if low == high else f"{low}-{high}" for low, high in ranges)
