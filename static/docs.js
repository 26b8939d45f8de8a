// What makes the docs handier: copy buttons, languages of the samples, search as you type, filters, the section being read, your entityId.
// Every page works without this file.

const ENTITY_KEY = "tollhouse.entityId";
const LANGUAGE_KEY = "tollhouse.language";

/** @param {string} selector @param {ParentNode} [within] @returns {HTMLElement[]} */
function all(selector, within = document) {
  return Array.from(within.querySelectorAll(selector));
}

// --- copy buttons ---------------------------------------------------------------------------------------------------

/** @param {string} text */
async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** @param {() => string} text @param {string} label */
function copyButton(text, label) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${label}`);
  button.addEventListener("click", async () => {
    const done = await toClipboard(text());
    button.textContent = done ? "Copied" : "Not copied";
    button.classList.toggle("done", done);
    setTimeout(() => {
      button.textContent = "Copy";
      button.classList.remove("done");
    }, 1600);
  });
  return button;
}

function addCopyButtons() {
  for (const pre of all("pre[data-copy]")) {
    const label = (pre.getAttribute("aria-label") || "the sample").replace(/^Request: /, "");
    pre.closest(".night")?.querySelector(".night-head")?.append(copyButton(() => pre.innerText.trim(), label));
  }
  for (const place of all("[data-copy-text]")) {
    const text = String(place.dataset.copyText);
    place.append(copyButton(() => text, text));
  }
}

// --- languages of the samples -----------------------------------------------------------------------------------------

/** @type {Record<string, string>} */
const LANGUAGE_NAMES = { curl: "curl", python: "Python", javascript: "JavaScript", php: "PHP", http: "HTTP" };
const FIRST_LANGUAGE = "curl";
/** @type {Map<string, Promise<string>>} Code that was fetched, by its address. */
const fetched = new Map();
/** @typedef {{ name: string, code: HTMLElement, pre: HTMLElement, tabs: HTMLButtonElement[], wanted: string }} Sample */
/** @type {Sample[]} */
const samples = [];

function rememberedLanguage() {
  try {
    const found = localStorage.getItem(LANGUAGE_KEY) || "";
    return found in LANGUAGE_NAMES ? found : FIRST_LANGUAGE;
  } catch {
    return FIRST_LANGUAGE;
  }
}

/** @param {string} address @returns {Promise<string>} */
function fetchCode(address) {
  let code = fetched.get(address);
  if (!code) {
    code = fetch(address).then((answer) => {
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      return answer.text();
    });
    code.catch(() => fetched.delete(address));
    fetched.set(address, code);
  }
  return code;
}

/** @param {Sample} sample @param {string} language */
async function showLanguage(sample, language) {
  const shown = sample.tabs.some((tab) => tab.dataset.language === language) ? language : FIRST_LANGUAGE;
  sample.wanted = shown;
  for (const tab of sample.tabs) {
    const selected = tab.dataset.language === shown;
    tab.setAttribute("aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
  }
  try {
    const code = await fetchCode(`/docs/samples/${sample.name}.${shown}`);
    if (sample.wanted !== shown) return;
    sample.code.innerHTML = code;
  } catch {
    if (sample.wanted !== shown) return;
    sample.code.textContent = "The sample was not loaded. Choose the language again.";
  }
  sample.pre.dataset.language = shown;
  sample.pre.scrollLeft = 0;
  fillEntity(remembered(), sample.code);
}

/** All samples of the page change together; what was pressed stays where it is on the screen.
 * @param {string} language @param {HTMLElement} pressed */
async function chooseLanguage(language, pressed) {
  try {
    localStorage.setItem(LANGUAGE_KEY, language);
  } catch {
    // Storage is switched off: the choice holds for this page.
  }
  const before = pressed.getBoundingClientRect().top;
  await Promise.all(samples.map((sample) => showLanguage(sample, language)));
  scrollBy(0, pressed.getBoundingClientRect().top - before);
}

/** @param {KeyboardEvent} event @param {HTMLButtonElement[]} tabs */
function walkTabs(event, tabs) {
  const at = tabs.indexOf(/** @type {HTMLButtonElement} */ (event.target));
  const last = tabs.length - 1;
  const next = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
  if (at < 0 || next === undefined) return;
  event.preventDefault();
  tabs[next].focus();
  tabs[next].click();
}

/** @param {HTMLElement} box @param {number} number */
function addTabs(box, number) {
  const pre = /** @type {HTMLElement} */ (box.querySelector("pre"));
  const code = /** @type {HTMLElement} */ (pre.querySelector("code"));
  const title = pre.getAttribute("aria-label") || "";
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", `Language. ${title}`);
  pre.id = `sample-${number}`;
  pre.setAttribute("role", "tabpanel");
  const tabs = String(box.dataset.languages).split(" ").map((language) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `sample-${number}-${language}`;
    tab.dataset.language = language;
    tab.textContent = LANGUAGE_NAMES[language];
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", pre.id);
    tab.setAttribute("aria-selected", String(language === FIRST_LANGUAGE));
    tab.tabIndex = language === FIRST_LANGUAGE ? 0 : -1;
    tab.addEventListener("click", () => chooseLanguage(language, tab));
    return tab;
  });
  list.addEventListener("keydown", (event) => walkTabs(event, tabs));
  list.append(...tabs);
  pre.before(list);
  const name = String(box.dataset.sample);
  fetched.set(`/docs/samples/${name}.${FIRST_LANGUAGE}`, Promise.resolve(code.innerHTML));
  samples.push({ name, code, pre, tabs, wanted: FIRST_LANGUAGE });
}

function addLanguages() {
  all("[data-sample]").forEach(addTabs);
  const language = rememberedLanguage();
  for (const sample of samples) if (language !== FIRST_LANGUAGE) showLanguage(sample, language);
}

// --- your entityId in the samples -------------------------------------------------------------------------------------

/** @param {string} value @param {ParentNode} [within] */
function fillEntity(value, within = document) {
  const known = /^[0-9a-f]{32}$/.test(value);
  for (const place of all('[data-variable="ENTITY_ID"]', within)) {
    place.dataset.shown ??= place.textContent ?? "";
    const quote = place.dataset.quote ?? "";
    place.textContent = known ? `${quote}${value}${quote}` : place.dataset.shown;
    place.classList.toggle("filled", known);
  }
}

function remembered() {
  try {
    return sessionStorage.getItem(ENTITY_KEY) || "";
  } catch {
    return "";
  }
}

function followEntity() {
  fillEntity(remembered());
  document.addEventListener("tollhouse:entity", (event) => {
    const chosen = String(/** @type {CustomEvent} */ (event).detail);
    fillEntity(chosen);
    const shown = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-entity] input"));
    if (shown) shown.value = chosen;
  });
  const box = /** @type {HTMLElement | null} */ (document.querySelector("[data-entity]"));
  if (!box) return;
  box.hidden = false;
  const field = /** @type {HTMLInputElement} */ (box.querySelector("input"));
  field.value = remembered();
  field.addEventListener("input", () => {
    const value = field.value.trim();
    try {
      sessionStorage.setItem(ENTITY_KEY, value);
    } catch {
      // Storage is switched off: the samples of this page are filled in all the same.
    }
    fillEntity(value);
  });
}

// --- filters ------------------------------------------------------------------------------------------------------------

function addFilters() {
  for (const button of all("[data-no-script]")) button.hidden = true;
  for (const form of all("form[data-script]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  for (const field of /** @type {HTMLInputElement[]} */ (all("input[data-filter]"))) {
    const filtered = String(field.dataset.filter);
    const rows = all(filtered).map((row) => ({ row, text: String(row.textContent).toLowerCase() }));
    const groups = all("[data-filter-group]");
    const count = field.form?.querySelector("[data-filter-count]");
    const untouched = count ? count.innerHTML : "";
    field.form?.addEventListener("submit", (event) => event.preventDefault());
    field.addEventListener("input", () => {
      const words = field.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, text } of rows) {
        row.hidden = !words.every((word) => text.includes(word));
        if (!row.hidden) shown += 1;
      }
      for (const group of groups) {
        const own = all(filtered, group);
        group.hidden = words.length > 0 && !own.some((row) => !row.hidden);
      }
      if (!count) return;
      if (words.length) count.textContent = `${shown} of ${rows.length}`;
      else count.innerHTML = untouched;
    });
  }
}

// --- search as you type ---------------------------------------------------------------------------------------------------

/** @param {{ url: string, title: string, kind: string, text: string }} entry */
function hit(entry) {
  const link = document.createElement("a");
  link.href = entry.url;
  const title = document.createElement("strong");
  title.textContent = entry.title;
  const kind = document.createElement("small");
  kind.textContent = entry.kind;
  const text = document.createElement("span");
  text.textContent = entry.text;
  link.append(title, kind, text);
  return link;
}

function addSearch() {
  const field = /** @type {HTMLInputElement} */ (document.getElementById("search"));
  const box = /** @type {HTMLElement} */ (document.getElementById("hits"));
  if (!field?.form || !box) return;
  const { form } = field;
  let timer = 0;
  let asked = "";

  function close() {
    box.hidden = true;
  }

  async function look() {
    const query = field.value.trim();
    asked = query;
    if (!query) return close();
    const answer = await fetch(`/docs/search.json?q=${encodeURIComponent(query)}`);
    if (asked !== query) return undefined;
    if (answer.status === 429) {
      timer = setTimeout(look, 1000 * Number(answer.headers.get("Retry-After") || 1));
      return undefined;
    }
    const { found } = await answer.json();
    if (asked !== query) return undefined;
    if (found.length) {
      box.replaceChildren(...found.map(hit));
    } else {
      const nothing = document.createElement("p");
      nothing.textContent = `Nothing speaks of “${query}”.`;
      box.replaceChildren(nothing);
    }
    box.hidden = false;
    return undefined;
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, 120);
  });
  form.addEventListener("focusout", (event) => {
    if (!form.contains(/** @type {Node | null} */ (event.relatedTarget))) close();
  });
  form.addEventListener("keydown", (event) => {
    const links = all("a", box);
    const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (event.key === "Escape") {
      close();
      field.focus();
    } else if (event.key === "ArrowDown" && links.length && !box.hidden) {
      event.preventDefault();
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && at >= 0) {
      event.preventDefault();
      (at === 0 ? field : links[at - 1]).focus();
    }
  });
  box.addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(String(document.activeElement?.tagName));
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      field.focus();
    }
  });
}

// --- the section being read -------------------------------------------------------------------------------------------------

function followReading() {
  const links = new Map(all(".menu-side .menu-sections a").map((link) => [/** @type {HTMLAnchorElement} */ (link).hash.slice(1), link]));
  if (!links.size) return;
  const sections = all("section[id]").filter((section) => links.has(section.id));
  /** @type {HTMLElement | null} */
  let current = null;

  function mark() {
    const line = 140;
    let reading = sections[0];
    for (const section of sections) {
      if (!section.hidden && section.getBoundingClientRect().top <= line) reading = section;
    }
    const link = reading && links.get(reading.id);
    if (!link || link === current) return;
    if (current) current.removeAttribute("aria-current");
    link.setAttribute("aria-current", "true");
    current = link;
    const menu = link.closest(".menu-side");
    if (!menu) return;
    const top = link.offsetTop;
    if (top < menu.scrollTop + 40 || top > menu.scrollTop + menu.clientHeight - 80) {
      menu.scrollTop = top - menu.clientHeight / 2;
    }
  }

  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark();
    });
  }, { passive: true });
  mark();
}

// --- links from errors: #cart.items[3].name stands at #cart.items[n].name ----------------------------------------------------

function followHash() {
  const name = decodeURIComponent(location.hash.slice(1));
  if (!name || document.getElementById(name)) return;
  const general = name.replace(/\[[0-9]+\]/g, "[n]");
  const rows = all(".param");
  const found = document.getElementById(general)
    || rows.find((row) => row.id.replace(/\[[^\]]*\]$/, "[]") === name.replace(/\[[^\]]*\]$/, "[]"));
  if (found) location.replace(`#${encodeURIComponent(found.id)}`);
}

// --- the list of "From nothing to live" -----------------------------------------------------------------------------------

/** @param {HTMLElement} place @param {string} entity */
async function loadChecklist(place, entity) {
  const answer = await fetch(`/admin/docs/go-live?entityId=${encodeURIComponent(entity)}`, { redirect: "manual" }).catch(() => null);
  if (!answer?.ok) return;
  place.innerHTML = await answer.text();
  const form = /** @type {HTMLFormElement | null} */ (place.querySelector("[data-checklist-form]"));
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    loadChecklist(place, String(new FormData(form).get("entityId")));
  });
}

for (const place of all("[data-checklist]")) loadChecklist(place, remembered());
addCopyButtons();
addLanguages();
followEntity();
addFilters();
addSearch();
followReading();
followHash();
addEventListener("hashchange", followHash);
