"""The limits of docs/running/haproxy.cfg and nginx.conf, tried with both: what the nodes would refuse unread never
reaches them. Source: docs/decisions/0050."""

from __future__ import annotations

import contextlib
import http.client
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.running.files import make_certificate, rendered
from tests.running.site import found_proxy
from tests.support.ports import free_port

PATIENCE_S = 30.0
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
UPLOAD = "/admin/reporting/settlementfile/upload/"
API, SHOPPER, OFFICE = "/v1/payments", "/shopper/0", "/admin/gateway/riskset/add/"


class Node(BaseHTTPRequestHandler):
    """Answers 200 to what comes, and reads it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        left = int(self.headers.get("Content-Length") or 0)
        while left > 0:
            left -= len(self.rfile.read(min(left, 65_536)) or b"x" * left)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.send_header("X-Sent", " ".join(self.headers))
        # What came in chunks is not looked at.
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module", params=["haproxy", "nginx"])
def proxy(request: pytest.FixtureRequest) -> Iterator[tuple[int, Path]]:
    """The plain port and the log of a proxy with the example's configuration, before a node that takes everything."""
    kind = request.param
    if not found_proxy(kind):
        pytest.skip(f"{kind} is not installed")
    # nginx's workers are another user, who does not come into pytest's own folders.
    folder = Path(tempfile.mkdtemp(prefix=f"tollhouse-{kind}-"))
    folder.chmod(0o755)
    node = ThreadingHTTPServer(("127.0.0.1", 0), Node)
    threading.Thread(target=node.serve_forever, daemon=True).start()
    plain = free_port()
    log = folder / "tollhouse.log"  # where nginx writes it; HAProxy writes to its output
    command = _command(kind, folder, node.server_port, plain)
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while _status(plain, "GET", "/") != 200:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield plain, log
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        node.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def port(proxy: tuple[int, Path]) -> int:
    return proxy[0]


def _command(kind: str, folder: Path, node: int, plain: int) -> list[str]:
    certificate, tls = make_certificate(folder), free_port()
    nodes = {f"10.0.0.1{number}:8000": f"127.0.0.1:{node}" for number in (1, 2)}
    if kind == "haproxy":
        text = rendered(
            "haproxy.cfg",
            nodes
            | {
                "bind :443": f"bind 127.0.0.1:{tls}",
                "bind :80": f"bind 127.0.0.1:{plain}",
                "/etc/haproxy/tollhouse.pem": str(certificate),
            },
        )
        (folder / "haproxy.cfg").write_text(text)
        return [found_proxy(kind), "-db", "-f", str(folder / "haproxy.cfg")]
    text = rendered(
        "nginx.conf",
        nodes
        | {
            "listen 443 ssl": f"listen 127.0.0.1:{tls} ssl",
            "listen 80;": f"listen 127.0.0.1:{plain};",
            "/etc/nginx/tollhouse.crt": str(certificate),
            "/etc/nginx/tollhouse.key": str(certificate),
            "/run/nginx-bodies": str(folder / "bodies"),
            "/var/log/nginx": str(folder),
            "http {": f"pid {folder}/nginx.pid;\nhttp {{",
        },
    )
    (folder / "nginx.conf").write_text(text)
    options = ["-p", str(folder), "-e", "stderr", "-g", "daemon off;"]
    return [found_proxy(kind), "-c", str(folder / "nginx.conf"), *options]


