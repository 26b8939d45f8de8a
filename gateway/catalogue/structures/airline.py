"""Flight data: the booking, its passengers, their legs.

Source: Part B, Airline. Every field is conditional; text is AN 1-255 unless stated.
"""

from __future__ import annotations

from gateway.catalogue.formats import AMOUNT_WITH_DOT, AN, COUNTRY, DATE
from gateway.catalogue.structure import NEVER, C, structure

TEXT = AN(1, 255)

AIRLINE = structure(
    "Airline", "Part B", "airline",
    ("totalTaxAmount", AMOUNT_WITH_DOT.eg("14.00"), C),
    ("totalFeesAmount", AMOUNT_WITH_DOT.eg("6.00"), C),
    ("totalFareAmount", AMOUNT_WITH_DOT, C),
    ("ticketIssueDate", DATE, C),
    ("ticketIssueAddress", TEXT.eg("Munich"), C),
    ("thirdPartyBooking", TEXT.eg("false"), C),
    ("bookingtype", TEXT.eg("ONLINE"), C, "Written with a small t."),
    ("ticketDeliveryMethod", TEXT.eg("ELECTRONIC"), C),
    ("bookingRefNum", TEXT.eg("X7KQ2P"), C),
    ("agentName", TEXT.eg("Example Travel"), C),
    ("agentCode", TEXT.eg("AG17"), C),
    demand=NEVER,
)  # fmt: skip

PASSENGERS = structure(
    "Airline", "Part B", "airline.passengers[n]",
    ("type", TEXT.eg("ADULT"), C),
    ("name", TEXT.eg("Jane Jones"), C),
    ("ticketRestricted", TEXT.eg("false"), C),
    ("ticketNumber", TEXT.eg("2201234567890"), C),
    ("status", TEXT.eg("GOLD"), C),
    ("phone", TEXT.eg("+49 89 1234567"), C),
    ("frequentFlyerNumber", TEXT.eg("FF4711"), C),
    ("email", TEXT.eg("jane@mail.example"), C),
    ("dob", TEXT.eg("1990-05-14"), C),
    ("checkDigit", TEXT.eg("7"), C),
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
    ("ticketNumber", TEXT.eg("2201234567890"), C),
    ("stopOverAllowed", TEXT.eg("true"), C),
    ("restrictions", TEXT.eg("Non refundable"), C),
    ("flightNumber", TEXT.eg("EX123"), C),
    ("fareBasis", TEXT.eg("Y26"), C),
    ("exchangeTicketNum", TEXT.eg("2201234567891"), C),
    ("departureCountry", TEXT.eg("DE"), C),
    ("departureAirport", TEXT.eg("MUC"), C),
    ("airlineName", TEXT.eg("Example Air"), C),
    ("airlineCode", TEXT.eg("EX"), C),
    ("departureTime", TEXT.eg("17:00"), C),
    ("arrivalCountry", TEXT.eg("ES"), C),
    ("arrivalAirport", TEXT.eg("MAD"), C),
    ("arrivalTime", TEXT.eg("19:30"), C),
    ("couponNumber", TEXT.eg("1"), C),
    ("classOfService", TEXT.eg("Y"), C),
    ("carrierCode", TEXT.eg("EX"), C),
    ("timeToDeparture", AN(1, 10, words="AN 1-10, days").eg("30"), C, "Days."),
    demand=NEVER,
    note="Both indexes from 0.",
)  # fmt: skip
