// Finding the forms, drawing them, and taking them away again.
import { cardPart } from "./card.js";
import { addRules, h, sheetOfRules } from "./dom.js";
import { insist, loadMore, share } from "./later.js";
import { mark } from "./marks.js";
import { OPTIONS, callPage, checkOptions, mistake, mistakes, styleOf } from "./options.js";
import { gateway, textsWithout } from "./server.js";
import * as shared from "./shared.js";
import { baseOf, checkoutOf, complain, givenOptions, pageOptions, warn } from "./start.js";
import { localeOf, speech } from "./texts.js";
import { endOfTime, makeView, newContainer, noBrands, paidBefore } from "./view.js";
/** @import { More } from "./later.js" */
/** @import { CardPart, Checkout, Config, Part, View, Words } from "./types.js" */

share(shared);

/** @param {HTMLFormElement} form */
const brandsOf = (form) => (form.getAttribute("data-brands") || "").split(/\s+/).filter(Boolean);
// Before the configuration has come: does this brand want a card form?
/** @param {string} code */
const looksLikeCard = (code) => !/^(DIRECTDEBIT|CREDITTRANSFER|INVOICE|PREPAYMENT|CASHON|INSTALMENTS|GIFTCARD)|WALLET|TRANSFER|ACCOUNT/.test(code);

const before = window.wpwl;
/** @type {{ view: View, form: HTMLFormElement }[]} */
const drawn = [];
let stopped = false;

/** @type {Published} */
const publish = {
  checkout: { id: "" },
  unload: () => {
    stopped = true;
    drawn.splice(0).forEach(({ view, form }) => {
      view.remove();
      form.hidden = false;
      delete form.dataset.wpwl;
    });
    document.querySelectorAll(".wpwl-banner").forEach((one) => one.remove());
    if (sheetOfRules) addRules(false);
    if (before && before.unload) before.unload();
    if (window.wpwl === publish) delete window.wpwl;
  },
  executePayment: (containerId) => {
    // Wherever the page has put the container.
    const container = document.getElementById(containerId);
    const view = container && drawn.map((one) => one.view).find((one) => one.parts.some((part) => part.container === container));
    if (!view) {
      if (before && before.executePayment) return before.executePayment(containerId);
      const known = Array.from(document.querySelectorAll(".wpwl-container"), (one) => one.id);
      return complain(`executePayment: no container "${containerId}". There are: ${known.join(", ") || "none"}.`);
    }
    const part = /** @type {Part} */ (view.parts.find((one) => one.container === container));
    if (view.choose) view.choose(part);
    part.press();
  },
};

// A page reads the checkout's id here; fast checkout has it once a button was pressed.
/** @param {string} id */
const publishId = (id) => (publish.checkout.id = id);

// A page may take words that the form does not have. What it has instead, the gateway says.
/** @param {PageOptions} options @param {string} taken */
function checkLocale(options, taken) {
  if (options.locale && localeOf(options) !== taken) {
    mistake(`widgetOptions.locale "${options.locale}" is none of the form's languages. Taking ${taken}.`);
  }
}

// What is wrong with the page is said by the second script, which right pages need not load for it. So is what is rare.
/** @param {string} base @param {(more: More) => unknown} say */
const explain = (base, say) => void loadMore(base).then(say).catch((fault) => complain(fault.message));

/** @param {View} view @param {Words} words */
function setWords(view, words) {
  view.words = words;
  view.t = words.t;
  view.t2 = (key) => (key ? words.t(key) : "");
  view.root.lang = words.iso;
  view.root.dir = words.dir;
  /** @type {Element} */ (view.root.querySelector(".wpwl-clock button")).textContent = words.t("goOn");
}

/** @param {string} base @param {string} locale @param {PageOptions} options */
async function wordsWithout(base, locale, options) {
  for (const one of [locale, "en"]) {
    const answer = await textsWithout(base, one).catch(() => null);
    if (answer && answer.status === 200) {
      const { body } = answer;
      return speech(body.locale || one, body.dir || (one === "ar" ? "rtl" : "ltr"), body.texts || body, options);
    }
  }
  return speech("en", "ltr", { loadFailed: "The payment form could not be loaded.", tryAgain: "Try again", expiredTitle: "Your session has expired" }, options);
}

