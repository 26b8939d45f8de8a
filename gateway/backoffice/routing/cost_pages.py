"""Costs of acquirer accounts: entered with the day from which they hold, and kept as a history.

A price that holds already is not changed any more: a new row with a later day ends it. Source: docs/routing.md, "By
cost and approval rate".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from django import forms
from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.decorators import display

from gateway.backoffice.kit.base import MerchantPage
from gateway.connectors.account_choice import EEA, OUTSIDE_EEA
from gateway.core import clock
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.money import CURRENCY_CODES
from gateway.models import AcquirerCost

MAX_COST_PERCENT: Final = Decimal(30)
MAX_FIXED_COST: Final = Decimal(1000)
_WALLET_METHOD: Final = "WA"
_CODES: Final = ("brand", "region", "level", "currency")
_PERCENTS: Final = ("percent", "interchange_percent", "scheme_percent")
_FIXED: Final = ("fixed", "interchange_fixed", "scheme_fixed")
_PASSED_ON: Final = ("interchange_percent", "interchange_fixed", "scheme_percent", "scheme_fixed")


class AcquirerCostForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    class Meta:
        model = AcquirerCost
        fields = ("account", "valid_from", "pricing", *_CODES, *_PERCENTS, *_FIXED)
        help_texts = {
            "valid_from": gettext_lazy("From 00:00 UTC of this day, until a later row with the same conditions."),
            "brand": gettext_lazy("A code such as VISA; empty: every brand without a price of its own."),
            "region": gettext_lazy(
                "Of the card's issuer: a country such as DE, EEA or NON-EEA; empty: everywhere, and unknown ones."
            ),
            "level": gettext_lazy("Of the card: CREDIT, DEBIT, PREPAID, or a level such as GOLD; empty: every one."),
            "currency": gettext_lazy("Of the payment, and of the fixed parts; empty: every currency, no fixed part."),
            "percent": gettext_lazy("Of the amount. Blended: all of it; interchange-plus: the acquirer's margin."),
            "fixed": gettext_lazy("For each payment, to four digits, e.g. 0.0850."),
        }

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        for name in _CODES:
            found[name] = str(found.get(name) or "").strip().upper()
        if found["brand"] and found["brand"] not in PAYMENT_BRANDS:
            self.add_error("brand", _("This is no brand. Give a code such as VISA, or nothing."))
        elif found["brand"] and PAYMENT_BRANDS[found["brand"]].method == _WALLET_METHOD:
            self.add_error("brand", _("A wallet's payments have the price of their card's brand. Give that one."))
        if found["region"] not in ("", EEA, OUTSIDE_EEA) and not re.fullmatch("[A-Z]{2}", found["region"]):
            self.add_error("region", _("Give a country of two letters, EEA, NON-EEA, or nothing."))
        if found["level"] and not re.fullmatch("[A-Z ]{2,16}", found["level"]):
            self.add_error("level", _("Give letters, such as DEBIT or GOLD, or nothing."))
        if found["currency"] and found["currency"] not in CURRENCY_CODES:
            self.add_error("currency", _("Give a currency of ISO 4217, such as EUR, or nothing."))
        for name in (*_PERCENTS, *_FIXED):
            most = MAX_COST_PERCENT if name in _PERCENTS else MAX_FIXED_COST
            value = found.get(name)
            if value is not None and not 0 <= value <= most:
                self.add_error(name, _("Give a number from 0 to %s.") % most)
        if found.get("currency") == "" and any(found.get(name) for name in _FIXED):
            self.add_error("currency", _("A fixed part needs the currency that it is in."))
        passed_on = any(found.get(name) for name in _PASSED_ON)
        if found.get("pricing") == AcquirerCost.Pricing.BLENDED and passed_on:
            self.add_error("pricing", _("A blended price has no interchange and no scheme fees of its own."))
        if found.get("pricing") == AcquirerCost.Pricing.INTERCHANGE_PLUS and not passed_on:
            self.add_error("pricing", _("Interchange-plus needs the interchange or the scheme fees."))
        self._check_first_day(found)
        return found

    def _check_first_day(self, found: Mapping[str, Any]) -> None:
        """Days that are over keep their price: only the first price of its conditions may begin in the past."""
        if self.errors or found["valid_from"] >= clock.real_now().date():
            return
        account, since = found["account"], found["valid_from"]
        alike = {name: found[name] for name in _CODES}
        if not self.instance._state.adding:
            self.add_error("valid_from", _("A price cannot be moved to a day that is over."))
        elif AcquirerCost.objects.filter(account=account, **alike).exclude(valid_from=since).exists():
            self.add_error("valid_from", _("There is a price for these conditions already: give today or a later day."))


@admin.register(AcquirerCost)
class AcquirerCostAdmin(MerchantPage):
    merchant_path, channel_path = "account__channel__merchant", "account__channel"
    form = AcquirerCostForm
    nothing = gettext_lazy("Without costs no routing rule can choose the cheapest account.")
    list_display = ("account", "applies_to", "pricing", "in_percent", "in_money", "valid_from", "validity")
    list_select_related = ("account",)
    list_filter = ("account", "pricing")
    search_fields = ("account__name", "account__acquirer_merchant_id", "brand")
    ordering = ("account", "brand", "region", "level", "currency", "-valid_from")
    fieldsets = (
        (None, {"fields": ("account", "valid_from", "pricing")}),
        (gettext_lazy("For: an empty condition always holds, the narrowest price counts"), {"fields": _CODES}),
        (gettext_lazy("Price"), {"fields": ("percent", "fixed")}),
        (gettext_lazy("Interchange-plus: what is passed on besides"), {"fields": _PASSED_ON}),
    )

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A price of a day that is over stays as it is."""
        may: bool = super().has_change_permission(request, obj)
        return may and (obj is None or obj.valid_from >= clock.real_now().date())

    @display(description=gettext_lazy("for"))
    def applies_to(self, row: AcquirerCost) -> str:
        return " · ".join(one for one in (row.brand, row.region, row.level, row.currency) if one) or _("every payment")

    @display(description=gettext_lazy("percent"))
    def in_percent(self, row: AcquirerCost) -> Decimal:
        return row.percent + row.interchange_percent + row.scheme_percent

    @display(description=gettext_lazy("fixed"))
    def in_money(self, row: AcquirerCost) -> str:
        fixed = row.fixed + row.interchange_fixed + row.scheme_fixed
        return f"{fixed} {row.currency}" if fixed else "–"

    @display(description=gettext_lazy("holds"))
    def validity(self, row: Any) -> str:
        if row.valid_from > clock.real_now().date():
            return _("not yet")
        return _("replaced") if row.is_replaced else _("now")

    def get_queryset(self, request: HttpRequest) -> Any:
        alike = {name: OuterRef(name) for name in ("account", *_CODES)}
        later = AcquirerCost.objects.filter(
            **alike, valid_from__gt=OuterRef("valid_from"), valid_from__lte=clock.real_now().date()
        )
        return super().get_queryset(request).annotate(is_replaced=Exists(later))
