"""Applies a configuration document: validated as a whole, then applied in one transaction, with audit log entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from gateway.access import audit_log
from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.configuration.sections import CONFIGURATION_SECTIONS
from gateway.core import document as d
from gateway.models import Channel, Merchant


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionChange:
    """What changed in one section."""

    section: str
    before: Any
    after: Any


def find_configuration_target(entity: UUID) -> ConfigurationTarget | None:
    """The channel, or merchant as a whole, with this entityId."""
    channel = Channel.objects.select_related("merchant").filter(pk=entity).first()
    if channel is not None:
        return ConfigurationTarget(merchant=channel.merchant, channel=channel)
    merchant = Merchant.objects.filter(pk=entity).first()
    return ConfigurationTarget(merchant=merchant, channel=None) if merchant is not None else None


def parse_configuration(target: ConfigurationTarget, document: Any) -> list[tuple[ConfigurationSection, Any]]:
    """The document's sections in fixed order, each with its value. Raises InvalidDocumentError with every fault."""
    faults = d.DocumentFaults()
    if not isinstance(document, Mapping):
        raise d.InvalidDocumentError(
            [d.DocumentFault(path="", message=f"must be an object with {', '.join(CONFIGURATION_SECTIONS)}")]
        )
    d.refuse_unknown_members(document, CONFIGURATION_SECTIONS, "", faults)
    sections = []
    for name, section in CONFIGURATION_SECTIONS.items():
        if name not in document:
            continue
        if section.of_channel and target.channel is None:
            faults.add(name, "belongs to a channel: name the channel's entityId")
            continue
        before = len(faults)
        value = section.shape(document[name], name, faults)
        if len(faults) == before:
            section.check(target, value, name, faults)
        sections.append((section, value))
    if faults:
        raise d.InvalidDocumentError(faults)
    return sections


def _ask_sections(target: ConfigurationTarget, document: Any) -> None:
    """Let sections ask external parties before any lock is taken. Faults of the document are reported later."""
    for name, section in CONFIGURATION_SECTIONS.items() if isinstance(document, Mapping) else ():
        if name in document and not (section.of_channel and target.channel is None):
            faults = d.DocumentFaults()
            value = section.shape(document[name], name, faults)
            if not faults:
                section.ask(target, value)


def apply_configuration(
    target: ConfigurationTarget, document: Any, *, by: audit_log.Actor, dry_run: bool = False
) -> list[SectionChange]:
    """Apply a document and return what it changed; with ``dry_run`` nothing is saved. Raises InvalidDocumentError."""
    changes = []
    _ask_sections(target, document)
    with transaction.atomic():
        # One document at a time: two at once would read lists that the other one writes.
        Merchant.objects.select_for_update().get(pk=target.merchant.pk)
        subject = target.channel or target.merchant
        for section, value in parse_configuration(target, document):
            before = section.show_for_audit(target)
            section.apply(target, value)
            after = section.show_for_audit(target)
            if before != after:
                changes.append(SectionChange(section=section.name, before=before, after=after))
                audit_log.record_audit_entry(
                    by, "configure", subject, before={section.name: before}, after={section.name: after}
                )
        if dry_run:
            transaction.set_rollback(True)
    return changes


def export_configuration(target: ConfigurationTarget) -> dict[str, Any]:
    """The current configuration as a document, without secrets."""
    return {
        name: section.show(target)
        for name, section in CONFIGURATION_SECTIONS.items()
        if target.channel is not None or not section.of_channel
    }
