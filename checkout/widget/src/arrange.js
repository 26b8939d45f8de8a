// All ways to pay of one widget: their containers, the rows to choose by, and a way that is taken away.
import { freshId, h } from "./dom.js";
import { callPage } from "./options.js";
/** @import { CardPart, Part, View } from "./types.js" */

// A row to choose by, for each way to pay.
/** @param {View} view @param {Part} part @param {string} name */
function addRow(view, part, name) {
  part.radio = h("input", {
    type: "radio", name, class: "wpwl-method-radio",
    onchange: () => {
      view.choose(part);
      if (part.brand()) callPage("onChangeBrand", part.brand());
    },
  });
  part.container.prepend(h("label", { class: "wpwl-method" }, part.radio,
    h("span", { class: "wpwl-method-words" }, h("span", {}, part.title),
      part.detail && h("small", { class: part.saved && part.saved.expired ? "wpwl-expired" : null }, part.detail)),
    h("span", { class: "wpwl-method-marks" }, part.badges)));
}

/** @param {Part} part */
export function newContainer(part) {
  /** @type {Record<string, string>} */
  const kinds = { saved: "registration", bank: "directDebit", virtual: "virtualAccount", redirect: "onlineTransfer" };
  const wanted = part.kind === "card" ? "card" : part.saved ? `registration-${part.saved.id}` : part.brand();
  let id = `wpwl-container-${wanted}`;
  for (let n = 2; document.getElementById(id); n++) id = `wpwl-container-${wanted}-${n}`;
  return h("div", { class: `wpwl-container wpwl-container-${kinds[part.kind] || part.kind}`, id }, part.form);
}

// All ways to pay, in the page's order. The card form is in the document already and must not move: a frame that is
// moved loads anew.
/** @param {View} view @param {CardPart | null} card */
export function arrange(view, card) {
  const parts = view.parts;
  const many = parts.length > 1 && !view.checkout.registration;
  const name = freshId("method");
  let passed = !card;
  for (const part of parts) {
    if (part === card) {
      passed = true;
    } else {
      part.container = newContainer(part);
      passed ? view.body.append(part.container) : /** @type {CardPart} */ (card).container.before(part.container);
    }
    if (many) addRow(view, part, name);
  }
  view.choose = (part) => {
    if (!many) return;
    view.unsay();
    view.parts.forEach((one) => {
      one.form.hidden = one !== part;
      one.container.classList.toggle("wpwl-selected", one === part);
      /** @type {HTMLInputElement} */ (one.radio).checked = one === part;
    });
    if (part.look) part.look();
  };
  if (!many) return;
  view.body.classList.add("wpwl-methods");
  view.body.setAttribute("role", "radiogroup");
  view.body.setAttribute("aria-label", view.t("methods"));
  view.choose(firstOf(parts));
}

/** @param {Part[]} parts */
const firstOf = (parts) => parts.find((part) => !part.ready && !(part.saved && part.saved.expired)) || parts[0];

// A wallet whose provider has to be asked first: its place stands empty until it says that this shopper can pay.
/** @param {View} view */
export function awaitProviders(view) {
  for (const part of view.parts.filter((one) => one.ready)) {
    part.container.hidden = true;
    /** @type {Promise<boolean>} */ (part.ready).then((ready) => {
      if (view.over) return;
      part.container.hidden = !ready;
      if (!ready) dropPart(view, part);
    });
  }
}

// A way to pay that is gone.
/** @param {View} view @param {Part} part */
export function dropPart(view, part) {
  view.parts = view.parts.filter((one) => one !== part);
  (part.fields || []).forEach((field) => field.frame && field.frame.remove());
  part.container.remove();
  if (!view.parts.length) noBrands(view);
  else if (part.radio && part.radio.checked) view.choose(firstOf(view.parts));
}

/** @param {View} view */
export function noBrands(view) {
  view.end("error", view.t("noBrands"));
  view.error("brands", view.t("noBrands"));
}
