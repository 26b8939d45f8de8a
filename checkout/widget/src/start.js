// Where this script came from, and what the page wants of it. The file's bytes are the same for everyone, so the
// checkout stands in the script's own address or in the options.
// Elements count for neither: of one that is named like a property of the document or like the options, browsers make that
// property. Whoever may write such an element into the page, and no script, would say where cards are sent.
// Nor does a script's element that a policy kept from running: it is looked for only where no script is said to run.
/** @type {HTMLScriptElement | null} */
const running = /** @type {any} */ (Object.getOwnPropertyDescriptor(Document.prototype, "currentScript")).get.call(document);
const script = running
  ? running
  : Array.from(document.querySelectorAll("script")).reverse().find((one) => /\/paymentWidgets[./]/.test(one.src)) || null;
// Given on to the second script, where the page's policy wants one of every script.
export const nonce = (script && script.nonce) || null;
const scriptUrl = new URL(script && script.src ? script.src : location.href, location.href);

// A window of another origin, a frame's, has no prototype.
/** @param {unknown} given */
const isObject = (given) => Object.prototype.toString.call(given) === "[object Object]" && Object.getPrototypeOf(given) !== null;
/** @param {() => unknown} read */
const valueOf = (read) => {
  try {
    return read();
  } catch {
    return null; // Not there, or its script has failed before it had a value.
  }
};
// By their bare names: what a page's script declares with `const` or `let` is no property of the window.
/** @returns {PageOptions[]} */
export const givenOptions = () => /** @type {PageOptions[]} */ ([() => widgetOptions, () => wpwlOptions].map(valueOf).filter(isObject));
export const pageOptions = () => givenOptions()[0] || {};

/** @param {unknown} text */
export const complain = (text) => console.error(`[widget] ${text}`);
/** @param {unknown} text */
export const warn = (text) => console.warn(`[widget] ${text}`);

// The checkout of this page: {id, registration}. "{id}/registration" asks for a card to be kept, not charged.
/** @param {PageOptions} options */
export function checkoutOf(options) {
  const given =
    scriptUrl.searchParams.get("checkoutId") || options.checkoutId || (options.checkout && options.checkout.id) || "";
  const [id, kind] = String(given).split("/");
  return { id, registration: kind === "registration" };
}

// The gateway's address, with its slash. Throws an Error that names the option when the page gave one without.
/** @param {PageOptions} options */
export function baseOf(options) {
  if (options.baseUrl === undefined) return scriptUrl.href.split(/v1\/paymentWidgets/)[0].split(/[?#]/)[0];
  if (!/^https?:\/\/.*\/$/.test(options.baseUrl)) {
    throw new Error(`widgetOptions.baseUrl must be an http(s) address that ends with a slash, not "${options.baseUrl}"`);
  }
  return options.baseUrl;
}
