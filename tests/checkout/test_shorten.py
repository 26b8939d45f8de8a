"""The script is shortened without changing what it does.

Source: decisions, section 7 (the script's bytes); goals, P12.
"""

from __future__ import annotations

import pytest

from checkout.widget.shorten import shorten


@pytest.mark.parametrize(
    "source,short",
    [
        ("const  answer = 1 ;", "const a=1;"),
        ("// why\nlet total = 0; /* so */ total += 2;", "let a=0;a+=2;"),
        ("const text = `a ${ text2 } // b`;", "const a=`a ${text2} // b`;"),
        ("const word = 'a  b';", "const a='a  b';"),
        ("const found = /a \\/[/] b/g;", "const a=/a \\/[/] b/g;"),
        ("const half = total / 2 / 3;", "const a=total/2/3;"),
        ("run()\nagain()", "run()\nagain()"),
        ("x + +y; a - -b;", "x+ +y;a- -b;"),
    ],
)
def test_white_space_and_comments_go_texts_and_patterns_stay(source: str, short: str) -> None:
    assert shorten(source) == short


@pytest.mark.parametrize(
    "source",
    [
        "const name=1;use({name});",
        "const { label }=given;use(label);",
        "const key=1;object.key=key;",
        "const size=1;use({size:2},size);",
        "document.title=location.href;",
    ],
)
def test_a_name_that_could_be_a_property_s_is_left_alone(source: str) -> None:
    assert shorten(source).replace(" ", "") == source.replace(" ", "")


def test_one_name_becomes_one_other_everywhere() -> None:
    """Parameters, functions and patterns; never a name that stands in the text already."""
    source = "function double(value) { return value + a; }\nconst list = items.map((item) => double(item));"
    assert shorten(source) == "function b(d){return d+a;}\nconst list=items.map((c)=>b(c));".replace("list", "e")


def test_the_same_text_gives_the_same_text() -> None:
    source = "const one = 1, other = 2; export_(one, other);"
    assert shorten(source) == shorten(source)
