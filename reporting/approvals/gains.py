"""What would bring most: for each way in which money is lost, how much, what speaks for it, and the switch that helps.

Nothing is promised beyond what was counted: an expected gain is money lost times the lower and upper ends of the rate
that comparable payments of the same period had. Where nothing is comparable, only the money at stake is shown.
"""

# ruff: noqa: S608 - statements are put together out of this package's own constants; values are always bound

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from gateway.backoffice.kit.formatting import format_number
from gateway.core.intervals import ShareInterval, compute_difference, compute_share
from gateway.core.money import currency_exponent
from reporting.approvals.figures import ASKED_SQL, ApprovalPeriod, SegmentFigures, get_chosen_sql, read_chosen
from reporting.approvals.second_acquirers import CascadeFigures, compute_chances
from reporting.approvals.waterfall import Waterfall

MIN_COMPARED_ATTEMPTS: Final = 50
"""Attempts on each side below which nothing is compared."""
MAX_SHOWN_GAINS: Final = 8
_ACCOUNTS: Final = f"""
WITH {get_chosen_sql()}
SELECT brand, concat_ws(' ', connector, nullif(acquirer_merchant_id, '')), currency, count(*),
    count(*) FILTER (WHERE approved), coalesce(sum(amount) FILTER (WHERE NOT approved), 0), sum(amount)
FROM chosen WHERE {ASKED_SQL} GROUP BY 1, 2, 3
"""
_CHARGES: Final = f"""
WITH {get_chosen_sql()}
SELECT currency, to_char(created_at AT TIME ZONE %(zone)s, 'HH24'), count(*), count(*) FILTER (WHERE approved),
    coalesce(sum(amount) FILTER (WHERE NOT approved), 0)
FROM chosen WHERE {ASKED_SQL} AND request -> 'standingInstruction' ->> 'source' = 'MIT' GROUP BY 1, 2
"""
_OTHER_HOURS: Final = f"""
WITH {get_chosen_sql()}
SELECT currency, to_char(created_at AT TIME ZONE %(zone)s, 'HH24'), count(*), count(*) FILTER (WHERE approved)
FROM chosen WHERE {ASKED_SQL} AND result_code <> '300.100.100' GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """``money``: lost in the period; ``low``, ``high``: how much of it the switch may bring, None where nothing
    comparable was counted. ``evidence``: in words; ``link``, ``switch``: the page that changes it."""

    title: str
    currency: str
    money: Decimal
    low: Decimal | None
    high: Decimal | None
    evidence: str
    link: str
    switch: str


def list_gains(
    period: ApprovalPeriod,
    waterfall: Waterfall,
    paths: Sequence[SegmentFigures],
    cascades: Sequence[CascadeFigures] = (),
) -> list[Gain]:
    """The gains of one currency, those that surely bring most first. ``paths``: the breakdown by 3-D Secure;
    ``cascades``: what second acquirers did."""
    found = [
        *_from_losses(waterfall, paths),
        *_from_accounts(period, waterfall.currency),
        *_from_hours(period, waterfall.currency),
        *_from_second_acquirers(period, waterfall.currency, cascades),
    ]
    found.sort(key=lambda one: (-(one.low or 0), -one.money))
    return found[:MAX_SHOWN_GAINS]


def _from_losses(waterfall: Waterfall, paths: Sequence[SegmentFigures]) -> Iterator[Gain]:
    """Steps of the waterfall that a switch is known for."""
    lost = {row.reason: row for row in waterfall.rows if row.lost}
    proven = _sum_rate(paths, ("frictionless", "challenge"))
    threeds = reverse("admin:gateway_threedsecureconfiguration_changelist")
    switches: dict[str, tuple[str, str, str, ShareInterval | None]] = {
        "soft": (_("Ask for a challenge after a soft decline"), threeds, _("3-D Secure"), proven),
        "authentication": (
            _("Fewer challenges: exemptions and the challenge indicator"),
            reverse("admin:gateway_channel_exemptions_try"),
            _("Try exemptions on past payments"),
            None,
        ),
        "left": (
            _("Offer other brands, or send a payment link"),
            reverse("admin:checkout_offerrule_changelist"),
            _("Offer rules"),
            None,
        ),
        "refused": (
            _("Try your risk rules on past payments"),
            reverse("admin:gateway_risktrial_changelist"),
            _("Trials"),
            None,
        ),
        "card": (
            _("Bring stored cards up to date"),
            reverse("admin:gateway_registration_changelist"),
            _("Registrations"),
            None,
        ),
        "uncaptured": (
            _("Capture before authorizations end"),
            reverse("admin:gateway_payment_changelist") + "?state=authorized",
            _("Payments"),
            None,
        ),
    }
    for reason, (title, link, switch, rate) in switches.items():
        if (row := lost.get(reason)) is None:
            continue
        evidence = ngettext("%(count)s purchase: %(reason)s.", "%(count)s purchases: %(reason)s.", row.count) % {
            "count": format_number(row.count),
            "reason": row.name,
        }
        if rate is not None:
            evidence += " " + _("With a proof of 3-D Secure %(low)s to %(high)s %% were approved.") % _word_ends(rate)
        yield _build(title, waterfall.currency, row.money, rate, evidence, link, switch)


def _word_ends(rate: ShareInterval) -> dict[str, str]:
    """The ends of an interval in the reader's language, as ``low`` and ``high`` of a text."""
    return {"low": floatformat(rate.low, 1), "high": floatformat(rate.high, 1)}


