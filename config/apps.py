from allauth.account.apps import AccountConfig
from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class TollhouseAdminConfig(AdminConfig):
    """Django's admin with our own site."""

    default_site = "config.admin_site.BackOffice"


class AccountsConfig(AccountConfig):  # type: ignore[misc]  # allauth has no types
    """django-allauth's accounts. Its start-up check insists on its middleware by name; ours is the same but for pages
    only (gateway.api.middleware.SignInContextMiddleware), so that API requests bypass it."""

    default = True

    def ready(self) -> None:
        from allauth.account import checks  # noqa: F401 - importing registers them


class CompositionConfig(AppConfig):
    """The composition root: it imports every app, and no app imports it."""

    name = "config"

    def ready(self) -> None:
        from config import celery, checks, error_reporting, model_names, timers  # noqa: F401 - importing registers the app and the start-up checks

        error_reporting.install_error_reporting()
        timers.register_timers_and_work()
        model_names.translate_model_names()
