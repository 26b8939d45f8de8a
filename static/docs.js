// What makes the docs handier: copy buttons, search as you type, filters, the section being read, your entityId.
// Every page works without this file.

const ENTITY_KEY = "tollhouse.entityId";

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

// --- your entityId in the samples -------------------------------------------------------------------------------------

/** @param {string} value */
function fillEntity(value) {
  const known = /^[0-9a-f]{32}$/.test(value);
  for (const place of all('[data-variable="ENTITY_ID"]')) {
    place.textContent = known ? value : "$ENTITY_ID";
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

addCopyButtons();
followEntity();
addFilters();
addSearch();
followReading();
followHash();
addEventListener("hashchange", followHash);
