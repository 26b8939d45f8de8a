"""Shorter JavaScript for the widget, without a bundler: white space goes, names that only this file uses get short.

It reads tokens, not syntax, and leaves alone whatever it cannot be sure of: a name is changed only if it is declared in
the text and never stands where a property's name could. One name becomes one other everywhere, so scopes stay as they
are. The same text always gives the same text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import count, product
from string import ascii_letters
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?")
_STRING: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGEX: Final = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_SIGN: Final = re.compile(r"\.\.\.|=>|\?\.|\?\?|\*\*|===|!==|[=!<>]=|&&|\|\||\+\+|--|[+\-*/%|&]=|.", re.DOTALL)
_RESERVED: Final = frozenset({
    "async", "await", "break", "case", "catch", "class", "const", "constructor", "continue", "default", "delete", "do",
    "else", "extends", "false", "finally", "for", "function", "get", "if", "in", "instanceof", "let", "new", "null",
    "of", "return", "set", "static", "super", "switch", "this", "throw", "true", "try", "typeof", "undefined", "var",
    "void", "while", "yield",
})  # fmt: skip
# After these a slash begins a pattern, not a division.
_BEFORE_PATTERN: Final = frozenset({
    "(", ",", "=", ":", "[", "!", "&", "|", "?", "{", "}", ";", "=>", "&&", "||", "??", "return", "typeof", "case", "+",
    "-", "...",
})  # fmt: skip
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")


class Token(NamedTuple):
    """A piece of text. `kind`: name, text, sign, line (a line's end), open/close of a template's part."""

    kind: str
    text: str


def tokens(source: str) -> list[Token]:
    """The pieces of a script. A template is text, its expressions are tokens again."""
    found: list[Token] = []
    templates: list[int] = []  # depth of braces at which each open ${ ends
    depth, at = 0, 0
    while at < len(source):
        here = source[at]
        last = next((one for one in reversed(found) if one.kind != "line"), None)
        pattern = last is None or last.text in _BEFORE_PATTERN
        if here == "\n":
            found.append(Token("line", here))
            at += 1
        elif here.isspace():
            at += 1
        elif match := _COMMENT.match(source, at):
            at = match.end()
        elif here == "`" or (here == "}" and templates and templates[-1] == depth):
            if here == "}":
                templates.pop()
                depth -= 1
            end = _template_end(source, at + 1)
            found.append(Token("text", source[at:end]))
            if source[end - 1] != "`":
                depth += 1
                templates.append(depth)
            at = end
        elif match := _NAME.match(source, at) or _NUMBER.match(source, at):
            found.append(Token("name", match.group()))
            at = match.end()
        elif match := _STRING.match(source, at) or (_REGEX.match(source, at) if pattern else None):
            found.append(Token("text", match.group()))
            at = match.end()
        else:
            match = _SIGN.match(source, at)
            sign = match.group() if match else here
            depth += {"{": 1, "}": -1}.get(sign, 0)
            found.append(Token("sign", sign))
            at += len(sign)
    return found


def _template_end(source: str, at: int) -> int:
    """Behind the closing backtick, or behind the ${ that opens an expression."""
    while source[at] != "`":
        if source[at] == "\\":
            at += 1
        elif source.startswith("${", at):
            return at + 2
        at += 1
    return at + 1


def short_names(found: list[Token]) -> dict[str, str]:
    """Name → shorter name, for names that may be changed; the most used get the shortest."""
    solid = [one for one in found if one.kind != "line"]
    uses: Counter[str] = Counter()
    declared: set[str] = set()
    kept = set(_RESERVED)
    brackets: list[str] = []
    for place, token in enumerate(solid):
        before = solid[place - 1].text if place else ""
        after = solid[place + 1].text if place + 1 < len(solid) else ""
        if token.kind == "sign" and token.text in _OPEN:
            brackets.append(token.text)
        elif token.kind == "sign" and token.text in _CLOSE and brackets:
            brackets.pop()
        elif token.kind == "text" and token.text.endswith("${"):
            if not token.text.startswith("}"):
                brackets.append("${")
        elif token.kind == "text" and token.text.startswith("}") and brackets:
            brackets.pop()
        if token.kind != "name" or not _NAME.fullmatch(token.text):
            continue
        uses[token.text] += 1
        inner = brackets[-1] if brackets else ""
        listed = before in ("{", ",") and after in (",", "}", "=", "(", ":")
        if before in (".", "?.", "get", "set") or (inner == "{" and (listed or after == ":")):
            kept.add(token.text)
        if before in ("const", "let", "function", "class") or after == "=>":
            declared.add(token.text)
        elif inner in ("(", "[") and before in ("(", "[", ",", "...") and after in (")", "]", ",", "="):
            declared.add(token.text) if _is_list_of_names(solid, place) else None
    taken = set(uses) | kept
    fresh = (name for name in _names() if name not in taken)
    order = sorted((name for name in declared - kept if len(name) > 2), key=lambda name: (-uses[name], name))
    return {name: next(fresh) for name in order}


def _is_list_of_names(solid: list[Token], place: int) -> bool:
    """Whether the brackets around belong to parameters or to a pattern: `(…) =>`, `function f(…)`, `const […]`."""
    depth, at = 0, place
    while at >= 0 and depth >= 0:
        at -= 1
        depth += (solid[at].text in _CLOSE) - (solid[at].text in _OPEN) if solid[at].kind == "sign" else 0
    start, depth, end = at, 0, place
    while depth >= 0:
        end += 1
        depth += (solid[end].text in _OPEN) - (solid[end].text in _CLOSE) if solid[end].kind == "sign" else 0
    behind = solid[end + 1].text if end + 1 < len(solid) else ""
    ahead = [solid[start - back].text if start >= back else "" for back in (1, 2)]
    if solid[start].text == "(":
        return behind == "=>" or "function" in ahead or ahead[0] == "catch"
    return ahead[0] in ("const", "let") or (solid[start].text == "[" and ahead[0] in ("(", ",") and start > 0
                                            and _is_list_of_names(solid, start))  # fmt: skip


def _names() -> Iterator[str]:
    for length in count(1):
        yield from ("".join(letters) for letters in product(ascii_letters, repeat=length))


def shorten(source: str) -> str:
    """The same script in fewer bytes."""
    found = tokens(source)
    names = short_names(found)
    text: list[str] = []
    last, line = Token("sign", ";"), False
    for token in found:
        if token.kind == "line":
            line = True
            continue
        shown = names.get(token.text, token.text) if token.kind == "name" else token.text
        ended = last.kind == "sign" and last.text in {*";{,(:?[=.", "=>", "&&", "||", "??"}
        begins = token.kind == "sign" and token.text in {*"}),;:?].", "&&", "||", "??", "?."}
        if line and not ended and not begins:
            text.append("\n")
        elif _would_stick(text[-1] if text else "", shown):
            text.append(" ")
        text.append(shown)
        last, line = token, False
    return "".join(text)


def _would_stick(before: str, after: str) -> bool:
    """Whether two pieces would be read as one without a space."""
    if not before or not after:
        return False
    wordy = re.compile(r"[\w$]")
    if wordy.match(before[-1]) and wordy.match(after[0]):
        return True
    return before[-1] + after[0] in ("++", "--", "//", "/*")
