"""Audit entries as sentences: who did what to which payment, user or merchant, with names and amounts.

What an entry is about is named from its own values, else from the row as it is now; all rows of a page are read in one
statement for each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.follow_ups.reasons import name_request
from gateway.backoffice.kit.formatting import build_state_pill, format_labelled, format_money
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.core.masking import mask_text
from gateway.models import (
    AccessToken,
    Approval,
    AuditEntry,
    Channel,
    Division,
    ErasureRequest,
    Merchant,
    Payment,
    Psp,
)
from gateway.payments.operation_table import OPERATIONS

LOOK_ACTIONS: Final = ("view", "evidence fetched")
"""Actions that change nothing: hidden unless they are asked for."""
_SENTENCES: Final[Mapping[str, Any]] = {
    "view": lazy("%(actor)s looked at %(what)s"),
    "create": lazy("%(actor)s made %(what)s"),
    "add": lazy("%(actor)s made %(what)s"),
    "change": lazy("%(actor)s changed %(what)s"),
    "delete": lazy("%(actor)s deleted %(what)s"),
    "configure": lazy("%(actor)s set up %(what)s"),
    "issue": lazy("%(actor)s issued %(what)s"),
    "run sample": lazy("%(actor)s ran a sample of the docs with %(what)s"),
    "revoke": lazy("%(actor)s revoked %(what)s"),
    "rotate": lazy("%(actor)s rotated the secret of %(what)s"),
    "approve": lazy("%(actor)s approved %(what)s"),
    "refused": lazy("%(actor)s was refused: %(what)s"),
    "sign in": lazy("%(actor)s signed in"),
    "set password": lazy("%(actor)s set the password of %(what)s"),
    "password link": lazy("%(actor)s made a link for the password of %(what)s"),
    "approval asked": lazy("%(actor)s asked to approve %(what)s"),
    "approval given": lazy("%(actor)s approved %(what)s, asked by %(asker)s"),
    "approval rejected": lazy("%(actor)s rejected %(what)s, asked by %(asker)s"),
    "approval withdrawn": lazy("%(actor)s withdrew %(what)s"),
    "approval carried out": lazy("%(what)s was carried out, approved by %(actor)s, asked by %(asker)s"),
    "bring back": lazy("%(actor)s brought %(what)s back from the archive"),
    "forget shopper": lazy("%(actor)s erased a shopper's data at %(what)s"),
    "export shopper": lazy("%(actor)s exported a shopper's data at %(what)s"),
    "erasure asked": lazy("%(actor)s asked to erase the data of %(what)s"),
    "erasure approved": lazy("%(actor)s approved erasing the data of %(what)s"),
    "erasure approval lapsed": lazy("The approval to erase the data of %(what)s lapsed: nobody carried it out"),
    "erasure carried out": lazy("%(actor)s approved and erased the data of %(what)s"),
    "erasure rejected": lazy("%(actor)s rejected erasing the data of %(what)s"),
    "erasure withdrawn": lazy("%(actor)s withdrew the request to erase the data of %(what)s"),
    "month prepared": lazy("%(actor)s prepared the closing of %(what)s"),
    "month signed": lazy("%(actor)s signed and closed %(what)s"),
    "month returned": lazy("%(actor)s returned the closing of %(what)s"),
    "month withdrawn": lazy("%(actor)s withdrew the closing of %(what)s"),
    "month reopened": lazy("%(actor)s reopened %(what)s: %(note)s"),
    "export fetched": lazy("%(actor)s fetched the file of %(what)s"),
    "link": lazy("%(actor)s linked %(what)s to a payment"),
    "mark": lazy("%(actor)s marked %(what)s as having no payment: %(note)s"),
    "close": lazy("%(actor)s closed %(what)s: %(note)s"),
    "undo": lazy("%(actor)s undid what was done with %(what)s"),
    "receive": lazy("%(actor)s took in %(what)s"),
    "replay": lazy("%(actor)s replayed webhooks of %(what)s"),
    "add evidence": lazy("%(actor)s added evidence to %(what)s"),
    "remove evidence": lazy("%(actor)s removed evidence from %(what)s"),
    "evidence fetched": lazy("%(actor)s opened evidence of %(what)s"),
    "packet asked": lazy("%(actor)s had the packet of %(what)s made"),
    "chargeback": lazy("%(actor)s entered a chargeback: %(what)s"),
    "submit": lazy("%(actor)s submitted the evidence of %(what)s"),
    "accept": lazy("%(actor)s accepted %(what)s"),
    "accept sums": lazy("%(actor)s accepted the sums of %(what)s"),
    "alert recorded": lazy("%(actor)s recorded %(what)s"),
    "alert let go": lazy("%(actor)s let %(what)s go"),
    "book": lazy("%(actor)s booked %(what)s"),
    "confirm person": lazy("%(actor)s confirmed that %(what)s is a person of their own"),
    "end sessions": lazy("%(actor)s ended the sessions of %(what)s"),
    "unlock": lazy("%(actor)s unlocked %(what)s"),
    "single sign-on": lazy("%(actor)s undid the single sign-on of %(what)s"),
    "second factor": lazy("%(actor)s changed the second factor of %(what)s"),
    "recovery codes": lazy("%(actor)s made recovery codes for %(what)s"),
    "made again": lazy("%(actor)s had %(what)s made again"),
    "read again": lazy("%(actor)s had %(what)s read again"),
    "receive again": lazy("%(actor)s took in %(what)s again"),
    "point": lazy("%(actor)s set %(what)s up"),
    "fetch from": lazy("%(actor)s set up where %(what)s is fetched from"),
    "payout decided": lazy("%(actor)s entered what became of %(what)s"),
    "recall transfer": lazy("%(actor)s recalled %(what)s"),
    "send again": lazy("%(actor)s had %(what)s sent again"),
    "send now": lazy("%(actor)s had %(what)s sent at once"),
    "send captures now": lazy("%(actor)s had the captures of %(what)s sent at once"),
    "set secrets": lazy("%(actor)s set the secrets of %(what)s"),
    "view saved": lazy("%(actor)s saved %(what)s"),
    "view deleted": lazy("%(actor)s deleted %(what)s"),
    "move clock": lazy("%(actor)s moved the clock of %(what)s"),
    "activate": lazy("%(actor)s activated %(what)s"),
    "deactivate": lazy("%(actor)s deactivated %(what)s"),
    "pause": lazy("%(actor)s paused %(what)s"),
    "resume": lazy("%(actor)s resumed %(what)s"),
    "off": lazy("%(actor)s switched off %(what)s"),
    "export": lazy("%(actor)s exported %(what)s"),
    "on": lazy("%(actor)s activated %(what)s"),
    "disable": lazy("%(actor)s switched off %(what)s"),
    "cancel": lazy("%(actor)s cancelled %(what)s"),
    "reschedule": lazy("%(actor)s changed %(what)s"),
    "escalate": lazy("%(actor)s opened the next stage of %(what)s"),
    "win": lazy("%(actor)s entered the decision for the merchant: %(what)s"),
    "lose": lazy("%(actor)s entered the decision for the shopper: %(what)s"),
    "event acted on again": lazy("%(actor)s had %(what)s acted on again"),
    "event settled by hand": lazy("%(actor)s settled %(what)s by hand"),
    "end mandate": lazy("%(actor)s ended %(what)s"),
    "release mandate": lazy("%(actor)s released %(what)s"),
}
_FOLLOW_UP_SENTENCES: Final[Mapping[str, Any]] = {
    "sent": lazy("%(actor)s sent %(what)s"),
    "made": lazy("%(what)s, sent by %(actor)s: %(state)s"),
    "refused": lazy("%(actor)s was refused: %(what)s"),
}
"""Sentences of manual follow-ups, whose actions begin with their operation: "refund sent"."""
_WORK_SENTENCES: Final[Mapping[str, Any]] = {
    "asked": lazy("%(actor)s started %(what)s"),
    "cancelled": lazy("%(actor)s cancelled %(what)s"),
}
"""Sentences of background work, whose actions begin with its kind."""
_REFUSED_SENTENCE: Final = lazy("%(what)s was approved by %(actor)s and refused by the gateway, asked by %(asker)s")
"""The sentence of an approved request that the gateway refused."""
_CONNECTED_SENTENCE: Final = lazy("%(actor)s connected the single sign-on of %(what)s")
"""The sentence of the action that also undoes it: then the entry's subject at the provider is empty."""
_NAMED: Final = (Payment, Approval, Merchant, Channel, Division, Psp, AccessToken)
"""Models whose rows are named as they are now, where the entry has no name of them."""


