"""The widget's built files, made from `src/`: one script, and one document for the hosted fields.

No bundler: the parts are put one behind the other, in a fixed order, inside one function, and shortened. The same
sources always give the same bytes, so a page's `integrity` attribute holds.
Source: Part A, What the service does, 8 and 10.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from checkout.widget.shorten import shorten
from gateway import brands

HERE: Final = Path(__file__).parent
SOURCES: Final = HERE / "src"
SCRIPT: Final = HERE / "dist" / "paymentWidgets.js"
BUILDS: Final = HERE / "dist" / "builds"
FRAME: Final = HERE / "frame" / "frame.html"
ORDER: Final = (
    "start", "options", "dom", "marks", "texts", "server", "frames", "fields", "sheet", "view", "follow", "card",
    "saved", "means", "providers", "wallets", "fast", "main",
)  # fmt: skip
"""Parts of the script; a part may use the names of those before it while it is read, of all when it runs."""

_CSS_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_CSS_GAPS: Final = re.compile(r"\s*([{};,>])\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build gives. `script`: bytes of paymentWidgets.js; `frame`: the document of a hosted field."""

    script: bytes
    frame: bytes

    @property
    def digest(self) -> str:
        """SHA-384 of the script, hexadecimal: the name it keeps when the next one is served."""
        return hashlib.sha384(self.script).hexdigest()


def build() -> Built:
    """Build from the sources as they stand."""
    rules = shorter_css((SOURCES / "widget.css").read_text(encoding="utf-8"))
    parts = [f"const RULES = {json.dumps(rules, ensure_ascii=False)};"]
    parts += [(SOURCES / f"{name}.js").read_text(encoding="utf-8") for name in ORDER]
    script = shorten('(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();") + "\n"
    frame = SOURCES / "frame"
    document = (frame / "frame.html").read_text(encoding="utf-8")
    document = document.replace("/*STYLE*/", shorter_css((frame / "frame.css").read_text(encoding="utf-8")))
    code = (frame / "frame.js").read_text(encoding="utf-8").replace("/*BRANDS*/", _number_facts())
    document = document.replace("/*SCRIPT*/", shorten(code))
    return Built(script=script.encode(), frame=document.encode())


def _number_facts() -> str:
    """What the numbers of every card brand look like, for the hosted fields."""
    return ",\n".join(
        json.dumps(
            {
                "code": brand.code, "ranges": brand.ranges, "detect": brand.detected, "lengths": sorted(brand.lengths),
                "luhn": brand.luhn, "beside": brand.beside, "afterScheme": brand.after_scheme,
            }
        )
        for brand in brands.CARD_BRANDS.values()
    )  # fmt: skip


def shorter_css(source: str) -> str:
    """Rules without comments and needless white space."""
    plain = re.sub(r"\s+", " ", _CSS_COMMENT.sub("", source))
    return _CSS_GAPS.sub(r"\1", plain).replace(": ", ":").replace(";}", "}").strip()
