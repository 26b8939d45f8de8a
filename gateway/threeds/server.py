"""The 3DS server: starts authentications and advances them by the shopper's and the issuer's steps.

Every step changes one Authentication row; its outcome is derived from the row (gateway.threeds.authentications). The
directory server is called with no transaction open; the row's step decides between concurrent requests. Source: Part B,
3D Secure; rulings D31 to D35.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway.catalogue.conditions.request_facts import MAIL_OR_TELEPHONE, is_merchant_initiated
from gateway.catalogue.rules import RuleInput
from gateway.connectors.simulator import acs as simulated_acs
from gateway.core import clock, identifiers, result_codes
from gateway.core.masking import mask_pan
from gateway.core.money import Money
from gateway.core.result_codes import NOT_AUTHENTICATED_CODE
from gateway.core.secret import Secret
from gateway.core.strong_authentication import SCA_COUNTRIES
from gateway.models import Authentication, AuthenticationStep, Channel, Merchant, ThreeDSecureConfiguration
from gateway.threeds.authentications import outcome_from_authentication
from gateway.threeds.directory_server import get_directory_server, is_server_external
from gateway.threeds.external_server import (
    DirectoryUnreachableError,
    ExternalThreeDSServer,
    IncompleteAReqError,
    MalformedDirectoryAnswerError,
)
from gateway.threeds.outcome import AuthenticationOutcome
from gateway.threeds_protocol import messages
from gateway.threeds_protocol.messages import AuthenticationSubject, CardRange, ThreeDSMessage
from gateway.threeds_protocol.networks import (
    EXEMPTED,
    THREEDS_VERSION,
    find_network_eci,
    find_threeds_network,
    list_informed_reasons,
)
from gateway.threeds_protocol.trans_status import (
    CANCELLED_BY_CARDHOLDER,
    CODES_BY_CHALLENGE_CANCEL,
    RESULT_STATUSES,
    AuthenticationResult,
    AuthenticationVerdict,
    MissingAuthentication,
    UnprovenPolicy,
    find_missing_verdict,
    find_verdict,
    is_declined_by_policy,
)
from gateway.vault.sealing import current_vault

log = structlog.get_logger(__name__)

DECOUPLED_TIMEOUT: Final = timedelta(minutes=messages.DECOUPLED_MINUTES + 5)
"""Five minutes longer than the issuer is told, so that a report of its last minute still arrives in time."""
_AGAIN: Final = frozenset(
    {AuthenticationStep.METHOD, AuthenticationStep.ASKING, AuthenticationStep.CHALLENGE, AuthenticationStep.DECOUPLED}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationRequest:
    """A request for an authentication. ``payment``: None for a standalone one, which then has the id ``id`` and stores
    ``echo`` and ``return_url``. ``expiry``: month (two digits), year (four); ``build_notification_url``: where an
    issuer sends the browser back after a challenge, by the id of the payment or authentication; ``attempt``: which
    authorization of the payment it is for; ``agreed``: the payment whose agreement 3RI is asked for."""

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
    build_notification_url: Callable[[UUID], str] = lambda _ident: ""
    echo: Mapping[str, Any] = field(default_factory=dict)
    attempt: int = 1
    answer: Mapping[str, Any] = field(default_factory=dict)
    agreed: UUID | None = None


def load_threeds_configuration(channel: Channel) -> ThreeDSecureConfiguration:
    """The channel's 3-D Secure configuration, or the defaults."""
    found = ThreeDSecureConfiguration.objects.filter(pk=channel.pk).first()
    return found if found is not None else ThreeDSecureConfiguration(channel=channel)


def is_authentication_wanted(parameters: Mapping[str, str], *, proved: bool, brand: str, operation: str) -> bool:
    """True if a channel with 3-D Secure would authenticate this card payment.

    The card can be authenticated, nothing proves or disables it, and the shopper pays or stores the card, and not by
    mail or telephone, or the merchant asks for 3RI.
    ``proved``: a cryptogram was sent.
    """
    return (
        operation in ("PA", "DB", "RG")
        and find_threeds_network(brand) is not None
        and parameters.get("threeDSecure.disable") != "true"
        and not (proved and "threeDSecure.eci" in parameters)
        and (
            not (
                is_merchant_initiated(RuleInput(parameters))
                or parameters.get("transactionCategory") in MAIL_OR_TELEPHONE
            )
            or messages.resolve_device_channel(parameters) == messages.REQUESTOR_CHANNEL
        )
    )