_MACHINES: Final = {
    "command line": lazy("command line"),
    "unused accounts": lazy("the timer of unused accounts"),
    "erasure approvals": lazy("the timer of approvals to erase"),
    "settlement lines": lazy("settlement lines"),
    "the processor": lazy("the processor"),
}
"""Actors that are no users, by their names in the trail. No user name has a space."""
_MACHINE_KINDS: Final = {"access token": lazy("access token %s"), "settlement file": lazy("settlement file %s")}
"""Actors that are no users and have an id or a name behind their kind."""


def name_actor(actor: str) -> str:
    """A user by their name; what acts without one in the reader's language."""
    for kind, words in _MACHINE_KINDS.items():
        if actor.startswith(f"{kind} "):
            return str(words) % actor.removeprefix(f"{kind} ")
    return str(_MACHINES.get(actor, actor))


def describe_entries(entries: Iterable[AuditEntry]) -> dict[int, str]:
    """Key of an entry → its sentence."""
    found = list(entries)
    names = _load_names(found)
    return {entry.pk: _describe(entry, names.get((entry.subject, entry.subject_id), "")) for entry in found}


def _describe(entry: AuditEntry, name: str) -> str:
    values: dict[str, Any] = {**(entry.before or {}), **(entry.after or {})}
    facts = {
        "actor": name_actor(entry.actor),
        "what": _name_subject(entry, name, values),
        "asker": values.get("asked by") or "–",
        "note": values.get("reason") or values.get("note") or "–",
        "state": build_state_pill(str(values.get("status", "")))["text"],
    }
    sentence = _SENTENCES.get(entry.action)
    if sentence is None and "operation" in values:
        sentence = _FOLLOW_UP_SENTENCES.get(entry.action.rpartition(" ")[2])
    if sentence is None and entry.subject == "backgroundwork":
        sentence = _WORK_SENTENCES.get(entry.action.rpartition(" ")[2])
    if entry.action == "approval carried out" and values.get("state") == Approval.State.FAILED:
        sentence = _REFUSED_SENTENCE
    if entry.action == "single sign-on" and values.get("subject"):
        sentence = _CONNECTED_SENTENCE
    if sentence is not None:
        return mask_text(str(sentence) % facts)
    return mask_text(format_labelled(facts["actor"], f"{_(entry.action)}, {facts['what']}"))


