"""Builds the EMV 3-D Secure messages (2.2.0) from a request's flat parameters. Pure: no rows, no clock, no network.

AReq/ARes request an authentication, CReq/CRes are the challenge, RReq/RRes carry its result. Messages are dicts by EMV
field name. Source: Part B, 3D Secure, Card on file; rulings D31 to D35.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import pycountry
from text_unidecode import unidecode  # type: ignore[import-untyped]

from gateway.core.masking import mask_pan, mask_text
from gateway.core.money import Money, currency_exponent, currency_number
from gateway.core.peer_json import parse_peer_json
from gateway.core.secret import Secret
from gateway.threeds_protocol.networks import THREEDS_VERSION
from gateway.threeds_protocol.required_fields import PRIOR_FORMS

ThreeDSMessage = dict[str, Any]

APP_CHANNEL, BROWSER_CHANNEL, REQUESTOR_CHANNEL = "01", "02", "03"
"""Device channels: an app with an SDK, a browser, the merchant alone (3RI)."""
PAYMENT_CATEGORY, NON_PAYMENT_CATEGORY = "01", "02"
"""Message categories (PA, NPA)."""

PROVING_STATUSES: Final = frozenset({"Y", "A"})
"""transStatus of an authentication, and of its attempt."""

AUTHENTICATION_IND: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PAYMENT": "01", "RECURRING": "02", "INSTALLMENT": "03", "ADD_CARD": "04", "MAINTAIN_CARD": "05",
        "EMV_ID": "06", "BILLING_AGREEMENT": "01", "SPLIT_SHIPMENT": "01", "DELAYED_SHIPMENT": "01",
        "_DELAYED_SHIPMENT": "01", "SPLIT_PAYMENT": "01",
    }
)  # fmt: skip
"""threeDSecure.authenticationInd → threeDSRequestorAuthenticationInd. 2.2.0 has 01 to 06: the values of its own for
agreements and shipments (07 to 10) came with 2.3, and a directory server of 2.2.0 answers them with 203.
Source: EMV 3-D Secure v2.2.0, table A.1, 3DS Requestor Authentication Indicator."""
AUTHENTICATION_IND_BY_STANDING_TYPE: Final[Mapping[str, str]] = MappingProxyType(
    {"RECURRING": "02", "INSTALLMENT": "03"}
)
"""standingInstruction.type → the indicator where authenticationInd is not sent."""
THREE_RI_IND: Final[Mapping[str, str]] = MappingProxyType(
    {"RECURRING": "01", "SPLIT_SHIPMENT": "06", "DELAYED_SHIPMENT": "06"}
)
INSTALMENT_THREE_RI_IND: Final = "02"
"""A 3RI of an agreement on instalments. Source: EMV 3-D Secure v2.2.0, table A.1, 3RI Indicator."""
OTHER_PAYMENT_THREE_RI_IND: Final = "11"
"""A 3RI of an agreement without an end or a frequency, which 01 and 02 require, or a number of instalments for 02."""
THREE_RI_IND_SINCE_2_2: Final = frozenset({"06", OTHER_PAYMENT_THREE_RI_IND})
"""Of these, what 2.1.0 does not have: it has 01 to 05, and none of those says truly that goods are shipped later.
https://vcasdocs.cardinalcommerce.com/rdx/v2.2.3/docs/3ri-indicator-values"""
DATA_ONLY: Final = "06"
"""The challengeIndicator for sharing data only, without an authentication."""
CHALLENGE_IND_IN_2_1: Final[Mapping[str, str]] = MappingProxyType(
    {"05": "02", "06": "02", "07": "02", "08": "02", "09": "03"}
)
"""Values that protocol 2.1.0 does not have → the nearest that it has: no challenge is asked for, or one is."""
CHALLENGE_MANDATED: Final = "04"
CHALLENGE_REQUESTED: Final = frozenset({"03", CHALLENGE_MANDATED})
"""The challengeIndicators that request a challenge: preferred by the merchant, mandated."""
METHOD_NOT_COMPLETED, METHOD_COMPLETED, METHOD_UNAVAILABLE = "N", "Y", "U"
"""threeDSCompInd: the method call did not end in time, ended, or there was none."""
CHALLENGE_WINDOWS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"01": ("250", "400"), "02": ("390", "400"), "03": ("500", "600"), "04": ("600", "400"), "05": ("full", "full")}
)
"""Challenge window sizes by code: width and height in CSS pixels."""
DEFAULT_CHALLENGE_WINDOW: Final = "05"

