// The shopper's pages work without this file; it saves a tap, stops a second one, and tells a framing page the end.

const METHOD_TIMEOUT_MS = 10_000;

for (const form of /** @type {NodeListOf<HTMLFormElement>} */ (document.querySelectorAll("form[data-once]"))) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "true";
    // After the browser has taken the button's name and value.
    setTimeout(() => {
      for (const button of form.querySelectorAll("button")) button.disabled = true;
    });
  });
}

const methodForm = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-method-form]"));
if (methodForm) {
  /** @param {string} completed */
  const go = (completed) => {
    if (methodForm.dataset.sent) return;
    /** @type {HTMLInputElement} */ (methodForm.elements.namedItem("completed")).value = completed;
    methodForm.requestSubmit();
  };
  const frame = /** @type {HTMLIFrameElement} */ (document.querySelector("iframe[data-method]"));
  const timer = setTimeout(() => go("N"), METHOD_TIMEOUT_MS);
  const loaded = () => {
    clearTimeout(timer);
    go("Y");
  };
  // The end is a page of ours: an issuer's own page cannot be read, and leads to it.
  const ended = () => frame.contentDocument?.readyState === "complete" && frame.contentDocument.URL !== "about:blank";
  const look = () => {
    if (ended()) loaded();
  };
  frame.addEventListener("load", look);
  look();
  /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-method-begin]"))?.submit();
}

/** @type {HTMLFormElement | null} */ (document.querySelector("form[data-submit-now]"))?.requestSubmit();

const done = /** @type {HTMLElement | null} */ (document.querySelector("[data-done]"));
if (done && window.parent !== window) {
  // No secret is told, so any framing page may hear it.
  window.parent.postMessage({ source: "tollhouse", event: "ended", id: done.dataset.done }, "*");
}
