"""Form of the messages that are built without a schema: elements in their order, how often, and their types.

Each line is one element of the ISO 20022 definition, indented below its parent: name, ? (may be missing), + (one or
more), * (any number), and the type of its text. Elements of the definition that are not sent are left out; one that is
sent and is not listed is a fault. Source: message definition reports of ISO 20022 (camt.055.001.01, .05 and .08,
pain.007.001.02 and .09), compared with classes that were generated from the schemas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from xml.etree import ElementTree

_TYPES: Final = {
    "Max35Text": r".{1,35}",
    "Max70Text": r".{1,70}",
    "Max15NumericText": r"[0-9]{1,15}",
    "Amount": r"[0-9]{1,13}\.[0-9]{2}",
    "Code4": r"[A-Z0-9]{1,4}",
    "CancellationReason4Code": r"CUST|DUPL|AGNT|CURR|UPAY|CUTA",
    "CancellationReason5Code": r"CUST|DUPL|AGNT|CURR|UPAY|CUTA|TECH|FRAD",
    "ChargeBearer": r"DEBT|CRED|SHAR|SLEV",
    "Bic": r"[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?",
    "Date": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "DateTime": r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}",
    "Boolean": r"true|false",
}

_CAMT_055: Final = """
CstmrPmtCxlReq
 Assgnmt
  Id Max35Text
  Assgnr
   Pty
    Nm Max70Text
  Assgne
   Agt
    FinInstnId
     {bic}? Bic
     Othr?
      Id Max35Text
  CreDtTm DateTime
 Undrlyg+
  OrgnlPmtInfAndCxl*
   PmtCxlId? Max35Text
   OrgnlPmtInfId Max35Text
   OrgnlGrpInf?
    OrgnlMsgId Max35Text
    OrgnlMsgNmId Max35Text
   NbOfTxs? Max15NumericText
   CtrlSum? Amount
   PmtInfCxl? Boolean
   TxInf*
    CxlId? Max35Text
    OrgnlEndToEndId? Max35Text
    OrgnlInstdAmt? Amount
    OrgnlReqdExctnDt?{execution}
    OrgnlReqdColltnDt? Date
    CxlRsnInf*
     Orgtr?
      Nm? Max70Text
     Rsn?
      Cd? {reason}
      Prtry? Max35Text
"""
_PAIN_007: Final = """
CstmrPmtRvsl
 GrpHdr
  MsgId Max35Text
  CreDtTm DateTime
  NbOfTxs Max15NumericText
  CtrlSum? Amount
  GrpRvsl? Boolean
  InitgPty?
   Nm? Max70Text
 OrgnlGrpInf
  OrgnlMsgId Max35Text
  OrgnlMsgNmId Max35Text
 OrgnlPmtInfAndRvsl*
  RvslPmtInfId? Max35Text
  OrgnlPmtInfId Max35Text
  TxInf*
   RvslId? Max35Text
   OrgnlEndToEndId? Max35Text
   OrgnlInstdAmt? Amount
   RvsdInstdAmt? Amount
   ChrgBr? ChargeBearer
   RvslRsnInf*
    Orgtr?
     Nm? Max70Text
    Rsn?
     Cd Code4
"""
CANCELLATION_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "camt.055.001.08": _CAMT_055.format(bic="BICFI", execution="\n     Dt Date", reason="Code4"),
        "camt.055.001.05": _CAMT_055.format(bic="BICFI", execution=" Date", reason="CancellationReason5Code"),
        "camt.055.001.01": _CAMT_055.format(bic="BIC", execution=" Date", reason="CancellationReason4Code"),
    }
)
REVERSAL_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {"pain.007.001.09": _PAIN_007, "pain.007.001.02": _PAIN_007}
)


@dataclass(slots=True)
class _Element:
    name: str
    occurs: str = ""
    type: str = ""
    children: list[_Element] = field(default_factory=list)


def list_form_faults(root: ElementTree.Element, form: str, namespace: str = "") -> list[str]:
    """Where a message has not the form; ``namespace``: what all its elements have to be in, if given."""
    faults = [f"{one.tag}: not in {namespace}" for one in root.iter() if not one.tag.startswith(f"{{{namespace}")]
    (top,) = _parse_form(form)
    return (faults if namespace else []) + _compare(list(root), [top], root.tag.partition("}")[2])


def _parse_form(form: str) -> list[_Element]:
    root = _Element("Document")
    stack = [root]
    for line in form.strip("\n").splitlines():
        depth = len(line) - len(line.lstrip())
        found = re.fullmatch(r"(\w+)([?+*]?)(?: (\w+))?", line.strip())
        assert found is not None, line
        one = _Element(found[1], found[2], found[3] or "")
        del stack[depth + 1 :]
        stack[-1].children.append(one)
        stack.append(one)
    return root.children


def _compare(found: list[ElementTree.Element], form: list[_Element], where: str) -> list[str]:
    """Faults of the children ``found`` of one element."""
    faults, rest = [], list(found)
    for expected in form:
        mine = []
        while rest and rest[0].tag.partition("}")[2] == expected.name:
            mine.append(rest.pop(0))
        path = f"{where}/{expected.name}"
        if not mine and expected.occurs not in ("?", "*"):
            faults.append(f"{path}: missing")
        if len(mine) > 1 and expected.occurs not in ("+", "*"):
            faults.append(f"{path}: {len(mine)} times")
        for one in mine:
            faults += _compare(list(one), expected.children, path)
            if expected.type and re.fullmatch(_TYPES[expected.type], one.text or "") is None:
                faults.append(f"{path}: {one.text!r} is no {expected.type}")
    return faults + [f"{where}: {one.tag} has no place here" for one in rest]
