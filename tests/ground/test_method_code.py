"""Methods of dataclasses are compiled once for all starts, and what is kept can do no harm."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.launcher import method_code
from config.launcher.method_code import keep_method_code


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many methods were compiled since the last call."""
    texts: list[str] = []

    def count(text: str, *more: Any, **options: Any) -> Any:
        texts.append(text)
        return builtins.compile(text, *more, **options)

    monkeypatch.setattr(method_code, "compile", count, raising=False)

    def take() -> int:
        found = len(texts)
        texts.clear()
        return found

    return take


def make(*names: str) -> Any:
    """A class as a module of ours makes them."""
    return dataclasses.make_dataclass("Made", names, frozen=True, slots=True, kw_only=True)


def load(file: Path, *names: str) -> Any:
    """The class, made while the code is loaded."""
    with keep_method_code(file):
        return make(*names)


def test_a_second_start_compiles_nothing_and_its_classes_are_the_same(
    tmp_path: Path, compiled: Callable[[], int]
) -> None:
    file = tmp_path / "kept"
    first = load(file, "amount", "currency")
    assert compiled() > 3
    again = load(file, "amount", "currency")
    assert compiled() == 0
    for made in (first, again, make("amount", "currency")):
        one = made(amount="92.00", currency="EUR")
        assert repr(one) == "Made(amount='92.00', currency='EUR')"
        assert one == made(amount="92.00", currency="EUR") != made(amount="92.01", currency="EUR")
        assert hash(one) == hash(("92.00", "EUR"))
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.amount = "1.00"
        with pytest.raises(TypeError):
            made(amount="92.00")


def test_a_changed_class_is_compiled_anew_and_only_what_is_used_is_kept(
    tmp_path: Path, compiled: Callable[[], int]
) -> None:
    file = tmp_path / "kept"
    load(file, "amount")
    compiled()
    assert load(file, "amount", "holder")(amount="1", holder="J").holder == "J"
    assert compiled() > 0
    load(file, "amount")
    assert compiled() > 0


@pytest.mark.parametrize("damage", [b"", b"\0" * 200, None])
def test_a_damaged_file_is_passed_over_and_written_anew(
    tmp_path: Path, compiled: Callable[[], int], damage: bytes | None
) -> None:
    """``None``: one byte of it."""
    file = tmp_path / "kept"
    load(file, "amount")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    compiled()
    assert load(file, "amount")(amount="1").amount == "1"
    assert compiled() > 0
    load(file, "amount")
    assert compiled() == 0


def test_a_file_of_another_python_is_passed_over(
    tmp_path: Path, compiled: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept"
    with monkeypatch.context() as other:
        other.setattr(method_code, "_KEY", b"an older one")
        load(file, "amount")
    compiled()
    load(file, "amount")
    assert compiled() > 0


def test_only_its_owner_can_read_it_and_where_it_cannot_be_written_nothing_is_kept(tmp_path: Path) -> None:
    load(tmp_path / "kept", "amount")
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o600
    assert load(tmp_path / "nowhere" / "kept", "amount")(amount="1").amount == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_dataclasses_is_as_before_also_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), keep_method_code(tmp_path / "kept"):
        raise ZeroDivisionError
    assert not hasattr(dataclasses, "exec")
    assert not (tmp_path / "kept").exists()
