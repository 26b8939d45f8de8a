// Run: sends a sample of the docs from the server, for who is signed in to the back office. Test environment only.
// The page never holds a token. What comes back stands below the sample, with the timeline of its payment.

const ENTITY_KEY = "tollhouse.entityId";
const READER = "/admin/docs/reader";
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

/** @param {HTMLElement} box @param {HTMLElement} button @param {Reader} reader */
async function run(box, button, reader) {
  const panel = panelOf(box);
  if (!reader.channels) {
    const back = encodeURIComponent(location.pathname + location.hash);
    return say(panel, "Samples are run for those who are signed in.", ["Sign in to the back office", `/admin/login/?next=${back}`]);
  }
  if (!reader.channels.length) return say(panel, "Samples are run by those who may issue access tokens for a channel: you may not yet.");
  button.setAttribute("aria-disabled", "true");
  say(panel, "Running …");
  try {
    const sent = new URLSearchParams({ sample: String(box.dataset.sample), entityId: chosenChannel(reader) });
    const answer = await fetch("/admin/docs/run", { method: "POST", body: sent, headers: { "X-CSRFToken": reader.csrf }, redirect: "manual" });
    const told = await answer.json();
    if (!answer.ok) return say(panel, told.fault);
    const runs = /** @type {Run[]} */ (told.runs);
    panel.replaceChildren();
    addChannels(reader, panel);
    for (const one of runs.slice(0, -1)) panel.append(make("p", "run-line", `First: ${one.title}, ${one.status} ${one.code}`));
    if (!told.complete) panel.append(make("p", "run-line", "A request that the sample builds on was refused:"));
    panel.append(showAnswer(runs[runs.length - 1]));
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

async function addRuns() {
  const boxes = /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll("[data-sample]")));
  if (!boxes.length) return;
  const reader = await askReader();
  if (reader.channels?.length && !reader.channels.some((one) => one.entityId === remembered())) choose(reader.channels[0].entityId);
  for (const box of boxes) {
    if (reader.notRun.includes(String(box.dataset.sample))) continue;
    const button = /** @type {HTMLButtonElement} */ (make("button", "copy run-button", "Run"));
    button.type = "button";
    button.setAttribute("aria-label", `Run ${box.querySelector(".name")?.textContent || ""}`);
    button.addEventListener("click", () => {
      if (!button.hasAttribute("aria-disabled")) run(box, button, reader);
    });
    box.querySelector(".night-head")?.append(button);
  }
}

addRuns();
