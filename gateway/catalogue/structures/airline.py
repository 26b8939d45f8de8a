"""Flight data: the booking, its passengers, their legs.

Source: Part B, Airline. Every field is conditional; text is AN 1-255 unless stated.
"""

from __future__ import annotations

from gateway.catalogue.formats import AMOUNT_WITH_DOT, AN, COUNTRY, DATE
from gateway.catalogue.structure import NEVER, C, structure

AIRLINE_TEXT = AN(1, 255)

AIRLINE = structure(
    "Airline", "Part B", "airline",
    ("totalTaxAmount", AMOUNT_WITH_DOT.eg("14.00"), C),
    ("totalFeesAmount", AMOUNT_WITH_DOT.eg("6.00"), C),
    ("totalFareAmount", AMOUNT_WITH_DOT, C),
    ("ticketIssueDate", DATE, C),
    ("ticketIssueAddress", AIRLINE_TEXT.eg("Munich"), C),
    ("thirdPartyBooking", AIRLINE_TEXT.eg("false"), C),
    ("bookingtype", AIRLINE_TEXT.eg("ONLINE"), C, "Written with a small t."),
    ("ticketDeliveryMethod", AIRLINE_TEXT.eg("ELECTRONIC"), C),
    ("bookingRefNum", AIRLINE_TEXT.eg("X7KQ2P"), C),
    ("agentName", AIRLINE_TEXT.eg("Example Travel"), C),
    ("agentCode", AIRLINE_TEXT.eg("AG17"), C),
    demand=NEVER,
)  # fmt: skip

PASSENGERS = structure(
    "Airline", "Part B", "airline.passengers[n]",
    ("type", AIRLINE_TEXT.eg("ADULT"), C),
    ("name", AIRLINE_TEXT.eg("Jane Jones"), C),
    ("ticketRestricted", AIRLINE_TEXT.eg("false"), C),
    ("ticketNumber", AIRLINE_TEXT.eg("2201234567890"), C),
    ("status", AIRLINE_TEXT.eg("GOLD"), C),
    ("phone", AIRLINE_TEXT.eg("+49 89 1234567"), C),
    ("frequentFlyerNumber", AIRLINE_TEXT.eg("FF4711"), C),
    ("email", AIRLINE_TEXT.eg("jane@mail.example"), C),
    ("dob", AIRLINE_TEXT.eg("1990-05-14"), C),
    ("checkDigit", AIRLINE_TEXT.eg("7"), C),
    ("residenceCountry", COUNTRY, C),
    demand=NEVER,
    note="Index n from 0.",
)  # fmt: skip

LEGS = structure(
    "Airline", "Part B", "airline.passengers[n].legs[n]",
    ("taxAmount", AMOUNT_WITH_DOT.eg("14.00"), C),
    ("feesAmount", AMOUNT_WITH_DOT.eg("6.00"), C),
    ("fareAmount", AMOUNT_WITH_DOT, C),
    ("departureTaxAmount", AMOUNT_WITH_DOT.eg("3.00"), C),
    ("departureDate", DATE, C),
    ("arrivalDate", DATE, C),
    ("ticketNumber", AIRLINE_TEXT.eg("2201234567890"), C),
    ("stopOverAllowed", AIRLINE_TEXT.eg("true"), C),
    ("restrictions", AIRLINE_TEXT.eg("Non refundable"), C),
    ("flightNumber", AIRLINE_TEXT.eg("EX123"), C),
    ("fareBasis", AIRLINE_TEXT.eg("Y26"), C),
    ("exchangeTicketNum", AIRLINE_TEXT.eg("2201234567891"), C),
    ("departureCountry", AIRLINE_TEXT.eg("DE"), C),
    ("departureAirport", AIRLINE_TEXT.eg("MUC"), C),
    ("airlineName", AIRLINE_TEXT.eg("Example Air"), C),
    ("airlineCode", AIRLINE_TEXT.eg("EX"), C),
    ("departureTime", AIRLINE_TEXT.eg("17:00"), C),
    ("arrivalCountry", AIRLINE_TEXT.eg("ES"), C),
    ("arrivalAirport", AIRLINE_TEXT.eg("MAD"), C),
    ("arrivalTime", AIRLINE_TEXT.eg("19:30"), C),
    ("couponNumber", AIRLINE_TEXT.eg("1"), C),
    ("classOfService", AIRLINE_TEXT.eg("Y"), C),
    ("carrierCode", AIRLINE_TEXT.eg("EX"), C),
    ("timeToDeparture", AN(1, 10, words="AN 1-10, days").eg("30"), C, "Days."),
    demand=NEVER,
    note="Both indexes from 0.",
)  # fmt: skip
