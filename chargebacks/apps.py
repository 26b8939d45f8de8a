from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ChargebacksConfig(AppConfig):
    """The app of disputes."""

    name = "chargebacks"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """Register the sealed columns with the vault, and what a processor's events move."""
        from chargebacks.models import EvidencePiece
        from chargebacks.processor_disputes import DISPUTE_HOOKS
        from gateway.processor_events.dispute_hooks import register_dispute_hooks
        from gateway.vault.rewrap import SEALED_COLUMNS, SealedColumn

        register_dispute_hooks(DISPUTE_HOOKS)
        column = SealedColumn(model=EvidencePiece, sealed="sealed")
        if column not in SEALED_COLUMNS:
            SEALED_COLUMNS.append(column)
