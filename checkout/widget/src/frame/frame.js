// One hosted field: the card number or the security code. What is typed here never leaves for the page; the number's
// frame takes the code from its sibling (same origin) and posts both to the gateway itself.
/** @import { Fields, FrameMessage } from "../types.js" */
const [field, group] = location.hash.slice(1).split(".");
const page = new URLSearchParams(location.search).get("parent");
// A page opened from disk has no origin to name; nothing that is said to it is a secret.
const target = /** @type {string} */ (page === "null" ? "*" : page);
const isNumber = field === "number";
const input = /** @type {HTMLInputElement} */ (document.getElementById("field"));
const error = /** @type {HTMLElement} */ (document.getElementById("error"));
const POST_TO = /^v1\/checkouts\/[A-Za-z0-9.-]{32,48}\/(payment|registration)$/;
const LOOK_UP = /^v1\/checkouts\/[A-Za-z0-9.-]{32,48}\/card-brands$/;
const STYLES = ["color", "fontFamily", "fontSize", "fontWeight", "letterSpacing"];
const MOST_DIGITS = 19;
// Which numbers are which brand's is the gateway's knowledge, put in (CARD_BRANDS) when this document is built. The page
// says which brands it offers and hears which of them it is: ranges and lengths of its own would spell out the number.
const KNOWN = CARD_BRANDS;
/** @type {CardBrand[]} */
let brands = [];
/** @type {string[]} */
let order = [];
let only = "";
// Where the gateway's table of BINs says which brands a card carries: by six digits, which only the gateway is sent.
let lookup = "";
/** @type {Map<string, string[]>} */
const told = new Map();
// The shopper is in the field, or has left it since the last digit: before that nobody is told whether it is right.
let inside = false;
let left = true;
let lengths = [3, 4];
let required = true;
let posting = false;

/** @param {FrameMessage} message */
const tell = (message) => parent.postMessage({ tollhouse: group, ...message }, target);
/** @param {string} text */
const digitsOf = (text) =>
  text.normalize("NFKC").replace(/[\u0660-\u0669\u06f0-\u06f9]/g, (one) => String(one.charCodeAt(0) & 15)).replace(/\D/g, "");

// --- what the digits say -----------------------------------------------------------------------------------------
// How many of the digits stand in the narrowest of the ranges that they are in; 0 where they are in none.
/** @param {string} ranges @param {string} digits */
const prefixOf = (ranges, digits) =>
  Math.max(...ranges.split(" ").map((range) => {
    const [low, high = low] = range.split("-");
    const start = digits.slice(0, low.length);
    return start.length === low.length && low <= start && start <= high ? low.length : 0;
  }));

/** @param {string} code */
const rankOf = (code) => (order.includes(code) ? order.indexOf(code) : order.length);

// Offered brands of a number, the best first: the most specific range, schemes before those that share their numbers. Of
// those that one card carries, the merchant's order goes first.
/** @param {string} digits */
function brandsOf(digits) {
  const carried = (told.get(digits.slice(0, 6)) || [])
    .map((code) => brands.find((one) => one.code === code))
    .filter((one) => one && prefixOf(one.ranges, digits));
  if (carried.length) return /** @type {CardBrand[]} */ (carried).sort((a, b) => rankOf(a.code) - rankOf(b.code));
  const found = brands
    .map((brand, at) => ({ brand, at, prefix: prefixOf(brand.detect ?? brand.ranges, digits) }))
    .filter((one) => one.prefix)
    .sort((a, b) => Number(a.brand.afterScheme || 0) - Number(b.brand.afterScheme || 0) || b.prefix - a.prefix || a.at - b.at)
    .map((one) => one.brand);
  const [best, ...rest] = found;
  if (!best) return [];
  const beside = rest.filter((one) => (best.beside || []).includes(one.code) || (one.beside || []).includes(best.code));
  return [best, ...beside].sort((a, b) => rankOf(a.code) - rankOf(b.code));
}

// Until there is an answer the ranges that are built in decide; one that does not come is asked for three times more.
/** @param {string} digits @param {number} [tries] */
async function lookBrandsUp(digits, tries = 0) {
  const bin = digits.slice(0, 6);
  if (!lookup || bin.length < 6 || told.has(bin)) return;
  told.set(bin, []);
  try {
    const response = await fetch(new URL(`../../${lookup}?card.bin=${bin}`, location.href), { credentials: "omit", cache: "no-store" });
    if (!response.ok) throw new Error();
    told.set(bin, (await response.json()).brands || []);
    tell({ t: "change", ...judge() });
  } catch {
    if (tries < 3) setTimeout(() => {
      told.delete(bin);
      lookBrandsUp(digitsOf(input.value), tries + 1);
    }, 1000 * 3 ** tries);
  }
}

