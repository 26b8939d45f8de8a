"""Who is told: endpoints are made, activated by an answer of their own, given new secrets, and switched off.

Every change is written to the audit trail in its transaction; secrets are not. Source: decisions, section 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction

from gateway import audit, clock, identifiers
from gateway.audit import Actor
from gateway.models import Channel, Merchant, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import INSPECTOR, KINDS
from gateway.notifications import claims, delivery, record, signing, timing
from gateway.outbound import Forbidden, Outcome, target_of
from gateway.secret import Secret
from gateway.vault import vault

OVERLAP: Final = timedelta(hours=24)
"""How long the previous secret is honoured after a rotation; real time."""
_TESTED: Final = ("url", "mode", "wrapper")
"""What a test message is sent to, and in which form."""
ADDRESS_CHANGED: Final = "the address or the form was changed: it is told again once it has answered a test message"
MOST_ENDPOINTS: Final = 50
"""Of one merchant."""
MAX_URL: Final = 2_048
"""Characters of an endpoint's address."""


class Unusable(Exception):
    """An endpoint that cannot be made so; the text names what is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """What came of a test message: whether the endpoint is active now, the answer, and whether the endpoint's address
    or form was changed while it was asked."""

    active: bool
    outcome: Outcome
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


def make(
    merchant: Merchant,
    url: str,
    *,
    by: Actor,
    channel: Channel | None = None,
    mode: str = WebhookEndpoint.Mode.ENCRYPTED,
    wrapper: str = WebhookEndpoint.Wrapper.NONE,
    kinds: Sequence[str] = KINDS,
    secret: Secret | None = None,
) -> tuple[WebhookEndpoint, Secret]:
    """An endpoint, INACTIVE until it is activated, and its secret, which is shown this once. Raises Unusable."""
    check(url, mode=mode, wrapper=wrapper, kinds=kinds)
    if WebhookEndpoint.objects.filter(merchant=merchant).count() >= MOST_ENDPOINTS:
        raise Unusable(f"a merchant has at most {MOST_ENDPOINTS} webhook endpoints")
    secret = secret or signing.new_secret()
    ident = identifiers.row_id()
    endpoint = WebhookEndpoint(
        id=ident, merchant=merchant, channel=channel, url=url, kinds=list(dict.fromkeys(kinds)), mode=mode,
        wrapper=wrapper, secret_sealed=vault().seal(secret, ident),
    )  # fmt: skip
    with transaction.atomic():
        endpoint.save(force_insert=True)
        audit.record(by, "add", endpoint, after=facts(endpoint))
    return endpoint, secret


def check(url: str, *, mode: str, wrapper: str, kinds: Sequence[str]) -> None:
    """Raises Unusable for what no endpoint can be."""
    if mode not in (WebhookEndpoint.Mode.ENCRYPTED, WebhookEndpoint.Mode.SIGNED):
        raise Unusable("the mode is encrypted or signed")
    if wrapper != WebhookEndpoint.Wrapper.NONE and mode != WebhookEndpoint.Mode.ENCRYPTED:
        raise Unusable("a wrapper is for encrypted endpoints only")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        told = f"{unknown[0][:32]!r} is none" if unknown else "none was given"
        raise Unusable(f"the kinds are one or more of {', '.join(KINDS)}; {told}")
    if len(url) > MAX_URL:
        raise Unusable(f"the URL has at most {MAX_URL:,} characters")
    if url == INSPECTOR:
        if settings.IS_LIVE:
            raise Unusable("the inspector is there in the test environment only")
        return
    try:
        target = target_of(url)
    except Forbidden as fault:
        raise Unusable(f"the URL cannot be called: {fault}") from None
    if settings.IS_LIVE and target.scheme != "https":
        raise Unusable("in the live environment the URL is https")


def activate(endpoint: WebhookEndpoint, *, by: Actor) -> Activation:
    """Send the test message; any 2xx makes the endpoint ACTIVE, whatever it was before, unless its address or form was
    changed meanwhile: then it is not what answered."""
    outcome = send_test(endpoint)
    if not outcome.is_success:
        return Activation(active=False, outcome=outcome)
    state = WebhookEndpoint.State
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        if any(getattr(current, name) != getattr(endpoint, name) for name in _TESTED):
            return Activation(active=False, outcome=outcome, changed=True)
        _set(
            endpoint, state=state.ACTIVE, reason="", failures=0, failing_since=None, probes=0, probe_at=None,
            untested=False,
        )  # fmt: skip
        audit.record(by, "activate", endpoint, before={"state": current.state}, after={"state": state.ACTIVE})
    return Activation(active=True, outcome=outcome)


def send_test(endpoint: WebhookEndpoint) -> Outcome:
    """The message that activates."""
    now = clock.now(endpoint.merchant)
    about = {
        "webhookId": endpoint.pk.hex, "authentication": {"entityId": (endpoint.channel_id or endpoint.merchant_id).hex},
        "kinds": endpoint.kinds, "timestamp": clock.wire(now),
    }  # fmt: skip
    return send(endpoint, record.ACTIVATION, record.text_of(record.TEST, record.ACTIVATION, about))


def send(endpoint: WebhookEndpoint, action: str, text: str) -> Outcome:
    """One message that is no event, kept as a delivery with its attempt like any other; it is tried once, and says
    nothing about the endpoint's state."""
    now = clock.now(endpoint.merchant)
    lease, until = identifiers.row_id(), clock.real() + claims.LEASE
    row = WebhookDelivery.objects.create(
        endpoint=endpoint, merchant_id=endpoint.merchant_id, kind=record.TEST, action=action,
        body=text, due_at=now, created_at=now,
        give_up_at=now + timing.GIVE_UP_AFTER, lease=lease, lease_until=until,
    )  # fmt: skip
    honoured = endpoint.previous_until is not None and endpoint.previous_until > clock.real()
    tried = delivery.attempt(
        claims.Due(
            id=row.pk, endpoint=endpoint.pk, merchant=endpoint.merchant_id, kind=row.kind, attempt=1, body=row.body,
            give_up_at=row.give_up_at, offset=endpoint.merchant.clock_offset, url=endpoint.url, mode=endpoint.mode,
            wrapper=endpoint.wrapper, lease=lease, lease_until=until, failures=0,
            keys=claims.keys_of(
                endpoint.pk, endpoint.secret_sealed, endpoint.previous_sealed if honoured else None
            ),
        )
    )  # fmt: skip
    claims.settle([tried])
    assert tried.outcome is not None
    return tried.outcome


