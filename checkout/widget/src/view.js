// One widget: what stands in the place of one <form class="paymentWidgets">.
import { ICONS, h, icon, isDarkBehind } from "./dom.js";
import { callPage } from "./options.js";
import { gateway } from "./server.js";
import { complain, pageOptions } from "./start.js";
import { isolated } from "./texts.js";
/** @import { Checkout, Config, Gateway, HostedField, Part, Sheet, View, ViewOptions, Words } from "./types.js" */

/** @type {[string, RegExp][]} */
const DECLINES = [
  ["declinedCvv", /^(800\.100\.153|100\.100\.60)/],
  ["declinedExpired", /^(100\.100\.(2|30)|800\.100\.157)/],
  ["declinedFunds", /^800\.100\.(155|162|163|179|203)/],
  ["declinedThreeds", /^(100\.39|100\.380|000\.400\.(1\d[1-9]|2)|800\.400\.2)/],
  ["declinedBank", /^(800\.[17]00|800\.800\.[123]|300\.100)/],
  ["declinedCard", /^(100\.100|100\.2[01])/],
  ["declinedRisk", /^(100\.400|800\.[123]|800\.400\.1)/],
];
/** @param {string} code */
export const declineKey = (code) => (DECLINES.find(([, family]) => family.test(code)) || ["declinedTechnical"])[0];
export const SUCCESS = /^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[12]10|000\.400\.1?[012]0|000\.400\.100)/;
// The state of a checkout that nobody tried to pay, and of one whose shopper went back on the bank's page.
export const WAITING = /^(000\.200|$)/;
export const CANCELLED = /^100\.396\.10[14]/;

const COUNTDOWN_S = 120;
const SLOW_MS = 5000;
// A press is over so long after the finger was lifted: its click has come by then.
export const RELEASED_MS = 500;
// Where a browser or a phone may be sent: web pages, and apps named like a domain backwards. The same rule as the
// gateway's (gateway/catalogue/formats.py, may_be_opened): what is allowed, since new schemes that run or read something may come.
export const MAY_OPEN = /^(https?|[a-z][a-z0-9-]*(\.[a-z0-9-]+)+):/i;

/**
 * @param {HTMLElement} place
 * @param {string} base
 * @param {Checkout} checkout
 * @param {Words} words
 * @param {ViewOptions} options
 * @returns {View}
 */
