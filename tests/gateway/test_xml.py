"""Banks' XML as it streams: what is told of elements, and what is refused. Source: docs/settlement-files.md."""

from __future__ import annotations

import pytest

from gateway.core.xml import MAX_XML_DEPTH, MAX_XML_TEXT_CHARS, MAX_XML_TOKEN_BYTES, XML_CHUNK_BYTES, XmlStreamReader


class WrongError(Exception):
    """What the reader wants raised."""


def told(*chunks: bytes) -> list[tuple[str, ...]]:
    """Everything that is told of a document, which comes in ``chunks``."""
    found: list[tuple[str, ...]] = []

    def start(name: str, space: str, currency: str | None) -> None:
        found.append(("start", "/".join(elements.path), space, currency or ""))

    def end(name: str, text: str) -> None:
        found.append(("end", "/".join(elements.path), text))

    elements = XmlStreamReader(start, end, WrongError)
    for chunk in (*chunks, b""):
        elements.feed(chunk)
    return found


def test_elements_are_told_with_their_path_their_text_and_their_currency() -> None:
    """However the bytes come in pieces."""
    whole = b'<a xmlns="urn:x"> <b Ccy="EUR" other="1">1\n  2</b> <c/></a>'
    expected = [
        ("start", "a", "urn:x", ""),
        ("start", "a/b", "urn:x", "EUR"),
        ("end", "a/b", "1 2"),
        ("start", "a/c", "urn:x", ""),
        ("end", "a/c", ""),
        ("end", "a", ""),
    ]
    assert told(whole) == expected
    assert told(*(whole[at : at + 1] for at in range(len(whole)))) == expected


def test_a_text_is_kept_up_to_its_limit() -> None:
    long = b"x" * (3 * MAX_XML_TEXT_CHARS)
    assert told(b"<a>", long, long, b"</a>")[-1] == ("end", "a", "x" * MAX_XML_TEXT_CHARS)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "document type"),
        (b"<a><?php x?></a>", "processing instruction"),
        (b"<a>" * (MAX_XML_DEPTH + 1), "nested deeper"),
        (b"<a></b>", "broken at line 1"),
        (b"<a>", "broken at line 1"),
        (b"", "broken at line 1"),
        (b"<?xml version='1.0' encoding='foo'?><a/>", "encoding"),
        (b"<?xml version='1.0' encoding='shift_jis'?><a/>", "encoding"),
    ],
)
def test_what_no_bank_sends_is_refused_in_the_readers_words(octets: bytes, why: str) -> None:
    with pytest.raises(WrongError, match=why):
        told(octets)


@pytest.mark.parametrize("begun", [b'<a b="', b"<a><!--", b"<", b"<a></"])
def test_a_tag_or_comment_without_an_end_is_refused_early(begun: bytes) -> None:
    """Found in use: expat 2.5 reads it anew with each chunk, so that 2 GB took hours and 4 GB of memory."""
    chunks = MAX_XML_TOKEN_BYTES // XML_CHUNK_BYTES + 1
    with pytest.raises(WrongError, match="tag or comment of more than"):
        told(begun, *[b"x" * XML_CHUNK_BYTES] * chunks)


def test_long_texts_are_no_long_tags() -> None:
    chunk = b"x&amp;" * 10_000
    assert told(b"<a>", *[chunk] * 30, b"</a>")[-1][2].startswith("x&x&")
