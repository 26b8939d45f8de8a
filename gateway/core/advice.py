"""Plain-language advice per result code: what a developer does next, and what the shopper may see.

A table by result family, with rows for single codes where the family is too coarse. The shopper's text never says
that a card is reported lost or stolen or that fraud is suspected: the person at the screen may be the thief.
"""

from collections.abc import Mapping
from typing import Final

from gateway.core.result_codes import ResultFamily, find_result_family

DEVELOPER_ADVICE: Final[Mapping[ResultFamily, str]] = {
    ResultFamily.SUCCESS: "Done. Store the id: captures, refunds and reversals refer to it.",
    ResultFamily.REVIEW: "Accepted, but look at it before you deliver; reverse or refund it if in doubt.",
    ResultFamily.PENDING: "Wait. Send the shopper to redirect.url if there is one, then read the payment again.",
    ResultFamily.PENDING_LONG: "Wait for the webhook or query once a day. Do not deliver yet.",
    ResultFamily.REJECTED_3DS: "Authentication did not work. Let the shopper try again or offer another means.",
    ResultFamily.REJECTED_BANK: "The issuer or the bank said no. Offer another card or another payment means.",
    ResultFamily.REJECTED_COMMUNICATION: "Query the payment before you try again: its outcome may be unknown.",
    ResultFamily.REJECTED_SYSTEM: "Try again in some minutes; if it stays, report id, ndc and timestamp.",
    ResultFamily.REJECTED_ASYNC: "The shopper or the method ended the payment. Offer a new try.",
    ResultFamily.SOFT_DECLINE: "Send the payment again with 3-D Secure; the issuer asks for authentication.",
    ResultFamily.REJECTED_EXTERNAL_RISK: "Refused by the risk check. Offer a safer means.",
    ResultFamily.REJECTED_ADDRESS_RISK: "Let the shopper correct the billing address and try again.",
    ResultFamily.REJECTED_3DS_RISK: "Authentication was refused. Offer another try or another means.",
    ResultFamily.REJECTED_BLACKLIST: "An entry of a block list refused it. See the block lists in the back office.",
    ResultFamily.REJECTED_RISK_VALIDATION: "A limit or duplicate rule refused it. Do not loop.",
    ResultFamily.CONFIGURATION: "The channel is not set up for this: check brand, currency and payment type.",
    ResultFamily.REGISTRATION: "Check the registration's id and that it is still active.",
    ResultFamily.JOB: "Correct the schedule's fields and send it again.",
    ResultFamily.REFERENCE: "Check the id you refer to: its type, its state and the amount that remains.",
    ResultFamily.FORMAT: "Correct the request. result.parameterErrors names each field that is wrong.",
    ResultFamily.ADDRESS: "Correct the address fields and send the request again.",
    ResultFamily.CONTACT: "Correct the customer's contact fields and send the request again.",
    ResultFamily.ACCOUNT: "Let the shopper correct the account or card data.",
    ResultFamily.AMOUNT: "Correct amount or currency and send the request again.",
    ResultFamily.RISK_MANAGEMENT: "Send the fields that the risk check needs.",
    ResultFamily.CHARGEBACK: "A chargeback. Answer it in the back office before its due date, or accept it.",
    ResultFamily.RATING: "Accepted. These codes come from an old rating service and need nothing further.",
    ResultFamily.ACCOUNT_UPDATER: "The account update was refused in this state. Check the registration.",
    ResultFamily.ADVICE_BLOCK: "Do not send this card again unchanged: the issuer forbids it and fees may follow.",
}

_CODE_ADVICE: Final[Mapping[str, str]] = {
    "000.000.100": "The answer holds what you asked for.",
    "000.200.100": "Open the widget or send the shopper's data with this checkout id within 30 minutes.",
    "000.200.101": "The checkout now has the new values.",
    "600.200.200": "Use a payment brand that this gateway knows; see the list of brands in the reference.",
    "600.200.400": "This payment type or means is not offered here.",
    "700.300.400": "The authorization has expired: authorize anew. A renewal before its end would have prolonged it.",
    "700.300.700": "It is settled, or its acquirer has cleared the day: refund it with paymentType=RF.",
    "700.400.580": "Check the id, the entityId and the environment (test or live).",
    "700.600.002": "Wait 72 hours before this card is sent again.",
    "700.601.001": "Ask the shopper for the new card data, or authenticate with 3-D Secure.",
    "700.601.003": "Never send this card again. Ask for another payment means.",
    "800.100.150": "Gambling payments of this card cannot be refunded; use another way of paying out.",
    "800.100.153": "Let the shopper enter the security code again; stop after three tries.",
    "800.100.155": "Offer a smaller amount or another card; a repeat in some days may pass.",
    "800.100.157": "Let the shopper enter the expiry date again.",
    "800.100.159": "Do not try this card again.",
    "800.100.160": "Do not try this card again.",
    "800.100.162": "Offer a smaller amount or another card.",
    "800.100.165": "Do not try this card again.",
    "800.100.169": "This card type is not processed here; offer another brand.",
    "800.100.171": "Do not try this card again.",
    "800.100.173": "Charge in another currency, or have this one set up at the acquirer.",
    "800.100.174": "Correct the amount and send the request again.",
    "800.100.176": "Try again later.",
    "800.100.177": "Send an amount.",
    "800.110.100": "The first request was processed; query it instead of sending it again.",
    "800.120.100": "Slow down: wait as many seconds as Retry-After says.",
    "800.900.300": "Check the access token, the entityId, and that both belong to this environment.",
    "900.100.300": "Query the payment: the outcome is unknown until the acquirer has been asked.",
}

