// Fast checkout: buttons before there is a checkout. The page's createCheckout makes one when a button is pressed.
import {
  back, commonFields, complain, follow, freshId, gateway, makeView, newContainer, pageOptions,
  shopperParameters, warn,
} from "../shared.js";
import { checkAmount } from "./amount.js";
import { pressWallet, walletButton, walletForm } from "./wallets.js";
import { SHEET_OF } from "./wishes.js";
/** @import { Field, OtherBrand, Part, View, ViewOptions, Words } from "../types.js" */

const FAST_BRANDS = Object.keys(SHEET_OF);

/**
 * @param {HTMLFormElement} place
 * @param {string} base
 * @param {Words} words
 * @param {ViewOptions} options
 * @param {string[]} codes
 */
export function fastCheckout(place, base, words, options, codes) {
  const view = makeView(place, base, { id: "", registration: false }, words, options);
  view.root.classList.add("wpwl-fast");
  const facts = codes.map((code) => ({ code, kind: /^WALLET\d$/.test(code) ? code.toLowerCase() : "redirect", label: code }));
  for (const brand of facts) {
    if (!FAST_BRANDS.includes(brand.code)) {
      warn(`${brand.code} needs a checkout: load paymentWidgets.js with checkoutId. Brands without one: ${FAST_BRANDS.join(", ")}.`);
      continue;
    }
    const part = /** @type {Part} */ ({
      kind: brand.kind === "redirect" ? "redirect" : "wallet", fields: /** @type {Field[]} */ ([]), brand: () => brand.code, check: () => /** @type {[Field, string][]} */ ([]), configure: () => {},
      opensWindow: brand.kind === "redirect",
    });
    part.button = walletButton(view, brand, () => pressFast(view, part, brand));
    part.press = () => part.button.click();
    part.form = part.node = walletForm(`wpwl-form-${SHEET_OF[brand.code]}`, part.button);
    part.container = newContainer(part);
    view.parts.push(part);
  }
  view.body.append(...view.parts.map((part) => part.container));
  if (!view.parts.length) view.say("error", words.t("noBrands"), null, true);
  return view;
}

/** @param {View} view @param {Part} part @param {OtherBrand} brand */
async function pressFast(view, part, brand) {
  if (view.busy || view.over) return;
  const options = pageOptions();
  if (typeof options.createCheckout !== "function") {
    complain("widgetOptions.createCheckout must be a function that returns a checkout id, or a promise of one.");
    return view.say("error", view.t("createFailed"));
  }
  view.setBusy(part, true);
  // Opened while the press still counts: later the browser would take it for an unwanted window.
  if (brand.code === "WEBWALLET") part.popup = window.open("about:blank", freshId("window"), "popup,width=480,height=720");
  let id;
  try {
    id = await options.createCheckout({ brand: brand.code });
    if (typeof id !== "string" || !/^[A-Za-z0-9.-]{32,48}$/.test(id)) throw new Error(`createCheckout gave ${JSON.stringify(id)}, not a checkout id`);
    view.checkout = { id, registration: false };
    view.gateway = gateway(view.base, view.checkout);
    /** @type {any} */ (view.options).publishId(id);
    const { status, body } = await view.gateway.config([brand.code], view.words.locale);
    if (status !== 200) throw new Error(`the checkout ${id} is not known to the gateway`);
    view.config = body;
    view.attempts = body.checkout.attempts;
    const offered = (body.brands || []).find((one) => one.code === brand.code);
    if (!offered) throw new Error(`the checkout does not offer ${brand.code}`);
    view.setSecondsLeft(body.checkout.secondsLeft);
    checkAmount(view);
    if (brand.code === "WEBWALLET") {
      const sending = view.gateway.post({ ...commonFields(view), ...shopperParameters(view, part.form), paymentBrand: brand.code });
      return follow(view, part, sending);
    }
    view.busy = false;
    await pressWallet(view, part, { ...brand, ...offered, kind: brand.kind });
  } catch (fault) {
    complain(`${brand.code}: ${fault && fault.message ? fault.message : fault}`);
    back(view, part, "error", view.t("createFailed"), "createCheckout", { brand: brand.code });
  }
}
