"""Pages that try retries timed by outcomes on past charges of a channel, before they are switched on."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.channel_trial import MAX_CHANNEL_TRIAL_DAYS, ChannelTrial, ChannelTrialForm
from gateway.backoffice.schedules import retry_trial
from gateway.models import BackgroundWork


class RetryTrialForm(ChannelTrialForm):
    """The channel and the days whose retries are tried."""

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"merchant": self.cleaned_data["channel"].merchant_id.hex}


class RetryTrial(ChannelTrial):
    kind = retry_trial.RETRY_TRIAL
    form = RetryTrialForm
    name = "retries"
    try_page, tried_page = "scheduling_job_retries_try", "scheduling_job_retries_tried"
    title = gettext_lazy("Try the timing of retries on past charges")
    work_title = gettext_lazy("Retries of past charges: %s")
    days = MAX_CHANNEL_TRIAL_DAYS - 1

    def describe_result(self, request: HttpRequest, row: BackgroundWork) -> dict[str, Any]:
        return {"found": row.cursor, "fewest": retry_trial.MIN_TRIED_RETRIES}
