"""What a request may cost before anybody knows who sends it. Source: docs/decisions/0050; goals, P17."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, RequestFactory
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from gateway.api.base_view import MAX_PREREAD_BYTES
from gateway.api.body_limits import MAX_ANONYMOUS_FORM_BYTES, MAX_FORM_BYTES, build_upload_url
from gateway.api.wsgi_handler import build_wsgi_application
from gateway.catalogue import forms
from tests.support.client import Api, form, payment
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
FORM = "application/x-www-form-urlencoded"


class Unread(io.BytesIO):
    """A body that counts what is read of it."""

    read_bytes = 0

    def read(self, size: int | None = -1, /) -> bytes:
        found = super().read(size)
        self.read_bytes += len(found)
        return found


def sent(path: str, body: bytes, *, length: int | None, kind: str = FORM, **headers: str) -> tuple[int, Unread]:
    """POST as gunicorn hands it on; ``length`` None: in chunks. The status, and the body."""
    stream, got = Unread(body), []
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "testserver",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "203.0.113.7",
        "CONTENT_TYPE": kind,
        "wsgi.input": stream,
        "wsgi.errors": io.StringIO(),
        "wsgi.url_scheme": "http",
        "wsgi.input_terminated": True,
        **{f"HTTP_{name}": value for name, value in headers.items()},
    }
    environ |= {"HTTP_TRANSFER_ENCODING": "chunked"} if length is None else {"CONTENT_LENGTH": str(length)}
    b"".join(build_wsgi_application()(environ, lambda status, _headers, _fault=None: got.append(status)))
    return int(got[0].split()[0]), stream


@pytest.mark.usefixtures("same_connection")
@pytest.mark.parametrize("length", [None, MAX_PREREAD_BYTES + 1])
def test_a_strangers_body_is_not_read_whatever_its_framing(shop: Shop, length: int | None) -> None:
    status, stream = sent("/v1/payments", b"z=" + b"%41" * 30_000, length=length, AUTHORIZATION="Bearer nonsense")
    assert (status, stream.read_bytes) == (403, 0)


@pytest.mark.usefixtures("same_connection")
def test_a_content_type_of_thousands_of_parameters_is_not_parsed(shop: Shop) -> None:
    """Django parses it before any check; the same form with a short one is taken."""
    body = form({"entityId": shop.api.entity, **payment()}.items())
    known = {"length": len(body), "AUTHORIZATION": f"Bearer {shop.api.token}"}
    assert sent("/v1/payments", body, kind=f"{FORM}; charset=utf-8", **known)[0] == 200
    assert sent("/v1/payments", body, kind=FORM + ";c=d" * 1_000, **known)[0] == 400


@pytest.mark.usefixtures("same_connection")
def test_more_cookies_than_a_line_holds_are_not_parsed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The web server joins lines of a name to one of up to 64 KB."""
    parsed: list[int] = []

    def counted(text: str) -> dict[str, str]:
        parsed.append(len(text))
        return {}

    monkeypatch.setattr("django.core.handlers.wsgi.parse_cookie", counted)
    sent("/admin/login/", b"a=b", length=3, COOKIE="a=b; " * 1_600)
    sent("/admin/login/", b"a=b", length=3, COOKIE="a=b; " * 10_000)
    assert parsed == [8_000, 0]


@pytest.mark.usefixtures("same_connection")
def test_a_small_body_of_a_stranger_is_read_and_not_decoded(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def decoded(body: bytes) -> list[tuple[str, str]]:
        raise AssertionError("decoded for a stranger")

    monkeypatch.setattr("gateway.api.base_view.parse_form", decoded)
    body = b"4112 " * 1_000 + b"=\xff"
    assert sent("/v1/payments", body, length=len(body), AUTHORIZATION="Bearer nonsense")[0] == 403
    assert forms.parse_form is not decoded


def test_the_throttle_counts_before_a_body_is_decoded(shop: Shop) -> None:
    channel = shop.open_channel(limits={"*": {"limit": 1, "window_s": 1_000_000}})
    api = shop.api_of(channel)
    body = f"entityId={channel.entity_id}&".encode() + b"x=\xff"
    assert [api.send("/v1/payments", body).status for _ in range(3)] == [400, 429, 429]


@pytest.mark.parametrize("name", ["entityId", "authentication.entityId", "authentication%2EentityId"])
def test_an_entity_is_found_before_the_form_is_decoded(api: Api, name: str) -> None:
    body = f"{name}={api.entity}&".encode() + form(payment().items())
    assert api.send("/v1/payments", body).status == 200
    with statements() as seen:
        assert api.send("/v1/payments", body).status == 200
    assert sum("gateway_accesstoken" in sql for sql in seen) == 1


def test_an_entity_that_is_written_with_escapes_is_the_one_that_is_meant(shop: Shop) -> None:
    """What the undecoded form seemed to say is not what counts."""
    other = shop.open_channel()
    body = f"entity%49d={other.entity_id}&".encode() + form(payment().items())
    answer = shop.api.send("/v1/payments", body)
    assert answer.status == 200
    assert other.entity_id in answer.body["ndc"]
    twice = body + f"&entityId={shop.channel.entity_id}".encode()
    assert "was sent more than once" in shop.api.send("/v1/payments", twice).text


@pytest.mark.parametrize(
    "headers, said",
    [
        ({"Content_Encoding": "gzip"}, "without Content-Encoding gzip"),
        ({"content_type": "multipart/form-data; boundary=x"}, "not multipart/form-data"),
        ({"content_type": "application/json"}, "not application/json"),
    ],
)
def test_what_is_no_form_is_refused_by_its_headers(api: Api, headers: dict[str, str], said: str) -> None:
    answer = api.send("/v1/payments", b"x" * 100, **headers)
    assert answer.status == 400
    assert said in answer.description


# --- pages ----------------------------------------------------------------------------------------------------------

PAGES = ("/admin/login/", "/shopper/x", "/demo/checkout", "/docs/", "/admin/", "/simulator/x", "/")


@pytest.mark.usefixtures("same_connection")
@pytest.mark.parametrize("path", PAGES)
def test_a_page_reads_no_file_and_no_long_form_of_a_stranger(path: str, db: None) -> None:
    file = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile("a.csv", b"x" * 1_000)})
    long = b"x" * (MAX_ANONYMOUS_FORM_BYTES + 1)
    for body, length, kind, most in (
        (file, len(file), MULTIPART_CONTENT, 415),
        (long, len(long), FORM, 413),
        (b"a=b", None, FORM, 411),
    ):
        status, stream = sent(path, body, length=length, kind=kind, HOST="testserver")
        assert (status in (most, 404), stream.read_bytes) == (True, 0), (status, kind)


