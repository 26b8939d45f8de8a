"""What would bring most: for each way in which money is lost, how much, what speaks for it, and the switch that helps.

Nothing is promised beyond what was counted: an expected gain is money lost times the lower and upper ends of the rate
that comparable payments of the same period had. Where nothing is comparable, only the money at stake is shown. What is
lost at a channel whose switch is on already is no gain.
"""

# ruff: noqa: S608 - statements are put together out of this package's own constants; values are always bound

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.template.defaultfilters import floatformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from gateway.backoffice.kit.formatting import format_number
from gateway.backoffice.operations.dashboard import SCOPE_CONDITION
from gateway.core.intervals import ShareInterval, compute_difference, compute_share
from gateway.core.money import currency_exponent
from gateway.db.statement import read_sql
from gateway.models import Channel
from reporting.approvals.figures import (
    ApprovalPeriod,
    SegmentFigures,
    compute_figures,
    get_chosen_sql,
    get_tried_sql,
    read_chosen,
)
from reporting.approvals.second_acquirers import CascadeFigures, compute_cascades, compute_chances
from reporting.approvals.waterfall import CARD_SQL, FUNDS_SQL, LOST_REASONS, SOFT_SQL, Waterfall, compute_waterfalls

MIN_COMPARED_ATTEMPTS: Final = 50
"""Attempts on each side below which nothing is compared."""
MAX_SHOWN_GAINS: Final = 8
"""Of one currency."""
MAX_GAIN_CURRENCIES: Final = 4
"""Those with the most purchases."""
_BY_MERCHANT: Final = """coalesce(request -> 'standingInstruction' ->> 'source',
    CASE request -> 'standingInstruction' ->> 'mode' WHEN 'REPEATED' THEN 'MIT' END, '') = 'MIT'"""
_BY_SHOPPER: Final = f"NOT {_BY_MERCHANT} AND coalesce(request ->> 'transactionCategory', '') NOT IN ('MO', 'TO')"
"""Somebody is there who can be challenged."""

