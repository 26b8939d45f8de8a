"""One part of a configuration document: each topic brings its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.core.document import DocumentFaults, DocumentShape
from gateway.models import Channel, Merchant


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationTarget:
    """Whose configuration it is. ``channel`` is None for a merchant as a whole; ``folder``: what file names in the
    document are relative to."""

    merchant: Merchant
    channel: Channel | None
    folder: Path = Path()

    @property
    def channel_there(self) -> Channel:
        """The channel, where a section has made sure that there is one."""
        assert self.channel is not None
        return self.channel


def _no_check(target: ConfigurationTarget, value: Any, path: str, faults: DocumentFaults) -> None:
    return None


def _ask_nobody(target: ConfigurationTarget, value: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSection:
    """``shape`` reads and validates without the database; ``check`` looks into it; ``apply`` writes, inside the
    document's transaction; ``show`` tells what is configured now, as the document would say it and without secrets.

    ``ask``: what has to be asked of others, before the transaction; ``check`` looks for what they said.
    ``of_channel``: it belongs to a channel, and a merchant's document may not hold it. ``brief``: ``show`` for the
    audit trail, where that would be too long.
    """

    name: str
    about: str
    shape: DocumentShape
    apply: Callable[[ConfigurationTarget, Any], None]
    show: Callable[[ConfigurationTarget], Any]
    check: Callable[[ConfigurationTarget, Any, str, DocumentFaults], None] = _no_check
    ask: Callable[[ConfigurationTarget, Any], None] = _ask_nobody
    of_channel: bool = True
    brief: Callable[[ConfigurationTarget], Any] | None = None

    def told(self, target: ConfigurationTarget) -> Any:
        """For the audit trail."""
        return (self.brief or self.show)(target)
