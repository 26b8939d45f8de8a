"""The requests with other means than a card, with a shopper who is sent away, and with what was stored before.

Every secret is made for one request: bank accounts, tokens and their proofs, PINs of gift cards, wallets' tokens, the
CVV that waits sealed while its shopper is away.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from gateway.connectors.simulator.token_service import build_simulated_token
from tests.canary.cards import Aviary, Canary
from tests.canary.site import FORM, Reply, Site
from tests.canary.traffic import follow, payment

CODE = "123456"
ENDINGS = {"passed": "code", "cancelled": "cancel", "failed": "fail", "wrong code": "code", "left": ""}
"""What the shopper at the challenge does → the button that is pressed; those who leave press none."""
ELSEWHERE = ("ONLINETRANSFER", "WEBWALLET", "SHOPWALLET", "INVOICE")
FORMATS = {"wallet1": ("ec_v1", "rsa_v1"), "wallet2": ("ecv2", "ecv1"), "wallet3": ("jwe",)}
RESULT_URL = "https://shop.example/result"
FACE = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
STEERED = {"customParameters[3DS2_enrolled]": "true", "customParameters[3DS2_flow]": "challenge"}
SHOPPER = {
    "shopperResultUrl": RESULT_URL,
    "customer.browser.acceptHeader": "text/html",
    "customer.browser.language": "en-GB",
    "customer.browser.screenHeight": "1080",
    "customer.browser.screenWidth": "1920",
    "customer.browser.timezone": "-60",
    "customer.browser.userAgent": "Mozilla",
    "customer.browser.javaEnabled": "false",
    "billing.street1": "Main Street",
    "billing.city": "Berlin",
    "billing.postcode": "10115",
    "billing.country": "DE",
}


CALL_ACCOUNT_UPDATER = (
    "from gateway.payments.account_update_batch import ask_about_due_cards, run_account_updater; "
    "assert ask_about_due_cards() + run_account_updater()"
)
CALL_TOKEN_SERVICE = "from gateway.payments import network_tokens; network_tokens.call_token_service_when_due()"


def send_everything(site: Site, aviary: Aviary) -> None:
    """Send all requests of this module; the site stores the answers."""
    challenges(site, aviary)
    elsewhere(site, aviary)
    token_accounts(site, aviary)
    bank_accounts(site, aviary)
    gift_cards(site, aviary)
    wallets(site, aviary)
    registrations(site, aviary)
    network_tokens(site, aviary)
    account_updates(site, aviary)


# --- a shopper who is sent away -------------------------------------------------------------------------------------


def challenges(site: Site, aviary: Aviary) -> None:
    """3-D Secure: the CVV waits for the shopper, who passes, cancels, fails, errs, or never comes back."""
    for ending, move in ENDINGS.items():
        card = aviary.card(f"3DS challenge, {ending}")
        answer = site.post(card.label, "/v1/payments", payment(card, **SHOPPER, **STEERED) | _at(site, "3ds"))
        address, token = _redirect(answer)
        page = f"{address}?{urlencode({'token': token})}"
        assert site.send(card.label, "GET", page).status == 200
        site.send(card.label, "GET", f"{page}&embedded=true")
        site.get(card.label, f"/v1/payments/{answer.id}", _at(site, "3ds"))
        if not move:
            continue
        code = {"code": "000000" if ending == "wrong code" else CODE} if move == "code" else {}
        for _ in range(3 if ending == "wrong code" else 1):
            said = _press(site, card.label, address, {"token": token, "move": move, **code})
            assert said.status == 303, said.text[:500]
        # The back button; the result that the merchant reads; what the acquirer was sent.
        site.send(card.label, "GET", page)
        site.get(card.label, f"/v1/payments/{answer.id}", _at(site, "3ds"))
        site.get(card.label, "/v1/test/acquirer/messages", {"id": answer.id, **_at(site, "3ds")})
    for label, extra in {
        "3DS without a challenge": {"customParameters[3DS2_flow]": "frictionless"},
        "3DS by the merchant alone": {"threeDSecure.channel": "03", "threeDSecure.threeRIInd": "RECURRING"},
        "3DS in an app": {"threeDSecure.deviceInfo": "eyJhbGciOiJ"},
        "3DS decoupled": {"threeDSecure.decoupled": "true"},
        "3DS with a fault": {"billing.city": "", "customer.browser.userAgent": ""},
    }.items():
        card = aviary.card(label)
        fields = payment(card, **SHOPPER, **STEERED) | extra | _at(site, "3ds")
        site.post(label, "/v1/payments", fields)
    card = aviary.card("3DS alone")
    fields = {name: value for name, value in payment(card, **SHOPPER, **STEERED).items() if name != "paymentType"}
    site.post(card.label, "/v1/threeDSecure", fields | _at(site, "3ds"))
    # The shopper types a card number and a CVV where the code belongs.
    card, typed = aviary.card("3DS challenge, mistyped"), aviary.card("the card as a code")
    answer = site.post(card.label, "/v1/payments", payment(card, **SHOPPER, **STEERED) | _at(site, "3ds"))
    address, token = _redirect(answer)
    for entry in (typed.number, f"{typed.number} {typed.cvv}", typed.cvv):
        _press(site, typed.label, address, {"token": token, "move": "code", "code": entry})
    site.send(typed.label, "GET", f"{address}?{urlencode({'token': token, 'card': typed.number})}")
    site.send(typed.label, "GET", f"{address}?{urlencode({'token': typed.number})}")


def elsewhere(site: Site, aviary: Aviary) -> None:
    """A bank, a wallet, a shop's wallet, an invoice house: their pages, and a card where none belongs."""
    for brand in ELSEWHERE:
        for outcome in ("approve", "decline", "cancel", "leave"):
            card = aviary.card(f"{brand}, {outcome}")
            fields = {**FACE, "paymentBrand": brand, "shopperResultUrl": RESULT_URL}
            answer = site.post(card.label, "/v1/payments", fields)
            address = urlsplit(answer.body["redirect"]["url"]).path
            assert site.send(card.label, "GET", address).status == 200
            sent = {"outcome": outcome, "card.number": card.number, "card.cvv": card.cvv}
            said = _press(site, card.label, f"{address}?{urlencode({'card': card.number})}", sent)
            assert said.status == (200 if outcome == "leave" else 303), said.text[:500]
            site.send(card.label, "GET", address)
        card = aviary.card(f"{brand} with a card")
        site.post(card.label, "/v1/payments", payment(card, paymentBrand=brand, shopperResultUrl=RESULT_URL))
    waiting = site.post("prepayment", "/v1/payments", {**FACE, "paymentBrand": "PREPAYMENT"}).id
    card = aviary.card("a transfer with a card")
    fields = {"outcome": "arrived", "card.number": card.number}
    site.post(card.label, f"/v1/test/transfers/{waiting}", fields)


