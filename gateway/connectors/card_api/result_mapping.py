"""Maps the processor's codes: declines, errors, address and CVV checks, dispute reasons.

Every table has a default for codes that it does not list. Sources: the processor's public reference of decline codes,
error codes and card checks; Part B, Payment response (avsResponse, cvvResponse); ruling D9.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.core.result_codes import CHARGEBACK_WITHOUT_REASON

UNLISTED_DECLINE: Final = "800.100.152"
"""A decline with an unlisted code."""
UNLISTED_ERROR: Final = "900.100.200"
"""An error with an unlisted code."""
PAYMENT_TYPE_NOT_OFFERED: Final = "600.200.400"
"""The processor does not have the payment type."""
MEANS_NOT_ACCEPTED: Final = "600.200.200"
CARD_MISSING: Final = "100.100.100"
CVV_MISSING: Final = "100.100.600"
AMOUNT_TOO_FINE: Final = "100.550.303"

RESULT_BY_DECLINE_CODE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "approve_with_id": "800.100.209",
        "authentication_not_handled": SOFT_DECLINE,
        "authentication_required": SOFT_DECLINE,
        "call_issuer": "800.100.209",
        "card_not_supported": "800.100.169",
        "card_velocity_exceeded": "800.100.163",
        "currency_not_supported": "800.100.173",
        "do_not_honor": "800.100.183",
        "do_not_try_again": "800.100.160",
        "duplicate_transaction": "800.110.100",
        "expired_card": "100.100.303",
        "fraudulent": "100.100.701",
        "generic_decline": UNLISTED_DECLINE,
        "highest_risk_level": "100.400.319",
        "incorrect_address": "800.400.100",
        "incorrect_cvc": "800.100.153",
        "incorrect_number": "100.100.101",
        "incorrect_pin": "800.100.166",
        "incorrect_zip": "800.400.104",
        "insufficient_funds": "800.100.155",
        "invalid_account": "800.100.151",
        "invalid_amount": "800.100.174",
        "invalid_cvc": "800.100.153",
        "invalid_expiry_month": "100.100.201",
        "invalid_expiry_year": "100.100.301",
        "invalid_number": "100.100.101",
        "invalid_pin": "800.100.166",
        "issuer_not_available": "900.100.201",
        "lost_card": "800.100.165",
        "merchant_blacklist": "800.300.101",
        "mobile_device_authentication_required": SOFT_DECLINE,
        "new_account_information_available": "800.100.151",
        "no_action_taken": UNLISTED_DECLINE,
        "not_permitted": "800.100.170",
        "offline_pin_required": "800.100.166",
        "online_or_offline_pin_required": "800.100.166",
        "pickup_card": "800.100.171",
        "pin_try_exceeded": "800.100.178",
        "previously_declined_do_not_retry": "100.400.319",
        "processing_error": "900.100.201",
        "reenter_transaction": "900.100.201",
        "requested_block_on_incorrect_cvc": "800.100.153",
        "restricted_card": "800.100.168",
        "revocation_of_all_authorizations": "800.100.501",
        "revocation_of_authorization": "800.100.500",
        "rule": "100.400.319",
        "security_violation": "800.100.158",
        "service_not_allowed": "800.100.170",
        "stolen_card": "800.100.159",
        "stop_payment_order": "800.100.500",
        "testmode_decline": "800.100.151",
        "transaction_not_allowed": "800.100.170",
        "try_again_later": "800.100.176",
        "withdrawal_count_limit_exceeded": "800.100.179",
    }
)
"""``decline_code`` (and codes of errors of the type card_error) → result code."""

RESULT_BY_ERROR_CODE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "amount_too_large": "100.550.301",
        "amount_too_small": "100.550.300",
        "balance_insufficient": "800.100.164",
        "capture_charge_authorization_expired": "700.400.100",
        "capture_unauthorized_payment": "700.400.510",
        "card_decline_rate_limit_exceeded": "800.100.163",
        "card_declined": UNLISTED_DECLINE,
        "charge_already_captured": "700.400.100",
        "charge_already_refunded": "700.400.200",
        "charge_disputed": "700.300.600",
        "charge_exceeds_source_limit": "800.100.164",
        "charge_exceeds_transaction_limit": "800.100.164",
        "charge_expired_for_capture": "700.400.100",
        "charge_not_refundable": "700.400.200",
        "country_unsupported": "600.200.500",
        "intent_invalid_state": "800.100.191",
        "invalid_charge_amount": "800.100.174",
        "invalid_currency": "100.550.401",
        "livemode_mismatch": "600.200.700",
        "payment_intent_authentication_failure": "100.380.401",
        "payment_intent_incompatible_payment_method": MEANS_NOT_ACCEPTED,
        "payment_intent_invalid_parameter": UNLISTED_ERROR,
        "payment_intent_unexpected_state": "800.100.191",
        "payment_method_not_available": "900.100.201",
        "payouts_not_allowed": "600.200.500",
        "postal_code_invalid": "800.400.104",
        "refund_disputed_payment": "700.300.600",
        "resource_missing": "600.200.500",
        "setup_attempt_failed": UNLISTED_DECLINE,
        "setup_intent_authentication_failure": "100.380.401",
        "setup_intent_unexpected_state": "800.100.191",
        "testmode_charges_only": "600.200.700",
        "transfers_not_allowed": "600.200.500",
    }
)
"""``code`` of an error → result code."""

_IN_ORDER: Final = "payment_intent_unexpected_state"
RESULT_BY_FOLLOW_UP_ERROR: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("CP", "amount_too_large"): "700.400.100",
        ("CP", "resource_missing"): "700.400.510",
        ("CP", _IN_ORDER): "700.400.100",
        ("CP", "payment_intent_invalid_parameter"): "700.400.101",
        ("RF", "amount_too_large"): "700.400.200",
        ("RF", "resource_missing"): "700.400.520",
        ("RF", _IN_ORDER): "700.400.200",
        ("RV", "amount_too_large"): "700.400.300",
        ("RV", "charge_already_refunded"): "700.400.300",
        ("RV", "resource_missing"): "700.400.530",
        ("RV", _IN_ORDER): "700.400.300",
    }
)
"""(payment type, ``code`` of an error) → result code, where a follow-up has words of its own."""

RESULT_BY_UNEXPLAINED_FOLLOW_UP: Final[Mapping[str, str]] = MappingProxyType(
    {"CP": "700.400.100", "RF": "700.400.200", "RV": "700.400.300"}
)
"""The result code of a follow-up that is refused without any code."""


def map_decline(decline_code: str, code: str, operation: str) -> str:
    """The result code of a decline or refusal, always one of the table; '' for a code that was not sent."""
    for table, word in (
        (RESULT_BY_DECLINE_CODE, decline_code),
        (RESULT_BY_ERROR_CODE, code),
        (RESULT_BY_DECLINE_CODE, code),
    ):
        if found := RESULT_BY_FOLLOW_UP_ERROR.get((operation, word)) or table.get(word):
            return found
    if decline_code:
        return UNLISTED_DECLINE
    return UNLISTED_ERROR if code else RESULT_BY_UNEXPLAINED_FOLLOW_UP.get(operation, UNLISTED_ERROR)


_PASS, _FAIL = "pass", "fail"
CVV_RESPONSE_BY_CHECK: Final[Mapping[str, str]] = MappingProxyType(
    {_PASS: "M", _FAIL: "N", "unavailable": "U", "unchecked": "P"}
)
"""``cvc_check`` → cvvResponse, in the schemes' own letters; none for a check that was not made."""


