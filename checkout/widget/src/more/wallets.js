// Wallets: a button, then a sheet. Where the gateway configures a provider, the provider's own sheet opens; else, in
// the test environment, one of ours that says it is a test.
import {
  ICONS, back, callPage, commonFields, complain, countryField, follow, freshId, h, icon, isolated, mark,
  shopperParameters, textField, warn,
} from "../shared.js";
import { KIND_ICONS } from "./badges.js";
import { providerReady, providerSheet } from "./providers.js";
import { openSheet } from "./sheet.js";
import { SHEET_OF, walletOptions } from "./wishes.js";
/** @import { Field, Fields, OtherBrand, Part, View, Wallet } from "../types.js" */

// A sign for each: a phone, a phone's waves, a purse, a bag, a window. A wallet's real mark is its owner's.
/** @type {Record<string, string>} */
const WALLET_ICONS = {
  WALLET1: "M5.5 1.5h9v17h-9Zm1.7 1.7v11.4h5.6V3.2Zm1.8 12.7v1.2h2v-1.2Z",
  WALLET2: "M3.4 7.2 4.8 6.3a7 7 0 0 1 0 7.4l-1.4-.9a5.3 5.3 0 0 0 0-5.6Zm4-2.4L8.8 3.9a11.5 11.5 0 0 1 0 12.2l-1.4-.9a9.8 9.8 0 0 0 0-10.4Zm4-2.4 1.4-.9a16 16 0 0 1 0 17l-1.4-.9a14.3 14.3 0 0 0 0-15.2Z",
  SHOPWALLET: "M6.2 6V5.3a3.8 3.8 0 0 1 7.6 0V6h3l.7 12H2.5l.7-12Zm1.7 0h4.2V5.3a2.1 2.1 0 0 0-4.2 0ZM4.8 7.7l-.5 8.6h11.4l-.5-8.6h-1.4v2.1h-1.7V7.7H7.9v2.1H6.2V7.7Z",
  WEBWALLET: "M2 3.5h16v13H2Zm1.7 1.7v1.6h12.6V5.2Zm0 3.3v6.3h12.6V8.5Zm6.8 2h4v1.7h-4Z",
};
/** @param {string} code @param {string} [classes] */
const walletIcon = (code, classes) => icon(WALLET_ICONS[code] || KIND_ICONS.wallet, classes);

/** @param {View} view @param {OtherBrand} brand @param {(event: Event) => void} onclick */
export function walletButton(view, brand, onclick) {
  const wishes = walletOptions(brand.code);
  const button = h("button", {
    // No type, which a page's reset of [type="button"] would meet; so it must not submit a form around it.
    class: `wpwl-button wpwl-button-brand wpwl-button-pay wpwl-wallet wpwl-wallet-${brand.code}`,
    "data-color": wishes.buttonColor, "data-placement": wishes.placement, onclick: (event) => { event.preventDefault(); onclick(event); },
  }, h("span", { class: "wpwl-spinner", "aria-hidden": "true" }), walletIcon(brand.code), h("span", { class: "wpwl-button-text" }, view.t("payWith", { brand: view.words.label(brand) })));
  return button;
}

// A form only of a button and of what the page puts into it. A provider's button may be one that submits.
/** @param {string} names @param {HTMLElement} button */
export const walletForm = (names, button) =>
  h("form", { class: `wpwl-form ${names}`, novalidate: true, action: "#", onsubmit: (event) => event.preventDefault() }, button);

/** @param {View} view @param {OtherBrand} brand */
export function walletPart(view, brand) {
  const part = /** @type {Part} */ ({
    kind: brand.kind === "redirect" ? "redirect" : "wallet", opensWindow: brand.kind === "redirect", fields: /** @type {Field[]} */ ([]), title: view.words.label(brand), badges: [walletIcon(brand.code, "wpwl-kind")], configure: () => {},
    shown: () => !part.form.hidden, brand: () => brand.code, check: () => /** @type {[Field, string][]} */ ([]),
  });
  const { provider } = (view.config.wallets || {})[brand.code] || {};
  if (provider) part.ready = providerReady(view, brand, provider);
  part.button = walletButton(view, brand, () => pressWallet(view, part, brand));
  part.form = walletForm(`wpwl-form-${SHEET_OF[brand.code]} wpwl-form-${brand.code}`, part.button);
  part.press = () => part.button.click();
  part.node = part.form;
  return part;
}