# --- other means ----------------------------------------------------------------------------------------------------


def token_accounts(site: Site, aviary: Aviary) -> None:
    """Number, cryptogram and dtvc."""
    for proof in ("cryptogram", "dtvc"):
        for label, extra in (
            ("", {}),
            (", a fault", {"amount": "x"}),
            (", expired", {"tokenAccount.expiryYear": "2024"}),
        ):
            card = aviary.card(f"token account, {proof}{label}")
            shown = card.cvv if proof == "dtvc" else aviary.secret(card.label, 28)
            site.post(card.label, "/v1/payments", _token(card, **{f"tokenAccount.{proof}": shown}) | extra)
    card = aviary.card("token account, wrong proofs")
    wrong = {"tokenAccount.cryptogram": f"({aviary.secret(card.label, 28)})", "tokenAccount.dtvc": f"{card.cvv}x"}
    site.post(card.label, "/v1/payments", _token(card, **wrong))


def bank_accounts(site: Site, aviary: Aviary) -> None:
    """IBANs, right and wrong, at a payment, at what follows it, and where none belongs."""
    for label, check, extra in (
        ("an IBAN", 0, {}),
        ("an IBAN, a fault", 0, {"amount": "x"}),
        ("an IBAN, wrong check digits", 1, {}),
        ("an IBAN, malformed", 0, {"bankAccount.bic": "X"}),
        ("an IBAN, with a mandate", 0, {"bankAccount.mandate.id": "MANDATE-ABC"}),
        ("an IBAN, beside a card brand", 0, {"paymentBrand": "VISA"}),
    ):
        iban = aviary.iban(label, wrong_by=check)
        answer = site.post(label, "/v1/payments", _bank(iban) | extra)
        if answer.status == 200:
            for kind in ("RB", "RF"):
                site.post(f"{label}, {kind}", f"/v1/payments/{answer.id}", follow(kind))
            site.get(label, f"/v1/payments/{answer.id}")
            site.get(label, "/v1/test/acquirer/messages", {"id": answer.id})
    stored = site.post("an IBAN, stored", "/v1/registrations", _bank(aviary.iban("an IBAN, stored"), registered=True))
    site.post("an IBAN, by a click", f"/v1/registrations/{stored.id}/payments", FACE)