def map_address_checks(line: str, postcode: str) -> str:
    """The avsResponse for ``address_line1_check`` and ``address_postal_code_check``; '' if neither was made."""
    results = {line, postcode} - {""}
    if not results & {_PASS, _FAIL}:
        return "U" if results else ""
    return _AVS[line == _PASS, postcode == _PASS]


_AVS: Final[Mapping[tuple[bool, bool], str]] = MappingProxyType(
    {(True, True): "F", (True, False): "A", (False, True): "Z", (False, False): "N"}
)

CHARGEBACK_REASON_BY_DISPUTE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bank_cannot_process": "000.100.207",
        "check_returned": "000.100.207",
        "credit_not_processed": "000.100.225",
        "customer_initiated": "000.100.206",
        "debit_not_authorized": "000.100.230",
        "duplicate": "000.100.224",
        "fraudulent": "000.100.220",
        "general": CHARGEBACK_WITHOUT_REASON,
        "incorrect_account_details": "000.100.201",
        "insufficient_funds": "000.100.203",
        "noncompliant": "000.100.233",
        "product_not_received": "000.100.221",
        "product_unacceptable": "000.100.223",
        "subscription_canceled": "000.100.205",
        "unrecognized": "000.100.222",
    }
)
"""``reason`` of a dispute → reason of a chargeback; CHARGEBACK_WITHOUT_REASON for any other."""
