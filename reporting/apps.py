from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ReportingConfig(AppConfig):
    """Settlement intake, matching, reports and the reconciliation file."""

    name = "reporting"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """The columns that the vault seals."""
        from gateway.vault_rows import SEALED, Sealed
        from reporting.incoming import SftpSource
        from reporting.models import FilePiece
        from reporting.outgoing import SftpTarget

        for column in (
            Sealed(model=FilePiece, sealed="sealed"),
            Sealed(model=SftpTarget, sealed="secret_sealed"),
            Sealed(model=SftpSource, sealed="secret_sealed"),
        ):
            if column not in SEALED:
                SEALED.append(column)