def can_be_challenged(device_channel: str, *, external: bool) -> bool:
    """Whether a challenge could be carried out: nobody is there in 3RI, and the SDK of an app is not handed what the
    challenge of an external server (``external``) takes. Source: docs/decisions/0158."""
    return device_channel == messages.BROWSER_CHANNEL or (device_channel == messages.APP_CHANNEL and not external)


def begin_authentication(asked: AuthenticationRequest) -> tuple[Authentication, AuthenticationOutcome]:
    """Start and store an authentication: look up the card, and send the AReq unless the browser must load the method
    page first."""
    configuration = load_threeds_configuration(asked.channel)
    row = _create_authentication(asked, configuration)
    network = find_threeds_network(asked.brand)
    directory = get_directory_server(configuration, asked.test_mode)
    if directory is None:
        return _unchanged_outcome(
            row,
            _close_by_verdict(row, find_missing_verdict(MissingAuthentication.NOT_SET_UP), configuration, asked.now),
        )
    if network is None or (configuration.networks and network.key not in configuration.networks):
        return _unchanged_outcome(
            row,
            _close_by_verdict(row, find_missing_verdict(MissingAuthentication.NOT_ENROLLED), configuration, asked.now),
        )
    steering = asked.parameters if asked.test_mode == "INTERNAL" else {}
    try:
        row.server_url = directory.url
        row.scenario, found = directory.look_up(asked.number, steering, row.id)
    except DirectoryUnreachableError as fault:
        return _unchanged_outcome(
            row, _close_by_verdict(row, find_missing_verdict(_explain_silence(row, fault)), configuration, asked.now)
        )
    if found is None:
        return _unchanged_outcome(
            row,
            _close_by_verdict(row, find_missing_verdict(MissingAuthentication.NOT_ENROLLED), configuration, asked.now),
        )
    row.version, row.method_url = found.version, found.method_url
    if not messages.is_requestor_kind_known(found.version, asked.parameters):
        _store_messages(row, _build_fault_message(row, f"3RI: not in {found.version}, which the issuer speaks"))
        verdict = find_missing_verdict(MissingAuthentication.VERSION)
        return _unchanged_outcome(row, _close_by_verdict(row, verdict, configuration, asked.now))
    ask = _build_subject(row, asked, configuration, found)
    if found.method and configuration.method and row.device_channel == messages.BROWSER_CHANNEL:
        row.step = AuthenticationStep.METHOD
        row.flow = "method"
        row.number_sealed = current_vault().seal(asked.number, row.id)
        row.ask = {name: value for name, value in messages.build_areq(ask).items() if name != "acctNumber"}
        row.deadline = asked.now + timedelta(minutes=configuration.challenge_minutes)
        return _unchanged_outcome(row, row)
    return _unchanged_outcome(row, _send_areq(row, messages.build_areq(ask), configuration, asked.now))


def complete_method(ident: UUID, *, completed: bool) -> AuthenticationOutcome:
    """Continue after the method page (loaded, or timed out): send the AReq. Idempotent."""
    claimed = Authentication.objects.filter(pk=ident, step=AuthenticationStep.METHOD).update(
        step=AuthenticationStep.ASKING
    )
    row = _load_authentication(ident)
    if not claimed:
        return outcome_from_authentication(row)
    assert row.number_sealed is not None
    areq = row.ask | {
        "acctNumber": current_vault().open(row.number_sealed, row.id),
        "threeDSCompInd": messages.METHOD_COMPLETED if completed else messages.METHOD_NOT_COMPLETED,
    }
    _send_areq(row, areq, load_threeds_configuration(row.channel), clock.merchant_now(row.merchant))
    with transaction.atomic():
        # It may have ended while the directory server was asked: its deadline passed, or its payment ended.
        now_there = _lock_authentication(ident)
        if now_there.step != AuthenticationStep.ASKING:
            log.warning("threeds_answer_too_late", authentication=ident.hex, status=row.trans_status)
            return outcome_from_authentication(now_there)
        row.save()
    return outcome_from_authentication(row)


