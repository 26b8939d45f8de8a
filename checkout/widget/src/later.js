// The second script (more/): other ways to pay than a card, stored ones, sheets, fast checkout. It is loaded when
// something needs it, once for each copy of this script, by its hash: the page's integrity attribute speaks for both.
import { h, wait } from "./dom.js";
import { nonce } from "./start.js";

/** @typedef {typeof import("./more/main.js")} More */

/** @type {unknown} */
let shared;
// What the second script may use of this one; main.js gives it, since it stands above all modules.
/** @param {unknown} given */
export const share = (given) => (shared = given);

// `call` again while it rejects, with longer and longer breaks; its last fault is the answer's.
/** @template T @param {() => Promise<T>} call @returns {Promise<T>} */
export async function insist(call) {
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (fault) {
      if (tries === 3) throw fault;
      await wait(300 * 3 ** tries);
    }
  }
}

/** @param {string} base @returns {Promise<More>} */
const fetchMore = (base) => new Promise((resolve, reject) => {
  const src = `${base}v1/paymentWidgets/${MORE_SCRIPT.digest}.js`;
  const script = h("script", {
    src, nonce, crossorigin: "anonymous", integrity: MORE_SCRIPT.integrity,
    // The browser tells this in the same turn in which the script has run: no other copy comes between.
    onload: () => {
      script.remove();
      const module = { exports: /** @type {any} */ ({}) };
      const define = window.wpwlMore;
      delete window.wpwlMore;
      define ? resolve((define(() => shared, module), module.exports)) : reject(new Error(src));
    },
    onerror: () => {
      script.remove();
      reject(new Error(`${src} did not load: does the page's Content-Security-Policy name ${new URL(base).origin} in script-src?`));
    },
  });
  document.head.append(script);
});

/** @type {Promise<More> | null} */
let coming = null;
/** @param {string} base */
export function loadMore(base) {
  if (!coming) {
    coming = insist(() => fetchMore(base));
    coming.catch(() => (coming = null));
  }
  return coming;
}
