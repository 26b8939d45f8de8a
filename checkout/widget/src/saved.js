// Cards and accounts the shopper has kept at this merchant: one tap, and the security code if it is wanted.
function savedPart(view, saved) {
  const wishes = pageOptions().registrations || {};
  const wantsCvv = saved.cvvRequired || (wishes.requireCvv === true && saved.cvv.length > 0);
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
  const until = saved.expiryMonth ? isolated(`${saved.expiryMonth} / ${String(saved.expiryYear).slice(-2)}`) : "";
  part.detail = saved.expired ? t("expired") : until && t("expires", { date: until });
  part.badges = [mark(saved.brand, "", true)];
  part.button = payButton(view);
  part.form = h("form", { class: "wpwl-form wpwl-form-registrations", novalidate: true, action: "#", onsubmit: (event) => { event.preventDefault(); submit(view, part); } },
    part.cvv && h("div", { class: "wpwl-row" }, part.cvv.node),
    !saved.expired && h("div", { class: "wpwl-group wpwl-group-submit" }, part.button));
  part.node = part.form;
  part.press = () => part.form.requestSubmit();
  part.configure = () => {
    if (!part.cvv) return;
    part.cvv.dress(t("cvv"), "•••", { mask: pageOptions().maskCvv === true, alone: true });
    part.cvv.want(saved.cvv, true);
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