def continue_challenge(ident: UUID, creq: ThreeDSMessage) -> tuple[ThreeDSMessage, AuthenticationOutcome]:
    """Handle one step of the challenge. Returns the CRes and the outcome; an ended challenge stays ended."""
    with transaction.atomic():
        row = _lock_authentication(ident)
        if row.server_url or row.step not in (AuthenticationStep.CHALLENGE, AuthenticationStep.DECOUPLED):
            # The challenge of an external server is answered at the issuer, never here.
            return simulated_acs.build_closed_cres(_creq(row), row.trans_status), outcome_from_authentication(row)
        challenge_state = simulated_acs.ChallengeState(
            scenario=row.scenario, network=row.network, attempts=row.attempts, resends=row.resends
        )
        step = simulated_acs.answer_challenge(challenge_state, _creq(row) | creq)
        row.attempts, row.resends = step.challenge_state.attempts, step.challenge_state.resends
        _store_messages(row, _creq(row) | creq, step.cres)
        if step.rreq is not None:
            _apply_rreq(row, step.rreq, clock.merchant_now(row.merchant))
        row.save()
    return step.cres, outcome_from_authentication(row)


def complete_decoupled(ident: UUID) -> AuthenticationOutcome:
    """Complete a decoupled authentication: the cardholder has answered (simulated: after a while)."""
    with transaction.atomic():
        row = _lock_authentication(ident)
        if row.step == AuthenticationStep.DECOUPLED and not row.server_url:
            challenge_state = simulated_acs.ChallengeState(scenario=row.scenario, network=row.network)
            _apply_rreq(row, simulated_acs.build_decoupled_result(challenge_state), clock.merchant_now(row.merchant))
            row.save()
    return outcome_from_authentication(row)


def is_valid_result(row: Authentication, rreq: ThreeDSMessage) -> bool:
    """Whether an RReq of an external server is in its protocol and about this authentication."""
    texts = {"transStatusReason": 2, "eci": 2, "authenticationValue": 64, "challengeCancel": 2, "dsTransID": 36}
    return (
        rreq.get("messageType") == "RReq"
        and rreq.get("threeDSServerTransID") == str(row.id)
        and rreq.get("acsTransID") == row.acs_transaction
        and rreq.get("transStatus") in RESULT_STATUSES
        and all(isinstance(rreq.get(name, ""), str) and len(rreq.get(name, "")) <= most for name, most in texts.items())
        and (
            not messages.needs_authentication_value(row.category, rreq["transStatus"])
            or bool(rreq.get("authenticationValue"))
        )
    )


def apply_server_result(ident: UUID, rreq: ThreeDSMessage) -> AuthenticationOutcome | None:
    """Apply the result that an external server reports; None if it is not valid. Idempotent: an authentication that has
    ended stays as it is."""
    with transaction.atomic():
        row = _lock_authentication(ident)
        if not row.server_url or not is_valid_result(row, rreq):
            return None
        if row.step in (AuthenticationStep.CHALLENGE, AuthenticationStep.DECOUPLED):
            _apply_rreq(row, rreq, clock.merchant_now(row.merchant))
            row.save()
    return outcome_from_authentication(row)


def collect_server_result(ident: UUID) -> AuthenticationOutcome:
    """Ask the external server for the result of a challenge whose shopper is back, or of a decoupled authentication
    whose time is over, if it is not here yet."""
    row = _load_authentication(ident)
    if row.step in (AuthenticationStep.CHALLENGE, AuthenticationStep.DECOUPLED) and row.server_url:
        directory = get_directory_server(load_threeds_configuration(row.channel), row.test_mode)
        if isinstance(directory, ExternalThreeDSServer) and directory.url == row.server_url:
            try:
                found = directory.fetch_result(row.id)
            except DirectoryUnreachableError as fault:
                log.warning("threeds_result_not_read", authentication=row.id.hex, why=str(fault))
            else:
                if found is not None and (outcome := apply_server_result(row.id, found)) is not None:
                    return outcome
    return outcome_from_authentication(_load_authentication(ident))


