"""Reads what alert providers send: alerts and inquiries as named fields, in signed JSON messages or lines of a file.

The fields have the same names in both, in JSON with a small first letter: paymentId, or entityId with
merchantTransactionId; alertId, amount, currency, and if there are any kind, reasonCode, respondBy. A message is signed
with a secret of its provider (HMAC-SHA256, ``t=<seconds>,v1=<hex>`` over ``<seconds>.<body>``).
Source: docs/chargebacks.md; docs/decisions/0088.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings

from chargebacks.alerts import ALERTED_TYPES, AlertFacts, record_alert
from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON
from chargebacks.models import DisputeAlert
from chargebacks.stages import SCHEME_REASONS
from gateway.access import audit_log
from gateway.connectors.card_api.webhook_signature import explain_bad_signature
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.core.money import parse_amount
from gateway.core.secret import Secret
from gateway.models import Payment, Status

ALERT_SIGNATURE_HEADER: Final = "Tollhouse-Signature"
MAX_ALERT_BYTES: Final = 16_384
MIN_PROVIDER_SECRET_CHARS: Final = 32
MAX_ALERT_ID_CHARS: Final = 64
MAX_ALERT_DEADLINE: Final = timedelta(days=3650)
"""How far from today an answer may be due."""
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")
_PROVIDER: Final = re.compile(r"([a-z0-9-]{1,32})=(.+)")
_FIELDS: Final = frozenset(
    {
        "PaymentId",
        "EntityId",
        "MerchantTransactionId",
        "AlertId",
        "Amount",
        "Currency",
        "Kind",
        "ReasonCode",
        "RespondBy",
    }
)


class AlertFieldError(ValueError):
    """A field of an alert is missing or wrong: ``field``, and what is allowed."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why = field, why


class AlertSignatureError(Exception):
    """The message is not signed by the provider."""


def parse_provider_secrets(entries: Sequence[str]) -> dict[str, list[Secret]]:
    """Secrets by provider, of the setting GATEWAY_ALERT_PROVIDERS (``name=secret``; a name may come twice, while its
    secret is changed). Raises ValueError, which does not show a secret."""
    found: dict[str, list[Secret]] = {}
    for number, entry in enumerate(entries, 1):
        parts = _PROVIDER.fullmatch(entry.strip())
        if parts is None or len(parts[2]) < MIN_PROVIDER_SECRET_CHARS:
            raise ValueError(
                f"entry {number}: name=secret, the name of a-z, 0-9 and -, the secret of"
                f" {MIN_PROVIDER_SECRET_CHARS} characters or more"
            )
        found.setdefault(parts[1], []).append(Secret(parts[2]))
    return found


def receive_alert(provider: str, header: str, body: bytes) -> tuple[DisputeAlert, bool]:
    """Record the alert of a signed message; sent again, it is the same alert in its present state. Returns it, and
    whether this call made it. Raises KeyError for an unknown provider, AlertSignatureError, AlertFieldError and
    AlertNotPossibleError."""
    secrets = parse_provider_secrets(settings.GATEWAY_ALERT_PROVIDERS)[provider]
    why = explain_bad_signature(header, body, secrets, clock.real_now().timestamp(), name=ALERT_SIGNATURE_HEADER)
    if why:
        raise AlertSignatureError(why)
    fields = _parse_fields(body)
    known = DisputeAlert.objects.filter(provider=provider, reference=fields.get("AlertId", ""))
    payment = find_alerted_payment(fields)
    if (same := known.filter(merchant=payment.merchant_id).first()) is not None:
        if same.disputed != payment.id:
            raise AlertFieldError("AlertId", "is that of an alert about another payment")
        return same, False
    return record_alert(payment, read_alert_facts(fields, provider), audit_log.Actor(name=f"alerts of {provider}"))


def find_alerted_payment(fields: Mapping[str, str]) -> Payment:
    """The payment that an alert names, by its id or by the merchant's. Raises AlertFieldError."""
    rows = Payment.objects.select_related("merchant", "channel")
    if given := fields.get("PaymentId", ""):
        key = identifiers.parse_id(given)
        found = rows.filter(pk=key).first() if key is not None else None
        if found is None:
            raise AlertFieldError("PaymentId", "no payment has this id (32 lower-case hex digits)")
        return found
    entity, named = identifiers.parse_id(fields.get("EntityId", "")), fields.get("MerchantTransactionId", "")
    if entity is None or not named:
        raise AlertFieldError("PaymentId", "is missing: send it, or EntityId and MerchantTransactionId")
    mine = rows.filter(channel=entity, merchant_transaction_id=named, payment_type__in=ALERTED_TYPES)
    matching = list(mine.filter(status=Status.APPROVED)[:2])
    if len(matching) != 1:
        how_many = "several payments have" if matching else "no approved debit, capture or rebill has"
        raise AlertFieldError("MerchantTransactionId", f"{how_many} this one: send PaymentId")
    return matching[0]


def read_alert_facts(fields: Mapping[str, str], provider: str) -> AlertFacts:
    """What an alert says besides its payment. Raises AlertFieldError, which names the field."""
    for name in ("AlertId", "Amount", "Currency"):
        if not fields.get(name):
            raise AlertFieldError(name, "is missing")
    if len(fields["AlertId"]) > MAX_ALERT_ID_CHARS or mask_text(fields["AlertId"]) != fields["AlertId"]:
        raise AlertFieldError("AlertId", f"at most {MAX_ALERT_ID_CHARS} characters, and nothing like a card number")
    if (kind := fields.get("Kind") or DisputeAlert.Kind.ALERT.value) not in DisputeAlert.Kind.values:
        raise AlertFieldError("Kind", "ALERT or INQUIRY")
    try:
        amount = parse_amount(fields["Amount"])
    except ValueError:
        raise AlertFieldError("Amount", "a number with a dot and two decimals, e.g. 92.00") from None
    code = fields.get("ReasonCode", "")
    scheme = SCHEME_REASONS.get(code)
    return AlertFacts(
        provider=provider,
        reference=fields["AlertId"],
        amount=amount,
        currency=fields["Currency"],
        kind=DisputeAlert.Kind(kind),
        reason=scheme.result if scheme is not None else code if code.startswith("000.") else OTHER_CHARGEBACK_REASON,
        scheme_reason="" if code.startswith("000.") else mask_text(code)[:16],
        respond_by=_read_time(fields.get("RespondBy", "")),
    )


def _read_time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        at = (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise AlertFieldError("RespondBy", "a time with its zone, e.g. 2030-01-31T12:00:00+00:00") from None
    if abs(at - clock.real_now()) > MAX_ALERT_DEADLINE:
        raise AlertFieldError("RespondBy", f"within {MAX_ALERT_DEADLINE.days} days of today")
    return at


def _parse_fields(body: bytes) -> dict[str, str]:
    """The fields of a JSON message, by the names of a file's columns. Raises AlertFieldError."""
    try:
        sent: Any = json.loads(body)
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict):
        raise AlertFieldError("", "the body is no JSON object")
    fields = {}
    for name, value in sent.items():
        column = f"{name[:1].upper()}{name[1:]}"
        if column not in _FIELDS or name[:1].isupper():
            raise AlertFieldError(mask_text(name)[:64], "is not a field of an alert")
        if not isinstance(value, str) or len(value) > 255 or _UNSTORABLE.search(value):
            raise AlertFieldError(name, "a text of at most 255 characters")
        fields[column] = value.strip()
    return fields
