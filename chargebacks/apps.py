from django.apps import AppConfig


class ChargebacksConfig(AppConfig):
    """Disputes: the case file of a chargeback."""

    name = "chargebacks"

    def ready(self) -> None:
        """The columns that the vault seals."""
        from chargebacks.models import EvidencePiece
        from gateway.vault_rows import SEALED, Sealed

        column = Sealed(model=EvidencePiece, sealed="sealed")
        if column not in SEALED:
            SEALED.append(column)
