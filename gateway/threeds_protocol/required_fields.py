"""Which fields an authentication request (AReq) must, may and must not have, as data; checked before it is sent.

Source: EMVCo, EMV 3-D Secure Protocol and Core Functions Specification v2.2.0, table A.1 (v2.1.0 where marked; which
elements 2.2.0 modified: https://docs.3dsecure.io/3dsv2/differences.html, threeRIInd 01 to 05 in 2.1.0: Cybersource,
payerAuthEnrollService_requestorInitiatedAuthenticationIndicator). A directory server answers a missing required field
with the error 201 and a wrong format with 203.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.core.secret import Secret
from gateway.threeds_protocol.networks import THREEDS_VERSION

MISSING_ELEMENT, INVALID_FORMAT = "201", "203"
"""errorCode of an Erro message. Source: EMV 3-D Secure v2.2.0, table A.4."""

_COLUMNS: Final = ("01-01", "01-02", "02-01", "02-02", "03-01", "03-02")
"""Device channel (01 APP, 02 BRW, 03 3RI) and message category (01 PA, 02 NPA)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AReqField:
    """One data element. ``need``: per column of _COLUMNS, R required, O optional or conditional, - not allowed;
    ``form``: of its text, None for an object or list; ``since``: first protocol version that has it; ``form_2_1``: of
    its text in 2.1.0, where that has fewer values."""

    need: Mapping[str, str]
    form: str | None
    since: str = "2.1.0"
    form_2_1: str | None = None


def _field(need: str, form: str | None = ".+", since: str = "2.1.0", *, form_2_1: str | None = None) -> AReqField:
    return AReqField(need=dict(zip(_COLUMNS, need.split(), strict=True)), form=form, since=since, form_2_1=form_2_1)


_ALL, _ANY, _PA_ONLY = "R R R R R R", "O O O O O O", "R O R O R O"
_APP, _BROWSER, _BROWSER_SCRIPT = "R R - - - -", "- - R R - -", "- - O O - -"
_UUID: Final = r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_URL: Final = r"https?://[!-~]{1,2040}"
_TEXT = "[^\x00-\x1f]"

AREQ_FIELDS: Final[Mapping[str, AReqField]] = {
    "messageType": _field(_ALL, "AReq"),
    "messageVersion": _field(_ALL, r"2\.[12]\.0"),
    "threeDSServerTransID": _field(_ALL, _UUID),
    "threeDSServerRefNumber": _field(_ALL, "[!-~ ]{1,32}"),
    "threeDSServerOperatorID": _field(_ANY, "[!-~ ]{1,32}"),
    "threeDSServerURL": _field(_ALL, _URL),
    "threeDSRequestorID": _field(_ALL, _TEXT + "{1,35}"),
    "threeDSRequestorName": _field(_ALL, _TEXT + "{1,40}"),
    "threeDSRequestorURL": _field(_ALL, _URL),
    "deviceChannel": _field(_ALL, "0[123]"),
    "messageCategory": _field(_ALL, "0[12]"),
    "threeDSRequestorAuthenticationInd": _field("R R R R - -", "0[1-6]"),
    "threeDSRequestorChallengeInd": _field("O O O O - -", "0[1-9]", form_2_1="0[1-4]"),
    "threeRIInd": _field("- - - - R R", "0[1-9]|1[01]", form_2_1="0[1-5]"),
    "threeDSRequestorPriorAuthenticationInfo": _field(_ANY, None),
    "threeDSRequestorDecReqInd": _field(_ANY, "[YN]", "2.2.0"),
    "threeDSRequestorDecMaxTime": _field(_ANY, "[0-9]{5}", "2.2.0"),
    "acctNumber": _field(_ALL, "[0-9]{13,19}"),
    "acctType": _field(_ANY, "0[123]"),
    "cardExpiryDate": _field(_ANY, "[0-9]{2}(0[1-9]|1[0-2])"),
    "cardholderName": _field(_ANY, "[ -~]{2,45}"),
    "acquirerBIN": _field(_PA_ONLY, "[0-9]{1,11}"),
    "acquirerMerchantID": _field(_PA_ONLY, _TEXT + "{1,35}"),
    "merchantName": _field(_PA_ONLY, _TEXT + "{1,40}"),
    "merchantCountryCode": _field(_PA_ONLY, "[0-9]{3}"),
    "mcc": _field(_PA_ONLY, "[0-9]{4}"),
    "purchaseAmount": _field(_PA_ONLY, "[0-9]{1,48}"),
    "purchaseCurrency": _field(_PA_ONLY, "[0-9]{3}"),
    "purchaseExponent": _field(_PA_ONLY, "[0-9]"),
    "purchaseDate": _field(_PA_ONLY, "[0-9]{14}"),
    "purchaseInstalData": _field(_ANY, "[1-9][0-9]{0,2}"),
    "recurringExpiry": _field(_ANY, "[0-9]{8}"),
    "recurringFrequency": _field(_ANY, "[0-9]{1,4}"),
    "threeDSCompInd": _field(_BROWSER, "[YNU]"),
    "notificationURL": _field(_BROWSER, "https?://[!-~]{1,248}"),
    "browserAcceptHeader": _field(_BROWSER, _TEXT + "{1,2048}"),
    "browserIP": _field(_BROWSER_SCRIPT, "[0-9A-Fa-f:.]{2,45}"),
    "browserJavascriptEnabled": _field(_BROWSER, None, "2.2.0"),
    "browserJavaEnabled": _field(_BROWSER_SCRIPT, None),
    "browserLanguage": _field(_BROWSER, "[!-~]{1,8}"),
    "browserColorDepth": _field(_BROWSER_SCRIPT, "1|4|8|15|16|24|32|48"),
    "browserScreenHeight": _field(_BROWSER_SCRIPT, "[0-9]{1,6}"),
    "browserScreenWidth": _field(_BROWSER_SCRIPT, "[0-9]{1,6}"),
    "browserTZ": _field(_BROWSER_SCRIPT, "[+-]?[0-9]{1,4}"),
    "browserUserAgent": _field(_BROWSER, _TEXT + "{1,2048}"),
    "deviceRenderOptions": _field(_APP, None),
    "sdkAppID": _field(_APP, _UUID),
    "sdkEncData": _field("O O - - - -", ".{1,64000}"),
    "sdkEphemPubKey": _field(_APP, None),
    "sdkMaxTimeout": _field(_APP, "0[5-9]|[1-9][0-9]"),
    "sdkReferenceNumber": _field(_APP, "[!-~ ]{1,32}"),
    "sdkTransID": _field(_APP, _UUID),
    "email": _field(_ANY, _TEXT + "{3,254}"),
    "mobilePhone": _field(_ANY, None),
    "homePhone": _field(_ANY, None),
    "workPhone": _field(_ANY, None),
    "messageExtension": _field(_ANY, None),
    **{
        f"{start}Addr{name}": _field(_ANY, form)
        for start in ("bill", "ship")
        for name, form in {
            "City": _TEXT + "{1,50}", "Country": "[0-9]{3}", "Line1": _TEXT + "{1,50}", "Line2": _TEXT + "{1,50}",
            "PostCode": _TEXT + "{1,16}", "State": "[A-Z0-9]{1,3}",
        }.items()
    },
}  # fmt: skip
"""Data elements of an AReq that this gateway knows."""

