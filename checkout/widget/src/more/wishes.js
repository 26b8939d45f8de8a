// What the page wants of a wallet's sheet.
import { pageOptions } from "../shared.js";

// The name of each wallet's own options, and of its sheet.
/** @type {Record<string, string>} */
export const SHEET_OF = { WALLET1: "wallet1", WALLET2: "wallet2", WALLET3: "wallet3", SHOPWALLET: "shopWallet", WEBWALLET: "webWallet" };

// Options of one wallet, under its name or under the brand's code.
/** @param {string} code */
export function walletOptions(code) {
  const options = pageOptions();
  return options[SHEET_OF[code]] || options[code] || {};
}
