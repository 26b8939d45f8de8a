// The card form: number and security code in frames of the gateway, the rest in the page.
import { freshId, h } from "./dom.js";
import { billingFields, billingSet, expiryField, group, holderField, tidyExpiry } from "./fields.js";
import { submit } from "./follow.js";
import { hostedField, lookOf } from "./frames.js";
import { mark } from "./marks.js";
import { callPage } from "./options.js";
import { complain, pageOptions } from "./start.js";
import { RELEASED_MS, payButton, payGroup, payWords } from "./view.js";
/** @import { Brand, CardPart, Field, Fields, FieldState, FramedField, HostedField, ParameterError, View } from "./types.js" */

/**
 * @param {View} view
 * @param {string} name
 * @param {string} field
 * @param {string} group
 * @param {Record<string, (message?: any) => void>} on
 */
function frameBox(view, name, field, group, on) {
  const box = h("div", { class: `wpwl-control wpwl-control-${name} wpwl-control-iframe wpwl-loading` });
  const one = hostedField(view.base, view.checkout.id, field, group, {
    ...on,
    hello: () => {
      box.classList.remove("wpwl-loading");
      if (view.lost && !view.root.querySelector(".wpwl-loading")) framesFound(view);
      if (on.hello) on.hello();
    },
    focus: () => box.classList.add("wpwl-focused"),
    blur: () => {
      box.classList.remove("wpwl-focused");
      if (on.blur) on.blur();
    },
  });
  // A frame that the network or the page's policy keeps away is silent.
  const silent = () => box.classList.contains("wpwl-loading") && framesLost(view);
  one.frame.addEventListener("load", () => view.later(silent, HELLO_MS));
  view.later(silent, FRAME_MS);
  box.append(one.frame);
  view.frames.push(one);
  return { box, one };
}

// How long a frame may take: all in all, and to speak after its document stands.
const FRAME_MS = 15000;
const HELLO_MS = 4000;

/** @param {View} view */
function framesLost(view) {
  if (view.over || view.lost) return;
  view.lost = true;
  complain(`The hosted fields did not load from ${new URL(view.base).origin}: is it reachable, and does the page's Content-Security-Policy name it in frame-src?`);
  const tell = () => view.say("error", view.t("loadFailed"), { label: view.t("tryAgain"), run: view.options.again }, true);
  // Before the words have come there is nothing to say it in.
  view.config ? tell() : (view.configured = tell);
  view.error("load", view.t("loadFailed"));
}

/** @param {View} view */
function framesFound(view) {
  view.lost = false;
  view.configured = null;
  view.unsay();
}

// A name that no other copy of this script gives to its own pair of frames.
export const secretName = () => Math.random().toString(36).slice(2);

// Both kinds of framed field know how to be judged, told and focused.
/**
 * @param {View} view
 * @param {Field} field
 * @param {HostedField} one
 * @param {(reason: string, state: FieldState) => string} texts
 * @returns {FramedField}
 */
function framedField(view, field, one, texts) {
  const fail = field.fail;
  return Object.assign(/** @type {FramedField} */ (field), {
    frame: one,
    judge: () => (one.state.valid ? "" : texts(one.state.reason, one.state)),
    /** @param {string} [text] */
    fail: (text) => {
      fail(text);
      one.send({ t: "describe", error: text || "" });
    },
    focus: () => {
      one.frame.focus();
      one.send({ t: "focus" });
    },
    /** @param {string} title @param {string} placeholder @param {object} more */
    dress: (title, placeholder, more) => {
      one.frame.title = title;
      one.send({
        t: "init", label: title, placeholder, lang: view.words.iso, rtl: view.words.dir === "rtl", style: lookOf(field.control), ...more,
      });
    },
  });
}

// What is typed anew is judged anew, when the field is left. While a button is pressed no error goes, as none comes: the
// button would move from under the finger, and the press would be lost.
/** @param {View} view @param {FramedField} field @param {FieldState} state */
const forgive = (view, field, state) =>
  !view.pressing && (state.valid || state.empty || state.reason === "typing") && field.fail("");

/** @param {View} view @param {string} groupName @param {() => void} enter */
export function cvvField(view, groupName, enter) {
  const { box, one } = frameBox(view, "cvv", "cvv", groupName, { change: (state) => forgive(view, field, state), enter });
  const field = /** @type {FramedField} */ (group(view, "cvv", box, { label: view.t("cvv") }));
  let digits = 3;
  framedField(view, field, one, () => view.t("cvvError", { n: digits }));
  field.want = (lengths, required) => {
    // Before the brand is known: as most cards have it.
    digits = Math.min(...lengths) || 3;
    one.send({ t: "want", lengths, required, placeholder: "•".repeat(digits) });
    field.node.title = view.t(digits === 4 ? "cvvHelp4" : "cvvHelp");
  };
  return field;
}

