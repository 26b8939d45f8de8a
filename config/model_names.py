"""Translates the names of models and fields in the back office.

Models have English names only; the German catalogue (config/locale) has the others. Migrations keep the English
names: they are made with translations switched off.
"""

from __future__ import annotations

from typing import Any, Final

from django.apps import apps
from django.utils.functional import Promise, lazy
from django.utils.translation import gettext

TRANSLATED_APPS: Final = ("gateway", "checkout", "scheduling", "chargebacks", "reporting")


def _translate(text: str) -> str:
    return gettext(text) if text else text


_translate_lazily: Final = lazy(_translate, str)


def _translated_name(text: Any) -> Any:
    """``text`` as a lazy translation, if it is plain text that is not empty."""
    return _translate_lazily(text) if isinstance(text, str) and not isinstance(text, Promise) and text else text


def translate_model_names() -> None:
    """Make names and help texts of our models and fields translate into the user's language."""
    for label in TRANSLATED_APPS:
        for model in apps.get_app_config(label).get_models():
            names = model._meta
            if "verbose_name_plural" not in names.original_attrs:
                # Django's default plural appends an s to the translated name: "Kanals".
                names.verbose_name_plural = f"{names.verbose_name}s"
            names.verbose_name = _translated_name(names.verbose_name)
            names.verbose_name_plural = _translated_name(names.verbose_name_plural)
            for field in model._meta.local_fields:
                field.verbose_name = _translated_name(field.verbose_name)
                field.help_text = _translated_name(field.help_text)
                if field.choices:
                    field.choices = [(value, _translated_name(words)) for value, words in field.flatchoices]
