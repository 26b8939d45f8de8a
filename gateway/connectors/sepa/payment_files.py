"""Renders a planned file as XML: pain.008 for collections, pain.001 for transfers, pain.007 for reversals, camt.055 for
cancellation requests and recalls, always the same bytes.

sepaxml builds the document; the values that it generates (message id, time, batch ids) are replaced by the recorded
ones, and the result is validated against the message's schema. Source: ISO 20022; EPC 130-08, EPC 132-08.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import sepaxml  # type: ignore[import-untyped]
from sepaxml import SepaDD, SepaTransfer

from gateway.connectors.sepa.bank_text import format_bank_text
from gateway.connectors.sepa.cancellations import render_cancellation_file
from gateway.connectors.sepa.postal_addresses import build_postal_address, is_writable_address
from gateway.connectors.sepa.reversals import render_reversal_file
from gateway.connectors.sepa.xml_elements import add_element
from gateway.models import BankFile, BankOrder
from gateway.vault.sealing import current_vault

if TYPE_CHECKING:
    from xmlschema import XMLSchema

IbanFormatter = Callable[[BankOrder], str]


class InvalidPaymentFileError(Exception):
    """The file does not validate against its schema, and must not be sent."""


def render_payment_file(file: BankFile, orders: Sequence[BankOrder], iban: IbanFormatter | None = None) -> bytes:
    """Render ``file`` with its ``orders``. ``iban``: how account numbers are shown, in clear by default.

    Raises InvalidPaymentFileError, VaultError.
    """
    if (render := _RENDERED_HERE.get(BankFile.Kind(file.kind))) is not None:
        return render(file, orders, format_bank_text(file.creditor["name"], 70))
    shown = iban or _open_iban
    make = _collections if file.kind == BankFile.Kind.COLLECT else _transfers
    document = make(file, orders, shown)
    document.export(validate=False)  # builds the batches and their totals
    root = document._xml
    _apply_recorded_values(root, file, orders)
    out: bytes = b'<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, "utf-8")
    if iban is None:
        _check_schema(out, file.creditor["schema"])
    return out


_RENDERED_HERE: Final = {
    BankFile.Kind.REVERSE: render_reversal_file,
    BankFile.Kind.CANCEL: render_cancellation_file,
    BankFile.Kind.RECALL: render_cancellation_file,
}
"""Messages that sepaxml cannot make. No schema is delivered with the product: tests hold their form."""


def list_file_orders(file: BankFile) -> list[BankOrder]:
    """The orders of a file, in the file's order."""
    return list(file.orders.select_related("mandate").order_by("due_on", "sequence", "payment"))


def _collections(file: BankFile, orders: Sequence[BankOrder], iban: IbanFormatter) -> Any:
    creditor = file.creditor
    config = {
        "name": format_bank_text(creditor["name"], 70),
        "IBAN": creditor["iban"],
        "batch": True,
        "creditor_id": creditor["id"],
        "currency": "EUR",
        "instrument": creditor["instrument"],
    } | ({"BIC": creditor["bic"]} if creditor["bic"] else {})
    document = SepaDD(config, schema=creditor["schema"], clean=False)
    for order in orders:
        assert order.mandate is not None
        one = {
            "name": format_bank_text(order.name, 70),
            "IBAN": iban(order),
            "amount": int(order.amount * 100),
            "type": order.sequence,
            "collection_date": order.due_on,
            "mandate_id": order.mandate_reference or order.mandate.mandate,
            "mandate_date": order.mandate.signed_on,
            "description": format_bank_text(order.text, 140),
            "endtoend_id": order.payment.hex,
        }
        # An address that no bank takes is left out: it would have the whole file rejected.
        if order.address and is_writable_address(order.address):
            one["address"] = build_postal_address(order.address)
        document.add_payment(one | ({"BIC": order.bic} if order.bic else {}))
    return document


def _transfers(file: BankFile, orders: Sequence[BankOrder], iban: IbanFormatter) -> Any:
    creditor = file.creditor
    config = {
        "name": format_bank_text(creditor["name"], 70),
        "IBAN": creditor["iban"],
        "batch": True,
        "currency": "EUR",
    } | ({"BIC": creditor["bic"]} if creditor["bic"] else {})
    document = SepaTransfer(config, schema=creditor["schema"], clean=False)
    for order in orders:
        one = {
            "name": format_bank_text(order.name, 70),
            "IBAN": iban(order),
            "amount": int(order.amount * 100),
            "execution_date": order.due_on,
            "description": format_bank_text(order.text, 140),
            "endtoend_id": order.payment.hex,
        }
        document.add_payment(one | ({"BIC": order.bic} if order.bic else {}))
    return document


def _apply_recorded_values(root: Any, file: BankFile, orders: Sequence[BankOrder]) -> None:
    """Replace the values that sepaxml generates by the recorded ones."""
    header = root.find(".//GrpHdr")
    header.find("MsgId").text = file.message_id
    stamped = file.stamped_at.astimezone(ZoneInfo(file.creditor["zone"]))
    header.find("CreDtTm").text = f"{stamped:%Y-%m-%dT%H:%M:%S}"
    listed = {order.payment.hex: order for order in orders}
    for part in root.iter("PmtInf"):
        part.find("PmtInfId").text = listed[next(part.iter("EndToEndId")).text].batch
    for part in root.iter("DrctDbtTxInf"):
        if amendment := listed[next(part.iter("EndToEndId")).text].amendment:
            part.find("DrctDbtTx/MndtRltdInf").extend(_amendment_elements(amendment))


def _amendment_elements(amendment: Mapping[str, str]) -> list[ElementTree.Element]:
    """AmdmntInd and AmdmntInfDtls: what the mandate was when its last collection was presented (EPC 130-08)."""
    flag = ElementTree.Element("AmdmntInd")
    flag.text = "true"
    details = ElementTree.Element("AmdmntInfDtls")
    if "mandate" in amendment:
        add_element(details, "OrgnlMndtId", amendment["mandate"])
    if "creditor" in amendment:
        scheme = ElementTree.SubElement(details, "OrgnlCdtrSchmeId")
        if amendment.get("creditorName"):
            add_element(scheme, "Nm", format_bank_text(amendment["creditorName"], 70))
        other = add_element(scheme, "Id/PrvtId/Othr")
        add_element(other, "Id", amendment["creditor"])
        add_element(other, "SchmeNm/Prtry", "SEPA")
    if "account" in amendment:
        add_element(details, "OrgnlDbtrAcct/Id/Othr/Id", amendment["account"])
    return [flag, details]


def _open_iban(order: BankOrder) -> str:
    assert order.iban_sealed is not None
    return current_vault().open(order.iban_sealed, order.payment).reveal()


_schema_lock: Final = Lock()
"""xmlschema does not say that its schemas may be built and used by several threads at once."""


def _check_schema(document: bytes, name: str) -> None:
    """Raise InvalidPaymentFileError that says where the document is invalid, without the value: it may be an account
    number."""
    from xmlschema import XMLSchemaValidationError

    with _schema_lock:
        try:
            _load_schema(name).validate(document.decode())
        except XMLSchemaValidationError as fault:
            raise InvalidPaymentFileError(f"not valid at {fault.path or '?'}") from None


@lru_cache(maxsize=4)
def _load_schema(name: str) -> XMLSchema:
    """A schema that sepaxml delivers. Building it takes longer than checking a file against it."""
    # Imported where a file is written: it takes a quarter of a second, and few processes write files.
    from xmlschema import XMLSchema

    return XMLSchema(str(Path(sepaxml.__file__).parent / "schemas" / f"{name}.xsd"))
