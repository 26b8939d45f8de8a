"""The launcher's output on the terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path

from config.launcher.errors import LaunchError

SAMPLE_PAYMENT = (
    ("amount", "92.00"),
    ("currency", "EUR"),
    ("paymentBrand", "VISA"),
    ("paymentType", "DB"),
    ("card.number", "4200000000000000"),
    ("card.holder", "Jane Jones"),
    ("card.expiryMonth", "05"),
    ("card.expiryYear", "2034"),
    ("card.cvv", "123"),
)


_silent = False


def mute_output() -> None:
    """Print no steps from now on: the output belongs to a command that we run."""
    global _silent
    _silent = True


def print_line(text: str) -> None:
    """Print a line at once. A closed pipe is not an error."""
    if _silent:
        return
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_step_done(step: str, started: float, what: str) -> None:
    """Report a finished step: its name, the seconds since `started` (monotonic), and a fact."""
    print_line(f"  ✓ {step:<22}{time.monotonic() - started:5.1f} s   {what}".rstrip())


def print_step_waiting(step: str, since_s: float, what: str) -> None:
    """Report a step in progress: for how many seconds, and what is being done. Goes to standard error when standard
    output belongs to a command that we run."""
    line = f"  … {step:<22}{since_s:5.0f} s   {what}".rstrip()
    if _silent:
        print(line, file=sys.stderr, flush=True)
    else:
        print_line(line)


def print_demo(file: Path) -> None:
    """Print the demo merchant's data and a first payment to paste."""
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
        base, entity, token = facts["base_url"], facts["entity_id"], facts["access_token"]
        user, password = facts["admin_user"], facts["admin_password"]
    except (OSError, ValueError, KeyError) as error:
        raise LaunchError(f"Cannot read the demo merchant's facts in {file}: {error}.") from error
    for name, value in (
        ("Base address", base),
        ("Back office", f"{base}/admin/   user {user}   password {password}"),
        ("entityId", entity),
        ("Access token", token),
        ("More entities", str(file)),
    ):
        print_line(f"  {name:<15}{value}")
    print_line("\nA first payment, in another terminal:\n")
    print_line(format_sample_payment(file.with_suffix(".env")) + "\n")


def format_sample_payment(variables: Path) -> str:
    """Two commands to paste: one reads the variables, the other is a curl with one parameter per line."""
    lines = ['curl "$BASE/v1/payments"', '-H "Authorization: Bearer $TOKEN"', '-d "entityId=$ENTITY_ID"']
    lines += [f'-d "{name}={value}"' for name, value in SAMPLE_PAYMENT]
    return f". {shlex.quote(str(variables))}\n" + " \\\n  ".join(lines)
