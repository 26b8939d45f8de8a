"""The plug-in as pretix lists it."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from pretix_tollhouse import __version__


class TollhouseApp(AppConfig):
    """The Django app."""

    name = "pretix_tollhouse"
    verbose_name = "Tollhouse"

    class PretixPluginMeta:
        """What pretix shows of it."""

        name = "Tollhouse"
        author = "Tollhouse"
        version = __version__
        category = "PAYMENT"
        description = _("Accept cards, bank accounts and wallets by your own Tollhouse payment gateway.")
        visible = True
        settings_links = [
            ((_("Payment"), "Tollhouse"), "control:event.settings.payment.provider", {"provider": "tollhouse"}),
        ]

    def ready(self) -> None:
        """Connect the signals."""
        from pretix_tollhouse import signals  # noqa: F401 - connects
