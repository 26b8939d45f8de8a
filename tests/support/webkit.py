"""Drives Debian's WebKit, the engine of Safari, by its WebKitWebDriver over HTTP. Its small browser draws on a screen
of its own (Xvfb): it has no mode without one.

Source: https://www.w3.org/TR/webdriver2/
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.driven_browser import ELEMENT, PATIENCE_S, BrowserError, DrivenBrowser, Element, Installed
from tests.support.ports import free_port

DRIVER, SCREEN = Path("/usr/bin/WebKitWebDriver"), Path("/usr/bin/Xvfb")
LIBRARIES = Path("/usr/lib")
_OWN_SCREEN = "800x1100x24"


def find_browser() -> Path | None:
    """The small browser that comes with the engine; the folder has the machine's name and the interface's number."""
    return next(iter(sorted(LIBRARIES.glob("*/webkit2gtk-4.*/MiniBrowser"))), None)


@dataclass(frozen=True, kw_only=True)
class WebKit(DrivenBrowser):
    """One window of WebKit. ``http``: its session at the driver."""

    http: httpx.Client

    def call(self, path: str, **parameters: Any) -> Any:
        """The result of a command. Raises BrowserError."""
        return _read(self.http.post(path, json=parameters))

    def open(self, url: str) -> None:
        self.call("url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.call("execute/sync", script=script, args=list(arguments))

    def find_now(self, selector: str) -> Element:
        found: Element = self.call("element", using="css selector", value=selector)
        return found

    def click_element(self, element: Element) -> None:
        self.call(f"element/{element[ELEMENT]}/click")

    def send_keys(self, element: Element, text: str) -> None:
        self.call(f"element/{element[ELEMENT]}/value", text=text)

    def type(self, selector: str, text: str, *, frame: str = "", anew: bool = False) -> None:
        """In a frame of another origin the driver takes no element for one that can be typed into: there the frame is
        clicked, as a shopper does, and the keys are pressed."""
        if not frame:
            super().type(selector, text, anew=anew)
            return
        end = time.monotonic() + PATIENCE_S
        self.click(frame)
        # A form that still opens moves away from under the click.
        while not self.run("return document.activeElement === document.querySelector(arguments[0])", frame):
            assert time.monotonic() < end, f"it never had the focus: {frame}"
            self.click(frame)
        if anew:
            self.enter_frame(self.find(frame))
            self.run("document.querySelector(arguments[0]).select()", selector)
            self.enter_frame(None)
        pressed = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("actions", actions=[{"type": "key", "id": "keyboard", "actions": pressed}])

    def enter_frame(self, element: Element | None) -> None:
        self.call("frame", id=element)

    def screenshot(self) -> str:
        return str(_read(self.http.get("screenshot")))


def _read(answer: httpx.Response) -> Any:
    value = answer.json()["value"]
    if answer.is_error:
        raise BrowserError(f"{answer.request.url.path}: {value['error']}: {value['message']}")
    return value


@contextmanager
def webkit(profile: Path, width: int = 390, height: int = 900) -> Iterator[WebKit]:
    """A WebKit with the folder ``profile`` as its home. Its window may be a little wider than asked for."""
    with _screen() as display, _driver(profile, display) as driver:
        options = {"binary": str(find_browser()), "args": ["--automation"]}
        asked = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        session = _read(driver.post("session", json={"capabilities": asked}))["sessionId"]
        try:
            with httpx.Client(base_url=f"{driver.base_url}session/{session}/", timeout=PATIENCE_S) as http:
                browser = WebKit(http=http)
                browser.call("window/rect", width=width, height=height)
                yield browser
        finally:
            with suppress(httpx.HTTPError):
                driver.delete(f"session/{session}")


@contextmanager
def _screen() -> Iterator[str]:
    """The name of a screen that nobody sees. Xvfb takes a number itself and tells it."""
    told, tells = os.pipe()
    command = [str(SCREEN), "-displayfd", str(tells), "-screen", "0", _OWN_SCREEN, "-nolisten", "tcp"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, pass_fds=[tells], start_new_session=True, **quiet) as process:
        os.close(tells)
        try:
            with os.fdopen(told) as line:
                number = line.readline().strip() if select.select([line], [], [], PATIENCE_S)[0] else ""
            if not number:
                pytest.skip("Xvfb is installed but makes no screen here")
            yield f":{number}"
        finally:
            _end(process)


@contextmanager
def _driver(profile: Path, display: str) -> Iterator[httpx.Client]:
    """A driver that answers. It can be given a port only, and ends where another program was faster: then the next."""
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(profile), "DISPLAY": display, "GDK_BACKEND": "x11", "NO_AT_BRIDGE": "1",
        "LIBGL_ALWAYS_SOFTWARE": "1", "WEBKIT_DISABLE_COMPOSITING_MODE": "1", "LANG": "C.UTF-8",
    }  # fmt: skip
    end = time.monotonic() + PATIENCE_S
    while True:
        port = free_port()
        process = subprocess.Popen(
            [str(DRIVER), f"--port={port}", "--host=127.0.0.1"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/", timeout=PATIENCE_S) as http:
                if _is_ready(http, process, end):
                    yield http
                    return
        finally:
            _end(process)


def _is_ready(driver: httpx.Client, process: subprocess.Popen[bytes], end: float) -> bool:
    """Whether the driver answers; False once its process has ended."""
    while process.poll() is None:
        with suppress(httpx.TransportError):
            if _read(driver.get("status"))["ready"]:
                return True
        if time.monotonic() > end:
            pytest.skip("WebKit is installed but cannot be driven here")
        time.sleep(0.1)
    return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its group: a driver's browser has processes of its own."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE_S / 6)
            return


INSTALLED = Installed(
    "webkit", DRIVER.exists() and SCREEN.exists() and find_browser() is not None,
    "no WebKit here (apt-get install webkit2gtk-driver xvfb)", webkit,
)  # fmt: skip