def rotate(
    endpoint: WebhookEndpoint, *, by: Actor, secret: Secret | None = None, overlap: timedelta = OVERLAP
) -> Secret:
    """Give the endpoint a new secret; the one before is honoured for ``overlap``. Shown this once."""
    secret = secret or signing.new_secret()
    until = clock.real() + overlap if overlap else None
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        _set(
            endpoint, secret_sealed=vault().seal(secret, endpoint.pk),
            previous_sealed=current.secret_sealed if until else None, previous_until=until,
        )  # fmt: skip
        after = {"previous_until": until.isoformat() if until else None}
        audit.record(by, "rotate", endpoint, after=after)
    return secret


def change(endpoint: WebhookEndpoint, *, by: Actor, url: str, mode: str, wrapper: str, kinds: Sequence[str]) -> bool:
    """Put these in the place of what stands; whether anything changed. A working endpoint that gets another address or
    form is paused until it has answered a test message there: what happens meanwhile waits. Raises Unusable."""
    check(url, mode=mode, wrapper=wrapper, kinds=kinds)
    state = WebhookEndpoint.State
    asked: dict[str, Any] = {"url": url, "mode": mode, "wrapper": wrapper, "kinds": list(dict.fromkeys(kinds))}
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        before = {name: getattr(current, name) for name in asked}
        if before == asked:
            return False
        anew = any(before[name] != asked[name] for name in _TESTED)
        if anew and current.state in (state.ACTIVE, state.PAUSED):
            asked |= {
                "state": state.PAUSED, "reason": ADDRESS_CHANGED, "probes": 0, "probe_at": None, "untested": True,
            }  # fmt: skip
        _set(endpoint, **asked)
        audit.record(by, "change", endpoint, before=before, after=asked)
    return True


def pause(endpoint: WebhookEndpoint, *, by: Actor) -> bool:
    """Send nothing until it is resumed; what happens waits, thirty days at most. False where it is not working."""
    state = WebhookEndpoint.State
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        if current.state not in (state.ACTIVE, state.PAUSED) or current.is_held:
            return False
        _set(endpoint, state=state.PAUSED, reason=f"paused by {by.name}"[:255], probes=0, probe_at=None)
        audit.record(by, "pause", endpoint, before={"state": current.state}, after={"state": state.PAUSED})
    return True


def resume(endpoint: WebhookEndpoint, *, by: Actor) -> bool:
    """Send again, first what waited. False where it is not paused, or has not answered a test message at its new
    address yet: that takes :func:`activate`."""
    state = WebhookEndpoint.State
    with transaction.atomic():
        current = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk)
        if current.state != state.PAUSED or current.untested:
            return False
        _set(endpoint, state=state.ACTIVE, reason="", failures=0, failing_since=None, probes=0, probe_at=None)
        claims.all_due(endpoint.pk, clock.now(endpoint.merchant))
        audit.record(by, "resume", endpoint, before={"state": current.state}, after={"state": state.ACTIVE})
    return True


def switch_off(endpoint: WebhookEndpoint, *, by: Actor) -> None:
    """Nothing more is sent; what waits is cancelled and can be replayed."""
    with transaction.atomic():
        before = WebhookEndpoint.objects.select_for_update().get(pk=endpoint.pk).state
        claims.switch_off(endpoint.pk, f"switched off: {by.name}"[:255], clock.now(endpoint.merchant))
        audit.record(by, "off", endpoint, before={"state": before}, after={"state": WebhookEndpoint.State.OFF})
    endpoint.refresh_from_db()


def facts(endpoint: WebhookEndpoint) -> dict[str, Any]:
    """What may be shown of an endpoint."""
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


def _set(endpoint: WebhookEndpoint, **values: Any) -> None:
    WebhookEndpoint.objects.filter(pk=endpoint.pk).update(**values)
    for name, value in values.items():
        setattr(endpoint, name, value)
