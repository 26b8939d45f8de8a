"""The samples of the docs in every language send what their curl commands send. Each is run as shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.conf import settings
from django.test import Client

from gateway.portal.client_packages import CLIENTS_DIR
from gateway.portal.sample_code import (
    ID_CHARS,
    SAMPLE_LANGUAGES,
    format_sample,
    list_sample_languages,
    nest_fields,
)
from gateway.portal.samples import API_SAMPLES, SAMPLES_BY_ENDPOINT

PATIENCE_S: Final = 180
GUZZLE: Final = Path("/usr/share/php/GuzzleHttp/autoload.php")
VARIABLES: Final = {
    name: (name.lower().replace("_", "") * ID_CHARS)[:ID_CHARS]
    for name in (
        "TOKEN",
        "ENTITY_ID",
        "PAYMENT_ID",
        "CAPTURE_ID",
        "REGISTRATION_ID",
        "CHECKOUT_ID",
        "SCHEDULE_ID",
        "PAYMENT_LINK_ID",
    )
}
WITHOUT_TOKEN: Final = {"no-token"}
"""Shown as curl and HTTP only: a package refuses an empty token before anything is sent."""
BEGINNING: Final = "### "
"""Stands before a sample's name in what a language's process prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A request as the server got it, as far as it matters. ``key``: its idempotency key."""

    method: str
    path: str
    fields: tuple[tuple[str, str], ...]
    authorization: str
    content_type: str
    key: str


@dataclass(slots=True)
class Recorder:
    """A gateway that writes down what arrives, by sample, and gives the sample's stored answer."""

    address: str
    arrived: dict[str, list[Arrival]] = field(default_factory=dict)

    def base_url(self, sample: str) -> str:
        return f"{self.address}/{sample}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recorder: Recorder

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))).decode()
        at = urlsplit(self.path)
        name, _, path = at.path.removeprefix("/").partition("/")
        self.recorder.arrived.setdefault(name, []).append(
            Arrival(
                method=self.command,
                path=f"/{path}",
                fields=tuple(sorted([*parse_qsl(at.query, strict_parsing=bool(at.query)), *parse_qsl(body)])),
                authorization=self.headers.get("Authorization", ""),
                content_type=self.headers.get("Content-Type", "").split(";")[0],
                key=self.headers.get("Idempotency-Key", ""),
            )
        )
        sample = API_SAMPLES[name]
        answer = json.dumps(sample.answer).encode()
        self.send_response(sample.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        if sample.status == 429:
            self.send_header("Retry-After", "3600")  # longer than a client waits: it is asked once
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_DELETE = handle_any  # noqa: N815 - names of the standard library

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    class Own(Handler):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    Own.recorder = Recorder(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield Own.recorder
    server.shutdown()
    thread.join()
    server.server_close()


def list_shown(language: str) -> list[str]:
    return [name for name, sample in API_SAMPLES.items() if language in list_sample_languages(sample)]


def write_samples(recorder: Recorder, language: str, folder: Path, ending: str) -> list[Path]:
    """A file for each sample, as its page shows it."""
    written = []
    for name in list_shown(language):
        path = folder / f"{name}{ending}"
        path.write_text(format_sample(API_SAMPLES[name], language, recorder.base_url(name)) + "\n")
        written.append(path)
    return written


def run(*command: str | Path, folder: Path, **more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    ran = subprocess.run(
        [str(one) for one in command],
        cwd=folder,
        env={**environment, **VARIABLES, **more},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def find_program(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: Debian's {package} has it")
    return found


# --- one process per language -----------------------------------------------------------------------------------------


def run_curl(recorder: Recorder, folder: Path) -> str:
    files = write_samples(recorder, "curl", folder, ".sh")
    commands = "".join(f". ./{path.name}\n" for path in files)
    quiet = 'curl() { command curl --silent --show-error --output /dev/null "$@"; }\n'
    (folder / "all.sh").write_text(f"set -eu\n{quiet}{commands}")
    return run(find_program("bash", "bash"), "all.sh", folder=folder)


def run_python(recorder: Recorder, folder: Path) -> str:
    files = write_samples(recorder, "python", folder, ".py")
    runs = "import runpy\n" + "".join(
        f"print({BEGINNING + path.stem!r})\nrunpy.run_path({path.name!r})\n" for path in files
    )
    (folder / "all.py").write_text(runs)
    return run(sys.executable, "all.py", folder=folder, PYTHONPATH=str(CLIENTS_DIR / "python/src"))


def run_javascript(recorder: Recorder, folder: Path) -> str:
    node = find_program("node", "nodejs")
    files = write_samples(recorder, "javascript", folder, ".mjs")
    place = folder / "node_modules/@tollhouse"
    place.mkdir(parents=True)
    (place / "client").symlink_to(CLIENTS_DIR / "javascript")
    runs = "".join(f'console.log("{BEGINNING}{path.stem}");\nawait import("./{path.name}");\n' for path in files)
    (folder / "all.mjs").write_text(runs)
    return run(node, "all.mjs", folder=folder)


AUTOLOAD: Final = """<?php
if (!class_exists(Tollhouse\\Client::class)) {
    require '%s';
    spl_autoload_register(static function (string $class): void {
        if (str_starts_with($class, 'Tollhouse\\\\')) {
            require '%s/' . strtr(substr($class, 10), '\\\\', '/') . '.php';
        }
    });
}
"""


def run_php(recorder: Recorder, folder: Path) -> str:
    php = find_program("php", "php-cli")
    if not GUZZLE.exists():
        pytest.skip("Guzzle is not installed: Debian's php-guzzlehttp-guzzle has it")
    files = write_samples(recorder, "php", folder, ".php")
    (folder / "vendor").mkdir()
    (folder / "vendor/autoload.php").write_text(AUTOLOAD % (GUZZLE, CLIENTS_DIR / "php/src"))
    runs = "".join(f"echo '{BEGINNING}{path.stem}', PHP_EOL;\nrequire './{path.name}';\n" for path in files)
    (folder / "all.php").write_text(f"<?php\n{runs}")
    return run(php, "all.php", folder=folder)


def run_http(recorder: Recorder, _: Path) -> str:
    """The text itself over a connection, with the variables filled in and the line ends of HTTP."""
    at = urlsplit(recorder.address)
    for name in list_shown("http"):
        text = format_sample(API_SAMPLES[name], "http", recorder.base_url(name))
        head, _between, body = re.sub(r"\$([A-Z_]+)", lambda found: VARIABLES[found[1]], text).partition("\n\n")
        sent = head.replace("\n", "\r\n") + "\r\nConnection: close\r\n\r\n" + body
        with socket.create_connection((at.hostname or "", at.port or 0), timeout=PATIENCE_S) as connection:
            connection.sendall(sent.encode())
            answer = connection.makefile("rb").read()
        assert answer.startswith(f"HTTP/1.1 {API_SAMPLES[name].status} ".encode()), name
    return ""


RUNS: Final[Mapping[str, Callable[[Recorder, Path], str]]] = {
    "python": run_python,
    "javascript": run_javascript,
    "php": run_php,
    "http": run_http,
}


def test_every_language_is_run() -> None:
    assert {"curl", *RUNS} == set(SAMPLE_LANGUAGES)
    for name, sample in API_SAMPLES.items():
        assert set(list_sample_languages(sample)) == (
            {"curl", "http"} if name in WITHOUT_TOKEN else set(SAMPLE_LANGUAGES)
        )


@pytest.mark.processes
@pytest.mark.parametrize("language", RUNS)
def test_the_samples_of_a_language_send_what_curl_sends(language: str, recorder: Recorder, tmp_path: Path) -> None:
    """Look and feel, Docs: every example runs as shown."""
    run_curl(recorder, tmp_path)
    expected, recorder.arrived = recorder.arrived, {}
    assert set(expected) == set(API_SAMPLES)
    folder = tmp_path / language
    folder.mkdir()
    printed = RUNS[language](recorder, folder)
    assert set(recorder.arrived) == set(list_shown(language))
    for name, arrived in recorder.arrived.items():
        (by_curl,) = expected[name]
        (found,) = arrived
        # The packages send a key of their own with everything that moves money.
        key = found.key if not by_curl.key else by_curl.key
        assert found == Arrival(**{**{one: getattr(by_curl, one) for one in Arrival.__slots__}, "key": key}), name
    if language != "http":
        check_printed(printed)


def check_printed(printed: str) -> None:
    """Each sample prints its answer's result code, or a line for each row."""
    parts = {name: text for part in printed.split(BEGINNING)[1:] for name, _, text in [part.partition("\n")]}
    for name, text in parts.items():
        answer = API_SAMPLES[name].answer
        rows = answer.get("records", answer.get("aggregations", answer.get("reconciliations")))
        assert answer["result"]["code"] in text or (rows and len(text.splitlines()) >= len(rows)), (name, text)


def test_dotted_names_are_nested_as_the_packages_take_them() -> None:
    assert nest_fields(
        {
            "amount": "1.00",
            "card.number": "4",
            "cart.items[0].name": "Pen",
            "cart.items[1].name": "Ink",
            "customParameters[order.kind]": "gift",
        }
    ) == {
        "amount": "1.00",
        "card": {"number": "4"},
        "cart": {"items": [{"name": "Pen"}, {"name": "Ink"}]},
        "customParameters": {"order.kind": "gift"},
    }


# --- the pages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", SAMPLE_LANGUAGES)
def test_a_page_gets_the_code_of_a_language(language: str) -> None:
    for name in list_shown(language):
        answer = Client().get(f"/docs/samples/{name}.{language}")
        shown = unescape(re.sub(r"<[^>]+>", "", answer.content.decode()))
        assert shown == format_sample(API_SAMPLES[name], language, settings.GATEWAY_BASE_URL), name
        again = Client().get(f"/docs/samples/{name}.{language}", headers={"If-None-Match": answer["ETag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("address", ["pay.cobol", "no-such.python", "no-token.php"])
def test_there_is_no_code_of_what_is_not_shown(address: str) -> None:
    assert Client().get(f"/docs/samples/{address}").status_code == 404


def test_the_page_fills_in_the_variables_of_every_language() -> None:
    for language in SAMPLE_LANGUAGES:
        body = Client().get(f"/docs/samples/pay.{language}").content.decode()
        assert body.count('data-variable="ENTITY_ID"') == 1, language
        assert ('data-quote="' in body) == (language not in ("curl", "http")), language


def test_a_page_carries_its_samples_as_curl_and_the_names_of_the_other_languages() -> None:
    """Without its script a page shows curl; the other languages do not make it longer."""
    text = Client().get("/docs/reference/payment").content.decode()
    for name in SAMPLES_BY_ENDPOINT["payment"]:
        assert f'data-sample="{name}" data-languages="curl python javascript php http"' in text
    assert "from tollhouse" not in text
