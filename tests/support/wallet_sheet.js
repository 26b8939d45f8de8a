function sheet(words, pay, close) {
  const box = document.createElement("dialog");
  box.id = "provider-sheet";
  box.append(words);
  for (const [text, act] of [["Agree", pay], ["Away", close]]) {
    const button = document.createElement("button");
    button.textContent = text;
    button.onclick = () => { box.close(); box.remove(); act(); };
    box.append(button);
  }
  document.body.append(box);
  box.showModal();
}
const token = () => fetch(TOKEN).then((answer) => answer.text());
