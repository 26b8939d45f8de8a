"""Pages of risk trials: what changed rules would have decided about past payments; colleagues see them too."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.decorators import display

from gateway.access import permissions
from gateway.background import queue
from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import build_state_pill, format_masked_json, format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.risk.replay_subject import (
    ACCOUNT_NOT_STORED,
    ACQUIRER_NOT_ASKED,
    BIN_NOT_STORED,
    FINGERPRINT_KEY_RETIRED,
    VALUE_NOT_STORED,
)
from gateway.backoffice.risk.rule_sentences import describe_rule
from gateway.backoffice.risk.threshold_figures import render_thresholds
from gateway.backoffice.risk.trial_figures import AVS_CVV_CHECK_PLACE
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.models import BackgroundWork, Payment, RiskSet, RiskTrial, RiskTrialPayment

TRIAL_PAGE_ROWS: Final = 50
TRIAL_OUTCOME_TITLES: Final[Mapping[str, Any]] = {
    "accept": gettext_lazy("let through"), "review": gettext_lazy("under review"), "decline": gettext_lazy("declined"),
}  # fmt: skip
TRIAL_OUTCOME_TONES: Final = {"accept": "good", "review": "wait", "decline": "bad"}
UNJUDGED_REASON_TITLES: Final[Mapping[str, Any]] = {
    ACCOUNT_NOT_STORED: gettext_lazy("the card or account is not kept with them, not even its fingerprint"),
    FINGERPRINT_KEY_RETIRED: gettext_lazy(
        "their cards are fingerprinted under an older key of the vault; reseal them first"
    ),
    BIN_NOT_STORED: gettext_lazy("the card's first digits are not kept with them"),
    VALUE_NOT_STORED: gettext_lazy("the field is kept masked, or not at all"),
    ACQUIRER_NOT_ASKED: gettext_lazy(
        "the acquirer did not approve them, so no answer about address and security code is kept; the code itself "
        "never is"
    ),
}


@admin.register(RiskTrial)
class RiskTrialAdmin(ReadOnlyPage):
    channel_path = None
    nothing = gettext_lazy(
        "A trial tells what a rule set would have done to past payments. Begin one on the page of a rule set or a list."
    )
    list_display = ("asked_at", "set_key", "merchant", "period", "asked_by", "state")
    list_display_links = ("asked_at", "set_key")
    list_select_related = ("merchant", "work")
    list_filter = ("merchant",)
    search_fields = ("set_key",)

    @display(description=gettext_lazy("period (UTC)"))
    def period(self, row: RiskTrial) -> str:
        return f"{row.since:%Y-%m-%d} – {format_last_trial_day(row)}"

    @display(description=gettext_lazy("state"))
    def state(self, row: RiskTrial) -> str:
        return str(describe_trial_state(row)["text"])

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: RiskTrial = self.find_viewed_row(request, object_id)
        chosen = request.GET.get("show", "")
        found, more = self._list_payments(request, row, chosen)
        mine = row.work is not None and row.work.owner_id == request.user.pk
        context = {
            **self.admin_site.each_context(request),
            "title": _("Trial of %s") % row.set_key,
            "opts": self.opts,
            "original": row,
            "trial": row,
            "last_day": format_last_trial_day(row),
            "pill": describe_trial_state(row),
            "work": row.work,
            "mine": mine,
            "ended": row.work is None or row.work.state not in queue.OPEN_WORK_STATES,
            "share": queue.compute_percent_done(row.work) if row.work is not None else None,
            "summary": render_changed_outcomes(row),
            "rules": render_rule_figures(row),
            "thresholds": render_thresholds(row),
            "rule_set": find_rule_set_url(request, row),
            "chosen": _describe_group(row, chosen),
            "rows": found,
            "next": f"?{more}#payments" if more else "",
            "document": format_masked_json(row.document),
            "lists": [f"{name} ({len(one['entries'])})" for name, one in row.lists.items()],
            "sees_payments": permissions.has_permission(request.user, "gateway.view_payment", row.merchant),
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/trial.html", context)

    def _list_payments(self, request: HttpRequest, row: RiskTrial, chosen: str) -> tuple[list[dict[str, Any]], str]:
        """The payments of the selected group, newest first, and the address of the next page."""
        rows = _select_group(row, chosen)
        after = identifiers.parse_id(request.GET.get("after", "").replace("-", ""))
        if after is not None and (last := row.payments.filter(payment=after).first()) is not None:
            rows = rows.filter(at__lte=last.at).exclude(at=last.at, payment__gte=after)
        found = list(rows.order_by("-at", "-payment")[: TRIAL_PAGE_ROWS + 1])
        orders = dict(
            Payment.objects.filter(pk__in=[one.payment for one in found], merchant=row.merchant_id).values_list(
                "pk", "merchant_transaction_id"
            )
        )
        names = [rule["name"] for rule in row.figures.get("rules", ())]
        listed = [
            {
                "row": one,
                "address": build_payment_page_url(one.payment),
                "order": mask_text(orders.get(one.payment, "")),
                "money": format_money(one.amount, one.currency),
                "was": {
                    "tone": TRIAL_OUTCOME_TONES[one.original_outcome],
                    "text": TRIAL_OUTCOME_TITLES[one.original_outcome],
                },
                "state": build_state_pill(one.status),
                "would": {
                    "tone": TRIAL_OUTCOME_TONES[one.trial_outcome],
                    "text": TRIAL_OUTCOME_TITLES[one.trial_outcome],
                },
                "rules": ", ".join(_format_rule_name(place, names) for place in one.matching_rules),
            }
            for one in found[:TRIAL_PAGE_ROWS]
        ]
        more = {"show": chosen, "after": found[TRIAL_PAGE_ROWS - 1].payment.hex} if len(found) > TRIAL_PAGE_ROWS else {}
        return listed, urlencode(more)


def format_last_trial_day(row: RiskTrial) -> str:
    """The last day that a trial covers, YYYY-MM-DD."""
    return f"{row.until - timedelta(days=1):%Y-%m-%d}"


def describe_trial_state(row: RiskTrial) -> dict[str, Any]:
    """A trial's state: tone and text of its pill."""
    if row.finished_at is not None:
        return {"tone": "good", "text": _("Done")}
    if row.work is None or row.work.state == BackgroundWork.State.FAILED:
        return {"tone": "bad", "text": _("Failed")}
    return build_state_pill(row.work.state)


