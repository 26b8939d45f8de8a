// What is wrong with the page, in words: in the console, and in the test environment in a banner.
import { addRules, baseOf, checkoutOf, complain, gateway, h } from "../shared.js";
/** @import { Checkout } from "../types.js" */

const TRAP =
  'A <form> stands around <form class="paymentWidgets">. Browsers drop a form inside a form, so nothing of it would be sent. Move the widget out of the outer form.';

/** @param {string} text */
function banner(text) {
  const words = `Test: ${text}`;
  if (Array.from(document.querySelectorAll(".wpwl-banner")).some((one) => one.textContent === words)) return;
  addRules(true);
  document.body.prepend(h("div", { class: "wpwl-banner", role: "alert" }, words));
}

export const explainNested = () => complain(TRAP);

/** @param {string[]} mistakes @param {boolean} nested */
export const showMistakes = (mistakes, nested) => [...(nested ? [TRAP] : []), ...mistakes].forEach(banner);

// Without the right address nothing is drawn. The script's own address is that of a gateway, too: it says whether this
// is a test.
/** @param {PageOptions} options @param {string} message */
export async function explainBase(options, message) {
  const base = baseOf({});
  const checkout = checkoutOf(options);
  const answer = checkout.id && (await gateway(base, checkout).config([], "en").catch(() => null));
  if (answer && answer.body.test) banner(message);
}

// The parser drops the inner form without a trace: what is left is a page with a form, and none of ours.
/** @param {string} base @param {Checkout} checkout */
export async function explainMissing(base, checkout) {
  if (!document.forms.length) return complain('There is no <form class="paymentWidgets" data-brands="…"> in this page.');
  complain(TRAP);
  const answer = checkout.id && (await gateway(base, checkout).config([], "en").catch(() => null));
  if (answer && answer.body.test) banner(TRAP);
}
