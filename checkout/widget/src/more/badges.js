// Pictures of means beside their names: a card form alone shows marks of brands only.
import { icon, mark } from "../shared.js";

/** @type {Record<string, string>} */
export const KIND_ICONS = {
  bank: "M10 2 2.5 6v1.6h15V6Zm-5.8 7v5h1.7V9Zm5 0v5h1.7V9Zm4.9 0v5h1.7V9ZM2.5 15.4V17h15v-1.6Z",
  virtual: "M10 2.5a3.7 3.7 0 1 1 0 7.4 3.7 3.7 0 0 1 0-7.4ZM3 17c.3-3.6 3-5.6 7-5.6s6.7 2 7 5.6Z",
  wallet: "M3 4h12v2.4h2V16H3Zm1.7 4v6.3h10.6V8Zm7.5 2.2h2v2h-2Z",
};

// The mark of a brand beside its name; of one without a mark, the picture of its kind.
/** @param {string} code */
export function badge(code) {
  const kind = /^WALLET|WALLET$/.test(code) ? "wallet" : /DEBIT|TRANSFER/.test(code) ? "bank" : "virtual";
  return mark(code, "", true) || icon(KIND_ICONS[kind], "wpwl-kind");
}
