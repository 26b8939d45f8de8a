// Run: sends a sample of the docs, or a row of the test data page, from the server, for who is signed in to the back
// office. Test environment only.
// The page never holds a token. What comes back stands below the sample, with the timeline of its payment.

const ENTITY_KEY = "tollhouse.entityId";
const READER = "/admin/docs/reader";
const CHECKOUT_SAMPLE = "checkout";
const TIMELINE_PAUSES_MS = [0, 1500, 3000, 6000];

/** @typedef {{ channels: {entityId: string, name: string}[] | null, csrf: string, notRun: string[] }} Reader */
/** @typedef {{ title: string, request: string, status: number, code: string, answer: string, ndc: string }} Run */

/** @param {string} tag @param {string} [className] @param {string} [text] */
function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  return element;
}

/** @returns {Promise<Reader>} */
async function askReader() {
  const none = { channels: null, csrf: "", notRun: [] };
  try {
    // A visitor is led to the sign-in, and who has to set up a second factor there: neither runs samples.
    const answer = await fetch(READER, { redirect: "manual" });
    return answer.ok ? await answer.json() : none;
  } catch {
    return none;
  }
}

function remembered() {
  try {
    return sessionStorage.getItem(ENTITY_KEY) || "";
  } catch {
    return "";
  }
}

/** The channel of all samples of this tab. docs.js fills it in.
 * @param {string} entity */
function choose(entity) {
  try {
    sessionStorage.setItem(ENTITY_KEY, entity);
  } catch {
    // Storage is switched off: it holds for this page.
  }
  document.dispatchEvent(new CustomEvent("tollhouse:entity", { detail: entity }));
}

/** @param {Reader} reader */
function chosenChannel(reader) {
  const channels = reader.channels || [];
  return (channels.find((one) => one.entityId === remembered()) || channels[0])?.entityId || "";
}

/** @param {HTMLElement} box */
function panelOf(box) {
  const next = box.nextElementSibling;
  if (next instanceof HTMLElement && next.matches(".run")) return next;
  const panel = make("section", "run");
  panel.setAttribute("aria-live", "polite");
  panel.setAttribute("aria-label", `Run: ${box.querySelector(".name")?.textContent || ""}`);
  box.after(panel);
  return panel;
}

/** The panel of a table's row is a row of its own, which ends with the filter's next letter.
 * @param {HTMLTableRowElement} row @param {string} title */
function panelBelow(row, title) {
  const next = row.nextElementSibling;
  if (next instanceof HTMLElement && next.matches(".run-row")) return /** @type {HTMLElement} */ (next.querySelector(".run"));
  const panel = make("section", "run");
  panel.setAttribute("aria-live", "polite");
  panel.setAttribute("aria-label", title);
  const line = make("tr", "run-row");
  const cell = /** @type {HTMLTableCellElement} */ (make("td"));
  cell.colSpan = row.cells.length;
  cell.append(panel);
  line.append(cell);
  row.after(line);
  return panel;
}

/** @param {HTMLElement} panel @param {string} words @param {[string, string]} [way] */
function say(panel, words, way) {
  const line = make("p", "run-line", words);
  if (way) {
    const link = /** @type {HTMLAnchorElement} */ (make("a", "", way[0]));
    link.href = way[1];
    line.append(" ", link);
  }
  panel.replaceChildren(line);
}

/** @param {Reader} reader @param {HTMLElement} panel */
function addChannels(reader, panel) {
  const channels = reader.channels || [];
  if (channels.length < 2) return;
  const label = make("label", "run-line", "Channel ");
  const list = /** @type {HTMLSelectElement} */ (make("select"));
  for (const one of channels) list.append(new Option(one.name, one.entityId));
  list.value = chosenChannel(reader);
  list.addEventListener("change", () => choose(list.value));
  label.append(list);
  panel.append(label);
}

/** @param {Run} run */
function showAnswer(run) {
  const box = make("div", "night");
  const head = make("div", "night-head");
  head.append(make("span", "name", `Your answer: ${run.request}`));
  head.append(make("span", `status ${run.status < 400 ? "good" : "bad"}`, String(run.status)));
  const pre = make("pre");
  pre.tabIndex = 0;
  pre.setAttribute("aria-label", `Your answer: ${run.title}`);
  const code = make("code");
  code.innerHTML = run.answer; // Highlighted by the server, which escapes what it colours.
  pre.append(code);
  box.append(head, pre);
  return box;
}

/** The webhook is sent a moment after the payment: the timeline is read again until its attempt stands there.
 * @param {HTMLElement} place @param {string} payment */
async function showTimeline(place, payment) {
  for (const pause of TIMELINE_PAUSES_MS) {
    await new Promise((done) => { setTimeout(done, pause); });
    const answer = await fetch(`/admin/gateway/payment/${payment}/timeline/`, { redirect: "manual" });
    if (!answer.ok || !place.isConnected) return;
    const open = Array.from(place.querySelectorAll("details"), (one) => one.open);
    place.innerHTML = await answer.text();
    place.querySelectorAll("details").forEach((one, at) => { one.open = open[at] || false; });
    if (place.querySelector("li.webhook.good, li.webhook.bad")) return;
  }
}