_BROWSER: Final = (
    ("browserAcceptHeader", "acceptHeader"),
    ("browserLanguage", "language"),
    ("browserScreenHeight", "screenHeight"),
    ("browserScreenWidth", "screenWidth"),
    ("browserTZ", "timezone"),
    ("browserUserAgent", "userAgent"),
    ("browserJavaEnabled", "javaEnabled"),
    ("browserColorDepth", "screenColorDepth"),
)
_ADDRESS: Final = (("City", "city"), ("PostCode", "postcode"))
_E164: Final = re.compile(
    r"\+(?P<cc>1|7|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|[2-9][0-9]{2})(?P<subscriber>[0-9]{1,14})"
)
"""International numbers; no country code is the beginning of another. Source: ITU-T E.164, list of country codes."""
SDK_FIELDS: Final = (
    "sdkAppID", "sdkEncData", "sdkEphemPubKey", "sdkMaxTimeout", "sdkReferenceNumber", "sdkTransID",
    "deviceRenderOptions",
)  # fmt: skip
COLOR_DEPTHS: Final = (1, 4, 8, 15, 16, 24, 32, 48)
"""The values of browserColorDepth. Screens have others, many of them 30: the next lower value is sent."""
MAX_AREQ_CHARS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "cardholderName": 45, "merchantName": 40, "threeDSRequestorName": 40,
        **{f"{start}Addr{name}": 50 for start in ("bill", "ship") for name in ("City", "Line1", "Line2")},
    }
)  # fmt: skip
"""Texts of an AReq that are cut to its length. Source: EMV 3-D Secure v2.2.0, table A.1."""
MAX_WHOLE_AREQ_CHARS: Final[Mapping[str, int]] = MappingProxyType(
    {"email": 254, "billAddrPostCode": 16, "shipAddrPostCode": 16}
)
"""Longest values of fields that are left out where they are longer: cut off they would be another one's."""
_RECURRING_IND, _INSTALMENT_IND = "02", "03"
SCHEME_DATA_EXTENSION_ID: Final = "A000000042-001"
"""messageExtension.id of the regional scheme's data: its RID, and a number of the extension."""
DECOUPLED_MINUTES: Final = 60
"""How long a decoupled authentication is waited for: threeDSRequestorDecMaxTime."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRange:
    """The directory's card range data: protocol version, and whether the issuer has a 3DS method page. ``method_url``:
    its address, empty for the simulated one; ``server``: the fields by which the 3DS server names itself."""

    version: str
    method: bool
    method_url: str = ""
    server: Mapping[str, str] = field(default_factory=dict)


PRIOR_METHOD_BY_FLOW: Final[Mapping[str, str]] = MappingProxyType(
    {"frictionless": "01", "challenge": "02", "decoupled": "04"}
)
"""Flow of an earlier authentication → threeDSReqPriorAuthMethod; 04 is another way of the issuer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorAuthentication:
    """The cardholder's own authentication that one of the merchant alone builds on. ``acs_transaction``: its
    acsTransID; ``flow``: of PRIOR_METHOD_BY_FLOW."""

    acs_transaction: str
    flow: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationSubject:
    """The card, amount and parties of an authentication. ``parameters``: the merchant's, by full name; ``requestor``:
    what network and acquirer assigned, from the channel's configuration; ``expiry``: month (2 digits), year (4);
    ``server``: the fields by which the 3DS server names itself (threeDSServerRefNumber, threeDSServerURL, …);
    ``prior``: of 3RI, where it is known."""

    id: UUID
    brand: str
    network: str
    number: Secret
    expiry: tuple[str, str]
    holder: str
    money: Money
    parameters: Mapping[str, str]
    at: datetime
    merchant: str
    account: str = ""
    challenge_indicator: str = ""
    requestor: Mapping[str, str] = field(default_factory=dict)
    notification_url: str = ""
    website: str = ""
    merchant_category_code: str = ""
    merchant_country: str = ""
    version: str = THREEDS_VERSION
    server: Mapping[str, str] = field(default_factory=dict)
    prior: PriorAuthentication | None = None