def expire_authentication(ident: UUID, *, is_wanted: bool = True) -> AuthenticationOutcome:
    """Expire an open authentication after its deadline. Of a decoupled one the result is asked for first: its report
    may be lost, and no shopper comes back whose return would have it asked for. ``is_wanted``: False where its payment
    has ended, so that no result changes anything."""
    if is_wanted and _load_authentication(ident).step == AuthenticationStep.DECOUPLED:
        collect_server_result(ident)
    with transaction.atomic():
        row = _lock_authentication(ident)
        if row.step in _AGAIN:
            _close(row, "N", "14", "", clock.merchant_now(row.merchant))
            row.code = NOT_AUTHENTICATED_CODE
            row.save()
    return outcome_from_authentication(row)


def _create_authentication(asked: AuthenticationRequest, configuration: ThreeDSecureConfiguration) -> Authentication:
    given = asked.parameters
    network = find_threeds_network(asked.brand)
    money = messages.resolve_authenticated_amount(given, asked.money)
    return Authentication(
        id=identifiers.row_id(),
        payment=asked.payment,
        attempt=asked.attempt,
        merchant=asked.merchant,
        channel=asked.channel,
        brand=asked.brand,
        network=network.key if network is not None else "",
        device_channel=messages.resolve_device_channel(given),
        category=messages.resolve_message_category(given),
        challenge_indicator=given.get("threeDSecure.challengeIndicator") or _choose_challenge(asked, configuration),
        amount=money.amount,
        currency=money.currency,
        card=mask_pan(asked.number.reveal()),
        window=messages.resolve_challenge_window(given.get("customer.browser.challengeWindow", "")),
        request=dict(asked.echo),
        answer=dict(asked.answer),
        return_url=asked.return_url,
        test_mode=asked.test_mode,
        request_id=asked.request,
        created_at=asked.now,
    )


def _choose_challenge(asked: AuthenticationRequest, configuration: ThreeDSecureConfiguration) -> str:
    """The challenge indicator of a request that has none: the channel's; without one, a card that is stored and an
    agreement that begins are challenged where the law wants a strong authentication, without which issuers decline what
    the merchant initiates later. Source: EU 2015/2366 (PSD2), article 97, 1 (c);
    https://docs.fiserv.dev/public/docs/merchant-initiated-transactions; docs/decisions/0147, 0158."""
    given = asked.parameters
    begins = given.get("createRegistration") == "true" or given.get("standingInstruction.mode") == "INITIAL"
    stores = begins or given.get("threeDSecure.authenticationInd") == "ADD_CARD"
    is_refused = given.get("threeDSecure.challengeMandatedIndicator") == "N"
    country = messages.resolve_merchant_country(given, configuration.merchant_country)
    possible = can_be_challenged(
        messages.resolve_device_channel(given), external=is_server_external(configuration, asked.test_mode)
    )
    wanted = stores and not is_refused and country in SCA_COUNTRIES and possible
    return configuration.challenge_indicator or (messages.CHALLENGE_MANDATED if wanted else "")


def _build_subject(
    row: Authentication,
    asked: AuthenticationRequest,
    configuration: ThreeDSecureConfiguration,
    found: CardRange,
) -> AuthenticationSubject:
    return AuthenticationSubject(
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
        challenge_indicator=_choose_challenge(asked, configuration),
        requestor=configuration.requestors.get(row.network, {}),
        website=configuration.requestor_url,
        merchant_category_code=configuration.merchant_category_code,
        merchant_country=configuration.merchant_country,
        notification_url=asked.build_notification_url(row.payment or row.id),
        version=found.version,
        server=found.server,
        prior=_find_prior(row, asked.agreed),
    )


