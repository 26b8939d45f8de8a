"""Output of the command line: lines for people, or JSON, one object to a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from tollhouse._model import Answer, classify_result_code
from tollhouse.errors import ApiError


class Console:
    """Standard output. ``as_json``: objects instead of lines."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def show(self, line: str, data: Mapping[str, Any]) -> None:
        """A line for people, or the object behind it."""
        sys.stdout.write((json.dumps(data, ensure_ascii=False) if self.as_json else line) + "\n")
        sys.stdout.flush()

    def hint(self, line: str) -> None:
        """A line for people only."""
        if not self.as_json:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def show_answer(self, answer: Answer) -> int:
        """An answer; the exit code: 1 for a declined one."""
        data = answer.to_dict()
        self.show(describe(data), data)
        return 1 if answer.outcome == "declined" else 0

    def show_error(self, error: ApiError) -> None:
        """A refused request, with every fault on a line of its own."""
        if self.as_json:
            sys.stdout.write(json.dumps({"status": error.status, **error.body}, ensure_ascii=False) + "\n")
            return
        sys.stderr.write(f"Refused: HTTP {error.status} {error.code} {error.description}\n")
        for one in error.errors:
            sent = f" (sent: {one.value})" if one.value is not None else ""
            sys.stderr.write(f"  {one.name}: {one.message}{sent}\n")
        if error.ndc:
            sys.stderr.write(f"  ndc: {error.ndc}\n")


def describe(data: Mapping[str, Any]) -> str:
    """A payment, registration, subscription or clock on one line."""
    result = data.get("result") or {}
    money = f"{data['amount']} {data.get('currency', '')}".strip() if data.get("amount") else ""
    card = data.get("card") or {}
    last = f"··{card['last4Digits']}" if card.get("last4Digits") else ""
    code = str(result.get("code", ""))
    parts = [data.get("id"), data.get("paymentType"), money, data.get("paymentBrand"), last]
    parts += [f"now {data['now']}" if "now" in data else "", code]
    parts += [classify_result_code(code) if data.get("paymentType") else "", result.get("description")]
    return "  ".join(str(part) for part in parts if part)
