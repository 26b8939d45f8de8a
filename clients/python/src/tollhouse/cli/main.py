# PYTHON_ARGCOMPLETE_OK
"""The command line `tollhouse`: payments, webhooks on this machine, the log, the clock. `tollhouse --help` lists it.

Exit codes: 0 done; 1 declined or refused; 2 wrongly called, or the gateway cannot be reached.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx

from tollhouse._sync.client import Tollhouse
from tollhouse._version import __version__
from tollhouse.cli import assistant, listen, migration
from tollhouse.cli.console import Console, describe
from tollhouse.cli.settings import connect, load_settings
from tollhouse.cli.triggers import APPROVED_CARD, DECLINED_CARD, EVENTS
from tollhouse.errors import ApiError, TollhouseError
from tollhouse.models import Payment

SERVER_COMMANDS = frozenset({"run", "web", "worker", "beat", "check", "doctor", "health", "manage"})
PAGES = {"start": "/", "docs": "/docs/", "admin": "/admin/", "demo": "/demo/", "testdata": "/testdata"}
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def build_parser() -> argparse.ArgumentParser:
    """Every command and option."""
    parser = argparse.ArgumentParser(prog="tollhouse", description="Talk to a Tollhouse payment gateway.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument(
        "--env", metavar="FILE", help="file with BASE, TOKEN, ENTITY_ID (else the environment, or var/demo.env)"
    )
    parser.add_argument("--json", action="store_true", help="write JSON, one object to a line")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_payments(commands)
    _add_tools(commands)
    return parser


def _add_payments(commands: Any) -> None:
    payments = commands.add_parser("payments", help="create, read, capture, refund, reverse")
    verbs = payments.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = verbs.add_parser("create", help="a payment: amount=92.00 currency=EUR paymentType=DB …")
    create.add_argument("parameters", nargs="*", metavar="NAME=VALUE", help="parameters of the API by their full names")
    create.add_argument("--card", choices=("test", "declined"), help="fill a test card in")
    verbs.add_parser("get", help="a payment as it stands").add_argument("id", type=parse_id)
    for verb, about in (("capture", "take a reserved sum"), ("refund", "give money back")):
        one = verbs.add_parser(verb, help=about)
        one.add_argument("id", type=parse_id)
        # Whoever comes from `create` writes NAME=VALUE here, too.
        one.add_argument("amount", type=lambda text: text.removeprefix("amount="), help="92.00")
        one.add_argument(
            "currency", type=lambda text: text.removeprefix("currency="), nargs="?", default="EUR", help="EUR"
        )
    verbs.add_parser("reverse", help="undo what is not captured or settled").add_argument("id", type=parse_id)
    for verb in ("create", "capture", "refund", "reverse"):
        verbs.choices[verb].add_argument("--idempotency-key", default="", metavar="KEY")


def _add_tools(commands: Any) -> None:
    listened = commands.add_parser(
        "listen", help="webhooks of the test environment, shown and forwarded to this machine"
    )
    listened.add_argument("--forward", type=parse_address, metavar="URL", help="http://localhost:9000/hook")
    listened.add_argument("--mode", choices=("signed", "encrypted"), default="signed")
    listened.add_argument("--count", type=parse_count, metavar="N", help="end after N messages")
    triggered = commands.add_parser("trigger", help="cause an event; without a name: list them")
    triggered.add_argument("event", nargs="?", choices=sorted(EVENTS), metavar="EVENT")
    tail = commands.add_parser("logs", help="the request log").add_subparsers(
        dest="verb", required=True, metavar="VERB"
    )
    tailed = tail.add_parser("tail", help="the newest requests, and those that come")
    tailed.add_argument("-n", type=parse_number, default=10, metavar="N", help="how many to begin with (10)")
    tailed.add_argument("--no-follow", action="store_true", help="end after these")
    clock = commands.add_parser("clock", help="the clock of the test environment")
    verbs = clock.add_subparsers(dest="verb", required=True, metavar="VERB")
    verbs.add_parser("show", help="the merchant's time")
    verbs.add_parser("advance", help="move it on").add_argument("by", type=parse_duration, help="90s, 30m, 12h, 28d")
    verbs.add_parser("reset", help="back to the real time")
    commands.add_parser("fixtures", help="make one of everything to try with, and print the ids")
    checked = commands.add_parser("migrate-check", help="an old client's request: what is taken, ignored, refused")
    checked.add_argument("file", nargs="?", default="-", help="curl command, HTTP message or form body; - is the input")
    checked.add_argument("--path", type=parse_path, default="/v1/payments", help="where a form body goes")
    commands.add_parser("mcp", help="a read-only MCP server for assistants, over standard input and output")
    opened = commands.add_parser("open", help="a page of the gateway in the browser")
    opened.add_argument("page", nargs="?", default="start", help=f"{', '.join(PAGES)}, or the id or ndc of a request")
    opened.add_argument("--print", action="store_true", dest="only_print", help="write the address only")


def parse_duration(text: str) -> int:
    """Seconds of `90s`, `30m`, `12h`, `28d` or a plain number."""
    found = re.fullmatch(r"([1-9][0-9]{0,9})([smhd]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration: 90s, 30m, 12h, 28d")
    return int(found[1]) * _UNITS[found[2] or "s"]


def parse_id(text: str) -> str:
    """The id of a payment; an empty one would name all of them, and dots something else."""
    if not text.strip():
        raise argparse.ArgumentTypeError("an id is empty")
    if text in (".", ".."):
        raise argparse.ArgumentTypeError("an id is only dots")
    return text


def parse_path(text: str) -> str:
    """The path of an endpoint."""
    if not text.startswith("/"):
        raise argparse.ArgumentTypeError(f"{text!r} is no path: /v1/payments")
    return text


def parse_number(text: str) -> int:
    """A number of 0 or more."""
    if not re.fullmatch("[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 0 or more")
    return int(text)


def parse_count(text: str) -> int:
    """A number of 1 or more."""
    if not re.fullmatch("[0-9]{1,9}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)


def parse_address(text: str) -> str:
    """An address that webhooks can be sent to."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return text
    raise argparse.ArgumentTypeError(f"{text!r} is no address: http://localhost:9000/hook")