def _find_prior(row: Authentication, agreed: UUID | None) -> messages.PriorAuthentication | None:
    """The cardholder's authentication of the payment that began the agreement; None but for 3RI."""
    if agreed is None or row.device_channel != messages.REQUESTOR_CHANNEL:
        return None
    rows = Authentication.objects.filter(payment=agreed, trans_status__in=messages.PROVING_STATUSES)
    found = rows.exclude(acs_transaction="").order_by("-attempt").first()
    if found is None or found.completed_at is None:
        return None
    return messages.PriorAuthentication(acs_transaction=found.acs_transaction, flow=found.flow, at=found.completed_at)


def _unchanged_outcome(row: Authentication, _: Authentication) -> tuple[Authentication, AuthenticationOutcome]:
    row.save(force_insert=True)
    return row, outcome_from_authentication(row)


def _load_authentication(ident: UUID) -> Authentication:
    return Authentication.objects.select_related("merchant", "channel").get(pk=ident)


def _lock_authentication(ident: UUID) -> Authentication:
    rows = Authentication.objects.select_for_update(of=("self",)).select_related("merchant", "channel")
    return rows.get(pk=ident)


def _send_areq(
    row: Authentication, areq: ThreeDSMessage, configuration: ThreeDSecureConfiguration, now: datetime
) -> Authentication:
    """Send the AReq and apply the ARes."""
    directory = get_directory_server(configuration, row.test_mode)
    if directory is None:
        return _close_by_verdict(row, find_missing_verdict(MissingAuthentication.NOT_SET_UP), configuration, now)
    try:
        ares = directory.authenticate(areq, row.scenario, row.network)
    except IncompleteAReqError as fault:
        _store_messages(row, areq, _build_fault_message(row, str(fault)))
        log.error("threeds_request_incomplete", authentication=row.id.hex, faults=str(fault))
        return _close_by_verdict(row, find_missing_verdict(MissingAuthentication.INCOMPLETE), configuration, now)
    except DirectoryUnreachableError as fault:
        _store_messages(row, areq)
        return _close_by_verdict(row, find_missing_verdict(_explain_silence(row, fault)), configuration, now)
    _store_messages(row, areq, ares)
    row.acs_url = ares.get("acsURL", "")
    row.ds_transaction = ares.get("dsTransID", "")
    row.acs_transaction = ares.get("acsTransID", "")
    row.number_sealed, row.ask = None, {}
    status, reason = ares["transStatus"], ares.get("transStatusReason", "")
    found = find_verdict(status, reason, informed=list_informed_reasons(row.network))
    if found.then is AuthenticationResult.CHALLENGE and not can_be_challenged(
        row.device_channel, external=bool(row.server_url)
    ):
        _store_messages(row, _build_fault_message(row, "a challenge that cannot be carried out"))
        row.flow, found = "challenge", find_verdict("U")
    if found.then in (AuthenticationResult.CHALLENGE, AuthenticationResult.DECOUPLED):
        return _start_waiting(row, found.then, configuration, now)
    if row.flow in ("", "method"):
        row.flow = "3ri" if row.device_channel == messages.REQUESTOR_CHANNEL else "frictionless"
    row.trans_status, row.trans_status_reason, row.eci = status, reason, ares.get("eci", "")
    _seal_proof(row, ares)
    return _close_by_verdict(row, found, configuration, now)


def _explain_silence(row: Authentication, fault: DirectoryUnreachableError) -> MissingAuthentication:
    """Why there is no answer; the timeline shows it."""
    log.warning("threeds_server_failed", authentication=row.id.hex, why=str(fault))
    _store_messages(row, _build_fault_message(row, str(fault)))
    malformed = isinstance(fault, MalformedDirectoryAnswerError)
    return MissingAuthentication.MALFORMED if malformed else MissingAuthentication.UNREACHABLE


def _build_fault_message(row: Authentication, why: str) -> ThreeDSMessage:
    """Erro as the timeline shows it: component S is this server."""
    return {"messageType": "Erro", "errorComponent": "S", "threeDSServerTransID": str(row.id), "errorDetail": why}


