"""The command line `tollhouse` when it is called wrongly: one line that says why, code 2, no stack trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.portal.client_packages import CLIENTS_DIR
from tests.support.ports import free_port

pytestmark = pytest.mark.processes
SOURCES = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CLIENTS_DIR / "python/src")}


def call(*words: str, folder: Path, given: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    nowhere = {"BASE": f"http://127.0.0.1:{free_port()}", "TOKEN": "t", "ENTITY_ID": "0" * 32}
    command = [sys.executable, "-m", "tollhouse.cli.main", *words]
    environment = {**SOURCES, **nowhere, **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, input=given, capture_output=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["payments", "create", "amount"], "'amount' is no parameter: NAME=VALUE"),
        (["payments", "create", "amount=1.00", "amount=2.00"], "amount is given more than once"),
        (["payments", "get", ""], "an id is empty"),
        (["payments", "refund", " ", "1.00"], "an id is empty"),
        (["payments", "refund", "..", "1.00"], "an id is only dots"),
        (["payments", "get", os.fsdecode(b"\xff")], "a word of the command is no text in UTF-8"),
        (["migrate-check", "--path", "v1/payments"], "'v1/payments' is no path: /v1/payments"),
        (["payments", "delete", "1"], "invalid choice: 'delete'"),
        (["listen", "--forward", "localhost:9000"], "'localhost:9000' is no address: http://localhost:9000/hook"),
        (["listen", "--forward", "http://[::1/"], "is no address"),
        (["listen", "--count", "0"], "'0' is no number of 1 or more"),
        (["logs", "tail", "-n", "ten"], "'ten' is no number of 0 or more"),
        (["trigger", "payment.paid"], "invalid choice: 'payment.paid'"),
        (["clock", "advance", "soon"], "'soon' is no duration: 90s, 30m, 12h, 28d"),
        (["--env", "nowhere.env", "clock", "show"], "nowhere.env cannot be read: No such file or directory"),
        # As of tail: none of those that were, only those that come.
        (["--env", "nowhere.env", "logs", "tail", "-n", "0"], "nowhere.env cannot be read"),
        (["--env", "latin.txt", "clock", "show"], "latin.txt cannot be read: it is no text in UTF-8"),
        (["--env", "open.env", "clock", "show"], "open.env cannot be read: a quotation mark has no end"),
        (["--env", "empty.env", "clock", "show"], "set BASE and TOKEN, or name a file"),
        (["migrate-check", "nowhere.sh"], "No such file or directory"),
        (["migrate-check", "latin.txt"], "latin.txt: is no text in UTF-8"),
        (["--env", "port.env", "clock", "show"], "BASE: base_url is no address of a gateway"),
        (["--env", "letters.env", "clock", "show"], "TOKEN has characters that it cannot have"),
        (["clock", "show"], "Connection refused"),
    ],
)
def test_what_is_wrongly_called_is_told_in_a_line(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "latin.txt").write_bytes(b"TOKEN=J\xfcrgen")
    (tmp_path / "open.env").write_text("BASE=http://127.0.0.1:9\nTOKEN='t\n")
    (tmp_path / "empty.env").write_text("")
    (tmp_path / "port.env").write_text("BASE=http://127.0.0.1:99999\nTOKEN=t\n")
    (tmp_path / "letters.env").write_text("BASE=http://127.0.0.1:9\nTOKEN=ключ\n")
    done = call(*words, folder=tmp_path)
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in told
    assert "Traceback" not in told


@pytest.mark.parametrize("words", [["5.00", "USD"], ["amount=5.00", "currency=USD"]])
def test_a_sum_is_written_with_its_names_or_without(tmp_path: Path, words: list[str]) -> None:
    """`payments create` takes NAME=VALUE: its neighbours take that, too."""
    program = """
