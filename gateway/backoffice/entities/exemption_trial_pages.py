"""Pages that try exemption rules on past payments of a channel, before they count."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import permissions
from gateway.backoffice.entities import exemption_trial
from gateway.backoffice.entities.exemption_fields import ExemptionsWidget
from gateway.backoffice.kit import composite_field, config_backed_form
from gateway.backoffice.kit.channel_trial import ChannelTrial, ChannelTrialForm
from gateway.backoffice.operations.background_work_pages import may_fetch_file
from gateway.backoffice.payments.exemption_words import EXEMPTION_NAMES
from gateway.models import BackgroundWork
from gateway.threeds.exemption_rules import parse_exemption_rules


class ExemptionTrialForm(ChannelTrialForm):
    """The channel, the days, and the rules to try: those of the channel, or others."""

    exemptions = composite_field.CompositeField(ExemptionsWidget(), label=gettext_lazy("Exemptions"))

    def clean(self) -> dict[str, Any]:
        found = super().clean()
        document = found.get("exemptions") or {}
        faults = config_backed_form.validate_section(None, "exemptions", document)
        composite_field.add_input_errors(self, "exemptions", faults)
        if not faults and parse_exemption_rules(document) is None:
            self.add_error("exemptions", _("Choose one exemption at least."))
        return found

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"exemptions": self.cleaned_data["exemptions"]}


class ExemptionTrial(ChannelTrial):
    kind = exemption_trial.EXEMPTION_TRIAL
    form = ExemptionTrialForm
    name = "exemptions"
    try_page, tried_page = "gateway_channel_exemptions_try", "gateway_channel_exemptions_tried"
    title = gettext_lazy("Try exemptions on past payments")
    work_title = gettext_lazy("Exemptions of past payments: %s")

    def list_initial_values(self, request: HttpRequest, channel: str) -> dict[str, Any]:
        """The channel's rules: they are configuration, so who sees payments alone types others."""
        try:
            ident = UUID(channel)
        except ValueError:
            return {}
        found = permissions.list_permitted_channels(request.user).filter(pk=ident).first()
        return {"exemptions": found.exemptions} if found is not None else {}

    def describe_result(self, request: HttpRequest, row: BackgroundWork) -> dict[str, Any]:
        found = exemption_trial.summarize_exemptions(row.cursor)
        return {
            "cursor": row.cursor,
            "may_export": may_fetch_file(request, row),
            "challenges": sum(each["challenges"] for each in found),
            "sums": [each | {"name": EXEMPTION_NAMES[each["exemption"]]} for each in found],
            "most": exemption_trial.MAX_EXEMPTION_TRIAL_PAYMENTS,
        }
