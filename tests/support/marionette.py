"""Drives Debian's Firefox by Marionette, the protocol that is built into it: one TCP connection, no driver program.

A message is ``<bytes>:[0, id, command, parameters]``, its answer ``<bytes>:[1, id, error, result]``; commands are those
of WebDriver. Source: https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.driven_browser import ELEMENT, PATIENCE_S, BrowserError, DrivenBrowser, Element, Installed

FIREFOX = Path("/usr/bin/firefox-esr")
_PREFERENCES = """user_pref("marionette.port", 0);
user_pref("app.normandy.enabled", false);
user_pref("app.update.disabledForTesting", true);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.telemetry.server", "");
user_pref("services.settings.server", "data:,");
"""


@dataclass(kw_only=True)
class Firefox(DrivenBrowser):
    """One window of Firefox."""

    line: socket.socket
    _last: int = 0
    _held: bytes = field(default=b"")

    def call(self, command: str, **parameters: Any) -> Any:
        """The result of a command. Raises BrowserError."""
        self._last += 1
        body = json.dumps([0, self._last, command, parameters]).encode()
        self.line.sendall(b"%d:%s" % (len(body), body))
        _, _, fault, result = self.read()
        if fault is not None:
            raise BrowserError(f"{command}: {fault['error']}: {fault['message']}")
        return result["value"] if isinstance(result, dict) and "value" in result else result

    def read(self) -> Any:
        """The next message."""
        while b":" not in self._held:
            self._held += self._receive()
        size, _, rest = self._held.partition(b":")
        while len(rest) < int(size):
            rest += self._receive()
        self._held = rest[int(size) :]
        return json.loads(rest[: int(size)])

    def _receive(self) -> bytes:
        if not (more := self.line.recv(65_536)):
            raise BrowserError("Firefox has ended")
        return more

    def open(self, url: str) -> None:
        self.call("WebDriver:Navigate", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.call("WebDriver:ExecuteScript", script=script, args=list(arguments))

    def find_now(self, selector: str) -> Element:
        found: Element = self.call("WebDriver:FindElement", using="css selector", value=selector)
        return found

    def click_element(self, element: Element) -> None:
        self.call("WebDriver:ElementClick", id=element[ELEMENT])

    def send_keys(self, element: Element, text: str) -> None:
        self.call("WebDriver:ElementSendKeys", id=element[ELEMENT], text=text)

    def enter_frame(self, element: Element | None) -> None:
        self.call("WebDriver:SwitchToFrame", **({"element": element[ELEMENT]} if element else {"id": None}))

    def screenshot(self) -> str:
        return str(self.call("WebDriver:TakeScreenshot", full=False))


@contextmanager
def firefox(profile: Path, width: int = 390, height: int = 900) -> Iterator[Firefox]:
    """A Firefox without a screen, with a new profile in the folder ``profile``."""
    (profile / "user.js").write_text(_PREFERENCES, encoding="utf-8")
    chosen = profile / "MarionetteActivePort"
    chosen.unlink(missing_ok=True)
    command = [str(FIREFOX), "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
    size = {"MOZ_HEADLESS_WIDTH": str(width), "MOZ_HEADLESS_HEIGHT": str(height), "HOME": str(profile)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={"PATH": "/usr/bin:/bin", **size}, **quiet) as process:  # type: ignore[call-overload]
        try:
            with _connect(chosen, process) as line:
                browser = Firefox(line=line)
                browser.read()  # its greeting
                browser.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"acceptInsecureCerts": False}})
                yield browser
                with suppress(BrowserError, OSError):
                    browser.call("Marionette:Quit", flags=["eForceQuit"])
        finally:
            process.terminate()


def _connect(chosen: Path, process: subprocess.Popen[bytes]) -> socket.socket:
    """Connect to the port that Firefox took, which it writes into the file ``chosen`` of its profile."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            port = int(chosen.read_text(encoding="ascii"))
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        except (OSError, ValueError):  # not there yet, or not written to its end
            assert process.poll() is None, "Firefox ended before it could be driven"
            assert time.monotonic() < end, "Firefox could not be driven"
            time.sleep(0.2)


INSTALLED = Installed("firefox", FIREFOX.exists(), "no Firefox here (apt-get install firefox-esr)", firefox)