def resolve_authenticated_amount(parameters: Mapping[str, str], paid: Money) -> Money:
    """The amount to authenticate: risk.amount, else threeDSecure.amount, else the payment's, in threeDSecure.currency
    if sent (ruling D33)."""
    text = parameters.get("risk.amount") or parameters.get("threeDSecure.amount")
    currency = parameters.get("threeDSecure.currency") or paid.currency
    return Money(Decimal(text) if text else paid.amount, currency)


def resolve_device_channel(parameters: Mapping[str, str]) -> str:
    """The device channel: threeDSecure.channel or threeRIInd mark 3RI, deviceInfo an app, else a browser."""
    if "threeDSecure.channel" in parameters or "threeDSecure.threeRIInd" in parameters:
        return REQUESTOR_CHANNEL
    return APP_CHANNEL if "threeDSecure.deviceInfo" in parameters else BROWSER_CHANNEL


def resolve_message_category(parameters: Mapping[str, str]) -> str:
    """The message category: payment or non-payment."""
    return NON_PAYMENT_CATEGORY if parameters.get("threeDSecure.npa") == "true" else PAYMENT_CATEGORY


def resolve_merchant_country(parameters: Mapping[str, str], own: str) -> str:
    """The merchant's country in two letters: that of the request, else ``own``."""
    code = parameters.get("threeDSecure.merchant.country") or parameters.get("merchant.country") or own
    found = pycountry.countries.get(alpha_3=code) if len(code) == 3 else None
    return found.alpha_2 if found is not None else code


def resolve_challenge_window(challenge_window: str) -> str:
    """The two-digit window size of customer.browser.challengeWindow (one digit); full screen for none or an unknown
    one."""
    code = challenge_window.zfill(2)
    return code if code in CHALLENGE_WINDOWS else DEFAULT_CHALLENGE_WINDOW


def needs_authentication_value(category: str, trans_status: str) -> bool:
    """Whether an ARes or RReq has an authenticationValue. Source: EMV 3-D Secure v2.2.0, table A.1, Authentication
    Value: required for 01-PA with status Y or A; for 02-NPA by the directory server's rules."""
    return category != NON_PAYMENT_CATEGORY and trans_status in PROVING_STATUSES


def build_areq(ask: AuthenticationSubject) -> ThreeDSMessage:
    """The authentication request. What is optional is sent as far as the protocol takes it."""
    given = ask.parameters
    channel = resolve_device_channel(given)
    month, year = ask.expiry
    message: ThreeDSMessage = {
        "messageType": "AReq",
        "messageVersion": ask.version,
        **ask.server,
        "threeDSServerTransID": str(ask.id),
        "deviceChannel": channel,
        "messageCategory": resolve_message_category(given),
        "acctNumber": ask.number,
        "cardExpiryDate": year[-2:] + month,
        "cardholderName": _convert_holder(ask.holder),
        "purchaseAmount": str(_minor_units(ask.money)),
        "purchaseCurrency": currency_number(ask.money.currency),
        "purchaseExponent": str(currency_exponent(ask.money.currency)),
        "purchaseDate": f"{ask.at:%Y%m%d%H%M%S}",
        "notificationURL": ask.notification_url if channel == BROWSER_CHANNEL else "",
        **_requestor(ask),
        **_wishes(ask, channel),
        **_merchant(ask),
        **_agreement(given),
        **_customer(given),
    }
    if channel == BROWSER_CHANNEL:
        message |= _browser(given, ask.version) | {"threeDSCompInd": METHOD_UNAVAILABLE}
    elif channel == APP_CHANNEL:
        message |= _sdk(given["threeDSecure.deviceInfo"])
    if scheme := {name: value for name, value in given.items() if name.startswith("threeDSecure.schemeData[")}:
        data = {name.partition("[")[2].rstrip("]"): value for name, value in scheme.items()}
        message["messageExtension"] = [
            {"name": "Scheme data", "id": SCHEME_DATA_EXTENSION_ID, "criticalityIndicator": False, "data": data}
        ]
    if not _is_instalment(message):
        del message["purchaseInstalData"]
    return _fit_texts({name: value for name, value in message.items() if value not in ("", None)})


def _is_instalment(message: ThreeDSMessage) -> bool:
    """Whether an AReq is about an instalment; any other one has no purchaseInstalData (table A.1)."""
    asked = message.get("threeDSRequestorAuthenticationInd"), message.get("threeRIInd")
    return asked[0] == _INSTALMENT_IND or asked[1] == INSTALMENT_THREE_RI_IND