def _sum_rate(paths: Sequence[SegmentFigures], names: Sequence[str]) -> ShareInterval | None:
    """The rate of several segments' attempts; None of too few."""
    own = [one for one in paths if one.name in names]
    attempts = sum(one.attempts for one in own)
    return compute_share(sum(one.approved for one in own), attempts) if attempts >= MIN_COMPARED_ATTEMPTS else None


def _from_accounts(period: ApprovalPeriod, currency: str) -> Iterator[Gain]:
    """Accounts at which a brand is approved less often than at another, and not by chance."""
    by_brand: dict[str, list[tuple[str, int, int, Decimal, Decimal]]] = {}
    for brand, account, its_currency, attempts, approved, lost, asked in read_chosen(_ACCOUNTS, period.values()):
        if its_currency == currency and attempts >= MIN_COMPARED_ATTEMPTS:
            by_brand.setdefault(brand, []).append((account, attempts, approved, lost, asked))
    for brand, accounts in by_brand.items():
        for worse in accounts:
            better = [
                (difference.low, account, difference)
                for account, attempts, approved, _lost, _asked in accounts
                if account != worse[0]
                and (difference := compute_difference((approved, attempts), (worse[2], worse[1]))) is not None
                and difference.low > 0
            ]
            if better:
                _low, account, difference = max(better, key=lambda one: one[0])
                words = {"brand": brand, "worse": worse[0], "better": account}
                yield _build(
                    _("Route %(brand)s from %(worse)s to %(better)s") % words,
                    currency,
                    worse[3],
                    difference,
                    _("%(low)s to %(high)s points more of %(brand)s are approved at %(better)s.")
                    % (words | _word_ends(difference)),
                    reverse("admin:gateway_routingrule_changelist"),
                    _("Routing rules"),
                    of=worse[4],
                )


def _from_hours(period: ApprovalPeriod, currency: str) -> Iterator[Gain]:
    """Hours at which the merchant's own charges are approved less often than payments at the best other hour."""
    values = period.values()
    hours = [
        (hour, attempts, approved)
        for own, hour, attempts, approved in read_chosen(_OTHER_HOURS, values)
        if own == currency and attempts >= MIN_COMPARED_ATTEMPTS
    ]
    for own, hour, attempts, approved, money in read_chosen(_CHARGES, values):
        if own != currency or attempts < MIN_COMPARED_ATTEMPTS:
            continue
        better = [
            (difference.low, other, difference)
            for other, count, good in hours
            if other != hour
            and (difference := compute_difference((good, count), (approved, attempts))) is not None
            and difference.low > 0
        ]
        if not better:
            continue
        _low, best, difference = max(better, key=lambda one: one[0])
        asked = money * attempts / (attempts - approved)
        yield _build(
            _("Charge stored cards at %(best)s instead of %(hour)s o'clock") % {"best": best, "hour": hour},
            currency,
            money,
            difference,
            _("%(low)s to %(high)s points more are approved at that hour.") % _word_ends(difference),
            reverse("admin:scheduling_job_changelist"),
            _("Schedules"),
            of=asked,
        )


def _from_second_acquirers(period: ApprovalPeriod, currency: str, cascades: Sequence[CascadeFigures]) -> Iterator[Gain]:
    """Declines that another acquirer may have been approved after; compared with those that were sent to one."""
    chance = next((one for one in compute_chances(period) if one.currency == currency), None)
    if chance is None:
        return
    made = next((one for one in cascades if one.currency == currency), None)
    rate = made.rate if made is not None and made.payments >= MIN_COMPARED_ATTEMPTS else None
    evidence = ngettext(
        "%(count)s payment was declined so that another account of its route may be approved.",
        "%(count)s payments were declined so that another account of their route may be approved.",
        chance.payments,
    ) % {"count": format_number(chance.payments)}
    if rate is not None:
        evidence += " " + _("Of those sent to one, %(low)s to %(high)s %% were approved.") % _word_ends(rate)
    yield _build(
        _("Ask a second acquirer after a decline"),
        currency,
        chance.money,
        rate,
        evidence,
        reverse("admin:gateway_routingrule_changelist"),
        _("Routing rules"),
    )


def _build(
    title: str,
    currency: str,
    money: Decimal,
    rate: ShareInterval | None,
    evidence: str,
    link: str,
    switch: str,
    *,
    of: Decimal | None = None,
) -> Gain:
    """``rate``: percent of ``of``, else of ``money``, that may be gained; never more than ``money``."""

    def part(percent: float) -> Decimal:
        unit = Decimal(1).scaleb(-currency_exponent(currency))
        gained = (of if of is not None else money) * Decimal(str(round(percent, 6))) / 100
        return min(money, max(Decimal(0), gained)).quantize(unit)

    return Gain(
        title=title,
        currency=currency,
        money=money,
        low=part(rate.low) if rate is not None else None,
        high=part(rate.high) if rate is not None else None,
        evidence=evidence,
        link=link,
        switch=switch,
    )
