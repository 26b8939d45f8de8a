// The fields that stand in the page itself: each judges, tells and gives its own values.
import { ICONS, freshId, h, icon } from "./dom.js";
import { pageOptions, warn } from "./start.js";
/** @import { Field, Fields, View } from "./types.js" */

/**
 * One field with its label, its hint for errors, and the ties between them that a screen reader follows.
 * @param {any} view
 * @param {string} name
 * @param {HTMLElement} control
 * @param {{label: string, hint?: string, optional?: string}} texts
 */
export function group(view, name, control, { label, hint, optional }) {
  const hintId = freshId(`${name}-hint`);
  const labelId = freshId(`${name}-label`);
  const words = h("span", { class: "wpwl-hint-text" });
  const fault = h("div", { class: `wpwl-hint wpwl-hint-${name}Error`, id: hintId, hidden: true }, icon(ICONS.alert), words);
  const isFrame = control.tagName === "DIV";
  const controlId = freshId(name);
  if (!isFrame) {
    control.id = controlId;
    control.setAttribute("aria-describedby", hintId);
  }
  const title = h(isFrame ? "div" : "label", { class: `wpwl-label wpwl-label-${name}`, id: labelId, for: isFrame ? null : controlId });
  /** @param {string} text */
  const rename = (text) => title.replaceChildren(text, ...(optional ? [" ", h("span", { class: "wpwl-optional" }, optional)] : []));
  rename(label);
  const wrapper = h("div", { class: `wpwl-wrapper wpwl-wrapper-${name}` }, control);
  const node = h("div", { class: `wpwl-group wpwl-group-${name}` }, title, wrapper, hint && h("div", { class: "wpwl-help" }, hint), fault);
  return /** @type {Field} */ ({
    node, name, control, wrapper, rename,
    /** @param {string} [text] */
    fail: (text) => {
      words.textContent = text || "";
      fault.hidden = !text;
      node.classList.toggle("wpwl-has-error", Boolean(text));
      control.classList.toggle("wpwl-has-error", Boolean(text));
      if (!isFrame) text ? control.setAttribute("aria-invalid", "true") : control.removeAttribute("aria-invalid");
    },
    focus: () => control.focus(),
  });
}

/** @param {string} name @param {Record<string, any>} attributes */
const control = (name, attributes) =>
  h("input", { class: `wpwl-control wpwl-control-${name}`, type: "text", autocapitalize: "off", spellcheck: "false", ...attributes });

/**
 * A text field whose value `check` judges: it answers the key of an error text, or "".
 * @param {any} view
 * @param {string} name
 * @param {{label: string, autocomplete: string, check: (text: string) => string, parameter?: string, value?: string,
 *   optional?: string, inputmode?: string, placeholder?: string, dir?: string, maxlength?: number,
 *   tidy?: (input: HTMLInputElement, event: { inputType?: string } | null) => void}} wishes
 */
export function textField(view, name, { label, autocomplete, check, parameter, value, optional, inputmode, placeholder, dir, maxlength, tidy }) {
  const input = control(name, { autocomplete, inputmode, placeholder, dir, maxlength, value });
  const field = group(view, name, input, { label, optional });
  const judge = () => (input.value.trim() === "" && optional ? "" : check(input.value.trim()));
  input.addEventListener("input", (/** @type {any} */ event) => {
    if (tidy && !event.isComposing) tidy(input, event);
    if (field.node.classList.contains("wpwl-has-error") && !judge()) field.fail("");
  });
  input.addEventListener("compositionend", (/** @type {any} */ event) => tidy && tidy(input, event));
  input.addEventListener("blur", () => input.value.trim() && !view.pressing && field.fail(view.t2(judge())));
  return Object.assign(field, {
    judge,
    values: () => (input.value.trim() ? { [/** @type {string} */ (parameter)]: input.value.trim() } : {}),
    input,
  });
}

// Digits of every script people type in: full-width ones from an IME, Arabic-Indic, Persian, Devanagari.
/** @param {string} text */
export function plainDigits(text) {
  return text.normalize("NFKC").replace(/[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]/g, (one) => String(one.charCodeAt(0) & 15 - (one >= "\u0966" ? 6 : 0)));
}

// "MM / YY", put right while it is typed: 5 becomes 05, a pasted 2029-05 or 05/2029 is understood.
/** @param {HTMLInputElement} input @param {{ inputType?: string } | null} event */
export function tidyExpiry(input, event) {
  const raw = plainDigits(input.value);
  const deleting = event && /^delete/.test(event.inputType || "");
  const long = raw.match(/^\s*(?:(\d{1,2})\s*[/.\- ]\s*(?:20)(\d{2})|(?:20)(\d{2})\s*[/.-]\s*(\d{1,2}))\s*$/);
  let digits = long ? (long[1] || long[4]).padStart(2, "0") + (long[2] || long[3]) : raw.replace(/\D/g, "");
  if (!deleting && (/^[2-9]/.test(digits) || /^\d\s*[/.]/.test(raw.trim()))) digits = `0${digits}`;
  // A year in four digits: the 20 stays until the rest has come.
  if (digits.length === 6 && digits.slice(2, 4) === "20") digits = digits.slice(0, 2) + digits.slice(4);
  digits = digits.slice(0, digits.slice(2, 4) === "20" ? 5 : 4);
  const atEnd = input.selectionStart === input.value.length;
  let shown = digits;
  if (digits.length > 2 || (digits.length === 2 && !deleting)) shown = `${digits.slice(0, 2)} / ${digits.slice(2)}`;
  if (deleting && raw.endsWith("/") && digits.length === 2) shown = digits.slice(0, 1);
  if (shown === input.value) return;
  const before = plainDigits(input.value.slice(0, /** @type {number} */ (input.selectionStart))).replace(/\D/g, "").length;
  input.value = shown;
  const place = atEnd ? shown.length : before > 2 ? before + 3 : before;
  input.setSelectionRange(place, place);
}

