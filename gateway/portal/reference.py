"""Reference page of an endpoint: its parameters in groups, its conditions as sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.catalogue.openapi import is_deprecated, list_endpoint_rules, render_rule
from gateway.catalogue.structure import Demand, Echo, Need, Param, Structure

ENDPOINT_BY_NAME: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}
MAX_UNFOLDED_VALUES: Final = 8
"""Longer lists of values are collapsed."""

_NEEDS: Final = {Need.REQUIRED: "required", Need.CONDITIONAL: "conditional", Need.OPTIONAL: "optional"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamDoc:
    """One parameter. ``anchor``: its name, as error messages link to it."""

    anchor: str
    need: str
    allowed: str
    words: str
    example: str
    values: tuple[str, ...]
    note: str
    default: str
    tags: tuple[str, ...]

    @property
    def folds(self) -> bool:
        return len(self.values) > MAX_UNFOLDED_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamGroupDoc:
    """One table of the specification under one prefix."""

    anchor: str
    title: str
    source: str
    prefix: str
    note: str
    demand: str
    params: tuple[ParamDoc, ...]
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDoc:
    """One endpoint with its parameter groups and rules."""

    endpoint: Endpoint
    groups: tuple[ParamGroupDoc, ...]
    rules: tuple[str, ...]
    count: int


@cache
def build_endpoint_doc(name: str) -> EndpointDoc:
    """The page of one endpoint. Raises KeyError for an unknown name."""
    endpoint = ENDPOINT_BY_NAME[name]
    titles = [structure.title for structure in endpoint.structures]
    groups = tuple(
        _build_group(structure, shared=titles.count(structure.title) > 1) for structure in endpoint.structures
    )
    own = {rule for structure in endpoint.structures for rule in _list_own_rules(structure)}
    return EndpointDoc(
        endpoint=endpoint,
        groups=groups,
        rules=tuple(rule for rule in list_endpoint_rules(endpoint) if rule not in own),
        count=sum(len(group.params) for group in groups),
    )


def _list_own_rules(structure: Structure) -> tuple[str, ...]:
    return tuple(render_rule(structure, rule) for rule in structure.rules)


def _build_group(structure: Structure, *, shared: bool) -> ParamGroupDoc:
    name = structure.prefix or structure.rows[0].base
    title = f"{structure.title}: {name}" if shared else structure.title
    return ParamGroupDoc(
        anchor=_slugify(title),
        title=title,
        source=structure.source,
        prefix=structure.prefix,
        note=structure.note,
        demand=_describe_demand(structure),
        params=tuple(_build_param(structure, row) for row in structure.rows),
        rules=_list_own_rules(structure),
    )


def _describe_demand(structure: Structure) -> str:
    """When the required rows are required, in words; '' if always, or if there are none."""
    if structure.demand is not Demand.WHEN_USED or not structure.required:
        return ""
    if structure.triggers:
        names = [structure.full(row.name) for row in structure.rows if row.name in structure.triggers]
        return f"Required fields are asked for when one of {', '.join(names)} is sent."
    return f"Required fields are asked for when anything of {structure.prefix or 'this table'} is sent."


def _build_param(structure: Structure, row: Param) -> ParamDoc:
    full = structure.full(row.name)
    tags = []
    if is_deprecated(structure, row):
        tags.append("deprecated")
    if row.echo is Echo.NEVER:
        tags.append("never comes back")
    elif row.echo is Echo.MASK:
        tags.append("comes back masked")
    elif row.private:
        tags.append("not in answers")
    return ParamDoc(
        anchor=full,
        need=_NEEDS[row.need],
        allowed=_describe_format(row),
        words=row.format.words,
        example=row.format.example,
        values=row.format.values,
        note=" ".join(filter(None, (row.note, row.format.taken_too))),
        default=row.default,
        tags=tuple(tags),
    )


def _describe_format(row: Param) -> str:
    """The format in words: an error's text without "must be"."""
    if len(row.format.values) > MAX_UNFOLDED_VALUES:
        return f"One of {len(row.format.values)} values"
    text = re.sub(r"^must be (?:an? )?", "", row.format.expects)
    text = text[:1].upper() + text[1:]
    return text if not row.key else f"{text}. Key: {row.key.words}"


def _slugify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


@cache
def list_endpoints(live: bool) -> tuple[Endpoint, ...]:
    """The endpoints that exist in this environment."""
    return tuple(endpoint for endpoint in ENDPOINTS if not (live and endpoint.test_only))


def filter_endpoint_doc(doc: EndpointDoc, word: str) -> EndpointDoc:
    """The page with only the parameters that mention ``word``: the filter box without JavaScript."""
    needle = word.lower()
    groups = (
        replace(group, params=tuple(p for p in group.params if needle in f"{p.anchor} {p.note} {p.words}".lower()))
        for group in doc.groups
    )
    return replace(doc, groups=tuple(group for group in groups if group.params))
