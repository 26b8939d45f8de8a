// Several ways to pay in one widget: the rows to choose by, what is offered after a decline, and a way that is taken away.
import { callPage, freshId, h, newContainer, noBrands } from "../shared.js";
/** @import { CardPart, NoteAction, Part, View } from "../types.js" */

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
  view.another = (refused, key) => anotherWay(view, refused, key);
  if (!many) return;
  view.body.classList.add("wpwl-methods");
  view.body.setAttribute("role", "radiogroup");
  view.body.setAttribute("aria-label", view.t("methods"));
  view.choose(firstOf(parts));
}

// The next best means after a decline, in the page's order: none that was refused before or has expired, and where the
// payment was refused whatever the card, no other card.
/** @param {View} view @param {Part} refused @param {string} key @returns {NoteAction | null} */
function anotherWay(view, refused, key) {
  const next = view.parts.find((one) =>
    one !== refused && one.radio && !one.declined && !one.container.hidden && !(one.saved && one.saved.expired) &&
    !(key === "declinedRisk" && (one.kind === "card" || one.saved)));
  return next ? { label: next.title, run: () => { view.choose(next); /** @type {HTMLInputElement} */ (next.radio).focus(); } } : null;
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
