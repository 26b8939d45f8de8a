"""A browser other than Chromium, driven by the commands of WebDriver, whatever carries them."""

from __future__ import annotations

import base64
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 60
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The name under which WebDriver hands out an element. Source: https://www.w3.org/TR/webdriver2/#elements"""
Element = dict[str, str]


class BrowserError(Exception):
    """The browser answered a command with an error, or has ended."""


class DrivenBrowser(ABC):
    """One window."""

    @abstractmethod
    def open(self, url: str) -> None: ...

    @abstractmethod
    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns."""

    @abstractmethod
    def find_now(self, selector: str) -> Element:
        """The first element of a CSS selector. Raises BrowserError if there is none."""

    @abstractmethod
    def click_element(self, element: Element) -> None: ...

    @abstractmethod
    def send_keys(self, element: Element, text: str) -> None: ...

    @abstractmethod
    def enter_frame(self, element: Element | None) -> None:
        """Commands go to the document of a frame from now on; without one, to the page."""

    @abstractmethod
    def screenshot(self) -> str:
        """A PNG, in base64."""

    def wait_for(self, script: str) -> Any:
        """What a script returns as soon as that is anything true."""
        end = time.monotonic() + PATIENCE_S
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"it never came: {script}"
            time.sleep(0.05)
        return found

    def find(self, selector: str) -> Element:
        """The first element of a CSS selector, as soon as it is there."""
        self.wait_for(f"return document.querySelector({json.dumps(selector)}) !== null")
        return self.find_now(selector)

    def click(self, selector: str) -> None:
        self.click_element(self.find(selector))

    def type(self, selector: str, text: str, *, frame: str = "", anew: bool = False) -> None:
        """Type into an element, of the ``frame`` of that selector if one is named. ``anew``: it is emptied first."""
        if frame:
            self.enter_frame(self.find(frame))
        target = self.find(selector)
        if anew:
            self.run("arguments[0].select()", target)
        self.send_keys(target, text)
        if frame:
            self.enter_frame(None)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.screenshot()))


@dataclass(frozen=True, slots=True)
class Installed:
    """A browser of Debian's. ``missing``: what is said where it is not there."""

    name: str
    present: bool
    missing: str
    start: Callable[[Path], AbstractContextManager[DrivenBrowser]]
    """Takes an empty folder for its profile."""
