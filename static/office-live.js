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

// The live board: renewed as a whole, unless it is held, read by the keyboard or has an open table.
const board = /** @type {HTMLElement | null} */ (document.querySelector("[data-refresh]"));
if (board) {
  const held = /** @type {HTMLInputElement} */ (document.querySelector("[data-refresh-pause]"));
  const pause = Number(board.dataset.refreshSeconds) * 1000;
  const renew = async () => {
    const read = board.contains(document.activeElement) || board.querySelector("details[open]");
    if (!document.hidden && !held.checked && !read) {
      try {
        const answer = await fetch(String(board.dataset.refresh), { credentials: "same-origin", redirect: "error" });
        if (answer.ok) board.innerHTML = await answer.text();
      } catch { /* signed out, or the server is away: the time of the board tells */ }
    }
    setTimeout(renew, pause);
  };
  setTimeout(renew, pause);
}
