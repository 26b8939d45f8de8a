"""The section settlementSources: from which SFTP servers institutes' files are fetched. Secrets stand in files of their
own, and are sealed. Institutes belong to the whole installation: the section is the same in whoever's document.

{"settlementSources": {"sources": [{"institute": "acme", "host": "sftp.acme.example", "username": "shop",
"keyFile": "acme.key", "hostKey": "ssh-ed25519 AAAA…"}]}}

Source: issue 8, settlement intake; decision 0042.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from gateway import audit
from gateway import document as d
from gateway.configuration.section import Section, Target
from gateway.secret import Secret
from reporting import fetching, sftp
from reporting.incoming import SftpSource
from reporting.models import ClearingInstitute

MOST_SOURCES: Final = 200
MOST_SECRET_BYTES: Final = 65_536
BY: Final = audit.Actor(name="configuration")
_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {"passwordFile": SftpSource.Secrets.PASSWORD.value, "keyFile": SftpSource.Secrets.KEY.value}
)
"""Member → the kind of the secret in the file that it names."""


def _host_key(value: Any, path: str, faults: d.Faults) -> Any:
    found = _LINE(value, path, faults)
    try:
        if isinstance(found, str):
            sftp.key_of(found)
    except ValueError as fault:
        faults.add(path, f"must be a host key: {fault}")
    return found


_LINE: Final = d.text(1, 1024)
_SOURCE: Final = d.record(
    institute=d.need(d.text(1, 32)), host=d.need(d.text(1, 255)), port=d.may(d.whole(1, 65_535), 22),
    username=d.need(d.text(1, 64)), passwordFile=d.may(d.text(1, 255)), keyFile=d.may(d.text(1, 255)),
    hostKey=d.need(_host_key), folder=d.may(d.text(1, 255), "."), pattern=d.may(d.text(1, 64), "*"),
    moveTo=d.may(d.text(0, 64, r"(?!\.{1,2}$)[^/]*", says="the name of a folder below, e.g. done; empty: files stay"),
                 ""),
    everySeconds=d.may(d.whole(fetching.SHORTEST_S, fetching.LONGEST_S), 300), active=d.may(d.flag, True),
)  # fmt: skip
_LIST: Final = d.record(sources=d.need(d.list_of(_SOURCE, most=MOST_SOURCES)))


def _shape(value: Any, path: str, faults: d.Faults) -> Any:
    found = _LIST(value, path, faults)
    seen: set[str] = set()
    for place, one in enumerate(found["sources"] or ()):
        where = f"{path}.sources[{place}]"
        if (key := str(one["institute"])) in seen:
            faults.add(d.within(where, "institute"), "has a source before: an institute has one")
        seen.add(key)
        if one["passwordFile"] is not None and one["keyFile"] is not None:
            faults.add(d.within(where, "keyFile"), "cannot be there beside passwordFile: name one of them")
    return found


def _check(target: Target, value: Mapping[str, Any], path: str, faults: d.Faults) -> None:
    known = {one.key: one for one in ClearingInstitute.objects.filter(active=True)}
    kept = {one.institute_id: one for one in SftpSource.objects.filter(institute__in=known.values())}
    for place, one in enumerate(value["sources"]):
        where = f"{path}.sources[{place}]"
        institute = known.get(one["institute"])
        if institute is None:
            there, hint = ", ".join(known) or "none yet", d.meant(one["institute"], known)
            shown = d.shown(one["institute"])
            faults.add(d.within(where, "institute"), f"must be the key of an institute ({there}), not {shown}{hint}")
            continue
        named = next((name for name in _KINDS if one[name] is not None), None)
        if named is not None:
            _secret(target, named, one[named], where, faults)
        elif not _same_place(kept.get(institute.pk), one):
            why = "is required, or keyFile: a secret is kept only for the same host, port and username"
            faults.add(d.within(where, "passwordFile"), why)


def _same_place(kept: SftpSource | None, one: Mapping[str, Any]) -> bool:
    return kept is not None and all(getattr(kept, name) == one[name] for name in ("host", "port", "username"))


def _secret(target: Target, name: str, file: str, path: str, faults: d.Faults) -> Secret | None:
    """What stands in a file beside the document. It is never repeated in a fault."""
    where = d.within(path, name)
    try:
        octets = Path(target.folder, file).read_bytes()
        text = octets[: MOST_SECRET_BYTES + 1].decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, ValueError):
        folder = d.shown(str(target.folder))
        faults.add(where, f"{d.shown(file)} cannot be read as text; it is looked for in {folder}")
        return None
    if not text or len(octets) > MOST_SECRET_BYTES:
        faults.add(where, f"{d.shown(file)} must hold 1 to {MOST_SECRET_BYTES:,} bytes")
        return None
    secret = Secret(f"{text}\n" if name == "keyFile" else text)
    try:
        if name == "keyFile":
            sftp.private(secret)
    except ValueError as fault:
        faults.add(where, f"{d.shown(file)}: {fault}")
    return secret


def _apply(target: Target, value: Mapping[str, Any]) -> None:
    known = {one.key: one for one in ClearingInstitute.objects.filter(active=True)}
    for one in value["sources"]:
        named = next((name for name in _KINDS if one[name] is not None), None)
        faults = d.Faults()
        secret = _secret(target, named, one[named], named, faults) if named is not None else None
        if faults:  # the file went since it was looked at
            raise d.Unreadable(faults)
        fetching.fetch_from(
            known[one["institute"]], host=one["host"], port=one["port"], username=one["username"],
            kind=_KINDS[named] if named is not None else "", secret=secret, host_key=one["hostKey"],
            folder=one["folder"], pattern=one["pattern"],
            then=SftpSource.Then.MOVE if one["moveTo"] else SftpSource.Then.LEAVE, moved_to=one["moveTo"] or "done",
            every_s=one["everySeconds"], active=one["active"], by=BY,
        )  # fmt: skip


def _show(target: Target) -> dict[str, Any]:
    rows = SftpSource.objects.filter(institute__active=True).select_related("institute").order_by("institute__key")
    return {
        "sources": [
            {"institute": row.institute.key, "host": row.host, "port": row.port, "username": row.username,
             "hostKey": row.host_key, "folder": row.folder, "pattern": row.pattern,
             "moveTo": row.moved_to if row.then == SftpSource.Then.MOVE else "", "everySeconds": row.every_s,
             "active": row.active}
            for row in rows
        ]
    }  # fmt: skip


SETTLEMENT_SOURCES: Final = Section(
    name="settlementSources", shape=_shape, check=_check, apply=_apply, show=_show, of_channel=False,
    about="SFTP servers from which settlement files are fetched, each named by its institute. A secret comes from a "
    "file beside the document. Sources that are not named stay.",
)  # fmt: skip