/**
 * @param {HTMLFormElement} form
 * @param {string} base
 * @param {Checkout} checkout
 * @param {PageOptions} options
 * @param {string} style
 */
async function draw(form, base, checkout, options, style) {
  const codes = brandsOf(form);
  const nested = /** @type {HTMLElement} */ (form.parentElement).closest("form");
  if (nested) explain(base, (more) => more.explainNested());
  form.dataset.wpwl = "on";
  form.hidden = true;
  const locale = localeOf(options);
  // Before the words have come nothing is written: the skeleton's bars stand in their place.
  const silent = { ...speech(locale, locale === "ar" ? "rtl" : "ltr", {}, {}), t: () => "\u00a0" };
  const view = makeView(form, base, checkout, silent, { style, again });
  drawn.push({ view, form });
  view.root.classList.add("wpwl-waiting");
  view.root.setAttribute("aria-busy", "true");
  let card = null;
  if (!codes.length || codes.some(looksLikeCard)) {
    card = cardPart(view, codes);
    card.container = newContainer(card);
    view.body.append(card.container);
  }
  if (!codes.every(looksLikeCard)) loadMore(base).catch(() => {});
  const asked = insist(() => (view.over ? Promise.resolve(null) : view.gateway.config(codes, locale))).catch(() => null);
  // The first amount that a page writes takes the browser 20 ms: one is written while the frames are fetched.
  silent.money("0", "EUR");
  let answer = await asked;
  let more = null;
  if (answer && answer.status === 200 && needsMore(answer.body)) {
    more = await loadMore(base).catch((fault) => (complain(fault.message), null));
    if (!more) answer = null;
  }
  if (view.over) return;
  view.root.removeAttribute("aria-busy");
  view.root.classList.remove("wpwl-waiting");
  if (answer && answer.status === 200) return configure(view, answer.body, card, codes, options, nested, more);
  setWords(view, await wordsWithout(base, locale, options));
  if (answer && answer.status === 404) return endOfTime(view);
  failToLoad(view);
}

/** @param {View} view */
function failToLoad(view) {
  view.end("error", view.t("loadFailed"));
  /** @type {Element} */ (view.body.firstChild).append(h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: again }, view.t("tryAgain")));
  view.error("load", view.t("loadFailed"));
}

// Somebody has pressed for it: what is drawn then is read out.
let pressed = false;
function again() {
  pressed = true;
  publish.unload();
  begin();
}

// Anything but a card to type in?
/** @param {Config} config */
const needsMore = (config) =>
  !config.checkout.paid && (config.held || (config.registrations || []).length > 0 || config.brands.some((one) => one.kind !== "card"));

/**
 * @param {View} view
 * @param {Config} config
 * @param {CardPart | null} card
 * @param {string[]} codes
 * @param {PageOptions} options
 * @param {Element | null} nested
 * @param {More | null} more the second script, where anything but a card is offered
 */