def _convert_holder(name: str) -> str:
    """The name in the characters of cardholderName: letters with marks and of other scripts are transliterated, as on
    the card; '' for a name of which less than two are left. Source: EMV 3-D Secure v2.2.0, table A.1, Cardholder Name:
    2 to 45 characters of EMV Book 4, Appendix B."""
    plain = " ".join(re.sub("[^ -~]", " ", unidecode(name)).split())
    return plain if len(plain) > 1 else ""


def _fit_texts(message: ThreeDSMessage) -> ThreeDSMessage:
    """The message with its texts in the protocol's lengths, which are shorter than those of our parameters: a long name
    or street is no reason to decline."""
    fitting = {
        name: value
        for name, value in message.items()
        if name not in MAX_WHOLE_AREQ_CHARS or len(value) <= MAX_WHOLE_AREQ_CHARS[name]
    }
    return fitting | {name: fitting[name][:most].rstrip() for name, most in MAX_AREQ_CHARS.items() if name in fitting}


def mask_threeds_message(message: Mapping[str, Any]) -> ThreeDSMessage:
    """A message for the timeline: no card number, cryptogram, one-time code or device data."""
    hidden = {"authenticationValue", "challengeDataEntry", "sdkEncData", "acsSignedContent", "notificationURL"}
    shown: ThreeDSMessage = {name: "•••" if name in hidden else value for name, value in message.items()}
    if isinstance(shown.get("acctNumber"), Secret):
        shown["acctNumber"] = mask_pan(shown["acctNumber"].reveal())
    # All others are in forms of ours: what an app's SDK has sent may be anything.
    return shown | {name: _mask_value(shown[name]) for name in SDK_FIELDS if name in shown}


def _mask_value(value: Any) -> Any:
    """A value of JSON without card data."""
    if isinstance(value, list):
        return [_mask_value(one) for one in value]
    if isinstance(value, dict):
        return {mask_text(name): _mask_value(one) for name, one in value.items()}
    text = value if isinstance(value, str) else json.dumps(value)
    masked = mask_text(text)
    return value if masked == text else masked


def _minor_units(money: Money) -> int:
    """An amount in minor units; a fraction that the currency does not have is cut off."""
    return int(money.amount.scaleb(currency_exponent(money.currency)))


def _requestor(ask: AuthenticationSubject) -> ThreeDSMessage:
    prefix = f"threeDSecure.v2.{ask.network}."
    return {
        "threeDSRequestorID": ask.parameters.get(prefix + "requestorId") or ask.requestor.get("id", ""),
        "threeDSRequestorName": ask.parameters.get(prefix + "requestorName") or ask.requestor.get("name", ""),
        "threeDSRequestorURL": ask.parameters.get("threeDSecure.merchant.url") or ask.website,
    }


def is_requestor_kind_known(version: str, parameters: Mapping[str, str]) -> bool:
    """Whether ``version`` of the protocol has the kind of the requestor's own authentication (3RI) that ``parameters``
    ask for: 2.1.0 has it without a payment only, and none for shipments or for an agreement without an end or a
    frequency. True for every other authentication.

    Source: EMVCo on 2.2.0, "new features: 3DS Requestor Initiated (3RI) payments and decoupled authentication", quoted
    by https://thepaypers.com/payments/news/emv-3-d-secure-specifications-updated-by-emvco.
    """
    if resolve_device_channel(parameters) != REQUESTOR_CHANNEL or version >= "2.2.0":
        return True
    is_payment = resolve_message_category(parameters) == PAYMENT_CATEGORY
    return not is_payment and _resolve_requestor_kind(parameters) not in THREE_RI_IND_SINCE_2_2


def _resolve_requestor_kind(parameters: Mapping[str, str]) -> str:
    kind = THREE_RI_IND[parameters.get("threeDSecure.threeRIInd", "RECURRING")]
    if kind != THREE_RI_IND["RECURRING"]:
        return kind
    is_instalment = parameters.get("standingInstruction.type") == "INSTALLMENT"
    if not _is_agreement_complete(parameters, _INSTALMENT_IND if is_instalment else _RECURRING_IND):
        return OTHER_PAYMENT_THREE_RI_IND
    return INSTALMENT_THREE_RI_IND if is_instalment else kind


