from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ChargebacksConfig(AppConfig):
    """The app of disputes."""

    name = "chargebacks"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """Register the sealed columns with the vault, and what a processor's events move."""
        from chargebacks.models import EvidencePiece
        from chargebacks.processor_disputes import move_reported_case, record_inquiry
        from gateway.processor_events.dispute_hooks import DISPUTE_HOOKS, DisputeHooks
        from gateway.vault.rewrap import SEALED_COLUMNS, SealedColumn

        DISPUTE_HOOKS.register(DisputeHooks(record_inquiry=record_inquiry, move_case=move_reported_case))
        SEALED_COLUMNS.append(SealedColumn(model=EvidencePiece, sealed="sealed"))
