// The clerk's pages: copying, sending a form once, hints before sending, a progress bar. All of it works without, too.

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    const text = ("value" in source ? source.value : source.innerText).trim();
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "✓";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(document.getElementById(button.dataset.copy));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
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

const amount = document.querySelector("input[data-most]");
if (amount) {
  const button = document.querySelector("[data-submit]");
  const plain = button.textContent;
  const danger = button.classList.contains("danger");
  const over = document.querySelector("[data-over]");
  const approval = document.querySelector("[data-approval]");
  const number = (text) => Number(text.replace(",", "."));
  const look = () => {
    const asked = number(amount.value);
    const above = amount.dataset.limit !== undefined && asked > number(amount.dataset.limit);
    over.hidden = !(amount.dataset.most && asked > number(amount.dataset.most));
    if (approval) approval.hidden = !above;
    button.classList.toggle("danger", danger && !above);
    button.textContent = above ? button.dataset.ask : `${plain} ${amount.value} ${button.dataset.plain.split(" ").pop()}`;
  };
  amount.addEventListener("input", look);
  look();
}

// A whole card number is not sent: an address may be kept somewhere.
const box = document.querySelector("[data-no-card-number]");
if (box) {
  const warning = document.querySelector("[data-card-warning]");
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
  box.form.addEventListener("submit", (event) => {
    if (!whole(box.value)) return;
    event.preventDefault();
    warning.hidden = false;
    box.value = "";
    box.focus();
  });
}

const work = document.querySelector("[data-work]");
if (work && work.dataset.ended === undefined) {
  const put = (name, text) => { work.querySelector(`[data-${name}]`).textContent = text; };
  const look = async () => {
    try {
      const answer = await fetch(work.dataset.work, { headers: { Accept: "application/json" } });
      if (answer.ok) {
        const told = await answer.json();
        put("done", told.done);
        put("total", told.total ?? "…");
        put("message", told.message);
        put("state", told.state);
        if (told.share !== null) work.querySelector("progress").value = told.share;
        if (told.ended) { location.reload(); return; }
      }
    } catch { /* the next look finds it */ }
    setTimeout(look, 1000);
  };
  setTimeout(look, 1000);
}