/** @param {string} text */
function expiryOf(text) {
  const [, month, year] = text.match(/^(\d\d) \/ (\d\d)$/) || [];
  return month ? { month, year: `20${year}` } : null;
}

/** @param {string} text */
function checkExpiry(text) {
  const given = expiryOf(text);
  if (!given || given.month < "01" || given.month > "12") return "expiryError";
  const now = new Date();
  const ended = Number(given.year) * 12 + Number(given.month) <= now.getFullYear() * 12 + now.getMonth();
  return ended ? "expiryPast" : Number(given.year) > now.getFullYear() + 30 ? "expiryError" : "";
}

/** @param {View} view */
export const expiryField = (view) => {
  const field = textField(view, "expiry", {
    label: view.t("expiryDate"), autocomplete: "cc-exp", inputmode: "numeric", placeholder: view.t("expiryHint"),
    dir: "ltr", maxlength: 9, check: checkExpiry, tidy: tidyExpiry,
  });
  field.values = () => {
    const { month, year } = /** @type {{ month: string, year: string }} */ (expiryOf(field.input.value));
    return { "card.expiryMonth": month, "card.expiryYear": year };
  };
  return field;
};

/** @param {View} view @param {string} [value] */
export const holderField = (view, value) =>
  textField(view, "cardHolder", {
    label: view.t("cardHolder"), autocomplete: "cc-name", parameter: "card.holder", optional: view.t("optional"), maxlength: 128, value,
    check: (text) => (/\d{6}/.test(text) || text.length < 3 ? "cardHolderError" : ""),
  });

// ISO 3166 codes: the first letter, then every second one.
const REGIONS =
  "A:DEFGILMORSTUWXZ B:ABDEFGHIJLMNOQRSTWYZ C:ACDFGHIKLMNORUVWXYZ D:EJKMOZ E:CEGRST F:IJKMOR G:ABDEFGHILMNPQRTUWY H:KNRTU I:DELMNOQRST J:EMOP K:EGHIMNPRWYZ L:ABCIKRSTUVY M:ACDEFGHKLMNOPQRSTUVWXYZ N:ACEFGILOPRUZ O:M P:AEFGHKLMNRSTWY Q:A R:EOSUW S:ABCDEGHIJKLMNORSTVXYZ T:CDGHJKLMNORTVWZ U:AGSYZ V:ACEGINU W:FS X:K Y:ET Z:AMW";

/** @param {View} view @param {string} [value] */
export function countryField(view, value) {
  const names = new Intl.DisplayNames([view.words.iso, "en"], { type: "region" });
  const order = new Intl.Collator(view.words.iso);
  const all = REGIONS.split(" ").flatMap(([first, , ...seconds]) => seconds.map((second) => first + second))
    .map((code) => /** @type {[string, string]} */ ([code, names.of(code)])).sort((a, b) => order.compare(a[1], b[1]));
  const home = value || (navigator.language.match(/-([A-Z]{2})$/) || [])[1] || "";
  const select = h("select", { class: "wpwl-control wpwl-control-country", autocomplete: "country" },
    h("option", { value: "" }, "–"), all.map(([code, name]) => h("option", { value: code, selected: code === home }, name)));
  const field = group(view, "country", select, { label: view.t("country") });
  field.judge = () => (select.value ? "" : "fieldError");
  field.values = () => ({ "billing.country": select.value });
  select.addEventListener("change", () => field.fail(view.t2(field.judge())));
  return field;
}

/** @type {Record<string, string>} */
const AUTOCOMPLETE = {
  street1: "address-line1", street2: "address-line2", city: "address-level2", postcode: "postal-code", state: "address-level1",
};

// The billing fields the gateway asks for, filled with what the page knows already.
/** @param {View} view @param {string[]} names */
export function billingFields(view, names) {
  const known = pageOptions().billingAddress;
  const values = known && typeof known === "object" ? known : {};
  return names.map((name) =>
    name === "country"
      ? countryField(view, values.country)
      : textField(view, name, {
          label: view.t(name), autocomplete: `billing ${AUTOCOMPLETE[name] || "off"}`, parameter: `billing.${name}`, maxlength: 100,
          value: values[name], check: (text) => (text ? "" : "fieldError"),
        }));
}

/** @param {View} view @param {Field[]} fields */
export const billingSet = (view, fields) =>
  fields.length > 0 &&
  h("fieldset", { class: "wpwl-billing" }, h("legend", { class: "wpwl-legend" }, view.t("billingAddress")), fields.map((one) => one.node));

// What the page sends along: its customParameters, and the fields that it has put into the form. Only what a browser may set.
/** @param {View} view @param {HTMLFormElement} form */
export function shopperParameters(view, form) {
  /** @type {[string, unknown][]} */
  const given = Object.entries(pageOptions().customParameters || {}).map(([name, value]) => [`customParameters[${name}]`, String(value)]);
  given.push(...new FormData(form));
  /** @type {Fields} */
  const fields = {};
  for (const [name, value] of given) {
    // The gateway takes one line of text.
    if (/^customParameters\[SHOPPER_[\w.]{0,56}]$/.test(name) && typeof value === "string") fields[name] = value.replace(/[\r\n\t]+/g, " ");
    else if (name === "createRegistration" && view.config.createRegistration) {
      // A checkbox without a value is "on".
      if (!/^(false|0?)$/i.test(String(value))) fields[name] = "true";
    } else if (!name.startsWith("wpwl-")) {
      warn(`${name} is left out: a page sends customParameters[SHOPPER_…], and createRegistration where the checkout offers to save.`);
    }
  }
  return fields;
}
