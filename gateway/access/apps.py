from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Users at the command line. It stands before django.contrib.auth, so that its commands of the same names win."""

    name = "gateway.access"
