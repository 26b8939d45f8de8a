"""The widget on a merchant's page of another origin, under the spec's policy: pays, is declined, is challenged, stores.

Source: Part A, What the service does, 8 and 10; decisions, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from gateway.connectors.simulator.cards import simulate_card_answer
from gateway.models import Division, Payment, Psp, Registration, Status, ThreeDSecureConfiguration
from tests.browser.conftest import picture
from tests.browser.patience import PATIENCE_MS, until
from tests.browser.widget import GOOD, Widget, checkout, held, let_go, lose, result
from tests.support.client import Api
from tests.support.fixtures import Shop, open_shop
from tests.support.shopfront import Shopfront, policy
from tests.support.threeds import CODE, PASS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
PAYMENT = re.compile("/v1/checkouts/[^/]+/payment")
CORS = {"Access-Control-Allow-Origin": "*"}


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")


@pytest.fixture
def api(shop: Shop) -> Api:
    return shop.api


def test_a_page_with_integrity_and_the_strict_policy_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.2, A8.13, A8.23, A8.24, A8.25, A8.26, A8.27, A10.4: the amount on the button; the shop gets id and path."""
    answer = api.post("/v1/checkouts", {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "integrity": "true"})
    widget = open_widget()
    widget.open(shop_site.widget(site, answer.id, integrity=answer.body["integrity"]))
    expect(widget.pay).to_have_text(re.compile("€92.00"))
    widget.fill()
    widget.press()
    url = widget.lands()
    assert f"resourcePath=%2Fv1%2Fcheckouts%2F{answer.id}%2Fpayment" in url
    assert not widget.faults
    assert result(api, answer.id).code == "000.100.110"
    assert Payment.objects.get().amount == 92


