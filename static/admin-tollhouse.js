// Copy buttons of the back office: <button data-copy="id of an element">. The text is read when it is pressed.
document.addEventListener("click", async (event) => {
  const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-copy]"));
  if (!button) return;
  const source = /** @type {HTMLElement} */ (document.getElementById(button.dataset.copy || ""));
  const text = String("value" in source ? source.value : source.textContent);
  try {
    await navigator.clipboard.writeText(text.trim());
  } catch {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    return;
  }
  const before = button.textContent;
  button.textContent = button.dataset.copied || "✓";
  setTimeout(() => { button.textContent = before; }, 1500);
});

// "/" opens the search of the back office, unless something is being typed or the list has a search box of its own.
document.addEventListener("keydown", (event) => {
  const at = /** @type {HTMLElement} */ (event.target);
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("[data-no-page-keys]")) return;
  if (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) return;
  event.preventDefault();
  dispatchEvent(new CustomEvent("opencommand"));
});

// The navigation: groups that are folded stay folded, and pages with a star stand on top. Both are kept by this browser.
document.addEventListener("DOMContentLoaded", () => {
  const sidebar = document.getElementById("nav-sidebar-apps");
  if (!sidebar) return;
  const FOLDED = "tollhouse-folded", FAVOURITES = "tollhouse-favourites";
  /** @param {string} name @returns {string[]} */
  const read = (name) => {
    try {
      const kept = JSON.parse(localStorage.getItem(name) ?? "[]");
      return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
    } catch {
      return [];
    }
  };
  /** @param {string} name @param {string[]} values */
  const keep = (name, values) => {
    try { localStorage.setItem(name, JSON.stringify(values)); } catch { /* nothing is kept in a private window */ }
  };
  for (const group of /** @type {NodeListOf<HTMLDetailsElement>} */ (sidebar.querySelectorAll("details[data-fold]"))) {
    const own = String(group.dataset.fold);
    if (read(FOLDED).includes(own) && !group.querySelector("a.active")) group.open = false;
    group.addEventListener("toggle", () => {
      const others = read(FOLDED).filter((one) => one !== own);
      keep(FOLDED, group.open ? others : [...others, own]);
    });
  }
  const pages = /** @type {HTMLAnchorElement[]} */ ([...sidebar.querySelectorAll("details[data-fold] a")]);
  const favourites = /** @type {HTMLElement} */ (sidebar.querySelector("[data-favourites]"));
  const star = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-favourite]"));
  const present = pages.find((page) => page.classList.contains("active"))?.getAttribute("href") ?? "";
  const show = () => {
    const kept = read(FAVOURITES);
    const list = /** @type {HTMLElement} */ (favourites.querySelector("ol"));
    list.replaceChildren(...pages.filter((page) => kept.includes(String(page.getAttribute("href")))).map((page) => {
      const row = document.createElement("li");
      row.append(page.cloneNode(true));
      return row;
    }));
    favourites.hidden = !list.childElementCount;
    if (star && present) {
      star.hidden = false;
      star.textContent = kept.includes(present) ? "★" : "☆";
      star.setAttribute("aria-pressed", String(kept.includes(present)));
    }
  };
  star?.addEventListener("click", () => {
    const kept = read(FAVOURITES);
    keep(FAVOURITES, kept.includes(present) ? kept.filter((one) => one !== present) : [...kept, present]);
    show();
  });
  show();
});

// Names of merchants and channels are suggested while one types. Each field waits for itself, and an answer to what is
// no longer in the field is dropped: answers may come in another order than they were asked for.
/** @type {WeakMap<HTMLInputElement, number>} */
const suggesting = new WeakMap();
document.addEventListener("input", (event) => {
  const field = event.target;
  if (!(field instanceof HTMLInputElement) || !field.dataset.names) return;
  clearTimeout(suggesting.get(field));
  suggesting.set(field, setTimeout(async () => {
    const asked = field.value;
    try {
      const answer = await fetch(`${field.dataset.names}?q=${encodeURIComponent(asked)}`, { headers: { Accept: "application/json" } });
      if (!answer.ok || !field.list) return;
      /** @type {{ names: string[] }} */
      const found = await answer.json();
      if (field.value !== asked) return;
      field.list.replaceChildren(...found.names.map((name) => { const one = document.createElement("option"); one.value = name; return one; }));
    } catch { /* the whole name can be typed */ }
  }, 150));
});

// Choices with a search are drawn by a library that names an empty one by nothing: each has its field's label, too.
addEventListener("load", () => {
  for (const select of document.querySelectorAll("select.select2-hidden-accessible[id]")) {
    const label = document.querySelector(`label[for="${CSS.escape(select.id)}"]`);
    const box = select.nextElementSibling?.querySelector(".select2-selection");
    if (!label || !box) continue;
    label.id ||= `${select.id}-label`;
    box.querySelector(".select2-selection__rendered")?.setAttribute("aria-labelledby", label.id);
    box.setAttribute("aria-labelledby", [label.id, box.getAttribute("aria-labelledby")].filter(Boolean).join(" "));
  }
});

// Fields in the rows of a table are named by their column, and what heads a column without a name is no heading.
addEventListener("load", () => {
  for (const cell of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("td[data-label]"))) {
    for (const field of cell.querySelectorAll("input:not([type=hidden]), select, textarea")) {
      if (!field.getAttribute("aria-label") && cell.dataset.label) field.setAttribute("aria-label", cell.dataset.label);
    }
  }
  for (const head of document.querySelectorAll("th")) {
    if (!String(head.textContent).trim() && !head.querySelector("input, [aria-label]")) head.setAttribute("role", "cell");
  }
});

// A table that is wider than its box is pushed aside by keys, too: the box can have the focus.
const reachBoxes = () => {
  for (const box of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".ck-scroll, .th-scroll"))) {
    if (box.scrollWidth > box.clientWidth && !box.hasAttribute("tabindex")) box.tabIndex = 0;
  }
};
addEventListener("load", reachBoxes);
addEventListener("resize", reachBoxes);