def _format_rule_name(place: int, names: list[str]) -> str:
    return (
        _("address and security code check")
        if place == AVS_CVV_CHECK_PLACE
        else names[place]
        if place < len(names)
        else "?"
    )


def _format_sums(sums: Mapping[str, str]) -> str:
    return ", ".join(format_money(Decimal(total), currency) for currency, total in sums.items())


def find_rule_set_url(request: HttpRequest, row: RiskTrial) -> str:
    """The address of the set that was tried, '' if it was not saved or the user does not see it."""
    found = RiskSet.objects.filter(merchant=row.merchant_id, key=row.set_key).first()
    if found is None or not permissions.has_permission(request.user, "gateway.view_riskset", row.merchant):
        return ""
    return reverse("admin:gateway_riskset_change", args=[found.pk])


def render_changed_outcomes(row: RiskTrial) -> list[dict[str, Any]]:
    """Table of changed decisions."""
    return [
        {
            **one,
            "was_words": TRIAL_OUTCOME_TITLES[one["was"]],
            "would_words": TRIAL_OUTCOME_TITLES[one["would"]],
            "tone": TRIAL_OUTCOME_TONES[one["would"]],
            "was_tone": TRIAL_OUTCOME_TONES[one["was"]],
            "money": _format_sums(one["sums"]),
            "approved_money": _format_sums(one["approvedSums"]),
            "address": f"?{urlencode({'show': one['was'] + '-' + one['would']})}#payments",
        }
        for one in row.figures.get("changes", ())
    ]


def render_rule_figures(row: RiskTrial) -> list[dict[str, Any]]:
    """Table of the figures by rule."""
    written = row.document.get("rules", [])
    names = [rule["name"] for rule in row.figures.get("rules", ())]
    return [
        {
            **one,
            "words": _format_rule_name(one["place"], names),
            "sentence": describe_rule(written[one["place"]]) if 0 <= one["place"] < len(written) else "",
            "money": _format_sums(one["sums"]),
            "address": f"?{urlencode({'show': 'rule' + str(one['place'])})}#payments",
            "blind": [
                ngettext(
                    "cannot be judged on %(count)d payment, because %(why)s",
                    "cannot be judged on %(count)d payments, because %(why)s",
                    count,
                )
                % {"count": count, "why": UNJUDGED_REASON_TITLES[why]}
                for why, count in one["undecided_rules"]
            ],
            "blind_address": f"?{urlencode({'show': 'blind' + str(one['place'])})}#payments",
        }
        for one in row.figures.get("rules", ())
    ]


def _parse_place(chosen: str, prefix: str) -> int | None:
    text = chosen.removeprefix(prefix) if chosen.startswith(prefix) else ""
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 5 else None


def _select_group(row: RiskTrial, chosen: str) -> QuerySet[RiskTrialPayment]:
    """Payments of a change (``accept-decline``), of a rule (``rule3``), or that a rule cannot judge (``blind3``);
    otherwise all whose decision would change."""
    rows = RiskTrialPayment.objects.filter(trial=row)
    was, dash, would = chosen.partition("-")
    if (place := _parse_place(chosen, "rule")) is not None:
        return rows.filter(matching_rules__contains=place)
    if (place := _parse_place(chosen, "blind")) is not None:
        where = Q(pk__in=[])
        for why in UNJUDGED_REASON_TITLES:
            where |= Q(undecided_rules__contains=[[place, why]])
        return rows.filter(where)
    if dash and was in TRIAL_OUTCOME_TITLES and would in TRIAL_OUTCOME_TITLES:
        return rows.filter(original_outcome=was, trial_outcome=would)
    return rows.exclude(original_outcome=F("trial_outcome"))


def _describe_group(row: RiskTrial, chosen: str) -> str:
    """Title above the list: which payments these are."""
    names = [rule["name"] for rule in row.figures.get("rules", ())]
    was, dash, would = chosen.partition("-")
    if (place := _parse_place(chosen, "rule")) is not None:
        return _("Payments for which this rule holds: %s") % _format_rule_name(place, names)
    if (place := _parse_place(chosen, "blind")) is not None:
        return _("Payments on which this rule cannot be judged: %s") % _format_rule_name(place, names)
    if dash and was in TRIAL_OUTCOME_TITLES and would in TRIAL_OUTCOME_TITLES:
        return _("%(was)s then, %(would)s now") % {
            "was": TRIAL_OUTCOME_TITLES[was],
            "would": TRIAL_OUTCOME_TITLES[would],
        }
    return _("Payments that would have been decided differently")
