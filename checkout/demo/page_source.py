"""The HTML page that a merchant copies, and the languages by their own names."""

from __future__ import annotations

from typing import Final

LANGUAGE_NAMES: Final = {
    "en": "English", "de": "Deutsch", "fr": "Français", "es": "Español", "it": "Italiano", "nl": "Nederlands",
    "dk": "Dansk", "fi": "Suomi", "se": "Svenska", "tr": "Türkçe", "ja": "日本語", "sl": "Slovenščina",
    "pt": "Português", "pl": "Polski", "cz": "Čeština", "hu": "Magyar", "bg": "Български", "ro": "Română",
    "ru": "Русский", "cn": "中文", "gr": "Ελληνικά", "no": "Norsk", "sk": "Slovenčina", "ar": "العربية",
    "ko": "한국어",
}  # fmt: skip

SHOP_RESULT_ADDRESS: Final = "https://shop.example/result"
_LINES: Final = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Pay</title>
  <script src="{base}/v1/paymentWidgets.js?checkoutId={{checkout id}}"
          integrity="{{integrity}}" crossorigin="anonymous"></script>
</head>
<body>
  <h1>Your order</h1>
  <form action="{result}" class="paymentWidgets"
        data-brands="VISA MASTER AMEX"></form>
</body>
</html>"""


def render_page_source(base: str, *, live: bool = False) -> str:
    """A whole page with the form: 15 lines. In the test environment it ends on the gateway's own page about the result;
    in live (``live``) an address of the shop stands there."""
    result = SHOP_RESULT_ADDRESS if live else f"{base}/docs/result"
    return _LINES.format(base=base, result=result)
