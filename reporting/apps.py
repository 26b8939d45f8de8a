from django.apps import AppConfig
from django.utils.translation import gettext_lazy as lazy


class ReportingConfig(AppConfig):
    """The app of settlement intake, matching, reports and reconciliation files."""

    name = "reporting"
    verbose_name = lazy("Books")

    def ready(self) -> None:
        """Register the configuration section settlementSources, the sealed columns, and what reversals ask of
        settlement with the gateway."""
        from gateway.configuration import sections
        from gateway.payments.settlement_check import SETTLEMENT_CHECK
        from gateway.vault.rewrap import SEALED_COLUMNS, SealedColumn
        from reporting.models import FilePiece, SftpSource, SftpTarget
        from reporting.settlement.configuration import SETTLEMENT_SOURCES_SECTION
        from reporting.settlement.record_queries import find_matched_settlements

        SETTLEMENT_CHECK.register(find_matched_settlements)
        sections.register_configuration_section(SETTLEMENT_SOURCES_SECTION)
        SEALED_COLUMNS.extend(
            [
                SealedColumn(model=FilePiece, sealed="sealed"),
                SealedColumn(model=SftpTarget, sealed="secret_sealed"),
                SealedColumn(model=SftpSource, sealed="secret_sealed"),
            ]
        )
