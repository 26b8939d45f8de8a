"""Conditions between parameters, as values.

A rule's ``text`` is both the sentence in the docs and the error message; ``keeps`` and ``breaks`` are one request
fragment that obeys and one that does not, so that a single test can check all rules. Names are relative to the
structure of the rule (``houseNumber1``), or full names for a rule of an endpoint (``billing.street1``).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Set
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType

from gateway.core.card_number import CardNumber
from gateway.core.secret import Secret

RuleBreach = tuple[str, str]
"""(parameter name, message): the name is relative to the rule's structure."""


class RuleInput:
    """The input of a rule: accepted values below one prefix, and facts about the channel and the request.

    A value that was sent but is not well-formed counts as sent (``in``, ``any``, ``missing``) and has no value
    (``get``), so that it is reported once. ``facts``: words such as ``threeds`` (the channel authenticates cards),
    ``cvv`` (the channel requires a CVV), ``live``; see gateway.catalogue.endpoints. Secrets count as sent (``in``),
    cannot be read with ``get``, but with ``secret``; :meth:`card` gives facts about the card number.
    """

    __slots__ = ("_card", "_faulty", "_prefix", "_secrets", "_values", "facts")

    def __init__(
        self,
        values: Mapping[str, str],
        prefix: str = "",
        facts: frozenset[str] = frozenset(),
        faulty: Container[str] = frozenset(),
        secrets: Mapping[str, Secret] = MappingProxyType({}),
    ) -> None:
        self._values = values
        self._secrets = secrets
        self._card: CardNumber | None = None
        self._faulty = faulty
        self._prefix = f"{prefix}." if prefix else ""
        self.facts = facts

    def get(self, name: str) -> str | None:
        """The value, or None. LookupError for a secret, which no rule may read by accident."""
        full = self._prefix + name
        if full in self._secrets:
            raise LookupError(f"{full} is a secret")
        return self._values.get(full)

    def secret(self, name: str) -> Secret | None:
        return self._secrets.get(self._prefix + name)

    def card(self) -> CardNumber | None:
        """Facts about ``card.number``; None if none was sent."""
        if self._card is None and (number := self.secret("card.number")) is not None:
            self._card = CardNumber.of(number)
        return self._card

    def values(self) -> Iterator[tuple[str, str]]:
        """All non-secret values by full name, whatever the prefix."""
        yield from self._values.items()

    def __getitem__(self, name: str) -> str:
        return self._values[self._prefix + name]

    def __contains__(self, name: str) -> bool:
        full = self._prefix + name
        return full in self._values or full in self._secrets or full in self._faulty

    def any(self, *names: str) -> bool:
        return any(name in self for name in names)

    def missing(self, *names: str) -> list[str]:
        return [name for name in names if name not in self]

    def under(self, prefix: str) -> list[str]:
        """The names sent that start with ``prefix``, e.g. ``customer.``."""
        start = self._prefix + prefix
        return [
            name[len(self._prefix) :]
            for names in (self._values, self._secrets)
            for name in names
            if name.startswith(start)
        ]

    def amount(self, name: str) -> Decimal | None:
        text = self.get(name)
        return None if text is None else Decimal(text)


