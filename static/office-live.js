// The inspector: asks every two seconds for what came after the newest message shown, and puts it on top.

const place = /** @type {HTMLElement | null} */ (document.querySelector("[data-live]"));
if (place) {
  const count = /** @type {Element} */ (document.querySelector("[data-live-count]"));
  const look = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(`${place.dataset.live}?after=${place.dataset.newest}`, { credentials: "same-origin", redirect: "error" });
        if (answer.ok) {
          const text = await answer.text();
          if (text.trim()) {
            place.insertAdjacentHTML("afterbegin", text);
            place.dataset.newest = /** @type {HTMLElement} */ (place.querySelector("[data-number]")).dataset.number;
            document.querySelector("[data-live-empty]")?.remove();
            const shown = place.querySelectorAll("[data-number]");
            for (const old of [...shown].slice(200)) old.remove();
            count.textContent = String(Math.min(shown.length, 200));
          }
        }
      } catch { /* signed out, or the server is away: the next look tells */ }
    }
    setTimeout(look, 2000);
  };
  setTimeout(look, 2000);
}
