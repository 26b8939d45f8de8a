from django.apps import AppConfig


class CheckoutConfig(AppConfig):
    """Checkouts and the hosted widget."""

    name = "checkout"

    def ready(self) -> None:
        """What the gateway asks of every topic: a section of the configuration, the columns that the vault seals."""
        from checkout.configuration import BRANDS_SECTION
        from checkout.models import Checkout, WalletProvider
        from checkout.providers import PROVIDERS_SECTION
        from gateway.configuration import sections
        from gateway.vault_rows import SEALED, Sealed

        sections.add(BRANDS_SECTION)
        sections.add(PROVIDERS_SECTION)
        for column in (
            Sealed(model=Checkout, sealed="request_sealed"), Sealed(model=WalletProvider, sealed="identity_sealed"),
        ):  # fmt: skip
            if column not in SEALED:
                SEALED.append(column)