def test_a_file_is_taken_only_with_the_word_of_the_session_and_the_right(shop: Shop) -> None:
    upload = "/admin/reporting/settlementfile/upload/"
    manager, clerk = (signed_in(person(name, name, shop.merchant)) for name in ("manager", "clerk"))
    colleague = signed_in(person("colleague", "manager", shop.merchant))
    from reporting.models import ClearingInstitute

    ClearingInstitute.objects.create(key="simulated", name="Simulated", time_zone="UTC")
    action = re.search(r'action="([^"]+upload=[0-9a-f]+)"', manager.get(upload).content.decode())
    assert action

    def sends(client: Client, address: str) -> int:
        return client.post(address, {"institute": "simulated", "file": SimpleUploadedFile("a.csv", b"x")}).status_code

    assert sends(manager, action[1]) == 400  # read, and no settlement file
    assert sends(manager, upload) == sends(manager, f"{upload}?upload=x") == sends(clerk, action[1]) == 403
    assert sends(colleague, action[1]) == 403  # has the right, and another session
    assert sends(manager, "/admin/gateway/payment/") == 415


def test_a_file_larger_than_its_kind_is_refused_in_words(shop: Shop, settings: Any) -> None:
    settings.GATEWAY_SETTLEMENT_MAX_BYTES = 1024**2
    upload = "/admin/reporting/settlementfile/upload/"
    manager = signed_in(person("manager", "manager", shop.merchant))
    from reporting.models import ClearingInstitute

    ClearingInstitute.objects.create(key="simulated", name="Simulated", time_zone="UTC")
    action = re.search(r'action="([^"]+upload=[0-9a-f]+)"', manager.get(upload).content.decode())
    assert action
    file = SimpleUploadedFile("a.csv", b"x" * (1024**2 + 70_000))
    answer = manager.post(action[1], {"file": file}, headers={"accept": "text/html"})
    assert answer.status_code == 413
    assert "larger than 1 MB" in answer.content.decode()


def test_the_word_of_one_page_is_none_of_another(shop: Shop) -> None:
    """Each is for one address: who may add a logo sends no settlement file by it."""
    manager = signed_in(person("manager", "manager", shop.merchant))
    upload, other = "/admin/reporting/settlementfile/upload/", "/admin/checkout/paymentpagestyle/logo/"
    request = RequestFactory().post(upload)
    request.session = manager.session
    own, foreign = (build_upload_url(request, path).partition("?")[2] for path in (upload, other))
    statuses = [
        manager.post(f"{upload}?{word}", {"file": SimpleUploadedFile("a.csv", b"x")}) for word in (own, foreign)
    ]
    assert [answer.status_code for answer in statuses] == [400, 403]


def test_a_body_of_the_api_may_be_as_long_as_the_limit(api: Api, settings: Any) -> None:
    body = form({**payment(), "entityId": api.entity or ""}.items())
    for most, status in ((len(body), 200), (len(body) - 1, 400)):
        settings.GATEWAY_MAX_BODY_BYTES = most
        answer = api.send("/v1/payments", body)
        assert answer.status == status, answer
        assert ("the body is larger than" in answer.description) is (status == 400)


def test_a_form_of_a_page_may_be_as_long_as_the_limit(shop: Shop) -> None:
    client = signed_in(person("manager", "manager", shop.merchant))
    for most, browser in ((MAX_FORM_BYTES, client), (MAX_ANONYMOUS_FORM_BYTES, Client())):
        statuses = [browser.post("/admin/login/", b"x" * length, FORM).status_code for length in (most, most + 1)]
        assert (statuses[0] != 413, statuses[1]) == (True, 413), most


def test_a_signed_in_users_form_has_a_limit_and_so_have_its_escapes(shop: Shop) -> None:
    client = signed_in(person("manager", "manager", shop.merchant))
    address = "/admin/gateway/riskset/add/"
    assert client.post(address, b"x" * (MAX_FORM_BYTES + 1), FORM).status_code == 413
    assert client.post(address, b"z=" + b"%41" * 200_001, FORM).status_code == 413
    assert client.post(address, b"z=" + b"%41" * 50_000, FORM).status_code == 200