RuleCheck = Callable[[RuleInput], Iterator[RuleBreach]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRule:
    """One condition. ``code``: the result code of a breach; the default is the validation error 200.300.404,
    any other refuses a well-formed value (D10). ``facts``: what must be true of the channel for the examples to hold.
    ``silent``: the error of a breach does not repeat the value. A request can only break the condition if it has one of
    the names in ``when`` (or one that begins with it, as ``cart.payments[0].primary`` with ``cart``; empty: any
    request can) and all facts in ``when_facts``: it is not checked otherwise.
    """

    text: str
    names: tuple[str, ...]
    check: RuleCheck
    keeps: Mapping[str, str]
    breaks: Mapping[str, str]
    code: str = "200.300.404"
    facts: frozenset[str] = field(default_factory=frozenset)
    silent: bool = False
    when: frozenset[str] = field(default_factory=frozenset)
    when_facts: frozenset[str] = field(default_factory=frozenset)

    def is_applicable(self, present: Set[str], facts: Set[str]) -> bool:
        """Whether a request can break it. ``present``: the names it has, and their first parts."""
        return not (self.when and self.when.isdisjoint(present)) and self.when_facts <= facts


def _example_values(*names: str) -> dict[str, str]:
    """Examples for rules that only test presence; a test uses real examples where a format matters."""
    return dict.fromkeys(names, "x")


def requires(name: str, *others: str) -> ParameterRule:
    """When ``name`` is sent, ``others`` must be sent too."""
    sentence = f"is required when {name} is sent"

    def check(sent: RuleInput) -> Iterator[RuleBreach]:
        if name in sent:
            for other in sent.missing(*others):
                yield other, sentence

    return ParameterRule(
        text=f"{name} requires {' and '.join(others)}",
        names=(name, *others),
        check=check,
        keeps=_example_values(name, *others),
        breaks=_example_values(name),
        when=frozenset({name}),
    )


def required_together(*names: str) -> ParameterRule:
    """All of ``names`` or none."""

    def check(sent: RuleInput) -> Iterator[RuleBreach]:
        absent = sent.missing(*names)
        if absent and len(absent) < len(names):
            present = [name for name in names if name not in absent]
            for name in absent:
                yield name, f"is required together with {' and '.join(present)}"

    return ParameterRule(
        text=f"{' and '.join(names)} are sent together",
        names=names,
        check=check,
        keeps=_example_values(*names),
        breaks=_example_values(names[0]),
        when=frozenset(names),
    )


def required_one_of(*names: str, when: tuple[str, ...] = ()) -> ParameterRule:
    """At least one of ``names``; ``when``: names that make it necessary (default: any row of the structure)."""
    sentence = f"{' or '.join(names)} is required"

    def check(sent: RuleInput) -> Iterator[RuleBreach]:
        if (not when or sent.any(*when)) and not sent.any(*names):
            for name in names:
                yield name, sentence

    trigger = when[0] if when else None
    return ParameterRule(
        text=sentence + (f" when {' or '.join(when)} is sent" if when else ""),
        names=(*names, *when),
        check=check,
        keeps=_example_values(names[0], *([trigger] if trigger else [])),
        breaks=_example_values(*([trigger] if trigger else [])),
        when=frozenset(when),
    )


def excludes(name: str, *others: str) -> ParameterRule:
    """``name`` excludes each of ``others``."""

    def check(sent: RuleInput) -> Iterator[RuleBreach]:
        if name in sent:
            for other in others:
                if other in sent:
                    yield other, f"cannot be combined with {name}"

    return ParameterRule(
        text=f"{name} cannot be combined with {' or '.join(others)}",
        names=(name, *others),
        check=check,
        keeps=_example_values(name),
        breaks=_example_values(name, others[0]),
        when=frozenset({name}),
    )


def required_when(
    text: str,
    condition: Callable[[RuleInput], object],
    *names: str,
    keeps: Mapping[str, str],
    breaks: Mapping[str, str],
    facts: frozenset[str] = frozenset(),
    when: tuple[str, ...] = (),
) -> ParameterRule:
    """``names`` are required when ``condition`` holds; ``text`` says when, after "is required". It can hold only with
    ``facts``, and where one of the names in ``when`` is sent, if there are any."""

    def check(sent: RuleInput) -> Iterator[RuleBreach]:
        absent = sent.missing(*names)
        if absent and condition(sent):
            for name in absent:
                yield name, f"is required {text}"

    return ParameterRule(
        text=f"{', '.join(names)}: required {text}",
        names=names,
        check=check,
        keeps=keeps,
        breaks=breaks,
        facts=facts,
        when=frozenset(when),
        when_facts=facts,
    )


def build_rule(
    text: str,
    names: tuple[str, ...],
    check: RuleCheck,
    *,
    keeps: Mapping[str, str],
    breaks: Mapping[str, str],
    code: str = "200.300.404",
    facts: frozenset[str] = frozenset(),
    silent: bool = False,
    when: tuple[str, ...] = (),
) -> ParameterRule:
    """A rule with its own check. ``when``: names of which one has to be sent for it to be broken, if there are any."""
    return ParameterRule(
        text=text,
        names=names,
        check=check,
        keeps=keeps,
        breaks=breaks,
        code=code,
        facts=facts,
        silent=silent,
        when=frozenset(when),
    )
