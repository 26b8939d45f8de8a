from django.apps import AppConfig


class CheckoutConfig(AppConfig):
    """The app of checkouts and the hosted widget."""

    name = "checkout"

    def ready(self) -> None:
        """Register configuration sections and sealed columns with the gateway."""
        from checkout.configuration import BRANDS_SECTION
        from checkout.models import Checkout, WalletProvider
        from checkout.parts import expire_part
        from checkout.receipts import find_receipt_of_payment
        from checkout.wallet_providers import WALLET_PROVIDERS_SECTION
        from gateway.configuration import sections
        from gateway.payments import held_parts, payment_receipts
        from gateway.vault.rewrap import SEALED_COLUMNS, SealedColumn

        sections.register_configuration_section(BRANDS_SECTION)
        sections.register_configuration_section(WALLET_PROVIDERS_SECTION)
        payment_receipts.RECEIPT_SOURCE.register(find_receipt_of_payment)
        held_parts.PART_EXPIRY.register(expire_part)
        SEALED_COLUMNS.extend(
            [
                SealedColumn(model=Checkout, sealed="request_sealed"),
                SealedColumn(model=WalletProvider, sealed="identity_sealed"),
            ]
        )