def test_the_spec_s_own_policy_passes_without_a_violation(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.23: the same page with 'unsafe-inline' for styles, as the spec writes it."""
    widget = open_widget(400, 800)
    url = shop_site.widget(site, checkout(api), csp=policy(site, unsafe_inline=True))
    widget.open(url)
    widget.number.fill(GOOD)
    assert not widget.faults


def test_a_script_that_differs_from_its_hash_does_not_run(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A10.5: one byte of the hash altered."""
    widget = open_widget()
    wrong = "sha384-" + "A" * 64
    widget.page.goto(shop_site.widget(site, checkout(api), integrity=wrong))
    assert widget.says("error", "integrity")
    assert widget.page.evaluate("typeof window.wpwl") == "undefined"


def test_a_declined_card_leaves_the_form_and_the_next_card_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Plain words, the number kept, the code not; A8.5: one captured payment only."""
    checkout_id = checkout(api)
    widget = open_widget(390, 844)
    widget.open(shop_site.widget(site, checkout_id)).fill("4000015500000005")
    widget.press()
    note = widget.page.locator(".wpwl-note-error")
    expect(note).to_contain_text("The limit or balance is too low. You were not charged.")
    expect(note).to_be_focused()
    picture(widget.page, "declined")
    expect(widget.number).to_have_value("4000 0155 0000 0005")
    widget.emptied()
    widget.number.fill(GOOD)
    widget.cvv.fill("123")
    widget.press()
    widget.lands()
    assert Payment.objects.filter(status=Status.APPROVED).count() == 1
    assert result(api, checkout_id).code == "000.100.110"


@pytest.fixture
def authenticating(shop: Shop) -> Api:
    return shop.api_of(shop.open_channel("authenticating", three_d_secure=True))


def fill_address(page: Page) -> None:
    for name, value in {"street1": "12 Main Street", "city": "Berlin", "postcode": "10115"}.items():
        page.locator(f".wpwl-control-{name}").fill(value)
    page.locator(".wpwl-control-country").select_option("DE")


def test_a_card_is_challenged_inside_the_page(
    authenticating: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.6, A8.7,.5: the bank's page in a sheet; closed, the form comes back without the code; then passed."""
    checkout_id = checkout(authenticating)
    widget = open_widget(390, 844)
    widget.open(shop_site.widget(site, checkout_id)).fill(PASS)
    fill_address(widget.page)
    picture(widget.page, "address")
    widget.press()
    sheet = widget.page.locator(".wpwl-sheet-challenge")
    bank = widget.page.frame_locator(".wpwl-sheet-frame")
    expect(bank.get_by_label("Code")).to_be_visible()
    picture(widget.page, "challenge")
    sheet.get_by_role("button", name="Close").click()
    expect(widget.page.locator(".wpwl-note")).to_contain_text("You were not charged")
    expect(widget.number).to_have_value("4200 0000 0000 0042")
    widget.emptied()
    widget.cvv.fill("123")
    widget.press()
    bank.get_by_label("Code").fill(CODE)
    bank.get_by_role("button", name="Confirm").click()
    widget.lands()
    assert not widget.faults
    assert result(authenticating, checkout_id).code == "000.100.110"


def test_a_failed_authentication_says_that_nothing_was_charged(
    authenticating: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """For the bank that could not confirm the shopper."""
    widget = open_widget(1000, 800)
    widget.open(shop_site.widget(site, checkout(authenticating))).fill(PASS)
    fill_address(widget.page)
    widget.press()
    bank = widget.page.frame_locator(".wpwl-sheet-frame")
    for left in ("Tries left: 2", "Tries left: 1", ""):
        bank.get_by_label("Code").fill("000000")
        bank.get_by_role("button", name="Confirm").click()
        if left:
            expect(bank.get_by_role("alert")).to_contain_text(left)
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("could not confirm that it is you")
    expect(widget.pay).to_have_attribute("aria-disabled", "false")


def test_a_bank_that_wants_an_authentication_gets_it_in_the_same_payment(
    shop: Shop, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Soft decline: the challenge opens instead of a refusal; closed and tried again, it is still one payment."""
    channel = shop.open_channel("stepping up", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=channel, on_soft_decline="challenge")
    api = shop.api_of(channel)
    checkout_id = checkout(api)
    widget = open_widget(390, 844)
    widget.open(shop_site.widget(site, checkout_id)).fill("4000030002000007")
    fill_address(widget.page)
    widget.press()
    bank = widget.page.frame_locator(".wpwl-sheet-frame")
    expect(bank.get_by_label("Code")).to_be_visible()
    picture(widget.page, "step-up")
    bank.get_by_label("Code").fill(CODE)
    bank.get_by_role("button", name="Confirm").click()
    widget.lands()
    assert not widget.faults
    assert result(api, checkout_id).code == "000.100.110"
    payment = Payment.objects.get()
    assert list(payment.events.order_by("sequence").values_list("event", flat=True)) == [
        "begin", "step_up", "suspend", "resume", "approve",
    ]  # fmt: skip
    widget.page.reload()
    assert result(api, checkout_id).code == "000.100.110"
    assert Payment.objects.count() == 1


def test_a_decline_after_the_challenge_says_why(
    authenticating: Api, site: str, shop_site: Shopfront, open_widget: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bank let the shopper through, the acquirer declined: its reason is told, not the bank's."""
    declined = simulate_card_answer("4000015500000005")
    monkeypatch.setattr("gateway.connectors.simulator.connector.simulate_card_answer", lambda *_, **__: declined)
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout(authenticating))).fill(PASS)
    fill_address(widget.page)
    widget.press()
    bank = widget.page.frame_locator(".wpwl-sheet-frame")
    bank.get_by_label("Code").fill(CODE)
    bank.get_by_role("button", name="Confirm").click()
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("The limit or balance is too low.")
    expect(widget.cvv).to_have_value("")


def test_a_double_click_pays_once(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The button turns to a spinner; the second tap does nothing."""
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.heard().pay.dblclick()
    widget.lands()
    assert Payment.objects.count() == 1


def test_a_lost_answer_is_found_by_the_state(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The payment went through, its answer did not come: the shopper lands at the shop and pays once."""
    widget = open_widget()
    widget.page.route(re.compile("/v1/checkouts/[^/]+/payment"), lose)
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    widget.lands()
    assert Payment.objects.count() == 1


def test_without_a_network_nothing_is_charged_and_the_form_stays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The submission never left, nor its repetition: the words say so, everything that was typed is still there."""
    widget = open_widget()
    pressed: list[Route] = []
    widget.page.route(re.compile("/v1/checkouts/[^/]+/payment"), lambda route: pressed.append(route) or route.abort())
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("So far no payment has been made.")
    assert len(pressed) == 2
    widget.page.unroute_all()
    expect(widget.pay).to_have_attribute("aria-disabled", "false")
    expect(widget.cvv).to_have_value("123")
    expect(widget.expiry).to_have_value("05 / 34")
    widget.press()
    widget.lands()
    assert Payment.objects.count() == 1


def test_a_press_that_was_lost_is_repeated_when_the_line_is_back(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The shopper pressed once and waits: one payment, and no second press."""
    widget = open_widget()
    widget.page.route(re.compile("/v1/checkouts/[^/]+/payment"), lambda route: route.abort(), times=1)
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    widget.lands()
    assert Payment.objects.count() == 1


def test_a_declined_press_after_a_refused_one_is_not_repeated(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The first press is refused by parameter, which is no attempt; the second is declined, and its answer gets lost.
    The state tells that it arrived: number and security code are not sent again."""
    widget = open_widget()
    page = widget.page
    answers: list[dict[str, Any]] = []
    page.route(PAYMENT, lambda route: refuse_by_parameter(route, answers), times=1)
    widget.open(shop_site.widget(site, checkout(api))).fill("4000015500000005")
    widget.press()
    expect(widget.pay).to_have_attribute("aria-disabled", "false")
    until(page, lambda: answers)
    assert (answers[0]["result"]["code"], answers[0]["attempts"]) == ("200.300.404", 0)
    pressed: list[Route] = []
    page.route(PAYMENT, lambda route: pressed.append(route) or lose(route))
    widget.cvv.fill("123")
    widget.press()
    expect(page.locator(".wpwl-note-error")).to_contain_text("The limit or balance is too low.")
    assert (len(pressed), Payment.objects.count()) == (1, 1)


def test_a_press_after_an_answer_that_is_not_the_gateway_s_is_not_repeated(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A proxy refused the first press: what the gateway had counted is not known, so the second is sent once."""
    widget = open_widget()
    page = widget.page
    page.route(PAYMENT, lambda route: route.fulfill(status=403, headers=CORS, json={"error": "no"}), times=1)
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    expect(page.locator(".wpwl-note-error")).to_be_visible()
    expect(widget.pay).to_have_attribute("aria-disabled", "false")
    pressed: list[Route] = []
    page.route(PAYMENT, lambda route: pressed.append(route) or route.abort())
    widget.cvv.fill("123")
    # The first press has left the same words: they count once the second is on its way.
    with page.expect_request(PAYMENT):
        widget.press()
    expect(page.locator(".wpwl-note-error")).to_contain_text("You were not charged")
    assert (len(pressed), Payment.objects.count()) == (1, 0)
    page.unroute_all()
    widget.emptied()
    widget.cvv.fill("123")
    widget.press()
    widget.lands()
    assert Payment.objects.count() == 1


def refuse_by_parameter(route: Route, answers: list[dict[str, Any]]) -> None:
    """The form reaches the gateway with a month that does not exist."""
    sent = re.sub(r"card\.expiryMonth=\d+", "card.expiryMonth=13", route.request.post_data or "")
    answer = route.fetch(post_data=sent, timeout=PATIENCE_MS)
    answers.append(answer.json())
    route.fulfill(response=answer)


def test_an_old_press_of_the_pay_button_is_not_repeated(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """After minutes the shopper may have paid elsewhere: the form shows the state, and asks for another press."""
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout(api))).fill()
    waiting = held(widget, "/v1/checkouts/[^/]+/payment")
    widget.press()
    until(widget.page, lambda: waiting)
    widget.page.evaluate("const now = Date.now(); Date.now = () => now + 120_000; 0")
    waiting[0].abort()
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("So far no payment has been made.")
    assert (len(waiting), Payment.objects.count()) == (1, 0)


def test_an_unknown_or_expired_checkout_says_so(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A8.3: a localized message instead of a form."""
    widget = open_widget(390, 700)
    widget.open(shop_site.widget(site, "0" * 32 + "-node01", lang="de"))
    expect(widget.page.locator(".wpwl-end")).to_contain_text("Die Zeit zum Bezahlen ist abgelaufen")
    expect(widget.page.locator(".wpwl-button-pay")).to_have_count(0)


def test_the_last_two_minutes_are_counted(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A countdown with "continue"; input kept; at the end clear words."""
    widget = open_widget(390, 844)
    page = widget.page
    page.clock.install()
    page.route(re.compile("/config"), lambda route: soon_over(route))
    widget.open(shop_site.widget(site, checkout(api)))
    clock = page.locator(".wpwl-clock")
    expect(clock).to_contain_text("Time left to pay")
    widget.expiry.press_sequentially("0534")
    clock.get_by_role("button", name="Continue").click()
    expect(widget.expiry).to_have_value("05 / 34")
    picture(page, "countdown")
    page.clock.run_for(120_000)
    expect(page.locator(".wpwl-end")).to_contain_text("Your time to pay has run out")


def soon_over(route: Route) -> None:
    answer = route.fetch(timeout=PATIENCE_MS)
    body = answer.json()
    body["checkout"]["secondsLeft"] = 110
    route.fulfill(response=answer, json=body)


def test_back_in_the_browser_after_paying_offers_no_second_payment(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The order is paid: the form is not drawn again."""
    widget = open_widget()
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    widget.lands()
    widget.page.go_back()
    expect(widget.page.locator(".wpwl-end")).to_contain_text("This order is already paid")
    expect(widget.page.get_by_role("link", name="Back to the shop")).to_be_visible()


def test_a_slow_answer_is_explained(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """After five seconds the shopper is asked to wait, and the button still turns."""
    widget = open_widget()
    widget.page.clock.install()
    waiting = held(widget, "/v1/checkouts/[^/]+/payment")
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    expect(widget.pay).to_have_class(re.compile("wpwl-spinning"))
    widget.page.clock.run_for(6_000)
    expect(widget.page.locator(".wpwl-note-info")).to_contain_text("Please keep this page open")
    let_go(widget, waiting)
    widget.lands()


def test_a_registration_widget_posts_to_the_registration(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A27.7: {id}/registration in the script's address; the button says Save; the shop gets the resource's path."""
    checkout_id = checkout(api, amount="", currency="", paymentType="", createRegistration="true")
    widget = open_widget(390, 844)
    widget.open(shop_site.widget(site, f"{checkout_id}/registration")).fill()
    expect(widget.pay).to_have_text(re.compile("Save"))
    labels = {"labels": {"submit": "Book {amount}"}}
    widget.open(shop_site.widget(site, f"{checkout_id}/registration", options=labels)).fill()
    expect(widget.pay).to_have_text("Book")
    widget.press()
    assert f"resourcePath=%2Fv1%2Fcheckouts%2F{checkout_id}%2Fregistration" in widget.lands()
    told = api.get(f"/v1/checkouts/{checkout_id}/registration")
    assert told.code == "000.100.110"
    assert str(Registration.objects.get().pk.hex) == told.id
    assert not Payment.objects.filter(amount__gt=0).exists()


def test_nothing_secret_is_said_to_the_page(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """Every message that the page can hear, and every request that it makes: no digits of the card."""
    widget = open_widget()
    # Without the name of the pair of fields: chance makes it, of digits too.
    listen = """window.heard = []; addEventListener('message', ({ origin, data }) => {
      heard.push([origin, JSON.stringify({ ...data, tollhouse: "" })]);
    });"""
    sent: list[str] = []
    page = widget.page
    page.on("request", lambda request: sent.append(f"{request.frame.url} {request.post_data}"))
    page.route(
        re.compile("/v1/checkouts/[^/]+/payment"),
        lambda route: route.fulfill(status=400, json={"result": {"code": "800.100.152"}, "state": "open"}),
    )
    widget.open(shop_site.widget(site, checkout(api), code=listen)).fill(GOOD, cvv="987")
    widget.press()
    expect(page.locator(".wpwl-note-error")).to_be_visible()
    heard = page.evaluate("heard")
    assert len(heard) > 5
    assert {origin for origin, _ in heard} == {site}
    assert not any(GOOD[:8] in text or "987" in text for _, text in heard)
    assert not any(GOOD in line for line in sent if not line.startswith(site))
    assert any(GOOD in line for line in sent)
    assert not any(
        "4200000000000000" in html or "987" in html
        for html in page.evaluate("Array.from(document.querySelectorAll('input'), (i) => i.value)")
    )
