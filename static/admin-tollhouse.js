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
  if (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) return;
  event.preventDefault();
  dispatchEvent(new CustomEvent("opencommand"));
});
