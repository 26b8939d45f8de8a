// Sheets over the page: one of our own, and the bank's page in one.
import { ICONS, freshId, h, icon } from "./dom.js";
/** @import { View } from "./types.js" */

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
      h("button", { type: "button", class: "wpwl-close", "aria-label": view.t("close"), onclick: () => close() }, icon(ICONS.close))),
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
