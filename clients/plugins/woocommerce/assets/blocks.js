// The payment method in the checkout made of blocks: a title and a sentence. The shopper pays on the payment page.
(() => {
  const settings = window.wc.wcSettings.getPaymentMethodData("tollhouse", {});
  const decode = window.wp.htmlEntities.decodeEntities;
  const text = (words) => window.wp.element.createElement("span", null, decode(words || ""));
  window.wc.wcBlocksRegistry.registerPaymentMethod({
    name: "tollhouse",
    label: text(settings.title),
    ariaLabel: decode(settings.title || "Tollhouse"),
    content: text(settings.description),
    edit: text(settings.description),
    canMakePayment: () => true,
    supports: { features: settings.supports || ["products"] },
  });
})();