/** The places of the page that wait for members of this sample's answer: `id` and `integrity` in the lines of pay.html.
 * @param {HTMLElement} panel @param {HTMLElement} shown @param {string} sample */
function fillIn(panel, shown, sample) {
  const places = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll("[data-answer]")));
  if (sample !== CHECKOUT_SAMPLE || !places.length) return;
  const answer = JSON.parse(shown.querySelector("code")?.textContent || "{}");
  if (!answer.id) return;
  for (const place of places) place.textContent = answer[String(place.dataset.answer)] || place.textContent;
  panel.append(make("p", "run-line", "pay.html above has this checkout now: copy it, and open it in a browser."));
}

/** Whether the answer is the one of the table, and the way on for the shopper.
 * @param {HTMLElement} panel @param {{ promise: { name: string, value: string, kept: boolean } | null, redirect: string }} told */
function addPromise(panel, told) {
  if (!told.promise) return;
  const { name, value, kept } = told.promise;
  const words = kept ? `✓ ${name} is ${value}, as promised.` : `The promise is ${name} ${value}: this channel has settings of its own, such as 3-D Secure, risk rules, limits or routing.`;
  panel.append(make("p", "run-line", words));
  if (!told.redirect) return;
  const link = /** @type {HTMLAnchorElement} */ (make("a", "", "Go on as the shopper"));
  link.href = told.redirect;
  const line = make("p", "run-line");
  line.append(link);
  panel.append(line);
}

/** @param {HTMLElement} panel @param {HTMLElement} button @param {Reader} reader @param {Record<string, string>} what */
async function run(panel, button, reader, what) {
  if (!reader.channels) {
    const back = encodeURIComponent(location.pathname + location.hash);
    return say(panel, "Samples are run for those who are signed in.", ["Sign in to the back office", `/admin/login/?next=${back}`]);
  }
  if (!reader.channels.length) return say(panel, "Samples are run by those who may issue access tokens for a channel: you may not yet.");
  button.setAttribute("aria-disabled", "true");
  say(panel, "Running …");
  try {
    const sent = new URLSearchParams({ ...what, entityId: chosenChannel(reader) });
    const answer = await fetch("/admin/docs/run", { method: "POST", body: sent, headers: { "X-CSRFToken": reader.csrf }, redirect: "manual" });
    const told = await answer.json();
    if (!answer.ok) return say(panel, told.fault);
    const runs = /** @type {Run[]} */ (told.runs);
    panel.replaceChildren();
    addChannels(reader, panel);
    for (const one of runs.slice(0, -1)) panel.append(make("p", "run-line", `First: ${one.title}, ${one.status} ${one.code}`));
    if (!told.complete) panel.append(make("p", "run-line", "A request that the sample builds on was refused:"));
    addPromise(panel, told);
    const shown = showAnswer(runs[runs.length - 1]);
    panel.append(shown);
    if (told.complete) fillIn(panel, shown, what.sample);
    if (told.payment) {
      const place = make("div", "run-timeline");
      const title = make("p", "run-line", "What happened: ");
      const link = /** @type {HTMLAnchorElement} */ (make("a", "", "open it in the back office"));
      link.href = `/admin/gateway/payment/${told.payment}/change/`;
      title.append(link);
      panel.append(title, place);
      showTimeline(place, told.payment).catch(() => place.append(make("p", "run-line", "The timeline was not loaded.")));
    }
  } catch {
    say(panel, "The run was not answered. Reload the page: your session may have ended.");
  } finally {
    button.removeAttribute("aria-disabled");
  }
  return undefined;
}

/** @param {string} name @param {string} label @param {(button: HTMLElement) => void} act */
function makeRunButton(name, label, act) {
  const button = /** @type {HTMLButtonElement} */ (make("button", "copy run-button", name));
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.addEventListener("click", () => {
    if (!button.hasAttribute("aria-disabled")) act(button);
  });
  return button;
}

async function addRuns() {
  const boxes = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll("[data-sample]")));
  const rows = /** @type {HTMLTableRowElement[]} */ (Array.from(document.querySelectorAll("tr[data-try]")));
  if (!boxes.length && !rows.length) return;
  const reader = await askReader();
  if (reader.channels?.length && !reader.channels.some((one) => one.entityId === remembered())) choose(reader.channels[0].entityId);
  for (const box of boxes) {
    const sample = String(box.dataset.sample);
    if (reader.notRun.includes(sample)) continue;
    const label = `Run ${box.querySelector(".name")?.textContent || ""}`;
    box.querySelector(".night-head")?.append(makeRunButton("Run", label, (button) => run(panelOf(box), button, reader, { sample })));
  }
  for (const row of rows) {
    const cells = Array.from(row.cells, (cell) => (cell.querySelector("code") || cell).textContent?.trim());
    const label = `Try it now: ${cells.slice(0, 3).join(", ")}`;
    const act = (/** @type {HTMLElement} */ button) => run(panelBelow(row, label), button, reader, { row: String(row.dataset.try) });
    row.cells[0].append(" ", makeRunButton("Try it now", label, act));
  }
}

addRuns();