/** @param {string} digits */
function luhn(digits) {
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const value = Number(digits[digits.length - 1 - at]) * (at % 2 ? 2 : 1);
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}

function judge() {
  const digits = digitsOf(input.value);
  if (!isNumber) {
    const valid = lengths.includes(digits.length) || (!required && !digits);
    return verdict(digits, valid, digits ? "invalid" : "missing", []);
  }
  const found = digits.length < 4 ? [] : brandsOf(digits);
  const brand = brands.find((one) => one.code === only) || found[0];
  const known = /** @type {CardBrand} */ (brands.length ? brand : { lengths: [13, 14, 15, 16, 17, 18, 19] });
  const fits = known && (!only || !brands.length || prefixOf(known.ranges, digits) > 0);
  const valid = Boolean(fits) && known.lengths.includes(digits.length) && (known.unchecked || luhn(digits));
  const reason = !digits ? "missing" : digits.length >= 6 && !fits ? "brand" : "invalid";
  return verdict(digits, valid, valid ? "" : reason, found.map((one) => one.code));
}
// What the page hears. Whether digits are right it hears once the field was left: typed one by one, each prefix's
// check digit and length would tell of the number.
/** @param {string} digits @param {boolean} valid @param {string} reason @param {string[]} codes */
const verdict = (digits, valid, reason, codes) => ({ empty: !digits, codes, ...(left || !digits ? { valid, reason } : { valid: false, reason: "typing" }) });

// --- how they are shown ------------------------------------------------------------------------------------------
/** @param {string} digits */
function gapsOf(digits) {
  if (!isNumber) return [];
  if (/^3[47]/.test(digits)) return [4, 10];
  if (/^3(0[0-5]|095|6|[89])/.test(digits) && digits.length <= 14) return [4, 10];
  return [4, 8, 12, 16];
}
/** @param {string} digits */
const grouped = (digits) => {
  const gaps = gapsOf(digits);
  return Array.from(digits, (one, at) => (gaps.includes(at) ? ` ${one}` : one)).join("");
};

let before = "";
/** @param {{ isComposing?: boolean; inputType?: string } | null} event */
function tidy(event) {
  if (event && event.isComposing) return;
  const deleting = event && /^delete/.test(event.inputType || "");
  let place = digitsOf(input.value.slice(0, /** @type {number} */ (input.selectionStart))).length;
  let digits = digitsOf(input.value);
  // Only a gap was deleted: the digit beside it is what was meant.
  if (deleting && digits === digitsOf(before) && input.value.length < before.length) {
    const at = event.inputType === "deleteContentForward" ? place : place - 1;
    digits = digits.slice(0, at) + digits.slice(at + 1);
    place = Math.max(0, at);
  }
  const longest = brandsOf(digits).flatMap((brand) => brand.lengths);
  const most = isNumber ? Math.max(...(longest.length ? longest : [MOST_DIGITS])) : Math.max(...lengths);
  digits = digits.slice(0, most);
  const shown = grouped(digits);
  if (shown !== input.value) input.value = shown;
  place = Math.min(place, digits.length);
  const gaps = gapsOf(digits).filter((gap) => gap < digits.length && (deleting ? gap < place : gap <= place)).length;
  if (document.activeElement === input) input.setSelectionRange(place + gaps, place + gaps);
  before = shown;
  left = !inside;
  lookBrandsUp(digits);
  tell({ t: "change", ...judge() });
}
// The shopper goes elsewhere, or sends the form.
/** @param {string} then */
function leave(then) {
  left = true;
  const found = judge();
  tell({ t: "change", ...found });
  tell({ t: then, ...found });
}

input.addEventListener("input", /** @type {(event: Event) => void} */ (tidy));
input.addEventListener("compositionend", () => tidy(null));
input.addEventListener("focus", () => {
  inside = true;
  tell({ t: "focus" });
});
input.addEventListener("blur", () => {
  inside = false;
  leave("blur");
});
/** @type {HTMLFormElement} */ (document.querySelector("form")).addEventListener("submit", (event) => {
  event.preventDefault();
  leave("enter");
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    leave("enter");
  }
});
input.type = "text";
input.autocomplete = isNumber ? "cc-number" : "cc-csc";
input.name = isNumber ? "cardnumber" : "cvc";
input.maxLength = isNumber ? 40 : 12;

