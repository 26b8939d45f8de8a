// The second script: what a card form alone does not need. The first one loads it (later.js) and hands it `shared.js`.
import { addMoreRules } from "../shared.js";
import { bankPart, redirectPart, virtualPart } from "./means.js";
import { walletPart } from "./wallets.js";
/** @import { OtherBrand, View } from "../types.js" */
export { checkAmount } from "./amount.js";
export { arrange, awaitProviders } from "./arrange.js";
export { explainBase, explainMissing, explainNested, showMistakes } from "./explain.js";
export { fastCheckout } from "./fast.js";
export { offerRest } from "./held.js";
export { savedPart } from "./saved.js";
export { showAgain } from "./kept.js";
export { frameSheet, windowClosed } from "./sheet.js";

addMoreRules(MORE_RULES);

/** @param {View} view @param {OtherBrand} brand */
export function partOf(view, brand) {
  if (brand.kind === "bank") return bankPart(view, brand);
  if (brand.kind === "virtual") return virtualPart(view, brand);
  if (/^wallet\d$/.test(brand.kind) || brand.code === "SHOPWALLET") return walletPart(view, brand);
  return redirectPart(view, brand);
}