def _status(port: int, method: str, path: str, size: int = 0, *, kind: str = URLENCODED, **headers: str) -> int:
    """0 when there is no answer."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        line.putrequest(method, path)
        own = {"Content-Type": kind, "Content-Length": str(size)}
        for name, value in (own | {name.replace("_", "-"): value for name, value in headers.items()}).items():
            line.putheader(name, value)
        line.endheaders()
        # Whoever is refused may find the line closed before all of it is sent.
        with contextlib.suppress(OSError):
            for _ in range(size // 65_536):
                line.send(b"x" * 65_536)
            line.send(b"x" * (size % 65_536))
        return line.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        line.close()


MB = 1024 * 1024


@pytest.mark.parametrize(
    "path, size, kind, taken",
    [
        (API, 2 * MB, URLENCODED, True),
        (API, 4 * MB, URLENCODED, True),
        (API, 4 * MB + 1, URLENCODED, False),
        ("/connectors/stripe/x", MB, "application/json", True),
        ("/scheduling/v1/schedules", 9_000, URLENCODED, True),
        (SHOPPER, 8_000, URLENCODED, True),
        (SHOPPER, 9_000, URLENCODED, False),
        ("/demo/checkout", 300_000, URLENCODED, False),
        (OFFICE, MB, URLENCODED, True),
        (OFFICE, 6 * MB, URLENCODED, False),
        ("/admin/chargebacks/chargeback/0/do/", 5 * MB + 60_000, MULTIPART, True),
        (UPLOAD, 40 * MB, MULTIPART, True),
    ],
)
def test_a_proxy_sends_on_what_a_node_would_read(port: int, path: str, size: int, kind: str, taken: bool) -> None:
    assert _status(port, "POST", path, size, kind=kind) in ((200,) if taken else (400, 413))


def test_a_log_has_paths_but_no_id_that_lets_in_whoever_has_it(proxy: tuple[int, Path]) -> None:
    """Checkouts, links and invitations: who reads the log could pay, look at a receipt, or choose a password."""
    plain, log = proxy
    for path in ("/pay/SECRET", "/v1/checkouts/SECRET/payment", "/v1/paymentLinks/SECRET", "/shopper/SECRET/return"):
        assert _status(plain, "GET", f"{path}?token=SECRET") == 200
    assert _status(plain, "GET", "/admin/welcome/MQ/SECRET/") == 200
    assert _status(plain, "GET", "/v1/payments/0123?entityId=SECRET") == 200
    deadline = time.monotonic() + PATIENCE_S
    while "/v1/payments/0123" not in (text := log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "SECRET" not in text
    for begun in ("/pay/...", "/v1/checkouts/...", "/v1/paymentLinks/...", "/shopper/...", "/admin/welcome/..."):
        assert begun in text


def test_a_file_of_gigabytes_is_refused_by_its_announcement_alone(port: int) -> None:
    assert _status(port, "POST", UPLOAD, 0, kind=MULTIPART, Content_Length=str(3 * 1024**3)) == 413


@pytest.mark.parametrize("path", ["/metrics", "/%6detrics", "/%6D%65trics", "/metrics?x", "/metrics/"])
def test_figures_are_not_shown_however_their_path_is_written(port: int, path: str) -> None:
    assert _status(port, "GET", path) == 404


def test_a_log_has_no_id_of_a_path_that_is_written_otherwise(proxy: tuple[int, Path]) -> None:
    plain, log = proxy
    assert _status(plain, "GET", "/%70ay/HIDDEN") == 200
    assert _status(plain, "GET", "/v1/payments/4567") == 200
    deadline = time.monotonic() + PATIENCE_S
    while "/v1/payments/4567" not in (text := log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "HIDDEN" not in text


def test_a_path_writes_no_line_of_its_own_into_a_log(proxy: tuple[int, Path]) -> None:
    plain, log = proxy
    for path in ("/x%0aGET%20/FORGED", "/pay/%0aGET%20/FORGED", "/pay/x%0d%0aFORGED", "/v1/payments/6789"):
        assert _status(plain, "GET", path) == 200
    deadline = time.monotonic() + PATIENCE_S
    while "/v1/payments/6789" not in (text := log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert all("/x" in line for line in text.splitlines() if "FORGED" in line)


def test_a_header_that_stands_for_another_does_not_pass(port: int) -> None:
    """CGI writes X-Forwarded-For and X_Forwarded_For alike, and SCRIPT_NAME says where an application is mounted."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    line.request("GET", "/", headers={"X_Forwarded_For": "192.0.2.1", "SCRIPT_NAME": "/x", "X-Own": "1"})
    answer = line.getresponse()
    assert answer.status == 200
    assert "x-own" in answer.headers["X-Sent"].lower()
    assert "_" not in answer.headers["X-Sent"]
    assert "Python" not in answer.headers.get("Server", "")
    line.close()
