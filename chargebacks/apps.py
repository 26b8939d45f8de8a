from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ChargebacksConfig(AppConfig):
    """The app of disputes."""

    name = "chargebacks"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """Register the sealed columns with the vault."""
        from chargebacks.models import EvidencePiece
        from gateway.vault.rewrap import SEALED_COLUMNS, SealedColumn

        column = SealedColumn(model=EvidencePiece, sealed="sealed")
        if column not in SEALED_COLUMNS:
            SEALED_COLUMNS.append(column)
