"""Layout of a payment chain's diagram: boxes and the lines between them, in pixels of the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.backoffice.kit.formatting import build_state_pill
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.payments.timeline import ChainNode

BOX_WIDTH, BOX_HEIGHT, BOX_GAP, BOX_INDENT, DIAGRAM_EDGE = 268, 52, 14, 30, 2
MAX_INDENTED_DEPTH: Final = 8
"""Boxes deeper than this are not indented further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagramBox:
    """A payment in the diagram."""

    x: int
    y: int
    node: ChainNode
    address: str
    tone: str
    state: str
    line: str

    @property
    def middle(self) -> int:
        return self.y + BOX_HEIGHT // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainDiagram:
    """Boxes, lines and size of the diagram."""

    width: int
    height: int
    boxes: Sequence[DiagramBox]
    box_width: int = BOX_WIDTH
    box_height: int = BOX_HEIGHT


def draw_chain(nodes: Sequence[ChainNode]) -> ChainDiagram:
    """Lay out a chain's nodes."""
    boxes: list[DiagramBox] = []
    for node in nodes:
        x = DIAGRAM_EDGE + min(node.depth, MAX_INDENTED_DEPTH) * BOX_INDENT
        y = DIAGRAM_EDGE + node.row * (BOX_HEIGHT + BOX_GAP)
        line = ""
        if node.parent is not None:
            above = boxes[node.parent]
            left = above.x + BOX_INDENT // 2
            line = f"M{left} {above.y + BOX_HEIGHT} V{y + BOX_HEIGHT // 2} H{x}"
        shown = build_state_pill(node.payment.status)
        boxes.append(
            DiagramBox(
                x=x,
                y=y,
                node=node,
                line=line,
                tone=shown["tone"],
                state=str(shown["text"]),
                address=build_payment_page_url(node.payment.pk),
            )
        )
    return ChainDiagram(
        width=max((box.x for box in boxes), default=0) + BOX_WIDTH + DIAGRAM_EDGE,
        height=max((box.y for box in boxes), default=0) + BOX_HEIGHT + DIAGRAM_EDGE,
        boxes=boxes,
    )