/** @param {View} view */
const cvvWanted = (view) => {
  const { requireCvv } = pageOptions();
  return view.config.cvvRequired || requireCvv !== false;
};

// Names of parameters and the fields they belong to, for what the server refuses.
/** @param {View} view @param {Field[]} fields @param {ParameterError[]} wrong */
export function refuseFields(view, fields, wrong) {
  /** @type {Record<string, string>} */
  const names = {
    "card.number": "cardNumber", "card.cvv": "cvv", "card.holder": "cardHolder", "card.expiryMonth": "expiry", "card.expiryYear": "expiry",
    "bankAccount.iban": "iban", "bankAccount.holder": "accountHolder", "virtualAccount.accountId": "accountId",
  };
  /** @type {Record<string, string>} */
  const texts = { cardNumber: "cardNumberError", expiry: "expiryError", cardHolder: "cardHolderError", iban: "ibanError", accountHolder: "accountHolderError", accountId: "accountIdError" };
  /** @type {Field | null} */
  let first = null;
  for (const { name } of wrong) {
    const known = names[name] || name.replace(/^billing\./, "");
    const field = fields.find((one) => one.name === known);
    if (!field) return false;
    field.fail(known === "cvv" ? field.frame ? view.t("cvvError", { n: 3 }) : "" : view.t(texts[known] || "fieldError"));
    first = first || field;
  }
  if (first) first.focus();
  return Boolean(first);
}

