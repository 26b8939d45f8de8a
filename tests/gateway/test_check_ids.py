"""Each finding of ``manage.py check`` has an id of its own, by which an operator finds it."""

from __future__ import annotations

import re
from collections import Counter

from config.launcher.var_folder import PROJECT_ROOT

_ROOMS = ("config", "gateway", "checkout", "reporting", "chargebacks")


def test_no_two_findings_have_one_id() -> None:
    found: Counter[str] = Counter()
    for room in _ROOMS:
        for path in (PROJECT_ROOT / room).rglob("*.py"):
            found.update(re.findall(r'\bid="(tollhouse\.[EW]\d+)"', path.read_text(encoding="utf-8")))
    assert len(found) > 20
    assert [one for one, number in found.items() if number > 1] == []
