// Brand marks, drawn in a box of 36 × 24. A shape is "kind values fill": c = circle (x y r), r = rectangle
// (x y width height), t = text (size x, then the words), p = path. A brand that is not here shows its name.
import { svg } from "./dom.js";

/** @type {Record<string, string[]>} */
const MARKS = {
  VISA: ["#fff", "t 11.5 18 #1a1f71 VISA i"],
  VISAELECTRON: ["#fff", "t 10 18 #1a1f71 VISA i", "r 9 18.5 18 1.8 #f2ae14"],
  VISADEBIT: ["#fff", "t 10 18 #1a1f71 VISA i", "r 9 18.5 18 1.8 #1a1f71"],
  VPAY: ["#fff", "t 9.5 18 #1a1f71 V|PAY i"],
  MASTER: ["#fff", "c 14 12 7 #eb001b", "c 22 12 7 #f79e1b", "p M18,6.3a7,7,0,0,1,0,11.4a7,7,0,0,1,0,-11.4z #ff5f00"],
  MASTERDEBIT: ["#fff", "c 14 12 7 #eb001b", "c 22 12 7 #f79e1b", "p M18,6.3a7,7,0,0,1,0,11.4a7,7,0,0,1,0,-11.4z #ff5f00"],
  MAESTRO: ["#fff", "c 14 12 7 #0099df", "c 22 12 7 #ed0006", "p M18,6.3a7,7,0,0,1,0,11.4a7,7,0,0,1,0,-11.4z #6c6bbd"],
  AMEX: ["#1f72cd", "t 9 18 #fff AMEX"],
  DINERS: ["#fff", "c 18 12 8 #0a4a8a", "c 18 12 6 #fff", "p M16.5,7.2a5.2,5.2,0,0,0,0,9.6z #0a4a8a", "p M19.5,7.2a5.2,5.2,0,0,1,0,9.6z #0a4a8a"],
  DISCOVER: ["#fff", "t 6 18 #23252b DISCOVER", "c 29 19 7 #f58220"],
  JCB: ["#fff", "r 8 5 6 14 #0e4c96", "r 15 5 6 14 #bf1932", "r 22 5 6 14 #12873f", "t 6 18 #fff J|C|B"],
  UNIONPAY: ["#fff", "p M9,4h7l-3,16h-7z #d3242c", "p M17,4h7l-3,16h-7z #00447c", "p M25,4h6l-3,16h-6z #007b84"],
  CARTEBANCAIRE: ["#0b5ba8", "p M0,14h36v7a3,3,0,0,1,-3,3h-30a3,3,0,0,1,-3,-3z #1a8a4a", "t 11 18 #fff CB"],
  BCMC: ["#fff", "p M2,12h19l-8,6h-11z #005498", "p M34,12h-19l8,-6h11z #ffbf00"],
  DANKORT: ["#fff", "r 4 7 28 10 #d71920", "t 6.5 18 #fff Dankort"],
  MADA: ["#fff", "r 4 6 13 5 #259bd6", "r 4 13 13 5 #84b740", "t 7 25 #101010 mada"],
  MIR: ["#fff", "t 11 18 #1a7f3c MIR"],
  ELO: ["#111", "t 12 18 #fff elo"],
  RUPAY: ["#fff", "t 8 18 #16246b RuPay i"],
  TROY: ["#fff", "t 10 18 #00838a troy"],
};

/** @param {string} text */
function shape(text) {
  const [kind, ...rest] = text.split(" ");
  if (kind === "c") return svg("circle", { cx: rest[0], cy: rest[1], r: rest[2], fill: rest[3] });
  if (kind === "r") return svg("rect", { x: rest[0], y: rest[1], width: rest[2], height: rest[3], fill: rest[4], rx: 1 });
  if (kind === "p") return svg("path", { d: rest[0], fill: rest[1] });
  const words = svg("text", {
    x: rest[1], y: 12 + /** @type {any} */ (rest[0]) * 0.36, "text-anchor": "middle", fill: rest[2], "font-size": rest[0],
    "font-family": "Arial, Helvetica, sans-serif", "font-weight": 800, "font-style": rest[4] ? "italic" : "normal",
  });
  words.textContent = rest[3].replace(/\|/g, " ");
  return words;
}

// The mark of a brand as a picture with its name; `quiet` leaves the name to the words beside it, and draws nothing of a
// brand without a mark.
/** @param {string} code @param {string} label @param {boolean} [quiet] */
export function mark(code, label, quiet) {
  const known = MARKS[code];
  if (!known && quiet) return null;
  const names = quiet ? { "aria-hidden": "true" } : { role: "img", "aria-label": label };
  const [ground, ...shapes] = known || ["#fff", `t ${Math.min(9, 52 / label.length)} 18 #344054 ${label.replace(/ /g, "|")}`];
  return svg("svg", { viewBox: "0 0 36 24", class: `wpwl-mark wpwl-brand-${code}`, focusable: "false", ...names },
    svg("rect", { x: 0.5, y: 0.5, width: 35, height: 23, rx: 3.5, fill: ground, stroke: "#98a2b3", "stroke-opacity": 0.5 }),
    ...shapes.map(shape));
}
