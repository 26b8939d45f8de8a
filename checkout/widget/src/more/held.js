// An amount that was approved in part: what is held, the rest to pay with another card, and the way to have it given back.
import { h, isolated, paidBefore, wait } from "../shared.js";
/** @import { Held, View } from "../types.js" */

/** @type {Set<View>} */
const offering = new Set();

// `pressed`: the forms are drawn anew for it, after a press. Then it is read out and gets the focus.
/** @param {View} view @param {Held} held @param {boolean} pressed */
export function offerRest(view, held, pressed) {
  // It is being given back: nothing is offered until it is.
  if (!held.parts.length) return void giveBack(view, true);
  const { t, words } = view;
  /** @param {string} amount */
  const money = (amount) => isolated(words.money(amount, held.currency));
  const lines = held.parts.map((one) => t("heldPart", {
    amount: money(one.amount), what: t("savedCard", { brand: one.label, last4: isolated(one.last4) }),
  }));
  lines.push(t("heldRest", { amount: money(held.rest) }));
  const offer = h("div", { class: "wpwl-note wpwl-held", role: "group", tabindex: "-1" },
    h("div", {}, lines.map((line) => h("p", { class: "wpwl-held-line" }, line))),
    h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: () => giveBack(view) }, t("giveBack")));
  view.body.before(offer);
  // Nobody is charged more than this form says: the part may have been given back meanwhile.
  view.asked = { "held.rest": held.rest };
  view.givenBack = () => tellAll(view);
  offering.forEach((one) => one.over && offering.delete(one));
  offering.add(view);
  if (!pressed) return;
  view.announce(lines.join(" "));
  offer.focus();
}

// `sent`: somebody has asked for it already.
/** @param {View} view @param {boolean} [sent] */
async function giveBack(view, sent = false) {
  if (view.busy || view.over) return;
  view.setBusy(null, true);
  const state = await released(view, sent);
  if (view.over) return;
  view.setBusy(null, false);
  if (state.status === 404 || state.body.state === "expired") return view.expire();
  if (state.body.state === "done") return paidBefore(view);
  // It is still being given back, or another tab pays the rest.
  if (state.body.state !== "open" || state.body.held) return view.say("error", view.t("tryAgainLater"));
  tellAll(view);
}

// Every form of the page asks for the rest. The one that was pressed comes last: it gets the focus.
/** @param {View} view */
const tellAll = (view) => [...offering].filter((one) => one !== view && !one.over).concat(view).forEach(sayGivenBack);

/** @param {View} view */
function sayGivenBack(view) {
  const { again } = view.options;
  view.root.querySelector(".wpwl-held")?.remove();
  view.end("done", view.t("givenBack"));
  /** @type {Element} */ (view.body.firstChild).append(
    h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: () => again && again() }, view.t("tryAgain")));
}

// Until the acquirer has confirmed it. A request that got lost is sent again: giving back twice does no more than once.
/** @param {View} view @param {boolean} sent */
async function released(view, sent) {
  const address = `${view.base}v1/checkouts/${encodeURIComponent(view.checkout.id)}/release`;
  let state = null;
  for (let tries = 0; !view.over && (!state || state.body.state === "processing"); tries++) {
    if (tries) await wait(Math.min(500 + 250 * tries, 3000));
    sent ||= await fetch(address, { method: "POST", credentials: "omit" }).then(() => true, () => false);
    state = sent ? await view.gateway.state().catch(() => null) : null;
  }
  return state || { status: 0, body: {} };
}
