"""A4 paper for documents as PDF: paragraphs, and names with values side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from django.conf import settings
from fpdf import FPDF

PDF_FONT_PATHS: Final = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
    "/usr/share/fonts/TTF/DejaVuSans.ttf", "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
)  # fmt: skip
"""Tried in this order if the settings name none; without any, letters outside Latin-1 become question marks."""
_WIDTH_MM: Final = 174


class PdfPaper(FPDF):
    """A4 pages with the document's name and the page number on each."""

    def __init__(self, name: str) -> None:
        super().__init__(format="A4")
        self._name = name
        self.set_margins(18, 16, 18)
        self.set_auto_page_break(True, 18)
        font = next((one for one in (settings.GATEWAY_PDF_FONT, *PDF_FONT_PATHS) if one and Path(one).is_file()), None)
        self.latin = font is None
        self.family = "helvetica" if font is None else "text"
        if font is not None:
            self.add_font("text", fname=font)

    def footer(self) -> None:
        self.set_y(-12)
        self.write_(f"{self._name} · {self.page_no()}", 8)

    def write_(self, text: str, size: float = 10, after: float = 0) -> None:
        """Write a paragraph."""
        self.set_font(self.family, size=size)
        self.multi_cell(_WIDTH_MM, size * 0.5, self.shown(text), new_x="LMARGIN", new_y="NEXT")
        if after:
            self.ln(after)

    def shown(self, text: str) -> str:
        """``text`` without characters that the font does not have."""
        return text.encode("latin-1", "replace").decode("latin-1") if self.latin else text

    def rows(self, title: str, rows: list[tuple[str, str]]) -> None:
        """Write names and values side by side."""
        self.ln(3)
        self.write_(title, 13, 1)
        for name, value in rows:
            at = self.get_y()
            if at > self.h - 30:
                self.add_page()
                at = self.get_y()
            self.write_(name)
            below = self.get_y()
            self.set_xy(68, at)
            self.set_font(self.family, size=10)
            self.multi_cell(_WIDTH_MM - 50, 5, self.shown(value), new_x="LMARGIN", new_y="NEXT")
            self.set_y(max(below, self.get_y()))
