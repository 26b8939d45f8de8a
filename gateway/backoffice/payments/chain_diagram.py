"""Diagram of a payment chain: its tree, and the layout as boxes and lines between them, in pixels of the SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final
from uuid import UUID

from gateway.backoffice.kit.formatting import build_state_pill
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.models import Payment
from gateway.payments import chain_amounts as sums
from gateway.payments.chain_amounts import Chain

BOX_WIDTH, BOX_HEIGHT, BOX_GAP, BOX_INDENT, DIAGRAM_EDGE = 268, 52, 14, 30, 2
MAX_INDENTED_DEPTH: Final = 8
"""Boxes deeper than this are not indented further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainNode:
    """A payment in the diagram of its chain. ``depth``: 0 for the first; ``row``: from the top; ``parent``: row of its
    parent, None for the first."""

    payment: Payment
    title: str
    amount: Decimal
    depth: int
    row: int
    parent: int | None
    here: bool


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


def build_chain_nodes(chain: Chain, here: UUID) -> list[ChainNode]:
    """The chain as a tree in display order, each payment below the one it follows."""
    children: dict[UUID | None, list[Payment]] = {}
    for member in chain.members:
        above = None if member.id == member.chain else member.referenced
        children.setdefault(above, []).append(member)
    found: list[ChainNode] = []
    # (payment, depth, row of its parent): a stack, so that no chain is too deep.
    waiting: list[tuple[Payment, int, int | None]] = [(member, 0, None) for member in reversed(children.get(None, []))]
    while waiting:
        member, depth, parent = waiting.pop()
        row = len(found)
        found.append(
            ChainNode(
                payment=member,
                title=format_payment_title(member),
                amount=sums.resolve_payment_amount(member),
                depth=depth,
                row=row,
                parent=parent,
                here=member.id == here,
            )
        )
        waiting += [(child, depth + 1, row) for child in reversed(children.get(member.id, []))]
    return found


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
