// Talking to the gateway: configuration, state, and the posts of everything that is no card number.
import { pageOptions } from "./start.js";
/** @import { Answer, Checkout, Config, Fields, State } from "./types.js" */

export class Lost extends Error {}

/** @param {string} url @param {RequestInit} [init] @returns {Promise<Answer<any>>} */
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
  // A 5xx says nothing about the payment: the state will.
  if (response.status >= 500) throw new Lost("server");
  return { status: response.status, body: body || {} };
}

/** @param {string} base @param {Checkout} checkout */
export function gateway(base, checkout) {
  /** @param {string} path */
  const at = (path) => `${base}v1/checkouts/${encodeURIComponent(checkout.id)}${path}`;
  const doing = checkout.registration ? "/registration" : "/payment";
  return {
    /** @param {string[]} brands @param {string} locale @returns {Promise<Answer<Config>>} */
    config: (brands, locale) =>
      ask(`${at("/config")}?brands=${encodeURIComponent(brands.join(" "))}&locale=${encodeURIComponent(locale)}${pageOptions().billingAddress ? "&billing=true" : ""}`),
    // Its result is that of the last attempt, pending before any: what counts is its state.
    /** @returns {Promise<Answer<State>>} */
    state: () => ask(at("/state")),
    path: `v1/checkouts/${encodeURIComponent(checkout.id)}${doing}`,
    /** @param {string} paymentBrand @param {string} validationUrl */
    vouch: (paymentBrand, validationUrl) => ask(at("/wallet-session"), { method: "POST", body: new URLSearchParams({ paymentBrand, validationUrl }) }),
    /** @param {Fields} fields @returns {Promise<Answer<State>>} */
    post: (fields) => ask(at(doing), { method: "POST", body: new URLSearchParams(fields) }),
  };
}

/** @param {string} base @param {string} locale */
export const textsWithout = (base, locale) => ask(`${base}v1/widget/texts/${locale}.json`, { cache: "default" });

// What a 3-D Secure server wants to know of the browser (Part A, Customer); the headers it wants, the gateway sees.
export function browserFacts() {
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
