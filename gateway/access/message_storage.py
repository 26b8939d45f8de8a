"""Messages of pages, kept in a cookie that in live browsers take from this host alone."""

from __future__ import annotations

from django.conf import settings
from django.contrib.messages.storage.cookie import CookieStorage
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.messages.storage.session import SessionStorage


class HostCookieStorage(CookieStorage):
    """Django's, under the name of the settings: a neighbour of the domain could plant a message of its own session."""

    cookie_name = settings.MESSAGES_COOKIE_NAME


class HostMessageStorage(FallbackStorage):
    """Messages in the cookie, and in the session those that do not fit."""

    storage_classes = (HostCookieStorage, SessionStorage)
