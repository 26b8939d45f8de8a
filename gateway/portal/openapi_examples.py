"""Examples of answers in the OpenAPI document: those that this gateway gave to the docs' samples.

Every sample's answer stands with its operation and status, under the sample's name. Errors that all operations share
have one example each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.api.errors import WRONG_METHOD_CODE
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE, find_result_code
from gateway.payments.registrations import UNKNOWN_REGISTRATION_CODE
from gateway.portal.sample_code import find_sample_endpoint
from gateway.portal.samples import API_SAMPLES, SAMPLE_BASE_URL, ApiSample

_JSON: Final = "application/json"
_SHARED: Final = {"401": "no-token", "403": "wrong-token", "429": "throttled"}
"""Status of an error that operations share → the sample that shows it."""
_SHARED_CODES: Final = {"404": UNKNOWN_REGISTRATION_CODE, "405": WRONG_METHOD_CODE, "409": CONCURRENT_UPDATE_CODE}
"""Status of such an error without a sample → its code."""


def add_answer_examples(document: Mapping[str, Any], base_url: str) -> dict[str, Any]:
    """A copy of an OpenAPI document of the API at ``base_url``, with the examples."""
    # Parts of the document stand in it more than once, and are constants of the catalogue: none is changed in place.
    whole: dict[str, Any] = json.loads(json.dumps(document))
    _add_examples(whole, base_url)
    return whole


def _add_examples(document: dict[str, Any], base_url: str) -> None:
    samples = {sample.name: sample for sample in API_SAMPLES.values()}
    shared = document["components"]["responses"]
    for status, response in shared.items():
        response["content"][_JSON]["example"] = _build_shared_example(status, samples, base_url)
    for sample in API_SAMPLES.values():
        response = _find_response(document, sample)
        if sample.answer and response is not None:
            examples = response["content"][_JSON].setdefault("examples", {})
            examples[sample.name] = {"summary": sample.title, "value": _render_answer(sample, base_url)}
    for response in _list_bad_requests(document):
        examples = response["content"][_JSON].setdefault("examples", {})
        if not examples:
            faults = samples["faults"]
            examples[faults.name] = {"summary": faults.title, "value": _render_answer(faults, base_url)}


def _find_response(document: dict[str, Any], sample: ApiSample) -> dict[str, Any] | None:
    """The operation's own response of the sample's status; None where it shares that of others."""
    endpoint = find_sample_endpoint(sample)
    operation = document["paths"].get(endpoint.path, {}).get(endpoint.method.lower(), {})
    found: dict[str, Any] | None = operation.get("responses", {}).get(str(sample.status))
    return None if found is None or "$ref" in found else found


def _list_bad_requests(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in document["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "content" in (bad := operation.get("responses", {}).get("400", {})):
                yield bad


def _build_shared_example(status: str, samples: dict[str, ApiSample], base_url: str) -> dict[str, Any]:
    if status in _SHARED:
        return _render_answer(samples[_SHARED[status]], base_url)
    code = _SHARED_CODES[status]
    answer = _render_answer(samples[_SHARED["403"]], base_url)
    return answer | {"result": {"code": code, "description": find_result_code(code).description}}


def _render_answer(sample: ApiSample, base_url: str) -> dict[str, Any]:
    text = json.dumps(sample.answer).replace(SAMPLE_BASE_URL, base_url)
    found: dict[str, Any] = json.loads(text)
    return found
