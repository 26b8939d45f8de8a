"""Manual follow-ups: a clerk's capture, refund, void or rebill.

They go through the same code as the API's follow-ups: the same catalogue parses the fields, the same operations table
decides. Clerk limits (gateway.backoffice.follow_ups.clerk_limits) count the clerk's earlier moves in the statement that
begins the payment; above a limit nothing is sent. A form carries a key that is good once. It is claimed like an
idempotency key together with the payment, so that a double click, a reload and the back button make one follow-up.
Source: docs/decisions/0025.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from uuid import UUID, uuid5

from django.core import signing
from django.db import IntegrityError
from django.utils.translation import gettext as _

from gateway.access import audit_log
from gateway.backoffice.follow_ups import clerk_limits
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError, LimitUse
from gateway.backoffice.kit.formatting import format_money, read_typed_amount
from gateway.backoffice.payments.chain_sums import summarize_chain
from gateway.backoffice.payments.follow_up_offers import FollowUpOffer, list_follow_up_offers
from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT
from gateway.catalogue.parse import InvalidParametersError
from gateway.core import clock, identifiers, money
from gateway.core.masking import mask_note
from gateway.core.secret import Secret
from gateway.db.statement import WriteStatement
from gateway.models import IdempotencyKey, Payment
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import FollowUpRequest, process_follow_up
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.operation_table import OPERATIONS
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.store import IdempotencyKeyTakenError
from gateway.vault.sealing import current_vault

MAX_FOLLOW_UP_NOTE_CHARS: Final = 500
MAX_FORM_KEY_AGE_S: Final = 12 * 3600
"""How long an opened form can be sent, in seconds; less than idempotency keys are stored."""
_SALT: Final = "gateway.backoffice.follow_ups.manual_follow_up"
_USERS: Final = UUID("7a1f3c52-9d0e-4a55-8a3b-2f6c0d1e4b77")
"""UUID namespace in which users stand in for access tokens."""


class FollowUpNotPossibleError(Exception):
    """Nothing was sent; the message says why, and what is possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpOrder:
    """The follow-up that a form asks for: ``code`` is its payment type, ``amount`` in the payment's currency,
    ``reason`` one of gateway.backoffice.follow_ups.reasons, ``note`` the clerk's own words."""

    target: Payment
    code: str
    amount: Decimal
    reason: str = ""
    note: str = ""

    @property
    def title(self) -> str:
        return OPERATIONS[self.code].title

    @property
    def text(self) -> str:
        return format_money(self.amount, self.target.currency)


# --- forms --------------------------------------------------------------------------------------------------------


def sign_form_key(clerk: Clerk, target: Payment, code: str) -> str:
    """A new form key, signed for this user, payment and operation."""
    return signing.dumps([identifiers.row_id().hex, clerk.user, target.id.hex, code], salt=_SALT)


def read_form_key(text: str, clerk: Clerk, target: Payment, code: str) -> UUID:
    """The id in a form key. Raises FollowUpNotPossibleError for one that is too old or was signed for something
    else."""
    try:
        key, *rest = signing.loads(text, salt=_SALT, max_age=MAX_FORM_KEY_AGE_S)
    except signing.SignatureExpired:
        raise FollowUpNotPossibleError(
            _("This form was opened too long ago. Open it again; nothing was sent.")
        ) from None
    except (signing.BadSignature, ValueError, TypeError):
        raise FollowUpNotPossibleError(_("This form is not one of ours. Open it again; nothing was sent.")) from None
    if rest != [clerk.user, target.id.hex, code]:
        raise FollowUpNotPossibleError(
            _("This form belongs to another payment or person. Open it again; nothing was sent.")
        )
    return UUID(key)


def renew_form_key(text: str, clerk: Clerk, target: Payment, code: str) -> str:
    """The key of a form that is shown once more: the one that it has, as long as it can be sent; else a new one. With
    another one the browser's back button would lead to the first, unused, and sending that would be a second
    follow-up."""
    try:
        read_form_key(text, clerk, target, code)
    except FollowUpNotPossibleError:
        return sign_form_key(clerk, target, code)
    return text


