// Finding the forms, drawing them, and taking them away again.
const brandsOf = (form) => (form.getAttribute("data-brands") || "").split(/\s+/).filter(Boolean);
// Before the configuration has come: does this brand want a card form?
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

// The parser drops the inner form without a trace: what is left is a page with a form, and none of ours.
async function explainMissing(base, checkout) {
  if (document.querySelector("[data-wpwl]")) return;
  if (!document.forms.length) return complain('There is no <form class="paymentWidgets" data-brands="…"> in this page.');
  complain(TRAP);
  const answer = checkout.id && (await gateway(base, checkout).config([], "en").catch(() => null));
  if (answer && answer.body.test) banner(TRAP);
}

// A row to choose by, for each way to pay.
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

// All ways to pay, in the page's order. The card form is in the document already and must not move: a frame that is
// moved loads anew.
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
    view.parts.forEach((one) => {
      one.form.hidden = one !== part;
      one.container.classList.toggle("wpwl-selected", one === part);
      one.radio.checked = one === part;
    });
    if (part.look) part.look();
  };
  if (!many) return;
  view.body.classList.add("wpwl-methods");
  view.body.setAttribute("role", "radiogroup");
  view.body.setAttribute("aria-label", view.t("methods"));
  view.choose(firstOf(parts));
}

const firstOf = (parts) => parts.find((part) => !part.ready && !(part.saved && part.saved.expired)) || parts[0];

// A wallet whose provider has to be asked first: its place stands empty until it says that this shopper can pay.
function awaitProviders(view) {
  for (const part of view.parts.filter((one) => one.ready)) {
    part.container.hidden = true;
    part.ready.then((ready) => {
      if (view.over) return;
      part.container.hidden = !ready;
      if (!ready) dropPart(view, part);
    });
  }
}

// A way to pay that is gone.
function dropPart(view, part) {
  view.parts = view.parts.filter((one) => one !== part);
  (part.fields || []).forEach((field) => field.frame && field.frame.remove());
  part.container.remove();
  if (!view.parts.length) noBrands(view);
  else if (part.radio && part.radio.checked) view.choose(firstOf(view.parts));
}

function noBrands(view) {
  view.end("error", view.t("noBrands"));
  view.error("brands", view.t("noBrands"));
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
  // Before the words have come nothing is written: the skeleton's bars stand in their place.
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
  if (answer && answer.status === 404) return endOfTime(view);
  view.end("error", view.t("loadFailed"));
  view.body.firstChild.append(h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: again }, view.t("tryAgain")));
  view.error("load", view.t("loadFailed"));
}

function again() {
  publish.unload();
  begin();
}

// Nobody may read that they were not charged who was: another tab may have paid, or this one before it was left.
async function endOfTime(view) {
  const state = await view.gateway.state().catch(() => null);
  if (view.over || view.busy) return;
  if (state && state.body.state === "done") paidBefore(view);
  else view.expire();
}

// Back from the bank by the browser's "back": the order may be paid by now.
async function paidBefore(view) {
  const state = await view.gateway.state().catch(() => null);
  view.end("done", view.t("paidAlready"));
  const url = state && state.body.returnTo;
  if (url && MAY_OPEN.test(url)) {
    view.body.firstChild.append(h("a", { class: "wpwl-button wpwl-button-small", href: url }, view.t("toShop")));
  }
}

function configure(view, config, card, codes, options, nested) {
  setWords(view, speech(config.locale, config.dir, config.texts, options));
  view.config = config;
  view.attempts = config.checkout.attempts;
  (config.hidden || []).forEach((one) => warn(`${one.code} is not offered: ${one.reason}`));
  const registration = config.checkout.kind === "registration";
  if (registration !== view.checkout.registration) {
    complain(`This checkout ${registration ? "stores a card: its checkoutId ends with" : "is for a payment: its checkoutId is without"} "/registration".`);
    view.checkout.registration = registration;
    view.gateway = gateway(view.base, view.checkout);
  }
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
    return noBrands(view);
  }
  if (card) {
    card.title = view.t(saved.length ? "otherCard" : "card");
    card.badges = cards.slice(0, 4).map((one) => mark(one.code, "", true));
    card.configure(config, cards);
  }
  arrange(view, card);
  awaitProviders(view);
  saved.forEach((part) => part.configure());
  view.setSecondsLeft(config.checkout.secondsLeft);
  if (config.test && nested) banner(TRAP);
  checkAmount(view);
  if (view.configured) view.configured();
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
  addRules(true, style);
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

// A page that the browser kept and shows again: what stood still may have been paid or have run out.
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
