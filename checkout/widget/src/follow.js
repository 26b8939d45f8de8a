// From "Pay" to the answer. Results come from the server only: from its answers and its state.
import { freshId, h, wait } from "./dom.js";
import { shopperParameters } from "./fields.js";
import { loadMore } from "./later.js";
import { callPage } from "./options.js";
import { Lost, browserFacts } from "./server.js";
import { complain } from "./start.js";
import { CANCELLED, MAY_OPEN, SUCCESS, WAITING, declineKey, endOfTime } from "./view.js";
/** @import { Answer, Fields, NoteAction, NoteKind, Part, Redirect, State, View } from "./types.js" */

// How long after "Pay" a lost press is repeated by itself. Later the shopper may be paying elsewhere, and presses again.
const REPEAT_MS = 60_000;

/** @param {View} view @param {Part} part */
export async function submit(view, part) {
  if (view.busy || view.over || part.leaving) return;
  part.leaving = true;
  await Promise.all((part.fields || []).map((field) => field.frame && field.frame.leave()));
  part.leaving = false;
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
  const pressed = Date.now();
  const send = () => part.send({ ...commonFields(view), ...shopperParameters(view, part.form) });
  const sending = send();
  // A bank's challenge opens in a sheet: it is there when the answer comes.
  if (view.config.threeDSecure) loadMore(view.base).catch(() => {});
  callPage("onAfterSubmit", { brand: part.brand() });
  await follow(view, part, sending, () => (part.popup || Date.now() - pressed > REPEAT_MS ? null : send()));
}

/** @param {View} view */
export function commonFields(view) {
  const action = view.place.getAttribute("action");
  /** @type {Fields} */
  const fields = { ...browserFacts(), ...view.asked };
  if (action) fields.shopperResultUrl = new URL(action, document.baseURI).href;
  return fields;
}

// `repeat` sends once more what the gateway never got; null: it is too late for that.
/** @param {View} view @param {Part} part @param {Promise<Answer<State>>} sending @param {() => Promise<Answer<State>> | null} [repeat] @returns {Promise<void>} */
export async function follow(view, part, sending, repeat) {
  let answer;
  try {
    answer = await sending;
  } catch (fault) {
    if (!(fault instanceof Lost)) throw fault;
    answer = await whatHappened(view);
    const again = !answer && !view.over && repeat && repeat();
    if (again) return follow(view, part, again);
    if (!answer) return back(view, part, "error", view.t("offline"), "network");
  }
  // Not known after an answer that is not the gateway's own, as a proxy's: the next press is then not repeated by itself.
  view.attempts = answer.body.attempts;
  if (view.over) return;
  const { status, body } = answer;
  const code = (body.result && body.result.code) || "";
  if (status === 404) return closeWindow(part), view.setBusy(null, false), endOfTime(view);
  if (body.redirect) return redirected(view, part, body.redirect);
  if (body.state === "processing") return follow(view, part, settled(view));
  if (body.state === "expired") return closeWindow(part), view.expire();
  if (body.returnTo && body.state !== "open") return closeWindow(part), view.leave(body.returnTo);
  const wrong = body.parameterErrors || (body.result && body.result.parameterErrors) || [];
  if (wrong.length && part.refuse && part.refuse(wrong)) return view.setBusy(null, false);
  if (body.state === "done" && ownReturn(view)) return closeWindow(part), view.leave(ownReturn(view));
  if (body.state === "done" && SUCCESS.test(code)) return view.end("done", view.t(view.checkout.registration ? "saved" : "paid"));
  // What is refused for its fields says nothing of the state.
  if (view.givenBack && status === 200 && body.state === "open" && !body.held) return closeWindow(part), view.givenBack();
  if (body.held && WAITING.test(code)) return closeWindow(part), view.options.again?.();
  if (body.state === "open" && WAITING.test(code)) return back(view, part, "error", view.t("stopped"), "stopped");
  wrong.forEach((one) => complain(`${one.name}: ${one.message}`));
  if (part.clear) part.clear();
  const key = declineKey(code);
  part.declined = !AGAIN.includes(key);
  back(view, part, "error", view.t(key), "declined", { code }, part.declined && view.another ? view.another(part, key) : null);
  if (key === "declinedExpired" && part.renew) part.renew();
  const field = { declinedCvv: part.cvv, declinedExpired: part.expiry }[key];
  if (field && !field.node.hidden) field.focus();
}

// After these the same means may do: corrected, confirmed, or simply once more.
const AGAIN = ["declinedCvv", "declinedExpired", "declinedThreeds", "declinedTechnical"];

// Where the page's form leads, for an answer that names no address.
/** @param {View} view */
function ownReturn(view) {
  const action = view.place.getAttribute("action");
  if (!action) return "";
  const url = new URL(action, document.baseURI);
  url.searchParams.set("id", view.checkout.id);
  url.searchParams.set("resourcePath", `/${view.gateway.path}`);
  return url.href;
}

/** @param {Part} part */
const closeWindow = (part) => part.popup && part.popup.close();

