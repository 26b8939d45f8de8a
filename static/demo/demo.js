// The demo shop's page: a cart, the form, and a panel that shows each request and its answer.
const facts = JSON.parse(String(document.getElementById("demo-settings")?.textContent));
/** @param {string} id */
const $ = (id) => /** @type {any} */ (document.getElementById(id));
/** @param {string} tag @param {Record<string, string>} [attributes] @param {...(Node | string)} children */
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
};

// --- the panel -----------------------------------------------------------------------------------------------------
let shown = 0;
/** @param {{ who: string, method: string, path: string, sent?: string[][], status: number, answer: unknown }} given */
function tell({ who, method, path, sent, status, answer }) {
  shown += 1;
  $("count").textContent = String(shown);
  if ($("empty")) $("empty").hidden = true;
  const bad = status >= 400 || !status;
  const summary = make("summary", {},
    make("span", { class: "method", text: method }),
    make("span", { class: "path", text: path, title: path }, make("span", { class: "who", text: who })),
    make("span", { class: bad ? "bad-status" : "good-status", text: status ? String(status) : "—" }));
  const fold = make("details", {}, summary);
  if (sent && sent.length) {
    fold.append(make("h3", { text: "Sent" }), make("pre", { tabindex: "0", "aria-label": `Sent to ${path}`, text: sent.map(([name, value]) => `${name} = ${value}`).join("\n") }));
  }
  fold.append(make("h3", { text: "Answer" }), make("pre", { tabindex: "0", "aria-label": `Answer of ${path}`, text: JSON.stringify(shorter(answer), null, 2) }));
  $("log").prepend(make("li", {}, fold));
}

// The texts of a form and its brand table fill pages: only their number is shown.
/** @param {any} answer */
function shorter(answer) {
  if (!answer || typeof answer !== "object") return answer;
  const found = { ...answer };
  if (found.texts) found.texts = `… ${Object.keys(found.texts).length} texts`;
  if (Array.isArray(found.brands)) found.brands = found.brands.map((/** @type {{ code: string }} */ brand) => brand.code);
  return found;
}

if (facts.exchange) tell({ who: "the shop's server", ...facts.exchange });

// What the form asks from this page. Card data go out of a frame of the gateway and are never seen here.
const plainFetch = window.fetch.bind(window);
const SECRET = /number|cvv|token|iban/i;
window.fetch = async (target, init = {}) => {
  const url = new URL(target instanceof Request ? target.url : target, location.href);
  const watched = url.pathname.startsWith("/v1/");
  let response;
  try {
    response = await plainFetch(target, init);
  } catch (fault) {
    if (watched) tell({ who: "the form", method: init.method || "GET", path: url.pathname, status: 0, answer: String(fault) });
    throw fault;
  }
  if (watched) {
    const sent = init.body instanceof URLSearchParams ? [...init.body].map(([name, value]) => [name, SECRET.test(name) ? "•••" : value]) : [];
    response.clone().json().then(
      (answer) => tell({ who: "the form", method: init.method || "GET", path: url.pathname + url.search, sent, status: response.status, answer }),
      () => {});
  }
  return response;
};

