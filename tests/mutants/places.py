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
_SEPA, _CARDS = "tests/gateway/connectors/sepa", "tests/gateway/connectors/iso8583"
BEYOND: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        r"gateway/payments/(bank_order_outcomes|store)\.py",
        (f"{_SEPA}/test_bank_message_intake.py", f"{_SEPA}/test_concurrent_moves.py",
         f"{_SEPA}/test_which_message_wins.py", f"{_SEPA}/test_reversals.py"),
    ),
    (
        r"gateway/payments/(responses|stored_answer|webhook_payloads|process|side_effects)\.py|gateway/api/payments\.py",
        (f"{_API}/test_payment_answers.py", f"{_API}/test_idempotency.py", "tests/scenarios/test_registrations.py"),
    ),
    (
        r"gateway/payments/(follow_ups|operation_table|authoriz\w*|chain\w*|outcomes)\.py",
        (f"{_PAYMENTS}/test_authorization_expiry.py", f"{_PAYMENTS}/test_operation_table.py", _CARDS,
         f"{_SEPA}/test_recalls.py", "tests/scenarios/test_authorize_and_capture.py"),
    ),
    (r"gateway/payments/recovery\.py", (f"{_PAYMENTS}/test_recovery.py", f"{_PAYMENTS}/test_late_approvals.py")),
    (r"gateway/payments/wallet\w*\.py", ("tests/gateway/wallets", "tests/scenarios/test_mobile_wallets.py")),
    (r"gateway/payments/failover\.py", ("tests/gateway/connectors/test_circuit.py", f"{_PAYMENTS}/test_failover.py")),
    (r"gateway/payments/transaction_query\.py", ("tests/gateway/personal_data/test_payment_archiving.py",)),
    (r"gateway/payments/(held_parts|partial\w*)\.py", ("tests/checkout/test_parts.py", "tests/model/test_parts.py")),
    (r"gateway/payments/risk_screening\.py", ("tests/gateway/risk", "tests/scenarios/test_risk.py")),
    (r"gateway/access/signin\.py", (f"{_ADMIN}/test_signing_in.py", f"{_ADMIN}/test_single_sign_on.py")),
    (r"gateway/access/permissions\.py", (f"{_ADMIN}/test_scopes.py", f"{_ADMIN}/test_rights.py")),
    (r"reporting/settlement/.*", ("tests/reporting/test_intake.py", "tests/reporting/test_matching.py")),
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
"""Where else what a module does is seen, before the whole of its folder: all that match, one after the other."""
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
    list of constants; then those of BEYOND, the folder, and others that import it. One run each, so that each has the
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
    beyond = dict.fromkeys(one for pattern, tests in BEYOND if re.fullmatch(pattern, module) for one in tests)
    rest = dict.fromkeys([*(one for one in importing if not one.startswith(f"{folder}/")), *OF_ALL[1:]])
    # The folder of the whole gateway is no mirror of one of its modules.
    whole = [str(folder)] if str(folder) not in ("tests", "tests/gateway") else []
    near = [one for one in (named, beside) if one]
    first = [one for one in beyond if one not in named and (root / one).exists()]
    far = [[one for one in rest if one not in named and one not in beyond and (root / one).exists()]]
    # The constants take seconds, a folder of tests minutes.
    if near or not whole:
        return [*near, [OF_ALL[0]]], [one for one in (first, whole, *far) if one]
    return [[OF_ALL[0]], whole], [one for one in (first, *far) if one]


def _relative(root: Path, tests: list[Path]) -> list[str]:
    return list(dict.fromkeys(str(one.relative_to(root)) for one in tests))