export function makeView(place, base, checkout, words, options) {
  const root = h("div", { class: `wpwl-widget wpwl-style-${options.style}`, lang: words.iso, dir: words.dir });
  const note = h("div", { class: "wpwl-notes" });
  const live = h("div", { class: "wpwl-hidden", role: "alert" });
  const body = h("div", { class: "wpwl-body" });
  root.append(note, body, live);
  place.after(root);
  const view = /** @type {View} */ ({
    root, body, base, checkout, words, options, place, parts: /** @type {Part[]} */ ([]), sheets: /** @type {Set<Sheet>} */ (new Set()), frames: /** @type {HostedField[]} */ ([]), timers: /** @type {number[]} */ ([]), busy: false, over: false,
    t: words.t,
    t2: (key) => (key ? words.t(key) : ""),
    gateway: /** @type {Gateway} */ (checkout.id ? gateway(base, checkout) : null),
    later: (job, ms) => view.timers.push(setTimeout(job, ms)),
  });

  // While a button is pressed no error may appear: it would push the button away from under the finger.
  /** @param {boolean} on */
  const pressing = (on) => (/** @type {any} */ event) => (view.pressing = on && Boolean(event.target.closest("button")));
  // A finger that slid off the button is lifted without a click, perhaps far from the form.
  const released = () => view.later(() => (view.pressing = false), RELEASED_MS);
  root.addEventListener("pointerdown", (event) => pressing(true)(event) && addEventListener("pointerup", released, { once: true }));
  root.addEventListener("click", pressing(false));
  root.addEventListener("pointercancel", pressing(false));

  view.announce = (text) => {
    live.textContent = "";
    // Emptied first, or the same words twice are read once.
    view.later(() => (live.textContent = text), 50);
  };

  // A message above the form: kind is "error", "info" or "done".
  view.say = (kind, text, action, quiet) => {
    const box = h("div", { class: `wpwl-note wpwl-note-${kind}`, tabindex: "-1" },
      icon(kind === "done" ? ICONS.done : ICONS.alert), h("div", { class: "wpwl-note-words" }, text),
      action && h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: action.run }, action.label));
    note.replaceChildren(box);
    view.announce(text);
    if (!quiet) {
      box.focus({ preventScroll: true });
      box.scrollIntoView({ block: "nearest" });
    }
  };
  view.unsay = () => note.replaceChildren();

  // The page may have put them elsewhere. While they are made they have no containers yet.
  const removeParts = () => view.parts.forEach(({ container }) => container && container.remove());
  // Instead of the form: nothing can be paid here any more.
  view.end = (kind, title, text) => {
    view.over = true;
    clearTimeout(view.slow);
    view.sheets.forEach((sheet) => sheet.close("done"));
    view.frames.forEach((frame) => frame.remove());
    clock.hidden = true;
    view.unsay();
    removeParts();
    body.replaceChildren(h("div", { class: `wpwl-end wpwl-end-${kind}`, tabindex: "-1" },
      icon(kind === "done" ? ICONS.done : ICONS.alert), h("strong", {}, title), text && h("p", {}, text)));
    /** @type {HTMLElement} */ (body.firstChild).focus({ preventScroll: true });
    view.announce(`${title} ${text || ""}`);
  };
  view.expire = () => {
    view.end("error", view.t("expiredTitle"), view.t("expiredText"));
    /** @type {Element} */ (body.firstChild).append(h("a", { class: "wpwl-button wpwl-button-small", href: shopAddress() }, view.t("toShop")));
    view.error("expired", "The checkout has expired.");
  };

  view.error = (name, message, more) => callPage("onError", { name, message, ...more });

  view.setBusy = (part, busy) => {
    view.busy = busy;
    root.classList.toggle("wpwl-busy", busy);
    [root, ...view.parts.map((one) => one.container)].flatMap((one) => Array.from(one.querySelectorAll(".wpwl-button-pay"))).forEach((button) => {
      button.setAttribute("aria-disabled", String(busy));
      button.classList.toggle("wpwl-spinning", busy && Boolean(part) && /** @type {Part} */ (part).node.contains(button));
    });
    clearTimeout(view.slow);
    if (busy) {
      view.unsay();
      view.announce(view.t("processing"));
      view.slow = setTimeout(() => view.busy && !view.sheets.size && view.say("info", view.t("slow"), null, true), SLOW_MS);
    }
  };

  view.leave = (url) => {
    if (!MAY_OPEN.test(url)) return complain(`Not going to ${url}`);
    view.leaving = true;
    location.assign(url);
  };

  // From two minutes before the end on, the time that is left is shown; at the end the form goes.
  const clockWords = h("span", {});
  const clock = h("div", { class: "wpwl-clock", hidden: true, role: "timer" }, icon(ICONS.alert), clockWords,
    h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: () => view.focusFirst() }, view.t("goOn")));
  root.prepend(clock);
  let deadline = 0;
  const tell = () => {
    if (view.over || !deadline) return;
    const left = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
    const shown = isolated(`${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
    if (left <= COUNTDOWN_S) {
      if (clock.hidden) view.announce(view.t("timeLeft", { time: shown }));
      clock.hidden = false;
      clockWords.textContent = view.t("timeLeft", { time: shown });
    } else {
      clock.hidden = true;
    }
    // A payment under way, here or in another tab, is answered by the server, not by this clock.
    if (left === 0 && !view.busy) {
      deadline = 0;
      endOfTime(view);
    }
  };
  view.ticking = setInterval(tell, 1000);
  view.setSecondsLeft = (seconds) => {
    deadline = Date.now() + seconds * 1000;
    tell();
  };
  view.focusFirst = () => {
    const part = view.parts.find((one) => one.shown && one.shown()) || view.parts[0];
    const empty = part && part.fields && part.fields.find((field) => field.judge && field.judge() !== "");
    if (empty) empty.focus();
    else if (part) part.node.querySelector("button")?.focus();
  };

  view.darken = () => root.classList.toggle("wpwl-dark", isDarkBehind(place.parentElement || document.body));
  view.darken();

  view.remove = () => {
    view.over = true;
    clearInterval(view.ticking);
    clearTimeout(view.slow);
    view.timers.forEach(clearTimeout);
    view.sheets.forEach((sheet) => sheet.close("done"));
    view.frames.forEach((frame) => frame.remove());
    removeParts();
    root.remove();
  };
  return view;
}

// The button at the end of each part, with the amount.
/** @param {View} view @param {string} [text] */
export function payButton(view, text) {
  // A button submits its form without saying so; a page's reset of [type="submit"] does not meet it then.
  return h("button", { class: "wpwl-button wpwl-button-pay" },
    h("span", { class: "wpwl-spinner", "aria-hidden": "true" }), h("span", { class: "wpwl-button-text" }, text || payWords(view)));
}
// The place of that button in its form. Styles and scripts of pages know both classes.
/** @param {HTMLButtonElement} button */
export const payGroup = (button) =>
  h("div", { class: "wpwl-group wpwl-group-submit" }, h("div", { class: "wpwl-wrapper wpwl-wrapper-submit" }, button));
/** @param {View} view */
export function payWords(view) {
  const { amount, currency } = /** @type {Config["checkout"]} */ (view.config ? view.config.checkout : {});
  // One word of the page's for all of its pay buttons.
  const own = (pageOptions().labels || {}).submit && "submit";
  const pays = amount && !view.checkout.registration;
  return view.t(own || (pays ? "pay" : view.checkout.registration ? "save" : "payNow"), { amount: pays ? isolated(view.words.money(amount, currency)) : "" });
}

// The page that the shopper came from, if it is this shop's, else its front page: this page has nothing more to pay.
function shopAddress() {
  const before = document.referrer ? new URL(document.referrer) : null;
  return before && before.origin === location.origin && before.href !== location.href ? before.href : `${location.origin}/`;
}

// Nobody may read that they were not charged who was: another tab may have paid, or this one before it was left.
/** @param {View} view */
export async function endOfTime(view) {
  const state = await view.gateway.state().catch(() => null);
  if (view.over || view.busy) return;
  const now = state && state.body.state;
  if (now === "done") paidBefore(view);
  // A part of the amount may not have been given back yet, or another tab may be paying.
  else if (now === "processing" || now === "action") view.later(() => endOfTime(view), 3000);
  else view.expire();
}

// Back from the bank by the browser's "back": the order may be paid by now.
/** @param {View} view */
export async function paidBefore(view) {
  const state = await view.gateway.state().catch(() => null);
  view.end("done", view.t("paidAlready"));
  const url = state && state.body.returnTo;
  if (url && MAY_OPEN.test(url)) {
    /** @type {Element} */ (view.body.firstChild).append(h("a", { class: "wpwl-button wpwl-button-small", href: url }, view.t("toShop")));
  }
}

/** @param {Part} part */
export function newContainer(part) {
  /** @type {Record<string, string>} */
  const kinds = { saved: "registration", bank: "directDebit", virtual: "virtualAccount", redirect: "onlineTransfer" };
  const wanted = part.kind === "card" ? "card" : part.saved ? `registration-${part.saved.id}` : part.brand();
  let id = `wpwl-container-${wanted}`;
  for (let n = 2; document.getElementById(id); n++) id = `wpwl-container-${wanted}-${n}`;
  return h("div", { class: `wpwl-container wpwl-container-${kinds[part.kind] || part.kind}`, id }, part.form);
}

/** @param {View} view */
export function noBrands(view) {
  view.end("error", view.t("noBrands"));
  view.error("brands", view.t("noBrands"));
}