def parse_follow_up_order(
    chain: Chain, target: Payment, code: str, amount: str, *, reason: str = "", note: str = ""
) -> FollowUpOrder:
    """Validate the form's fields as an order that is possible now. Raises FollowUpNotPossibleError."""
    offer = find_follow_up_offer(chain, target, code)
    if offer is None:
        raise FollowUpNotPossibleError(
            _("%s is not possible for this payment as it stands now.") % _(OPERATIONS[code].title)
        )
    try:
        asked = money.parse_amount(read_typed_amount(amount))
    except ValueError:
        raise FollowUpNotPossibleError(_("Give the amount with none or two decimals, e.g. 92.00.")) from None
    if asked <= 0:
        raise FollowUpNotPossibleError(_("Give an amount above 0."))
    if not money.fits_currency(asked, target.currency):
        raise FollowUpNotPossibleError(_("%s has no decimals: give a whole amount.") % target.currency)
    if offer.most is not None and asked > offer.most:
        most = format_money(offer.most, target.currency)
        raise FollowUpNotPossibleError(_("At most %s can still be moved by this. Nothing was sent.") % most)
    return FollowUpOrder(
        target=target, code=code, amount=asked, reason=reason, note=mask_note(note, MAX_FOLLOW_UP_NOTE_CHARS)
    )


def find_follow_up_offer(chain: Chain, target: Payment, code: str) -> FollowUpOffer | None:
    """The offer of a payment type, or None if it is not possible."""
    return next((offer for offer in list_follow_up_offers(chain, target) if offer.code == code), None)


def check_clerk_limit(clerk: Clerk, order: FollowUpOrder, chain: Chain) -> LimitUse | None:
    """The limit that ``order`` would exceed for ``clerk``; None: no approval is needed."""
    return clerk_limits.find_exceeded_limit(clerk, order.amount, chain)


# --- carrying out -------------------------------------------------------------------------------------------------


def send_follow_up(order: FollowUpOrder, clerk: Clerk, key: UUID) -> tuple[Payment, bool]:
    """Send the follow-up of one form; returns the payment, and whether this call made it (the same form may have
    before).

    Raises FollowUpNotPossibleError if the form was used for another amount, or the request was refused without a
    payment, and ClerkLimitExceededError.
    """
    claim = IdempotencyClaim(**_build_key_scope(clerk, key), body=_build_fingerprint_text(order))
    if (made := _find_made_payment(claim)) is not None:
        return made, False
    try:
        # The idempotency key stores the payment, not a response: the page is rendered anew each time.
        once = IdempotencyContext(claim=claim)
        return execute_follow_up(order, clerk.actor, idempotency=once, alone=clerk), True
    except ClerkLimitExceededError:
        # The same form was sent in parallel, and its own payment used the limit.
        if (made := _find_made_payment(claim)) is None:
            raise
        return made, False
    except IdempotencyKeyTakenError:
        made = _find_made_payment(claim)
        if made is None:  # pragma: no cover - the key that was taken is there
            raise FollowUpNotPossibleError(_("This form is being carried out at this moment.")) from None
        return made, False


def find_sent_follow_up(clerk: Clerk, key: UUID) -> Payment | None:
    """The payment that a form already made, whatever its fields are now; None if there is none."""
    kept = IdempotencyKey.objects.filter(**_build_key_scope(clerk, key)).values_list("payment", flat=True).first()
    return Payment.objects.get(pk=kept) if kept is not None else None


def _build_key_scope(clerk: Clerk, key: UUID) -> dict[str, Any]:
    """The form's place among the idempotency keys; a user stands in for an access token."""
    return {"token": uuid5(_USERS, str(clerk.user)), "method": "POST", "path": "/admin", "key": key.hex}


def _build_fingerprint_text(order: FollowUpOrder) -> Secret:
    return Secret(f"{order.target.id.hex} {order.code} {money.format_amount(order.amount)}")


def _find_made_payment(claim: IdempotencyClaim) -> Payment | None:
    """The payment that this form made before."""
    where = {"token": claim.token, "method": claim.method, "path": claim.path, "key": claim.key}
    kept = IdempotencyKey.objects.filter(**where).first()
    if kept is None:
        return None
    if not current_vault().matches(claim.body, kept.fingerprint):
        raise FollowUpNotPossibleError(
            _("This form was sent before, with another amount. Open a new one to send this one, too.")
        )
    return Payment.objects.get(pk=kept.payment)


