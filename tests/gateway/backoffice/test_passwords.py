"""What a password must be. Source: PCI DSS 4.0.1, 8.3.6 and 8.3.7; docs/decisions/0051."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client

from gateway.access.passwords import GuessabilityValidator
from gateway.models import Role, UsedPassword
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

GOOD = "blue-Kettle-94-orbit"
BOSS = User(username="m_boss", first_name="Margarete", last_name="Oberhauser", email="m.boss@pay.example")


@pytest.mark.parametrize("password", [GOOD, "correct horse battery 7", "zu7Gk2pQ9xLm", "Äpfel und 3 Birnen fallen"])
def test_a_password_that_is_hard_to_guess_is_taken(password: str) -> None:
    validate_password(password, BOSS)


@pytest.mark.parametrize(
    "password",
    [
        "blue-Ket94",
        "onlyletterslong",
        "839201748365",
        "8392-0174-8365",
        "correct horse battery",
        "aaaaaaaaaaaa",
        "aaaaaaaaaaaa1",
        "abcdefghijkl",
        "abcdefghijkl1",
        "123456789012a",
        "m_boss_m_boss",
        "m_boss_m_boss1",
        "Oberhauser1234",
        "Margarete-2026",
        "qwertyuiop12",
        "Password1234",
        "P@ssw0rd2026",
        "letmein12345",
        "sunshine1234",
        "Tollhouse1234",
        "Summer2026!!",
        "iloveyou1234",
        "1qaz2wsx3edc",
    ],
)
def test_what_is_short_one_sided_leaked_a_pattern_or_the_users_own_is_refused(password: str) -> None:
    with pytest.raises(ValidationError):
        validate_password(password, BOSS)


@pytest.mark.parametrize(
    "known",
    [
        {"username": "zvrkolbixat"},
        {"first_name": "Zvrkolbixat"},
        {"last_name": "Zvrkolbixat"},
        {"last_name": "van Zvrkolbixat"},
        {"email": "zvrkolbixat@pay.example"},
        {"email": "j.zvrkolbixat@pay.example"},
    ],
    ids=lambda known: " ".join(known),
)
def test_a_password_built_of_what_is_known_of_the_user_is_refused(known: dict[str, str]) -> None:
    """The word is in no list: only its owner may not take it. Django's own comparison refuses most of these, too."""
    password = "Zvrkolbixat7"
    validate_password(password, BOSS)
    with pytest.raises(ValidationError) as refused:
        GuessabilityValidator().validate(password, User(**{"username": "somebody", **known}))
    assert refused.value.code == "password_guessed"


def test_a_password_of_any_length_is_answered() -> None:
    validate_password("blue Kettle 94 orbit " * 40, BOSS)
    with pytest.raises(ValidationError):
        validate_password("a1" * 400, BOSS)


@pytest.mark.django_db
def test_none_of_the_last_four_is_taken_again(shop: Shop) -> None:
    user = person("clara", Role.CLERK, shop.merchant)
    used = [f"blue-Kettle-9{number}-orbit" for number in range(5)]
    for password in used:
        user.set_password(password)
        user.save()
    assert UsedPassword.objects.filter(user=user).count() == 4
    for password in used[1:]:
        with pytest.raises(ValidationError, match="last 4"):
            validate_password(password, user)
    validate_password(used[0], user)
    client = signed_in(user)
    form = {"old_password": used[4], "new_password1": used[4], "new_password2": used[4]}
    assert "last 4" in client.post("/admin/password_change/", form).content.decode()
    form |= {"new_password1": used[0], "new_password2": used[0]}
    assert client.post("/admin/password_change/", form).status_code == 302
    with pytest.raises(ValidationError):
        validate_password(used[4], user)


@pytest.mark.django_db
def test_the_present_password_is_refused_where_none_was_kept_before(shop: Shop) -> None:
    """A user from before the history was kept has it in their row alone."""
    user = person("clara", Role.CLERK, shop.merchant)
    user.set_password(GOOD)
    user.save()
    UsedPassword.objects.all().delete()
    with pytest.raises(ValidationError, match="last 4"):
        validate_password(GOOD, user)


@pytest.mark.django_db
def test_the_history_is_each_users_own(shop: Shop) -> None:
    clara, other = (person(name, Role.CLERK, shop.merchant) for name in ("clara", "other"))
    for user, password in ((other, "green-Teapot-31-comet"), (clara, GOOD)):
        user.set_password(password)
        user.save()
    validate_password("green-Teapot-31-comet", clara)
    assert UsedPassword.objects.filter(user=other).count() == 1, "another's change takes nothing of it away"
    with pytest.raises(ValidationError, match="last 4"):
        validate_password("green-Teapot-31-comet", other)


@pytest.mark.django_db
def test_the_page_says_what_a_password_must_be(shop: Shop) -> None:
    page = signed_in(person("clara", Role.CLERK, shop.merchant)).get("/admin/password_change/").content.decode()
    for words in ("at least 12 characters", "letters and digits", "last 4", "easy to guess"):
        assert words in page
    assert Client().get("/admin/password_change/").status_code == 302
