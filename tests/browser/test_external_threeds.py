"""An external 3DS server in a real browser: the issuer's method page in a frame, then its challenge page.

Source: Part B, 3D Secure; docs/connectors/threeds-server.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Division, Psp, ThreeDSecureConfiguration
from gateway.threeds.server_setup import set_server_secret
from tests.browser.conftest import picture
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop, open_shop
from tests.support.stub import StubProcess, account_at_stub
from tests.support.threeds import Shopper, buy
from tests.support.threeds_server import SECRET, FakeThreeDSServer, card_of, running_threeds_server

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Page]
BACK = "**/result?order=7&id=*"
PAID = "000.100.112"


@pytest.fixture(scope="module")
def issuer() -> Iterator[FakeThreeDSServer]:
    with running_threeds_server() as found:
        yield found


@pytest.fixture
def api(transactional_db: None, site: str, issuer: FakeThreeDSServer, acquirer: StubProcess) -> Api:
    shop: Shop = open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")
    channel = shop.open_channel("authenticating", three_d_secure=True)
    account_at_stub(channel)
    row = ThreeDSecureConfiguration(
        channel=channel,
        server_url=issuer.url,
        requestors={"visa": {"id": "R-1", "name": "Shop", "acquirerBin": "400000", "acquirerMerchantId": "M-1"}},
        requestor_url="https://shop.example",
        merchant_category_code="5411",
        merchant_country="DE",
        on_unavailable="decline",
    )
    set_server_secret(row, SECRET)
    row.save()
    return shop.api_of(channel)


def pay(api: Api, scenario: str) -> Answer:
    fields = {"customer__ip": "192.0.2.7", "customer__browser__screenColorDepth": "24"}
    back = "http://shop.example/result?order=7"
    return buy(api, card_of(scenario), testMode="EXTERNAL", shopperResultUrl=back, **fields)


def open_bank(open_page: Open, answer: Answer, width: int, height: int) -> Page:
    shopper = Shopper.of(answer)
    page = open_page(width, height)
    page.goto(f"{shopper.redirect['url']}?{urlencode({'token': shopper.token})}")
    return page


@pytest.mark.parametrize("scenario", ["method", "challenge"])
def test_a_shopper_confirms_at_the_issuers_own_page(
    api: Api, open_page: Open, issuer: FakeThreeDSServer, scenario: str
) -> None:
    """The method page is loaded in a hidden frame and ends by itself; the challenge is the issuer's page."""
    before = len(issuer.control("log")["methods"])
    answer = pay(api, scenario)
    page = open_bank(open_page, answer, 390, 800)
    page.wait_for_url(f"{issuer.url}/acs")
    expect(page.get_by_role("heading", name="Your bank")).to_be_visible()
    picture(page, f"external-{scenario}-phone")
    page.get_by_label("Code").fill("4711")
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url(BACK)
    assert api.read(answer.id).code == PAID
    assert len(issuer.control("log")["methods"]) - before == (1 if scenario == "method" else 0)
    sent = issuer.calls("/v1/authentications")[-1]["message"]
    assert sent["threeDSCompInd"] == ("Y" if scenario == "method" else "U")


def test_a_shopper_who_cancels_comes_back_declined(api: Api, open_page: Open) -> None:
    """challengeCancel 01."""
    answer = pay(api, "challenge")
    page = open_bank(open_page, answer, 1280, 800)
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(BACK)
    assert api.read(answer.id).code == "100.390.124"