function configure(view, config, card, codes, options, nested, more) {
  setWords(view, speech(config.locale, config.dir, config.texts, options));
  view.config = config;
  view.attempts = config.checkout.attempts;
  (config.hidden || []).forEach((one) => warn(`${one.code} is not offered: ${one.reason}`));
  const registration = config.checkout.kind === "registration";
  if (registration !== view.checkout.registration) {
    complain(`This checkout ${registration ? "stores a card: its checkoutId ends with" : "is for a payment: its checkoutId is without"} "/registration".`);
    view.checkout.registration = registration;
    view.gateway = gateway(view.base, view.checkout);
  }
  if (config.checkout.paid) return paidBefore(view);
  const wishes = options.registrations || {};
  const saved = !more || view.checkout.registration ? [] : (config.registrations || []).map((one) => more.savedPart(view, one));
  const onlySaved = saved.length && !config.held && wishes.hideInitialPaymentForms === true;
  const cards = config.brands.filter((one) => one.kind === "card");
  /** @type {Part[]} */
  const others = [];
  for (const brand of onlySaved ? [] : config.brands) {
    if (brand.kind !== "card") others.push(/** @type {More} */ (more).partOf(view, brand));
    else if (card && !others.includes(card)) others.push(card);
  }
  view.parts = [...saved, ...others];
  if (card && !others.includes(card)) {
    card.remove();
    card = null;
  }
  // While a part is held, a form without cards says so.
  if (!view.parts.length && !config.held) {
    complain(`None of data-brands="${codes.join(" ")}" is offered in this checkout.`);
    return noBrands(view);
  }
  if (card) card.configure(config, cards);
  if (more) {
    if (card) {
      card.title = view.t(saved.length ? "otherCard" : "card");
      card.badges = cards.slice(0, 4).map((one) => mark(one.code, "", true));
    }
    more.arrange(view, card);
    more.awaitProviders(view);
  }
  saved.forEach((part) => part.configure());
  view.setSecondsLeft(config.checkout.secondsLeft);
  checkLocale(options, config.locale);
  if (config.test && (nested || mistakes.length)) {
    const faults = mistakes.slice();
    explain(view.base, (second) => view.over || second.showMistakes(faults, Boolean(nested)));
  }
  if (more && config.held) more.offerRest(view, config.held, pressed);
  else if (options.checkout && Number(options.checkout.amount) !== Number(config.checkout.amount)) {
    explain(view.base, (second) => view.over || second.checkAmount(view));
  }
  if (view.configured) view.configured();
  return view.parts.map((part) => part.container);
}

async function begin() {
  stopped = false;
  const options = pageOptions();
  mistakes.length = 0;
  checkOptions(options, OPTIONS, "widgetOptions");
  if (new Set(givenOptions()).size > 1) warn("Both widgetOptions and wpwlOptions are set: the first is read.");
  let base;
  try {
    base = baseOf(options);
  } catch (fault) {
    complain(fault.message);
    callPage("onError", { name: "baseUrl", message: fault.message });
    return explain(baseOf({}), (more) => more.explainBase(options, fault.message));
  }
  const style = styleOf(options);
  const checkout = checkoutOf(options);
  publish.checkout.id = checkout.id || publish.checkout.id;
  window.wpwl = publish;
  const forms = /** @type {HTMLFormElement[]} */ (
    Array.from(document.querySelectorAll("form.paymentWidgets:not([data-wpwl])"))
  );
  if (!forms.length) return void (document.querySelector("[data-wpwl]") || explain(base, (more) => more.explainMissing(base, checkout)));
  addRules(true, style);
  if (checkout.id) {
    const drawings = await Promise.all(forms.map((form) => draw(form, base, checkout, options, style)));
    // Once for all forms: pages put things into them.
    const containers = drawings.flatMap((one) => one || []).filter((one) => one.isConnected);
    if (containers.length) callPage("onReady", containers);
    // What the page has put elsewhere looks and is read as before.
    return drawn.forEach(({ view: { root, parts } }) => parts.forEach(({ container }) => {
      if (!root.contains(container)) Object.assign(container, { lang: root.lang, dir: root.dir }).classList.add(...root.classList);
    }));
  }
  forms.forEach((form) => (form.dataset.wpwl = "on"));
  const [words, more] = await Promise.all([
    wordsWithout(base, localeOf(options), options), loadMore(base).catch((fault) => complain(fault.message)),
  ]);
  if (stopped) return;
  const views = forms.map((form) => {
    form.hidden = true;
    const wishes = { style, publishId };
    const view = more ? more.fastCheckout(form, base, words, wishes, brandsOf(form)) : makeView(form, base, checkout, words, wishes);
    drawn.push({ view, form });
    return view;
  });
  if (!more) return views.forEach(failToLoad);
  callPage("onReady", views.flatMap((view) => view.parts.map((part) => part.container)));
}

// A page that the browser kept and shows again: what stood still may have been paid or have run out.
addEventListener("pageshow", (event) => {
  if (event.persisted) drawn.forEach(({ view }) => {
    if (view.over || !view.gateway) return;
    view.setBusy(null, false);
    explain(view.base, (more) => more.showAgain(view));
  });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  drawn.forEach(({ view }) => {
    view.darken();
    view.parts.forEach((part) => part.look && part.look());
  }));

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
