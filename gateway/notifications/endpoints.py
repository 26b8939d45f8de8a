"""Webhook endpoints: create, activate by a test message, rotate secrets, pause and disable.

Every change is written to the audit log in its transaction; secrets are not. Source: decisions, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from gateway.access import audit_log
from gateway.access.audit_log import Actor
from gateway.core import clock, identifiers
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import DEFAULT_WEBHOOK_KINDS, INSPECTOR_URL_PREFIX, WEBHOOK_KINDS
from gateway.notifications import claims, delivery, payload_format, retry_schedule, signing
from gateway.outbound import CallOutcome, ForbiddenAddressError, parse_target
from gateway.outbound.page_calls import count_page_call
from gateway.vault.sealing import current_vault

SECRET_OVERLAP: Final = timedelta(hours=24)
"""How long the previous secret is valid after a rotation; real time."""
_TESTED: Final = ("url", "mode", "wrapper")
"""The fields that a test message verifies: address and form."""
ADDRESS_CHANGED_REASON: Final = (
    "the address or the form was changed: it is told again once it has answered a test message"
)
MAX_ENDPOINTS: Final = 50
"""Endpoints of one merchant."""
MAX_ENDPOINT_URL_CHARS: Final = 2_048
"""Characters of an endpoint's address."""


class InvalidEndpointError(Exception):
    """The endpoint cannot be created like this; the text names the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationResult:
    """Result of a test message: whether the endpoint is active now, its answer, and whether its address or form was
    changed during the call."""

    active: bool
    outcome: CallOutcome
    changed: bool = False

    @property
    def words(self) -> str:
        if self.active:
            return f"answered {self.outcome.status}"
        if self.changed:
            return "the address or the form was changed meanwhile; send another one"
        if self.outcome.failure is not None:
            return f"{self.outcome.failure}: {self.outcome.reason}"
        return f"answered {self.outcome.status}; any 2xx activates"


def create_endpoint(
    merchant: Merchant,
    url: str,
    *,
    by: Actor,
    channel: Channel | None = None,
    mode: str = WebhookEndpoint.Mode.ENCRYPTED,
    wrapper: str = WebhookEndpoint.Wrapper.NONE,
    kinds: Sequence[str] = DEFAULT_WEBHOOK_KINDS,
    secret: Secret | None = None,
) -> tuple[WebhookEndpoint, Secret]:
    """Create an endpoint, INACTIVE until it is activated. Returns it with its secret, which is shown only this once.
    Raises InvalidEndpointError."""
    validate_endpoint(url, mode=mode, wrapper=wrapper, kinds=kinds)
    secret = secret or signing.generate_webhook_secret()
    ident = identifiers.row_id()
    endpoint = WebhookEndpoint(
        id=ident,
        merchant=merchant,
        channel=channel,
        url=url,
        kinds=list(dict.fromkeys(kinds)),
        mode=mode,
        wrapper=wrapper,
        secret_sealed=current_vault().seal(secret, ident),
    )
    with transaction.atomic():
        Merchant.objects.select_for_update(no_key=True).get(pk=merchant.pk)  # two at once count one after the other
        if WebhookEndpoint.objects.filter(merchant=merchant).count() >= MAX_ENDPOINTS:
            raise InvalidEndpointError(f"a merchant has at most {MAX_ENDPOINTS} webhook endpoints")
        endpoint.save(force_insert=True)
        audit_log.record_audit_entry(by, "add", endpoint, after=describe_endpoint(endpoint))
    return endpoint, secret


def open_inspector(merchant: Merchant, channel: Channel | None, mode: str, *, by: Actor) -> WebhookEndpoint:
    """The active inspector of a merchant, or of one channel, in this mode; created if there is none. Of two created at
    once one is used. Raises InvalidEndpointError."""
    mine = WebhookEndpoint.objects.select_related("merchant").filter(
        merchant=merchant, channel=channel, mode=mode, url=INSPECTOR_URL_PREFIX
    )
    row = mine.first()
    if row is None:
        try:
            with transaction.atomic():
                row, _secret = create_endpoint(
                    merchant, INSPECTOR_URL_PREFIX, by=by, channel=channel, mode=mode, kinds=WEBHOOK_KINDS
                )
        except IntegrityError:
            row = mine.get()
    if row.state in (WebhookEndpoint.State.INACTIVE, WebhookEndpoint.State.OFF):
        activate_endpoint(row, by=by)
    return row


def validate_endpoint(url: str, *, mode: str, wrapper: str, kinds: Sequence[str]) -> None:
    """Raise InvalidEndpointError for values that no endpoint can have."""
    if mode not in (WebhookEndpoint.Mode.ENCRYPTED, WebhookEndpoint.Mode.SIGNED):
        raise InvalidEndpointError("the mode is encrypted or signed")
    if wrapper != WebhookEndpoint.Wrapper.NONE and mode != WebhookEndpoint.Mode.ENCRYPTED:
        raise InvalidEndpointError("a wrapper is for encrypted endpoints only")
    unknown = [kind for kind in kinds if kind not in WEBHOOK_KINDS]
    if unknown or not kinds:
        problem = f"{unknown[0][:32]!r} is none" if unknown else "none was given"
        raise InvalidEndpointError(f"the kinds are one or more of {', '.join(WEBHOOK_KINDS)}; {problem}")
    if len(url) > MAX_ENDPOINT_URL_CHARS:
        raise InvalidEndpointError(f"the URL has at most {MAX_ENDPOINT_URL_CHARS:,} characters")
    if url == INSPECTOR_URL_PREFIX:
        if settings.IS_LIVE:
            raise InvalidEndpointError("the inspector is there in the test environment only")
        return
    try:
        target = parse_target(url)
    except ForbiddenAddressError as fault:
        raise InvalidEndpointError(f"the URL cannot be called: {fault}") from None
    if settings.IS_LIVE and target.scheme != "https":
        raise InvalidEndpointError("in the live environment the URL is https")


def activate_endpoint(endpoint: WebhookEndpoint, *, by: Actor) -> ActivationResult:
    """Send the test message; any 2xx makes the endpoint ACTIVE, whatever its state was, unless its address or form was
    changed meanwhile: then another endpoint answered. Raises TooManyPageCallsError."""
    outcome = send_test_message(endpoint)
    if not outcome.is_success:
        return ActivationResult(active=False, outcome=outcome)
    state = WebhookEndpoint.State
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        if any(getattr(current, name) != getattr(endpoint, name) for name in _TESTED):
            return ActivationResult(active=False, outcome=outcome, changed=True)
        _update_endpoint_row(
            endpoint,
            state=state.ACTIVE,
            reason="",
            failures=0,
            failing_since=None,
            probes=0,
            probe_at=None,
            untested=False,
        )
        audit_log.record_audit_entry(
            by, "activate", endpoint, before={"state": current.state}, after={"state": state.ACTIVE}
        )
    return ActivationResult(active=True, outcome=outcome)


def send_test_message(endpoint: WebhookEndpoint) -> CallOutcome:
    """Send the message that activates."""
    now = clock.merchant_now(endpoint.merchant)
    about = {
        "webhookId": endpoint.pk.hex,
        "authentication": {"entityId": (endpoint.channel_id or endpoint.merchant_id).hex},
        "kinds": endpoint.kinds,
        "timestamp": clock.format_timestamp(now),
    }
    return send_single_message(
        endpoint,
        payload_format.ACTIVATION_ACTION,
        payload_format.serialize_payload(payload_format.TEST_TYPE, payload_format.ACTIVATION_ACTION, about),
    )


def send_single_message(endpoint: WebhookEndpoint, action: str, text: str) -> CallOutcome:
    """Send one message that is no event, recorded as a delivery with one attempt. It is not retried, and does not
    affect the endpoint's health. Raises TooManyPageCallsError; then nothing was sent and recorded."""
    if endpoint.is_inspector:
        return _attempt_single_message(endpoint, action, text)
    with count_page_call(endpoint.merchant_id):
        return _attempt_single_message(endpoint, action, text)


