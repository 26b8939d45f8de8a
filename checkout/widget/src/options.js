// The options a page may set, each with the type it must have. Anything else is warned about, with a suggestion.
import { complain, pageOptions, warn } from "./start.js";

const A_FUNCTION = "function";
const A_TEXT = "string";
const A_FLAG = "boolean";
const AN_OBJECT = "object";
const A_LIST = "array";
const AN_AMOUNT = "amount";
const A_TEXT_FLAG = 'text "true" or "false"';
const STYLES = ["card", "logos", "none", "plain"];

const WALLET_OPTIONS = {
  gatewayMerchantId: A_TEXT, merchantId: A_TEXT, merchantName: A_TEXT, currencyCode: A_TEXT,
  prefetchPriceStatus: A_TEXT, amount: AN_AMOUNT, displayItems: A_LIST, onPaymentDataChanged: A_FUNCTION,
  billingAddressRequired: A_FLAG, billingAddressParameters: { format: A_TEXT, phoneNumberRequired: A_FLAG },
  onPaymentAuthorized: A_FUNCTION, countryCode: A_TEXT, buttonColor: A_TEXT, callbackIntents: A_LIST,
  shippingAddressRequired: A_FLAG, shippingAddressParameters: AN_OBJECT, emailRequired: A_FLAG,
};
const SHOP_OPTIONS = {
  merchantId: A_TEXT, ledgerCurrency: A_TEXT, sandbox: A_TEXT_FLAG, checkoutLanguage: A_TEXT, productType: A_TEXT,
  placement: A_TEXT, buttonColor: A_TEXT,
};
export const OPTIONS = {
  style: A_TEXT, locale: A_TEXT, labels: AN_OBJECT, errorMessages: AN_OBJECT, inlineFlow: A_LIST,
  registrations: { requireCvv: A_FLAG, hideInitialPaymentForms: A_FLAG, onDelete: A_FUNCTION },
  brandDetection: A_FLAG, maskCvv: A_FLAG, requireCvv: A_FLAG, billingAddress: AN_OBJECT,
  onReady: A_FUNCTION, onBeforeSubmitCard: A_FUNCTION, onAfterSubmit: A_FUNCTION, onError: A_FUNCTION,
  onChangeBrand: A_FUNCTION, createCheckout: A_FUNCTION, baseUrl: A_TEXT, checkoutId: A_TEXT,
  checkout: { amount: AN_AMOUNT, id: A_TEXT }, customParameters: AN_OBJECT,
  wallet1: WALLET_OPTIONS, wallet2: WALLET_OPTIONS, wallet3: WALLET_OPTIONS,
  shopWallet: SHOP_OPTIONS, webWallet: SHOP_OPTIONS,
};

// Mistakes of the page: told in the console, and in the test environment on the page, where nobody overlooks them.
/** @type {string[]} */
export const mistakes = [];

/** @param {string} text */
export function mistake(text) {
  warn(text);
  if (!mistakes.includes(text)) mistakes.push(text);
}

// How many letters must change to make one word of the other.
/** @param {string} from @param {string} to */
function distance(from, to) {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[to.length];
}

/** @param {string} word @param {string[]} known */
function nearest(word, known) {
  const low = String(word).toLowerCase();
  const [best] = known
    .map((name) => /** @type {[number, string]} */ ([distance(low, name.toLowerCase()), name]))
    .sort((a, b) => a[0] - b[0]);
  return best && best[0] <= Math.max(2, word.length / 3) ? ` Did you mean ${best[1]}?` : "";
}

/** @type {Record<string, (value: unknown) => boolean>} */
const FITS = {
  [AN_AMOUNT]: (value) => /^\d{1,10}(\.\d{2})?$/.test(String(value)),
  [A_LIST]: Array.isArray,
  [A_TEXT_FLAG]: (value) => value === "true" || value === "false",
};

// Warn about names nobody reads and values of the wrong type.
/** @param {PageOptions} given @param {Record<string, any>} known @param {string} path */
export function checkOptions(given, known, path) {
  for (const [name, value] of Object.entries(given)) {
    const wanted = known[name];
    const full = `${path}.${name}`;
    if (wanted === undefined) {
      mistake(`${full} is not an option.${nearest(name, Object.keys(known))}`);
    } else if (typeof wanted === "object") {
      if (value && typeof value === "object") checkOptions(value, wanted, full);
      else mistake(`${full} must be an object, not ${JSON.stringify(value)}.`);
    } else if (!(FITS[wanted] ? FITS[wanted](value) : typeof value === wanted)) {
      const allowed = wanted === AN_OBJECT && value === true && name === "billingAddress";
      if (!allowed) mistake(`${full} must be of type ${wanted}, not ${JSON.stringify(value)} (${typeof value}).`);
    }
  }
}

/** @param {PageOptions} options */
export function styleOf(options) {
  const { style } = options;
  if (STYLES.includes(style)) return style;
  // What is no text was told with the types.
  if (typeof style === "string") mistake(`widgetOptions.style "${style}" is none of ${STYLES.join(", ")}.${nearest(style, STYLES)} Taking card.`);
  return "card";
}

// Call a function of the page, as a method of its options. A fault in it is the page's, and is said so; a check that
// failed has let nothing pass.
/** @param {string} name @param {...unknown} values */
export function callPage(name, ...values) {
  const options = pageOptions();
  if (typeof options[name] !== "function") return undefined;
  try {
    return options[name](...values);
  } catch (fault) {
    complain(`widgetOptions.${name} threw: ${fault && fault.stack ? fault.stack : fault}`);
    return false;
  }
}
