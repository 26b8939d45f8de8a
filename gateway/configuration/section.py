"""One section of a configuration document; each subject defines its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.core.document import DocumentFaults, DocumentShape
from gateway.models import Channel, Merchant


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationTarget:
    """The merchant or channel to configure. ``channel`` is None for a merchant as a whole; ``folder``: what file names
    in the document are relative to."""

    merchant: Merchant
    channel: Channel | None
    folder: Path = Path()

    @property
    def channel_there(self) -> Channel:
        """The channel, in a section that has made sure that there is one."""
        assert self.channel is not None
        return self.channel


def _no_check(_target: ConfigurationTarget, _value: Any, _path: str, _faults: DocumentFaults) -> None:
    return None


def _no_question(_target: ConfigurationTarget, _value: Any) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationSection:
    """``shape`` reads and validates without the database; ``check`` validates against it; ``apply`` writes, inside the
    document's transaction; ``show`` returns the current configuration as a document, without secrets.

    ``ask``: asks external parties, before the transaction; ``check`` uses their answers.
    ``of_channel``: a section of channels, not allowed in a merchant's document. ``brief``: a shorter ``show`` for the
    audit log.
    """

    name: str
    about: str
    shape: DocumentShape
    apply: Callable[[ConfigurationTarget, Any], None]
    show: Callable[[ConfigurationTarget], Any]
    check: Callable[[ConfigurationTarget, Any, str, DocumentFaults], None] = _no_check
    ask: Callable[[ConfigurationTarget, Any], None] = _no_question
    of_channel: bool = True
    brief: Callable[[ConfigurationTarget], Any] | None = None

    def show_for_audit(self, target: ConfigurationTarget) -> Any:
        """The current configuration for the audit log."""
        return (self.brief or self.show)(target)