def _attempt_single_message(endpoint: WebhookEndpoint, action: str, text: str) -> CallOutcome:
    now = clock.merchant_now(endpoint.merchant)
    lease, ends = identifiers.row_id(), clock.Deadline.after(claims.WEBHOOK_LEASE.total_seconds())
    row = WebhookDelivery.objects.create(
        endpoint=endpoint,
        merchant_id=endpoint.merchant_id,
        kind=payload_format.TEST_TYPE,
        action=action,
        body=text,
        due_at=now,
        created_at=now,
        give_up_at=now + retry_schedule.WEBHOOK_GIVE_UP_AFTER,
        lease=lease,
        lease_until=Now() + claims.WEBHOOK_LEASE,
    )
    honoured = endpoint.previous_until is not None and endpoint.previous_until > clock.real_now()
    tried = delivery.attempt_webhook(
        claims.DueWebhook(
            id=row.pk,
            endpoint=endpoint.pk,
            merchant=endpoint.merchant_id,
            kind=row.kind,
            attempt=1,
            body=row.body,
            give_up_at=row.give_up_at,
            offset=endpoint.merchant.clock_offset,
            url=endpoint.url,
            mode=endpoint.mode,
            wrapper=endpoint.wrapper,
            lease=lease,
            lease_ends=ends,
            failures=0,
            keys=claims.unseal_signing_keys(
                endpoint.pk, endpoint.secret_sealed, endpoint.previous_sealed if honoured else None
            ),
        )
    )
    claims.record_webhook_attempts([tried])
    assert tried.outcome is not None
    return tried.outcome


