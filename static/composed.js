// Rules of a risk set: add, remove and move rules and conditions. Names only have to differ: the order on the page counts.

for (const root of document.querySelectorAll("[data-rules]")) {
  const list = root.querySelector("[data-list]");
  const blank = root.querySelector("[data-blank-rule]");
  const form = root.closest("form");
  const prefix = `${root.dataset.rules}.`;
  const note = (name, shown) => { root.querySelector(`[data-${name}]`).hidden = !shown; };
  let next = 10000;
  // All inputs go as one field: a form may have only so many.
  form?.addEventListener("formdata", (event) => {
    const inputs = [...event.formData].filter(([name]) => name.startsWith(prefix));
    for (const [name] of inputs) event.formData.delete(name);
    event.formData.set(root.dataset.rules, JSON.stringify(inputs.filter(([, value]) => value !== "")));
  });
  form?.addEventListener("submit", (event) => {
    const sent = [...new FormData(form)].filter(([, value]) => typeof value === "string");
    const text = form.enctype === "multipart/form-data" ? sent.map(([name, value]) => `${name}==${value}`).join("") : new URLSearchParams(sent).toString();
    const bytes = new TextEncoder().encode(text).length;
    note("large", bytes > Number(root.dataset.mostBytes));
    if (bytes <= Number(root.dataset.mostBytes)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    root.querySelector("[data-large]").scrollIntoView({ block: "center" });
  }, true);
  const named = (text, rule, when) => text.replaceAll("__rule__", rule).replaceAll("__when__", when);
  const rename = (node, rule, when) => {
    for (const each of node.querySelectorAll("*")) {
      for (const name of ["name", "id", "for", "list", "aria-describedby"]) {
        const value = each.getAttribute(name);
        if (value && value.includes("__") ) each.setAttribute(name, named(value, rule, when));
        else if (value && /_rule_|_when_/.test(value)) each.setAttribute(name, value.replaceAll("_rule_", `_${rule}_`).replaceAll("_when_", `_${when}_`));
      }
    }
    return node;
  };
  const ruleOf = (node) => node.closest("[data-rule]").querySelector("[name]").name.split(".")[1];
  const look = () => { root.querySelector("[data-none]").hidden = list.children.length > 0; form?.dispatchEvent(new Event("input", { bubbles: true })); };
  const effect = (rule) => {
    const select = rule.querySelector("select[name$='.effect']");
    rule.querySelector("[name$='.score']").closest(".cp-field").hidden = select.value !== "score";
    rule.querySelector("[name$='.code']").closest(".cp-field").hidden = !["review", "decline"].includes(select.value);
  };
  const fill = (condition, rule, when) => {
    const kind = condition.querySelector("select[name$='.kind']").value;
    const options = condition.querySelector("[data-options]");
    options.replaceChildren(rename(root.querySelector(`template[data-kind="${kind}"]`).content.cloneNode(true), rule, when));
  };
  const condition = (rule) => {
    const when = String(next++);
    const node = blank.content.querySelector("[data-condition]").cloneNode(true);
    rename(node, rule, when);
    fill(node, rule, when);
    return node;
  };
  for (const rule of list.children) effect(rule);
  root.addEventListener("change", (event) => {
    if (event.target.name?.endsWith(".effect")) effect(event.target.closest("[data-rule]"));
    if (event.target.name?.endsWith(".kind")) {
      const parts = event.target.name.split(".");
      fill(event.target.closest("[data-condition]"), parts[1], parts[3]);
    }
    if (event.target.name?.endsWith(".name")) event.target.closest("[data-rule]").querySelector(".cp-rule-name").textContent = event.target.value || "…";
  });
  root.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    note("full", button.dataset.addRule !== undefined && list.children.length >= Number(root.dataset.mostRules));
    if (button.dataset.addRule !== undefined && list.children.length < Number(root.dataset.mostRules)) {
      const rule = String(next++);
      const node = blank.content.querySelector("[data-rule]").cloneNode(true);
      node.querySelector("[data-conditions]").replaceChildren();
      rename(node, rule, "0");
      node.querySelector("[data-conditions]").append(condition(rule));
      node.querySelector("summary .cp-help").textContent = "";
      list.append(node);
      effect(node);
      node.querySelector("input").focus();
      look();
    } else if (button.dataset.addCondition !== undefined) {
      const rule = button.closest("[data-rule]");
      const node = condition(ruleOf(button));
      rule.querySelector("[data-conditions]").append(node);
      node.querySelector("select").focus();
      look();
    } else if (button.dataset.remove) {
      button.closest(button.dataset.remove).remove();
      look();
    } else if (button.dataset.move) {
      const rule = button.closest("[data-rule]");
      if (button.dataset.move === "up") rule.previousElementSibling?.before(rule);
      else rule.nextElementSibling?.after(rule);
      button.focus();
      look();
    }
  });
}
