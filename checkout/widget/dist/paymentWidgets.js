(() => {
"use strict";
const RULES = ":where(.wpwl-widget,.wpwl-banner){--wpwl-accent:#0f766e;--wpwl-on-accent:#fff;--wpwl-ink:#101828;--wpwl-soft:#566277;--wpwl-line:#d5dbe5;--wpwl-edge:#838ea3;--wpwl-paper:#fff;--wpwl-ground:#f4f6f9;--wpwl-danger:#b42318;--wpwl-danger-ground:#fef3f2;--wpwl-warning:#93480a;--wpwl-warning-ground:#fff6e5;--wpwl-radius:8px;--wpwl-font:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,\"Noto Sans\",sans-serif;color-scheme:light;}:where(.wpwl-widget.wpwl-dark){--wpwl-accent:#4fd1bf;--wpwl-on-accent:#06201d;--wpwl-ink:#eef2f8;--wpwl-soft:#a7b4c8;--wpwl-line:#34415a;--wpwl-edge:#71809b;--wpwl-paper:#131c2d;--wpwl-ground:#1b263a;--wpwl-danger:#ff9c91;--wpwl-danger-ground:#351b1d;--wpwl-warning:#f5b65b;--wpwl-warning-ground:#33260f;color-scheme:dark;}:where(.wpwl-widget){position:relative;box-sizing:border-box;width:100%;max-width:420px;color:var(--wpwl-ink);font:400 16px/24px var(--wpwl-font);font-variant-numeric:tabular-nums;text-align:start;-webkit-text-size-adjust:100%;}:where(.wpwl-widget *,.wpwl-widget *::before,.wpwl-widget *::after){box-sizing:border-box;}:where(.wpwl-widget) :where([hidden]){display:none !important;}:where(.wpwl-hidden){position:absolute;width:1px;height:1px;margin:-1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap;}:where(.wpwl-icon){flex:none;width:20px;height:20px;fill:currentColor;}:where(.wpwl-mark){flex:none;width:36px;height:24px;transition:opacity .12s;}:where(.wpwl-mark.wpwl-dim){opacity:.25;}:where(.wpwl-kind){width:24px;height:24px;color:var(--wpwl-soft);}:where(.wpwl-form){display:grid;gap:16px;min-width:0;margin:0;}:where(.wpwl-style-card .wpwl-container,.wpwl-style-logos .wpwl-container){background:var(--wpwl-paper);border:1px solid var(--wpwl-line);border-radius:calc(var(--wpwl-radius) + 6px);padding:20px;}:where(.wpwl-style-card:not(.wpwl-waiting) .wpwl-container){box-shadow:0 1px 2px rgb(16 24 40 / .05),0 6px 20px rgb(16 24 40 / .05);}:where(.wpwl-fast.wpwl-fast .wpwl-container){padding:0;border:0;background:none;box-shadow:none;}:where(.wpwl-style-plain .wpwl-marks){display:none;}:where(.wpwl-style-logos .wpwl-marks){gap:10px;min-height:33px;}:where(.wpwl-style-logos .wpwl-marks .wpwl-mark){width:50px;height:33px;}:where(.wpwl-body){display:grid;gap:12px;}:where(.wpwl-marks){display:flex;flex-wrap:wrap;gap:6px;min-height:24px;}:where(.wpwl-row){display:grid;grid-template-columns:1fr 1fr;gap:16px 12px;align-items:start;}:where(.wpwl-group){min-width:0;}:where(.wpwl-label){display:block;margin:0 0 6px;padding:0;color:var(--wpwl-ink);font-size:14px;font-weight:550;line-height:20px;}:where(.wpwl-optional){margin-inline-start:6px;color:var(--wpwl-soft);font-weight:400;}:where(.wpwl-wrapper){position:relative;}:where(.wpwl-control:not([type=\"checkbox\"])){display:block;width:100%;height:48px;margin:0;padding:0 14px;border:1px solid var(--wpwl-edge);border-radius:var(--wpwl-radius);background:var(--wpwl-paper);color:var(--wpwl-ink);font:400 16px/24px var(--wpwl-font);font-variant-numeric:tabular-nums;letter-spacing:normal;text-align:start;appearance:none;transition:border-color .12s,box-shadow .12s;}:where([dir=\"rtl\"] .wpwl-control[dir=\"ltr\"]){text-align:right;}:where(select.wpwl-control){padding-inline-end:36px;text-overflow:ellipsis;background-image:linear-gradient(45deg,transparent 50%,currentColor 50%),linear-gradient(-45deg,transparent 50%,currentColor 50%);background-position:right 20px center,right 15px center;background-size:5px 5px;background-repeat:no-repeat;}:where([dir=\"rtl\"] select.wpwl-control){background-position:left 15px center,left 20px center;}:where(.wpwl-control)::placeholder{color:var(--wpwl-soft);opacity:1;}:where(.wpwl-control:hover){border-color:var(--wpwl-ink);}:where(.wpwl-control:focus,.wpwl-control.wpwl-focused){outline:2px solid var(--wpwl-accent);outline-offset:-1px;border-color:var(--wpwl-accent);}:where(.wpwl-control.wpwl-has-error){border-color:var(--wpwl-danger);box-shadow:0 0 0 1px var(--wpwl-danger);}:where(.wpwl-control.wpwl-has-error:focus,.wpwl-control.wpwl-has-error.wpwl-focused){outline-color:var(--wpwl-danger);box-shadow:none;}:where(.wpwl-control-iframe){display:flex;align-items:center;gap:8px;padding:0;overflow:hidden;}:where(.wpwl-frame){display:block;flex:1;min-width:0;width:100%;height:46px;border:0;background:transparent;color-scheme:inherit;}:where(.wpwl-badge){display:flex;}:where(.wpwl-badge:empty){display:none;}:where(.wpwl-badge .wpwl-mark){margin-inline-end:11px;}:where(.wpwl-hint){display:flex;gap:6px;margin-top:6px;color:var(--wpwl-danger);font-size:14px;line-height:20px;}:where(.wpwl-hint .wpwl-icon){width:16px;height:16px;margin-top:2px;}:where(.wpwl-hint-text){min-width:0;overflow-wrap:anywhere;}:where(.wpwl-waiting .wpwl-label){background:linear-gradient(var(--wpwl-line),var(--wpwl-line)) 0 / 96px 12px no-repeat;}:where(.wpwl-waiting .wpwl-control,.wpwl-control-iframe.wpwl-loading){border-color:var(--wpwl-line);background:var(--wpwl-ground);}:where(.wpwl-waiting .wpwl-button-pay){opacity:.35;}:where(.wpwl-control-iframe.wpwl-loading .wpwl-frame){opacity:0;}:where(.wpwl-check,.wpwl-choice,.wpwl-method){display:flex;align-items:center;gap:10px;min-height:44px;cursor:pointer;}:where(.wpwl-check){font-size:15px;line-height:22px;}:where(.wpwl-check input,.wpwl-choice input,.wpwl-method-radio){flex:none;width:20px;height:20px;margin:0;accent-color:var(--wpwl-accent);}:where(.wpwl-check input,.wpwl-choice input,.wpwl-method-radio):focus-visible{outline:2px solid var(--wpwl-accent);outline-offset:2px;}:where(.wpwl-more){display:contents;}:where(.wpwl-billing,.wpwl-choices){display:grid;gap:16px;min-width:0;margin:0;padding:0;border:0;}:where(.wpwl-legend){margin:4px 0 12px;padding:0;font-weight:600;}:where(.wpwl-choices){grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:8px;}:where(.wpwl-choices-tall){grid-template-columns:1fr;}:where(.wpwl-choices legend){float:left;grid-column:1 / -1;margin-bottom:0;}:where(.wpwl-choice){padding:6px 12px;border:1px solid var(--wpwl-line);border-radius:var(--wpwl-radius);font-size:15px;line-height:20px;}:where(.wpwl-choice:has(:checked)){border-color:var(--wpwl-accent);box-shadow:inset 0 0 0 1px var(--wpwl-accent);}:where(.wpwl-mandate){margin:0;color:var(--wpwl-soft);font-size:13px;line-height:20px;}:where(.wpwl-methods){gap:0;}:where(.wpwl-methods>.wpwl-container){border-radius:0;padding:0 20px;}:where(.wpwl-methods>.wpwl-container + .wpwl-container){border-top:0;}:where(.wpwl-methods>.wpwl-container:first-child){border-start-start-radius:calc(var(--wpwl-radius) + 6px);border-start-end-radius:calc(var(--wpwl-radius) + 6px);}:where(.wpwl-methods>.wpwl-container:last-child){border-end-start-radius:calc(var(--wpwl-radius) + 6px);border-end-end-radius:calc(var(--wpwl-radius) + 6px);}:where(.wpwl-methods .wpwl-form){padding:4px 0 20px;}:where(.wpwl-methods .wpwl-form-registrations){gap:8px;}:where(.wpwl-methods .wpwl-marks){display:none;}:where(.wpwl-method){min-height:60px;padding:8px 0;gap:12px;}:where(.wpwl-method-words){flex:1;min-width:0;font-weight:550;overflow-wrap:anywhere;}:where(.wpwl-method-words small){display:block;color:var(--wpwl-soft);font-size:14px;font-weight:400;line-height:20px;}:where(.wpwl-method-words .wpwl-expired){color:var(--wpwl-danger);}:where(.wpwl-method-marks){display:flex;flex-wrap:wrap;justify-content:end;gap:4px;max-width:45%;}:where(.wpwl-remove){display:flex;flex-wrap:wrap;align-items:center;gap:8px;min-height:44px;font-size:14px;}:where(.wpwl-remove span){flex:1 1 100%;}:where(.wpwl-button){display:inline-flex;align-items:center;justify-content:center;gap:8px;min-height:44px;margin:0;padding:8px 16px;border:1px solid transparent;border-radius:var(--wpwl-radius);background:none;color:inherit;font:600 16px/24px var(--wpwl-font);font-variant-numeric:tabular-nums;text-align:center;text-decoration:none;cursor:pointer;overflow-wrap:anywhere;transition:background-color .12s,filter .12s;}:where(.wpwl-button,.wpwl-link,.wpwl-close):focus-visible{outline:3px solid var(--wpwl-accent);outline-offset:2px;}:where(.wpwl-button-pay){width:100%;min-height:52px;background:var(--wpwl-accent);color:var(--wpwl-on-accent);font-size:17px;}:where(.wpwl-button-pay:hover){filter:brightness(.9);}:where(.wpwl-dark .wpwl-button-pay:hover){filter:brightness(1.1);}:where(.wpwl-button-pay[aria-disabled=\"true\"]){cursor:progress;filter:none;}:where(.wpwl-button-small){padding:4px 14px;border-color:var(--wpwl-edge);background:var(--wpwl-paper);color:var(--wpwl-ink);font-size:14px;line-height:20px;}:where(.wpwl-button-plain){border-color:var(--wpwl-edge);}:where(.wpwl-danger){border-color:var(--wpwl-danger);color:var(--wpwl-danger);}:where(.wpwl-link){min-height:44px;min-width:44px;padding:0 4px;margin-inline-start:-4px;border:0;border-radius:4px;background:none;color:var(--wpwl-soft);font:400 14px/20px var(--wpwl-font);text-decoration:underline;text-underline-offset:3px;cursor:pointer;}:where(.wpwl-wallet){background:#101828;color:#fff;}:where(.wpwl-dark .wpwl-wallet){background:#fff;color:#101828;}:where(.wpwl-wallet:hover){filter:none;opacity:.9;}:where(.wpwl-wallet[data-color=\"Gold\"]){background:#ffc439;color:#111;}:where(.wpwl-wallet[data-color=\"LightGray\"],.wpwl-wallet[data-color=\"white\"]){background:#eef0f3;color:#111;border-color:#98a2b3;}:where(.wpwl-wallet[data-color=\"DarkGray\"]){background:#3a4150;color:#fff;}:where(.wpwl-spinner){display:none;flex:none;width:20px;height:20px;border:2.5px solid currentColor;border-inline-end-color:transparent;border-radius:50%;animation:wpwl-turn .8s linear infinite;}:where(.wpwl-spinning .wpwl-spinner){display:block;}:where(.wpwl-spinning .wpwl-icon){display:none;}@keyframes wpwl-turn{to{transform:rotate(1turn);}}:where(.wpwl-note,.wpwl-clock){display:flex;flex-wrap:wrap;align-items:flex-start;gap:4px 10px;margin-bottom:12px;padding:12px 14px;border-radius:var(--wpwl-radius);background:var(--wpwl-ground);font-size:15px;line-height:22px;}:where(.wpwl-note:focus){outline:none;}:where(.wpwl-note>div,.wpwl-clock>span){flex:1;min-width:180px;overflow-wrap:anywhere;}:where(.wpwl-note .wpwl-icon,.wpwl-clock .wpwl-icon){margin-top:1px;}:where(.wpwl-note-error){background:var(--wpwl-danger-ground);color:var(--wpwl-danger);}:where(.wpwl-note-done){color:var(--wpwl-accent);}:where(.wpwl-clock){align-items:center;background:var(--wpwl-warning-ground);color:var(--wpwl-warning);padding-block:6px;}:where(.wpwl-end){display:grid;justify-items:center;gap:8px;padding:32px 20px;border:1px solid var(--wpwl-line);border-radius:calc(var(--wpwl-radius) + 6px);background:var(--wpwl-paper);text-align:center;}:where(.wpwl-end:focus){outline:none;}:where(.wpwl-end>.wpwl-icon){width:36px;height:36px;color:var(--wpwl-accent);}:where(.wpwl-end-error>.wpwl-icon){color:var(--wpwl-warning);}:where(.wpwl-end strong){font-size:18px;font-weight:600;}:where(.wpwl-end p){margin:0;color:var(--wpwl-soft);}:where(.wpwl-banner){padding:12px 16px;background:#fff6e5;color:#7a3b06;font:500 15px/22px var(--wpwl-font);border-bottom:2px solid #f5b65b;}:where(.wpwl-sheet){width:min(420px,100vw - 24px);max-width:none;max-height:min(760px,100dvh - 24px);margin:auto;padding:0;border:0;border-radius:16px;background:var(--wpwl-paper);color:var(--wpwl-ink);overflow:hidden auto;box-shadow:0 24px 64px rgb(16 24 40 / .35);overscroll-behavior:contain;color-scheme:inherit;}:where(.wpwl-sheet-wide){width:min(520px,100vw - 24px);overflow:hidden;}:where(.wpwl-sheet)::backdrop{background:rgb(16 24 40 / .55);}:where(.wpwl-sheet-head){position:sticky;top:0;z-index:1;display:flex;align-items:center;gap:8px;padding:8px 8px 8px 20px;padding-inline:20px 8px;border-bottom:1px solid var(--wpwl-line);background:var(--wpwl-paper);}:where(.wpwl-sheet-title){flex:1;min-width:0;margin:0;padding:0;color:inherit;font:600 17px/24px var(--wpwl-font);overflow-wrap:anywhere;}:where(.wpwl-sheet-title:focus){outline:none;}:where(.wpwl-close){display:grid;place-items:center;flex:none;width:44px;height:44px;padding:0;border:0;border-radius:50%;background:none;color:var(--wpwl-soft);cursor:pointer;}:where(.wpwl-close:hover){background:var(--wpwl-ground);}:where(.wpwl-sheet-body){padding:20px;}:where(.wpwl-sheet-challenge .wpwl-sheet-body){padding:0;}:where(.wpwl-sheet-frame){display:block;width:100%;height:min(600px,100dvh - 100px);border:0;background:#fff;color-scheme:normal;}:where(.wpwl-stack){display:grid;gap:16px;margin:0;}:where(.wpwl-test){margin:0;padding:8px 12px;border-radius:var(--wpwl-radius);background:var(--wpwl-warning-ground);color:var(--wpwl-warning);font-size:14px;line-height:20px;}:where(.wpwl-merchant){font-weight:600;}:where(.wpwl-prices){display:grid;gap:6px;margin:0;}:where(.wpwl-price){display:flex;justify-content:space-between;gap:16px;color:var(--wpwl-soft);}:where(.wpwl-price dd){margin:0;white-space:nowrap;}:where(.wpwl-total){padding-top:8px;border-top:1px solid var(--wpwl-line);color:var(--wpwl-ink);font-weight:600;}@media (max-width:479px){:where(.wpwl-style-card .wpwl-container,.wpwl-style-logos .wpwl-container){padding:16px;}:where(.wpwl-methods>.wpwl-container){padding:0 16px;}:where(.wpwl-sheet){width:100vw;max-height:94dvh;margin:auto 0 0;border-radius:16px 16px 0 0;}:where(.wpwl-sheet-frame){height:calc(94dvh - 61px);}}@media (max-width:259px){:where(.wpwl-row){grid-template-columns:1fr;}}@media (prefers-reduced-motion:reduce){:where(.wpwl-widget *){transition:none;}:where(.wpwl-spinner){animation-duration:4s;}}@media (forced-colors:active){:where(.wpwl-button-pay){border-color:ButtonText;}:where(.wpwl-control.wpwl-focused){outline-color:Highlight;}}";
const script =
document.currentScript ||
Array.from(document.scripts).reverse().find((one) => /\/paymentWidgets[./]/.test(one.src)) ||
null;
const scriptUrl = new URL(script && script.src ? script.src : location.href, location.href);
const pageOptions = () => window.widgetOptions || window.wpwlOptions || {};
const complain = (text) => console.error(`[widget] ${text}`);
const warn = (text) => console.warn(`[widget] ${text}`);
function checkoutOf(options) {
const given =
scriptUrl.searchParams.get("checkoutId") || options.checkoutId || (options.checkout && options.checkout.id) || "";
const [id, kind] = String(given).split("/");
return { id, registration: kind === "registration" };
}
function baseOf(options) {
if (options.baseUrl === undefined) return scriptUrl.href.split(/v1\/paymentWidgets/)[0].split(/[?#]/)[0];
if (!/^https?:\/\/.*\/$/.test(options.baseUrl)) {
throw new Error(`widgetOptions.baseUrl must be an http(s) address that ends with a slash, not "${options.baseUrl}"`);
}
return options.baseUrl;
}
const A_FUNCTION = "function";
const A_TEXT = "string";
const A_FLAG = "boolean";
const AN_OBJECT = "object";
const A_LIST = "array";
const AN_AMOUNT = "amount";
const A_TEXT_FLAG = 'text "true" or "false"';
const STYLES = ["card", "logos", "none", "plain"];
const WALLET_OPTIONS = {
gatewayMerchantId: A_TEXT, merchantId: A_TEXT, merchantName: A_TEXT, currencyCode: A_TEXT,
prefetchPriceStatus: A_TEXT, amount: AN_AMOUNT, displayItems: A_LIST, onPaymentDataChanged: A_FUNCTION,
billingAddressRequired: A_FLAG, billingAddressParameters: { format: A_TEXT, phoneNumberRequired: A_FLAG },
onPaymentAuthorized: A_FUNCTION, countryCode: A_TEXT, buttonColor: A_TEXT,
};
const SHOP_OPTIONS = {
merchantId: A_TEXT, ledgerCurrency: A_TEXT, sandbox: A_TEXT_FLAG, checkoutLanguage: A_TEXT, productType: A_TEXT,
placement: A_TEXT, buttonColor: A_TEXT,
};
const OPTIONS = {
style: A_TEXT, locale: A_TEXT, labels: AN_OBJECT, errorMessages: AN_OBJECT, inlineFlow: A_LIST,
registrations: { requireCvv: A_FLAG, hideInitialPaymentForms: A_FLAG },
brandDetection: A_FLAG, maskCvv: A_FLAG, requireCvv: A_FLAG, billingAddress: AN_OBJECT,
onReady: A_FUNCTION, onBeforeSubmitCard: A_FUNCTION, onAfterSubmit: A_FUNCTION, onError: A_FUNCTION,
onChangeBrand: A_FUNCTION, createCheckout: A_FUNCTION, baseUrl: A_TEXT, checkoutId: A_TEXT,
checkout: { amount: AN_AMOUNT, id: A_TEXT }, customParameters: AN_OBJECT,
wallet1: WALLET_OPTIONS, wallet2: WALLET_OPTIONS, wallet3: WALLET_OPTIONS,
shopWallet: SHOP_OPTIONS, webWallet: SHOP_OPTIONS,
};
function distance(from, to) {
let row = Array.from({ length: to.length + 1 }, (_, at) => at);
for (let i = 1; i <= from.length; i++) {
const next = [i];
for (let j = 1; j <= to.length; j++) {
next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1));
}
row = next;
}
return row[to.length];
}
function nearest(word, known) {
const low = String(word).toLowerCase();
const [best] = known
.map((name) => [distance(low, name.toLowerCase()), name])
.sort((a, b) => a[0] - b[0]);
return best && best[0] <= Math.max(2, word.length / 3) ? ` Did you mean ${best[1]}?` : "";
}
const FITS = {
[AN_AMOUNT]: (value) => /^\d{1,10}(\.\d{2})?$/.test(String(value)),
[A_LIST]: Array.isArray,
[A_TEXT_FLAG]: (value) => value === "true" || value === "false",
};
function checkOptions(given, known, path) {
for (const [name, value] of Object.entries(given)) {
const wanted = known[name];
const full = `${path}.${name}`;
if (wanted === undefined) {
warn(`${full} is not an option.${nearest(name, Object.keys(known))}`);
} else if (typeof wanted === "object") {
if (value && typeof value === "object") checkOptions(value, wanted, full);
else warn(`${full} must be an object, not ${JSON.stringify(value)}.`);
} else if (!(FITS[wanted] ? FITS[wanted](value) : typeof value === wanted)) {
const allowed = wanted === AN_OBJECT && value === true && name === "billingAddress";
if (!allowed) warn(`${full} must be of type ${wanted}, not ${JSON.stringify(value)} (${typeof value}).`);
}
}
}
function styleOf(options) {
if (options.style === undefined || STYLES.includes(options.style)) return options.style || "card";
warn(`widgetOptions.style "${options.style}" is none of ${STYLES.join(", ")}.${nearest(options.style, STYLES)} Taking card.`);
return "card";
}
function callPage(name, ...values) {
const hook = pageOptions()[name];
if (typeof hook !== "function") return undefined;
try {
return hook(...values);
} catch (fault) {
complain(`widgetOptions.${name} threw: ${fault && fault.stack ? fault.stack : fault}`);
return undefined;
}
}
function h(tag, attributes, ...children) {
const node = document.createElement(tag);
for (const [name, value] of Object.entries(attributes || {})) {
if (value == null || value === false) continue;
if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
else node.setAttribute(name, value === true ? "" : value);
}
node.append(...children.flat().filter((child) => child != null && child !== false));
return node;
}
function svg(tag, attributes, ...children) {
const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
node.append(...children);
return node;
}
const icon = (path, classes) =>
svg("svg", { viewBox: "0 0 20 20", class: `wpwl-icon ${classes || ""}`, "aria-hidden": "true", focusable: "false" },
svg("path", { d: path }));
const ICONS = {
alert: "M10 1.7a8.3 8.3 0 1 0 0 16.6 8.3 8.3 0 0 0 0-16.6Zm-.9 4.1h1.8v5.4H9.1Zm0 7h1.8v1.7H9.1Z",
done: "M10 1.7a8.3 8.3 0 1 0 0 16.6 8.3 8.3 0 0 0 0-16.6Zm-1.3 12-3.4-3.4 1.3-1.3 2.1 2.1 4.7-4.7 1.3 1.3Z",
close: "m5.6 4.2 4.4 4.4 4.4-4.4 1.4 1.4-4.4 4.4 4.4 4.4-1.4 1.4-4.4-4.4-4.4 4.4-1.4-1.4L8.6 10 4.2 5.6Z",
lock: "M6 8V6a4 4 0 0 1 8 0v2h1v9H5V8Zm1.7 0h4.6V6a2.3 2.3 0 0 0-4.6 0Z",
};
let counter = 0;
const freshId = (name) => `wpwl-${name}-${++counter}`;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let sheetOfRules = null;
function addRules(on) {
if (sheetOfRules === null) {
sheetOfRules = new CSSStyleSheet();
sheetOfRules.replaceSync(RULES);
}
const others = Array.from(document.adoptedStyleSheets).filter((one) => one !== sheetOfRules);
document.adoptedStyleSheets = on ? [sheetOfRules, ...others] : others;
}
function isDarkBehind(node) {
const own = getComputedStyle(node).colorScheme;
const meta = document.querySelector('meta[name="color-scheme"]');
const schemes = own === "normal" ? (meta ? meta.content : "") : own;
if (/dark/.test(schemes)) return !/light/.test(schemes) || matchMedia("(prefers-color-scheme: dark)").matches;
for (let at = node; at; at = at.parentElement) {
const parts = getComputedStyle(at).backgroundColor.match(/[\d.]+/g) || [];
if (parts.length === 3 || Number(parts[3]) > 0.5) return 0.3 * parts[0] + 0.6 * parts[1] + 0.1 * parts[2] < 110;
}
return false;
}
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
const KIND_ICONS = {
card: "M2 4h16v12H2Zm1.6 1.6v1.6h12.8V5.6Zm0 4.2v4.6h12.8V9.8Z",
bank: "M10 2 2.5 6v1.6h15V6Zm-5.8 7v5h1.7V9Zm5 0v5h1.7V9Zm4.9 0v5h1.7V9ZM2.5 15.4V17h15v-1.6Z",
virtual: "M10 2.5a3.7 3.7 0 1 1 0 7.4 3.7 3.7 0 0 1 0-7.4ZM3 17c.3-3.6 3-5.6 7-5.6s6.7 2 7 5.6Z",
redirect: "M4 3.5h6v1.7H5.7v9.1h9.1V10h1.7v6H4Zm8 0h4.5V8h-1.7V6.4l-5.2 5.2-1.2-1.2 5.2-5.2H12Z",
wallet: "M3 4h12v2.4h2V16H3Zm1.7 4v6.3h10.6V8Zm7.5 2.2h2v2h-2Z",
};
function shape(text) {
const [kind, ...rest] = text.split(" ");
if (kind === "c") return svg("circle", { cx: rest[0], cy: rest[1], r: rest[2], fill: rest[3] });
if (kind === "r") return svg("rect", { x: rest[0], y: rest[1], width: rest[2], height: rest[3], fill: rest[4], rx: 1 });
if (kind === "p") return svg("path", { d: rest[0], fill: rest[1] });
const words = svg("text", {
x: rest[1], y: 12 + rest[0] * 0.36, "text-anchor": "middle", fill: rest[2], "font-size": rest[0],
"font-family": "Arial, Helvetica, sans-serif", "font-weight": 800, "font-style": rest[4] ? "italic" : "normal",
});
words.textContent = rest[3].replace(/\|/g, " ");
return words;
}
function mark(code, label, quiet) {
const known = MARKS[code];
const kind = /^WALLET|WALLET$/.test(code) ? "wallet" : /DEBIT|TRANSFER/.test(code) ? "bank" : "virtual";
if (!known && quiet) return icon(KIND_ICONS[kind], "wpwl-kind");
const names = quiet ? { "aria-hidden": "true" } : { role: "img", "aria-label": label };
const [ground, ...shapes] = known || ["#fff", `t ${Math.min(9, 52 / label.length)} 18 #344054 ${label.replace(/ /g, "|")}`];
return svg("svg", { viewBox: "0 0 36 24", class: `wpwl-mark wpwl-brand-${code}`, focusable: "false", ...names },
svg("rect", { x: 0.5, y: 0.5, width: 35, height: 23, rx: 3.5, fill: ground, stroke: "#98a2b3", "stroke-opacity": 0.5 }),
...shapes.map(shape));
}
const TO_ISO = { dk: "da", se: "sv", cz: "cs", gr: "el", cn: "zh", no: "nb" };
const FROM_ISO = { nn: "no", ...Object.fromEntries(Object.entries(TO_ISO).map(([ours, iso]) => [iso, ours])) };
function localeOf(options) {
const wanted = String(options.locale || document.documentElement.lang || navigator.language || "en").toLowerCase();
const language = wanted.split(/[-_/]/)[0];
return FROM_ISO[language] || language;
}
const isoOf = (locale) => TO_ISO[locale] || locale;
function speech(locale, dir, texts, options) {
const words = { ...texts, ...(options.labels || {}), ...(options.errorMessages || {}) };
const iso = isoOf(locale);
const tag = `${iso}-u-nu-latn`;
const t = (key, values) =>
String(words[key] === undefined ? key : words[key]).replace(/\{(\w+)\}/g, (all, name) =>
values && values[name] !== undefined ? values[name] : all);
const money = (amount, currency) => {
try {
const whole = new Intl.NumberFormat(tag, { style: "currency", currency });
return whole.format(Number(amount));
} catch {
return `${amount} ${currency}`;
}
};
const label = (brand) => {
const code = brand.code.replace(/_SEPA$/, "");
const own = words[`brand.${code}`] || (/^WALLET\d$/.test(code) && t("brand.WALLET", { n: code.slice(-1) }));
return own ? own + (code === brand.code ? "" : " (SEPA)") : brand.label || brand.code;
};
return { t, money, label, iso, tag, dir, locale };
}
const BIDI_OPEN = "\u2068";
const BIDI_CLOSE = "\u2069";
const isolated = (text) => `${BIDI_OPEN}${text}${BIDI_CLOSE}`;
class Lost extends Error {}
async function ask(url, init) {
let response;
try {
response = await fetch(url, { credentials: "omit", cache: "no-store", ...init });
} catch {
throw new Lost("network");
}
let body = null;
try {
body = await response.json();
} catch {
if (response.ok || response.status >= 500) throw new Lost("answer");
}
if (response.status >= 500) throw new Lost("server");
return { status: response.status, body: body || {} };
}
function gateway(base, checkout) {
const at = (path) => `${base}v1/checkouts/${encodeURIComponent(checkout.id)}${path}`;
const doing = checkout.registration ? "/registration" : "/payment";
return {
config: (brands, locale) =>
ask(`${at("/config")}?brands=${encodeURIComponent(brands.join(" "))}&locale=${encodeURIComponent(locale)}` +
(checkout.registration ? "&kind=registration" : "")),
state: async () => {
const { status, body } = await ask(at("/state"));
return { status, body: { ...body, result: null } };
},
path: `v1/checkouts/${encodeURIComponent(checkout.id)}${doing}`,
post: (fields) => ask(at(doing), { method: "POST", body: new URLSearchParams(fields) }),
forget: (id) => ask(at(`/registrations/${encodeURIComponent(id)}`), { method: "DELETE" }),
};
}
const textsWithout = (base, locale) => ask(`${base}v1/widget/texts/${locale}.json`, { cache: "default" });
function browserFacts() {
const small = Math.min(innerWidth, innerHeight) < 600;
return {
"customer.browser.language": (navigator.language || "en").slice(0, 8),
"customer.browser.screenHeight": String(screen.height),
"customer.browser.screenWidth": String(screen.width),
"customer.browser.screenColorDepth": String(screen.colorDepth),
"customer.browser.timezone": String(new Date().getTimezoneOffset()),
"customer.browser.javaEnabled": "false",
"customer.browser.challengeWindow": small ? "5" : "3",
};
}
const hostedFields = new Set();
addEventListener("message", (event) => {
for (const one of hostedFields) {
if (event.source === one.frame.contentWindow && event.origin === one.origin && event.data && event.data.tollhouse) {
one.hear(event.data);
}
}
});
function hostedField(base, checkoutId, field, group, on) {
const origin = new URL(base).origin;
const parent = self.origin;
const address = `${base}v1/widget/frame.html?checkout=${encodeURIComponent(checkoutId)}&parent=${encodeURIComponent(parent)}`;
const frame = h("iframe", {
src: `${address}#${field}.${group}`, class: "wpwl-frame", scrolling: "no", title: "\u00a0",
});
const waiting = new Map();
let asked = 0;
let ready = false;
let queue = [];
const send = (message) => {
if (!ready) queue.push(message);
else if (frame.contentWindow) frame.contentWindow.postMessage({ tollhouse: group, ...message }, origin);
};
const one = {
frame, origin, field,
state: { empty: true, valid: false, reason: "missing", codes: [] },
send,
post: (path, fields) =>
new Promise((resolve, reject) => {
waiting.set(++asked, (answer) =>
answer.lost ? reject(new Lost(answer.lost)) : resolve({ status: answer.status, body: answer.body || {} }));
send({ t: "post", n: asked, path, fields });
}),
hear: (message) => {
if (message.tollhouse !== group) return;
if (message.t === "hello") {
ready = true;
const held = queue;
queue = [];
held.forEach(send);
} else if (message.t === "answer") {
const then = waiting.get(message.n);
waiting.delete(message.n);
if (then) then(message);
} else if (message.t === "change") {
one.state = message;
}
if (on[message.t]) on[message.t](message);
},
remove: () => {
hostedFields.delete(one);
frame.remove();
},
};
hostedFields.add(one);
return one;
}
function lookOf(control) {
const style = getComputedStyle(control);
const quiet = getComputedStyle(control).getPropertyValue("--wpwl-soft").trim();
return {
color: style.color, fontFamily: style.fontFamily, fontSize: style.fontSize, fontWeight: style.fontWeight,
letterSpacing: style.letterSpacing, placeholder: quiet || style.color, scheme: style.colorScheme,
};
}
function group(view, name, control, { label, hint, optional }) {
const hintId = freshId(`${name}-hint`);
const labelId = freshId(`${name}-label`);
const words = h("span", { class: "wpwl-hint-text" });
const fault = h("div", { class: `wpwl-hint wpwl-hint-${name}Error`, id: hintId, hidden: true }, icon(ICONS.alert), words);
const isFrame = control.tagName === "DIV";
const controlId = freshId(name);
if (!isFrame) {
control.id = controlId;
control.setAttribute("aria-describedby", hintId);
}
const title = h(isFrame ? "div" : "label", { class: `wpwl-label wpwl-label-${name}`, id: labelId, for: isFrame ? null : controlId });
const rename = (text) => title.replaceChildren(text, ...(optional ? [h("span", { class: "wpwl-optional" }, optional)] : []));
rename(label);
const wrapper = h("div", { class: `wpwl-wrapper wpwl-wrapper-${name}` }, control);
const node = h("div", { class: `wpwl-group wpwl-group-${name}` }, title, wrapper, hint && h("div", { class: "wpwl-help" }, hint), fault);
return {
node, name, control, wrapper, rename,
fail: (text) => {
words.textContent = text || "";
fault.hidden = !text;
node.classList.toggle("wpwl-has-error", Boolean(text));
control.classList.toggle("wpwl-has-error", Boolean(text));
if (!isFrame) text ? control.setAttribute("aria-invalid", "true") : control.removeAttribute("aria-invalid");
},
focus: () => control.focus(),
};
}
const control = (name, attributes) =>
h("input", { class: `wpwl-control wpwl-control-${name}`, type: "text", autocapitalize: "off", spellcheck: "false", ...attributes });
function textField(view, name, { label, autocomplete, check, parameter, value, optional, inputmode, placeholder, dir, maxlength, tidy }) {
const input = control(name, { autocomplete, inputmode, placeholder, dir, maxlength, value });
const field = group(view, name, input, { label, optional });
const judge = () => (input.value.trim() === "" && optional ? "" : check(input.value.trim()));
input.addEventListener("input", (event) => {
if (tidy && !event.isComposing) tidy(input, event);
if (field.node.classList.contains("wpwl-has-error") && !judge()) field.fail("");
});
input.addEventListener("compositionend", (event) => tidy && tidy(input, event));
input.addEventListener("blur", () => input.value.trim() && !view.pressing && field.fail(view.t2(judge())));
return Object.assign(field, {
judge,
values: () => (input.value.trim() ? { [parameter]: input.value.trim() } : {}),
input,
});
}
function plainDigits(text) {
return text.normalize("NFKC").replace(/[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f]/g, (one) => String(one.charCodeAt(0) & 15 - (one >= "\u0966" ? 6 : 0)));
}
function tidyExpiry(input, event) {
const raw = plainDigits(input.value);
const deleting = event && /^delete/.test(event.inputType || "");
const long = raw.match(/^\s*(?:(\d{1,2})\s*[/.\- ]\s*(?:20)(\d{2})|(?:20)(\d{2})\s*[/.\-]\s*(\d{1,2}))\s*$/);
let digits = long ? (long[1] || long[4]).padStart(2, "0") + (long[2] || long[3]) : raw.replace(/\D/g, "");
if (!deleting && (/^[2-9]/.test(digits) || /^\d\s*[/.]/.test(raw.trim()))) digits = `0${digits}`;
if (digits.length === 6 && digits.slice(2, 4) === "20") digits = digits.slice(0, 2) + digits.slice(4);
digits = digits.slice(0, digits.slice(2, 4) === "20" ? 5 : 4);
const atEnd = input.selectionStart === input.value.length;
let shown = digits;
if (digits.length > 2 || (digits.length === 2 && !deleting)) shown = `${digits.slice(0, 2)} / ${digits.slice(2)}`;
if (deleting && raw.endsWith("/") && digits.length === 2) shown = digits.slice(0, 1);
if (shown === input.value) return;
const before = plainDigits(input.value.slice(0, input.selectionStart)).replace(/\D/g, "").length;
input.value = shown;
const place = atEnd ? shown.length : before > 2 ? before + 3 : before;
input.setSelectionRange(place, place);
}
function expiryOf(text) {
const [, month, year] = text.match(/^(\d\d) \/ (\d\d)$/) || [];
return month ? { month, year: `20${year}` } : null;
}
function checkExpiry(text) {
const given = expiryOf(text);
if (!given || given.month < "01" || given.month > "12") return "expiryError";
const now = new Date();
const ended = Number(given.year) * 12 + Number(given.month) <= now.getFullYear() * 12 + now.getMonth();
return ended ? "expiryPast" : Number(given.year) > now.getFullYear() + 30 ? "expiryError" : "";
}
const expiryField = (view) => {
const field = textField(view, "expiry", {
label: view.t("expiryDate"), autocomplete: "cc-exp", inputmode: "numeric", placeholder: view.t("expiryHint"),
dir: "ltr", maxlength: 9, check: checkExpiry, tidy: tidyExpiry,
});
field.values = () => {
const { month, year } = expiryOf(field.input.value);
return { "card.expiryMonth": month, "card.expiryYear": year };
};
return field;
};
const holderField = (view, value) =>
textField(view, "cardHolder", {
label: view.t("cardHolder"), autocomplete: "cc-name", parameter: "card.holder", optional: view.t("optional"), maxlength: 128, value,
check: (text) => (/\d{6}/.test(text) || text.length < 3 ? "cardHolderError" : ""),
});
const REGIONS =
"AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW";
function countryField(view, value) {
const names = new Intl.DisplayNames([view.words.iso, "en"], { type: "region" });
const order = new Intl.Collator(view.words.iso);
const all = REGIONS.split(" ").map((code) => [code, names.of(code)]).sort((a, b) => order.compare(a[1], b[1]));
const home = value || (navigator.language.match(/-([A-Z]{2})$/) || [])[1] || "";
const select = h("select", { class: "wpwl-control wpwl-control-country", autocomplete: "country" },
h("option", { value: "" }, "–"), all.map(([code, name]) => h("option", { value: code, selected: code === home }, name)));
const field = group(view, "country", select, { label: view.t("country") });
field.judge = () => (select.value ? "" : "fieldError");
field.values = () => ({ "billing.country": select.value });
select.addEventListener("change", () => field.fail(view.t2(field.judge())));
return field;
}
const AUTOCOMPLETE = {
street1: "address-line1", street2: "address-line2", city: "address-level2", postcode: "postal-code", state: "address-level1",
};
function billingFields(view, names) {
const known = pageOptions().billingAddress;
const values = known && typeof known === "object" ? known : {};
return names.map((name) =>
name === "country"
? countryField(view, values.country)
: textField(view, name, {
label: view.t(name), autocomplete: `billing ${AUTOCOMPLETE[name] || "off"}`, parameter: `billing.${name}`, maxlength: 100,
value: values[name], check: (text) => (text ? "" : "fieldError"),
}));
}
const billingSet = (view, fields) =>
fields.length > 0 &&
h("fieldset", { class: "wpwl-billing" }, h("legend", { class: "wpwl-legend" }, view.t("billingAddress")), fields.map((one) => one.node));
function shopperParameters() {
const given = pageOptions().customParameters || {};
const fields = {};
for (const [name, value] of Object.entries(given)) {
if (name.startsWith("SHOPPER_")) fields[`customParameters[${name}]`] = String(value);
else warn(`widgetOptions.customParameters.${name}: names sent from a page must start with SHOPPER_. Left out.`);
}
return fields;
}
function openSheet(view, { name, title, content, onClose, wide }) {
const heading = freshId("title");
const before = document.activeElement;
let open = true;
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
h("h2", { class: "wpwl-sheet-title", id: heading, tabindex: "-1" }, title),
h("button", { type: "button", class: "wpwl-close", "aria-label": view.t("close"), onclick: () => close() }, icon(ICONS.close))),
h("div", { class: "wpwl-sheet-body" }, content));
dialog.addEventListener("cancel", (event) => {
event.preventDefault();
close();
});
const sheet = { dialog, close, over: () => {}, get open() { return open; } };
view.root.append(dialog);
dialog.showModal();
dialog.querySelector(".wpwl-sheet-title").focus();
view.sheets.add(sheet);
sheet.over = () => view.sheets.delete(sheet);
return sheet;
}
function frameSheet(view, url, title) {
return new Promise((resolve) => {
const origin = new URL(view.base).origin;
const frame = h("iframe", { src: url, class: "wpwl-sheet-frame", title, allow: "payment" });
const sheet = openSheet(view, {
name: "challenge", title, wide: true, content: frame, onClose: () => end("closed"),
});
const heard = (event) => {
const said = event.source === frame.contentWindow && event.origin === origin && event.data;
if (said && said.source === "tollhouse" && said.event === "ended") end("done");
};
const asking = setInterval(async () => {
const state = await view.gateway.state().catch(() => null);
if (state && state.body.state && state.body.state !== "action") end("done");
}, 2500);
let over = false;
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
const DECLINES = [
["declinedCvv", /^(800\.100\.153|100\.100\.60)/],
["declinedExpired", /^(100\.100\.(2|30)|800\.100\.157)/],
["declinedFunds", /^800\.100\.(155|162|163|179|203)/],
["declinedThreeds", /^(100\.39|100\.380|000\.400\.(1\d[1-9]|2)|800\.400\.2)/],
["declinedBank", /^(800\.[17]00|800\.800\.[123]|300\.100)/],
["declinedCard", /^(100\.100|100\.2[01])/],
["declinedRisk", /^(100\.400|800\.[123]|800\.400\.1)/],
];
const declineKey = (code) => (DECLINES.find(([, family]) => family.test(code)) || ["declinedTechnical"])[0];
const SUCCESS = /^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[12]10|000\.400\.1?[012]0|000\.400\.100)/;
const COUNTDOWN_S = 120;
const SLOW_MS = 5000;
const NO_ADDRESS = /^\s*(javascript|data|file|vbscript|blob):/i;
function makeView(place, base, checkout, words, options) {
const root = h("div", { class: `wpwl-widget wpwl-style-${options.style}`, lang: words.iso, dir: words.dir });
const note = h("div", { class: "wpwl-notes" });
const live = h("div", { class: "wpwl-hidden", role: "alert" });
const body = h("div", { class: "wpwl-body" });
root.append(note, body, live);
place.after(root);
const view = {
root, body, base, checkout, words, options, place, parts: [], sheets: new Set(), frames: [], timers: [], busy: false, over: false,
t: words.t,
t2: (key) => (key ? words.t(key) : ""),
gateway: checkout.id ? gateway(base, checkout) : null,
later: (job, ms) => view.timers.push(setTimeout(job, ms)),
};
const pressing = (on) => (event) => (view.pressing = on && Boolean(event.target.closest("button")));
root.addEventListener("pointerdown", pressing(true));
root.addEventListener("click", pressing(false));
root.addEventListener("pointercancel", pressing(false));
view.announce = (text) => {
live.textContent = "";
view.later(() => (live.textContent = text), 50);
};
view.say = (kind, text, action, quiet) => {
const box = h("div", { class: `wpwl-note wpwl-note-${kind}`, tabindex: "-1" },
icon(kind === "done" ? ICONS.done : ICONS.alert), h("div", { class: "wpwl-note-words" }, text),
action && h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: action.run }, action.label));
note.replaceChildren(box);
view.announce(text);
if (!quiet) {
box.focus({ preventScroll: true });
box.scrollIntoView({ block: "nearest" });
}
};
view.unsay = () => note.replaceChildren();
view.end = (kind, title, text) => {
view.over = true;
view.sheets.forEach((sheet) => sheet.close("done"));
view.frames.forEach((frame) => frame.remove());
clock.hidden = true;
view.unsay();
body.replaceChildren(h("div", { class: `wpwl-end wpwl-end-${kind}`, tabindex: "-1" },
icon(kind === "done" ? ICONS.done : ICONS.alert), h("strong", {}, title), text && h("p", {}, text)));
body.firstChild.focus({ preventScroll: true });
view.announce(`${title} ${text || ""}`);
};
view.expire = () => {
view.end("error", view.t("expiredTitle"), view.t("expiredText"));
view.error("expired", "The checkout has expired.");
};
view.error = (name, message, more) => callPage("onError", { name, message, ...more });
view.setBusy = (part, busy) => {
view.busy = busy;
root.classList.toggle("wpwl-busy", busy);
root.querySelectorAll(".wpwl-button-pay").forEach((button) => {
button.setAttribute("aria-disabled", String(busy));
button.classList.toggle("wpwl-spinning", busy && Boolean(part) && part.node.contains(button));
});
clearTimeout(view.slow);
if (busy) {
view.unsay();
view.announce(view.t("processing"));
view.slow = setTimeout(() => view.busy && !view.sheets.size && view.say("info", view.t("slow"), null, true), SLOW_MS);
}
};
view.leave = (url) => {
if (NO_ADDRESS.test(url)) return complain(`Not going to ${url}`);
view.leaving = true;
location.assign(url);
};
const clockWords = h("span", {});
const clock = h("div", { class: "wpwl-clock", hidden: true, role: "timer" }, icon(ICONS.alert), clockWords,
h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: () => view.focusFirst() }, view.t("goOn")));
root.prepend(clock);
let deadline = 0;
const tell = () => {
if (view.over || !deadline) return;
const left = Math.max(0, Math.ceil((deadline - Date.now()) / 1000));
const shown = isolated(`${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`);
if (left <= COUNTDOWN_S) {
if (clock.hidden) view.announce(view.t("timeLeft", { time: shown }));
clock.hidden = false;
clockWords.textContent = view.t("timeLeft", { time: shown });
} else {
clock.hidden = true;
}
if (left === 0 && !view.busy) view.expire();
};
view.ticking = setInterval(tell, 1000);
view.setSecondsLeft = (seconds) => {
deadline = Date.now() + seconds * 1000;
tell();
};
view.focusFirst = () => {
const part = view.parts.find((one) => one.shown && one.shown()) || view.parts[0];
const empty = part && part.fields && part.fields.find((field) => field.judge && field.judge() !== "");
if (empty) empty.focus();
else if (part) part.node.querySelector("button")?.focus();
};
view.darken = () => root.classList.toggle("wpwl-dark", isDarkBehind(place.parentElement || document.body));
view.darken();
view.remove = () => {
view.over = true;
clearInterval(view.ticking);
clearTimeout(view.slow);
view.timers.forEach(clearTimeout);
view.sheets.forEach((sheet) => sheet.close("done"));
view.frames.forEach((frame) => frame.remove());
root.remove();
};
return view;
}
function payButton(view, text) {
return h("button", { type: "submit", class: "wpwl-button wpwl-button-pay" },
h("span", { class: "wpwl-spinner", "aria-hidden": "true" }), h("span", { class: "wpwl-button-text" }, text || payWords(view)));
}
function payWords(view) {
const { amount, currency } = view.config ? view.config.checkout : {};
if (view.checkout.registration) return view.t("save");
return amount ? view.t("pay", { amount: isolated(view.words.money(amount, currency)) }) : view.t("payNow");
}
async function submit(view, part) {
if (view.busy || view.over) return;
const faults = part.check();
if (faults.length) {
faults.forEach(([field, text]) => field.fail(text));
view.announce(faults.map(([, text]) => text).join(" "));
faults[0][0].focus();
return;
}
view.setBusy(part, true);
if (part.kind === "card" || part.kind === "saved") {
let go;
try {
go = await callPage("onBeforeSubmitCard", { brand: part.brand(), container: part.node.id });
} catch (fault) {
complain(`widgetOptions.onBeforeSubmitCard was rejected: ${fault}`);
go = false;
}
if (go === false) return view.setBusy(null, false);
}
if (part.opensWindow) part.popup = window.open("about:blank", freshId("window"), "popup,width=480,height=720");
const sending = part.send({ ...commonFields(view), ...shopperParameters() });
callPage("onAfterSubmit", { brand: part.brand() });
await follow(view, part, sending);
}
function commonFields(view) {
const action = view.place.getAttribute("action");
const fields = browserFacts();
if (action) fields.shopperResultUrl = new URL(action, document.baseURI).href;
return fields;
}
async function follow(view, part, sending) {
let answer;
try {
answer = await sending;
} catch (fault) {
if (!(fault instanceof Lost)) throw fault;
answer = await whatHappened(view);
if (!answer) return back(view, part, "error", view.t("offline"), "network");
}
if (view.over) return;
const { status, body } = answer;
const code = (body.result && body.result.code) || "";
if (status === 404) return closeWindow(part), view.expire();
if (body.redirect) return redirected(view, part, body.redirect);
if (body.state === "processing") return follow(view, part, settled(view));
if (body.state === "expired") return closeWindow(part), view.expire();
if (body.returnTo && body.state !== "open") return closeWindow(part), view.leave(body.returnTo);
const wrong = body.parameterErrors || (body.result && body.result.parameterErrors) || [];
if (wrong.length && part.refuse && part.refuse(wrong)) return view.setBusy(null, false);
if (body.state === "done" && ownReturn(view)) return closeWindow(part), view.leave(ownReturn(view));
if (body.state === "done" && SUCCESS.test(code)) return view.end("done", view.t(view.checkout.registration ? "saved" : "paid"));
if (body.state === "open" && !code) return back(view, part, "error", view.t("stopped"), "stopped");
wrong.forEach((one) => complain(`${one.name}: ${one.message}`));
if (part.clear) part.clear();
back(view, part, "error", view.t(declineKey(code)), "declined", { code });
}
function ownReturn(view) {
const action = view.place.getAttribute("action");
if (!action) return "";
const url = new URL(action, document.baseURI);
url.searchParams.set("id", view.checkout.id);
url.searchParams.set("resourcePath", `/${view.gateway.path}`);
return url.href;
}
const closeWindow = (part) => part.popup && part.popup.close();
function back(view, part, kind, text, name, more) {
closeWindow(part);
if (part.clearCvv) part.clearCvv();
view.setBusy(null, false);
view.say(kind, text);
view.error(name, text, more);
}
async function whatHappened(view) {
for (let tries = 0; !view.over; tries++) {
const state = await view.gateway.state().catch(() => null);
if (state && state.body.state === "open") return null;
if (state && (state.status === 404 || state.body.state)) return state;
let checkNow;
const asked = new Promise((resolve) => (checkNow = resolve));
view.say("info", view.t("unsure"), { label: view.t("checkAgain"), run: checkNow }, tries > 0);
addEventListener("online", checkNow, { once: true });
await Promise.race([asked, wait(Math.min(1000 * 2 ** tries, 8000))]);
removeEventListener("online", checkNow);
}
return null;
}
async function settled(view) {
for (let tries = 0; !view.over; tries++) {
await wait(Math.min(500 + 250 * tries, 3000));
const state = await view.gateway.state().catch(() => null);
if (state && state.body.state !== "processing") return state;
}
return { status: 0, body: {} };
}
const withParameters = (redirect) => {
const url = new URL(redirect.url);
(redirect.parameters || []).forEach(({ name, value }) => url.searchParams.append(name, value));
return url.href;
};
function go(redirect, target) {
if (NO_ADDRESS.test(redirect.url)) return complain(`Not going to ${redirect.url}`);
if (redirect.method !== "POST") {
if (target) target.location.replace(withParameters(redirect));
else location.assign(withParameters(redirect));
return;
}
const form = h("form", { action: redirect.url, method: "post", hidden: true, target: target ? target.name : null },
(redirect.parameters || []).map(({ name, value }) => h("input", { type: "hidden", name, value })));
document.body.append(form);
form.submit();
form.remove();
}
async function redirected(view, part, redirect) {
const ours = new URL(redirect.url).origin === new URL(view.base).origin;
if (ours && redirect.method !== "POST" && (part.kind === "card" || part.kind === "saved" || part.kind === "wallet")) {
const url = withParameters({ ...redirect, parameters: [...(redirect.parameters || []), { name: "embedded", value: "true" }, { name: "locale", value: view.words.locale }] });
const how = await frameSheet(view, url, view.t("challenge"));
if (view.over) return;
return ended(view, part, how);
}
if (!part.popup || part.popup.closed) {
part.popup = null;
view.leaving = true;
return go(redirect, null);
}
go(redirect, part.popup);
ended(view, part, await windowClosed(view, part.popup));
}
async function windowClosed(view, popup) {
const sheet = openSheet(view, {
name: "window", title: view.t("windowOpen"), onClose: () => popup.close(),
content: h("div", { class: "wpwl-stack" },
h("button", { type: "button", class: "wpwl-button wpwl-button-pay", onclick: () => popup.focus() }, view.t("windowShow")),
h("button", { type: "button", class: "wpwl-button wpwl-button-plain", onclick: () => popup.close() }, view.t("cancel"))),
});
let how = "closed";
for (let looks = 1; !popup.closed && !view.over; looks++) {
await wait(300);
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
async function ended(view, part, how) {
part.popup = null;
let state = await view.gateway.state().catch(() => null);
for (let tries = 0; how === "done" && tries < 8 && (!state || state.body.state === "action"); tries++) {
await wait(400);
state = await view.gateway.state().catch(() => null);
}
if (!state) state = (await whatHappened(view)) || { status: 200, body: { state: "open" } };
if (state.body.state === "action") return back(view, part, "info", view.t("stopped"), "closed");
if (state.body.state === "open") {
return back(view, part, how === "done" && part.kind !== "redirect" ? "error" : "info",
view.t(how === "done" && part.kind !== "redirect" ? "declinedThreeds" : "stopped"), how === "done" ? "declined" : "closed");
}
return follow(view, part, Promise.resolve(state));
}
function frameBox(view, name, field, group, on) {
const box = h("div", { class: `wpwl-control wpwl-control-${name} wpwl-control-iframe wpwl-loading` });
const one = hostedField(view.base, view.checkout.id, field, group, {
...on,
hello: () => {
box.classList.remove("wpwl-loading");
if (on.hello) on.hello();
},
focus: () => box.classList.add("wpwl-focused"),
blur: () => {
box.classList.remove("wpwl-focused");
if (on.blur) on.blur();
},
});
box.append(one.frame);
view.frames.push(one);
return { box, one };
}
const secretName = () => Math.random().toString(36).slice(2);
function framedField(view, field, one, texts) {
const fail = field.fail;
return Object.assign(field, {
frame: one,
judge: () => (one.state.valid ? "" : texts(one.state.reason, one.state)),
fail: (text) => {
fail(text);
one.send({ t: "describe", error: text || "" });
},
focus: () => {
one.frame.focus();
one.send({ t: "focus" });
},
dress: (title, placeholder, more) => {
one.frame.title = title;
one.send({
t: "init", label: title, placeholder, lang: view.words.iso, rtl: view.words.dir === "rtl", style: lookOf(field.control), ...more,
});
},
});
}
function cvvField(view, groupName, on) {
const { box, one } = frameBox(view, "cvv", "cvv", groupName, on);
const field = group(view, "cvv", box, { label: view.t("cvv") });
let digits = 3;
framedField(view, field, one, (reason) => view.t("cvvError", { n: digits }));
field.want = (lengths, required) => {
digits = Math.max(3, ...lengths);
one.send({ t: "want", lengths, required, placeholder: "•".repeat(digits) });
field.node.title = view.t(digits === 4 ? "cvvHelp4" : "cvvHelp");
};
return field;
}
const cvvWanted = (view) => {
const { requireCvv } = pageOptions();
return view.config.cvvRequired || requireCvv !== false;
};
function refuseFields(view, fields, wrong) {
const names = {
"card.number": "cardNumber", "card.cvv": "cvv", "card.holder": "cardHolder", "card.expiryMonth": "expiry", "card.expiryYear": "expiry",
"bankAccount.iban": "iban", "bankAccount.holder": "accountHolder", "virtualAccount.accountId": "accountId",
};
const texts = { cardNumber: "cardNumberError", expiry: "expiryError", cardHolder: "cardHolderError", iban: "ibanError", accountHolder: "accountHolderError", accountId: "accountIdError" };
let first = null;
for (const { name } of wrong) {
const known = names[name] || name.replace(/^billing\./, "");
const field = fields.find((one) => one.name === known);
if (!field) return false;
field.fail(known === "cvv" ? field.frame ? view.t("cvvError", { n: 3 }) : "" : view.t(texts[known] || "fieldError"));
first = first || field;
}
if (first) first.focus();
return Boolean(first);
}
function cardPart(view, codes) {
const groupName = secretName();
let chosen = null; // what the shopper picked of a co-badged card, or from the list
let detected = [];
let brands = [];
const part = { kind: "card", fields: [], shown: () => !part.body.hidden };
const marks = h("div", { class: "wpwl-marks" });
const choice = h("div", { class: "wpwl-group wpwl-group-brand wpwl-cobadge", hidden: true });
const number = frameBox(view, "cardNumber", "number", groupName, {
change: (state) => {
setDetected(state.codes);
if (state.valid || state.empty) part.number.fail("");
},
blur: () => !part.number.frame.state.empty && !view.pressing && part.number.fail(part.number.judge()),
enter: () => part.form.requestSubmit(),
fill: (message) => {
if (message.expiry && !part.expiry.input.value) {
part.expiry.input.value = message.expiry;
tidyExpiry(part.expiry.input, null);
}
if (message.holder && !part.holder.input.value) part.holder.input.value = message.holder;
},
});
const badge = h("div", { class: "wpwl-badge", "aria-hidden": "true" });
number.box.append(badge);
part.number = framedField(view, group(view, "cardNumber", number.box, { label: view.t("cardNumber") }), number.one, (reason) =>
view.t({ missing: "cardNumberMissing", brand: "cardNumberBrand" }[reason] || "cardNumberError"));
part.expiry = expiryField(view);
part.cvv = cvvField(view, groupName, {
change: (state) => (state.valid || state.empty) && part.cvv.fail(""),
enter: () => part.form.requestSubmit(),
});
part.holder = holderField(view);
const more = h("div", { class: "wpwl-more" });
part.button = payButton(view, " ");
part.form = h("form", { class: "wpwl-form wpwl-form-card", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
marks, part.number.node, choice, h("div", { class: "wpwl-row" }, part.expiry.node, part.cvv.node), part.holder.node, more,
h("div", { class: "wpwl-group wpwl-group-submit" }, part.button));
part.body = part.form;
part.node = part.form;
const current = () => chosen || detected.find((code) => codes.includes(code)) || (brands.length === 1 ? brands[0].code : null);
const factsOf = (code) => brands.find((one) => one.code === code);
let told = null;
function brandChanged() {
const code = current();
const facts = factsOf(code);
const known = detected.length > 0 || chosen;
badge.replaceChildren(...(known && facts ? [mark(code, view.words.label(facts))] : []));
marks.querySelectorAll(".wpwl-mark").forEach((one) => one.classList.toggle("wpwl-dim", Boolean(known) && !one.classList.contains(`wpwl-brand-${code}`)));
part.cvv.want(facts && known ? facts.cvv : [3, 4], cvvWanted(view) && !(facts && known && facts.cvvOptional));
if (code !== told && known) callPage("onChangeBrand", (told = code));
}
function setDetected(found) {
const same = found.join() === detected.join();
detected = found;
if (same) return;
if (pageOptions().brandDetection !== false) {
chosen = null;
offerChoice(found);
}
brandChanged();
}
function offerChoice(found) {
const group = freshId("brand");
choice.hidden = found.length < 2;
choice.replaceChildren(...(found.length < 2 ? [] : [
h("fieldset", { class: "wpwl-choices" }, h("legend", { class: "wpwl-label" }, view.t("coBadge")),
found.map((code, at) => h("label", { class: "wpwl-choice" },
h("input", { type: "radio", name: group, value: code, checked: at === 0, onchange: () => { chosen = code; number.one.send({ t: "only", code }); brandChanged(); } }),
mark(code, "", true), view.words.label(factsOf(code)))))]));
}
part.configure = (config, own) => {
brands = own;
const { t } = view;
const options = pageOptions();
part.number.rename(t("cardNumber"));
part.number.dress(t("cardNumber"), "1234 1234 1234 1234", { brands: own.map(({ code, ranges, detect, lengths, luhn, beside, afterScheme }) => ({ code, ranges, detect, lengths, luhn, beside, afterScheme })) });
part.expiry.rename(t("expiryDate"));
part.expiry.input.placeholder = t("expiryHint");
part.cvv.rename(t("cvv"));
part.cvv.dress(t("cvv"), "•••", { mask: options.maskCvv === true });
part.holder.rename(t("cardHolder"));
part.holder.node.querySelector(".wpwl-label").replaceChildren(t("cardHolder"), h("span", { class: "wpwl-optional" }, t("optional")));
marks.replaceChildren(...own.map((one) => mark(one.code, view.words.label(one))));
if (options.brandDetection === false && own.length > 1) {
const select = h("select", { class: "wpwl-control wpwl-control-brand", onchange: () => { chosen = select.value; number.one.send({ t: "only", code: chosen }); brandChanged(); } },
own.map((one) => h("option", { value: one.code }, view.words.label(one))));
chosen = own[0].code;
part.form.insertBefore(group(view, "brand", select, { label: t("brand") }).node, part.number.node);
number.one.send({ t: "only", code: chosen });
}
const billing = billingFields(view, config.billing || []);
const keep = h("input", { type: "checkbox", class: "wpwl-control wpwl-control-createRegistration" });
more.replaceChildren(...[billingSet(view, billing),
config.createRegistration && !view.checkout.registration && h("label", { class: "wpwl-check wpwl-group-createRegistration" }, keep, t("saveCard"))].filter(Boolean));
part.fields = [part.number, part.expiry, part.cvv, part.holder, ...billing];
part.billing = billing;
part.keep = keep;
part.button.querySelector(".wpwl-button-text").textContent = payWords(view);
part.cvv.node.hidden = !config.cvvRequired && options.requireCvv === false;
brandChanged();
};
part.press = () => part.form.requestSubmit();
part.remove = () => {
[part.number, part.cvv].forEach((field) => field.frame.remove());
part.container.remove();
};
part.look = () => [part.number, part.cvv].forEach((field) => field.frame.send({ t: "style", style: lookOf(field.control) }));
part.brand = () => current() || "";
part.check = () => part.fields
.filter((field) => !field.node.hidden)
.map((field) => [field, field.frame ? field.judge() : view.t2(field.judge())])
.filter(([field, text]) => { if (!text) field.fail(""); return text; });
part.send = (common) => {
const fields = { ...common, ...part.expiry.values(), ...part.holder.values() };
part.billing.forEach((field) => Object.assign(fields, field.values()));
if (current()) fields.paymentBrand = current();
if (part.keep.checked) fields.createRegistration = "true";
return number.one.post(view.gateway.path, fields);
};
part.clearCvv = () => part.cvv.frame.send({ t: "clear" });
part.refuse = (wrong) => refuseFields(view, part.fields, wrong);
return part;
}
function savedPart(view, saved) {
const wishes = pageOptions().registrations || {};
const wantsCvv = saved.cvvRequired || wishes.requireCvv === true;
const part = { kind: "saved", fields: [], saved, shown: () => !part.form.hidden };
const { t } = view;
const groupName = secretName();
if (wantsCvv && !saved.expired) {
part.cvv = cvvField(view, groupName, {
change: (state) => (state.valid || state.empty) && part.cvv.fail(""),
enter: () => part.form.requestSubmit(),
});
part.fields = [part.cvv];
}
part.title = t("savedCard", { brand: saved.label || saved.brand, last4: isolated(saved.last4) });
const until = isolated(`${saved.expiryMonth} / ${String(saved.expiryYear).slice(-2)}`);
part.detail = saved.expired ? t("expired") : t("expires", { date: until });
part.badges = [mark(saved.brand, "", true)];
const remove = h("div", { class: "wpwl-remove" });
const offer = () => remove.replaceChildren(
h("button", { type: "button", class: "wpwl-link", "aria-label": `${t("remove")}: ${part.title}`, onclick: sure }, t("remove")));
const sure = () => {
remove.replaceChildren(h("span", {}, t("removeAsk", { card: part.title })),
h("button", { type: "button", class: "wpwl-button wpwl-button-small wpwl-danger", onclick: forget }, t("remove")),
h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: () => { offer(); remove.firstChild.focus(); } }, t("keep")));
remove.querySelectorAll("button")[1].focus();
};
const forget = async () => {
const answer = await view.gateway.forget(saved.id).catch(() => null);
if (!answer || answer.status >= 400) return view.say("error", t("tryAgainLater"));
view.dropPart(part);
};
offer();
part.button = payButton(view);
part.form = h("form", { class: "wpwl-form wpwl-form-registrations", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
part.cvv && h("div", { class: "wpwl-row" }, part.cvv.node),
!saved.expired && h("div", { class: "wpwl-group wpwl-group-submit" }, part.button),
saved.removable !== false && remove);
part.node = part.form;
part.press = () => part.form.requestSubmit();
part.configure = () => {
if (!part.cvv) return;
const facts = view.config.brands.find((one) => one.code === saved.brand);
part.cvv.dress(t("cvv"), "•••", { mask: pageOptions().maskCvv === true, alone: true });
part.cvv.want(facts ? facts.cvv : saved.brand === "AMEX" ? [4] : [3], true);
};
part.look = () => part.cvv && part.cvv.frame.send({ t: "style", style: lookOf(part.cvv.control) });
part.brand = () => saved.brand;
part.check = () => part.fields.map((field) => [field, field.judge()]).filter(([field, text]) => { if (!text) field.fail(""); return text; });
part.send = (common) => {
const fields = { ...common, registrationId: saved.id };
return part.cvv ? part.cvv.frame.post(view.gateway.path, fields) : view.gateway.post(fields);
};
part.clearCvv = () => part.cvv && part.cvv.frame.send({ t: "clear" });
return part;
}
const IBAN_LENGTHS =
"AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29CH21CR22CY28CZ24DE22DK18DO28EE20ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IS26IT27JO30KW30KZ20LB28LC32LI21LT20LU20LV21MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SE24SI19SK24SM27TN24TR26UA29VA22VG24XK20";
const BANK_CODE = { AT: 5, BE: 3, CH: 5, CY: 3, DE: 8, EE: 2, FI: 3, FR: 5, HR: 7, HU: 7, LI: 5, LT: 5, LU: 3, MC: 5, PL: 8, SI: 5 };
function ibanValid(iban) {
const wanted = IBAN_LENGTHS.match(new RegExp(`${iban.slice(0, 2)}(\\d\\d)`));
if (!/^[A-Z]{2}\d{2}[A-Z0-9]{11,27}$/.test(iban) || (wanted && Number(wanted[1]) !== iban.length)) return false;
const digits = (iban.slice(4) + iban.slice(0, 4)).replace(/[A-Z]/g, (one) => one.charCodeAt(0) - 55);
let rest = 0;
for (const digit of digits) rest = (rest * 10 + Number(digit)) % 97;
return rest === 1;
}
const packed = (text) => plainDigits(text).toUpperCase().replace(/[^A-Z0-9]/g, "");
function tidyIban(input) {
const before = packed(input.value.slice(0, input.selectionStart)).length;
const shown = packed(input.value).slice(0, 34).replace(/(.{4})(?=.)/g, "$1 ");
if (shown === input.value) return;
input.value = shown;
const place = before + Math.floor(Math.max(0, before - 1) / 4);
input.setSelectionRange(place, place);
}
function simplePart(view, kind, brand, fields, extra, buttonText) {
const names = { bank: "directDebit", virtual: "virtualAccount", redirect: "onlineTransfer" };
const part = {
kind, fields, shown: () => !part.form.hidden,
title: view.words.label(brand), badges: [mark(brand.code, "", true)],
brand: () => brand.code, configure: () => {},
check: () => fields.map((field) => [field, view.t2(field.judge())]).filter(([field, text]) => { if (!text) field.fail(""); return text; }),
refuse: (wrong) => refuseFields(view, fields, wrong),
send: (common) => {
const values = Object.assign({}, ...fields.map((field) => field.values()));
return view.gateway.post({ ...common, paymentBrand: brand.code, ...values });
},
};
part.button = payButton(view, buttonText);
part.form = h("form", { class: `wpwl-form wpwl-form-${names[kind]} wpwl-form-${brand.code}`, novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
fields.map((field) => field.node), extra, h("div", { class: "wpwl-group wpwl-group-submit" }, part.button));
part.node = part.form;
part.press = () => part.form.requestSubmit();
return part;
}
function bankPart(view, brand) {
const { t } = view;
const holder = textField(view, "accountHolder", {
label: t("accountHolder"), autocomplete: "name", parameter: "bankAccount.holder", maxlength: 128,
check: (text) => (text.length >= 4 ? "" : "accountHolderError"),
});
const iban = textField(view, "iban", {
label: t("iban"), autocomplete: "off", placeholder: "DE00 0000 0000 0000 0000 00", dir: "ltr", maxlength: 42, tidy: tidyIban,
check: (text) => (ibanValid(packed(text)) ? "" : "ibanError"),
});
iban.values = () => {
const whole = packed(iban.input.value);
const country = whole.slice(0, 2);
const start = country === "IT" || country === "SM" ? 5 : 4;
return {
"bankAccount.iban": whole, "bankAccount.country": country,
"bankAccount.bankCode": whole.slice(start, start + (BANK_CODE[country] || (start === 5 ? 5 : 4))),
};
};
const { amount, currency } = view.config.checkout;
const mandate = /DEBIT/.test(brand.code) && h("p", { class: "wpwl-mandate" },
t("mandate", { amount: amount ? isolated(view.words.money(amount, currency)) : "" }));
return simplePart(view, "bank", brand, [holder, iban], mandate);
}
function virtualPart(view, brand) {
const account = textField(view, "accountId", {
label: view.t("accountId"), autocomplete: "username", parameter: "virtualAccount.accountId", maxlength: 100, dir: "ltr",
check: (text) => (text ? "" : "accountIdError"),
});
return simplePart(view, "virtual", brand, [account]);
}
function redirectPart(view, brand) {
const name = view.words.label(brand);
const part = simplePart(view, "redirect", brand, [], null, view.t("continueTo", { brand: name }));
part.opensWindow = /WALLET/.test(brand.code) || (pageOptions().inlineFlow || []).includes(brand.code);
return part;
}
const SHEET_OF = { WALLET1: "wallet1", WALLET2: "wallet2", WALLET3: "wallet3", SHOPWALLET: "shopWallet", WEBWALLET: "webWallet" };
const FAST_BRANDS = Object.keys(SHEET_OF);
function walletOptions(code) {
const options = pageOptions();
return options[SHEET_OF[code]] || options[code] || {};
}
function walletButton(view, brand, onclick) {
const wishes = walletOptions(brand.code);
const button = h("button", {
type: "button", class: `wpwl-button wpwl-button-brand wpwl-button-pay wpwl-wallet wpwl-wallet-${brand.code}`,
"data-color": wishes.buttonColor, "data-placement": wishes.placement, onclick,
}, h("span", { class: "wpwl-spinner", "aria-hidden": "true" }), icon(KIND_ICONS.wallet), h("span", { class: "wpwl-button-text" }, view.t("payWith", { brand: view.words.label(brand) })));
return button;
}
function walletPart(view, brand) {
const part = {
kind: brand.kind === "redirect" ? "redirect" : "wallet", opensWindow: brand.kind === "redirect", fields: [], title: view.words.label(brand), badges: [mark(brand.code, "", true)], configure: () => {},
shown: () => !part.form.hidden, brand: () => brand.code, check: () => [],
};
part.button = walletButton(view, brand, () => pressWallet(view, part, brand));
part.form = h("div", { class: `wpwl-form wpwl-form-${SHEET_OF[brand.code]} wpwl-form-${brand.code}` }, part.button);
part.press = () => part.button.click();
part.node = part.form;
return part;
}
async function pressWallet(view, part, brand) {
if (view.busy || view.over) return;
const wallet = (view.config.wallets || {})[brand.code] || {};
view.setBusy(part, true);
let fields;
try {
fields = wallet.method ? await browserSheet(view, brand, wallet) : await walletSheet(view, brand, wallet);
} catch (fault) {
complain(`${brand.code}: ${fault}`);
return back(view, part, "error", view.t("tryAgainLater"), "wallet");
}
if (!fields) {
view.setBusy(null, false);
return view.say("info", view.t("stopped"), null, true);
}
if (fields.popup) part.popup = fields.popup;
delete fields.popup;
const sending = view.gateway.post({ ...commonFields(view), ...shopperParameters(), paymentBrand: brand.code, ...fields });
callPage("onAfterSubmit", { brand: brand.code });
await follow(view, part, sending);
}
async function browserSheet(view, brand, wallet) {
const { amount, currency } = view.config.checkout;
const total = { label: walletOptions(brand.code).merchantName || view.t("total"), amount: { currency, value: amount } };
const request = new PaymentRequest([{ supportedMethods: wallet.method, data: wallet.data || {} }], { total });
const answer = await request.show().catch((fault) => {
if (fault.name === "AbortError") return null;
throw new Error(`${fault.message} (does the page's Content-Security-Policy name ${new URL(wallet.method).host}?)`);
});
if (!answer) return null;
await answer.complete("success");
const token = (wallet.token || "token").split(".").reduce((at, name) => (at || {})[name], answer.details);
return { [`${SHEET_OF[brand.code]}.paymentToken`]: typeof token === "string" ? token : JSON.stringify(token) };
}
const priceRow = (view, label, price, currency, classes) =>
h("div", { class: `wpwl-price ${classes || ""}` }, h("dt", {}, label), h("dd", {}, view.words.money(price, currency)));
function walletSheet(view, brand, wallet) {
return new Promise((resolve) => {
const { t } = view;
const wishes = walletOptions(brand.code);
const checkout = view.config.checkout;
const currency = wishes.currencyCode || wishes.ledgerCurrency || checkout.currency;
const isShop = brand.kind === "redirect";
let items = Array.isArray(wishes.displayItems) ? wishes.displayItems : [];
let amount = wishes.amount || checkout.amount || "0.00";
const estimated = wishes.prefetchPriceStatus && wishes.prefetchPriceStatus !== "FINAL";
if (checkout.currency && currency !== checkout.currency) warn(`${brand.code}: the page says ${currency}, the checkout is in ${checkout.currency}.`);
const list = h("dl", { class: "wpwl-prices" });
const showPrices = () => list.replaceChildren(
...items.map((one) => priceRow(view, one.label, one.price, currency, `wpwl-price-${String(one.type || "LINE_ITEM").toLowerCase()}`)),
priceRow(view, estimated ? t("estimated") : t("total"), amount, currency, "wpwl-total"));
const fault = h("div", { class: "wpwl-note wpwl-note-error", hidden: true, role: "alert" }, icon(ICONS.alert), h("div", {}));
const fail = (text) => {
fault.hidden = !text;
fault.lastChild.textContent = text || "";
};
const parameters = wishes.billingAddressParameters || {};
const wanted = wishes.billingAddressRequired || wishes.productType === "PayAndShip";
const blank = (text) => (text ? "" : "fieldError");
const full = parameters.format !== "MIN";
const address = !wanted ? [] : [
textField(view, "fullName", { label: t("fullName"), autocomplete: "name", parameter: "name", check: blank }),
full && textField(view, "street1", { label: t("street1"), autocomplete: "address-line1", parameter: "address1", check: blank }),
full && textField(view, "city", { label: t("city"), autocomplete: "address-level2", parameter: "locality", check: blank }),
textField(view, "postcode", { label: t("postcode"), autocomplete: "postal-code", parameter: "postalCode", check: blank }),
countryField(view),
parameters.phoneNumberRequired && textField(view, "phone", { label: t("phone"), autocomplete: "tel", parameter: "phoneNumber", inputmode: "tel", check: blank }),
].filter(Boolean);
const addressValues = () => {
const { "billing.country": countryCode, ...rest } = Object.assign({}, ...address.map((field) => field.values()));
return { ...rest, countryCode };
};
const cards = wallet.testTokens || [];
if (!isShop && !cards.length) throw new Error("no provider is configured for this wallet at the gateway");
const picks = freshId("pick");
const choices = isShop ? null : h("fieldset", { class: "wpwl-choices wpwl-choices-tall" }, h("legend", { class: "wpwl-label" }, t("card")),
cards.map((card, at) => h("label", { class: "wpwl-choice" }, h("input", { type: "radio", name: picks, value: at, checked: at === 0 }),
mark(card.network || "VISA", "", true), h("span", {}, isolated(`•••• ${card.last4}`), " · ", t(card.outcome === "declined" ? "testDeclined" : "testApproved")))));
const pay = h("button", { type: "submit", class: "wpwl-button wpwl-button-pay" }, h("span", { class: "wpwl-spinner", "aria-hidden": "true" }), h("span", { class: "wpwl-button-text" }));
const showPay = () => (pay.lastChild.textContent = isShop ? t("continueTo", { brand: view.words.label(brand) }) : t("pay", { amount: isolated(view.words.money(amount, currency)) }));
let working = false;
const work = (on) => {
working = on;
pay.classList.toggle("wpwl-spinning", on);
pay.setAttribute("aria-disabled", String(on));
};
const changed = async (trigger) => {
if (typeof wishes.onPaymentDataChanged !== "function") return;
work(true);
try {
const update = (await wishes.onPaymentDataChanged({ callbackTrigger: trigger, paymentMethodData: { type: "CARD" }, shippingAddress: wanted ? addressValues() : undefined })) || {};
const price = update.newTransactionInfo || update;
if (price.totalPrice || price.amount) amount = String(price.totalPrice || price.amount);
if (Array.isArray(price.displayItems)) items = price.displayItems;
fail(update.error && update.error.message);
} catch (trouble) {
complain(`${SHEET_OF[brand.code]}.onPaymentDataChanged was rejected: ${trouble}`);
fail(t("tryAgainLater"));
}
showPrices();
showPay();
work(false);
};
const form = h("form", { class: "wpwl-stack", novalidate: true, action: "#", onsubmit: async (event) => {
event.preventDefault();
if (working) return;
const wrong = address.map((field) => [field, view.t2(field.judge())]).filter(([field, text]) => { field.fail(text); return text; });
if (wrong.length) return wrong[0][0].focus();
const popup = isShop ? window.open("about:blank", freshId("window"), "popup,width=480,height=720") : null;
const card = choices ? cards[Number(form.querySelector(`[name="${picks}"]:checked`).value)] : null;
work(true);
if (typeof wishes.onPaymentAuthorized === "function") {
let verdict;
try {
verdict = (await wishes.onPaymentAuthorized({
apiVersion: 2, apiVersionMinor: 0, email: undefined,
paymentMethodData: { type: "CARD", description: card ? `${card.network} •••• ${card.last4}` : "", info: { cardNetwork: card && card.network, cardDetails: card && card.last4, billingAddress: wanted ? addressValues() : undefined } },
})) || {};
} catch (trouble) {
complain(`${SHEET_OF[brand.code]}.onPaymentAuthorized was rejected: ${trouble}`);
verdict = {};
}
if (verdict.transactionState !== "SUCCESS") {
if (popup) popup.close();
work(false);
return fail((verdict.error && verdict.error.message) || t("tryAgainLater"));
}
}
sheet.close("done");
const fields = isShop ? { popup } : { [`${SHEET_OF[brand.code]}.paymentToken`]: card.token };
resolve(fields);
} }, h("p", { class: "wpwl-test" }, t("testSheet")),
wishes.merchantName && h("div", { class: "wpwl-merchant" }, wishes.merchantName), list, choices, address.map((field) => field.node), fault,
h("div", { class: "wpwl-group wpwl-group-submit" }, pay));
if (wanted) address.forEach((field) => field.control.addEventListener("change", () => changed("SHIPPING_ADDRESS")));
showPrices();
showPay();
const sheet = openSheet(view, { name: "wallet", title: view.words.label(brand), content: form, onClose: () => resolve(null) });
const language = wishes.checkoutLanguage;
if (language) sheet.dialog.dataset.language = language;
changed("INITIALIZE");
});
}
function fastCheckout(place, base, words, options, codes) {
const view = makeView(place, base, { id: "", registration: false }, words, options);
view.root.classList.add("wpwl-fast");
const facts = codes.map((code) => ({ code, kind: /^WALLET\d$/.test(code) ? code.toLowerCase() : "redirect", label: code }));
for (const brand of facts) {
if (!FAST_BRANDS.includes(brand.code)) {
warn(`${brand.code} needs a checkout: load paymentWidgets.js with checkoutId. Brands without one: ${FAST_BRANDS.join(", ")}.`);
continue;
}
const part = {
kind: brand.kind === "redirect" ? "redirect" : "wallet", fields: [], brand: () => brand.code, check: () => [], configure: () => {},
opensWindow: brand.kind === "redirect",
};
part.button = walletButton(view, brand, () => pressFast(view, part, brand));
part.press = () => part.button.click();
part.form = part.node = h("div", { class: `wpwl-form wpwl-form-${SHEET_OF[brand.code]}` }, part.button);
part.container = newContainer(part);
view.parts.push(part);
}
view.body.append(...view.parts.map((part) => part.container));
if (!view.parts.length) view.say("error", words.t("noBrands"), null, true);
return view;
}
async function pressFast(view, part, brand) {
if (view.busy || view.over) return;
const create = pageOptions().createCheckout;
if (typeof create !== "function") {
complain("widgetOptions.createCheckout must be a function that returns a checkout id, or a promise of one.");
return view.say("error", view.t("createFailed"));
}
view.setBusy(part, true);
if (brand.code === "WEBWALLET") part.popup = window.open("about:blank", freshId("window"), "popup,width=480,height=720");
let id;
try {
id = await create({ brand: brand.code });
if (typeof id !== "string" || !/^[A-Za-z0-9.-]{32,48}$/.test(id)) throw new Error(`createCheckout gave ${JSON.stringify(id)}, not a checkout id`);
view.checkout = { id, registration: false };
view.gateway = gateway(view.base, view.checkout);
publish.checkout.id = id;
const { status, body } = await view.gateway.config([brand.code], view.words.locale);
if (status !== 200) throw new Error(`the checkout ${id} is not known to the gateway`);
view.config = body;
const offered = (body.brands || []).find((one) => one.code === brand.code);
if (!offered) throw new Error(`the checkout does not offer ${brand.code}`);
view.setSecondsLeft(body.checkout.secondsLeft);
checkAmount(view);
if (brand.code === "WEBWALLET") {
const sending = view.gateway.post({ ...commonFields(view), ...shopperParameters(), paymentBrand: brand.code });
return follow(view, part, sending);
}
view.busy = false;
await pressWallet(view, part, { ...brand, ...offered, kind: brand.kind });
} catch (fault) {
complain(`${brand.code}: ${fault && fault.message ? fault.message : fault}`);
back(view, part, "error", view.t("createFailed"), "createCheckout", { brand: brand.code });
}
}
function checkAmount(view) {
const { checkout } = pageOptions();
const charged = view.config.checkout.amount;
if (!checkout || checkout.amount === undefined || !charged || Number(checkout.amount) === Number(charged)) return true;
complain(`widgetOptions.checkout.amount is ${checkout.amount}, the checkout's amount is ${charged}.`);
view.say("error", view.t("amountChanged"), null, true);
view.error("amount", view.t("amountChanged"), { page: String(checkout.amount), checkout: charged });
return false;
}
const brandsOf = (form) => (form.getAttribute("data-brands") || "").split(/\s+/).filter(Boolean);
const looksLikeCard = (code) => !/^(DIRECTDEBIT|CREDITTRANSFER|INVOICE|PREPAYMENT|CASHON|INSTALMENTS|GIFTCARD)|WALLET|TRANSFER|ACCOUNT/.test(code);
const TRAP =
'A <form> stands around <form class="paymentWidgets">. Browsers drop a form inside a form, so nothing of it would be sent. Move the widget out of the outer form.';
const before = window.wpwl;
const drawn = [];
let stopped = false;
const publish = {
checkout: { id: "" },
unload: () => {
stopped = true;
drawn.splice(0).forEach(({ view, form }) => {
view.remove();
form.hidden = false;
delete form.dataset.wpwl;
});
document.querySelectorAll(".wpwl-banner").forEach((one) => one.remove());
if (sheetOfRules) addRules(false);
if (before && before.unload) before.unload();
if (window.wpwl === publish) delete window.wpwl;
},
executePayment: (containerId) => {
const container = document.getElementById(containerId);
const view = container && drawn.map((one) => one.view).find((one) => one.root.contains(container));
if (!view) {
if (before && before.executePayment) return before.executePayment(containerId);
const known = Array.from(document.querySelectorAll(".wpwl-container"), (one) => one.id);
return complain(`executePayment: no container "${containerId}". There are: ${known.join(", ") || "none"}.`);
}
const part = view.parts.find((one) => one.container === container);
if (view.choose) view.choose(part);
part.press();
},
};
function banner(text) {
addRules(true);
document.body.prepend(h("div", { class: "wpwl-banner", role: "alert" }, `Test: ${text}`));
}
async function explainMissing(base, checkout) {
if (document.querySelector("[data-wpwl]")) return;
if (!document.forms.length) return complain('There is no <form class="paymentWidgets" data-brands="…"> in this page.');
complain(TRAP);
const answer = checkout.id && (await gateway(base, checkout).config([], "en").catch(() => null));
if (answer && answer.body.test) banner(TRAP);
}
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
function newContainer(part) {
const kinds = { saved: "registration", bank: "directDebit", virtual: "virtualAccount", redirect: "onlineTransfer" };
const wanted = part.kind === "card" ? "card" : part.saved ? `registration-${part.saved.id}` : part.brand();
let id = `wpwl-container-${wanted}`;
for (let n = 2; document.getElementById(id); n++) id = `wpwl-container-${wanted}-${n}`;
return h("div", { class: `wpwl-container wpwl-container-${kinds[part.kind] || part.kind}`, id }, part.form);
}
function arrange(view, card) {
const parts = view.parts;
const many = parts.length > 1 && !view.checkout.registration;
const name = freshId("method");
let passed = !card;
for (const part of parts) {
if (part === card) {
passed = true;
} else {
part.container = newContainer(part);
passed ? view.body.append(part.container) : card.container.before(part.container);
}
if (many) addRow(view, part, name);
}
view.choose = (part) => {
if (!many) return;
view.unsay();
parts.forEach((one) => {
one.form.hidden = one !== part;
one.container.classList.toggle("wpwl-selected", one === part);
one.radio.checked = one === part;
});
if (part.look) part.look();
};
view.dropPart = (part) => {
const next = parts[parts.indexOf(part) + 1] || parts[0];
parts.splice(parts.indexOf(part), 1);
if (part.cvv) part.cvv.frame.remove();
part.container.remove();
view.choose(next);
next.radio.focus();
};
if (!many) return;
view.body.classList.add("wpwl-methods");
view.body.setAttribute("role", "radiogroup");
view.body.setAttribute("aria-label", view.t("methods"));
view.choose(parts.find((part) => !(part.saved && part.saved.expired)) || parts[0]);
}
function partOf(view, brand) {
if (brand.kind === "bank") return bankPart(view, brand);
if (brand.kind === "virtual") return virtualPart(view, brand);
if (/^wallet\d$/.test(brand.kind) || brand.code === "SHOPWALLET") return walletPart(view, brand);
return redirectPart(view, brand);
}
function setWords(view, words) {
view.words = words;
view.t = words.t;
view.t2 = (key) => (key ? words.t(key) : "");
view.root.lang = words.iso;
view.root.dir = words.dir;
view.root.querySelector(".wpwl-clock button").textContent = words.t("goOn");
}
async function wordsWithout(base, locale, options) {
for (const one of [locale, "en"]) {
const answer = await textsWithout(base, one).catch(() => null);
if (answer && answer.status === 200) {
const { body } = answer;
return speech(body.locale || one, body.dir || (one === "ar" ? "rtl" : "ltr"), body.texts || body, options);
}
}
return speech("en", "ltr", { loadFailed: "The payment form could not be loaded.", tryAgain: "Try again", expiredTitle: "Your session has expired" }, options);
}
async function draw(form, base, checkout, options, style) {
const codes = brandsOf(form);
const nested = form.parentElement.closest("form");
if (nested) complain(TRAP);
form.dataset.wpwl = "on";
form.hidden = true;
const locale = localeOf(options);
const silent = { ...speech(locale, locale === "ar" ? "rtl" : "ltr", {}, {}), t: () => "\u00a0" };
const view = makeView(form, base, checkout, silent, { style });
drawn.push({ view, form });
view.root.classList.add("wpwl-waiting");
view.root.setAttribute("aria-busy", "true");
let card = null;
if (!codes.length || codes.some(looksLikeCard)) {
card = cardPart(view, codes);
card.container = newContainer(card);
view.body.append(card.container);
}
let answer = null;
for (let tries = 0; tries < 4 && !answer; tries++) {
if (tries) await wait(300 * 3 ** tries);
if (view.over) return;
answer = await view.gateway.config(codes, locale).catch(() => null);
}
if (view.over) return;
view.root.removeAttribute("aria-busy");
view.root.classList.remove("wpwl-waiting");
if (answer && answer.status === 200) return configure(view, answer.body, card, codes, options, nested);
setWords(view, await wordsWithout(base, locale, options));
if (answer && answer.status === 404) return view.expire();
view.end("error", view.t("loadFailed"));
view.body.firstChild.append(h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: again }, view.t("tryAgain")));
view.error("load", view.t("loadFailed"));
}
function again() {
publish.unload();
begin();
}
async function paidBefore(view) {
const state = await view.gateway.state().catch(() => null);
view.end("done", view.t("paidAlready"));
const url = state && state.body.returnTo;
if (url && !NO_ADDRESS.test(url)) {
view.body.firstChild.append(h("a", { class: "wpwl-button wpwl-button-small", href: url }, view.t("toShop")));
}
}
function configure(view, config, card, codes, options, nested) {
setWords(view, speech(config.locale, config.dir, config.texts, options));
view.config = config;
(config.hidden || []).forEach((one) => warn(`${one.code} is not offered: ${one.reason}`));
if (config.checkout.paid) return paidBefore(view);
const wishes = options.registrations || {};
const saved = view.checkout.registration ? [] : (config.registrations || []).map((one) => savedPart(view, one));
const onlySaved = saved.length && wishes.hideInitialPaymentForms === true;
const cards = config.brands.filter((one) => one.kind === "card");
const others = [];
for (const brand of onlySaved ? [] : config.brands) {
if (brand.kind !== "card") others.push(partOf(view, brand));
else if (card && !others.includes(card)) others.push(card);
}
view.parts = [...saved, ...others];
if (card && !others.includes(card)) {
card.remove();
card = null;
}
if (!view.parts.length) {
complain(`None of data-brands="${codes.join(" ")}" is offered in this checkout.`);
view.end("error", view.t("noBrands"));
return view.error("brands", view.t("noBrands"));
}
if (card) {
card.title = view.t(saved.length ? "otherCard" : "card");
card.badges = cards.slice(0, 4).map((one) => mark(one.code, "", true));
card.configure(config, cards);
}
arrange(view, card);
saved.forEach((part) => part.configure());
view.setSecondsLeft(config.checkout.secondsLeft);
if (config.test && nested) banner(TRAP);
checkAmount(view);
callPage("onReady", view.parts.map((part) => part.container));
}
async function begin() {
stopped = false;
const options = pageOptions();
checkOptions(options, OPTIONS, "widgetOptions");
if (window.widgetOptions && window.wpwlOptions && window.widgetOptions !== window.wpwlOptions) {
warn("Both window.widgetOptions and window.wpwlOptions are set: the first is read.");
}
let base;
try {
base = baseOf(options);
} catch (fault) {
complain(fault.message);
callPage("onError", { name: "baseUrl", message: fault.message });
return;
}
const style = styleOf(options);
const checkout = checkoutOf(options);
publish.checkout.id = checkout.id || publish.checkout.id;
window.wpwl = publish;
const forms = Array.from(document.querySelectorAll("form.paymentWidgets:not([data-wpwl])"));
if (!forms.length) return explainMissing(base, checkout);
if (style !== "none") addRules(true);
if (checkout.id) return void forms.forEach((form) => draw(form, base, checkout, options, style));
forms.forEach((form) => (form.dataset.wpwl = "on"));
const words = await wordsWithout(base, localeOf(options), options);
if (stopped) return;
const views = forms.map((form) => {
form.hidden = true;
const view = fastCheckout(form, base, words, { style }, brandsOf(form));
drawn.push({ view, form });
return view;
});
callPage("onReady", views.flatMap((view) => view.parts.map((part) => part.container)));
}
addEventListener("pageshow", async (event) => {
if (!event.persisted) return;
for (const { view } of drawn) {
if (view.over || !view.gateway) continue;
view.setBusy(null, false);
view.sheets.forEach((sheet) => sheet.close("done"));
const state = await view.gateway.state().catch(() => null);
if (!state) continue;
if (state.status === 404 || state.body.state === "expired") view.expire();
else if (state.body.state === "done") paidBefore(view);
else view.setSecondsLeft(state.body.secondsLeft);
}
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
drawn.forEach(({ view }) => {
view.darken();
view.parts.forEach((part) => part.look && part.look());
}));
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
})();