def _name_subject(entry: AuditEntry, name: str, values: Mapping[str, Any]) -> str:
    """What the entry is about: "Refund 80.00 EUR, order-4711", "Channel main (Shop)"."""
    if entry.subject in ("approval", "payment") and "operation" in values and "amount" in values:
        return ", ".join(filter(None, (_name_move(entry.subject, values), name)))
    if entry.subject == "erasurerequest" and values.get("kind") in ErasureRequest.Kind:
        return f"{ErasureRequest.Kind(values['kind']).label} {values.get('shown', '')}".strip()
    if entry.subject == "monthclosing" and "month" in values:
        return f"{values['month']} ({values.get('merchant', '')})"
    kind = name_kind(entry.subject)
    # The kind of an alert is ALERT, or INQUIRY.
    keys = ("name", "username", *(() if entry.subject == "disputealert" else ("kind",)))
    if not name:
        return f"{kind} {next((str(values[key]) for key in keys if values.get(key)), '')}".strip()
    # Of a dispute, a file of its evidence.
    part = str(values.get("name") or "") if entry.subject == "chargeback" else ""
    return f"{kind} {', '.join(filter(None, (name, part)))}"


def name_operation(subject: str, code: str) -> str:
    """The follow-up that an entry is about; of a request for approval what was asked for, which may be an outcome."""
    if code not in OPERATIONS:
        return code
    return name_request(code) if subject == "approval" else _(OPERATIONS[code].title)


def _name_move(subject: str, values: Mapping[str, Any]) -> str:
    title = name_operation(subject, str(values.get("operation", "")))
    try:
        return f"{title} {format_money(Decimal(values['amount']), values.get('currency', ''))}"
    except InvalidOperation:
        return title


def name_kind(subject: str) -> str:
    """The kind of thing that a subject is, in the reader's language."""
    found = next((model for model in apps.get_models() if model._meta.model_name == subject), None)
    return str(found._meta.verbose_name) if found is not None else subject


def _load_names(entries: Iterable[AuditEntry]) -> dict[tuple[str, str], str]:
    """(subject, its id) → its name now."""
    asked: dict[str, set[str]] = {}
    for entry in entries:
        asked.setdefault(entry.subject, set()).add(entry.subject_id)
    found: dict[tuple[str, str], str] = {}
    named: dict[type[Model], Callable[[Any], str]] = dict.fromkeys((*_NAMED, get_user_model()), _name_row)
    for model, page in admin.site._registry.items():
        if getattr(page, "is_named_in_trail", False):
            named[model] = page.name_row  # type: ignore[attr-defined]  # a BackofficePage
    for model, name_row in named.items():
        subject = str(model._meta.model_name)
        keys = {text: key for text in asked.get(subject, ()) if (key := _read_key(model, text)) is not None}
        if keys:
            rows = _select_rows(model).in_bulk(list(keys.values()))
            found |= {(subject, text): name_row(rows[key]) for text, key in keys.items() if key in rows}
    return found


def _select_rows(model: type[Model]) -> Any:
    rows = model._default_manager.all()
    if model is Payment:
        return rows.defer("request", "answer")
    return rows.select_related("payment" if model is Approval else "merchant") if model in (Approval, Channel) else rows


def _read_key(model: type[Model], text: str) -> Any:
    try:
        return int(text) if model is apps.get_model("auth", "User") else UUID(text)
    except ValueError:
        return None


def _name_row(row: Any) -> str:
    if isinstance(row, Payment):
        named = f"{format_payment_title(row)} {format_money(row.amount, row.currency)}"
        return ", ".join(filter(None, (named, row.merchant_transaction_id)))
    if isinstance(row, Approval):
        return str(row.payment.merchant_transaction_id)
    if isinstance(row, Channel):
        return f"{row.merchant.name}: {row.name}"
    return str(row)
