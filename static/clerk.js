// The clerk's pages: copying, sending a form once, hints before sending, a progress bar. All of it works without, too.

for (const button of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-copy]"))) {
  button.addEventListener("click", async () => {
    const source = /** @type {HTMLElement} */ (document.getElementById(button.dataset.copy || ""));
    const text = String("value" in source ? source.value : source.innerText).trim();
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "✓";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
    }
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}

// A second click does nothing; what came back with the back button can be sent again (the server knows the form).
for (const form of document.querySelectorAll("form[data-once]")) {
  let sent = false;
  form.addEventListener("submit", (event) => {
    if (sent) { event.preventDefault(); return; }
    sent = true;
    // After the form's values were taken: a disabled button would not be among them.
    setTimeout(() => { for (const button of form.querySelectorAll("button")) button.disabled = true; }, 0);
  });
  addEventListener("pageshow", () => {
    sent = false;
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  });
}

// With the back button the page is fetched anew, and with it another key: a form that was sent keeps the one that it was
// sent with, so that sending it once more is told to have been done.
for (const key of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("form[data-once] input[name=key]"))) {
  // Which payment of the chain it names may be another one by now.
  const member = /** @type {HTMLInputElement | null} */ (key.form?.querySelector("input[name=member]") ?? null);
  if (member && history.state?.sentKey) member.value = history.state.sentMember ?? member.value;
  key.value = history.state?.sentKey ?? key.value;
  key.form?.addEventListener("submit", () =>
    history.replaceState({ ...history.state, sentKey: key.value, sentMember: member?.value }, ""));
}

// What was typed comes back when the page that asks who one is came between: it leads here again, and the form would be
// empty. Kept for the same user and page alone, and until the next page of these.
const KEPT = "tollhouse.typed";
const asking = /^\/admin\/(again|code|login)\//;
const takeKept = () => {
  try {
    const kept = sessionStorage.getItem(KEPT);
    sessionStorage.removeItem(KEPT);
    return kept && asking.test(new URL(document.referrer).pathname) ? JSON.parse(kept) : null;
  } catch {
    return null;
  }
};
/** @type {{ whose: string, fields: [string, string][] } | null} */
const kept = takeKept();
for (const form of /** @type {NodeListOf<HTMLFormElement>} */ (document.querySelectorAll("form[data-keep]"))) {
  const whose = `${form.dataset.keep} ${location.pathname} ${form.getAttribute("action") ?? ""}`;
  const fields = /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input:not([type=hidden], [type=checkbox], [type=radio]), select, textarea"));
  if (kept?.whose === whose) {
    for (const [id, value] of kept.fields) { const field = [...fields].find((one) => one.id === id); if (field) field.value = value; }
    form.closest("details")?.setAttribute("open", "");
  }
  form.addEventListener("submit", () => {
    const typed = [...fields].map((field) => [field.id, field.value]);
    try { sessionStorage.setItem(KEPT, JSON.stringify({ whose, fields: typed })); } catch { /* storage is off: it is typed again */ }
  });
}

const amount = /** @type {HTMLInputElement | null} */ (document.querySelector("input[data-most]"));
if (amount) {
  const button = /** @type {HTMLButtonElement} */ (document.querySelector("[data-submit]"));
  const plain = button.textContent;
  const danger = button.classList.contains("danger");
  const over = /** @type {HTMLElement} */ (document.querySelector("[data-over]"));
  const approval = /** @type {HTMLElement | null} */ (document.querySelector("[data-approval]"));
  // French groups are spaces, which are left out first, as the server does.
  const group = document.documentElement.lang === "de" ? "." : ",";
  const grouped = new RegExp(`^[0-9]{1,3}(\\${group}[0-9]{3})+([.,][0-9]{2})?$`);
  /** @param {string} text */
  const number = (text) => {
    const plain = text.replace(/\s/g, "");
    return Number((document.documentElement.lang !== "fr" && grouped.test(plain) ? plain.replaceAll(group, "") : plain).replace(",", "."));
  };
  const look = () => {
    const asked = number(amount.value);
    const above = amount.dataset.limit !== undefined && asked > number(amount.dataset.limit);
    const beyond = Boolean(amount.dataset.most && asked > number(amount.dataset.most));
    over.hidden = !beyond;
    button.disabled = beyond;
    amount.setAttribute("aria-invalid", String(beyond));
    if (approval) {
      approval.hidden = !above || beyond;
      // The bar is drawn for the amount that the page came with.
      const bar = approval.querySelector("figure");
      if (bar) bar.hidden = amount.value !== amount.defaultValue;
    }
    button.classList.toggle("danger", danger && !above);
    button.textContent = beyond ? plain : String(above ? button.dataset.ask : `${plain} ${amount.value} ${button.dataset.plain?.split(" ").pop()}`);
  };
  amount.addEventListener("input", look);
  look();
}