// --- the cart ------------------------------------------------------------------------------------------------------
if ($("go")) {
  const KEPT = "tollhouse-demo-cart";
  /** @type {Record<string, number>} */
  let cart = { mug: 1 };
  try {
    cart = JSON.parse(String(localStorage.getItem(KEPT))) || cart;
  } catch { /* a cart that cannot be read is a new one */ }
  /** @param {number} cents */
  const money = (cents) => `€${(cents / 100).toFixed(2)}`;
  const cents = () => Object.entries(facts.products).reduce((sum, [sku, [, price]]) => sum + price * (cart[sku] || 0), 0);

  function drawCart() {
    const items = Object.values(cart).reduce((sum, number) => sum + number, 0);
    for (const sku of Object.keys(facts.products)) /** @type {Element} */ (document.querySelector(`[data-count="${sku}"]`)).textContent = String(cart[sku] || 0);
    $("items").textContent = items === 1 ? "1 item" : `${items} items`;
    $("total").textContent = money(cents());
    const lines = Object.entries(facts.products).filter(([sku]) => cart[sku]).map(([sku, [name, price]]) => [`${cart[sku]} × ${name}`, price * cart[sku]]);
    $("order").replaceChildren(...[...lines, ["Total", cents()]].map(([words, sum]) => make("li", {}, make("span", { text: String(words) }), make("span", { text: money(Number(sum)) }))));
    $("go").disabled = $("try-fast").disabled = items === 0;
    try {
      localStorage.setItem(KEPT, JSON.stringify(cart));
    } catch { /* nothing is kept */ }
  }

  /** @param {string} sku @param {number} by */
  function change(sku, by) {
    cart[sku] = Math.min(9, Math.max(0, (cart[sku] || 0) + by));
    drawCart();
    clearForm();
  }
  for (const [name, by] of /** @type {[string, number][]} */ ([["more", 1], ["less", -1]])) {
    const buttons = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`[data-${name}]`));
    buttons.forEach((one) => one.addEventListener("click", () => change(String(one.dataset[name]), by)));
  }

  // --- the till's options: kept, since a payment leads to another page and back ----------------------------------------
  const OPTIONS = "tollhouse-demo-options";
  const options = /** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */ (document.querySelectorAll(".till select, .till input"));
  /** @param {HTMLInputElement | HTMLSelectElement} one */
  const nameOption = (one) => one.id || `brand ${one.value}`;

  function keepOptions() {
    const kept = Array.from(options, (one) => [nameOption(one), one instanceof HTMLInputElement ? one.checked : one.value]);
    try {
      localStorage.setItem(OPTIONS, JSON.stringify(Object.fromEntries(kept)));
    } catch { /* nothing is kept */ }
  }

  function restoreOptions() {
    /** @type {Record<string, unknown>} */
    let kept = {};
    try {
      kept = JSON.parse(String(localStorage.getItem(OPTIONS))) || {};
    } catch { /* options that cannot be read are the page's own */ }
    for (const one of options) {
      const value = kept[nameOption(one)];
      if (one instanceof HTMLInputElement) {
        if (typeof value === "boolean") one.checked = value;
      } else if (Array.from(one.options).some((option) => option.value === value)) {
        one.value = String(value);
      }
    }
  }
  restoreOptions();
  options.forEach((one) => one.addEventListener("change", keepOptions));

  // --- the form ----------------------------------------------------------------------------------------------------
  /** @param {string} text */
  const trouble = (text) => {
    $("trouble").textContent = text || "";
    $("trouble").hidden = !text;
  };

  /** @param {Record<string, string>} [more] */
  async function prepare(more = {}) {
    const body = new URLSearchParams({ returning: $("returning").checked ? "1" : "0", secure: $("secure").checked ? "1" : "0", ...more });
    for (const [sku, number] of Object.entries(cart)) body.set(sku, String(number));
    const answer = await (await plainFetch("/demo/checkout", { method: "POST", body })).json();
    tell({ who: "the shop's server", ...answer.exchange });
    if (!answer.id) throw new Error(answer.exchange.answer.result.description);
    return answer;
  }

  function clearForm() {
    if (window.wpwl) window.wpwl.unload();
    document.querySelectorAll("script[data-widget]").forEach((one) => one.remove());
    $("place").replaceChildren();
    $("fast-place").replaceChildren();
    $("fast").hidden = true;
    $("go").classList.replace("second", "first");
  }

  /** @param {string} query @param {string} [integrity] */
  function load(query, integrity) {
    /** @type {Record<string, string>} */
    const attributes = { src: `${facts.base}v1/paymentWidgets.js${query}`, crossorigin: "anonymous", "data-widget": "" };
    if (integrity) attributes.integrity = integrity;
    const script = make("script", attributes);
    script.addEventListener("error", () => trouble("The form's script could not be loaded."));
    document.head.append(script);
  }

  const chosen = () => [.../** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[name=brand]:checked"))].map((one) => one.value);
  const words = () => ({ locale: $("locale").value, style: "card" });

  // The shop's server deletes a stored card, with its token; the form asked the shopper before.
  /** @param {{ id: string }} given */
  async function remove({ id }) {
    const response = await fetch("/demo/forget", { method: "POST", body: new URLSearchParams({ id }) });
    const answer = response.ok ? await response.json() : {};
    if (answer.exchange) tell({ who: "the shop's server", ...answer.exchange });
    return answer.forgotten === 1;
  }

  /** @type {{ id: string, integrity?: string } | null} */
  let open = null;
  /** @param {{ id: string, integrity?: string }} checkout */
  async function draw(checkout) {
    clearForm();
    open = checkout;
    window.widgetOptions = { ...words(), registrations: { onDelete: remove } };
    $("place").append(make("form", { class: "paymentWidgets", action: `${facts.base}demo/result`, "data-brands": chosen().join(" ") }));
    $("source").textContent = facts.source.replace("{checkout id}", checkout.id).replace("{integrity}", checkout.integrity || "");
    load(`?checkoutId=${encodeURIComponent(checkout.id)}`, checkout.integrity);
    // The form's own button is the one to press now.
    $("go").classList.replace("first", "second");
    $("place").scrollIntoView({ block: "nearest" });
  }

  async function pay() {
    trouble("");
    $("go").disabled = true;
    try {
      await draw(await prepare());
    } catch (fault) {
      trouble(`The checkout could not be made: ${fault.message}`);
    } finally {
      drawCart();
    }
  }

  function fast() {
    trouble("");
    clearForm();
    open = null;
    $("fast").hidden = false;
    window.widgetOptions = {
      ...words(),
      checkout: { amount: (cents() / 100).toFixed(2) },
      createCheckout: (/** @type {{ brand: string }} */ { brand }) => prepare({ brand }).then((checkout) => checkout.id),
      wallet2: {
        merchantName: "Kiln & Canvas", currencyCode: facts.currency, amount: (cents() / 100).toFixed(2),
        displayItems: Object.entries(facts.products).filter(([sku]) => cart[sku]).map(([sku, [name, price]]) => (
          { label: `${name} × ${cart[sku]}`, type: "LINE_ITEM", price: ((price * cart[sku]) / 100).toFixed(2) })),
      },
    };
    $("fast-place").append(make("form", { class: "paymentWidgets", action: `${facts.base}demo/result`, "data-brands": facts.fast.join(" ") }));
    load("");
  }

  $("go").addEventListener("click", pay);
  $("try-fast").addEventListener("click", fast);
  const again = () => open && draw(open);
  $("locale").addEventListener("change", again);
  document.querySelectorAll("input[name=brand]").forEach((one) => one.addEventListener("change", again));
  $("returning").addEventListener("change", () => open && pay());
  $("secure").addEventListener("change", () => open && pay());

  // --- test cards ----------------------------------------------------------------------------------------------------
  // The demo shop has the gateway's own address, so that this page may reach into the hosted fields. No other page can.
  /** @param {HTMLInputElement | null | undefined} field @param {string} text */
  function type(field, text) {
    if (!field) return false;
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    return true;
  }

  /** @param {string} name */
  function hosted(name) {
    const frame = /** @type {HTMLIFrameElement | null} */ (document.querySelector(`.wpwl-control-${name} iframe`));
    return /** @type {HTMLInputElement | null | undefined} */ (frame?.contentDocument?.getElementById("field"));
  }

  /** @param {string} number */
  function typeCard(number) {
    const expiry = /** @type {HTMLInputElement | null} */ (document.querySelector(".wpwl-control-expiry"));
    const done = type(hosted("cardNumber"), number) && type(expiry, "0534") && type(hosted("cvv"), "123");
    $("card-note").textContent = done ? "Typed into the form." : "There is no card form yet: press Go to payment first.";
  }
  const cardButtons = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-card]"));
  cardButtons.forEach((one) => one.addEventListener("click", () => typeCard(String(one.dataset.card))));

  // --- tabs --------------------------------------------------------------------------------------------------------
  const tabs = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[role=tab]"))];
  /** @param {HTMLElement} tab */
  function select(tab) {
    tabs.forEach((one) => {
      const mine = one === tab;
      one.setAttribute("aria-selected", String(mine));
      one.tabIndex = mine ? 0 : -1;
      $(String(one.getAttribute("aria-controls"))).hidden = !mine;
    });
  }
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => select(tab));
    tab.addEventListener("keydown", (event) => {
      const by = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
      if (!by) return;
      const next = tabs[(at + by + tabs.length) % tabs.length];
      select(next);
      next.focus();
    });
  });
  $("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText($("source").textContent);
    $("copy").textContent = "Copied";
    setTimeout(() => ($("copy").textContent = "Copy"), 2000);
  });
  drawCart();
}
if (matchMedia("(max-width: 960px)").matches) $("watch-fold").open = false;
