// The page's side of the two hosted fields. They live in frames of the gateway's origin; only what is no secret goes
// between: labels and colours in; "filled", brand codes, "valid" once the field was left, and the gateway's answer out.
import { h } from "./dom.js";
import { Lost } from "./server.js";
/** @import { Answer, FieldState, Fields, FrameMessage, State } from "./types.js" */

const hostedFields = new Set();
// A frame that says nothing any more must not hold the form: its last word stands.
const LEAVE_MS = 2000;
const KEPT = ["init", "style", "want", "only", "describe"];

addEventListener("message", (event) => {
  for (const one of hostedFields) {
    if (event.source === one.frame.contentWindow && event.origin === one.origin && event.data && event.data.tollhouse) {
      one.hear(event.data);
    }
  }
});

// field: "number" or "cvv". `on` maps what the frame tells to functions.
/**
 * @param {string} base
 * @param {string} checkoutId
 * @param {string} field
 * @param {string} group
 * @param {Record<string, (message?: any) => void>} on
 */
export function hostedField(base, checkoutId, field, group, on) {
  const origin = new URL(base).origin;
  // "null" for a page opened from disk.
  const parent = self.origin;
  // One address for both fields (the fragment tells them apart): the browser fetches it once.
  const address = `${base}v1/widget/frame.html?checkout=${encodeURIComponent(checkoutId)}&parent=${encodeURIComponent(parent)}`;
  const frame = h("iframe", {
    src: `${address}#${field}.${group}`, class: "wpwl-frame", scrolling: "no", title: "\u00a0",
  });
  const waiting = new Map();
  const leaving = new Map();
  let asked = 0;
  let ready = false;
  /** @type {FrameMessage[]} */
  const queue = [];
  // The last of each kind that says how the field is to be: a page that moves the frame has it loaded anew.
  /** @type {Map<string, FrameMessage>} */
  const kept = new Map();
  /** @param {FrameMessage} message */
  const give = (message) => frame.contentWindow && frame.contentWindow.postMessage({ tollhouse: group, ...message }, origin);
  /** @param {FrameMessage} message */
  const send = (message) => {
    if (KEPT.includes(message.t)) kept.set(message.t, message);
    else if (!ready) return void queue.push(message);
    if (ready) give(message);
  };
  const one = {
    frame, origin, field,
    state: /** @type {FieldState} */ ({ empty: true, valid: false, reason: "missing", codes: [] }),
    send,
    /** @param {string} path @param {Fields} fields @returns {Promise<Answer<State>>} */
    post: (path, fields) =>
      new Promise((resolve, reject) => {
        waiting.set(++asked, (/** @type {FrameMessage} */ answer) =>
          answer.lost ? reject(new Lost(answer.lost)) : resolve({ status: answer.status, body: answer.body || {} }));
        send({ t: "post", n: asked, path, fields });
      }),
    // Takes the shopper out of the field, if need be, and resolves when it is known whether its digits are right.
    leave: () =>
      new Promise((resolve) => {
        leaving.set(++asked, resolve);
        send({ t: "leave", n: asked });
        setTimeout(resolve, LEAVE_MS);
      }),
    /** @param {FrameMessage} message */
    hear: (message) => {
      if (message.tollhouse !== group) return;
      if (message.t === "hello") {
        // The document that was to answer is gone: whether it had paid, the gateway knows.
        if (ready) waiting.forEach((then) => then({ lost: "moved" }));
        ready = true;
        kept.forEach(give);
        queue.splice(0).forEach(give);
      } else if (message.t === "answer") {
        const then = waiting.get(message.n);
        waiting.delete(message.n);
        if (then) then(message);
      } else if (message.t === "left") {
        const then = leaving.get(message.n);
        leaving.delete(message.n);
        if (then) then();
      } else if (message.t === "change") {
        one.state = /** @type {any} */ (message);
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

// The look of the page's own fields, for the frame to wear.
/** @param {HTMLElement} control */
export function lookOf(control) {
  const style = getComputedStyle(control);
  const quiet = getComputedStyle(control).getPropertyValue("--wpwl-soft").trim();
  return {
    color: style.color, fontFamily: style.fontFamily, fontSize: style.fontSize, fontWeight: style.fontWeight,
    letterSpacing: style.letterSpacing, placeholder: quiet || style.color, scheme: style.colorScheme,
  };
}
