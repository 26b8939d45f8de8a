"""The 3DS server: it begins authentications, takes them on by what the shopper or the bank does, and keeps them.

Every step is a change of one Authentication row; what it means for the asker is read off the row
(gateway.threeds.authentications). The directory is asked with no transaction open; two that come at once are told
apart by the row's step.
Source: Part B, 3D Secure; decisions, section 5; rulings D31 to D35.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from gateway import clock, identifiers, results
from gateway.catalogue.conditions.situation import merchant_initiated
from gateway.catalogue.rules import Sent
from gateway.masking import mask_pan
from gateway.models import Authentication, Channel, Merchant, Step, ThreeDSecureConfiguration
from gateway.money import Money
from gateway.secret import Secret
from gateway.threeds import acs, messages
from gateway.threeds.authentications import outcome_of
from gateway.threeds.directory import Unreachable, directory_of
from gateway.threeds.messages import Ask, Message
from gateway.threeds.networks import VERSION, eci_of, network_of
from gateway.threeds.outcome import Outcome
from gateway.threeds.verdicts import CANCELLED, TIMED_OUT, Lack, Policy, Then, Verdict, declines, lacking, verdict
from gateway.vault import vault

DECOUPLED_TIME: Final = timedelta(hours=1)
_AGAIN: Final = frozenset({Step.METHOD, Step.ASKING, Step.CHALLENGE, Step.DECOUPLED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Who wants a card authenticated. ``payment``: None for an authentication alone, which then has the id ``id``,
    keeps ``echo`` and ``return_url``. ``expiry``: month (two digits), year (four)."""

    payment: UUID | None
    merchant: Merchant
    channel: Channel
    brand: str
    number: Secret
    expiry: tuple[str, str]
    money: Money
    parameters: Mapping[str, str]
    test_mode: str
    now: datetime
    request: UUID
    holder: str = ""
    account: str = ""
    return_url: str = ""
    echo: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)


def configuration_of(channel: Channel) -> ThreeDSecureConfiguration:
    """The channel's configuration, or the defaults."""
    found = ThreeDSecureConfiguration.objects.filter(pk=channel.pk).first()
    return found if found is not None else ThreeDSecureConfiguration(channel=channel)


def is_wanted(parameters: Mapping[str, str], *, proved: bool, brand: str, operation: str) -> bool:
    """Would a channel with 3-D Secure authenticate this card payment: it may be, nothing proves or disables it, and the
    shopper pays, or the merchant asks for a requestor-initiated (3RI) authentication. ``proved``: a cryptogram was
    sent."""
    return (
        operation in ("PA", "DB")
        and network_of(brand) is not None
        and parameters.get("threeDSecure.disable") != "true"
        and not (proved and "threeDSecure.eci" in parameters)
        and (not merchant_initiated(Sent(parameters)) or messages.device_channel(parameters) == messages.REQUESTOR)
    )


def begin(asked: Begin) -> tuple[Authentication, Outcome]:
    """Look the card up, ask the directory unless the shopper's browser has to load the issuer's method page first, and
    keep the authentication."""
    configuration = configuration_of(asked.channel)
    row = _new(asked, configuration)
    network = network_of(asked.brand)
    directory = directory_of()
    if network is None or (configuration.networks and network.key not in configuration.networks):
        return _kept(row, _ended(row, lacking(Lack.NOT_ENROLLED), configuration, asked.now))
    if directory is None:
        return _kept(row, _ended(row, lacking(Lack.NOT_SET_UP), configuration, asked.now))
    steering = asked.parameters if asked.test_mode == "INTERNAL" else {}
    try:
        row.scenario, found = directory.look_up(asked.number, steering)
    except Unreachable:
        return _kept(row, _ended(row, lacking(Lack.UNREACHABLE), configuration, asked.now))
    if found is None:
        return _kept(row, _ended(row, lacking(Lack.NOT_ENROLLED), configuration, asked.now))
    row.version = found.version
    ask = _ask(row, asked, configuration)
    if found.method and configuration.method and row.device_channel == messages.BROWSER:
        row.step = Step.METHOD
        row.flow = "method"
        row.number_sealed = vault().seal(asked.number, row.id)
        row.ask = {name: value for name, value in messages.areq(ask).items() if name != "acctNumber"}
        row.deadline = asked.now + timedelta(minutes=configuration.challenge_minutes)
        return _kept(row, row)
    return _kept(row, _asked(row, messages.areq(ask), configuration, asked.now))


