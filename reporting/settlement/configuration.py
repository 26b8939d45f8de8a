"""The configuration section settlementSources: SFTP servers from which institutes' files are fetched.

Secrets are in files of their own, and are stored sealed. Institutes belong to the whole installation, so the section is
the same in every merchant's document.

{"settlementSources": {"sources": [{"institute": "acme", "host": "sftp.acme.example", "username": "shop",
"keyFile": "acme.key", "hostKey": "ssh-ed25519 AAAA…"}]}}

Source: decision 0042.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway.access import audit_log
from gateway.configuration.section import ConfigurationSection, ConfigurationTarget
from gateway.core import document as d
from gateway.core.secret import Secret
from reporting import sftp
from reporting.settlement import sftp_fetch
from reporting.settlement.models import ClearingInstitute, SftpSource

MAX_SETTLEMENT_SOURCES: Final = 200
MAX_SFTP_SECRET_BYTES: Final = 65_536
CONFIGURATION_ACTOR: Final = audit_log.Actor(name="configuration")
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {"passwordFile": SftpSource.SecretKind.PASSWORD.value, "keyFile": SftpSource.SecretKind.KEY.value}
)
"""Member → the kind of the secret in the file it names."""


def _host_key(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    found = _LINE(value, path, faults)
    try:
        if isinstance(found, str):
            sftp.parse_host_key(found)
    except ValueError as fault:
        faults.add(path, f"must be a host key: {fault}")
    return found


_LINE: Final = d.text_shape(1, 1024)
_SOURCE: Final = d.object_shape(
    institute=d.required_member(d.text_shape(1, 32)),
    host=d.required_member(d.text_shape(1, 255)),
    port=d.optional_member(d.integer_shape(1, 65_535), 22),
    username=d.required_member(d.text_shape(1, 64)),
    passwordFile=d.optional_member(d.text_shape(1, 255)),
    keyFile=d.optional_member(d.text_shape(1, 255)),
    hostKey=d.required_member(_host_key),
    folder=d.optional_member(d.text_shape(1, 255), "."),
    pattern=d.optional_member(d.text_shape(1, 64), "*"),
    moveTo=d.optional_member(
        d.text_shape(0, 64, r"(?!\.{1,2}$)[^/]*", says="the name of a folder below, e.g. done; empty: files stay"), ""
    ),
    everySeconds=d.optional_member(
        d.integer_shape(sftp_fetch.MIN_FETCH_INTERVAL_S, sftp_fetch.MAX_FETCH_INTERVAL_S), 300
    ),
    active=d.optional_member(d.boolean_shape, True),
)
_LIST: Final = d.object_shape(sources=d.required_member(d.list_shape(_SOURCE, most=MAX_SETTLEMENT_SOURCES)))


def _parse_source(value: Any, path: str, faults: d.DocumentFaults) -> Any:
    found = _LIST(value, path, faults)
    seen: set[str] = set()
    for place, one in enumerate(found["sources"] or ()):
        where = f"{path}.sources[{place}]"
        if (key := str(one["institute"])) in seen:
            faults.add(d.member_path(where, "institute"), "has a source before: an institute has one")
        seen.add(key)
        if one["passwordFile"] is not None and one["keyFile"] is not None:
            faults.add(d.member_path(where, "keyFile"), "cannot be there beside passwordFile: name one of them")
    return found


def _check_section(target: ConfigurationTarget, value: Mapping[str, Any], path: str, faults: d.DocumentFaults) -> None:
    known = {one.key: one for one in ClearingInstitute.objects.filter(active=True)}
    kept = {one.institute_id: one for one in SftpSource.objects.filter(institute__in=known.values())}
    for place, one in enumerate(value["sources"]):
        where = f"{path}.sources[{place}]"
        institute = known.get(one["institute"])
        if institute is None:
            there, hint = ", ".join(known) or "none yet", d.suggest_name(one["institute"], known)
            shown = d.abbreviate_value(one["institute"])
            faults.add(
                d.member_path(where, "institute"), f"must be the key of an institute ({there}), not {shown}{hint}"
            )
            continue
        named = next((name for name in _KINDS if one[name] is not None), None)
        if named is not None:
            _read_secret(target, named, one[named], where, faults)
        elif not _is_same_server(kept.get(institute.pk), one):
            why = "is required, or keyFile: a secret is kept only for the same host, port and username"
            faults.add(d.member_path(where, "passwordFile"), why)


def _is_same_server(kept: SftpSource | None, one: Mapping[str, Any]) -> bool:
    return kept is not None and all(getattr(kept, name) == one[name] for name in ("host", "port", "username"))


def _read_secret(
    target: ConfigurationTarget, name: str, file: str, path: str, faults: d.DocumentFaults
) -> Secret | None:
    """Content of a secret file beside the document. It is never repeated in a fault."""
    where = d.member_path(path, name)
    try:
        octets = Path(target.folder, file).read_bytes()
        text = octets[: MAX_SFTP_SECRET_BYTES + 1].decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, ValueError):
        folder = d.abbreviate_value(str(target.folder))
        faults.add(where, f"{d.abbreviate_value(file)} cannot be read as text; it is looked for in {folder}")
        return None
    if not text or len(octets) > MAX_SFTP_SECRET_BYTES:
        faults.add(where, f"{d.abbreviate_value(file)} must hold 1 to {MAX_SFTP_SECRET_BYTES:,} bytes")
        return None
    secret = Secret(f"{text}\n" if name == "keyFile" else text)
    try:
        if name == "keyFile":
            sftp.load_private_key(secret)
    except ValueError as fault:
        faults.add(where, f"{d.abbreviate_value(file)}: {fault}")
    return secret


def _apply_section(target: ConfigurationTarget, value: Mapping[str, Any]) -> None:
    known = {one.key: one for one in ClearingInstitute.objects.filter(active=True)}
    for one in value["sources"]:
        named = next((name for name in _KINDS if one[name] is not None), None)
        faults = d.DocumentFaults()
        secret = _read_secret(target, named, one[named], named, faults) if named is not None else None
        if faults:  # the file was deleted after it was checked
            raise d.InvalidDocumentError(faults)
        sftp_fetch.configure_source(
            known[one["institute"]],
            host=one["host"],
            port=one["port"],
            username=one["username"],
            kind=_KINDS[named] if named is not None else "",
            secret=secret,
            host_key=one["hostKey"],
            folder=one["folder"],
            pattern=one["pattern"],
            after_download=SftpSource.AfterDownload.MOVE if one["moveTo"] else SftpSource.AfterDownload.LEAVE,
            moved_to=one["moveTo"] or "done",
            every_s=one["everySeconds"],
            active=one["active"],
            by=CONFIGURATION_ACTOR,
        )


def _render_section(_target: ConfigurationTarget) -> dict[str, Any]:
    rows = SftpSource.objects.filter(institute__active=True).select_related("institute").order_by("institute__key")
    return {
        "sources": [
            {
                "institute": row.institute.key,
                "host": row.host,
                "port": row.port,
                "username": row.username,
                "hostKey": row.host_key,
                "folder": row.folder,
                "pattern": row.pattern,
                "moveTo": row.moved_to if row.after_download == SftpSource.AfterDownload.MOVE else "",
                "everySeconds": row.every_s,
                "active": row.active,
            }
            for row in rows
        ]
    }


SETTLEMENT_SOURCES_SECTION: Final = ConfigurationSection(
    name="settlementSources",
    shape=_parse_source,
    check=_check_section,
    apply=_apply_section,
    show=_render_section,
    of_channel=False,
    about="SFTP servers from which settlement files are fetched, each named by its institute. A secret comes from a "
    "file beside the document. Sources that are not named stay.",
)
