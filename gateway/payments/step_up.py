"""Step-up: a payment that its issuer declined for want of authentication is authorized again after a challenge.

A soft decline (300.100.100) of a payment whose shopper was not challenged begins a second authentication, with a
mandated challenge, in the same payment, where the channel wants it. The shopper is redirected as by any challenge, and
the payment is submitted again once they have authenticated, without its security code: once per payment. The declined
authorization attempt is kept as an event and an exchange. Whatever does not end in a full authentication leaves a
declined payment.
Source: docs/decisions/0104, 0147, 0158; PCI DSS 4.0.1, 3.3.1; EU 2018/389, article 4; EMV 3-D Secure 2.2,
threeDSRequestorChallengeInd 04.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import structlog

from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.connectors.means import Card, Means
from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.core.secret import Secret
from gateway.models import AuthenticationStep, Payment, Status, ThreeDSecureConfiguration
from gateway.payments import exempting, failover, shopper_authentication, store
from gateway.payments.outcomes import AuthenticationProof, Declined, PaymentOutcome
from gateway.payments.payment_request import RequestOrigin
from gateway.payments.risk_screening import ScreeningPlan
from gateway.payments.stored_answer import merge_shown_facts, read_private_facts
from gateway.risk.retry_rules import is_retry_forbidden
from gateway.threeds import authentications, server
from gateway.threeds.directory_server import is_server_external
from gateway.threeds.outcome import AuthenticationPassed, AuthenticationPending, AuthenticationRejected
from gateway.threeds_protocol import messages

STEP_UP_ATTEMPT: Final = 2
_CHALLENGED_FLOWS: Final = frozenset({"challenge", "decoupled"})
_AUTHENTICATED: Final = "Y"

log = structlog.get_logger(__name__)

SentValues = Mapping[str, str | Secret]


def step_up(
    payment: Payment,
    outcome: PaymentOutcome,
    means: Means | None,
    values: SentValues,
    origin: RequestOrigin,
    plan: ScreeningPlan | None,
    *,
    since: float,
) -> PaymentOutcome | AuthenticationProof:
    """What follows a soft decline: the payment suspended until its shopper has authenticated, or the proof for its
    second authorization attempt where the issuer asks for no challenge after all; otherwise ``outcome``, unchanged.

    ``values``: the parameters for the acquirer by full name, without a proof of our own; ``since``:
    time.perf_counter() of the payment's first call of an acquirer.
    """
    if not isinstance(outcome, Declined) or outcome.reply.code != SOFT_DECLINE or not isinstance(means, Card):
        return outcome
    if origin.trace is None or not _is_step_up_wanted(payment, outcome, means, values, plan):
        return outcome
    found = server.begin_authentication(
        shopper_authentication.build_authentication_request(
            payment,
            means,
            _list_plain_values(_mandate_challenge(values)),
            merchant=origin.merchant,
            request=origin.trace.request,
            now=outcome.at,
            attempt=STEP_UP_ATTEMPT,
        )
    )[1]
    match found:
        case AuthenticationPending(facts=facts):
            if not store.record_step_up(payment, outcome, plan=plan):
                return outcome
            # The issuer has answered, so its security code may not be stored any more, not even sealed.
            without_code = replace(means, cvv=None)
            return shopper_authentication.suspend_for_shopper(payment, found, without_code, values, at=outcome.at)
        case AuthenticationPassed(proof=proof, facts=facts) if is_fully_authenticated(proof):
            if failover.is_time_over(since) or not store.record_step_up(payment, outcome, plan=plan):
                return outcome
            payment.answer = merge_shown_facts(payment.answer, facts)
            return AuthenticationProof(parameters=proof)
        case AuthenticationPassed() | AuthenticationRejected():
            log.info("step_up_not_authenticated", payment=payment.id.hex)
    return outcome


def prepare_step_up_values(payment: Payment, values: SentValues) -> SentValues:
    """``values`` as the payment's present authorization attempt sends them: the second asks for no exemption."""
    if read_private_facts(payment.answer).attempt < STEP_UP_ATTEMPT:
        return values
    return _mandate_challenge(values)


def is_fully_authenticated(proof: SentValues) -> bool:
    """Whether a proof is of the kind that an issuer asks for with a soft decline: the shopper authenticated."""
    return proof.get("threeDSecure.authenticationStatus") == _AUTHENTICATED and CRYPTOGRAM_PARAMETER in proof


def has_unfinished_challenge(payment: Payment) -> bool:
    """Whether a payment that should be at its acquirer has a second authentication that is not done: its worker died
    before the payment was suspended for the shopper, so the second attempt was never sent."""
    if read_private_facts(payment.answer).attempt < STEP_UP_ATTEMPT:
        return False
    row = authentications.find_authentication_of_payment(payment.id)
    return row is not None and row.attempt >= STEP_UP_ATTEMPT and row.step != AuthenticationStep.DONE


def _mandate_challenge(values: SentValues) -> dict[str, str | Secret]:
    """The parameters with a mandated challenge instead of an exemption."""
    kept = {name: value for name, value in values.items() if name != "threeDSecure.exemptionFlag"}
    return {**kept, "threeDSecure.challengeIndicator": messages.CHALLENGE_MANDATED}


def _list_plain_values(values: SentValues) -> dict[str, str]:
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _is_step_up_wanted(
    payment: Payment, declined: Declined, card: Card, values: SentValues, plan: ScreeningPlan | None
) -> bool:
    """Whether the channel wants it, the shopper was not and can be challenged, and no rule forbids another try."""
    plain = _list_plain_values(values)
    if (
        payment.status != Status.STARTED
        or not payment.channel.three_d_secure
        or read_private_facts(payment.answer).attempt >= STEP_UP_ATTEMPT
        or not shopper_authentication.is_shopper_authenticated_here(payment, card, plain, values)
        or _is_retry_forbidden(declined, plan)
    ):
        return False
    configuration = server.load_threeds_configuration(payment.channel)
    if configuration.on_soft_decline != ThreeDSecureConfiguration.SoftDeclinePolicy.CHALLENGE:
        return False
    external = is_server_external(configuration, payment.test_mode)
    if not server.can_be_challenged(messages.resolve_device_channel(plain), external=external):
        return False
    before = authentications.find_authentication_of_payment(payment.id)
    if before is None:
        return exempting.asked_at_authorization(payment)
    return before.flow not in _CHALLENGED_FLOWS


def _is_retry_forbidden(declined: Declined, plan: ScreeningPlan | None) -> bool:
    """Whether the issuer's advice or the schemes' retry rules forbid the second authorization attempt."""
    watch = plan.retries if plan is not None else None
    advice = declined.reply.details.get("MerchantAdviceCode", "")
    if is_retry_forbidden(watch.network if watch is not None else "", declined.reply.code, advice):
        return True
    return watch is not None and watch.verdict_after_decline() is not None
