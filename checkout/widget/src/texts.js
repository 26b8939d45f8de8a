// Words in the shopper's language. The spec's language codes stay (dk, se, cz, gr, cn, no); ISO codes are accepted,
// and the lang attribute carries ISO.
/** @import { BrandName } from "./types.js" */
/** @type {Record<string, string>} */
const TO_ISO = { dk: "da", se: "sv", cz: "cs", gr: "el", cn: "zh", no: "nb" };
/** @type {Record<string, string>} */
const FROM_ISO = { nn: "no", ...Object.fromEntries(Object.entries(TO_ISO).map(([ours, iso]) => [iso, ours])) };

/** @param {PageOptions} options */
export function localeOf(options) {
  const wanted = String(options.locale || document.documentElement.lang || navigator.language || "en").toLowerCase();
  const language = wanted.split(/[-_/]/)[0];
  return FROM_ISO[language] || language;
}

/** @param {string} locale */
const isoOf = (locale) => TO_ISO[locale] || locale;

// {t, money, list, iso, dir} for one set of words. Labels and error messages of the page win over ours.
/** @param {string} locale @param {string} dir @param {Record<string, string>} texts @param {PageOptions} options */
export function speech(locale, dir, texts, options) {
  const words = { ...texts, ...(options.labels || {}), ...(options.errorMessages || {}) };
  const iso = isoOf(locale);
  // Arabic words, western digits: a card number is read from left to right everywhere.
  const tag = `${iso}-u-nu-latn`;
  /** @param {string} key @param {Record<string, string | number>} [values] */
  const t = (key, values) =>
    String(words[key] === undefined ? key : words[key]).replace(/\{(\w+)\}/g, (all, name) =>
      /** @type {string} */ (values && values[name] !== undefined ? values[name] : all));
  /** @param {string} amount @param {string} currency */
  const money = (amount, currency) => {
    try {
      /** @type {Intl.NumberFormatOptions} */
      const form = { style: "currency", currency };
      const usual = new Intl.NumberFormat(tag, form);
      // Some currencies are written without decimals; those that are charged are shown all the same.
      const rounds = Number(amount) % 1 && !usual.resolvedOptions().maximumFractionDigits;
      return (rounds ? new Intl.NumberFormat(tag, { ...form, minimumFractionDigits: 2 }) : usual).format(Number(amount));
    } catch {
      return `${amount} ${currency}`;
    }
  };
  /** @param {BrandName} brand */
  const label = (brand) => {
    const code = brand.code.replace(/_SEPA$/, "");
    const own = words[`brand.${code}`] || (/^WALLET\d$/.test(code) && t("brand.WALLET", { n: code.slice(-1) }));
    return own ? own + (code === brand.code ? "" : " (SEPA)") : brand.label || brand.code;
  };
  return { t, money, label, iso, tag, dir, locale };
}

const BIDI_OPEN = "\u2068";
const BIDI_CLOSE = "\u2069";
// Keep a number or a name in one piece inside words that run the other way.
/** @param {string} text */
export const isolated = (text) => `${BIDI_OPEN}${text}${BIDI_CLOSE}`;
