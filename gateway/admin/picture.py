"""A chain of payments as a picture: where each box stands, and the lines between them. Units are pixels of the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from gateway.admin.showing import pill
from gateway.desk.story import Node

WIDTH, HEIGHT, GAP, INDENT, EDGE = 268, 52, 14, 30, 2
DEEPEST: Final = 8
"""Deeper boxes are drawn no further to the right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    x: int
    y: int
    node: Node
    address: str
    tone: str
    state: str
    line: str

    @property
    def middle(self) -> int:
        return self.y + HEIGHT // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    width: int
    height: int
    boxes: Sequence[Box]
    box_width: int = WIDTH
    box_height: int = HEIGHT


def of(nodes: Sequence[Node]) -> Picture:
    boxes: list[Box] = []
    for node in nodes:
        x = EDGE + min(node.depth, DEEPEST) * INDENT
        y = EDGE + node.row * (HEIGHT + GAP)
        line = ""
        if node.parent is not None:
            above = boxes[node.parent]
            left = above.x + INDENT // 2
            line = f"M{left} {above.y + HEIGHT} V{y + HEIGHT // 2} H{x}"
        shown = pill(node.payment.status)
        boxes.append(
            Box(
                x=x, y=y, node=node, line=line, tone=shown["tone"], state=str(shown["text"]),
                address=reverse("admin:gateway_payment_change", args=[node.payment.pk]),
            )
        )  # fmt: skip
    return Picture(
        width=max((box.x for box in boxes), default=0) + WIDTH + EDGE,
        height=max((box.y for box in boxes), default=0) + HEIGHT + EDGE,
        boxes=boxes,
    )
