"""Elements of the messages that are built here, without sepaxml."""

from __future__ import annotations

from xml.etree import ElementTree


def add_element(parent: ElementTree.Element, path: str, text: str | None = None) -> ElementTree.Element:
    """Append the elements of ``path`` (A/B/C), one within the other; the innermost has the text. Returns that one."""
    for name in path.split("/"):
        parent = ElementTree.SubElement(parent, name)
    parent.text = text
    return parent


def start_xml_message(schema: str) -> ElementTree.Element:
    """The root of a message, such as camt.055.001.08."""
    return ElementTree.Element("Document", {"xmlns": f"urn:iso:std:iso:20022:tech:xsd:{schema}"})


def render_xml_message(root: ElementTree.Element) -> bytes:
    """The bytes of a message, with the declaration of its encoding."""
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + bytes(ElementTree.tostring(root, "utf-8"))
