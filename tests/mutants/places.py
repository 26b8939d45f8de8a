"""The heart of the product by part, and which tests mirror a module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

HEART: Mapping[str, tuple[str, ...]] = {
    "payments": ("gateway/payments/*.py", "gateway/core/money.py", "gateway/core/result_codes.py"),
    "api": ("gateway/api/*.py",),
    "access": (
        "gateway/api/token_admission.py",
        "gateway/access/tokens.py",
        "gateway/access/permissions.py",
        "gateway/access/signin.py",
    ),
    "vault": ("gateway/vault/*.py", "gateway/core/secret.py", "gateway/core/masking.py"),
    "risk": ("gateway/risk/*.py",),
    "cron": ("gateway/scheduling/*.py",),
    "matching": ("reporting/settlement/matching.py", "reporting/settlement/chargeback_booking.py"),
    "signing": ("gateway/notifications/signing.py", "gateway/notifications/message_verification.py"),
}
"""A module of two parts belongs to the more particular one: the later."""

_API, _PAYMENTS, _ADMIN = "tests/gateway/api", "tests/gateway/payments", "tests/gateway/backoffice"
BEYOND: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"gateway/api/.*", (f"{_PAYMENTS}/test_transaction_query.py", "tests/scenarios/test_existing_client.py")),
    (
        r"gateway/payments/.*|gateway/core/(money|result_codes)\.py",
        (
            f"{_API}/test_response_table.py", f"{_API}/test_query.py", f"{_API}/test_statements.py",
            f"{_API}/test_idempotency.py", f"{_API}/test_strangers.py", f"{_API}/test_token_limits.py",
            "tests/gateway/connectors/simulator", "tests/gateway/threeds", "tests/gateway/wallets/test_payments.py",
            "tests/model", "tests/scenarios",
        ),
    ),
    (r"gateway/risk/.*", ("tests/scenarios/test_risk.py", "tests/gateway/backoffice/test_rule_trials.py")),
    (
        r"gateway/scheduling/.*",
        ("tests/scenarios/test_subscription.py", "tests/scenarios/test_a_year_of_a_subscription.py")),
    (r"gateway/notifications/.*", (f"{_ADMIN}/test_webhook_pages.py", "tests/scenarios/test_webhooks.py")),
    (
        r"gateway/access/.*",
        (f"{_API}/test_admission.py", f"{_API}/test_token_limits.py", f"{_API}/test_token_admission.py",
         f"{_API}/test_strangers.py", _ADMIN),
    ),
    (
        r"gateway/(vault/\w*|core/(secret|masking))\.py",
        (
            f"{_PAYMENTS}/test_secrets.py", f"{_PAYMENTS}/test_acquirer_message_store.py",
            f"{_PAYMENTS}/test_registrations.py",
        ),
    ),
    (r"gateway/backoffice/.*", (_ADMIN,)),
    (r"reporting/.*", ("tests/scenarios/test_month_of_settlement.py",)),
    (r"chargebacks/.*", ("tests/reporting",)),
    (r"checkout/.*", ("tests/checkout",)),
)  # fmt: skip
"""Where else what a module does is seen, after its mirror: the first that matches."""
OF_ALL = ("tests/ground/test_constants.py", "tests/gateway/test_environment.py")
"""Seen of every module: its constants, and that models are as migrations left them."""
MIRRORS = ("gateway", "reporting", "chargebacks", "checkout")
"""The folders of tests that mirror packages."""


def modules(root: Path, parts: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Path of a module below ``root`` → its part."""
    found: dict[str, str] = {}
    for part, patterns in parts.items():
        for pattern in patterns:
            for path in sorted(root.glob(pattern)):
                if path.name != "__init__.py" or path.stat().st_size:
                    found[str(path.relative_to(root))] = part
    return found


def stages(root: Path, module: str) -> tuple[list[list[str]], list[list[str]]]:
    """The tests that mirror ``module``, near and far: those named after it, those of its folder that import it, the
    list of constants; then the folder, others that import it and those of BEYOND. One run each, so that each has the
    whole time of a run. Where no test is near, the folder is."""
    path = Path(module)
    folder = Path("tests") / path.parent
    # A room without a folder of tests has them one level up.
    while not (root / folder).is_dir():
        folder = folder.parent
    package, name = ".".join(path.parent.parts), path.stem
    imports = re.compile(
        rf"^(from|import) {re.escape(package)}\.{name}\b|^from {re.escape(package)} import (\([^)]*|.*)\b{name}\b",
        re.MULTILINE,
    )
    every = sorted(one for above in MIRRORS for one in (root / "tests" / above).rglob("test_*.py"))
    named = _relative(
        root,
        [
            one
            for one in every
            if one.stem == f"test_{name}" or (one.stem.startswith(f"test_{name}_") and one.parent == root / folder)
        ],
    )
    importing = _relative(root, [one for one in every if imports.search(one.read_text())])
    beside = [one for one in importing if one not in named and (root / one).parent == root / folder]
    beyond = next((tests for pattern, tests in BEYOND if re.fullmatch(pattern, module)), ())
    rest = dict.fromkeys(
        [*(one for one in importing if not one.startswith(f"{folder}/")), *beyond, *OF_ALL[1:]],
    )
    # The folder of the whole gateway is no mirror of one of its modules.
    whole = [str(folder)] if str(folder) not in ("tests", "tests/gateway") else []
    near = [one for one in (named, beside) if one]
    far = [[one for one in rest if one not in named and (root / one).exists()]]
    # The constants take seconds, a folder of tests minutes.
    if near or not whole:
        return [*near, [OF_ALL[0]]], [one for one in (whole, *far) if one]
    return [[OF_ALL[0]], whole], [one for one in far if one]


def _relative(root: Path, tests: list[Path]) -> list[str]:
    return list(dict.fromkeys(str(one.relative_to(root)) for one in tests))