def execute_follow_up(
    order: FollowUpOrder,
    by: audit_log.Actor,
    *,
    follow_up: UUID | None = None,
    idempotency: IdempotencyContext | None = None,
    alone: Clerk | None = None,
) -> Payment:
    """Send ``order``, with an audit entry in the statement that begins it and one afterwards. ``follow_up``: the id it
    gets; a payment with that id is returned as is. ``alone``: the clerk, if nobody approved. Raises
    FollowUpNotPossibleError, IdempotencyKeyTakenError and ClerkLimitExceededError."""
    target = order.target
    merchant, channel = target.merchant, target.channel
    now = clock.merchant_now(merchant)
    ident = follow_up or identifiers.row_id()
    said = {"operation": order.code, "amount": money.format_amount(order.amount), "currency": target.currency}
    said |= {name: text for name, text in (("reason", order.reason), ("note", order.note)) if text}

    def sent(chain: Chain) -> Callable[[WriteStatement], None]:
        count = clerk_limits.load_manual_counter(alone.user, merchant.id) if alone is not None else None
        if alone is not None and (used := check_clerk_limit(alone, order, chain)) is not None:
            raise ClerkLimitExceededError(used)
        after = {**said, "payment": ident.hex, "alone": alone is not None}
        before = {each.key: money.format_amount(each.amount) for each in summarize_chain(chain)}

        def extra_writes(write: WriteStatement) -> None:
            if count is not None and alone is not None:
                clerk_limits.add_manual_move(write, count, alone.user, ident, order.amount, target.currency)
            audit_log.append_audit_entry(write, by, f"{order.title.lower()} sent", target, before=before, after=after)

        return extra_writes

    request = FollowUpRequest(
        payment=ident,
        target=target.id,
        merchant=merchant,
        channel=channel,
        now=now,
        parameters=_parse_order_parameters(order),
        idempotency=idempotency,
        extra_writes=sent,
        trace=RequestTrace(method="POST", path=f"/admin/payment/{target.id.hex}", ip=by.ip, entity=channel.id),
    )
    try:
        made = process_follow_up(request)
    except RequestRefusedError as fault:
        reason = f"{fault.code} {fault.more}".strip()
        audit_log.record_audit_entry(by, f"{order.title.lower()} refused", target, after={**said, "code": fault.code})
        raise FollowUpNotPossibleError(_("The gateway refused this: %s. Nothing was sent.") % reason) from None
    except IntegrityError:
        made_before = Payment.objects.filter(pk=follow_up).first() if follow_up is not None else None
        if made_before is None:
            raise
        return made_before
    outcome = {"payment": made.id.hex, "status": str(made.status), "code": made.result_code}
    audit_log.record_audit_entry(
        by, f"{order.title.lower()} made", target, after={**said, **outcome, **_summarize_for_audit(target)}
    )
    return made


def _parse_order_parameters(order: FollowUpOrder) -> Any:
    """The API parameters of the order, parsed by the API's catalogue."""
    target = order.target
    pairs = [
        ("entityId", target.channel.entity_id),
        ("paymentType", order.code),
        ("amount", money.format_amount(order.amount)),
        ("currency", target.currency),
    ]
    now = clock.merchant_now(target.merchant)
    try:
        return FOLLOW_UP_ENDPOINT.catalogue.parse(
            pairs, facts=build_condition_facts(target.channel, now), policy=target.channel.parameters
        )
    except InvalidParametersError as fault:
        wrong = "; ".join(f"{error.name} {error.message}" for error in fault.errors)
        raise FollowUpNotPossibleError(_("The gateway refused this: %s. Nothing was sent.") % wrong) from None


def _summarize_for_audit(target: Payment) -> dict[str, Any]:
    """The chain's amounts, for the audit log."""
    members = Payment.objects.filter(chain=target.chain).defer("request", "answer").order_by("id")
    return {each.key: money.format_amount(each.amount) for each in summarize_chain(Chain(list(members)))}
