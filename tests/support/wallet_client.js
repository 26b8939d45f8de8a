window.provider = { asked: [] };
provider.Client = class {
  constructor(options) { this.options = options; provider.options = options; }
  async isReadyToPay(request) {
    provider.asked.push(request);
    if (!request.allowedPaymentMethods[0].parameters.allowedCardNetworks.length) throw { statusCode: "DEVELOPER_ERROR" };
    return { result: !READY.has("client") };
  }
  loadPaymentData(request) {
    provider.request = request;
    const calls = this.options.paymentDataCallbacks || {};
    if (Boolean(request.callbackIntents) !== Object.keys(calls).length > 0) return Promise.reject({ statusCode: "DEVELOPER_ERROR", statusMessage: "intents" });
    return new Promise((resolve, reject) => sheet(`${request.merchantInfo.merchantName} ${request.transactionInfo.totalPrice}`, async () => {
      const data = { apiVersion: 2, apiVersionMinor: 0, paymentMethodData: {
        type: "CARD", description: "Visa 0000",
        info: { cardNetwork: "VISA", cardDetails: "0000", billingAddress: { name: "Jane", address1: "Main 1", locality: "Rome", postalCode: "00100", countryCode: "IT" } },
        tokenizationData: { type: request.allowedPaymentMethods[0].tokenizationSpecification.type, token: await token() } } };
      if (calls.onPaymentDataChanged) provider.update = await calls.onPaymentDataChanged({ callbackTrigger: "INITIALIZE" });
      if (calls.onPaymentAuthorized) {
        const verdict = await calls.onPaymentAuthorized(data);
        if (verdict.transactionState !== "SUCCESS") return reject({ statusCode: "CANCELED" });
      }
      resolve(data);
    }, () => reject({ statusCode: "CANCELED" })));
  }
};
