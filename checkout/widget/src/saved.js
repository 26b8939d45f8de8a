// Cards and accounts the shopper has kept at this merchant: one tap, and the security code if it is wanted.
import { dropPart } from "./arrange.js";
import { cvvField, secretName } from "./card.js";
import { h } from "./dom.js";
import { submit } from "./follow.js";
import { lookOf } from "./frames.js";
import { mark } from "./marks.js";
import { complain, pageOptions } from "./start.js";
import { isolated } from "./texts.js";
import { payButton } from "./view.js";
/** @import { CardPart, Field, FramedField, Saved, SavedPart, View } from "./types.js" */

/** @param {View} view @param {Saved} saved @returns {SavedPart} */
export function savedPart(view, saved) {
  const wishes = pageOptions().registrations || {};
  const wantsCvv = saved.cvvRequired || (wishes.requireCvv === true && saved.cvv.length > 0);
  const part = /** @type {SavedPart} */ ({ kind: "saved", fields: /** @type {Field[]} */ ([]), saved, shown: () => !part.form.hidden });
  const { t } = view;
  const groupName = secretName();
  if (wantsCvv && !saved.expired) {
    part.cvv = cvvField(view, groupName, {
      change: (state) => (state.valid || state.empty) && /** @type {FramedField} */ (part.cvv).fail(""),
      enter: () => part.form.requestSubmit(),
    });
    part.fields = [part.cvv];
  }
  part.title = t("savedCard", { brand: saved.label || saved.brand, last4: isolated(saved.last4) });
  const until = saved.expiryMonth ? isolated(`${saved.expiryMonth} / ${String(saved.expiryYear).slice(-2)}`) : "";
  part.detail = saved.expired ? t("expired") : until && t("expires", { date: until });
  part.badges = [mark(saved.brand, "", true)];
  /** @param {string} words @param {() => void} onclick */
  const small = (words, onclick) => h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick }, words);
  // Another card in place of one that has ended; kept, where the shop lets shoppers choose that.
  const another = () => /** @type {CardPart} */ (view.parts.find((one) => one.kind === "card"));
  const replace = saved.expired && small(t("replaceCard"), () => {
    view.choose(another());
    if (another().keep) another().keep.checked = true;
    another().number.focus();
  });
  // Taken away by the shop's server alone: the page's function asks it. Asked once before.
  const tools = h("div", { class: "wpwl-group wpwl-group-registration-tools" });
  const remove = () => small(t("remove"), () => {
    const yes = small(t("remove"), () => forget(view, part, wishes.onDelete));
    tools.replaceChildren(h("span", { class: "wpwl-tools-words" }, t("removeAsk", { what: part.title })), yes,
      small(t("cancel"), () => { offer(); /** @type {HTMLElement} */ (tools.lastChild).focus(); }));
    yes.focus();
    view.announce(t("removeAsk", { what: part.title }));
  });
  const offer = () => tools.replaceChildren(...[replace, wishes.onDelete && remove()].filter(Boolean));
  offer();
  part.button = payButton(view);
  part.form = h("form", { class: "wpwl-form wpwl-form-registrations", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
    part.cvv && h("div", { class: "wpwl-row" }, part.cvv.node),
    !saved.expired && h("div", { class: "wpwl-group wpwl-group-submit" }, part.button), tools);
  part.node = part.form;
  part.press = () => part.form.requestSubmit();
  part.configure = () => {
    if (replace) replace.hidden = !another();
    tools.hidden = !tools.querySelector("button:not([hidden])");
    if (!part.cvv) return;
    part.cvv.dress(t("cvv"), "•••", { mask: pageOptions().maskCvv === true, alone: true });
    part.cvv.want(saved.cvv, true);
  };
  part.look = () => part.cvv && part.cvv.frame.send({ t: "style", style: lookOf(part.cvv.control) });
  part.brand = () => saved.brand;
  part.check = () => part.fields.map((field) => /** @type {[Field, string]} */ ([field, field.judge()])).filter(([field, text]) => { if (!text) field.fail(""); return text; });
  part.send = (common) => {
    const fields = { ...common, registrationId: saved.id };
    return part.cvv ? part.cvv.frame.post(view.gateway.path, fields) : view.gateway.post(fields);
  };
  part.clearCvv = () => part.cvv && part.cvv.frame.send({ t: "clear" });
  return part;
}

/** @param {View} view @param {SavedPart} part @param {(saved: Pick<Saved, "id" | "brand" | "last4">) => unknown} ask */
async function forget(view, part, ask) {
  if (view.busy || view.over) return;
  view.setBusy(part, true);
  const { id, brand, last4 } = part.saved;
  const gone = await Promise.resolve().then(() => ask({ id, brand, last4 })).then((answer) => answer !== false, (fault) => {
    complain(`widgetOptions.registrations.onDelete was rejected: ${fault}`);
    return false;
  });
  view.setBusy(null, false);
  if (!gone) return view.say("error", view.t("tryAgainLater"));
  dropPart(view, part);
  if (!view.over) view.say("done", view.t("removed"));
}
