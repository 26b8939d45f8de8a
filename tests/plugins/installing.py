"""Plug-ins for tests: packages installed as merchants install them, and a shop's program that answers requests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from gateway.models import WebhookDelivery
from gateway.portal.client_packages import list_client_packages, list_plug_ins
from tests.support.webhook_delivery import deliver

PATIENCE_S: Final = 120
UV: Final = Path(sys.executable).with_name("uv")
_OWN: Final = ("PYTHONPATH", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")


def bare_environment(**own: str) -> dict[str, str]:
    """This process's environment without the product's."""
    return {name: value for name, value in os.environ.items() if name not in _OWN} | own


def run(*command: str | Path, folder: Path, patience: float = PATIENCE_S) -> str:
    ran = subprocess.run(
        [str(one) for one in command],
        cwd=folder,
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    return ran.stdout


def write_wheels(folder: Path, plug_in: str) -> list[Path]:
    """The client's wheel and the plug-in's, as the docs offer them."""
    client = next(one for name, one in list_client_packages().items() if name.endswith(".whl"))
    chosen = next(one for one in list_plug_ins().values() if one.language == plug_in)
    paths = []
    for package in (client, chosen):
        (folder / package.file).write_bytes(package.build())
        paths.append(folder / package.file)
    return paths


def install_here(folder: Path, plug_in: str) -> Path:
    """An environment with both wheels; what they need is lent from this one, no registry is asked. Its Python."""
    run(UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", folder=folder)
    python = folder / "venv/bin/python"
    wheels = write_wheels(folder, plug_in)
    run(UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, *wheels, folder=folder)
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=folder).strip()
    (Path(site) / "lent.pth").write_text(sysconfig.get_path("purelib"))
    return python


@dataclass(frozen=True, slots=True)
class ShopServer:
    """A shop that runs. Redirects are not followed: a test looks where they lead."""

    url: str
    http: httpx.Client

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path if path.startswith("http") else self.url + path)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.http.post(self.url + path, json=body)


@contextlib.contextmanager
def serving(command: list[str | Path], port: int, folder: Path, environment: Mapping[str, str]) -> Iterator[ShopServer]:
    """A shop's program until the end of the block; it answers when this begins."""
    log = folder / "shop.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(one) for one in command],
            cwd=folder,
            env=dict(environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        with httpx.Client(timeout=PATIENCE_S) as http:
            until = time.monotonic() + PATIENCE_S
            while True:
                with contextlib.suppress(httpx.TransportError):
                    http.get(f"http://127.0.0.1:{port}/")
                    break
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.1)
            yield ShopServer(f"http://127.0.0.1:{port}", http)
    finally:
        # The whole group: PHP's web server leaves its workers behind.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE_S)


def deliver_all() -> None:
    """Every webhook is answered with 2xx; a shop may take its time for one."""
    until = time.monotonic() + PATIENCE_S
    while True:
        deliver()
        states = set(WebhookDelivery.objects.values_list("state", flat=True))
        if states == {"delivered"}:
            return
        assert time.monotonic() < until, states
        time.sleep(0.1)