def rotate_secret(
    endpoint: WebhookEndpoint, *, by: Actor, secret: Secret | None = None, overlap: timedelta = SECRET_OVERLAP
) -> Secret:
    """Give the endpoint a new secret, which is shown only this once; the previous one is valid for ``overlap``."""
    secret = secret or signing.generate_webhook_secret()
    until = clock.real_now() + overlap if overlap else None
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        _update_endpoint_row(
            endpoint,
            secret_sealed=current_vault().seal(secret, endpoint.pk),
            previous_sealed=current.secret_sealed if until else None,
            previous_until=until,
        )
        after = {"previous_until": until.isoformat() if until else None}
        audit_log.record_audit_entry(by, "rotate", endpoint, after=after)
    return secret


def update_endpoint(
    endpoint: WebhookEndpoint, *, by: Actor, url: str, mode: str, wrapper: str, kinds: Sequence[str]
) -> bool:
    """Change the given values. Returns whether anything changed. A working endpoint with a new address or form is
    paused until it answers a test message there; events wait meanwhile. Raises InvalidEndpointError."""
    validate_endpoint(url, mode=mode, wrapper=wrapper, kinds=kinds)
    state = WebhookEndpoint.State
    changes: dict[str, Any] = {"url": url, "mode": mode, "wrapper": wrapper, "kinds": list(dict.fromkeys(kinds))}
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        before = {name: getattr(current, name) for name in changes}
        if before == changes:
            return False
        anew = any(before[name] != changes[name] for name in _TESTED)
        if anew and current.state in (state.ACTIVE, state.PAUSED):
            changes |= {
                "state": state.PAUSED,
                "reason": ADDRESS_CHANGED_REASON,
                "probes": 0,
                "probe_at": None,
                "untested": True,
            }
        _update_endpoint_row(endpoint, **changes)
        audit_log.record_audit_entry(by, "change", endpoint, before=before, after=changes)
    return True


def pause_endpoint(endpoint: WebhookEndpoint, *, by: Actor) -> bool:
    """Pause deliveries until the endpoint is resumed; events wait, for thirty days at most. False if it is not
    working."""
    state = WebhookEndpoint.State
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        if current.state not in (state.ACTIVE, state.PAUSED) or current.is_held:
            return False
        _update_endpoint_row(endpoint, state=state.PAUSED, reason=f"paused by {by.name}"[:255], probes=0, probe_at=None)
        audit_log.record_audit_entry(
            by, "pause", endpoint, before={"state": current.state}, after={"state": state.PAUSED}
        )
    return True


def resume_endpoint(endpoint: WebhookEndpoint, *, by: Actor) -> bool:
    """Resume deliveries, waiting ones first. False if the endpoint is not paused, or has not answered a test message at
    its new address yet: that takes :func:`activate_endpoint`."""
    state = WebhookEndpoint.State
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        if current.state != state.PAUSED or current.untested:
            return False
        _update_endpoint_row(
            endpoint, state=state.ACTIVE, reason="", failures=0, failing_since=None, probes=0, probe_at=None
        )
        claims.make_waiting_webhooks_due(endpoint.pk, clock.merchant_now(endpoint.merchant))
        audit_log.record_audit_entry(
            by, "resume", endpoint, before={"state": current.state}, after={"state": state.ACTIVE}
        )
    return True


def deactivate_endpoint(endpoint: WebhookEndpoint, *, by: Actor) -> None:
    """Switch an endpoint off: nothing more is sent; waiting deliveries are cancelled and can be replayed."""
    with transaction.atomic():
        before = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk).state
        claims.disable_endpoint(endpoint.pk, f"switched off: {by.name}"[:255], clock.merchant_now(endpoint.merchant))
        audit_log.record_audit_entry(
            by, "off", endpoint, before={"state": before}, after={"state": WebhookEndpoint.State.OFF}
        )
    endpoint.refresh_from_db()


def describe_endpoint(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """The values of an endpoint that may be shown."""
    return {
        "id": endpoint.pk.hex,
        "entity": (endpoint.channel_id or endpoint.merchant_id).hex,
        "url": endpoint.url,
        "mode": endpoint.mode,
        "wrapper": endpoint.wrapper,
        "kinds": endpoint.kinds,
        "state": endpoint.state,
        "reason": endpoint.reason,
        "failures": endpoint.failures,
        "previous_until": endpoint.previous_until.isoformat() if endpoint.previous_until else None,
    }


def _update_endpoint_row(endpoint: WebhookEndpoint, **values: Any) -> None:
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(**values)
    for name, value in values.items():
        setattr(endpoint, name, value)
