// The parts that need no frame: bank account, virtual account, and brands whose own page takes over.
import { h, isolated, pageOptions, payButton, payGroup, plainDigits, refuseFields, submit, textField } from "../shared.js";
import { badge } from "./badges.js";
/** @import { Child, Field, OtherBrand, Part, View } from "../types.js" */

const IBAN_LENGTHS =
  "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29CH21CR22CY28CZ24DE22DK18DO28EE20ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24SI19SK24SM27TN24TR26UA29VA22VG24XK20";
// Where the bank's own code stands in the account number: how many characters, after how many.
/** @type {Record<string, number>} */
const BANK_CODE = { AT: 5, BE: 3, CH: 5, CY: 3, DE: 8, EE: 2, FI: 3, FR: 5, HR: 7, HU: 7, LI: 5, LT: 5, LU: 3, MC: 5, PL: 8, SI: 5 };

/** @param {string} iban */
function ibanValid(iban) {
  const wanted = IBAN_LENGTHS.match(new RegExp(`${iban.slice(0, 2)}(\\d\\d)`));
  if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,27}$/.test(iban) || (wanted && Number(wanted[1]) !== iban.length)) return false;
  const digits = (iban.slice(4) + iban.slice(0, 4)).replace(/[A-Z]/g, (one) => /** @type {any} */ (one.charCodeAt(0) - 55));
  let rest = 0;
  for (const digit of digits) rest = (rest * 10 + Number(digit)) % 97;
  return rest === 1;
}

/** @param {string} text */
const packed = (text) => plainDigits(text).toUpperCase().replace(/[^A-Z0-9]/g, "");

// Groups of four while it is typed; the caret stays behind the character it was behind.
/** @param {HTMLInputElement} input */
function tidyIban(input) {
  const before = packed(input.value.slice(0, /** @type {number} */ (input.selectionStart))).length;
  const shown = packed(input.value).slice(0, 34).replace(/(.{4})(?=.)/g, "$1 ");
  if (shown === input.value) return;
  input.value = shown;
  const place = before + Math.floor(Math.max(0, before - 1) / 4);
  input.setSelectionRange(place, place);
}

/**
 * @param {View} view
 * @param {"bank" | "virtual" | "redirect"} kind
 * @param {OtherBrand} brand
 * @param {Field[]} fields
 * @param {Child} [extra]
 * @param {string} [buttonText]
 */
function simplePart(view, kind, brand, fields, extra, buttonText) {
  const names = { bank: "directDebit", virtual: "virtualAccount", redirect: "onlineTransfer" };
  const part = /** @type {Part} */ ({
    kind, fields, shown: () => !part.form.hidden,
    title: view.words.label(brand), badges: [badge(brand.code)],
    brand: () => brand.code, configure: () => {},
    check: () => fields.map((field) => /** @type {[Field, string]} */ ([field, view.t2(field.judge())])).filter(([field, text]) => { if (!text) field.fail(""); return text; }),
    refuse: (wrong) => refuseFields(view, fields, wrong),
    send: (common) => {
      const values = Object.assign({}, ...fields.map((field) => field.values()));
      return view.gateway.post({ ...common, paymentBrand: brand.code, ...values });
    },
  });
  part.button = payButton(view, buttonText);
  part.form = h("form", { class: `wpwl-form wpwl-form-${names[kind]} wpwl-form-${brand.code}`, novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
    fields.map((field) => field.node), extra, payGroup(part.button));
  part.node = part.form;
  part.press = () => part.form.requestSubmit();
  return part;
}

/** @param {View} view @param {OtherBrand} brand */
export function bankPart(view, brand) {
  const { t } = view;
  const holder = textField(view, "accountHolder", {
    label: t("accountHolder"), autocomplete: "name", parameter: "bankAccount.holder", maxlength: 128,
    check: (text) => (text.length >= 4 ? "" : "accountHolderError"),
  });
  const iban = textField(view, "iban", {
    label: t("iban"), autocomplete: "off", placeholder: "DE00 0000 0000 0000 0000 00", dir: "ltr", maxlength: 42, tidy: tidyIban,
    check: (text) => (ibanValid(packed(text)) ? "" : "ibanError"),
  });
  iban.values = () => {
    const whole = packed(iban.input.value);
    const country = whole.slice(0, 2);
    const start = country === "IT" || country === "SM" ? 5 : 4;
    return {
      "bankAccount.iban": whole, "bankAccount.country": country,
      "bankAccount.bankCode": whole.slice(start, start + (BANK_CODE[country] || (start === 5 ? 5 : 4))),
    };
  };
  const { amount, currency } = view.config.checkout;
  const mandate = /DEBIT/.test(brand.code) && h("p", { class: "wpwl-mandate" },
    t("mandate", { amount: amount ? isolated(view.words.money(amount, currency)) : "" }));
  return simplePart(view, "bank", brand, [holder, iban], mandate);
}

/** @param {View} view @param {OtherBrand} brand */
export function virtualPart(view, brand) {
  const account = textField(view, "accountId", {
    label: view.t("accountId"), autocomplete: "username", parameter: "virtualAccount.accountId", maxlength: 100, dir: "ltr",
    check: (text) => (text ? "" : "accountIdError"),
  });
  return simplePart(view, "virtual", brand, [account]);
}

// A bank's or wallet's own page. Wallets, and brands in inlineFlow, open a window and leave this page where it is.
/** @param {View} view @param {OtherBrand} brand */
export function redirectPart(view, brand) {
  const name = view.words.label(brand);
  const part = simplePart(view, "redirect", brand, [], null, view.t("continueTo", { brand: name }));
  part.opensWindow = /WALLET/.test(brand.code) || [pageOptions().inlineFlow].flat().includes(brand.code);
  return part;
}
