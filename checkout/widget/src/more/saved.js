// Cards and accounts the shopper has kept at this merchant: one tap, and the security code if it is wanted.
import {
  billingFields, billingSet, complain, cvvField, expiryField, h, isolated, lookOf, pageOptions, payButton, payGroup,
  refuseFields, secretName, submit,
} from "../shared.js";
import { dropPart } from "./arrange.js";
import { badge } from "./badges.js";
/** @import { Field, Saved, SavedPart, View } from "../types.js" */

/** @param {View} view @param {Saved} saved @returns {SavedPart} */
export function savedPart(view, saved) {
  const wishes = pageOptions().registrations || {};
  const wantsCvv = saved.cvvRequired || (wishes.requireCvv === true && saved.cvv.length > 0);
  const part = /** @type {SavedPart} */ ({ kind: "saved", fields: /** @type {Field[]} */ ([]), saved, shown: () => !part.form.hidden });
  const { t } = view;
  const groupName = secretName();
  const asked = h("div", { class: "wpwl-row" });
  // The bank of a card wants the address, and none is kept with it.
  const billing = view.config.threeDSecure && saved.kind === "card" ? billingFields(view, view.config.billing) : [];
  const allFields = () => [...part.fields, ...billing];
  const askCvv = () => {
    if (part.cvv || !saved.cvv.length) return;
    part.cvv = cvvField(view, groupName, () => part.form.requestSubmit());
    part.fields.push(part.cvv);
    asked.append(part.cvv.node);
  };
  // A card that the bank has sent anew has the same number and another date: the payment with it renews what is stored.
  part.renew = () => {
    if (part.expiry || saved.kind !== "card") return;
    part.expiry = expiryField(view);
    part.fields.unshift(part.expiry);
    asked.prepend(part.expiry.node);
    if (part.cvv) return;
    askCvv();
    if (part.node) part.configure();
  };
  if (wantsCvv) askCvv();
  if (saved.expired) part.renew();
  part.title = t("savedCard", { brand: saved.label || saved.brand, last4: isolated(saved.last4) });
  const until = saved.expiryMonth ? isolated(`${saved.expiryMonth} / ${String(saved.expiryYear).slice(-2)}`) : "";
  part.detail = saved.expired ? t("expired") : until && t("expires", { date: until });
  part.badges = [badge(saved.brand)];
  /** @param {string} words @param {() => void} onclick */
  const small = (words, onclick) => h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick }, words);
  // Taken away by the shop's server alone: the page's function asks it. Asked once before.
  const tools = h("div", { class: "wpwl-group wpwl-group-registration-tools" });
  const remove = () => small(t("remove"), () => {
    const yes = small(t("remove"), () => forget(view, part, wishes.onDelete));
    tools.replaceChildren(h("span", { class: "wpwl-tools-words" }, t("removeAsk", { what: part.title })), yes,
      small(t("cancel"), () => { offer(); /** @type {HTMLElement} */ (tools.lastChild).focus(); }));
    yes.focus();
    view.announce(t("removeAsk", { what: part.title }));
  });
  const offer = () => tools.replaceChildren(remove());
  tools.hidden = !wishes.onDelete;
  offer();
  part.button = payButton(view);
  part.form = h("form", { class: "wpwl-form wpwl-form-registrations", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
    asked, billingSet(view, billing), payGroup(part.button), tools);
  part.node = part.form;
  part.press = () => part.form.requestSubmit();
  part.configure = () => {
    if (!part.cvv) return;
    part.cvv.dress(t("cvv"), "•••", { mask: pageOptions().maskCvv === true, alone: true });
    part.cvv.want(saved.cvv, true);
  };
  part.look = () => part.cvv && part.cvv.frame.send({ t: "style", style: lookOf(part.cvv.control) });
  part.brand = () => saved.brand;
  part.check = () => allFields().map((field) => /** @type {[Field, string]} */ ([field, field.frame ? field.judge() : view.t2(field.judge())])).filter(([field, text]) => { if (!text) field.fail(""); return text; });
  part.send = (common) => {
    const fields = Object.assign({ ...common, registrationId: saved.id }, ...allFields().filter((field) => !field.frame).map((field) => field.values()));
    return part.cvv ? part.cvv.frame.post(view.gateway.path, fields) : view.gateway.post(fields);
  };
  part.refuse = (wrong) => refuseFields(view, allFields(), wrong);
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