// Back to the form, which keeps what was filled in. The security code only where nothing of it has arrived.
/**
 * @param {View} view
 * @param {Part} part
 * @param {NoteKind} kind
 * @param {string} text
 * @param {string} name
 * @param {object} [more]
 * @param {NoteAction | null} [action]
 */
export function back(view, part, kind, text, name, more, action) {
  closeWindow(part);
  if (part.clearCvv && name !== "network") part.clearCvv();
  view.setBusy(null, false);
  view.say(kind, text, action);
  view.error(name, text, more);
}

// The answer got lost: money may have moved. Ask the state until it can be told. null: the gateway has no payment of
// this press, nor had it a moment before. One that still comes is the checkout's only one: nobody pays twice. Where the
// page does not know what the gateway had counted before the press, an open checkout's state is the answer.
/** @param {View} view @returns {Promise<Answer<State> | null>} */
async function whatHappened(view) {
  let none = 0;
  for (let tries = 0; !view.over; tries++) {
    const state = await view.gateway.state().catch(() => null);
    if (state && state.body.state === "open" && !(/** @type {number} */ (state.body.attempts) > (view.attempts ?? Infinity))) {
      if (++none > 1) return view.attempts === undefined ? state : null;
      await wait(1000);
      continue;
    }
    if (state && (state.status === 404 || state.body.state)) return state;
    /** @type {any} */
    let checkNow;
    const asked = new Promise((resolve) => (checkNow = resolve));
    view.say("info", view.t("unsure"), { label: view.t("checkAgain"), run: checkNow }, tries > 0);
    addEventListener("online", checkNow, { once: true });
    await Promise.race([asked, wait(Math.min(1000 * 2 ** tries, 8000))]);
    removeEventListener("online", checkNow);
  }
  return null;
}

// Wait until the payment that is under way has ended.
/** @param {View} view @returns {Promise<Answer<State>>} */
async function settled(view) {
  for (let tries = 0; !view.over; tries++) {
    await wait(Math.min(500 + 250 * tries, 3000));
    const state = await view.gateway.state().catch(() => null);
    if (state && state.body.state !== "processing") return state;
  }
  return { status: 0, body: {} };
}

/** @param {Redirect} redirect */
const withParameters = (redirect) => {
  const url = new URL(redirect.url);
  (redirect.parameters || []).forEach(({ name, value }) => url.searchParams.append(name, value));
  return url.href;
};

// Send a window (or this page) where the bank wants the shopper.
/** @param {Redirect} redirect @param {Window | null} target */
function go(redirect, target) {
  if (!MAY_OPEN.test(redirect.url)) return complain(`Not going to ${redirect.url}`);
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

/** @param {View} view @param {Part} part @param {Redirect} redirect @returns {Promise<void>} */
async function redirected(view, part, redirect) {
  const ours = new URL(redirect.url).origin === new URL(view.base).origin;
  // The authentication of a card stays inside the page; so does whatever the page wants inline.
  if (ours && redirect.method !== "POST" && (part.kind === "card" || part.kind === "saved" || part.kind === "wallet")) {
    const url = withParameters({ ...redirect, parameters: [...(redirect.parameters || []), { name: "embedded", value: "true" }, { name: "locale", value: view.words.locale }] });
    const more = await loadMore(view.base).catch((fault) => complain(fault.message));
    if (view.over) return;
    // The whole page can go there as well: the bank leads back to the shop then.
    if (!more) {
      view.leaving = true;
      return go(redirect, null);
    }
    const how = await more.frameSheet(view, url, view.t("challenge"));
    if (view.over) return;
    return ended(view, part, how);
  }
  if (!part.popup || part.popup.closed) {
    part.popup = null;
    view.leaving = true;
    return go(redirect, null);
  }
  go(redirect, part.popup);
  const { windowClosed } = await loadMore(view.base);
  ended(view, part, await windowClosed(view, part.popup));
}

// After a sheet or window: the server says how it went. One that was left early leads back to the filled form.
/** @param {View} view @param {Part} part @param {string} how @returns {Promise<void>} */
async function ended(view, part, how) {
  part.popup = null;
  let state = await view.gateway.state().catch(() => null);
  for (let tries = 0; how === "done" && tries < 8 && (!state || state.body.state === "action"); tries++) {
    await wait(400);
    state = await view.gateway.state().catch(() => null);
  }
  if (!state) state = (await whatHappened(view)) || { status: 200, body: { state: "open", attempts: view.attempts } };
  const { result } = state.body;
  const code = (result && result.code) || "";
  const stopped = !(state.body.held && WAITING.test(code)) && (how === "closed" || CANCELLED.test(code));
  const early = state.body.state === "action" || (state.body.state === "open" && stopped);
  if (!early) return follow(view, part, Promise.resolve(state));
  // A bank or wallet may have been told yes before its window went.
  back(view, part, "info", view.t(state.body.state === "action" && part.kind === "redirect" ? "left" : "stopped"), "closed");
}
