// The amount the page shows must be the one that is charged.
import { complain, pageOptions } from "../shared.js";
/** @import { View } from "../types.js" */

/** @param {View} view */
export function checkAmount(view) {
  const page = pageOptions().checkout?.amount;
  const charged = view.config.checkout.amount;
  if (page === undefined || !charged || Number(page) === Number(charged)) return;
  complain(`widgetOptions.checkout.amount is ${page}, the checkout's amount is ${charged}.`);
  view.say("error", view.t("amountChanged"), null, true);
  view.error("amount", view.t("amountChanged"), { page: String(page), checkout: charged });
}
