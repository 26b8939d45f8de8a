"""Which structures each endpoint takes, and the conditions between them.

One :class:`Endpoint` per method and path: the views parse with it, OpenAPI and the docs are made from it. Facts that
conditions may ask for: ``threeds`` (the channel authenticates cards), ``cvv`` (the channel wants a CVV), ``live``
(the live environment), ``alone`` (an authentication without a payment), ``registration``, ``registration: card``
and ``registration: VISA`` (a stored means is paid with; it is a card; its brand), ``today:yyyy-MM`` (the month it is
for the merchant).
Source: Part A, Endpoints; ruling D16 for what is left off where.
"""

from __future__ import annotations

from gateway.catalogue.endpoints.checkouts import (
    CHECKOUT,
    CHECKOUT_REGISTRATION,
    CHECKOUT_STATUS,
    PAY_CHECKOUT,
    STORE_CHECKOUT,
    UPDATE_CHECKOUT,
)
from gateway.catalogue.endpoints.endpoint import ENTITY, NO_TEST_MODE_IN_LIVE, Endpoint
from gateway.catalogue.endpoints.payments import FIRST_PAYMENT, FOLLOW_UP, PAYMENTS, STATUS
from gateway.catalogue.endpoints.query import QUERY, QUERY_ONE, QUERY_RECORD, QUERY_RECORDS
from gateway.catalogue.endpoints.registrations import (
    DELETE_REGISTRATION,
    EXTEND_REGISTRATION,
    ONE_CLICK,
    READ_REGISTRATION,
    REGISTER,
    UPDATE_REGISTRATION,
)
from gateway.catalogue.endpoints.reports import REPORTS
from gateway.catalogue.endpoints.schedules import DELETE_SCHEDULE, DESCHEDULE, READ_SCHEDULE, RESCHEDULE, SCHEDULE
from gateway.catalogue.endpoints.testing import (
    MAILS,
    MAKE_TOKEN,
    MESSAGES,
    MOVE_CLOCK,
    READ_CLOCK,
    RESET_CLOCK,
    TRANSFER,
)
from gateway.catalogue.endpoints.threeds import AUTHENTICATE, READ_AUTHENTICATION

ENDPOINTS: tuple[Endpoint, ...] = (
    PAYMENTS, FOLLOW_UP, STATUS,
    CHECKOUT, UPDATE_CHECKOUT, PAY_CHECKOUT, CHECKOUT_STATUS, STORE_CHECKOUT, CHECKOUT_REGISTRATION,
    REGISTER, READ_REGISTRATION, UPDATE_REGISTRATION, DELETE_REGISTRATION, EXTEND_REGISTRATION, ONE_CLICK,
    SCHEDULE, READ_SCHEDULE, DELETE_SCHEDULE, RESCHEDULE, DESCHEDULE,
    AUTHENTICATE, READ_AUTHENTICATION,
    QUERY, QUERY_ONE, QUERY_RECORDS, QUERY_RECORD, *REPORTS,
    READ_CLOCK, MOVE_CLOCK, RESET_CLOCK, MESSAGES, MAILS, TRANSFER, MAKE_TOKEN,
)  # fmt: skip

__all__ = [
    "AUTHENTICATE",
    "CHECKOUT",
    "CHECKOUT_REGISTRATION",
    "CHECKOUT_STATUS",
    "DELETE_REGISTRATION",
    "DELETE_SCHEDULE",
    "DESCHEDULE",
    "ENDPOINTS",
    "ENTITY",
    "EXTEND_REGISTRATION",
    "FIRST_PAYMENT",
    "FOLLOW_UP",
    "MAILS",
    "MAKE_TOKEN",
    "MESSAGES",
    "MOVE_CLOCK",
    "NO_TEST_MODE_IN_LIVE",
    "ONE_CLICK",
    "PAYMENTS",
    "PAY_CHECKOUT",
    "QUERY",
    "QUERY_ONE",
    "QUERY_RECORD",
    "QUERY_RECORDS",
    "READ_AUTHENTICATION",
    "READ_CLOCK",
    "READ_REGISTRATION",
    "READ_SCHEDULE",
    "REGISTER",
    "REPORTS",
    "RESCHEDULE",
    "RESET_CLOCK",
    "SCHEDULE",
    "STATUS",
    "STORE_CHECKOUT",
    "TRANSFER",
    "UPDATE_CHECKOUT",
    "UPDATE_REGISTRATION",
    "Endpoint",
]  # fmt: skip
