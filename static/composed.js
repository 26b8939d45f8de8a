// Rules of a risk set: add, remove and move rules and conditions. Names only have to differ: the order on the page counts.

for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-rules]"))) {
  /**
   * The element that the page always has.
   * @param {ParentNode} from @param {string} selector @returns {HTMLElement}
   */
  const find = (from, selector) => /** @type {HTMLElement} */ (from.querySelector(selector));
  /** @param {Element} from @param {string} selector @returns {HTMLElement} */
  const around = (from, selector) => /** @type {HTMLElement} */ (from.closest(selector));
  const list = find(root, "[data-list]");
  const blank = /** @type {HTMLTemplateElement} */ (root.querySelector("[data-blank-rule]"));
  const form = root.closest("form");
  const prefix = `${root.dataset.rules}.`;
  /** @param {string} name @param {boolean} shown */
  const note = (name, shown) => { find(root, `[data-${name}]`).hidden = !shown; };
  let next = 10000;
  // All inputs go as one field: a form may have only so many.
  form?.addEventListener("formdata", (event) => {
    const inputs = [...event.formData].filter(([name]) => name.startsWith(prefix));
    for (const [name] of inputs) event.formData.delete(name);
    event.formData.set(String(root.dataset.rules), JSON.stringify(inputs.filter(([, value]) => value !== "")));
  });
  form?.addEventListener("submit", (event) => {
    const sent = /** @type {string[][]} */ ([...new FormData(form)].filter(([, value]) => typeof value === "string"));
    const text = form.enctype === "multipart/form-data" ? sent.map(([name, value]) => `${name}==${value}`).join("") : new URLSearchParams(sent).toString();
    const bytes = new TextEncoder().encode(text).length;
    note("large", bytes > Number(root.dataset.mostBytes));
    if (bytes <= Number(root.dataset.mostBytes)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    find(root, "[data-large]").scrollIntoView({ block: "center" });
  }, true);
  /** @param {string} text @param {string} rule @param {string} when */
  const named = (text, rule, when) => text.replaceAll("__rule__", rule).replaceAll("__when__", when);
  /** @template {Element | DocumentFragment} T @param {T} node @param {string} rule @param {string} when */
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
  /** @param {Element} node */
  const ruleOf = (node) => String(find(around(node, "[data-rule]"), "[name]").getAttribute("name")).split(".")[1];
  const look = () => { find(root, "[data-none]").hidden = list.children.length > 0; form?.dispatchEvent(new Event("input", { bubbles: true })); };
  /** @param {Element} rule */
  const effect = (rule) => {
    const { value } = /** @type {HTMLSelectElement} */ (find(rule, "select[name$='.effect']"));
    around(find(rule, "[name$='.score']"), ".cp-field").hidden = value !== "score";
    around(find(rule, "[name$='.code']"), ".cp-field").hidden = !["review", "decline"].includes(value);
  };
  /** @param {Element} condition @param {string} rule @param {string} when */
  const fill = (condition, rule, when) => {
    const kind = /** @type {HTMLSelectElement} */ (find(condition, "select[name$='.kind']")).value;
    const template = /** @type {HTMLTemplateElement} */ (find(root, `template[data-kind="${kind}"]`));
    find(condition, "[data-options]").replaceChildren(rename(/** @type {DocumentFragment} */ (template.content.cloneNode(true)), rule, when));
  };
  /** @param {string} rule */
  const condition = (rule) => {
    const when = String(next++);
    const node = /** @type {HTMLElement} */ (find(blank.content, "[data-condition]").cloneNode(true));
    rename(node, rule, when);
    fill(node, rule, when);
    return node;
  };
  for (const rule of list.children) effect(rule);
  root.addEventListener("change", (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    if (field.name?.endsWith(".effect")) effect(around(field, "[data-rule]"));
    if (field.name?.endsWith(".kind")) {
      const parts = field.name.split(".");
      fill(around(field, "[data-condition]"), parts[1], parts[3]);
    }
    if (field.name?.endsWith(".name")) find(around(field, "[data-rule]"), ".cp-rule-name").textContent = field.value || "…";
  });
  root.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("button");
    if (!button) return;
    note("full", button.dataset.addRule !== undefined && list.children.length >= Number(root.dataset.mostRules));
    if (button.dataset.addRule !== undefined && list.children.length < Number(root.dataset.mostRules)) {
      const rule = String(next++);
      const node = /** @type {HTMLElement} */ (find(blank.content, "[data-rule]").cloneNode(true));
      find(node, "[data-conditions]").replaceChildren();
      rename(node, rule, "0");
      find(node, "[data-conditions]").append(condition(rule));
      find(node, "summary .cp-help").textContent = "";
      list.append(node);
      effect(node);
      find(node, "input").focus();
      look();
    } else if (button.dataset.addCondition !== undefined) {
      const rule = around(button, "[data-rule]");
      const node = condition(ruleOf(button));
      find(rule, "[data-conditions]").append(node);
      find(node, "select").focus();
      look();
    } else if (button.dataset.remove) {
      button.closest(button.dataset.remove)?.remove();
      look();
    } else if (button.dataset.move) {
      const rule = around(button, "[data-rule]");
      if (button.dataset.move === "up") rule.previousElementSibling?.before(rule);
      else rule.nextElementSibling?.after(rule);
      button.focus();
      look();
    }
  });
}