def method_done(ident: UUID, *, completed: bool) -> Outcome:
    """The method page was loaded, or did not load in time: now the directory is asked. Twice is once."""
    claimed = Authentication.objects.filter(pk=ident, step=Step.METHOD).update(step=Step.ASKING)
    row = _read(ident)
    if not claimed:
        return outcome_of(row)
    assert row.number_sealed is not None
    areq = row.ask | {
        "acctNumber": vault().open(row.number_sealed, row.id),
        "threeDSCompInd": messages.COMPLETED if completed else messages.NOT_COMPLETED,
    }
    _asked(row, areq, configuration_of(row.channel), clock.now(row.merchant))
    row.save()
    return outcome_of(row)


def challenged(ident: UUID, creq: Message) -> tuple[Message, Outcome]:
    """One move of the shopper in the challenge: the bank's CRes and what it came to. One that has ended stays so."""
    with transaction.atomic():
        row = _locked(ident)
        if row.step not in (Step.CHALLENGE, Step.DECOUPLED):
            return acs.closed(_creq(row), row.trans_status), outcome_of(row)
        desk = acs.Desk(scenario=row.scenario, network=row.network, attempts=row.attempts, resends=row.resends)
        step = acs.challenge(desk, _creq(row) | creq)
        row.attempts, row.resends = step.desk.attempts, step.desk.resends
        _remember(row, _creq(row) | creq, step.cres)
        if step.rreq is not None:
            _result(row, step.rreq, clock.now(row.merchant))
        row.save()
    return step.cres, outcome_of(row)


def decoupled_answered(ident: UUID) -> Outcome:
    """The cardholder has answered in the banking app (simulated: after a while)."""
    with transaction.atomic():
        row = _locked(ident)
        if row.step == Step.DECOUPLED:
            desk = acs.Desk(scenario=row.scenario, network=row.network)
            _result(row, acs.decoupled_result(desk), clock.now(row.merchant))
            row.save()
    return outcome_of(row)


def timed_out(ident: UUID) -> Outcome:
    """The deadline has passed: an open authentication ends with the code for it."""
    with transaction.atomic():
        row = _locked(ident)
        if row.step in _AGAIN:
            _close(row, "N", "14", "", clock.now(row.merchant))
            row.code = TIMED_OUT
            row.save()
    return outcome_of(row)


def _new(asked: Begin, configuration: ThreeDSecureConfiguration) -> Authentication:
    given = asked.parameters
    network = network_of(asked.brand)
    money = messages.money_to_authenticate(given, asked.money)
    return Authentication(
        id=identifiers.row_id(),
        payment=asked.payment,
        merchant=asked.merchant,
        channel=asked.channel,
        brand=asked.brand,
        network=network.key if network is not None else "",
        device_channel=messages.device_channel(given),
        category=messages.message_category(given),
        amount=money.amount,
        currency=money.currency,
        card=mask_pan(asked.number.reveal()),
        window=acs.window_of(given.get("customer.browser.challengeWindow", "")),
        request=dict(asked.echo),
        answer=dict(asked.answer),
        return_url=asked.return_url,
        test_mode=asked.test_mode,
        request_id=asked.request,
        created_at=asked.now,
    )


def _ask(row: Authentication, asked: Begin, configuration: ThreeDSecureConfiguration) -> Ask:
    return Ask(
        id=row.id,
        brand=asked.brand,
        network=row.network,
        number=asked.number,
        expiry=asked.expiry,
        holder=asked.holder,
        money=Money(row.amount, row.currency),
        parameters=asked.parameters,
        at=asked.now,
        merchant=asked.merchant.name,
        account=asked.account,
        challenge_indicator=configuration.challenge_indicator,
        requestor=configuration.requestors.get(row.network, {}),
    )


def _kept(row: Authentication, _: Authentication) -> tuple[Authentication, Outcome]:
    row.save(force_insert=True)
    return row, outcome_of(row)


def _read(ident: UUID) -> Authentication:
    return Authentication.objects.select_related("merchant", "channel").get(pk=ident)


def _locked(ident: UUID) -> Authentication:
    rows = Authentication.objects.select_for_update(of=("self",)).select_related("merchant", "channel")
    return rows.get(pk=ident)


