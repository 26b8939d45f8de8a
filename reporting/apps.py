from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ReportingConfig(AppConfig):
    """Settlement intake, matching, reports and the reconciliation file."""

    name = "reporting"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """What the gateway asks of every topic: a section of the configuration, the columns that the vault seals."""
        from gateway.configuration import sections
        from gateway.vault_rows import SEALED, Sealed
        from reporting.configuration import SETTLEMENT_SOURCES
        from reporting.incoming import SftpSource
        from reporting.models import FilePiece
        from reporting.outgoing import SftpTarget

        sections.add(SETTLEMENT_SOURCES)
        for column in (
            Sealed(model=FilePiece, sealed="sealed"),
            Sealed(model=SftpTarget, sealed="secret_sealed"),
            Sealed(model=SftpSource, sealed="secret_sealed"),
        ):
            if column not in SEALED:
                SEALED.append(column)
