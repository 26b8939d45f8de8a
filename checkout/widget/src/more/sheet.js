// Sheets over the page: one of our own, the bank's page in one, and one that stands while another window is open.
import { freshId, h, icon, wait } from "../shared.js";
/** @import { View } from "../types.js" */

const CROSS = "m5.6 4.2 4.4 4.4 4.4-4.4 1.4 1.4-4.4 4.4 4.4 4.4-1.4 1.4-4.4-4.4-4.4 4.4-1.4-1.4L8.6 10 4.2 5.6Z";

/**
 * A sheet over the page: native dialog, so focus stays inside, Escape closes, and all else is inert.
 * @param {any} view
 * @param {{name: string, title: string, content: Node, onClose?: () => void, wide?: boolean}} wishes
 */
export function openSheet(view, { name, title, content, onClose, wide }) {
  const heading = freshId("title");
  const before = /** @type {HTMLElement} */ (document.activeElement);
  let open = true;
  /** @param {string} [why] */
  const close = (why) => {
    if (!open) return;
    open = false;
    dialog.close();
    dialog.remove();
    sheet.over();
    if (before && before.isConnected && before.focus) before.focus();
    if (why !== "done" && onClose) onClose();
  };
  const dialog = h("dialog", { class: `wpwl-sheet wpwl-sheet-${name} ${wide ? "wpwl-sheet-wide" : ""}`, "aria-labelledby": heading },
    h("div", { class: "wpwl-sheet-head" },
      h("div", { class: "wpwl-sheet-title", role: "heading", "aria-level": "2", id: heading, tabindex: "-1" }, title),
      h("button", { type: "button", class: "wpwl-close", "aria-label": view.t("close"), onclick: () => close() }, icon(CROSS))),
    h("div", { class: "wpwl-sheet-body" }, content));
  dialog.addEventListener("cancel", (event) => {
    event.preventDefault();
    close();
  });
  const sheet = { dialog, close, over: () => {}, get open() { return open; } };
  view.root.append(dialog);
  dialog.showModal();
  /** @type {HTMLElement} */ (dialog.querySelector(".wpwl-sheet-title")).focus();
  view.sheets.add(sheet);
  sheet.over = () => view.sheets.delete(sheet);
  return sheet;
}

// The bank's page inside the sheet. `done` resolves with "done" when it says so, with "closed" when the shopper goes.
/** @param {View} view @param {string} url @param {string} title */
export function frameSheet(view, url, title) {
  return new Promise((resolve) => {
    const origin = new URL(view.base).origin;
    const frame = h("iframe", { src: url, class: "wpwl-sheet-frame", title, allow: "payment" });
    const sheet = openSheet(view, {
      name: "challenge", title, wide: true, content: frame, onClose: () => end("closed"),
    });
    /** @param {MessageEvent} event */
    const heard = (event) => {
      const said = event.source === frame.contentWindow && event.origin === origin && event.data;
      if (said && said.source === "tollhouse" && said.event === "ended") end("done");
    };
    // The page in the frame may end in silence (a bank that stays blank): the gateway knows more than it does.
    const asking = setInterval(async () => {
      const state = await view.gateway.state().catch(() => null);
      if (state && state.body.state && state.body.state !== "action") end("done");
    }, 2500);
    let over = false;
    /** @param {string} how */
    const end = (how) => {
      if (over) return;
      over = true;
      clearInterval(asking);
      removeEventListener("message", heard);
      sheet.close("done");
      resolve(how);
    };
    addEventListener("message", heard);
    frame.addEventListener("load", () => frame.focus());
  });
}

// While another window is open: say so, and watch both the window and the state. A bank's page may cut the tie to its
// opener; the window then looks closed at once, though it still has the focus: from then on only the state counts.
const TIE_CUT_MS = 2500;

/** @param {View} view @param {Window} popup */
export async function windowClosed(view, popup) {
  let left = false;
  const show = h("button", { type: "button", class: "wpwl-button wpwl-button-pay", onclick: () => popup.focus() }, view.t("windowShow"));
  const leave = () => {
    left = true;
    popup.close();
  };
  const sheet = openSheet(view, {
    name: "window", title: view.t("windowOpen"), onClose: leave,
    content: h("div", { class: "wpwl-stack" }, show,
      h("button", { type: "button", class: "wpwl-button wpwl-button-plain", onclick: leave }, view.t("cancel"))),
  });
  const began = Date.now();
  let cut = false;
  let how = "closed";
  for (let looks = 1; !left && !view.over; looks++) {
    await wait(300);
    if (popup.closed && !cut) {
      cut = Date.now() - began < TIE_CUT_MS && !document.hasFocus();
      show.hidden = cut;
      if (!cut) break;
    }
    if (looks % 4) continue;
    const state = await view.gateway.state().catch(() => null);
    if (state && state.body.state && !["action", "processing"].includes(state.body.state)) {
      how = "done";
      break;
    }
  }
  popup.close();
  sheet.close("done");
  return how;
}