def _wishes(ask: AuthenticationSubject, channel: str) -> ThreeDSMessage:
    """What the merchant asks for: challenge indicator (of an app's and a browser's authentication), 3RI, decoupled. An
    exemption is the acquirer's affair: EMV has no field for it."""
    given = ask.parameters
    sent = given.get("threeDSecure.authenticationInd")
    default = AUTHENTICATION_IND_BY_STANDING_TYPE.get(given.get("standingInstruction.type", ""), "01")
    purpose = AUTHENTICATION_IND[sent] if sent else default
    if purpose in (_RECURRING_IND, _INSTALMENT_IND) and not _is_agreement_complete(given, purpose):
        purpose = AUTHENTICATION_IND["PAYMENT"]
    indicator = given.get("threeDSecure.challengeIndicator") or ask.challenge_indicator
    decoupled = given.get("threeDSecure.decoupled") == "true"
    if ask.version < "2.2.0":
        indicator = CHALLENGE_IND_IN_2_1.get(indicator, indicator)
        decoupled = False  # 2.1.0 has none
    message: ThreeDSMessage
    if channel == REQUESTOR_CHANNEL:
        message = {"threeRIInd": _resolve_requestor_kind(given), **_build_prior(ask.prior)}
    else:
        message = {"threeDSRequestorAuthenticationInd": purpose, "threeDSRequestorChallengeInd": indicator}
    if decoupled:
        message |= {"threeDSRequestorDecReqInd": "Y", "threeDSRequestorDecMaxTime": f"{DECOUPLED_MINUTES:05d}"}
    return message


def _build_prior(prior: PriorAuthentication | None) -> ThreeDSMessage:
    """How the cardholder authenticated when the agreement began. Source: EMV 3-D Secure v2.2.0, table A.10; EMVCo,
    "Recurring and Instalment Transactions", https://emvco.com/whitepapers/emv-3-d-secure-whitepaper/."""
    if prior is None:
        return {}
    told = {
        "threeDSReqPriorAuthMethod": PRIOR_METHOD_BY_FLOW.get(prior.flow, ""),
        "threeDSReqPriorAuthTimestamp": f"{prior.at.astimezone(UTC):%Y%m%d%H%M}",
        "threeDSReqPriorRef": prior.acs_transaction,
    }
    # Issuers' servers may write a value in another form than the protocol's: such a value is left out.
    fitting = {name: text for name, text in told.items() if re.fullmatch(PRIOR_FORMS[name], text)}
    return {"threeDSRequestorPriorAuthenticationInfo": fitting}


def _is_agreement_complete(given: Mapping[str, str], purpose: str) -> bool:
    """Whether an agreement has the fields that its indicator requires. Of one without an end or a frequency a directory
    server takes the first payment as a payment only, and later ones by 3RI as other payments. Source: EMV 3-D Secure
    v2.2.0, table A.1, Recurring Expiry, Recurring Frequency, Instalment Payment Data."""
    needed = [given.get("standingInstruction.expiry"), given.get("standingInstruction.frequency")]
    if purpose == _INSTALMENT_IND:
        needed.append(_read_instalments(given))
    return all(needed)


def _read_instalments(given: Mapping[str, str]) -> str:
    """The number of instalments without leading zeros; "" for 1, which the protocol does not take. Source: EMV 3-D
    Secure v2.2.0, table A.1, Instalment Payment Data: greater than 1."""
    number = given.get("standingInstruction.numberOfInstallments", "").lstrip("0")
    return "" if number == "1" else number


def _merchant(ask: AuthenticationSubject) -> ThreeDSMessage:
    given = ask.parameters
    country = resolve_merchant_country(given, ask.merchant_country)
    return {
        "merchantName": given.get("threeDSecure.merchant.name") or given.get("merchant.name") or ask.merchant,
        "merchantCountryCode": _country_number(country) or given.get("merchant.countryCode", ""),
        "mcc": given.get("merchant.mcc") or ask.merchant_category_code,
        "acquirerBIN": ask.requestor.get("acquirerBin", ""),
        "acquirerMerchantID": ask.requestor.get("acquirerMerchantId") or ask.account,
    }


def _agreement(given: Mapping[str, str]) -> ThreeDSMessage:
    """Fields of recurring payments and instalments (B20.4)."""
    return {
        "recurringExpiry": given.get("standingInstruction.expiry", "").replace("-", ""),
        "recurringFrequency": given.get("standingInstruction.frequency", ""),
        "purchaseInstalData": _read_instalments(given),
    }


