from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ReportingConfig(AppConfig):
    """The app of settlement intake, matching, reports and reconciliation files."""

    name = "reporting"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """Register the configuration section settlementSources and the sealed columns with the gateway."""
        from gateway.configuration import sections
        from gateway.vault.rewrap import SEALED_COLUMNS, SealedColumn
        from reporting.models import FilePiece, SftpSource, SftpTarget
        from reporting.settlement.configuration import SETTLEMENT_SOURCES_SECTION

        sections.register_configuration_section(SETTLEMENT_SOURCES_SECTION)
        for column in (
            SealedColumn(model=FilePiece, sealed="sealed"),
            SealedColumn(model=SftpTarget, sealed="secret_sealed"),
            SealedColumn(model=SftpSource, sealed="secret_sealed"),
        ):
            if column not in SEALED_COLUMNS:
                SEALED_COLUMNS.append(column)
