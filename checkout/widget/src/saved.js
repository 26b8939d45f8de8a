// Cards the shopper has kept at this merchant: one tap, the security code if it is wanted, and a way to remove one.
function savedPart(view, saved) {
  const wishes = pageOptions().registrations || {};
  const wantsCvv = saved.cvvRequired || wishes.requireCvv === true;
  const part = { kind: "saved", fields: [], saved, shown: () => !part.form.hidden };
  const { t } = view;
  const groupName = secretName();
  if (wantsCvv && !saved.expired) {
    part.cvv = cvvField(view, groupName, {
      change: (state) => (state.valid || state.empty) && part.cvv.fail(""),
      enter: () => part.form.requestSubmit(),
    });
    part.fields = [part.cvv];
  }
  part.title = t("savedCard", { brand: saved.label || saved.brand, last4: isolated(saved.last4) });
  const until = isolated(`${saved.expiryMonth} / ${String(saved.expiryYear).slice(-2)}`);
  part.detail = saved.expired ? t("expired") : t("expires", { date: until });
  part.badges = [mark(saved.brand, "", true)];
  const remove = h("div", { class: "wpwl-remove" });
  const offer = () => remove.replaceChildren(
    h("button", { type: "button", class: "wpwl-link", "aria-label": `${t("remove")}: ${part.title}`, onclick: sure }, t("remove")));
  const sure = () => {
    remove.replaceChildren(h("span", {}, t("removeAsk", { card: part.title })),
      h("button", { type: "button", class: "wpwl-button wpwl-button-small wpwl-danger", onclick: forget }, t("remove")),
      h("button", { type: "button", class: "wpwl-button wpwl-button-small", onclick: () => { offer(); remove.firstChild.focus(); } }, t("keep")));
    remove.querySelectorAll("button")[1].focus();
  };
  const forget = async () => {
    const answer = await view.gateway.forget(saved.id).catch(() => null);
    if (!answer || answer.status >= 400) return view.say("error", t("tryAgainLater"));
    view.dropPart(part);
  };
  offer();
  part.button = payButton(view);
  part.form = h("form", { class: "wpwl-form wpwl-form-registrations", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
    part.cvv && h("div", { class: "wpwl-row" }, part.cvv.node),
    !saved.expired && h("div", { class: "wpwl-group wpwl-group-submit" }, part.button),
    saved.removable === true && remove);
  part.node = part.form;
  part.press = () => part.form.requestSubmit();
  part.configure = () => {
    if (!part.cvv) return;
    const facts = view.config.brands.find((one) => one.code === saved.brand);
    part.cvv.dress(t("cvv"), "•••", { mask: pageOptions().maskCvv === true, alone: true });
    part.cvv.want(facts ? facts.cvv : saved.brand === "AMEX" ? [4] : [3], true);
  };
  part.look = () => part.cvv && part.cvv.frame.send({ t: "style", style: lookOf(part.cvv.control) });
  part.brand = () => saved.brand;
  part.check = () => part.fields.map((field) => [field, field.judge()]).filter(([field, text]) => { if (!text) field.fail(""); return text; });
  part.send = (common) => {
    const fields = { ...common, registrationId: saved.id };
    return part.cvv ? part.cvv.frame.post(view.gateway.path, fields) : view.gateway.post(fields);
  };
  part.clearCvv = () => part.cvv && part.cvv.frame.send({ t: "clear" });
  return part;
}