def _start_waiting(
    row: Authentication, then: AuthenticationResult, configuration: ThreeDSecureConfiguration, now: datetime
) -> Authentication:
    if then is AuthenticationResult.DECOUPLED:
        row.step, row.flow = AuthenticationStep.DECOUPLED, "decoupled"
        # The simulated banking app answers by itself; an external server reports the result by its callback.
        row.due_at = now + timedelta(seconds=simulated_acs.DECOUPLED_AFTER_S) if not row.server_url else None
        row.deadline = now + DECOUPLED_TIMEOUT  # also after a method page
    else:
        row.step, row.flow = AuthenticationStep.CHALLENGE, "challenge"
        # After a method page the payment has its deadline already.
        row.deadline = row.deadline or now + timedelta(minutes=configuration.challenge_minutes)
    return row


def _apply_rreq(row: Authentication, rreq: ThreeDSMessage, now: datetime) -> None:
    """Apply the result of a challenge or a decoupled authentication (RReq)."""
    full = {"threeDSServerTransID": str(row.id), "acsTransID": row.acs_transaction, "dsTransID": row.ds_transaction}
    _store_messages(row, rreq | full, {"messageType": "RRes", "resultsStatus": "01"} | full)
    status, reason = rreq["transStatus"], rreq.get("transStatusReason", "")
    status = status if status in RESULT_STATUSES else "U"
    row.trans_status, row.trans_status_reason, row.eci = status, reason, rreq.get("eci", "")
    _seal_proof(row, rreq)
    _close_by_verdict(row, find_verdict(status, reason), load_threeds_configuration(row.channel), now)
    cancel = rreq.get("challengeCancel", "")
    codes = CODES_BY_CHALLENGE_CANCEL.get(cancel)
    # What only timed out or broke off does not decline where the channel goes on without a full proof.
    if codes is not None and (cancel == CANCELLED_BY_CARDHOLDER or row.code) and status not in ("Y", "A"):
        row.code = codes[0] if row.payment is not None else codes[1]


def _close_by_verdict(
    row: Authentication, found: AuthenticationVerdict, configuration: ThreeDSecureConfiguration, now: datetime
) -> Authentication:
    """Close the authentication with the code of its verdict and the channel's policy."""
    stops = is_declined_by_policy(
        found.then,
        on_unavailable=UnprovenPolicy(configuration.on_unavailable),
        on_attempt=UnprovenPolicy(configuration.on_attempt),
    )
    if row.payment is None:
        challenged = row.flow in ("challenge", "decoupled")
        passed = found.then in (AuthenticationResult.PROVED, AuthenticationResult.ATTEMPTED) and challenged
        row.code = result_codes.SUCCESS_CODES[row.test_mode] if passed else found.standalone
    else:
        row.code = found.payment if stops else ""
    if row.trans_status in messages.PROVING_STATUSES and row.proof_sealed is None:
        row.eci = ""  # a non-payment authentication without a value: the indicator would claim one
    elif not row.eci and row.trans_status:
        status = row.trans_status
        if found.then is AuthenticationResult.INFORMED:
            data_only = row.challenge_indicator == messages.DATA_ONLY or status == "U"
            status = "I" if data_only else EXEMPTED
        row.eci = find_network_eci(row.network, status)
    _close(row, row.trans_status, row.trans_status_reason, row.eci, now)
    return row


def _close(row: Authentication, status: str, reason: str, eci: str, now: datetime) -> None:
    row.step = AuthenticationStep.DONE
    row.trans_status, row.trans_status_reason, row.eci = status, reason, eci
    row.number_sealed, row.ask = None, {}
    row.due_at = None
    row.completed_at = now


def _seal_proof(row: Authentication, message: ThreeDSMessage) -> None:
    if value := message.get("authenticationValue"):
        row.proof_sealed = current_vault().seal(Secret(value), row.id)


def _creq(row: Authentication) -> ThreeDSMessage:
    return {
        "messageType": "CReq",
        "messageVersion": row.version or THREEDS_VERSION,
        "threeDSServerTransID": str(row.id),
        "acsTransID": row.acs_transaction,
        "challengeWindowSize": row.window,
    }


def _store_messages(row: Authentication, *said: ThreeDSMessage) -> None:
    """Store masked messages for the timeline."""
    row.messages = [*row.messages, *(messages.mask_threeds_message(message) for message in said)]