PRIOR_FORMS: Final = {
    "threeDSReqPriorAuthMethod": "0[1-4]", "threeDSReqPriorAuthTimestamp": "[0-9]{12}", "threeDSReqPriorRef": _UUID,
}  # fmt: skip
"""Data elements of threeDSRequestorPriorAuthenticationInfo → form of their texts."""
_SCRIPT_FIELDS: Final = (
    "browserJavaEnabled", "browserColorDepth", "browserScreenHeight", "browserScreenWidth", "browserTZ",
)  # fmt: skip
_PURCHASE_FIELDS: Final = ("purchaseAmount", "purchaseCurrency", "purchaseExponent", "purchaseDate")


def find_areq_faults(message: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(errorCode, data element) of each fault, 201 for what is missing, 203 for what is wrong or not allowed. Values
    are never repeated."""
    column = f"{message.get('deviceChannel', '')}-{message.get('messageCategory', '')}"
    if column not in _COLUMNS:
        lacking = [name for name in ("deviceChannel", "messageCategory") if not message.get(name)]
        return [(MISSING_ELEMENT, name) for name in lacking] or [(INVALID_FORMAT, "deviceChannel")]
    version = str(message.get("messageVersion") or THREEDS_VERSION)
    required = [name for name, row in AREQ_FIELDS.items() if row.need[column] == "R" and row.since <= version]
    required += _list_conditional_fields(message, version)
    faults = [(MISSING_ELEMENT, name) for name in dict.fromkeys(required) if message.get(name) in (None, "")]
    for name, value in message.items():
        row = AREQ_FIELDS.get(name)
        if row is None or row.need[column] == "-" or row.since > version or not _fits(name, row, value, version):
            faults.append((INVALID_FORMAT, name))
    return faults


def _list_conditional_fields(message: Mapping[str, Any], version: str) -> list[str]:
    """Fields that others require."""
    found: list[str] = []
    indicator, requestor = message.get("threeDSRequestorAuthenticationInd"), message.get("threeRIInd")
    if indicator in ("02", "03") or requestor in ("01", "02"):
        found += ["recurringExpiry", "recurringFrequency", *_PURCHASE_FIELDS]
    if indicator == "03" or requestor == "02":
        found.append("purchaseInstalData")
    if message.get("threeDSRequestorDecReqInd") == "Y":
        found.append("threeDSRequestorDecMaxTime")
    if message.get("deviceChannel") == "02" and (version < "2.2.0" or message.get("browserJavascriptEnabled") is True):
        found += _SCRIPT_FIELDS
    return found


def _fits(name: str, row: AReqField, value: Any, version: str) -> bool:
    form = row.form_2_1 if row.form_2_1 is not None and version < "2.2.0" else row.form
    if isinstance(value, Secret):
        return form is not None and re.fullmatch(form, value.reveal(), re.DOTALL) is not None
    if form is not None:
        return isinstance(value, str) and re.fullmatch(form, value, re.DOTALL) is not None
    if name.endswith("Phone"):
        return (
            isinstance(value, dict)
            and set(value) == {"cc", "subscriber"}
            and re.fullmatch("[0-9]{1,3}", str(value["cc"])) is not None
            and re.fullmatch("[0-9]{1,15}", str(value["subscriber"])) is not None
        )
    if name == "messageExtension":
        wanted = {"name", "id", "criticalityIndicator", "data"}
        return isinstance(value, list) and all(isinstance(one, dict) and wanted <= set(one) for one in value)
    if name == "threeDSRequestorPriorAuthenticationInfo":
        return isinstance(value, dict) and all(
            name in PRIOR_FORMS and re.fullmatch(PRIOR_FORMS[name], str(text)) is not None
            for name, text in value.items()
        )
    return isinstance(value, dict if name in ("deviceRenderOptions", "sdkEphemPubKey") else bool)