// The skeleton and the form are one: it is laid out at once, the words come with the configuration.
/** @param {View} view @param {string[]} codes @returns {CardPart} */
export function cardPart(view, codes) {
  const groupName = secretName();
  /** @type {string | null} */
  let chosen = null; // what the shopper picked of a co-badged card, or from the list
  /** @type {string[]} */
  let detected = [];
  /** @type {Brand[]} */
  let brands = [];
  const part = /** @type {CardPart} */ ({ kind: "card", fields: /** @type {Field[]} */ ([]), shown: () => !part.body.hidden });

  const marks = h("div", { class: "wpwl-marks" });
  const choice = h("div", { class: "wpwl-group wpwl-group-brand wpwl-cobadge", hidden: true });
  const number = frameBox(view, "cardNumber", "number", groupName, {
    change: (state) => {
      heedBrands();
      forgive(view, part.number, state);
    },
    blur: () => !part.number.frame.state.empty && !view.pressing && part.number.fail(part.number.judge()),
    enter: () => part.form.requestSubmit(),
    fill: (message) => {
      if (message.expiry && !part.expiry.input.value) {
        part.expiry.input.value = message.expiry;
        tidyExpiry(part.expiry.input, null);
      }
      if (message.holder && !part.holder.input.value) part.holder.input.value = message.holder;
    },
  });
  const badge = h("div", { class: "wpwl-badge", "aria-hidden": "true" });
  number.box.append(badge);
  part.number = framedField(view, group(view, "cardNumber", number.box, { label: view.t("cardNumber") }), number.one, (reason) =>
    view.t({ missing: "cardNumberMissing", brand: "cardNumberBrand" }[reason] || "cardNumberError"));
  part.expiry = expiryField(view);
  part.cvv = cvvField(view, groupName, () => part.form.requestSubmit());
  part.holder = holderField(view);
  const more = h("div", { class: "wpwl-more" });
  part.button = payButton(view, " ");
  part.form = h("form", { class: "wpwl-form wpwl-form-card", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
    marks, part.number.node, choice, h("div", { class: "wpwl-row" }, part.expiry.node, part.cvv.node), part.holder.node, more,
    payGroup(part.button));
  part.body = part.form;
  part.node = part.form;

  const current = () => chosen || detected.find((code) => codes.includes(code)) || (brands.length === 1 ? brands[0].code : null);
  /** @param {string | null} code */
  const factsOf = (code) => brands.find((one) => one.code === code);
  /** @type {string | null} */
  let told = null;
  function brandChanged() {
    const code = current();
    const facts = factsOf(code);
    const known = detected.length > 0 || chosen;
    badge.replaceChildren(...(known && facts ? [/** @type {Element} */ (mark(facts.code, view.words.label(facts)))] : []));
    part.cvv.want(facts && known ? facts.cvv : [3, 4], cvvWanted(view) && !(facts && known && facts.cvvOptional));
    if (code !== told && known) callPage("onChangeBrand", (told = code));
  }
  // While a button is pressed no choice of brands comes or goes, either: the gateway may tell of them late.
  function heedBrands() {
    if (view.pressing) view.later(heedBrands, RELEASED_MS);
    else setDetected(number.one.state.codes);
  }
  /** @param {string[]} found */
  function setDetected(found) {
    const same = found.join() === detected.join();
    detected = found;
    if (same) return;
    if (pageOptions().brandDetection !== false) {
      // The field judges by what was picked: of another card it would say that its brand is not accepted.
      if (chosen) number.one.send({ t: "only", code: "" });
      chosen = null;
      offerChoice(found);
    }
    brandChanged();
  }
  // A card that carries two brands: the shopper has the choice, the merchant's first is chosen.
  /** @param {string[]} found */
  function offerChoice(found) {
    const group = freshId("brand");
    choice.hidden = found.length < 2;
    choice.replaceChildren(...(found.length < 2 ? [] : [
      h("fieldset", { class: "wpwl-choices" }, h("legend", { class: "wpwl-label" }, view.t("coBadge")),
        found.map((code, at) => h("label", { class: "wpwl-choice" },
          h("input", { type: "radio", name: group, value: code, checked: at === 0, onchange: () => { chosen = code; number.one.send({ t: "only", code }); brandChanged(); } }),
          mark(code, "", true), view.words.label(/** @type {Brand} */ (factsOf(code))))))]));
  }

  // The configuration has come: words, brands, what else is asked.
  part.configure = (config, own) => {
    brands = own;
    const { t } = view;
    const options = pageOptions();
    part.number.rename(t("cardNumber"));
    part.number.dress(t("cardNumber"), "1234 1234 1234 1234", { brands: own.map(({ code }) => code), order: config.brandOrder || [], lookup: config.cardBrands });
    part.expiry.rename(t("expiryDate"));
    part.expiry.input.placeholder = t("expiryHint");
    part.cvv.rename(t("cvv"));
    part.cvv.dress(t("cvv"), "•••", { mask: options.maskCvv === true });
    part.holder.rename(t("cardHolder"));
    /** @type {Element} */ (part.holder.node.querySelector(".wpwl-label")).replaceChildren(t("cardHolder"), " ", h("span", { class: "wpwl-optional" }, t("optional")));
    marks.replaceChildren(...own.map((one) => /** @type {Element} */ (mark(one.code, view.words.label(one)))));
    if (options.brandDetection === false && own.length > 1) {
      const select = h("select", { class: "wpwl-control wpwl-control-brand", onchange: () => { chosen = select.value; number.one.send({ t: "only", code: chosen }); brandChanged(); } },
        own.map((one) => h("option", { value: one.code }, view.words.label(one))));
      chosen = own[0].code;
      part.form.insertBefore(group(view, "brand", select, { label: t("brand") }).node, part.number.node);
      number.one.send({ t: "only", code: chosen });
    }
    const billing = billingFields(view, config.billing || []);
    const keep = h("input", { type: "checkbox", class: "wpwl-control wpwl-control-createRegistration" });
    more.replaceChildren(.../** @type {HTMLElement[]} */ ([billingSet(view, billing),
      config.createRegistration && !view.checkout.registration && h("label", { class: "wpwl-check wpwl-group-createRegistration" }, keep, t("saveCard"))].filter(Boolean)));
    part.fields = [part.number, part.expiry, part.cvv, part.holder, ...billing];
    part.billing = billing;
    part.keep = keep;
    /** @type {Element} */ (part.button.querySelector(".wpwl-button-text")).textContent = payWords(view);
    // Some channels take a card without its code, and the page may not want it either.
    part.cvv.node.hidden = !config.cvvRequired && options.requireCvv === false;
    brandChanged();
  };
  part.press = () => part.form.requestSubmit();
  part.remove = () => {
    [part.number, part.cvv].forEach((field) => field.frame.remove());
    part.container.remove();
  };
  part.look = () => [part.number, part.cvv].forEach((field) => field.frame.send({ t: "style", style: lookOf(field.control) }));
  part.brand = () => current() || "";
  part.check = () => {
    setDetected(number.one.state.codes);
    return part.fields
      .filter((field) => !field.node.hidden)
      .map((field) => /** @type {[Field, string]} */ ([field, field.frame ? field.judge() : view.t2(field.judge())]))
      .filter(([field, text]) => { if (!text) field.fail(""); return text; });
  };
  part.send = (common) => {
    /** @type {Fields} */
    const fields = { ...common, ...part.expiry.values(), ...part.holder.values() };
    part.billing.forEach((field) => Object.assign(fields, field.values()));
    if (current()) fields.paymentBrand = /** @type {string} */ (current());
    if (part.keep.checked) fields.createRegistration = "true";
    return number.one.post(view.gateway.path, fields);
  };
  part.clearCvv = () => part.cvv.frame.send({ t: "clear" });
  part.refuse = (wrong) => refuseFields(view, part.fields, wrong);
  return part;
}