def _asked(
    row: Authentication, areq: Message, configuration: ThreeDSecureConfiguration, now: datetime
) -> Authentication:
    """Ask the directory and take its answer in."""
    directory = directory_of()
    try:
        if directory is None:
            raise Unreachable
        ares = directory.authenticate(areq, row.scenario, row.network)
    except Unreachable:
        return _ended(row, lacking(Lack.UNREACHABLE), configuration, now)
    _remember(row, areq, ares)
    row.ds_transaction = ares.get("dsTransID", "")
    row.acs_transaction = ares.get("acsTransID", "")
    row.number_sealed, row.ask = None, {}
    status, reason = ares["transStatus"], ares.get("transStatusReason", "")
    found = verdict(status, reason)
    if found.then in (Then.CHALLENGE, Then.DECOUPLED):
        return _waits(row, found.then, configuration, now)
    if row.flow in ("", "method"):
        row.flow = "3ri" if row.device_channel == messages.REQUESTOR else "frictionless"
    row.trans_status, row.trans_status_reason, row.eci = status, reason, ares.get("eci", "")
    _seal_proof(row, ares)
    return _ended(row, found, configuration, now)


def _waits(row: Authentication, then: Then, configuration: ThreeDSecureConfiguration, now: datetime) -> Authentication:
    if then is Then.DECOUPLED:
        row.step, row.flow = Step.DECOUPLED, "decoupled"
        row.due_at = now + timedelta(seconds=acs.DECOUPLED_AFTER_S)
        longest = DECOUPLED_TIME
    else:
        row.step, row.flow = Step.CHALLENGE, "challenge"
        longest = timedelta(minutes=configuration.challenge_minutes)
    # After a method page the deadline stands already, with the payment.
    row.deadline = row.deadline or now + longest
    return row


def _result(row: Authentication, rreq: Message, now: datetime) -> None:
    """The bank's result of a challenge or a decoupled authentication (RReq)."""
    full = {"threeDSServerTransID": str(row.id), "acsTransID": row.acs_transaction, "dsTransID": row.ds_transaction}
    _remember(row, rreq | full, {"messageType": "RRes", "resultsStatus": "01"} | full)
    status, reason = rreq["transStatus"], rreq.get("transStatusReason", "")
    row.trans_status, row.trans_status_reason, row.eci = status, reason, rreq.get("eci", "")
    _seal_proof(row, rreq)
    _ended(row, verdict(status, reason), configuration_of(row.channel), now)
    if rreq.get("challengeCancel"):
        row.code = CANCELLED


def _ended(
    row: Authentication, found: Verdict, configuration: ThreeDSecureConfiguration, now: datetime
) -> Authentication:
    """Close the authentication with the code its verdict and the channel's policy give."""
    stops = declines(
        found.then,
        on_unavailable=Policy(configuration.on_unavailable),
        on_attempt=Policy(configuration.on_attempt),
    )
    if row.payment is None:
        challenged = row.flow in ("challenge", "decoupled")
        passed = found.then in (Then.PROVED, Then.ATTEMPTED) and challenged
        row.code = results.SUCCESS[row.test_mode] if passed else found.standalone
    else:
        row.code = found.payment if stops else ""
    if not row.eci and row.trans_status:
        row.eci = eci_of(row.network, row.trans_status)
    _close(row, row.trans_status, row.trans_status_reason, row.eci, now)
    return row


def _close(row: Authentication, status: str, reason: str, eci: str, now: datetime) -> None:
    row.step = Step.DONE
    row.trans_status, row.trans_status_reason, row.eci = status, reason, eci
    row.number_sealed, row.ask = None, {}
    row.due_at = None
    row.completed_at = now


def _seal_proof(row: Authentication, message: Message) -> None:
    if value := message.get("authenticationValue"):
        row.proof_sealed = vault().seal(Secret(value), row.id)


def _creq(row: Authentication) -> Message:
    return {
        "messageType": "CReq",
        "messageVersion": row.version or VERSION,
        "threeDSServerTransID": str(row.id),
        "acsTransID": row.acs_transaction,
        "challengeWindowSize": row.window,
    }


def _remember(row: Authentication, *said: Message) -> None:
    """Keep messages for the timeline, masked."""
    row.messages = [*row.messages, *(messages.masked(message) for message in said)]
