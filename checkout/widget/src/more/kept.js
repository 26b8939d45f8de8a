// A page that the browser kept (back and forward) and shows again: what stood still may have changed in the meantime.
import { paidBefore } from "../shared.js";
/** @import { Held, View } from "../types.js" */

/** @param {Held | undefined} held */
const restOf = (held) => held && held.rest;

/** @param {View} view */
export async function showAgain(view) {
  view.sheets.forEach((sheet) => sheet.close("done"));
  const state = await view.gateway.state().catch(() => null);
  if (!state || view.over || view.busy) return;
  const { body } = state;
  if (state.status === 404 || body.state === "expired") return view.expire();
  if (body.state === "done") return paidBefore(view);
  // The amount of its button is that of before.
  if (body.state === "open" && restOf(body.held) !== restOf(view.config?.held)) return view.options.again?.();
  view.setSecondsLeft(/** @type {number} */ (body.secondsLeft));
}