// A browser fills a card's fields in one document only: the number's takes the others in and passes them on.
if (isNumber) {
  /** @type {[string, (value: string) => void][]} */
  const companions = [
    ["cc-exp", (value) => tell({ t: "fill", expiry: value })],
    ["cc-name", (value) => tell({ t: "fill", holder: value })],
    ["cc-csc", (value) => sibling() && /** @type {any} */ (sibling()).fill(value)],
  ];
  for (const [name, give] of companions) {
    const companion = document.createElement("input");
    Object.assign(companion, { autocomplete: name, name, tabIndex: -1, className: "companion" });
    companion.setAttribute("aria-hidden", "true");
    companion.addEventListener("input", () => {
      if (companion.value) give(companion.value);
      companion.value = "";
    });
    /** @type {HTMLFormElement} */ (document.querySelector("form")).append(companion);
  }
}

// --- the sibling, by the gateway's origin only ---------------------------------------------------------------------
window.hostedField = {
  group, field,
  value: () => digitsOf(input.value),
  fill: (value) => {
    input.value = value;
    tidy(null);
  },
};
function sibling() {
  for (let at = 0; at < parent.length; at++) {
    try {
      const other = parent[at].hostedField;
      if (other && other.group === group && other.field !== field) return other;
    } catch {
      // A frame of somebody else.
    }
  }
  return null;
}

// The gateway's answer is the page's to read, so a number goes there once it is right and its field was left: what is said
// of each of its beginnings would spell it out.
/** @param {{ n: number; path: string; fields: Fields }} given */
async function post({ n, path, fields }) {
  if (posting || !POST_TO.test(path)) return;
  if (isNumber && !judge().valid) {
    tell({ t: "answer", n, status: 400, body: { result: { parameterErrors: [{ name: "card.number", message: "is not right" }] } } });
    return;
  }
  posting = true;
  const body = new URLSearchParams(fields);
  const other = sibling();
  const number = isNumber ? digitsOf(input.value) : "";
  const code = isNumber ? (other ? other.value() : "") : digitsOf(input.value);
  if (number) body.set("card.number", number);
  if (code) body.set("card.cvv", code);
  try {
    const response = await fetch(new URL(`../../${path}`, location.href), { method: "POST", body, credentials: "omit", cache: "no-store" });
    const answer = await response.json();
    if (response.status >= 500) throw new Error("server");
    tell({ t: "answer", n, status: response.status, body: answer });
  } catch {
    tell({ t: "answer", n, lost: "network" });
  }
  posting = false;
}

// --- what the page says ------------------------------------------------------------------------------------------
/** @type {Record<string, (message: any) => void>} */
const heard = {
  init: (message) => {
    document.documentElement.lang = message.lang;
    document.documentElement.classList.toggle("right", message.rtl);
    document.documentElement.classList.toggle("masked", message.mask === true);
    document.title = message.label;
    input.setAttribute("aria-label", message.label);
    input.placeholder = message.placeholder;
    if (message.brands) {
      order = message.order || [];
      lookup = LOOK_UP.test(message.lookup) ? message.lookup : "";
      const offered = message.brands.map((/** @type {any} */ one) => one.code || one);
      brands = offered.map((/** @type {string} */ code) => KNOWN.find((one) => one.code === code)).filter(Boolean);
    }
    wear(message.style);
    if (input.value) tidy(null);
  },
  style: (message) => wear(message.style),
  describe: (message) => {
    error.textContent = message.error;
    if (message.error) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  },
  focus: () => input.focus(),
  // Before the page sends the form. Whoever asks so at each digit drives the shopper out of the field.
  leave: ({ n }) => {
    inside = false;
    left = true;
    input.blur();
    tell({ t: "change", ...judge() });
    tell({ t: "left", n });
  },
  only: (message) => {
    only = message.code;
    tell({ t: "change", ...judge() });
  },
  want: (message) => {
    ({ lengths, required } = message);
    input.placeholder = message.placeholder;
    input.required = required;
    tell({ t: "change", ...judge() });
  },
  clear: () => {
    input.value = "";
    before = "";
    tell({ t: "change", ...judge() });
  },
  post,
};
/** @param {Record<string, string>} style */
function wear(style) {
  for (const name of STYLES) {
    const value = String(style[name] || "");
    if (value.length < 300 && !/url|[;{}<>\\]/i.test(value)) /** @type {any} */ (document.body.style)[name] = value;
  }
  document.documentElement.style.colorScheme = style.scheme === "dark" ? "dark" : "light";
  if (/^[#\w(), .%-]{1,60}$/.test(style.placeholder)) document.body.style.setProperty("--placeholder", style.placeholder);
}
addEventListener("message", (event) => {
  if (event.source !== parent || (event.origin !== page && target !== "*") || !event.data || event.data.tollhouse !== group) return;
  if (Object.hasOwn(heard, event.data.t)) heard[event.data.t](event.data);
});
tell({ t: "hello" });