/** @param {View} view @param {Part} part @param {OtherBrand} brand */
export async function pressWallet(view, part, brand) {
  if (view.busy || view.over) return;
  const { provider, ...wallet } = (view.config.wallets || {})[brand.code] || {};
  view.setBusy(part, true);
  let sheet;
  try {
    sheet = await (provider ? providerSheet(view, brand, provider) : walletSheet(view, brand, wallet));
    if (sheet && !(await stillFor(view, brand, sheet.amount))) {
      sheet.complete(false);
      return back(view, part, "error", view.t("amountChanged"), "amount", { page: sheet.amount, checkout: view.config.checkout.amount });
    }
  } catch (fault) {
    complain(`${brand.code}: ${(fault && fault.message) || fault}`);
    return back(view, part, "error", view.t("tryAgainLater"), "wallet");
  }
  if (!sheet) {
    view.setBusy(null, false);
    return view.say("info", view.t("stopped"), null, true);
  }
  if (sheet.popup) part.popup = sheet.popup;
  /** @type {Fields} */
  const fields = { ...commonFields(view), ...shopperParameters(view, part.form), paymentBrand: brand.code };
  const token = sheet.token || (view.config.wallets?.[brand.code]?.testTokens || [])[sheet.picked]?.token;
  if (token) fields[`${SHEET_OF[brand.code]}.paymentToken`] = token;
  for (const name of view.config.billing) if (sheet.address[name]) fields[`billing.${name}`] = sheet.address[name];
  const sending = view.gateway.post(fields);
  callPage("onAfterSubmit", { brand: brand.code });
  sending.then(({ body }) => sheet.complete(body.state !== "open" && body.state !== "expired"), () => sheet.complete(null));
  await follow(view, part, sending);
}

// What the shopper agreed to in a sheet is what is charged. The shop may have changed the checkout meanwhile: the test
// cards' tokens are read anew with its amount, since they are made for it. A page that is asked while the sheet is open
// may have changed it and told the sheet nothing.
/** @param {View} view @param {OtherBrand} brand @param {string} amount */
async function stillFor(view, brand, amount) {
  const same = () => !amount || !view.config.checkout.amount || Number(amount) === Number(view.config.checkout.amount);
  if (same() && typeof walletOptions(brand.code).onPaymentDataChanged !== "function") return true;
  const { status, body } = await view.gateway.config([brand.code], view.words.locale).catch(() => /** @type {any} */ ({}));
  if (status === 200) {
    Object.assign(view.config.checkout, body.checkout);
    view.config.wallets = { ...view.config.wallets, ...body.wallets };
  }
  if (!same()) complain(`The sheet showed ${amount}, the checkout's amount is ${view.config.checkout.amount}: update the checkout before you show another total.`);
  return same();
}

/** @param {View} view @param {string} label @param {string} price @param {string} currency @param {string} [classes] */
const priceRow = (view, label, price, currency, classes) =>
  h("div", { class: `wpwl-price ${classes || ""}` }, h("dt", {}, label), h("dd", {}, view.words.money(price, currency)));