// A whole card number is not sent: an address may be kept somewhere.
const box = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-no-card-number]"));
if (box) {
  const warning = /** @type {HTMLElement} */ (document.querySelector("[data-card-warning]"));
  /** @param {string} text */
  const whole = (text) => {
    const digits = text.replace(/[ .-]/g, "");
    if (!/^[0-9]{13,19}$/.test(digits)) return false;
    let sum = 0;
    for (let place = 0; place < digits.length; place += 1) {
      let digit = Number(digits[digits.length - 1 - place]);
      if (place % 2) { digit *= 2; if (digit > 9) digit -= 9; }
      sum += digit;
    }
    return sum % 10 === 0;
  };
  box.form?.addEventListener("submit", (event) => {
    if (!whole(box.value)) return;
    event.preventDefault();
    warning.hidden = false;
    box.value = "";
    box.focus();
  });
}

const work = /** @type {HTMLElement | null} */ (document.querySelector("[data-work]"));
if (work && work.dataset.ended === undefined) {
  /** @param {string} name @param {string} text */
  const put = (name, text) => {
    const at = work.querySelector(`[data-${name}]`);
    if (at) at.textContent = text ?? "";
  };
  const look = async () => {
    try {
      const answer = await fetch(String(work.dataset.work), { headers: { Accept: "application/json" } });
      if (answer.ok) {
        const told = await answer.json();
        put("done", told.done);
        put("total", told.total ?? "…");
        put("message", told.message);
        put("state", told.state);
        put("rate", told.rate);
        if (told.share !== null) /** @type {HTMLProgressElement} */ (work.querySelector("progress")).value = told.share;
        if (told.ended) { location.reload(); return; }
      }
    } catch { /* the next look finds it */ }
    setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
}

// Choosing rows of a list: what is picked is meant as soon as something is. Buttons that need picked rows say so before.
const many = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-many]"));
if (many) {
  const boxes = /** @type {HTMLInputElement[]} */ ([...document.querySelectorAll(`tbody input[type=checkbox][form="${many.id}"]`)]);
  const all = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-pick-all]"));
  const picked = /** @type {HTMLInputElement | null} */ (many.querySelector("[data-picked]"));
  const number = /** @type {HTMLElement | null} */ (many.querySelector("[data-picked-number]"));
  const needing = /** @type {NodeListOf<HTMLButtonElement>} */ (many.querySelectorAll("[data-needs-picked]"));
  const hint = /** @type {HTMLElement | null} */ (many.querySelector("[data-pick-first]"));
  const count = () => {
    const chosen = boxes.filter((one) => one.checked).length;
    if (number) { number.textContent = String(chosen); number.hidden = !chosen; }
    if (all) { all.checked = chosen === boxes.length; all.indeterminate = chosen > 0 && chosen < boxes.length; }
    const none = !chosen && (!picked || picked.checked);
    for (const button of needing) button.disabled = none;
    if (hint) hint.hidden = !none;
  };
  const pick = () => { if (picked) picked.checked = true; count(); };
  all?.addEventListener("change", () => { for (const one of boxes) one.checked = all.checked; pick(); });
  for (const one of boxes) one.addEventListener("change", pick);
  many.addEventListener("change", count);
  addEventListener("pageshow", count);
}

// Keys of a page: links are followed, buttons only get the focus, so that nothing is decided by one key.
document.addEventListener("keydown", (event) => {
  const at = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("[data-no-page-keys]")) return;
  if (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) return;
  const found = /^[a-z]$/.test(event.key) ? document.querySelector(`[data-key="${event.key}"]`) : null;
  if (found instanceof HTMLAnchorElement) found.click();
  else if (found instanceof HTMLElement) found.focus();
});

// The threshold over the histogram of a trial: the rows of its table, one at a time.
for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-thresholds]"))) {
  const range = /** @type {HTMLInputElement} */ (place.querySelector("input[type=range]"));
  const rows = [...place.querySelectorAll("[data-threshold]")];
  const show = () => {
    const at = Number(range.value);
    for (const shown of /** @type {NodeListOf<HTMLElement>} */ (place.querySelectorAll("[data-shown]"))) {
      shown.textContent = rows[at].querySelector(`[data-name=${shown.dataset.shown}]`)?.textContent ?? "";
    }
    for (const bar of /** @type {NodeListOf<SVGElement>} */ (place.querySelectorAll("[data-place]"))) {
      bar.classList.toggle("kept", Number(bar.dataset.place) < at);
    }
    range.setAttribute("aria-valuetext", rows[at].querySelector("[data-name=from]")?.textContent ?? "");
  };
  for (const hidden of place.querySelectorAll("[data-threshold-slider], [data-threshold-sums]")) hidden.removeAttribute("hidden");
  range.addEventListener("input", show);
  show();
}