# Rates are of attempts. Money is of purchases, lost where the attempt that decides was declined.
_LOST_MONEY: Final = "coalesce(sum(amount) FILTER (WHERE decides AND NOT approved), 0)"
_ASKED_MONEY: Final = "coalesce(sum(amount) FILTER (WHERE decides), 0)"
_ACCOUNTS: Final = f"""
{get_tried_sql()}
SELECT brand, concat_ws(' ', connector, nullif(acquirer_merchant_id, '')), currency, count(*),
    count(*) FILTER (WHERE approved), {_LOST_MONEY}, {_ASKED_MONEY}
FROM tried WHERE asked GROUP BY 1, 2, 3
"""
_CHARGES: Final = f"""
{get_tried_sql()}
SELECT currency, to_char(created_at AT TIME ZONE %(zone)s, 'HH24'), count(*), count(*) FILTER (WHERE approved),
    {_LOST_MONEY}, {_ASKED_MONEY}
FROM tried WHERE asked AND {_BY_MERCHANT} GROUP BY 1, 2
"""
_OTHER_HOURS: Final = f"""
WITH {get_chosen_sql()}
SELECT currency, to_char(created_at AT TIME ZONE %(zone)s, 'HH24'), count(*), count(*) FILTER (WHERE approved)
FROM chosen WHERE asked AND result_code <> '300.100.100' GROUP BY 1, 2
"""
_STORED_CARD: Final = {"channel_id": "p.channel_id", "registration": "p.registration"}
_CAUSES: Final = {
    # The account that was not reached stands among those that were tried.
    "has_no_other_account": """p.route ? 'tried' AND NOT p.route ? 'next' AND NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements(p.route -> 'tried') AS way
        WHERE (way ->> 'connector', way ->> 'account') <> (p.connector, p.acquirer_merchant_id))""",
    "scheduled": "p.answer -> 'facts' ? 'schedule'",
}
_TOKEN: Final = {"with_token": "p.answer ->> 'networkToken' IS NOT DISTINCT FROM 'USED'"}
# Declined purchases at channels whose switch is off, by their last attempt. The order of the cases is that of causes: a
# card that is no longer good is not declined for another reason.
_SWITCHED_OFF: Final = f"""
{get_tried_sql(_STORED_CARD | _CAUSES)}, deciding AS (
    SELECT t.*, {_BY_MERCHANT} AS by_merchant, {_BY_SHOPPER} AS by_shopper FROM tried t WHERE decides
)
SELECT CASE WHEN result_code LIKE '900.%%' THEN CASE WHEN has_no_other_account THEN 'failover' END
        WHEN {SOFT_SQL} THEN CASE WHEN by_shopper AND coalesce(s.on_soft_decline, 'decline') = 'decline'
            THEN 'soft' END
        WHEN means <> 'card' THEN NULL
        WHEN {CARD_SQL} THEN CASE WHEN by_merchant AND registration IS NOT NULL AND NOT h.account_updater
            THEN 'updater' END
        WHEN by_merchant THEN CASE WHEN scheduled AND h.retry_timing = 'table' THEN 'retries' END
        WHEN {FUNDS_SQL} AND by_shopper AND h.partial_approvals IN ('accept', 'decline') THEN 'part' END AS way,
    currency, d.channel_id, count(*), sum(amount)
FROM deciding d JOIN gateway_channel h ON h.id = d.channel_id
LEFT JOIN gateway_threedsecureconfiguration s ON s.channel_id = d.channel_id
WHERE d.status = 'DECLINED' AND d.connector NOT IN ('', 'nobody') GROUP BY 1, 2, 3
"""
# A payment that stores its card has a registration, too, and no token yet.
_STORED: Final = f"""
{get_tried_sql(_STORED_CARD | _TOKEN)}
SELECT currency, d.channel_id, with_token, h.network_tokens, count(*), count(*) FILTER (WHERE approved),
    {_LOST_MONEY}, {_ASKED_MONEY}, count(*) FILTER (WHERE decides AND NOT approved)
FROM tried d JOIN gateway_channel h ON h.id = d.channel_id
WHERE asked AND means = 'card' AND registration IS NOT NULL
    AND request ->> 'createRegistration' IS DISTINCT FROM 'true' GROUP BY 1, 2, 3, 4
"""
_UPDATED: Final = f"""
SELECT count(DISTINCT u.registration_id) FILTER (WHERE u.status IN ('NEW_NUMBER', 'NEW_EXPIRY')),
    count(DISTINCT u.registration_id)
FROM gateway_accountupdate u JOIN gateway_registration r ON r.id = u.registration_id
WHERE u.asked_at >= %(since)s AND u.asked_at < %(until)s
    AND u.status IN ('NEW_NUMBER', 'NEW_EXPIRY', 'CLOSED', 'CONTACT_HOLDER') AND {SCOPE_CONDITION.format(table="r")}
"""
_CARD_REASON: Final = gettext_noop("own charges, declined since the stored card is closed, expired or wrong")
_RETRIES_REASON: Final = gettext_noop("charges of schedules, declined although they were tried again by the table")
_ALONE_REASON: Final = gettext_noop("the acquirer was not reached, and there was no other account")


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAtChannels:
    """Declined purchases that one switch may have saved, at the channels where it is off. ``channel``: the one that
    lost most; ``channels``: how many there are."""

    count: int = 0
    money: Decimal = Decimal(0)
    channel: UUID | None = None
    channels: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """``way``: its name in the API (docs/approval.md#gains). ``money``: lost in the period; ``low``, ``high``: how much
    of it the switch may bring, None where nothing comparable was counted. ``evidence``: in words; ``link``, ``switch``:
    the page that changes it."""

    way: str
    title: str
    currency: str
    money: Decimal
    low: Decimal | None
    high: Decimal | None
    evidence: str
    link: str
    switch: str


def read_gains(period: ApprovalPeriod) -> list[Gain]:
    """The gains of a period, with all that they are counted from."""
    waterfalls = compute_waterfalls(period)
    if not waterfalls:
        return []
    return list_gains(period, waterfalls, compute_figures(period, "threeDSecure"), compute_cascades(period))


def list_gains(
    period: ApprovalPeriod,
    waterfalls: Sequence[Waterfall],
    paths: Sequence[SegmentFigures],
    cascades: Sequence[CascadeFigures] = (),
) -> list[Gain]:
    """The gains of each currency, those that surely bring most first; the currencies with the most purchases.
    ``paths``: the breakdown by 3-D Secure; ``cascades``: what second acquirers did."""
    largest = sorted(waterfalls, key=lambda one: (-one.rows[0].count, one.currency))[:MAX_GAIN_CURRENCIES]
    found = [
        *(gain for waterfall in largest for gain in _from_losses(waterfall)),
        *_from_switches(period, paths),
        *_from_network_tokens(period),
        *_from_accounts(period),
        *_from_hours(period),
        *_from_second_acquirers(period, cascades),
    ]
    shown: list[Gain] = []
    for waterfall in largest:
        own = [one for one in found if one.currency == waterfall.currency]
        shown += sorted(own, key=lambda one: (-(one.low or 0), -one.money))[:MAX_SHOWN_GAINS]
    return shown


