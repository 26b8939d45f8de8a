"""Add-ons by the name in a setting: what is there is given, what is not is named without its error's message."""

from __future__ import annotations

import decimal

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway.core.addons import import_addon


def test_what_a_setting_names_is_given() -> None:
    assert import_addon("GATEWAY_TOKEN_SERVICE", "decimal:Decimal") is decimal.Decimal


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nowhere:SERVICE", "ModuleNotFoundError"),
        ("decimal:Nowhere", "AttributeError"),
        ("decimal", "AttributeError"),
        (":SERVICE", "ValueError"),
    ],
)
def test_what_is_not_there_is_refused_with_its_setting(name: str, kind: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        import_addon("GATEWAY_ACCOUNT_UPDATER", name)
    assert str(refused.value) == f"GATEWAY_ACCOUNT_UPDATER names {name}, which is not there: {kind}."
    assert refused.value.__cause__ is None
