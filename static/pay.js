// The hosted payment page's receipt: printing. Everything else works without a script.

const button = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-print]"));
if (button) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}