def _from_losses(waterfall: Waterfall) -> Iterator[Gain]:
    """Steps of the waterfall that a switch is known for, before and after the acquirer."""
    lost = {row.step: row for row in waterfall.rows if row.lost}
    switches: dict[str, tuple[str, str, str]] = {
        "authentication": (
            _("Fewer challenges: exemptions and the challenge indicator"),
            reverse("admin:gateway_channel_exemptions_try"),
            _("Try exemptions on past payments"),
        ),
        "left": (
            _("Offer other brands, or send a payment link"),
            reverse("admin:checkout_offerrule_changelist"),
            _("Offer rules"),
        ),
        "refused": (
            _("Try your risk rules on past payments"),
            reverse("admin:gateway_risktrial_changelist"),
            _("Trials"),
        ),
        "uncaptured": (
            _("Capture before authorizations end"),
            reverse("admin:gateway_payment_changelist") + "?state=authorized",
            _("Payments"),
        ),
    }
    for reason, (title, link, switch) in switches.items():
        if (row := lost.get(reason)) is not None:
            evidence = _word_loss(row.count, row.name)
            yield _build(reason, title, waterfall.currency, row.money, None, evidence, link, switch)


def _word_loss(count: int, reason: str) -> str:
    words = ngettext("%(count)s purchase: %(reason)s.", "%(count)s purchases: %(reason)s.", count)
    return words % {"count": format_number(count), "reason": reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Switch:
    """A way against declines. ``reason``: why they were declined, in English; ``rate``: what comparable payments had,
    as ``measured`` says."""

    title: str
    reason: str
    link: str
    words: str
    rate: ShareInterval | None = None
    measured: str = ""


def _from_switches(period: ApprovalPeriod, paths: Sequence[SegmentFigures]) -> Iterator[Gain]:
    """What was declined at channels that have a way against it and do not use it."""
    lost = _read_switched_off(period)
    names = _name_channels(one.channel for one in lost.values())
    renewed = _read_updated_share(period) if any(way == "updater" for way, _currency in lost) else None
    for (way, currency), one in sorted(lost.items()):
        assert one.channel is not None  # something was lost there
        switch = _find_switch(way, one.channel, _name_switch(names.get(one.channel, ""), one.channels), paths, renewed)
        evidence = _word_loss(one.count, _(switch.reason))
        if switch.rate is not None:
            evidence += " " + switch.measured % _word_ends(switch.rate)
        yield _build(way, switch.title, currency, one.money, switch.rate, evidence, switch.link, switch.words)


def _find_switch(
    way: str, channel: UUID, its_name: str, paths: Sequence[SegmentFigures], renewed: ShareInterval | None
) -> _Switch:
    """The way against declines that ``_SWITCHED_OFF`` names, at the channel that lost most."""
    page = reverse("admin:gateway_channel_change", args=[channel])
    match way:
        case "soft":
            return _Switch(
                title=_("Ask for a challenge after a soft decline"),
                reason=LOST_REASONS["soft"],
                link=reverse("admin:gateway_threedsecureconfiguration_changelist"),
                words=_("3-D Secure"),
                rate=_sum_rate(paths, ("frictionless", "challenge")),
                measured=_("With a proof of 3-D Secure %(low)s to %(high)s %% were approved."),
            )
        case "updater":
            return _Switch(
                title=_("Ask the account updater before stored cards are charged"),
                reason=_CARD_REASON,
                link=page,
                words=its_name,
                rate=renewed,
                measured=_("Of the cards that the networks changed or closed, %(low)s to %(high)s %% were renewed."),
            )
        case "retries":
            return _Switch(
                title=_("Time the retries of subscriptions by outcomes"),
                reason=_RETRIES_REASON,
                link=reverse("admin:scheduling_job_retries_try", query={"channel": channel.hex}),
                words=_("Try the timing of retries on past charges"),
            )
        case "part":
            return _Switch(
                title=_("Take a part of the amount, and the rest with another card"),
                reason=LOST_REASONS["funds"],
                link=page,
                words=its_name,
            )
        case "failover":
            return _Switch(
                title=_("Give payments a second account for when the first is not reached"),
                reason=_ALONE_REASON,
                link=reverse("admin:gateway_routingrule_changelist"),
                words=_("Routing rules"),
            )
    raise AssertionError(way)


def _read_switched_off(period: ApprovalPeriod) -> dict[tuple[str, str], LostAtChannels]:
    """(Way against it, currency) → what was lost where it is switched off."""
    found: dict[tuple[str, str], LostAtChannels] = {}
    rows = [row for row in read_chosen(_SWITCHED_OFF, period.values()) if row[0] is not None]
    for way, currency, channel, count, money in sorted(rows, key=lambda row: (-row[4], row[2])):
        found[way, currency] = _add_channel(found.get((way, currency), LostAtChannels()), channel, count, money)
    return found


def _add_channel(so_far: LostAtChannels, channel: UUID, count: int, money: Decimal) -> LostAtChannels:
    """``so_far`` and one more channel, which lost no more than those before."""
    return LostAtChannels(
        count=so_far.count + count,
        money=so_far.money + money,
        channel=so_far.channel or channel,
        channels=so_far.channels + 1,
    )


def _name_channels(channels: Iterable[UUID | None]) -> dict[UUID, str]:
    return dict(Channel.objects.filter(pk__in={one for one in channels if one}).values_list("pk", "name"))


def _name_switch(name: str, channels: int) -> str:
    """The channel whose page has the switch, and whether there are more."""
    words = _("Channel %(name)s") if channels == 1 else _("Channel %(name)s and others")
    return words % {"name": name}


def _read_updated_share(period: ApprovalPeriod) -> ShareInterval | None:
    """The share of stored cards with a new number or date, among those that the account updater called changed or
    closed; None of fewer than MIN_COMPARED_ATTEMPTS cards."""
    ((renewed, answered),) = read_sql(_UPDATED, period.values())
    return compute_share(renewed, answered) if answered >= MIN_COMPARED_ATTEMPTS else None


def _from_network_tokens(period: ApprovalPeriod) -> Iterator[Gain]:
    """Payments with stored cards at channels without network tokens; compared with those that a token was sent for."""
    sent: dict[str, list[int]] = {}
    without: dict[str, list[int]] = {}
    off: dict[str, tuple[LostAtChannels, Decimal]] = {}
    rows = sorted(read_chosen(_STORED, period.values()), key=lambda row: (-row[6], row[1]))
    for currency, channel, with_token, is_on, attempts, approved, lost, asked, purchases in rows:
        counted = (sent if with_token else without).setdefault(currency, [0, 0])
        counted[0] += approved
        counted[1] += attempts
        if not is_on and not with_token and lost:
            so_far, asked_before = off.get(currency, (LostAtChannels(), Decimal(0)))
            off[currency] = (_add_channel(so_far, channel, purchases, lost), asked_before + asked)
    names = _name_channels(one.channel for one, _asked in off.values())
    for currency, (one, asked) in sorted(off.items()):
        assert one.channel is not None  # something was lost there
        tokens, numbers = sent.get(currency, [0, 0]), without[currency]
        enough = min(tokens[1], numbers[1]) >= MIN_COMPARED_ATTEMPTS
        difference = compute_difference((tokens[0], tokens[1]), (numbers[0], numbers[1])) if enough else None
        if difference is not None and difference.high <= 0:
            continue
        evidence = ngettext(
            "%(count)s payment with a stored card was declined where no token is used.",
            "%(count)s payments with a stored card were declined where no token is used.",
            one.count,
        ) % {"count": format_number(one.count)}
        if difference is not None:
            evidence += " " + _("With a token %(low)s to %(high)s points more were approved.") % _word_ends(difference)
        yield _build(
            "tokens",
            _("Pay with network tokens of stored cards"),
            currency,
            one.money,
            difference,
            evidence,
            reverse("admin:gateway_channel_change", args=[one.channel]),
            _name_switch(names.get(one.channel, ""), one.channels),
            of=asked,
        )


def _word_ends(rate: ShareInterval) -> dict[str, str]:
    """The ends of an interval in the reader's language, as ``low`` and ``high`` of a text."""
    return {"low": floatformat(rate.low, 1), "high": floatformat(rate.high, 1)}


def _sum_rate(paths: Sequence[SegmentFigures], names: Sequence[str]) -> ShareInterval | None:
    """The rate of several segments' attempts; None of too few."""
    own = [one for one in paths if one.name in names]
    attempts = sum(one.attempts for one in own)
    return compute_share(sum(one.approved for one in own), attempts) if attempts >= MIN_COMPARED_ATTEMPTS else None


def _from_accounts(period: ApprovalPeriod) -> Iterator[Gain]:
    """Accounts at which a brand is approved less often than at another, and not by chance."""
    by_brand: dict[tuple[str, str], list[tuple[str, int, int, Decimal, Decimal]]] = {}
    for brand, account, currency, attempts, approved, lost, asked in read_chosen(_ACCOUNTS, period.values()):
        if attempts >= MIN_COMPARED_ATTEMPTS:
            by_brand.setdefault((brand, currency), []).append((account, attempts, approved, lost, asked))
    for (brand, currency), accounts in by_brand.items():
        counts = {account: (approved, attempts) for account, attempts, approved, _lost, _asked in accounts}
        for worse, _attempts, _approved, lost, asked in accounts:
            found = _find_better(worse, counts)
            if found is None or not lost:
                continue
            better, difference = found
            words = {"brand": brand, "worse": worse, "better": better}
            yield _build(
                "account",
                _("Route %(brand)s from %(worse)s to %(better)s") % words,
                currency,
                lost,
                difference,
                _("%(low)s to %(high)s points more of %(brand)s are approved at %(better)s.")
                % (words | _word_ends(difference)),
                reverse("admin:gateway_routingrule_changelist"),
                _("Routing rules"),
                of=asked,
            )


def _from_hours(period: ApprovalPeriod) -> Iterator[Gain]:
    """Hours at which the merchant's own charges are approved less often than payments at the best other hour."""
    values = period.values()
    counts: dict[str, dict[str, tuple[int, int]]] = {}
    for currency, hour, attempts, approved in read_chosen(_OTHER_HOURS, values):
        if attempts >= MIN_COMPARED_ATTEMPTS:
            counts.setdefault(currency, {})[hour] = (approved, attempts)
    for currency, hour, attempts, approved, lost, asked in read_chosen(_CHARGES, values):
        own = counts.get(currency, {}) | {hour: (approved, attempts)}
        found = _find_better(hour, own) if attempts >= MIN_COMPARED_ATTEMPTS else None
        if found is None or not lost:
            continue
        best, difference = found
        yield _build(
            "hour",
            _("Charge stored cards at %(best)s instead of %(hour)s o'clock") % {"best": best, "hour": hour},
            currency,
            lost,
            difference,
            _("%(low)s to %(high)s points more are approved at that hour.") % _word_ends(difference),
            reverse("admin:scheduling_job_changelist"),
            _("Schedules"),
            of=asked,
        )


def _find_better(own: str, counts: Mapping[str, tuple[int, int]]) -> tuple[str, ShareInterval] | None:
    """The name that surely has the largest lead over ``own``, and its difference in points; None where none has one
    that is no chance. ``counts``: name → approved attempts, all attempts."""
    better = [
        (difference.low, name, difference)
        for name, count in counts.items()
        if (name != own and (difference := compute_difference(count, counts[own])) is not None and difference.low > 0)
    ]
    if not better:
        return None
    _low, name, difference = max(better, key=lambda one: one[0])
    return name, difference


def _from_second_acquirers(period: ApprovalPeriod, cascades: Sequence[CascadeFigures]) -> Iterator[Gain]:
    """Declines that another acquirer may have been approved after; compared with those that were sent to one."""
    for chance in compute_chances(period):
        made = next((one for one in cascades if one.currency == chance.currency), None)
        rate = made.rate if made is not None and made.payments >= MIN_COMPARED_ATTEMPTS else None
        evidence = ngettext(
            "%(count)s payment was declined so that another account of its route may be approved.",
            "%(count)s payments were declined so that another account of their route may be approved.",
            chance.payments,
        ) % {"count": format_number(chance.payments)}
        if rate is not None:
            evidence += " " + _("Of those sent to one, %(low)s to %(high)s %% were approved.") % _word_ends(rate)
        yield _build(
            "second",
            _("Ask a second acquirer after a decline"),
            chance.currency,
            chance.money,
            rate,
            evidence,
            reverse("admin:gateway_routingrule_changelist"),
            _("Routing rules"),
        )


def _build(
    way: str,
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
        way=way,
        title=title,
        currency=currency,
        money=money,
        low=part(rate.low) if rate is not None else None,
        high=part(rate.high) if rate is not None else None,
        evidence=evidence,
        link=link,
        switch=switch,
    )
