// Small tools for the document. Nothing here writes HTML text or style attributes: a strict Content-Security-Policy
// (Trusted Types too) has nothing to object to.
/** @import { Attributes, Child } from "./types.js" */

/**
 * An element; attributes that begin with "on" are listeners, and false or null is left out.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value == null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(.../** @type {(Node | string)[]} */ (children.flat().filter((child) => child != null && child !== false)));
  return node;
}

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} attributes
 * @param {...Node} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** @param {string | undefined} path @param {string} [classes] */
export const icon = (path, classes) =>
  svg("svg", { viewBox: "0 0 20 20", class: `wpwl-icon ${classes || ""}`, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: path }));
export const ICONS = {
  alert: "M10 1.7a8.3 8.3 0 1 0 0 16.6 8.3 8.3 0 0 0 0-16.6Zm-.9 4.1h1.8v5.4H9.1Zm0 7h1.8v1.7H9.1Z",
  done: "M10 1.7a8.3 8.3 0 1 0 0 16.6 8.3 8.3 0 0 0 0-16.6Zm-1.3 12-3.4-3.4 1.3-1.3 2.1 2.1 4.7-4.7 1.3 1.3Z",
};

let counter = 0;
/** @param {string} name */
export const freshId = (name) => `wpwl-${name}-${++counter}`;

/** @param {number} ms */
export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// What even style "none" needs: what is hidden is hidden, also a box that the page has one of its own for, pictures and frames have a size.
const BARE =
  ":where(.wpwl-widget [hidden]){display:none!important}:where(.wpwl-hidden){position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}" +
  ":where(.wpwl-mark){width:36px;height:24px}:where(.wpwl-icon){width:20px;height:20px;fill:currentColor}:where(.wpwl-spinner){display:none}" +
  ":where(.wpwl-form:has([name=createRegistration]) .wpwl-group-createRegistration){display:none}" +
  ":where(.wpwl-control-iframe){display:flex;align-items:center;height:44px;border:1px solid}:where(.wpwl-frame){flex:1;min-width:0;height:42px;border:0}:where(.wpwl-sheet-frame){width:100%;height:70vh;border:0}";

let bare = false;
let moreRules = "";
// Rules of what the second script draws, behind those of the first.
/** @param {string} rules */
export function addMoreRules(rules) {
  moreRules = rules;
  if (sheetOfRules && !bare) sheetOfRules.replaceSync(RULES + moreRules);
}

// One sheet of rules for all widgets of a page. Constructed sheets need no 'unsafe-inline'.
/** @type {CSSStyleSheet | null} */
export let sheetOfRules = null;
/** @param {boolean} on @param {string} [style] */
export function addRules(on, style) {
  if (sheetOfRules === null) sheetOfRules = new CSSStyleSheet();
  if (on) {
    bare = style === "none";
    sheetOfRules.replaceSync(bare ? BARE : RULES + moreRules);
  }
  const others = Array.from(document.adoptedStyleSheets).filter((one) => one !== sheetOfRules);
  // First, so that a page's own constructed sheets win.
  document.adoptedStyleSheets = on ? [sheetOfRules, ...others] : others;
}

// True when what lies behind `node` is dark: the widget then wears its dark colours.
/** @param {HTMLElement} node */
export function isDarkBehind(node) {
  const own = getComputedStyle(node).colorScheme;
  const meta = /** @type {HTMLMetaElement} */ (document.querySelector('meta[name="color-scheme"]'));
  const schemes = own === "normal" ? (meta ? meta.content : "") : own;
  if (/dark/.test(schemes)) return !/light/.test(schemes) || matchMedia("(prefers-color-scheme: dark)").matches;
  for (let at = /** @type {HTMLElement} */ (node); at; at = /** @type {HTMLElement} */ (at.parentElement)) {
    const parts = (getComputedStyle(at).backgroundColor.match(/[\d.]+/g) || []).map(Number);
    if (parts.length === 3 || parts[3] > 0.5) return 0.3 * parts[0] + 0.6 * parts[1] + 0.1 * parts[2] < 110;
  }
  return false;
}
