// Passkeys in the back office: their forms are shown where the browser can use them, and a fault is told.
document.addEventListener("DOMContentLoaded", () => {
  // Browsers know passkeys of names only; an address such as 127.0.0.1 has none.
  const named = !/^[0-9.]+$|^\[/.test(location.hostname);
  if (window.PublicKeyCredential && named) {
    for (const form of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-passkeys]"))) form.hidden = false;
  } else {
    for (const words of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-no-passkeys]"))) words.hidden = false;
  }
});
document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  const fault = document.getElementById("passkey-fault");
  if (fault) fault.hidden = false;
});