// Our own sheet: what the shopper buys, for how much, with which (test) card. Resolves with the fields of the payment,
// or null when it was closed.
/** @param {View} view @param {OtherBrand} brand @param {Wallet} wallet */
function walletSheet(view, brand, wallet) {
  return new Promise((resolve) => {
    const { t } = view;
    const wishes = walletOptions(brand.code);
    const checkout = view.config.checkout;
    const currency = wishes.currencyCode || wishes.ledgerCurrency || checkout.currency;
    const isShop = brand.kind === "redirect";
    let items = Array.isArray(wishes.displayItems) ? wishes.displayItems : [];
    let amount = wishes.amount || checkout.amount || "0.00";
    const estimated = wishes.prefetchPriceStatus && wishes.prefetchPriceStatus !== "FINAL";
    if (checkout.currency && currency !== checkout.currency) warn(`${brand.code}: the page says ${currency}, the checkout is in ${checkout.currency}.`);

    const list = h("dl", { class: "wpwl-prices" });
    const showPrices = () => list.replaceChildren(
      ...items.map((/** @type {any} */ one) => priceRow(view, one.label, one.price, currency, `wpwl-price-${String(one.type || "LINE_ITEM").toLowerCase()}`)),
      priceRow(view, estimated ? t("estimated") : t("total"), amount, currency, "wpwl-total"));
    const fault = h("div", { class: "wpwl-note wpwl-note-error", hidden: true, role: "alert" }, icon(ICONS.alert), h("div", {}));
    /** @param {string} [text] */
    const fail = (text) => {
      fault.hidden = !text;
      /** @type {Node} */ (fault.lastChild).textContent = text || "";
    };

    // Shipping is asked by an online shop's wallet that ships; a billing address where the page wants one.
    const parameters = wishes.billingAddressParameters || {};
    const wanted = wishes.billingAddressRequired || wishes.productType === "PayAndShip";
    /** @param {string} text */
    const blank = (text) => (text ? "" : "fieldError");
    const full = parameters.format !== "MIN";
    const address = !wanted ? [] : [
      textField(view, "fullName", { label: t("fullName"), autocomplete: "name", parameter: "name", check: blank }),
      full && textField(view, "street1", { label: t("street1"), autocomplete: "address-line1", parameter: "address1", check: blank }),
      full && textField(view, "city", { label: t("city"), autocomplete: "address-level2", parameter: "locality", check: blank }),
      textField(view, "postcode", { label: t("postcode"), autocomplete: "postal-code", parameter: "postalCode", check: blank }),
      countryField(view),
      parameters.phoneNumberRequired && textField(view, "phone", { label: t("phone"), autocomplete: "tel", parameter: "phoneNumber", inputmode: "tel", check: blank }),
    ].filter(Boolean);
    const addressValues = () => {
      const { "billing.country": countryCode, ...rest } = Object.assign({}, ...address.map((field) => field.values()));
      return { ...rest, countryCode };
    };

    const cards = wallet.testTokens || [];
    if (!isShop && !cards.length) throw new Error("no provider is configured for this wallet at the gateway");
    const picks = freshId("pick");
    const choices = isShop ? null : h("fieldset", { class: "wpwl-choices wpwl-choices-tall" }, h("legend", { class: "wpwl-label" }, t("card")),
      cards.map((card, at) => h("label", { class: "wpwl-choice" }, h("input", { type: "radio", name: picks, value: at, checked: at === 0 }),
        mark(card.network || "VISA", "", true), h("span", {}, isolated(`•••• ${card.last4}`), " · ", t(card.outcome === "declined" ? "testDeclined" : "testApproved")))));

    const pay = h("button", { class: "wpwl-button wpwl-button-pay" }, h("span", { class: "wpwl-spinner", "aria-hidden": "true" }), h("span", { class: "wpwl-button-text" }));
    const showPay = () => (/** @type {Node} */ (pay.lastChild).textContent = isShop ? t("continueTo", { brand: view.words.label(brand) }) : t("pay", { amount: isolated(view.words.money(amount, currency)) }));
    let asking = 0, paying = false, closed = false;
    const showWork = () => {
      pay.classList.toggle("wpwl-spinning", paying || asking > 0);
      pay.setAttribute("aria-disabled", String(paying || asking > 0));
    };
    /** @param {boolean} on */
    const work = (on) => {
      paying = on;
      showWork();
    };
    /** @param {string} trigger */
    const ask = async (trigger) => {
      try {
        const update = (await wishes.onPaymentDataChanged({ callbackTrigger: trigger, paymentMethodData: { type: "CARD" }, shippingAddress: wanted ? addressValues() : undefined })) || {};
        const price = update.newTransactionInfo || update;
        if (price.totalPrice || price.amount) amount = String(price.totalPrice || price.amount);
        if (Array.isArray(price.displayItems)) items = price.displayItems;
        fail(update.error && update.error.message);
      } catch (trouble) {
        complain(`${SHEET_OF[brand.code]}.onPaymentDataChanged was rejected: ${trouble}`);
        fail(t("tryAgainLater"));
      }
      showPrices();
      showPay();
      asking -= 1;
      showWork();
    };
    // The page is asked one change after the other: an early answer that comes late would show an old total.
    let asked = Promise.resolve();
    /** @param {string} trigger */
    const changed = (trigger) => {
      if (typeof wishes.onPaymentDataChanged !== "function") return;
      asking += 1;
      showWork();
      asked = asked.then(() => ask(trigger));
    };

    const form = h("form", { class: "wpwl-stack", novalidate: true, action: "#", onsubmit: async (event) => {
      event.preventDefault();
      if (paying) return;
      const wrong = address.map((field) => [field, view.t2(field.judge())]).filter(([field, text]) => { field.fail(text); return text; });
      if (wrong.length) return wrong[0][0].focus();
      work(true);
      // Leaving a field by pressing "Pay" is a change of it, too. Another total than the one on the button, or an error,
      // wants another press.
      if (asking) {
        const agreed = amount;
        while (asking) await asked;
        if (closed) return;
        if (amount !== agreed || !fault.hidden) return work(false);
      }
      const popup = isShop ? window.open("about:blank", freshId("window"), "popup,width=480,height=720") : null;
      const picked = choices ? Number(/** @type {HTMLInputElement} */ (form.querySelector(`[name="${picks}"]:checked`)).value) : -1;
      const card = cards[picked];
      if (typeof wishes.onPaymentAuthorized === "function") {
        let verdict;
        try {
          verdict = (await wishes.onPaymentAuthorized({
            apiVersion: 2, apiVersionMinor: 0, email: undefined,
            paymentMethodData: { type: "CARD", description: card ? `${card.network} •••• ${card.last4}` : "", info: { cardNetwork: card && card.network, cardDetails: card && card.last4, billingAddress: wanted ? addressValues() : undefined } },
          })) || {};
        } catch (trouble) {
          complain(`${SHEET_OF[brand.code]}.onPaymentAuthorized was rejected: ${trouble}`);
          verdict = {};
        }
        if (verdict.transactionState !== "SUCCESS") {
          if (popup) popup.close();
          work(false);
          return fail((verdict.error && verdict.error.message) || t("tryAgainLater"));
        }
      }
      sheet.close("done");
      const at = wanted ? addressValues() : {};
      resolve({
        popup, picked, amount, complete: () => {},
        address: { street1: at.address1, city: at.locality, postcode: at.postalCode, country: at.countryCode },
      });
    } }, h("p", { class: "wpwl-test" }, t("testSheet")),
      wishes.merchantName && h("div", { class: "wpwl-merchant" }, wishes.merchantName), list, choices, address.map((field) => field.node), fault,
      h("div", { class: "wpwl-group wpwl-group-submit" }, pay));
    if (wanted) address.forEach((field) => field.control.addEventListener("change", () => changed("SHIPPING_ADDRESS")));
    showPrices();
    showPay();
    const sheet = openSheet(view, { name: "wallet", title: view.words.label(brand), content: form, onClose: () => { closed = true; resolve(null); } });
    const language = wishes.checkoutLanguage;
    if (language) sheet.dialog.dataset.language = language;
    changed("INITIALIZE");
  });
}