import json, sys
from tollhouse.cli.main import build_parser
found = build_parser().parse_args(["payments", "refund", "1", *sys.argv[1:]])
print(json.dumps([found.amount, found.currency]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], env=SOURCES, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(ran.stdout) == ["5.00", "USD"]


def test_a_fault_of_our_own_keeps_its_stack(tmp_path: Path) -> None:
    """As one line it would look like a wrong call."""
    program = """
import sys
from tollhouse.cli import main
def fail(*_): raise ValueError("ours")
main.run_command = fail
sys.exit(main.main(["clock", "show"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**SOURCES, "BASE": "http://127.0.0.1:9", "TOKEN": "t"},
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr, "ValueError: ours" in done.stderr) == (1, True, True)


def test_who_reads_enough_of_the_output_ends_it_quietly(tmp_path: Path) -> None:
    """`tollhouse trigger | head -n 1`."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tollhouse.cli.main", "trigger"]
    environment = {**SOURCES, "BASE": "http://127.0.0.1:9", "TOKEN": "t"}
    done = subprocess.run(command, env=environment, stdout=write, stderr=subprocess.PIPE, check=False, cwd=tmp_path)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_word_to_open_is_looked_for(tmp_path: Path) -> None:
    done = call("open", "order 4711&x=1", "--print", folder=tmp_path, BASE="https://pay.example")
    assert done.stdout.decode() == "https://pay.example/admin/gateway/payment/?q=order+4711%26x%3D1\n"


PARSE = """
import json, sys
from tollhouse.cli.migration import MigrationError, parse_old_request
for text in json.load(sys.stdin):
    try:
        old = parse_old_request(text)
        print(json.dumps([old.method, old.path, old.host, old.fields]))
    except MigrationError as error:
        print(json.dumps(str(error)))
"""
CURL_COMMANDS: dict[str, Any] = {
    "curl -XDELETE https://old.example/v1/registrations/1": ["DELETE", "/v1/registrations/1", "old.example", []],
    "curl -sSX POST -da=1 -d'b=2 3' https://old.example/p": ["POST", "/p", "old.example", [["a", "1"], ["b", "2 3"]]],
    "curl https://old.example/p --max-time 30 -d a=1": ["POST", "/p", "old.example", [["a", "1"]]],
    "curl --url https://old.example/p --data a=1": ["POST", "/p", "old.example", [["a", "1"]]],
    "curl -sG https://old.example/p -d a=1": ["GET", "/p", "old.example", [["a", "1"]]],
    "curl https://old.example/p -b 'a=/x' -d a=1": ["POST", "/p", "old.example", [["a", "1"]]],
    "curl --cookie a=/x -e https://shop.example/cart https://old.example/p -d a=1 -o /tmp/answer": [
        "POST",
        "/p",
        "old.example",
        [["a", "1"]],
    ],
    "$ curl -ks $BASE/p -d a=1 -H 'Accept: */*' | python -m json.tool": ["POST", "/p", "$BASE", [["a", "1"]]],
    "curl old.example/p?a=1&b=2": ["GET", "/p", "old.example", [["a", "1"], ["b", "2"]]],
    "curl https://old.example/p --data-raw @x=1 --data-urlencode 'b=1 2' --data-urlencode =c=3": [
        "POST",
        "/p",
        "old.example",
        [["@x", "1"], ["b", "1 2"], ["c=3", ""]],
    ],
    "curl -I https://old.example/p": ["GET", "/p", "old.example", []],
    "HEAD /p HTTP/1.1\nHost: old.example": ["GET", "/p", "old.example", []],
    "curl https://old.example/p --data-urlencode card@file": "--data-urlencode names a file: paste what is in it",
    "curl https://old.example/p --json '{}'": "--json sends JSON, which is refused here: send form parameters with -d",
    'POST /v1/payments HTTP/1.1\n\n{"amount": 1}': (
        "its body is JSON or XML, which is refused here: send form parameters, a=1&b=2"
    ),
    "curl https://old.example/p -F a=1": "-F sends multipart/form-data, which is refused here: send it with -d",
    "curl -d a=1": "the curl command has no address",
}


def test_an_old_clients_curl_is_read_however_its_options_are_written() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PARSE], env=SOURCES, input=json.dumps(list(CURL_COMMANDS)),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [json.loads(line) for line in done.stdout.splitlines()] == list(CURL_COMMANDS.values())
