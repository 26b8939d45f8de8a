"""Proves a release in an empty environment: what was written is installed, runs, takes a payment, and is well."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

PROOF_TIMEOUT_S: Final = 900
WELL_TIMEOUT_S: Final = 120
PROOF_PAYMENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": "VISA",
        "paymentType": "DB",
        "card.number": "4200000000000000",
        "card.holder": "Jane Jones",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
    }
)
_OWN: Final = ("PYTEST_", "DJANGO_", "GATEWAY_", "DATABASE_URL", "CELERY_", "PYTHONPATH", "TOLLHOUSE_", "TEST_", "PORT")


class ReleaseError(Exception):
    """A file of the release is not what it should be, or does not run."""


def build_bare_environment(**own: str) -> dict[str, str]:
    """This process's environment without what a checkout or a test says, and with ``own``."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OWN)} | own


def prove_release(folder: Path) -> None:
    """Prove the files of ``folder``. Raises ReleaseError and subprocess.CalledProcessError."""
    check_sums(folder)
    with tempfile.TemporaryDirectory(prefix="tollhouse-release-") as name:
        work = Path(name)
        work.chmod(0o711)  # under root the database is another user's
        print("  sdist: builds the same wheel")
        compare_sdist_with_wheel(folder, work)
        print("  wheel: installed into an empty environment, each file checked against the lock")
        program = install_release(folder, work)
        print("  tollhouse run: a payment, check, doctor")
        try_installation(program, work)


def check_sums(folder: Path) -> None:
    """Compare every file with SHA256SUMS. Raises ReleaseError."""
    for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            raise ReleaseError(f"{name} is not the file that SHA256SUMS names.")


def compare_sdist_with_wheel(folder: Path, work: Path) -> None:
    """Build a wheel of the sdist, as pip would. Raises ReleaseError if it is another one."""
    (sdist,) = folder.glob("tollhouse-*.tar.gz")
    command: list[str | Path] = [
        _find_uv(),
        "build",
        "--quiet",
        "--no-build-isolation",
        "--wheel",
        "--out-dir",
        work / "wheel",
        sdist,
    ]
    _run(command, work)
    (built,) = (work / "wheel").glob("*.whl")
    if built.read_bytes() != (folder / built.name).read_bytes():
        raise ReleaseError(f"{sdist.name} builds another {built.name} than the one beside it.")


def install_release(folder: Path, work: Path) -> Path:
    """Install lock and wheel into an environment of ``work``; returns the program ``tollhouse``."""
    (wheel,) = folder.glob("tollhouse-*-py3-none-any.whl")
    (lock,) = folder.glob("tollhouse-*.lock")
    _run([_find_uv(), "venv", "--quiet", "--python", sys.executable, work / "venv"], work)
    install: list[str | Path] = [_find_uv(), "pip", "install", "--quiet", "--python", work / "venv/bin/python"]
    _run([*install, "--require-hashes", "-r", lock], work)
    _run([*install, "--no-deps", wheel], work)
    _run([_find_uv(), "pip", "check", "--quiet", "--python", work / "venv/bin/python"], work)
    return work / "venv/bin/tollhouse"


def try_installation(program: Path, work: Path) -> None:
    """`tollhouse run` in ``work`` until it is ready, one payment, `check` and `doctor`, and an orderly end. Raises
    ReleaseError."""
    variables = build_bare_environment(PORT=str(_choose_port()), TOLLHOUSE_VAR=str(work / "var"))
    output = work / "output"
    with output.open("w", encoding="utf-8") as stream:
        running = subprocess.Popen(
            [program, "run"], cwd=work, env=variables, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_until_ready(running, output)
        _pay(work / "var/demo.env", f"http://127.0.0.1:{variables['PORT']}")
        _run([program, "check"], work, variables)
        _wait_until_well(program, work, variables)
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGTERM)
        code = running.wait(PROOF_TIMEOUT_S)
    if code != 0:
        raise ReleaseError(f"tollhouse run ended with {code}:\n{output.read_text(encoding='utf-8')}")


def _wait_until_ready(running: subprocess.Popen[bytes], output: Path) -> None:
    until = time.monotonic() + PROOF_TIMEOUT_S
    while "Ready for payments" not in output.read_text(encoding="utf-8"):
        if running.poll() is not None or time.monotonic() > until:
            raise ReleaseError(f"tollhouse run is not ready:\n{output.read_text(encoding='utf-8')}")
        time.sleep(0.2)


def _wait_until_well(program: Path, work: Path, variables: Mapping[str, str]) -> None:
    """Ask the doctor until it finds no error: the first timers run some seconds after the web server is ready."""
    until = time.monotonic() + WELL_TIMEOUT_S
    while True:
        try:
            return _run([program, "doctor", "--offline", "--quiet"], work, variables)
        except ReleaseError:
            if time.monotonic() > until:
                raise
        time.sleep(1)


def _pay(file: Path, base: str) -> None:
    lines = (line.removeprefix("export ").strip() for line in file.read_text(encoding="utf-8").splitlines())
    demo = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    body = urllib.parse.urlencode({"entityId": demo["ENTITY_ID"], **PROOF_PAYMENT}).encode()
    token = {"Authorization": f"Bearer {demo['TOKEN']}"}
    request = urllib.request.Request(f"{base}/v1/payments", body, token)  # noqa: S310 - our own server
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own server
        said = answer.read()
    if b'"000.100.110"' not in said:
        raise ReleaseError(f"The first payment was not approved: {said!r}")


def _run(command: Sequence[str | Path], work: Path, variables: Mapping[str, str] | None = None) -> None:
    environment = variables or build_bare_environment()
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=PROOF_TIMEOUT_S)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise ReleaseError(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def _find_uv() -> Path:
    return Path(sys.executable).with_name("uv")


def _choose_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
