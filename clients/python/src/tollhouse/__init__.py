"""A client of the Tollhouse payment gateway.

from decimal import Decimal
from tollhouse import Tollhouse

gateway = Tollhouse("https://gateway.example", token="…", entity_id="…")
payment = gateway.payments.create(amount=Decimal("92.00"), currency="EUR", paymentType="DB", paymentBrand="VISA",
                                  card={"number": "4200000000000000", "expiryMonth": "05", "expiryYear": "2034"})
if payment.outcome == "approved":
    gateway.payments.refund(payment.id, amount=Decimal("10.00"), currency="EUR")
"""

from tollhouse import models, parameters, webhooks
from tollhouse._async.client import AsyncTollhouse
from tollhouse._model import Answer, Model, Outcome, classify_result_code
from tollhouse._sync.client import Tollhouse
from tollhouse._version import __version__
from tollhouse.errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    FieldError,
    NoAnswerError,
    NotFoundError,
    ParameterErrors,
    RateLimitError,
    ServerError,
    TollhouseError,
    WebhookVerificationError,
)

__all__ = [
    "Answer",
    "ApiError",
    "AsyncTollhouse",
    "AuthenticationError",
    "ConflictError",
    "FieldError",
    "Model",
    "NoAnswerError",
    "NotFoundError",
    "Outcome",
    "ParameterErrors",
    "RateLimitError",
    "ServerError",
    "Tollhouse",
    "TollhouseError",
    "WebhookVerificationError",
    "__version__",
    "classify_result_code",
    "models",
    "parameters",
    "webhooks",
]