def gift_cards(site: Site, aviary: Aviary) -> None:
    """PINs and numbers, alone and beside a card."""
    for label, extra in (("", {}), (", a fault", {"amount": "x"}), (", as a holder", {"giftCard.type": "NONE"})):
        card = aviary.card(f"gift card{label}")
        gift = {"giftCard.number": f"GC-{card.number}", "giftCard.pin": aviary.secret(card.label, 12)}
        answer = site.post(card.label, "/v1/payments", {**FACE, "paymentBrand": "GIFTCARD", **gift, **extra})
        if answer.status == 200:
            site.post(card.label, f"/v1/payments/{answer.id}", follow("RF"))
            site.get(card.label, "/v1/test/acquirer/messages", {"id": answer.id})
    card = aviary.card("gift card beside a card")
    site.post(card.label, "/v1/payments", payment(card) | {"giftCard.pin": aviary.secret(card.label, 12)})


def wallets(site: Site, aviary: Aviary) -> None:
    """A token pays, is sent again, was changed, is none; and the way in which the merchant opened it."""
    for wallet, forms in FORMATS.items():
        for form in forms:
            for defect in ("", "expired", "tampered"):
                card = aviary.card(f"{wallet}, {form}{', ' if defect else ''}{defect}")
                asked = {"wallet": wallet, "format": form, "amount": "92.00", "currency": "EUR", "number": card.number}
                made = site.post(card.label, "/v1/test/wallet-token", asked | ({"defect": defect} if defect else {}))
                assert made.status == 200, made.text
                token = str(made.body["paymentToken"])
                # This one answer is there to tell it.
                site.replies.pop()
                aviary.known_secret(card.label, _core(token))
                fields = {**FACE, "paymentBrand": wallet.upper(), f"{wallet}.paymentToken": token}
                answer = site.post(card.label, "/v1/payments", fields)
                site.post(card.label, "/v1/payments", fields)
                site.post(card.label, "/v1/payments", fields | {"amount": "x"})
                if answer.status == 200:
                    site.get(card.label, "/v1/test/acquirer/messages", {"id": answer.id})
        card = aviary.card(f"{wallet}, no token")
        text = json.dumps({"card.number": card.number, "card.cvv": card.cvv})
        for sent in (card.number, text):
            fields = {**FACE, "paymentBrand": wallet.upper(), f"{wallet}.paymentToken": sent}
            site.post(card.label, "/v1/payments", fields)
        card = aviary.card(f"{wallet}, opened by the merchant")
        proof = {"threeDSecure.eci": "05", "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}
        opened = payment(card) | {"paymentBrand": wallet.upper(), f"{wallet}.source": "web"} | proof
        site.post(card.label, "/v1/payments", opened)


def registrations(site: Site, aviary: Aviary) -> None:
    """Cards that are kept, changed, paid with by a click with a CVV, and forgotten."""
    for label, extra in (
        ("kept", {}),
        ("kept, a fault", {"card.expiryMonth": "13"}),
        ("kept, expired", {"card.expiryYear": "2024"}),
    ):
        card = aviary.card(label)
        fields = {name: value for name, value in payment(card).items() if name.startswith("card.")}
        site.post(label, "/v1/registrations", fields | extra)
    first = aviary.card("kept with a payment")
    ident = site.post(first.label, "/v1/payments", payment(first, createRegistration="true")).body["registrationId"]
    path = f"/v1/registrations/{ident}"
    for label, extra in (
        ("a click with a CVV", {}),
        ("a click with a CVV, a fault", {"amount": "x"}),
    ):
        site.post(label, f"{path}/payments", {**FACE, "card.cvv": aviary.card(label).cvv, **extra})
    there = aviary.card("kept where cards are authenticated")
    fields = {name: value for name, value in payment(there).items() if name.startswith("card.")}
    kept = site.post(there.label, "/v1/registrations", fields | {"threeDSecure.disable": "true"} | _at(site, "3ds")).id
    card = aviary.card("a click with a CVV, authenticated")
    clicked = {**FACE, "card.cvv": card.cvv, **SHOPPER, **STEERED, **_at(site, "3ds")}
    site.post(card.label, f"/v1/registrations/{kept}/payments", clicked)
    card = aviary.card("a click with a number")
    site.post(card.label, f"{path}/payments", {**FACE, "card.number": card.number, "card.cvv": card.cvv})
    card = aviary.card("a registration changed")
    newer = {name: value for name, value in payment(card).items() if name.startswith("card.")}
    site.post(card.label, path, newer)
    site.get(card.label, path)
    site.post(card.label, f"{path}/payments", {**FACE, "card.cvv": card.cvv})
    card = aviary.card("a registration read by a number")
    site.get(card.label, f"/v1/registrations/{card.number}")
    site.get(card.label, path, {"card.number": card.number})
    query = urlencode({"entityId": site.facts["entity_id"]})
    assert site.send(card.label, "DELETE", f"{path}?{query}", headers=site.own({}, {})).status == 200


def network_tokens(site: Site, aviary: Aviary) -> None:
    """The network token of a stored card: given, sent with its cryptogram, suspended, deleted with its card."""
    card = aviary.card("a card with a network token")
    aviary.known_secret(card.label, build_simulated_token(card.number))
    with site.connect() as database:
        database.execute("UPDATE gateway_channel SET network_tokens = true WHERE id = %s", [site.facts["entity_id"]])
    fields = {name: value for name, value in payment(card).items() if name.startswith("card.")}
    ident = site.post(card.label, "/v1/registrations", fields).id
    # This timer alone: the self-test of the published cards, two of which are sent here, keeps their rows' names.
    site.run("manage.py", "shell", "-c", CALL_TOKEN_SERVICE)
    paid = site.post(card.label, f"/v1/registrations/{ident}/payments", {**FACE, "card.cvv": card.cvv})
    site.get(card.label, "/v1/test/acquirer/messages", {"id": paid.id})
    site.post(card.label, f"/v1/payments/{paid.id}", follow("RF"))
    site.get(card.label, f"/v1/registrations/{ident}")
    site.post(card.label, f"/v1/test/network-tokens/{ident}", {"event": "SUSPENDED"})
    site.post(card.label, f"/v1/registrations/{ident}/payments", FACE)


def account_updates(site: Site, aviary: Aviary) -> None:
    """A stored card that the account updater is asked about: in real time, and in a file."""
    card = aviary.card("a card with the account updater")
    with site.connect() as database:
        database.execute("UPDATE gateway_channel SET account_updater = true WHERE id = %s", [site.facts["entity_id"]])
    fields = {name: value for name, value in payment(card).items() if name.startswith("card.")}
    initial = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
    merchants = {
        "standingInstruction.mode": "REPEATED",
        "standingInstruction.source": "MIT",
        "standingInstruction.type": "UNSCHEDULED",
    }
    ident = site.post(card.label, "/v1/registrations", {**fields, **initial}).id
    site.run("manage.py", "shell", "-c", CALL_ACCOUNT_UPDATER)
    site.get(card.label, f"/v1/registrations/{ident}")
    again = site.post(card.label, "/v1/registrations", {**fields, **initial}).id
    site.post(card.label, f"/v1/registrations/{again}/payments", {**FACE, **merchants})
    with site.connect() as database:
        database.execute("UPDATE gateway_channel SET account_updater = false WHERE id = %s", [site.facts["entity_id"]])


# --- the fields -----------------------------------------------------------------------------------------------------


def _at(site: Site, channel: str) -> dict[str, str]:
    return {"entityId": str(site.facts["channels"][channel])}


def _redirect(answer: Reply) -> tuple[str, str]:
    """The address of the shopper's page, and its token."""
    told = answer.body.get("redirect")
    assert told is not None, answer.text
    token = next(one["value"] for one in told["parameters"] if one["name"] == "token")
    return urlsplit(told["url"]).path, str(token)


def _press(site: Site, label: str, address: str, fields: Mapping[str, str]) -> Reply:
    return site.send(label, "POST", address, urlencode(fields).encode(), headers={"Content-Type": FORM})


def _token(card: Canary, **changes: str) -> dict[str, str]:
    fields = {
        "paymentBrand": "VISA",
        "tokenAccount.number": card.number,
        "tokenAccount.type": "NETWORK",
        "tokenAccount.expiryMonth": "05",
        "tokenAccount.expiryYear": "2034",
    }
    return FACE | fields | changes


def _bank(iban: str, *, registered: bool = False) -> dict[str, str]:
    account = {
        "paymentBrand": "DIRECTDEBIT_SEPA",
        "bankAccount.holder": "Jane Jones",
        "bankAccount.iban": iban,
        "bankAccount.bic": "MARKDEF1100",
    }
    return account if registered else FACE | account


def _core(token: str) -> str:
    """What is its own in a token: a piece of its longest text, which no other token has."""
    longest = max(token.replace("\\", '"').replace(".", '"').split('"'), key=len)
    middle = len(longest) // 2
    return longest[middle : middle + 40]
