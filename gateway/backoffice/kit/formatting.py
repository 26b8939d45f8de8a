"""How values look on the clerk's pages: states as coloured pills with words, JSON as text, requests as curl."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gateway.backoffice.payments.timeline import FollowUpOffer
from gateway.core.masking import mask_text
from gateway.core.money import format_amount
from gateway.models import Approval, BackgroundWork, Payment, RequestLog, Status
from gateway.portal.samples import ENTITY_VARIABLE, ApiSample

PillText = str | Promise
_PILLS: Final[Mapping[str, tuple[str, PillText]]] = MappingProxyType(
    {
        Status.APPROVED: ("good", _("Approved")), Status.DECLINED: ("bad", _("Declined")),
        Status.PENDING: ("wait", _("Waiting")), Status.IN_DOUBT: ("wait", _("In doubt")),
        Status.STARTED: ("wait", _("Started")),
        Approval.State.ASKED: ("wait", _("Waits for a decision")), Approval.State.DONE: ("good", _("Carried out")),
        Approval.State.FAILED: ("bad", _("Refused by the gateway")), Approval.State.REJECTED: ("bad", _("Rejected")),
        Approval.State.WITHDRAWN: ("plain", _("Withdrawn")),
        BackgroundWork.State.WAITING: ("wait", _("Waits")), BackgroundWork.State.RUNNING: ("wait", _("Running")),
        BackgroundWork.State.CANCELLED: ("plain", _("Cancelled")),
        "ACTIVE": ("good", _("Active")), "DELETED": ("plain", _("Deleted")),
        "inactive": ("wait", _("Not activated")), "active": ("good", _("Active")),
        "paused": ("bad", _("Paused: it fails")), "held": ("wait", _("Paused")), "off": ("plain", _("Off")),
        "waiting": ("wait", _("Waiting")), "delivered": ("good", _("Delivered")),
        "given_up": ("bad", _("Given up")), "cancelled": ("plain", _("Cancelled")),
        "ENDING": ("wait", _("Notice given")), "SUSPENDED": ("bad", _("Suspended")), "ENDED": ("plain", _("Ended")),
        "PAUSED": ("wait", _("Paused")),
        "OPEN": ("wait", _("Being charged")), "PAID": ("good", _("Paid")), "RETRYING": ("wait", _("To be retried")),
        "SKIPPED": ("plain", _("Skipped")), "MISSED": ("bad", _("Missed")),
    }
)  # fmt: skip
_HASHED: Final = re.compile("#[0-9a-f]+")
_TONES: Final = frozenset({"good", "bad", "wait", "plain"})


def build_state_pill(state: str) -> dict[str, Any]:
    """A state's colour and words. An approved payment and an approved request read alike."""
    tone, text = _PILLS.get(state, ("plain", state.replace("_", " ").capitalize()))
    return {"tone": tone, "text": text}


def normalize_tone(tone: str) -> str:
    return tone if tone in _TONES else "plain"


def format_masked_json(value: Any) -> str:
    """JSON for people, with whatever looks like a secret masked once more."""
    return mask_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def build_payment_curls(payment: Payment, offers: Sequence[FollowUpOffer]) -> list[tuple[str, str]]:
    """(title, command) of reading this payment and of each follow-up that is possible; the token stays a variable."""
    where = f"/v1/payments/{payment.id.hex}"
    samples = [ApiSample(name="", title=str(_("Read it")), method="GET", path=where, status=200)]
    for offer in offers:
        amount = format_amount(offer.most if offer.most is not None else payment.amount)
        fields = {"paymentType": offer.code, "amount": amount, "currency": payment.currency}
        samples.append(ApiSample(name="", title=offer.title, method="POST", path=where, status=200, fields=fields))
    return [(sample.title, _command(sample, payment.channel.entity_id)) for sample in samples]


def build_request_curl(row: RequestLog, sent: Sequence[tuple[str, str]]) -> str:
    """A logged request as a command. What was masked stands as a variable to be filled in."""
    fields = {
        name: (f"${name.replace('.', '_').upper()}" if "*" in value or "•" in value else value)
        for name, value in sent
        if name not in ("entityId", "authentication.entityId")
    }
    # A checkout's id stands in the log as its hash: it is a key.
    path = _HASHED.sub("$CHECKOUT_ID", row.path)
    sample = ApiSample(name="", title="", method=row.method, path=path, status=row.status, fields=fields)
    return _command(sample, row.entity_id.hex if row.entity_id else ENTITY_VARIABLE)


def _command(sample: ApiSample, entity: str) -> str:
    return sample.curl(settings.GATEWAY_BASE_URL).replace(ENTITY_VARIABLE, entity)
