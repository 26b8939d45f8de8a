"""Password validators of the back office, beyond Django's own. Source: PCI DSS 8.3.6, 8.3.7."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.hashers import check_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from gateway.core import clock
from gateway.models import UsedPassword

PASSWORD_HISTORY_LENGTH: Final = 4
"""PCI DSS 8.3.7: a new password must differ from the last four."""
MIN_PASSWORD_GUESSES: Final = 10**10
"""Least guesses that a password must withstand; fewer are tried in seconds on one machine."""
MAX_ESTIMATED_CHARS: Final = 72
"""Characters of a long password that are estimated: the rest only makes it stronger."""


class LettersAndDigitsValidator:
    """PCI DSS 8.3.6: both letters and digits are required."""

    def validate(self, password: str, user: Any = None) -> None:
        if not any(map(str.isalpha, password)) or not any(map(str.isdigit, password)):
            raise ValidationError(self.get_help_text(), code="password_not_mixed")

    def get_help_text(self) -> str:
        return _("Your password must have letters and digits.")


class GuessabilityValidator:
    """Refuses leaked and patterned passwords: the estimator zxcvbn knows 30,000 leaked ones, words, names, sequences,
    keyboard rows, repeats and dates, each with the usual replacements, and the user's own data."""

    def validate(self, password: str, user: Any = None) -> None:
        from zxcvbn import zxcvbn  # its word lists take a tenth of a second to load: only choosing a password needs it

        known = [str(getattr(user, name, "") or "") for name in ("username", "first_name", "last_name", "email")]
        known += [part for text in known for part in text.replace("@", " ").replace(".", " ").split()]
        estimate = zxcvbn(password[:MAX_ESTIMATED_CHARS], user_inputs=["tollhouse", *filter(None, known)])
        if estimate["guesses"] < MIN_PASSWORD_GUESSES:
            raise ValidationError(
                _("This password is easy to guess: it is built of well-known words, names, sequences or repeats."),
                code="password_guessed",
            )

    def get_help_text(self) -> str:
        return _("Your password can't be one that is easy to guess. Four words that do not belong together are good.")


class PasswordHistoryValidator:
    """PCI DSS 8.3.7: refuses the last four passwords of the user."""

    def validate(self, password: str, user: Any = None) -> None:
        if user is None or user.pk is None:
            return
        rows = UsedPassword.objects.filter(user=user.pk).order_by("-at", "-id")
        before = [user.password, *rows.values_list("hashed", flat=True)[:PASSWORD_HISTORY_LENGTH]]
        # The newest stored one is usually the current password: each is compared once.
        if any(check_password(password, hashed) for hashed in dict.fromkeys(before)):
            raise ValidationError(self.get_help_text(), code="password_used_before")

    def password_changed(self, password: str, user: Any = None) -> None:
        """Called by Django after a password was saved."""
        if user is None or user.pk is None:
            return
        UsedPassword.objects.create(user_id=user.pk, hashed=user.password, at=clock.real_now())
        kept = UsedPassword.objects.filter(user=user.pk).order_by("-at", "-id").values("pk")[:PASSWORD_HISTORY_LENGTH]
        UsedPassword.objects.filter(user=user.pk).exclude(pk__in=kept).delete()

    def get_help_text(self) -> str:
        return _("Your password can't be one of your last %d.") % PASSWORD_HISTORY_LENGTH