def _customer(given: Mapping[str, str]) -> ThreeDSMessage:
    message: ThreeDSMessage = {
        "email": given.get("customer.email", ""),
        "mobilePhone": _phone(given.get("customer.mobile", "")),
        "homePhone": _phone(given.get("customer.phone", "")),
        "workPhone": _phone(given.get("customer.workPhone", "")),
    }
    for start, address in (("billAddr", "billing"), ("shipAddr", "shipping")):
        message |= {f"{start}{emv}": given.get(f"{address}.{name}", "") for emv, name in _ADDRESS}
        message[f"{start}Line1"], message[f"{start}Line2"] = _lines(given, address)
        country = given.get(f"{address}.country", "")
        message[f"{start}Country"] = _country_number(country)
        message[f"{start}State"] = _subdivision(given.get(f"{address}.state", ""), country)
    return message


def _browser(given: Mapping[str, str], version: str) -> ThreeDSMessage:
    """Browser fields. Only a script can read all of the screen and clock, so a request with them comes from a browser
    that runs JavaScript."""
    message: ThreeDSMessage = {emv: given.get(f"customer.browser.{name}", "") for emv, name in _BROWSER}
    java = message["browserJavaEnabled"]
    message["browserJavaEnabled"] = java == "true" if java else ""
    message["browserLanguage"] = message["browserLanguage"].rstrip("-")  # of one that a page has cut to 8 characters
    depth = message["browserColorDepth"]
    if depth.isdecimal():
        message["browserColorDepth"] = str(max((one for one in COLOR_DEPTHS if one <= int(depth)), default=1))
    message["browserIP"] = _expand_address(given.get("customer.ip", ""))
    if version >= "2.2.0":
        script = ("browserJavaEnabled", "browserColorDepth", "browserScreenHeight", "browserScreenWidth", "browserTZ")
        message["browserJavascriptEnabled"] = all(message[name] != "" for name in script)
    return message


def _expand_address(text: str) -> str:
    """An IP address as browserIP has it: IPv6 in eight groups of four digits; '' for what is none. Source: EMV 3-D
    Secure v2.2.0, table A.1, Browser IP Address."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return (getattr(found, "ipv4_mapped", None) or found).exploded


def _sdk(device_info: str) -> ThreeDSMessage:
    """SDK fields of authRequestParams: an object of EMV names as JSON, plain or in base64url; any other text is the
    encrypted device data alone."""
    for text in (device_info, _decode_base64url(device_info)):
        try:
            found = parse_peer_json(text)
        except ValueError:
            continue
        if isinstance(found, dict) and "sdkTransID" in found:
            return {name: found[name] for name in SDK_FIELDS if name in found}
    return {"sdkEncData": device_info}


def _decode_base64url(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return ""


def _phone(text: str) -> dict[str, str] | str:
    """{cc, subscriber} of an international number; '' for one whose country is not known."""
    digits = re.sub(r"[^0-9+]", "", text)
    if digits.startswith("00"):
        digits = f"+{digits[2:]}"
    found = _E164.fullmatch(digits)
    return {"cc": found["cc"], "subscriber": found["subscriber"]} if found is not None else ""


def _subdivision(state: str, country: str) -> str:
    """The part of an ISO 3166-2 code after the country; '' for a state without one."""
    found = pycountry.countries.get(alpha_3=country) if len(country) == 3 else pycountry.countries.get(alpha_2=country)
    if found is None or not state:
        return ""
    wanted = state.strip().casefold()
    parts = pycountry.subdivisions.get(country_code=found.alpha_2)  # type: ignore[no-untyped-call]  # it has no types
    for part in parts or ():
        code = part.code.partition("-")[2]
        if wanted in (code.casefold(), part.code.casefold(), part.name.casefold()):
            return str(code)
    return ""


def _lines(given: Mapping[str, str], address: str) -> tuple[str, str]:
    """The street in two lines. With a houseNumber1, street1 is the street's name and street2 is ignored (Part A)."""
    street, second, house, house2 = (
        given.get(f"{address}.{name}", "") for name in ("street1", "street2", "houseNumber1", "houseNumber2")
    )
    return (" ".join(filter(None, (street, house))), house2) if house else (street, second)


def _country_number(code: str) -> str:
    """The three digits of ISO 3166-1 for two or three letters; '' for none."""
    found = pycountry.countries.get(alpha_3=code) if len(code) == 3 else pycountry.countries.get(alpha_2=code)
    return found.numeric if found is not None else ""