def _run_server(given: list[str]) -> int:
    """Run a command of the gateway itself, where its package is installed too: both packages bring `tollhouse`."""
    try:
        from tollhouse_server import main as run_gateway
    except ImportError:
        sys.stderr.write(f"tollhouse {given[0]} is a command of the gateway itself: install its package, tollhouse.\n")
        return 2
    code: int = run_gateway(given)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in SERVER_COMMANDS:
        return _run_server(given)
    parser = build_parser()
    with contextlib.suppress(ImportError):
        import argcomplete

        argcomplete.autocomplete(parser)
    if any(not _is_text(word) for word in given):
        parser.error("a word of the command is no text in UTF-8")
    options = parser.parse_args(given)
    console = Console(as_json=options.json)
    try:
        settings = load_settings(options.env)
        if options.command == "open":
            return _open(console, settings["BASE"], options.page, only_print=options.only_print)
        with connect(settings) as gateway:
            if options.command == "mcp":
                return assistant.serve(gateway, settings["BASE"])
            return run_command(gateway, console, options)
    except ApiError as error:
        console.show_error(error)
        return 1
    except BrokenPipeError:
        # Whoever read the output has enough of it: `tollhouse logs tail | head -n 1`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (TollhouseError, OSError, httpx.InvalidURL) as error:
        sys.stderr.write(f"tollhouse: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 0


def _is_text(word: str) -> bool:
    """Whether a word can be sent: a shell's bytes that are no text come as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in word)


def run_command(gateway: Tollhouse, console: Console, options: argparse.Namespace) -> int:
    """One command with its options; the exit code."""
    match options.command:
        case "payments":
            return console.show_answer(_run_payment(gateway, options))
        case "listen":
            return listen.listen(gateway, console, forward=options.forward, mode=options.mode, count=options.count)
        case "trigger":
            return _trigger(gateway, console, options.event)
        case "logs":
            return listen.tail_requests(gateway, console, number=options.n, follow=not options.no_follow)
        case "clock":
            return _run_clock(gateway, console, options)
        case "fixtures":
            return _make_fixtures(gateway, console)
        case _:
            return migration.check_old_request(gateway, console, _read_text(options.file), options.path)


def _read_text(file: str) -> str:
    """A file, or the input for `-`. Raises TollhouseError, and OSError."""
    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise TollhouseError(f"{file}: is no text in UTF-8") from None


def _run_payment(gateway: Tollhouse, options: argparse.Namespace) -> Payment:
    key = getattr(options, "idempotency_key", "")
    match options.verb:
        case "create":
            parameters = _parse_parameters(options.parameters)
            if options.card:
                card = APPROVED_CARD if options.card == "test" else DECLINED_CARD
                parameters = {**{f"card.{name}": value for name, value in card.items()}, **parameters}
            return gateway.request("POST", "/v1/payments", parameters, answer=Payment, key=key)
        case "get":
            return gateway.payments.get(options.id)
        case "reverse":
            return gateway.payments.reverse(options.id, idempotency_key=key)
        case verb:
            method = gateway.payments.capture if verb == "capture" else gateway.payments.refund
            return method(options.id, amount=options.amount, currency=options.currency, idempotency_key=key)


def _parse_parameters(words: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise TollhouseError(f"{word!r} is no parameter: NAME=VALUE")
        if name in found:
            raise TollhouseError(f"{name} is given more than once")
        found[name] = value
    return found


def _trigger(gateway: Tollhouse, console: Console, event: str | None) -> int:
    if event is None:
        for name, (about, _make) in EVENTS.items():
            console.show(f"{name:22} {about}", {"event": name, "about": about})
        return 0
    answer = EVENTS[event][1](gateway)
    console.show(describe(answer.to_dict()), answer.to_dict())
    return 0


def _run_clock(gateway: Tollhouse, console: Console, options: argparse.Namespace) -> int:
    if options.verb == "advance":
        clock = gateway.test.advance_clock(options.by)
        while clock.complete is False and clock.remainingSeconds:
            console.hint(f"now {clock.now}, {clock.remainingSeconds} s to go")
            clock = gateway.test.advance_clock(clock.remainingSeconds)
    else:
        clock = gateway.test.read_clock() if options.verb == "show" else gateway.test.reset_clock()
    console.show(f"now {clock.now}, {clock.offsetSeconds} s ahead", clock.to_dict())
    return 0


def _make_fixtures(gateway: Tollhouse, console: Console) -> int:
    for event, (about, make) in EVENTS.items():
        if not event.endswith((".deleted", ".ended")):
            answer = make(gateway)
            console.show(f"{about:42} {answer['id']}", {"fixture": event, "id": answer["id"]})
    return 0


def _open(console: Console, base: str, page: str, *, only_print: bool) -> int:
    path = PAGES.get(page) or f"/admin/gateway/payment/?q={quote_plus(page)}"
    address = base.rstrip("/") + path
    console.show(address, {"address": address})
    if not only_print:
        webbrowser.open(address)
    return 0


if __name__ == "__main__":
    sys.exit(main())