_DECLINED: Final = "The card was declined. Please use another card or ask your bank."
_TRY_AGAIN: Final = "The payment did not work. Please try again in a few minutes."
_NOT_CONFIRMED: Final = "Your bank could not confirm that it is you. Please try again or use another card."

SHOPPER_MESSAGES: Final[Mapping[ResultFamily, str]] = {
    ResultFamily.SUCCESS: "Thank you, the payment was accepted.",
    ResultFamily.REVIEW: "Thank you, the payment was accepted.",
    ResultFamily.PENDING: "The payment is still open.",
    ResultFamily.PENDING_LONG: "The payment has been started. Your bank confirms it within some days.",
    ResultFamily.REJECTED_3DS: _NOT_CONFIRMED,
    ResultFamily.REJECTED_BANK: _DECLINED,
    ResultFamily.REJECTED_COMMUNICATION: _TRY_AGAIN,
    ResultFamily.REJECTED_SYSTEM: _TRY_AGAIN,
    ResultFamily.REJECTED_ASYNC: "The payment was not completed.",
    ResultFamily.SOFT_DECLINE: "Your bank wants you to confirm this payment. Please try again.",
    ResultFamily.REJECTED_EXTERNAL_RISK: "This way of paying is not available. Please choose another one.",
    ResultFamily.REJECTED_ADDRESS_RISK: "Please check your billing address.",
    ResultFamily.REJECTED_3DS_RISK: _NOT_CONFIRMED,
    ResultFamily.REJECTED_BLACKLIST: "This way of paying is not available. Please choose another one.",
    ResultFamily.REJECTED_RISK_VALIDATION: "This way of paying is not available now. Please choose another one.",
    ResultFamily.ADDRESS: "Please check your address.",
    ResultFamily.CONTACT: "Please check your contact details.",
    ResultFamily.ACCOUNT: "Please check your card or account details.",
    ResultFamily.ADVICE_BLOCK: _DECLINED,
}

_CODE_SHOPPER: Final[Mapping[str, str]] = {
    "100.100.101": "This number is not valid. Please check it.",
    "100.100.303": "This card has expired. Please use another one.",
    "100.100.600": "Please enter the security code of your card.",
    "100.100.601": "Please check the security code of your card.",
    "100.100.700": "This number does not belong to the chosen brand.",
    "100.396.101": "You have cancelled the payment.",
    "800.100.151": "This card is not valid. Please check the number or use another card.",
    "800.100.153": "Please check the security code of your card.",
    "800.100.155": "The card has not enough credit. Please use another card.",
    "800.100.157": "Please check the expiry date of your card.",
    "800.100.161": "Too many failed tries. Please use another card.",
    "800.100.162": "The amount is over a limit of your card. Please use another card or ask your bank.",
    "800.100.163": "The card was used too often in a short time. Please try again later.",
    "800.100.166": "The PIN was wrong.",
    "800.100.169": "This type of card is not accepted here. Please use another card.",
    "800.100.170": "Your card does not permit this payment. Please use another card.",
    "800.100.173": "Your card cannot be charged in this currency.",
    "800.100.175": "This brand of card is not accepted here. Please use another card.",
    "800.100.176": "Your account cannot be reached now. Please try again later.",
    "800.100.178": "The PIN was wrong too often. Please ask your bank.",
    "800.100.179": "Too many withdrawals. Please try again later or use another card.",
    "800.100.203": "The account has not enough money. Please use another one.",
}

# Declines the shopper can do nothing about, because the merchant's request was at fault.
_NOT_FOR_SHOPPERS: Final = frozenset(
    {"800.100.156", "800.100.164", "800.100.167", "800.100.174", "800.100.177", "800.100.190", "800.100.191"}
)


def get_developer_advice(code: str) -> str:
    """The developer's next step for a code. KeyError for a code that is in neither table nor family."""
    return _CODE_ADVICE.get(code) or DEVELOPER_ADVICE[find_result_family(code)]


def get_shopper_message(code: str) -> str | None:
    """The text a shopper may see; None where only the merchant can act. Raises KeyError as `get_developer_advice`."""
    if code in _NOT_FOR_SHOPPERS:
        return None
    return _CODE_SHOPPER.get(code) or SHOPPER_MESSAGES.get(find_result_family(code))
