"""gateway.management.option_values: wrong values of a command's options get a sentence, never a traceback."""

from __future__ import annotations

import io
from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command, get_commands, load_command_class

from gateway.core.identifiers import row_id
from gateway.management.option_values import build_number_parser, build_text_parser, parse_option_day
from gateway.models import AccessToken
from reporting.settlement.models import ClearingInstitute
from tests.support.fixtures import Shop

ROOT = Path(__file__).parents[2]

OWN = sorted(path.stem for path in ROOT.glob("*/management/commands/[a-z]*.py"))
LOGIN = ("--host", "localhost", "--user", "shop", "--host-key", "ssh-ed25519 AAAA", "--key-file", "FILE")
READING = {
    "audit_trail": ("verify", "FILE"),
    "configure": ("--entity", "CHANNEL", "FILE"),
    "dispute_alerts": ("FILE",),
    "forget_shopper": ("--merchant", "MERCHANT", "--again", "FILE", "--alone", "a test"),
    "reconciliation_target": ("--merchant", "MERCHANT", *LOGIN),
    "sepa_status_file": ("FILE",),
    "settlement_file": ("FILE", "--institute", "acme"),
    "settlement_source": ("--institute", "acme", *LOGIN),
    "wallet_key": ("--entity", "CHANNEL", "--wallet", "2", "--private-key", "FILE"),
    "webhook_endpoint": ("--entity", "CHANNEL", "--url", "https://shop.example/hook", "--secret-file", "FILE"),
}
"""Commands that read a file, and how each is called."""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(128, 256)) * 8)
    return {"missing": tmp_path / "missing" / "file", "folder": tmp_path, "binary": binary}


def list_arguments(parser: ArgumentParser) -> list[tuple[str, str | None]]:
    found = []
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                found += list_arguments(below)
        else:
            found.append((action.option_strings[0] if action.option_strings else action.dest, action.help))
    return found


@pytest.mark.parametrize("name", OWN)
def test_every_argument_of_a_command_says_what_it_is(name: str) -> None:
    app = get_commands()[name]
    assert isinstance(app, str)
    parser = load_command_class(app, name).create_parser("manage.py", name)
    assert [argument for argument, words in list_arguments(parser) if not words] == []


def test_our_commands_are_found() -> None:
    assert {"access_token", "dispute_alerts", "doctor", "settlement_file", "widget_build"} <= set(OWN)


@pytest.mark.parametrize("kind", ["missing", "folder", "binary"])
@pytest.mark.parametrize("name", sorted(READING))
def test_a_file_that_cannot_be_read_is_named(shop: Shop, files: dict[str, Path], name: str, kind: str) -> None:
    ClearingInstitute.objects.create(key="acme", name="Acme", connectors=["stub"])
    given = {"FILE": str(files[kind]), "CHANNEL": shop.channel.entity_id, "MERCHANT": shop.merchant.entity_id}
    out = io.StringIO()
    with pytest.raises(CommandError) as fault:
        call_command(name, *(given.get(word, word) for word in READING[name]), stdout=out, stderr=out)
    assert files[kind].name in str(fault.value) + out.getvalue() or name == "dispute_alerts"


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_a_file_that_cannot_be_written_is_named(db: None, files: dict[str, Path], kind: str) -> None:
    ClearingInstitute.objects.create(key="sim", name="Simulated", connectors=["simulator"])
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("settlement_simulate", str(files[kind]), "--from", "2026-05-01")


@pytest.mark.parametrize(
    "words",
    [
        ("access_token", "--entity", "CHANNEL", "--days", "0"),
        ("access_token", "--entity", "CHANNEL", "--days", "-1"),
        ("access_token", "--entity", "CHANNEL", "--days", "999999999"),
        ("access_token", "--entity", "CHANNEL", "--days", "soon"),
        ("access_token", "--entity", "CHANNEL", "--name", "x" * 129),
        ("wallet_key", "--entity", "CHANNEL", "--name", "x" * 129),
        ("settlement_simulate", "file.csv", "--from", "2026-13-01"),
        ("settlement_simulate", "file.csv", "--from", "2026-05-31", "--to", "2026-05-01"),
        ("simulate_market", "--start", "soon"),
        ("simulate_market", "--start", "9999-12-01"),
        ("settlement_source", "--host", "localhost", "--port", "99999"),
        ("reconciliation_target", "--merchant", "MERCHANT", "--host", "localhost", "--port", "0"),
    ],
    ids=" ".join,
)
def test_a_value_out_of_its_bounds_is_refused(shop: Shop, words: tuple[str, ...]) -> None:
    ClearingInstitute.objects.create(key="sim", name="Simulated", connectors=["simulator"])
    given = {"CHANNEL": shop.channel.entity_id, "MERCHANT": shop.merchant.entity_id}
    before = AccessToken.objects.count()
    with pytest.raises(CommandError) as fault:
        call_command(*(given.get(word, word) for word in words))
    assert "invalid" not in str(fault.value)
    assert AccessToken.objects.count() == before


def test_a_token_that_was_revoked_is_not_rotated(shop: Shop) -> None:
    out = io.StringIO()
    call_command("access_token", "--entity", shop.channel.entity_id, stdout=out)
    token = AccessToken.objects.latest("id")
    call_command("access_token", "--revoke", token.pk.hex, stdout=out)
    with pytest.raises(CommandError, match="was revoked"):
        call_command("access_token", "--rotate", token.pk.hex, stdout=out)
    assert not AccessToken.objects.filter(replaces=token).exists()
    with pytest.raises(CommandError, match="no such token"):
        call_command("access_token", "--rotate", row_id().hex, stdout=out)


def test_values_within_their_bounds_are_taken() -> None:
    assert parse_option_day("2026-05-14") == date(2026, 5, 14)
    assert build_number_parser(1, 3)("3") == 3
    assert build_text_parser(AccessToken, "name")("ab") == "ab"
    with pytest.raises(ArgumentTypeError, match="from 1 to 3, not '4'"):
        build_number_parser(1, 3)("4")
